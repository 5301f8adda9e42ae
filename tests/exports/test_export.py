"""Exported policies against the policies themselves: the evaluator in node, the page as text."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import adacos
from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    DecisionProtocol,
    FullModelClassifier,
    ProtocolClassifier,
    TargetRecallClassifier,
    describe,
    export,
)
from adacos.exceptions import InvalidInputError
from adacos.exports.intervals import intervals_of
from adacos.tables.description import Description
from tests.rivals.problems import THREE_COSTS, three_table

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node: apt-get install nodejs")
QUICK: dict[str, Any] = {"cv": 2, "strengths": "common"}
POLICIES = [AdaCOSClassifier, COSClassifier, FullModelClassifier]
EVALUATOR = files("adacos.exports") / "evaluator.js"


def pima(n: int = 768) -> tuple[pd.DataFrame, Any, Costs]:
    data = adacos.load_pima()
    costs = Costs(data.prices, false_positive=400, false_negative=400, panels=data.panels)
    return data.X[:n], data.y[:n], costs


def heart() -> tuple[pd.DataFrame, Any, Costs]:
    """The table with three of its covariates as text, and classes as text."""
    data = adacos.load_heart()
    names = ("cp", "thal", "slope")
    texts = {name: data.X[name].map("c{:.0f}".format, na_action="ignore") for name in names}
    costs = Costs(data.prices, false_positive=300, false_negative=500)
    return data.X.assign(**texts), np.where(data.y > 0, "sick", "healthy"), costs


def mixed() -> tuple[pd.DataFrame, Any, Costs]:
    """A free and a constant covariate, a boolean, rare categories, a heavy tail; awkward names."""
    rng = np.random.default_rng(3)
    n = 600
    score = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "2": np.exp(2.5 * score + rng.normal(size=n)),
            "__proto__": score + rng.normal(size=n),
            "</script>": rng.random(n) < 1 / (1 + np.exp(-score)),
            "same": np.ones(n),
            "1": np.array(["a", "b", "c"])[rng.integers(3, size=n)],
            "free": score + 2 * rng.normal(size=n),
        }
    )
    # Enough categories that rare ones are grouped.
    X.loc[:40, "1"] = [f"rare {k}" for k in range(41)]
    y = (score + 0.7 * (X["1"] == "a") + 0.5 * rng.normal(size=n) > 0.8).astype(int)
    prices = dict.fromkeys(X.columns, 3.0) | {"free": 0.0, "2": 8.0}
    return X, y, Costs(prices, false_positive=100, false_negative=250)


def three() -> tuple[pd.DataFrame, Any, Costs]:
    X, y = three_table()[:2]
    return pd.DataFrame(X), y, THREE_COSTS


TABLES = {"pima": pima, "heart": heart, "mixed": mixed}


def shuffled(X: pd.DataFrame, n: int) -> pd.DataFrame:
    """Rows that mix the values of others, a fifth of the numbers beyond the training range."""
    rng = np.random.default_rng(0)
    rows = {}
    for name in X.columns:
        known = X[name].dropna().to_numpy()
        column = known[rng.integers(len(known), size=n)]
        if column.dtype.kind == "f" and np.ptp(column) > 0:
            beyond = column + rng.normal(size=n) * np.ptp(known)
            column = np.where(rng.random(n) < 0.2, beyond, column)
        rows[name] = column
    return pd.DataFrame(rows)


def evaluated(folder: Path, policy: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    export(policy, folder / "policy.json")
    (folder / "rows.json").write_text(json.dumps(rows))
    program = Path(__file__).with_name("evaluate.mjs")
    command = [str(NODE), program, str(EVALUATOR), folder / "policy.json", folder / "rows.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def records(X: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(X.columns, row, strict=True)) for row in X.astype(object).to_numpy().tolist()]


@needs_node
@pytest.mark.parametrize(
    ("kind", "table"),
    [
        *itertools.product(POLICIES, TABLES),
        (COSClassifier, "three"),
        (FullModelClassifier, "three"),
    ],
)
def test_the_evaluator_decides_as_the_policy(kind: Any, table: str, tmp_path: Path) -> None:
    X, y, costs = three() if table == "three" else TABLES[table]()
    policy = kind(costs, **QUICK).fit(X, y)
    rows = shuffled(X, 10_000)
    expected, answers = policy.acquire(rows), evaluated(tmp_path, policy, records(rows))
    assert [answer["order"] for answer in answers] == [
        list(expected.covariates(row)) for row in range(len(rows))
    ]
    assert [answer["label"] for answer in answers] == expected.label.tolist()
    for key, values in (
        ("probability", expected.probability),
        ("paid", expected.cost),
        ("expectedCost", expected.expected_cost),
    ):
        np.testing.assert_allclose([answer[key] for answer in answers], values, rtol=0, atol=1e-9)
    assert (tmp_path / "policy.json").stat().st_size < 300_000
    if kind is AdaCOSClassifier:
        assert len({len(answer["order"]) for answer in answers}) > 1


@needs_node
def test_the_evaluator_refuses_the_missing_and_the_unseen_where_it_asks(tmp_path: Path) -> None:
    X, y, costs = heart()
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    complete, rng = shuffled(X, 1000), np.random.default_rng(1)
    expected, rows = policy.acquire(complete), records(complete)
    strange = {"cp": "c9", "thal": "c9", "slope": "c9", "age": "old", "chol": None}
    gone = rng.random(complete.shape) < 0.1
    for row, absent in zip(rows, gone, strict=True):
        for name in complete.columns[absent]:
            row[name] = strange.get(name)
    codes = dict.fromkeys(("cp", "thal", "slope"), "unseen_category") | {"age": "not_a_number"}
    refused = 0
    for number, answer in enumerate(evaluated(tmp_path, policy, rows)):
        asked = expected.covariates(number)
        first = [name for name in asked if gone[number][list(complete.columns).index(name)]]
        if first:
            assert answer["covariate"] == first[0], answer
            assert answer["code"] == codes.get(first[0], "unavailable")
            refused += 1
        else:
            assert abs(answer["probability"] - expected.probability[number]) < 1e-9
            assert answer["order"] == list(asked)
    assert 100 < refused < 900


PROTOCOLS = {
    "pima": """
if Glucose >= 126 or BMI > 30 and Age > 40: 1
unavailable: 1
else:
    if Insulin is unavailable: 0
    elif Insulin > 200: 1
    else: 0
""",
    "heart": """
ask age
if cp in (c1, c2) and not thal in (c3): sick
elif thal is unavailable or slope in (c2): sick
elif age > 60 and chol >= 240: sick
else: healthy
""",
    "mixed": None,
    "three": None,
}


def incomplete(X: pd.DataFrame, n: int) -> list[dict[str, Any]]:
    """Such rows, a fifth of the values missing, and a tenth of the texts never seen."""
    rng, rows = np.random.default_rng(1), shuffled(X, n).astype(object)
    for name in rows.columns:
        if isinstance(rows[name].iloc[0], str):
            rows.loc[rng.random(n) < 0.1, name] = "never seen"
        rows.loc[rng.random(n) < 0.2, name] = None
    return records(rows)


@needs_node
@pytest.mark.parametrize("table", PROTOCOLS)
def test_the_evaluator_follows_a_protocol_whatever_is_missing(table: str, tmp_path: Path) -> None:
    """10,000 rows: the same order, label and cost, and the probability to nine decimals."""
    X, y, costs = three() if table == "three" else TABLES[table]()
    protocol: Any = PROTOCOLS[table]
    if protocol is None:
        # A tree of scikit-learn on what are numbers.
        numbers = X.select_dtypes(["number", "bool"])
        tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(numbers, y)
        protocol = DecisionProtocol.from_tree(tree)
    policy = ProtocolClassifier(costs, protocol=protocol).fit(X, y)
    rows = incomplete(X, 10_000)
    frame = pd.DataFrame(rows, columns=X.columns)
    for name in X.columns:
        if not isinstance(X[name].iloc[0], str):
            frame[name] = frame[name].astype(float)
    expected, answers = policy.acquire(frame), evaluated(tmp_path, policy, rows)
    assert not any("code" in answer for answer in answers)
    assert [answer["order"] for answer in answers] == [
        list(expected.covariates(row)) for row in range(len(rows))
    ]
    assert [answer["label"] for answer in answers] == expected.label.tolist()
    for key, values in (
        ("probability", expected.probability),
        ("paid", expected.cost),
        ("expectedCost", expected.expected_cost),
    ):
        np.testing.assert_allclose([answer[key] for answer in answers], values, rtol=0, atol=1e-9)
    assert len({tuple(answer["order"]) for answer in answers}) > 3
    assert (tmp_path / "policy.json").stat().st_size < 30_000


@needs_node
def test_the_first_price_of_a_panel_is_full_and_the_next_one_lowered(tmp_path: Path) -> None:
    X, y, costs = pima()
    assert costs.panels
    text = "ask Glucose, Insulin\nif Glucose > 120: 1\nelse: 0"
    export(ProtocolClassifier(costs, protocol=text).fit(X, y), tmp_path / "policy.json")
    content = json.loads((tmp_path / "policy.json").read_text())
    glucose, insulin = content["covariates"]
    assert glucose["discount"] == insulin["discount"] > 0
    assert glucose["panel"] == insulin["panel"] >= 0


@needs_node
@pytest.mark.parametrize("missed", [1.0, 1e6])
def test_the_evaluator_asks_nobody_where_no_question_pays(missed: float, tmp_path: Path) -> None:
    X, y, _ = pima()
    costs = Costs(dict.fromkeys(X.columns, 50.0), false_positive=1.0, false_negative=missed)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    rows = shuffled(X, 200)
    expected, answers = policy.acquire(rows), evaluated(tmp_path, policy, records(rows))
    assert [answer["label"] for answer in answers] == expected.label.tolist()
    np.testing.assert_allclose([answer["paid"] for answer in answers], expected.cost, atol=1e-9)


@needs_node
def test_a_target_recall_is_kept(tmp_path: Path) -> None:
    X, y, costs = pima()
    inside = AdaCOSClassifier(Costs(costs.covariates, false_positive=400), **QUICK)
    policy = TargetRecallClassifier(inside, target_recall=0.9).fit(X, y)
    rows = shuffled(X, 300)
    expected, answers = policy.acquire(rows), evaluated(tmp_path, policy, records(rows))
    assert [answer["label"] for answer in answers] == expected.label.tolist()
    np.testing.assert_allclose([answer["paid"] for answer in answers], expected.cost, atol=1e-9)


def test_intervals_are_found_to_the_last_bit() -> None:
    cuts = np.array([-3.1, 0.2, 0.7])

    def function(x: np.ndarray) -> np.ndarray:
        return np.searchsorted(cuts, x, side="right") % 2

    found = intervals_of(function, np.linspace(-5, 5, 41))
    assert found.breaks.tolist() == cuts.tolist()
    assert found.values.tolist() == [0, 1, 0, 1]
    # Two changes between neighbours of the grid are noticed.
    with pytest.raises(RuntimeError, match="more than once"):
        intervals_of(lambda x: ((x > 0.3) & (x < 0.7)).astype(int), np.array([0.0, 1.0]))


def test_the_page_allows_itself_and_nothing_else(tmp_path: Path) -> None:
    X, y, costs = mixed()
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    describe(policy, Description(title="A {script} <b>"))
    export(policy, tmp_path / "policy.html")
    page = (tmp_path / "policy.html").read_text()
    assert "<title>A {script} &lt;b&gt;</title>" in page
    content = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert content is not None
    allowed = dict(part.split(" ", 1) for part in content[1].split("; "))
    assert allowed["default-src"] == "'none'"
    for name, element in (("script", '<script type="module">'), ("style", "<style>")):
        text = page.split(element)[1].split(f"</{name}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert allowed[f"{name}-src"] == f"'sha256-{digest}'"
    assert page.count("<script") == 2
    assert not re.search(
        r"https?://|\bsrc=|@import|url\(|fetch\(|\bimport ", page.split("*/", 1)[1]
    )
    held = page.split('id="policy">')[1].split("</script>")[0]
    assert json.loads(held)["title"] == "A {script} <b>"


def refusal(policy: Any, path: Path) -> str:
    with pytest.raises(InvalidInputError) as caught:
        export(policy, path)
    assert not list(path.parent.glob("*"))
    return str(caught.value)


def test_what_a_file_cannot_decide_is_refused_by_name(tmp_path: Path) -> None:
    X, y, costs = pima(300)
    path = tmp_path / "policy.json"
    prices = costs.covariates
    cases = {
        "BranchingClassifier": BranchingClassifier(costs, **QUICK),
        "COSClassifier with a budget": COSClassifier(costs, budget=5.0, **QUICK),
        "with a budget": AdaCOSClassifier(costs, mean_budget=5.0, **QUICK),
        "lookahead='paper'": AdaCOSClassifier(costs, lookahead="paper", **QUICK),
        "rounds": AdaCOSClassifier(
            Costs(prices, false_positive=400, false_negative=400, round_cost=2.0), **QUICK
        ),
        "decisions in place of labels": COSClassifier(
            Costs(
                prices,
                decisions=("home", "refer", "treat"),
                misclassification=[[0, 30, 200], [500, 120, 20]],
            ),
            **QUICK,
        ),
    }
    for words, policy in cases.items():
        assert words in refusal(policy.fit(X, y), path), words
    X3, y3 = three_table()[:2]
    assert "3 classes" in refusal(AdaCOSClassifier(THREE_COSTS, **QUICK).fit(X3, y3), path)


def test_bad_input_leaves_nothing(tmp_path: Path) -> None:
    X, y, costs = pima(300)
    policy = COSClassifier(costs, **QUICK)
    assert "must be fitted" in refusal(policy, tmp_path / "policy.json")
    policy.fit(X, y)
    assert "must end in .json or .html" in refusal(policy, tmp_path / "policy.txt")
    assert "must be a fitted policy" in refusal(3, tmp_path / "policy.json")
    assert "its folder must exist" in refusal(policy, tmp_path / "none" / "policy.json")
    # What is there already stays.
    (tmp_path / "policy.json").write_text("mine")
    with pytest.raises(InvalidInputError):
        export(
            AdaCOSClassifier(costs, lookahead="paper", **QUICK).fit(X, y), tmp_path / "policy.json"
        )
    assert (tmp_path / "policy.json").read_text() == "mine"

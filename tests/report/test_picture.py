"""A policy that branches, and one that was chosen, in card, info, report, service and words."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from adacos import AdaCOSClassifier, AutoPolicyClassifier, BranchingClassifier, describe, load, save
from adacos.card import model_card
from adacos.cli.explain import walk
from adacos.cli.info import show
from adacos.consultation.steps import Classify
from adacos.metrics import total_costs
from adacos.policies.auto import Compared
from adacos.policies.estimates import estimate_costs
from adacos.tables.description import CovariateDescription, Description
from tests.policies.branching_table import COSTS, table

QUICK: dict[str, Any] = {"cv": 2, "strengths": "common"}
WORDS = Description(
    currency="USD",
    classes={"1": "ill"},
    covariates={
        "blood": CovariateDescription(label="Blood test", unit="g/l"),
        "ward": CovariateDescription(label="Ward", values={"east": "East wing"}),
    },
)


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = table(1, missing=True)
    return X[:400], y[:400]


@pytest.fixture(scope="module")
def policy(rows) -> BranchingClassifier:
    fitted = BranchingClassifier(COSTS, max_depth=2, **QUICK).fit(*rows)
    assert not fitted.in_one_order
    return fitted


@pytest.fixture(scope="module")
def auto(rows, policy, tmp_path_factory) -> AutoPolicyClassifier:
    """As if it had chosen this policy: a comparison would take long. Through a file."""
    chosen = AutoPolicyClassifier(COSTS)
    chosen.begin_fit(*rows)
    chosen.policy_, chosen.choice_ = policy, "Branching"
    chosen.compared_ = (
        Compared("AdaCOS", 20.0, 1.0, 0.0, 0.0),
        Compared("COS", 22.5, 1.1, 2.5, 0.5),
        Compared("Branching", 15.0, 0.9, -5.0, 0.6),
    )
    chosen.finish_fit()
    describe(chosen, WORDS)
    estimate_costs(chosen, *rows)
    file = tmp_path_factory.mktemp("auto") / "auto.adacos"
    save(chosen, file)
    return load(file)


def satisfied(condition: str, X: pd.DataFrame) -> np.ndarray:
    """Which rows a condition of the picture holds for, read as a person would."""
    if condition.endswith(" is not available"):
        return X[condition.removesuffix(" is not available")].isna().to_numpy()
    for sign in (" ≤ ", " > ", " = "):
        if sign in condition:
            name, value = condition.split(sign)
            if sign == " = ":
                return X[name].isin(value.split(" or ")).to_numpy()
            known = X[name].notna().to_numpy()
            below = (X[name] <= float(value)).to_numpy()
            return known & (below if sign == " ≤ " else ~below)
    raise AssertionError(condition)


def reached(tree: Any, X: pd.DataFrame) -> list[np.ndarray]:
    """Which rows come to each place."""
    found = [np.ones(len(X), dtype=bool)] * len(tree.places)
    waiting = [0]
    while waiting:
        number = waiting.pop()
        for below in tree.places[number].below:
            found[below] = found[number] & satisfied(tree.places[below].condition, X)
            waiting.append(below)
    return found


def test_every_place_describes_the_rows_that_come_to_it(policy, rows) -> None:
    """Rows without the covariate of a branch included: nobody is left out of the picture."""
    X, _ = rows
    tree, result = policy.tree_, policy.acquire(X)
    here = reached(tree, X)
    leaves = [n for n, place in enumerate(tree.places) if not place.question]
    np.testing.assert_array_equal(np.sum([here[n] for n in leaves], axis=0), 1)
    assert any("not available" in place.condition for place in tree.places)
    for place, own in zip(tree.places, here, strict=True):
        assert place.share == pytest.approx(own.mean())
        assert place.cost == pytest.approx(result.cost[own].mean())
        assert place.positive == pytest.approx(np.mean(result.label[own] == 1))
    for n in leaves:
        for name, share in tree.places[n].acquired:
            k = result.names.index(name)
            assert share == pytest.approx(result.acquired[here[n], k].mean())


def test_the_out_of_fold_cost_is_that_of_the_leaf(policy, rows) -> None:
    """At the set of a row's own leaf, found by the number of covariates of a complete row."""
    X, _ = rows
    result = policy.acquire(X)
    found = policy._out_of_fold_at_stop(policy._encode(X), result)
    complete = np.flatnonzero(X.notna().all(axis=1))
    for row in complete:
        model = policy.nodes_[policy.leaf_[row]].model
        sizes = [len(model.sequence.set(i)) for i in range(len(model.sequence))]
        stage = sizes.index(int(result.acquired[row].sum()))
        assert found[row] == model.out_of_fold_log_odds[row, stage]
    assert len(complete) > 200


def test_the_card_is_that_of_the_chosen_policy(auto, policy, rows) -> None:
    card = json.loads(json.dumps(model_card(auto)))
    assert card["policy"] == "AutoPolicyClassifier"
    assert card["order"] is card["sets"] is None
    assert card["training_rows"] == 400
    assert card["choice"]["policy"] == "Branching"
    assert [item["title"] for item in card["choice"]["compared"]] == ["AdaCOS", "COS", "Branching"]
    assert "Branching costs 5.00\N{NO-BREAK SPACE}USD ± 0.60 less" in card["choice"]["reason"]
    tree = card["tree"]
    assert len(tree["places"]) == len(policy.tree_.places)
    assert "Ward = " in tree["text"] or "Blood test" in tree["text"]
    assert "answered ill" in tree["text"]
    assert "USD" in tree["text"]
    own = card["cost_estimates"][0]
    X, y = rows
    result = policy.acquire(X)
    label = (policy._out_of_fold_at_stop(policy._encode(X), result) > np.log(60 / 90)).astype(int)
    cost = result.cost + np.where(label == y, 0, np.where(label == 1, 60, 90))
    assert own["name"] == "this policy, stops chosen with these rows"
    assert own["cost"] == pytest.approx(cost.mean())
    plain = model_card(AdaCOSClassifier(COSTS, **QUICK).fit(X, y))
    assert plain["tree"] is plain["choice"] is None
    assert plain["order"] is not None


def test_info_shows_tree_and_comparison(auto) -> None:
    text = io.StringIO()
    show(auto, Console(file=text, width=200))
    reported = text.getvalue()
    assert "every row is asked" in reported
    assert "Branching (chosen)" in reported
    assert "-5.00 ± 0.60" in reported
    assert "total cost if all stop here" not in reported


def test_a_consultation_gives_the_reason_of_the_branch_in_words(auto, rows) -> None:
    X, _ = rows
    row = X[X.notna().all(axis=1)].iloc[0]
    values = {name: row[name] for name in X.columns}
    steps = walk(auto, values, [])
    assert isinstance(steps[-1], Classify)
    branch = steps[1]
    assert "is asked here of everyone" in str(branch.explanation)
    first = auto.policy_.tree_.places[0].question
    assert str(branch.explanation).count(WORDS.label(first)) >= 1


def test_the_report_speaks_of_the_tree(auto, policy, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    from adacos.report import figures, numbers, write_report
    from adacos.report.held import hold, methods, sensitivity
    from tests.report.reading import readable

    X, y = table(5, missing=True)
    held = hold(auto, X, y)
    own = methods(held)[0]
    result = policy.acquire(X)
    assert own.total.value == pytest.approx(total_costs(result, y, COSTS).mean())
    assert [m.name for m in methods(held)][:4] == ["this policy", "AdaCOS", "COS", "full model"]
    same = {m.name: m for m in dict(sensitivity(held))[1.0]}
    assert same["this policy"].total.value == pytest.approx(own.total.value)
    assert numbers.incoherent_share(held) == 0
    here = reached(numbers.tree(policy, hold(policy, X, y).encoded, policy.acquire(X)), X)
    leaves = [rows for rows, place in zip(here, policy.tree_.places, strict=False)]
    counts = {int(rows.sum()) for rows in leaves}
    by_leaf: dict[str, int] = {}
    for misfit in numbers.misfits(held):
        by_leaf[misfit.stop] = by_leaf.get(misfit.stop, 0) + misfit.found.among
    assert sum(by_leaf.values()) > 0.95 * len(y)
    assert max(by_leaf.values()) <= max(counts)
    drawn = []
    monkeypatch.setattr(figures, "_svg", lambda figure: drawn.append(figure) or b"")
    path = Path(tmp_path) / "r.html"
    write_report(auto, X, y, path, "Report")
    text = readable(path.read_text(encoding="utf-8"))
    assert "AutoPolicyClassifier, which chose Branching" in text
    assert "How the policy was chosen" in text
    assert "what comes next depends on the values" in text
    assert "Expected cost along the sequence" not in text
    assert "Shape functions" not in text
    assert drawn


def test_the_service_serves_the_tree(auto, rows) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    from adacos.service.app import create_app
    from tests.service.conftest import TestClient

    client = TestClient(create_app(auto))
    assert client.get("/v1/model").json()["tree"]["rows"] == 400
    assert client.get("/tree.js").status_code == 200
    step = client.post("/v1/step", json={"acquired": {"age": 50.0}}).json()
    assert step["action"] == "acquire"
    assert "asked here of everyone" in step["explanation"]["because"]

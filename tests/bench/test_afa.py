"""`adacos bench afa`: budgets are kept, scores are those of the answers, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score
from typer.testing import CliRunner

from adacos import AdaCOSClassifier
from adacos.bench.afa import AFAOptions, run_afa
from adacos.bench.afa_cases import (
    STARTS,
    Sample,
    _begun,
    _random_order,
    _scores,
    budgets_from,
    with_budget,
)
from adacos.cli.app import app
from adacos.engine import run
from adacos.exceptions import InvalidInputError


def table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4)) + np.outer(y, [1.5, 0.8, 0.0, 0.0])
    return pd.DataFrame(X, columns=list("abcd")).assign(ill=np.where(y, "yes", "no"))


def sample() -> Sample:
    train, fresh = table(300), table(120, seed=1)
    prices = {"a": 1.0, "b": 2.0, "c": 1.0, "d": 4.0}
    X, y = train[list("abcd")], train["ill"].to_numpy()
    return Sample(X, y, fresh[list("abcd")], fresh["ill"].to_numpy(), prices)


@pytest.fixture(scope="module")
def policy() -> AdaCOSClassifier:
    one = sample()
    return AdaCOSClassifier(one.costs(1e4), cv=2).fit(one.X, one.y)


@pytest.mark.parametrize("start", STARTS)
def test_no_row_pays_more_than_its_budget(policy: AdaCOSClassifier, start: str) -> None:
    encoded, known = _begun(policy, sample(), start, np.random.default_rng(0))
    for budget in (1.0, 2.5, 8.0):
        result = run(with_budget(policy.decider_, budget), encoded, known)
        assert result.cost.max() <= budget + 1e-9
        if start == "values known":
            assert not (result.acquired & known).any()
        else:
            assert not known.any()
        if start == "never acquirable":
            assert (~result.acquired).all(axis=0).any()


def test_scores_are_those_of_scikit_learn(policy: AdaCOSClassifier) -> None:
    one = sample()
    label = policy.predict(one.X_fresh)
    accuracy, f1 = _scores(policy, label, one.y_fresh)
    assert accuracy == pytest.approx(accuracy_score(one.y_fresh, label))
    assert f1 == pytest.approx(f1_score(one.y_fresh, label, average="macro"))


def test_in_random_order_everything_is_known_at_last(policy: AdaCOSClassifier) -> None:
    one = sample()
    encoded, _ = _begun(policy, one, STARTS[0], np.random.default_rng(0))
    found = _random_order(policy, encoded, [1, 4], one, np.random.default_rng(0))
    everything = policy.predict_proba(one.X_fresh, known=list("abcd"))
    label = policy.classes_[policy.rule_.label(np.log(everything[:, 1] / everything[:, 0]))]
    assert found[-1] == pytest.approx((label == one.y_fresh).mean())


def test_the_command_on_a_table_of_ones_own(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "clinic.csv", index=False)
    arguments = [
        "bench",
        "afa",
        "--data",
        str(tmp_path / "clinic.csv"),
        "--target",
        "ill",
        "--prices",
        "d=4",
    ]
    arguments += ["--methods", "adacos,cos", "--instances", "2", "--jobs", "1", "--json"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "afa")])
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)["results"]
    assert [one["method"] for one in results] == ["AdaCOS (group lasso)", "COS (group lasso)"]
    assert all(0.5 < one["mean_accuracy"] < 1 for one in results)
    lines = pd.read_csv(tmp_path / "afa" / "afa.csv")
    budgets = [1, 2, 3, 4]
    expected = 2 * 2 * sum(len(budgets_from(start, budgets)) for start in STARTS)
    assert len(lines) == expected
    page = (tmp_path / "afa" / "summary.md").read_text()
    assert "clinic" in page
    assert "Random order" in page
    # A second run finds everything there.
    stored = {p: p.stat().st_mtime_ns for p in (tmp_path / "afa" / "trials").iterdir()}
    assert CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "afa")]).exit_code == 0
    assert stored == {p: p.stat().st_mtime_ns for p in (tmp_path / "afa" / "trials").iterdir()}


def test_bad_input(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "afa", "--target", "ill"])
    assert done.exit_code
    with pytest.raises(InvalidInputError, match="instances"):
        run_afa(AFAOptions(instances=0, out=tmp_path))

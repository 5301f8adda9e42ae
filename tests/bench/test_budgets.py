"""Methods beside each other with budgets: the tables say what the policies do."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import AdaCOSClassifier, COSClassifier, Costs, load_heart, paper_folds
from adacos.bench.budgets import BudgetOptions, run_budgets
from adacos.cli.app import app
from adacos.exceptions import InvalidInputError
from adacos.registry import forgetting, register_method

QUICK: dict[str, Any] = {"cv": 2, "strengths": "common"}
ERROR = 5000.0


@pytest.fixture
def methods() -> Any:
    """Two quick methods."""
    with forgetting():
        register_method(
            "walks", lambda costs: AdaCOSClassifier(costs, lookahead="coherent", **QUICK)
        )
        register_method("one set", lambda costs: COSClassifier(costs, **QUICK))
        yield


@pytest.mark.usefixtures("methods")
def test_the_table_is_what_the_policies_pay(tmp_path: Path) -> None:
    options = BudgetOptions(
        methods=["one set"], shares=(0.005,), error=ERROR, folds=1, out=tmp_path
    )
    report = run_budgets(options, progress=False)
    assert not report.failures
    data = load_heart()
    costs = Costs(data.prices, false_positive=ERROR, false_negative=ERROR, panels=data.panels)
    budget = 0.005 * costs.of(list(data.names))
    inside = paper_folds(data.X, data.y) == 0
    policy = COSClassifier(costs, mean_budget=budget, **QUICK)
    result = policy.fit(data.X[~inside], data.y[~inside]).acquire(data.X[inside])
    found = {(s.method, s.budget is None): s for s in report.spendings}
    own = found["one set", False]
    assert own.budget == pytest.approx(budget)
    np.testing.assert_allclose(own.paid, result.cost)
    np.testing.assert_array_equal(own.wrong, ERROR * (result.label != data.y[inside]))
    assert found["one set", True].paid.mean() > own.paid.mean()
    with open(tmp_path / "budgets.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["method"], line["budget"] == "") for line in lines] == list(found)
    assert (tmp_path / "index.html").is_file()
    # What is there is not computed again.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cases").iterdir()}
    again = run_budgets(options, progress=False)
    assert [s.means for s in again.spendings] == [s.means for s in report.spendings]
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "cases").iterdir()}


@pytest.mark.usefixtures("methods")
def test_a_ceiling_is_kept_by_every_row(tmp_path: Path) -> None:
    given = ("--kind", "ceiling", "--shares", "0.3", "--folds", "1", "--error", str(ERROR))
    out = ("--methods", "walks", "--jobs", "1", "--out", str(tmp_path), "--json")
    done = CliRunner().invoke(app, ["bench", "budgets", *given, *out])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    table = json.loads(done.stdout)["table"]
    assert [line["kept"] for line in table] == ["", True]
    assert table[1]["largest_covariate_cost"] <= table[1]["budget"] * (1 + 1e-9)
    assert table[0]["largest_covariate_cost"] > table[1]["budget"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "mode"}, "must be one of"),
        ({"dataset": "physionet"}, "must be bundled"),
        ({"methods": ("dwsm",)}, "must have the parameter mean_budget"),
        ({"shares": (0.0,)}, "> 0"),
        ({"folds": 6}, "at most 5"),
    ],
)
def test_mistakes_are_refused(options: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=words):
        run_budgets(BudgetOptions(out=tmp_path, **options))
    assert not list(tmp_path.iterdir())

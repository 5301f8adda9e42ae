"""The regret study: exact expected costs, impossible costs found, resuming, the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import AdaCOSClassifier, Costs
from adacos.bench import continuous, regret
from adacos.bench.continuous import run_continuous
from adacos.bench.regret import DiscreteSettings, RegretOptions, expected_cost, run_regret
from adacos.cli.app import app
from adacos.exceptions import InvalidInputError
from adacos.metrics import total_costs
from adacos.registry import forgetting, register_method
from adacos.rivals import OptimalPolicyClassifier
from tests.bench.toy import Thresholder

COS = "COS (group lasso)"
SMALL = (("n_covariates", "Number of covariates", (2, 3)),)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two small settings, and a registry that forgets what a test adds."""
    monkeypatch.setattr(regret, "AXES", SMALL)
    monkeypatch.setattr(regret, "CENTRE", DiscreteSettings(n_covariates=2))
    with forgetting():
        yield


class Cheat:
    """Claims to have acquired nothing, and yet knows the covariates."""

    def __init__(self, costs: Costs) -> None:
        self.optimum = OptimalPolicyClassifier(costs)

    def fit(self, X: Any, y: Any) -> Cheat:
        self.optimum.fit(X, y)
        return self

    def acquire(self, X: Any) -> Any:
        found = self.optimum.acquire(X)
        return SimpleNamespace(
            label=found.label,
            probability=found.probability,
            cost=np.zeros(len(X)),
            acquired=np.zeros_like(found.acquired),
        )


class Liar(Thresholder):
    """Says what it acquired, and that it paid nothing."""

    def acquire(self, X: Any) -> Any:
        result = super().acquire(X)
        result.cost = np.zeros(len(X))
        return result


class Broken(Cheat):
    def fit(self, X: Any, y: Any) -> Cheat:
        raise RuntimeError("no such luck")


@pytest.mark.parametrize("setting", [DiscreteSettings(4, 1.0, 1.0), regret.FIXED_ORDER])
def test_expected_cost_is_the_mean_over_many_rows(setting: DiscreteSettings) -> None:
    problem = setting.problem(1)
    costs = Costs(list(problem.prices.values()), false_positive=20, false_negative=30)
    X, y = problem.sample(300, seed=0)
    policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(X, y)
    new, truth = problem.sample(100_000, seed=1)
    spent = total_costs(policy.acquire(new), truth, costs)
    error = spent.std() / np.sqrt(len(spent))
    assert expected_cost(policy, problem, costs) == pytest.approx(spent.mean(), abs=4 * error)


def test_expected_cost_of_the_optimum_is_its_value() -> None:
    problem = DiscreteSettings(5, 0.5, 2.0).problem(3)
    costs = Costs(list(problem.prices.values()), false_positive=20, false_negative=30)
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(*problem.sample(50, seed=0))
    assert expected_cost(policy, problem, costs) == pytest.approx(policy.expected_cost_, rel=1e-12)


def test_impossible_costs_and_errors_are_reported(registered: None, tmp_path: Path) -> None:
    register_method("cheat", Cheat)
    register_method("broken", Broken)
    options = RegretOptions(("cheat", COS, "broken"), problems=2, rows=200, out=tmp_path)
    report = run_regret(options)
    assert {t.method for t in report.below_optimum} == {"cheat"}
    (error,) = {failure.error for failure in report.failures}
    assert error.startswith("RuntimeError: no such luck (test_regret.py, line ")
    assert min(report.regrets()[COS]) >= 0
    page = report.index.read_text()
    assert "below the optimum: an error" in page
    assert "no such luck" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "regret.csv").read_text().count("\n") == 1 + len(report.trials)


@pytest.mark.parametrize("study", [run_regret, run_continuous])
def test_a_cost_that_a_method_claims_is_not_believed(
    registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Any
) -> None:
    register_method("liar", Liar)
    monkeypatch.setattr(continuous, "FRESH_ROWS", 50)
    monkeypatch.setattr(continuous, "CELLS", 2)
    options = RegretOptions(("liar",), problems=1, rows=200, out=tmp_path, quick=True)
    report = study(options)
    assert len(report.failures) == len(report.trials)
    assert all("by the price list" in failure.error for failure in report.failures)
    assert not report.below_optimum


def test_a_second_run_reuses_the_first(
    registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RegretOptions((COS,), problems=1, seed=9, rows=200, out=tmp_path)
    first = run_regret(options)
    assert {trial.seed for trial in first.trials} == {9}
    monkeypatch.setattr(regret, "expected_cost", None)
    assert run_regret(options).trials == first.trials


def test_a_method_of_ones_own_runs_in_other_processes(registered: None, tmp_path: Path) -> None:
    register_method("cheat", Cheat)
    options = RegretOptions(("cheat",), problems=1, rows=100, jobs=2, out=tmp_path)
    report = run_regret(options)
    assert not report.failures
    assert report.below_optimum


def test_command(registered: None, tmp_path: Path) -> None:
    arguments = ["bench", "regret", "--methods", "dwsm", "--problems", "1", "--rows", "200"]
    arguments += ["--jobs", "1", "--out", str(tmp_path)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "DWSM" in shown.output
    reported = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(reported.stdout)["below_optimum"] == []


def test_bad_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="rows"):
        run_regret(RegretOptions(rows=5, out=tmp_path))
    with pytest.raises(InvalidInputError, match="seed"):
        run_regret(RegretOptions(seed=-1, out=tmp_path))
    with pytest.raises(InvalidInputError, match="methods"):
        run_regret(RegretOptions(("nobody",), out=tmp_path))

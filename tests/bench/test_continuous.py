"""The regret study with numeric covariates: the optimum, its resolution, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import Costs
from adacos.bench import continuous
from adacos.bench.continuous import ContinuousSettings, charged, optimal_cost, run_continuous
from adacos.bench.regret import RegretOptions
from adacos.cli.app import app
from adacos.models.plans import tabulate
from adacos.registry import forgetting, register_method


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuous, "MIXTURES", ("mixture-2",))
    monkeypatch.setattr(continuous, "ALIENS", ("switches",))
    monkeypatch.setattr(continuous, "CELLS", 5)
    monkeypatch.setattr(continuous, "FRESH_ROWS", 3000)


def bound(problem: Any) -> Any:
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    return costs.bind(tuple(problem.prices), 2)


@pytest.mark.parametrize("kind", ["mixture-8", "trees"])
def test_the_optimum_costs_on_rows_what_the_recursion_says(kind: str) -> None:
    problem = ContinuousSettings(kind, 2.0).problem(1)
    costs = bound(problem)
    X, _ = problem.sample(100_000, seed=5)
    cost = optimal_cost(problem, costs, X, 10)
    # A row costs less than 75 + 10; its standard deviation is below 40.
    expected = tabulate(problem.cells(10), costs).expected_cost
    assert cost == pytest.approx(expected, abs=4 * 40 / np.sqrt(len(X)))


def test_finer_cells_cost_less_and_little_less() -> None:
    problem = ContinuousSettings("mixture-4", 2.0).problem(0)
    costs = bound(problem)
    values = [tabulate(problem.cells(n), costs).expected_cost for n in (5, 10, 20)]
    assert values[0] > values[1] > values[2]
    assert values[1] / values[2] < 1.05


def test_nothing_and_everything_cost_at_least_the_optimum() -> None:
    """Answering 0 for everybody, and the answer by the exact P(y | x) with all covariates."""
    problem = ContinuousSettings("mixture-8", 1.0).problem(2)
    costs = bound(problem)
    X, _ = problem.sample(20_000, seed=5)
    best = optimal_cost(problem, costs, X, 14)
    label = problem.positive(problem.latent(X)) >= 50 / 125
    everything = charged(problem, X, costs.of(np.ones_like(X, dtype=bool)), label, costs.matrix)
    nothing = charged(problem, X, np.zeros(len(X)), np.zeros(len(X)), costs.matrix)
    assert best < everything < nothing


def test_a_cost_below_the_optimum_is_found(small: None, tmp_path: Path) -> None:
    class Cheat:
        """Knows the class of most rows and pays nothing."""

        def __init__(self, costs: Costs) -> None:
            pass

        def fit(self, X: Any, y: Any) -> Cheat:
            return self

        def acquire(self, X: Any) -> Any:
            problem = ContinuousSettings("mixture-2", 1.0).problem(0)
            label = problem.positive(problem.latent(X)) >= 0.4
            nothing = np.zeros(X.shape, dtype=np.bool_)
            free = np.zeros(len(X))
            return SimpleNamespace(label=label, probability=free, cost=free, acquired=nothing)

    with forgetting():
        register_method("cheat", Cheat)
        options = RegretOptions(("cheat",), rows=100, out=tmp_path, quick=True)
        report = run_continuous(options)
    below = [trial.setting.kind for trial in report.below_optimum]
    assert "mixture-2" in below
    assert "below the optimum: an error" in report.index.read_text()


def test_command(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["bench", "regret", "--continuous", "--quick", "--methods", "COS (group lasso)"]
    arguments += ["--jobs", "1", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    reported = json.loads(done.stdout)
    assert reported["mean_regret_percent"]["COS (group lasso)"] > 0
    assert (tmp_path / "regret.csv").read_text().count("\n") == 3
    monkeypatch.setattr(continuous, "optimal_cost", None)
    assert json.loads(CliRunner().invoke(app, arguments).stdout) == reported

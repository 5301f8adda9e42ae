"""What is stated where free covariates come first: the cost of rows that then continue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs
from adacos.metrics import total_costs
from adacos.models.lookahead import begin
from adacos.models.opening import after_opening
from adacos.tables.columns import ColumnTable
from tests.deciders.round_oracle import expected_by

STRENGTH = np.array([0.8, 0.6, 0.5, 1.0, 1.2])


def rows(n: int, n_classes: int, kind: str, rng: Any) -> tuple[Any, np.ndarray]:
    y = rng.integers(0, n_classes, n)
    if kind == "numbers":
        return rng.normal(size=(n, 5)) + STRENGTH * (y[:, None] - (n_classes - 1) / 2), y
    known, columns = np.random.default_rng(1), {}
    for k in range(5):
        share = known.dirichlet(0.7 * np.ones(4), size=n_classes).cumsum(axis=1)
        place = (rng.random((n, 1)) > share[y]).sum(axis=1).clip(max=3)
        columns[f"x{k}"] = np.array(list("stuv"))[place]
    return ColumnTable(columns), y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["numbers", "letters"])
def test_the_first_figure_counts_what_comes_after_the_free_covariates(
    n_classes: int, kind: str
) -> None:
    costs = Costs([0.0, 5.0, 6.0, 7.0, 8.0], misclassification=60 * (1 - np.eye(n_classes)))
    rng = np.random.default_rng(0)
    X, y = rows(2000, n_classes, kind, rng)
    policy = AdaCOSClassifier(costs, cv=5).fit(X, y)
    fresh, truth = rows(10_000, n_classes, kind, rng)
    paid = total_costs(policy.acquire(fresh), truth, costs)
    assert policy.consultation().next().covariates == ("x0",)
    error = paid.std() * np.sqrt(1 / 2000 + 1 / 10_000)
    assert abs(expected_by(policy) - paid.mean()) < 2.5 * error


@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_something_known_the_rest_of_the_opening_is_normal(n_classes: int) -> None:
    """By what the missing covariates contribute; its mean probability is the one believed now."""
    costs = Costs([0.0, 0.0, 6.0, 7.0, 8.0], misclassification=60 * (1 - np.eye(n_classes)))
    X, y = rows(600, n_classes, "numbers", np.random.default_rng(0))
    policy = AdaCOSClassifier(costs, cv=3, strengths="common").fit(X, y)
    known = np.arange(5) == 0
    row = np.where(known, X[:1], np.nan)
    there = np.ones((1, 5), dtype=np.bool_)
    state = begin(policy.model_, policy._encode(row), there, known, known)
    log_odds, mass = after_opening(state)
    assert mass.sum() == pytest.approx(1)
    step = policy.consultation({"x0": X[0, 0]}).next()
    assert step.covariates == ("x1",)
    now = step.explanation.stop_now
    assert 0 < mass @ policy.decider_.worth(state, log_odds) <= now + 1e-6
    assert step.explanation.best_plan.expected_total_cost <= now + 1e-6

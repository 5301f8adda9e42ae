"""What one or two covariates for every row cost: row by row, by counting."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from adacos import Costs
from adacos.costs import CostTable
from adacos.models.short_plans import CellRows

NAMES = ("a", "b", "c")


def rows_of_codes(
    seed: int, n_classes: int, n: int = 90
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three covariates of two values, some missing; classes; folds."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(float)
    y = (X[:, 0] + rng.integers(0, n_classes, n)).astype(np.intp) % n_classes
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, y, rng.integers(0, 4, n)


def counted(
    X: Any, y: Any, weight: Any, fold: Any, costs: CostTable, chosen: tuple[int, ...]
) -> Any:
    """The same by a loop over rows: the cheapest answer in the cell, by rows of other folds."""
    found = []
    for i in range(len(y)):
        alike = [str(X[j, chosen]) == str(X[i, chosen]) for j in range(len(y))]
        others = np.array(alike) & (fold != fold[i])
        share = np.array([weight[others & (y == k)].sum() for k in range(len(costs.matrix))])
        # One row's worth of the shares of all rows, which alone decides in an empty cell.
        share += [weight[y == k].sum() / weight.sum() for k in range(len(costs.matrix))]
        label = int(np.argmin(share @ costs.matrix))
        known = np.isin(np.arange(3), chosen) & ~np.isnan(X[i])
        found.append(float(costs.of_batch(known)) + costs.matrix[y[i], label])
    return np.array(found)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("more", [{}, {"panels": {"p": (0.5, ["a", "b"])}}, {"round_cost": 0.7}])
@pytest.mark.parametrize("budget", [None, 2.6])
def test_each_row_costs_what_is_counted_and_the_least_mean_is_found(
    n_classes: int, more: Any, budget: float | None
) -> None:
    X, y, fold = rows_of_codes(n_classes, n_classes)
    weight = np.random.default_rng(9).uniform(0.5, 2.0, len(y))
    matrix = 9.0 * (1 - np.eye(n_classes)) + np.triu(np.ones((n_classes, n_classes)), 1)
    stated = Costs(dict(zip(NAMES, (1.0, 1.5, 2.0), strict=True)), misclassification=matrix, **more)
    costs = stated.bind(NAMES, n_classes)
    cells = CellRows(X, np.arange(3), y, weight, fold, costs, budget)
    every = {}
    for chosen in [(k,) for k in range(3)] + list(combinations(range(3), 2)):
        truth = counted(X, y, weight, fold, costs, chosen)
        np.testing.assert_allclose(cells.cost(chosen), truth)
        if budget is None or costs.of(np.isin(np.arange(3), chosen)) <= budget:
            every[chosen] = np.average(truth, weights=weight)
    found = cells.cheapest()
    assert found is not None
    assert found.compared == len(every)
    assert found.covariates == min(every, key=lambda chosen: every[chosen])
    assert found.mean == pytest.approx(min(every.values()))


def test_a_budget_that_pays_for_nothing_leaves_no_plan() -> None:
    X, y, fold = rows_of_codes(0, 2)
    costs = Costs([1.0, 1.5, 2.0], false_positive=1, false_negative=1).bind(NAMES, 2)
    assert CellRows(X, np.arange(3), y, np.ones(90), fold, costs, 0.5).cheapest() is None


def test_a_number_is_cut_where_it_says_most_of_what_it_can() -> None:
    """The cost of a number alone is near that of the true density of the class given it."""
    rng = np.random.default_rng(2)
    n = 20_000
    y = rng.integers(0, 2, n)
    x = rng.normal(size=n) + 2.0 * y
    costs = Costs([1.0], false_positive=30, false_negative=60).bind(("x",), 2)
    fold = rng.integers(0, 10, n)
    cells = CellRows(x[:, None], np.zeros(1, dtype=np.intp), y, np.ones(n), fold, costs)
    # P(1 | x) >= 1/3 from 2x - 2 = -log 2 on.
    label = (x >= 1 - np.log(2) / 2).astype(int)
    best = 1 + costs.matrix[y, label].mean()
    assert best - 0.1 < cells.cost((0,)).mean() < best + 0.3

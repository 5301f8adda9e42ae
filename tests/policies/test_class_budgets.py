"""Budgets with three classes: no row exceeds its ceiling, rows keep a mean budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    TargetRecallClassifier,
)
from adacos.card import model_card
from adacos.deciders.weighing import weigh
from adacos.kernels.class_risk import class_bayes_risk
from adacos.models.class_lookahead import look_ahead_classes
from adacos.models.dynamic import ValueTables
from adacos.models.lookahead import begin
from tests.policy_checks import check_consultation, same
from tests.rivals.problems import THREE_COSTS, three_table

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}
# Dear enough that rows are asked for something.
COSTS = THREE_COSTS.with_misclassification(8 * THREE_COSTS.matrix)


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three numbers of which each tells a little of the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + np.eye(3)[y] * [1.0, 1.5, 2.0], y


FLAT = Costs([1.0, 2.0, 4.0], misclassification=30 * (1 - np.eye(3)))


@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_no_row_exceeds_the_ceiling(kind: Any) -> None:
    X, y = three_table(100)
    policy = kind(COSTS, budget=3.5, **QUICK).fit(X, y)
    result = policy.acquire(X)
    assert result.cost.max() <= 3.5
    # Within this budget the free covariate alone is the best set for everybody.
    assert result.cost.any() != (kind is COSClassifier)
    check_consultation(policy, X.head(6))


def test_sets_beyond_the_ceiling_have_no_part_in_the_decision() -> None:
    """A row goes on if a set that it can pay is expected to pay, by brute force over the sets."""
    policy = AdaCOSClassifier(FLAT, **QUICK).fit(*draw_rows(200, 0))
    X, _ = draw_rows(60, 1)
    model, costs, matrix = policy.model_, policy.cost_table_, policy.rule_.matrix
    nothing = np.zeros(3, dtype=np.bool_)
    state = begin(model, X, np.ones(X.shape, dtype=np.bool_), nothing, nothing)
    free = look_ahead_classes(state, costs)
    decided = []
    for left in (0.5, 1.5, 3.5, 9.0):
        going, _ = weigh(
            state._replace(left=np.full(len(X), left)), ValueTables(costs, matrix), "coherent"
        )
        risk = class_bayes_risk(free.log_odds, matrix)
        future = free.weighed(matrix).future
        payable = np.flatnonzero(free.cost[0] <= left)
        expected = (future[:, payable] < risk[:, None]).any(axis=1)
        np.testing.assert_array_equal(going, expected)
        decided.append(going.sum())
    assert decided[0] == 0 < decided[-1]


def test_a_mean_budget_is_kept() -> None:
    X, y = draw_rows(300, 0)
    plain = AdaCOSClassifier(FLAT, **QUICK).fit(X, y)
    budget = 0.6 * plain.acquire(X).cost.mean()
    policy = AdaCOSClassifier(FLAT, mean_budget=budget, **QUICK).fit(X, y)
    assert policy.multiplier_ > 0
    assert policy.mean_spent_ <= budget
    cost = policy.acquire(draw_rows(4000, 1)[0]).cost
    # Between nothing and the budget, up to the error of a mean over the training rows.
    allowed = 3 * cost.std() * np.sqrt(1 / 300 + 1 / 4000)
    assert 0.5 * budget < cost.mean() < budget + allowed
    reported = policy.consultation().next().explanation
    assert "mean budget" in reported.because
    # The cost of a plan is told in money.
    assert reported.best_plan.cost == pytest.approx(
        FLAT.of([int(name[1:]) for name in reported.best_plan.covariates])
    )
    loose = AdaCOSClassifier(FLAT, mean_budget=1e3, **QUICK).fit(X, y)
    assert loose.multiplier_ == 0
    same(loose.acquire(X), plain.acquire(X))


UNEVEN = np.array([[0.0, 60.0, 90.0], [75.0, 0.0, 135.0], [120.0, 45.0, 0.0]])
TELLING_COSTS = Costs([1.0, 2.0, 4.0], misclassification=UNEVEN)


def printing_warnings(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One number for each class, which it moves so far that recalls are within reach."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + 2.5 * np.eye(3)[y], y


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_mean_budget_and_recalls_by_class_hold_together(confidence: float | None) -> None:
    """The wrapped policy keeps the budget, and answers alone change for the recalls."""
    X, y = printing_warnings(900, 0)
    free = AdaCOSClassifier(TELLING_COSTS, **QUICK).fit(X, y).acquire(X).cost.mean()
    budget, wanted = 0.7 * free, {2: 0.85, 0: 0.7}
    base = AdaCOSClassifier(TELLING_COSTS, mean_budget=budget, **QUICK)
    policy = TargetRecallClassifier(base, target_recall=wanted, recall_confidence=confidence)
    policy.fit(X, y)
    assert policy.policy_.multiplier_ > 0
    X_new, y_new = printing_warnings(20_000, 1)
    result = policy.acquire(X_new)
    # The budget was kept on the mean of the 450 training rows.
    error = result.cost.std() * np.sqrt(1 / 450 + 1 / 20_000)
    assert abs(result.cost.mean() - budget) < 3 * error
    for k, r in wanted.items():
        own = y_new == k
        error = np.sqrt(r * (1 - r) * (1 / 150 + 1 / own.sum()))
        assert (result.label[own] == k).mean() > r - 3 * error
    card = model_card(policy)
    assert card["mean_budget"] == budget
    assert card["multiplier"] == policy.policy_.multiplier_
    assert "on average at most" in card["budget_text"]

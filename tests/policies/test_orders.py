"""`sequence="both"`: the order that costs less, by rows whose models did not see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, BranchingClassifier, COSClassifier, Costs, FullModelClassifier
from adacos.metrics import total_costs
from adacos.policies.budgets import out_of_fold_totals
from tests.policy_checks import same

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}
KINDS = [AdaCOSClassifier, BranchingClassifier, COSClassifier, FullModelClassifier]


def weak_before_strong(n: int, seed: int) -> tuple[Any, Any, Costs]:
    """Four classes: five weak covariates for 1 each, and an expensive one that says nearly all."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    weak = [rng.normal(size=n) + 0.3 * (y == k % 4) for k in range(5)]
    strong = np.where(rng.random(n) < 0.85, y, rng.integers(0, 4, n)) + 0.1 * rng.normal(size=n)
    costs = Costs([1.0] * 5 + [10.0], misclassification=60 * (1 - np.eye(4)))
    return np.column_stack([*weak, strong]), y, costs


def noise_and_one(n: int, seed: int) -> tuple[Any, Any, Costs]:
    """Two classes, and one covariate worth its cost, which either order begins with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    return X, y, Costs([1.0, 3.0, 3.0, 3.0], false_positive=30, false_negative=60)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_either_order_is_that_of_its_own_fit(kind: Any) -> None:
    """Bit for bit, whichever is taken; where nothing is gained, the group lasso."""
    for X, y, costs in (weak_before_strong(300, 0), noise_and_one(300, 1)):
        both = kind(costs, sequence="both", **QUICK).fit(X, y)
        own = kind(costs, sequence=both.sequence_, **QUICK).fit(X, y)
        same(both.acquire(X), own.acquire(X))
        gains = len(both.classes_) == 4 and kind is not FullModelClassifier
        assert both.sequence_ == ("forward" if gains else "group_lasso")


@pytest.mark.filterwarnings("ignore")
def test_the_better_order_is_cheaper_on_new_rows_too() -> None:
    X, y, costs = weak_before_strong(600, 2)
    new, true, _ = weak_before_strong(5000, 3)
    cost = {
        way: total_costs(
            AdaCOSClassifier(costs, sequence=way, **QUICK).fit(X, y).acquire(new), true, costs
        ).mean()
        for way in ("group_lasso", "both")
    }
    assert cost["both"] < 0.9 * cost["group_lasso"]


@pytest.mark.filterwarnings("ignore")
def test_what_is_compared_is_the_cost_of_each_row_out_of_fold() -> None:
    """By hand along the group lasso: what was paid, and the answer at the stop."""
    X, y, costs = noise_and_one(200, 4)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    totals = out_of_fold_totals(policy.decider_, policy._kept_rows())
    model, table = policy.model_, policy.cost_table_
    possible = table.of(model.sequence.masks())[None] + np.stack(
        [table.matrix[y, label] for label in policy.rule_.label(model.out_of_fold_log_odds).T],
        axis=1,
    )
    assert np.all(np.isclose(totals[:, None], possible).any(axis=1))
    assert totals.mean() < possible.mean(axis=0).min() * 1.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_for_new_costs_the_orders_are_compared_again(kind: Any) -> None:
    """Where an error costs little the strong covariate never pays, and nothing is gained."""
    X, y, costs = weak_before_strong(300, 5)
    fitted, taken = None, []
    for error in (60.0, 5.0):
        own = Costs(costs.covariates, misclassification=error * (1 - np.eye(4)))
        policy = kind(own, sequence="both", **QUICK)
        fitted = policy.fit(X, y) if fitted is None else policy.from_model(fitted)
        totals = []
        for way in ("group_lasso", "forward"):
            along = kind(own, sequence=way, **QUICK).fit(X, y)
            totals.append(out_of_fold_totals(along.decider_, along._kept_rows()))
        less = totals[0] - totals[1]
        cheaper = less.mean() > less.std(ddof=1) / np.sqrt(len(less))
        assert policy.sequence_ == ("forward" if cheaper else "group_lasso")
        taken.append(policy.sequence_)
    assert taken == ["forward", "group_lasso"]

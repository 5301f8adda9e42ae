"""What is stated of costs and budgets is what rows pay, and one table says what the other does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    COSClassifier,
    Costs,
    TargetRecallClassifier,
    trade_off,
)
from adacos.card import model_card
from adacos.policies.estimates import cost_estimates

PRICES = [1.0, 3.0, 6.0]
TWO = Costs(PRICES, false_positive=30, false_negative=60)
PANEL = Costs(PRICES, false_positive=30, false_negative=60, panels={"draw": (0.5, [0, 1])})
THREE = Costs(PRICES, misclassification=40.0 * (1 - np.eye(3)))
QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}


def rows(n_classes: int, n: int, seed: int, missing: float = 0.0) -> tuple[Any, Any]:
    """Three numbers; in the later classes values are missing three times as often."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 3)) + np.eye(3)[y] * [0.8, 1.2, 1.6]
    share = missing * np.where(y == 0, 0.5, 1.5)
    return np.where(rng.random(X.shape) < share[:, None], np.nan, X), y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("costs", [TWO, PANEL])
def test_rows_pay_for_the_values_they_have(costs: Costs) -> None:
    """Row by row: the out-of-fold answer, and the price of what the row has of the set."""
    X, y = rows(2, 300, 0, missing=0.3)
    policy = COSClassifier(costs, **QUICK).fit(X, y)
    table, there = policy.cost_table_, ~np.isnan(X)
    label = policy.rule_.label(policy.model_.out_of_fold_log_odds)
    for i, mask in enumerate(policy.model_.sequence.masks()):
        paid = [float(table.of(mask & own)) for own in there]
        wrong = table.matrix[y, label[:, i]]
        assert policy.expected_cost_by_set_[i] == pytest.approx(np.mean(paid + wrong))
    assert policy.stage_ == np.argmin(policy.expected_cost_by_set_)


@pytest.mark.filterwarnings("ignore")
def test_the_tables_of_a_model_with_recalls_by_class_agree() -> None:
    """Neither counts a surcharge: nobody pays it."""
    X, y = rows(3, 400, 1, missing=0.1)
    policy = TargetRecallClassifier(AdaCOSClassifier(THREE, **QUICK), target_recall={1: 0.85})
    policy.fit(X, y)
    assert max(policy.surcharges_.values()) > 0
    by_name = {item.name: item.cost for item in cost_estimates(policy)}
    by_set = model_card(policy)["out_of_fold_cost_by_set"]
    assert by_name["full model"] == pytest.approx(by_set[-1])
    assert by_name["one set for all (COS), chosen with these rows"] == pytest.approx(min(by_set))


@pytest.mark.filterwarnings("ignore")
def test_the_trade_off_ends_with_the_policy_as_it_was_fitted() -> None:
    X, y = rows(2, 600, 2)
    new, true = rows(2, 500, 3)
    policy = AdaCOSClassifier(TWO, mean_budget=0.8, **QUICK).fit(X, y)
    curve = trade_off(policy, new, true, points=4)
    result = policy.acquire(new)
    assert curve.own is not None
    assert curve.own.multiplier == policy.multiplier_ > 0
    assert curve.own.covariate_cost == pytest.approx(result.cost.mean())
    wrong = policy.cost_table_.matrix[true, result.label]
    assert curve.own.total_cost == pytest.approx((result.cost + wrong).mean())
    assert curve.points[0].covariate_cost > curve.own.covariate_cost
    assert "as fitted" in str(curve)


@pytest.mark.filterwarnings("ignore")
def test_what_complete_rows_pay_of_a_mean_budget_is_stated() -> None:
    """New rows without missing values pay more than the budget, as much as is said."""
    X, y = rows(2, 3000, 4, missing=0.3)
    policy = AdaCOSClassifier(TWO, mean_budget=2.0, **QUICK).fit(X, y)
    fresh = policy.acquire(rows(2, 6000, 5)[0]).cost
    stated = policy.mean_spent_complete_
    assert stated is not None
    assert stated > 1.05 * policy.mean_spent_
    assert fresh.mean() == pytest.approx(stated, abs=0.1)
    assert f"complete rows pay {stated:.2f}" in model_card(policy)["budget_text"]
    plain = AdaCOSClassifier(TWO, mean_budget=2.0, **QUICK).fit(*rows(2, 400, 6))
    assert plain.mean_spent_complete_ is None
    assert "complete" not in model_card(plain)["budget_text"]


@pytest.mark.filterwarnings("ignore")
def test_a_policy_around_another_says_what_that_one_found() -> None:
    X, y = rows(2, 300, 7)
    inner = AdaCOSClassifier(TWO, mean_budget=1.5, **QUICK)
    around = TargetRecallClassifier(inner, target_recall=0.7)
    assert around.mean_spent_ is None
    around.fit(X, y)
    assert around.mean_spent_ == around.policy_.mean_spent_ is not None
    assert around.choice_ is None
    chooser = TargetRecallClassifier(AutoPolicyClassifier(TWO), target_recall=0.7).fit(X, y)
    assert chooser.choice_ == chooser.policy_.choice_ is not None
    assert chooser.compared_ == chooser.policy_.compared_
    assert chooser.reason() == chooser.policy_.reason()

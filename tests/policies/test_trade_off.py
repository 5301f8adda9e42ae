"""Covariate cost against misclassification cost: monotone up to its error, from one fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, BranchingClassifier, COSClassifier, trade_off
from adacos.exceptions import InvalidInputError, TrainingRowsWarning
from adacos.policies.trade_off import TradeOff, TradeOffPoint
from tests.policies.budget_table import COSTS, QUICK, draw_rows


@pytest.fixture(scope="module")
def policy() -> Any:
    return AdaCOSClassifier(COSTS, **QUICK).fit(*draw_rows(1000, 0))


def test_the_curve_is_monotone_up_to_its_error(policy: Any) -> None:
    curve = trade_off(policy, *draw_rows(6000, 1))
    columns = curve.to_dict()
    paid, wrong = np.array(columns["covariate_cost"]), np.array(columns["misclassification_cost"])
    assert len(paid) > 10
    assert np.all(np.diff(paid) < 0)
    assert paid[-1] == 0
    error = np.array(columns["misclassification_error"])
    # Neighbours differ in few rows: a step down by more than two errors would be no accident.
    assert np.all(np.diff(wrong) > -2 * error[1:])
    assert wrong[-1] > wrong[0] + 10 * error[0]
    # The costs as they are lead to the least total.
    total = np.array(columns["total_cost"])
    assert total[0] <= total.min() + 2 * columns["total_error"][0]
    np.testing.assert_allclose(total, paid + wrong)


def test_a_point_is_the_policy_with_that_multiplier(policy: Any) -> None:
    X, y = draw_rows(3000, 1)
    curve = trade_off(policy, X, y)
    point = curve.within(2.0)
    assert point.covariate_cost <= 2.0
    limited = AdaCOSClassifier(COSTS, mean_budget=2.0, **QUICK).fit(*draw_rows(1000, 0))
    assert limited.multiplier_ == pytest.approx(point.multiplier, rel=0.35, abs=0.1)
    limited.decider_ = limited.decider_.with_multiplier(point.multiplier)
    result = limited.acquire(X)
    assert result.cost.mean() == pytest.approx(point.covariate_cost)
    wrong = limited.cost_table_.matrix[y, result.label]
    assert wrong.mean() == pytest.approx(point.misclassification_cost)
    error = wrong.std(ddof=1) / np.sqrt(len(y))
    assert point.misclassification_error == pytest.approx(error, rel=1e-3)
    assert policy.multiplier_ == 0, "the policy was changed"


def test_rows_that_were_trained_on_are_reported(policy: Any) -> None:
    X, y = draw_rows(1000, 0)
    with pytest.warns(TrainingRowsWarning, match="300 of 300 rows are rows that the policy was"):
        trade_off(policy, X[:300], y[:300], points=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trade_off(policy, *draw_rows(300, 1), points=2)


def test_a_table_in_words_and_what_is_refused(policy: Any) -> None:
    X, y = draw_rows(300, 1)
    curve = trade_off(policy, X, y, points=5)
    assert len(str(curve).splitlines()) == 2 + len(curve.points)
    with pytest.raises(InvalidInputError, match="weigh"):
        trade_off(COSClassifier(COSTS, **QUICK).fit(X, y), X, y)
    with pytest.raises(InvalidInputError, match="classes"):
        trade_off(policy, X, np.full(300, 7))
    with pytest.raises(InvalidInputError, match="points"):
        trade_off(policy, X, y, points=1)


def test_the_point_within_a_budget_spends_most_wherever_it_is() -> None:
    def point(multiplier: float, cost: float) -> TradeOffPoint:
        return TradeOffPoint(multiplier, cost, 0.1, 5.0, 0.1, 5.0 + cost, 0.1)

    curve = TradeOff((point(0, 3.4), point(0.1, 2.6), point(0.2, 2.9), point(1, 1.0)), 100)
    assert curve.within(3.0).covariate_cost == 2.9
    assert curve.within(2.8).covariate_cost == 2.6
    with pytest.raises(InvalidInputError, match="must be at least 1, what"):
        curve.within(0.5)


def test_classes_that_the_policy_does_not_know_are_named(policy: Any) -> None:
    X, y = draw_rows(100, 1)
    for strange in ("ill", None):
        with pytest.raises(InvalidInputError, match=f"received .*{strange}"):
            trade_off(policy, X, np.where(np.arange(100) == 3, strange, y.astype(object)))
    with pytest.raises(InvalidInputError, match="99 values for 100 rows"):
        trade_off(policy, X, y[:-1])


def test_questions_of_branches_are_paid_in_any_case() -> None:
    from adacos.costs import Costs
    from adacos.datasets import make_value_dependent_problem

    problem = make_value_dependent_problem()
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = BranchingClassifier(costs, **QUICK).fit(*problem.sample(500, seed=0))
    assert not policy.in_one_order
    curve = trade_off(policy, *problem.sample(500, seed=1))
    assert curve.points[-1].covariate_cost == 1.0
    with pytest.raises(InvalidInputError, match="in any case"):
        curve.within(0.5)

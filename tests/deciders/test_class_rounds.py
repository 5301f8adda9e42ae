"""Rounds with three classes, against exact dynamic programming over all batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier, load, save
from adacos.kernels.belief_plans import expected_cost
from adacos.models.dynamic import ValueTables
from tests.deciders.round_oracle import (
    ERRORS,
    JOINT,
    PRICES,
    Oracle,
    draw,
    realised,
    waiting,
)
from tests.policies.budget_table import QUICK
from tests.policy_checks import check_consultation, same, with_missing
from tests.rivals.problems import THREE_COSTS, three_table


@pytest.mark.parametrize("round_cost", [0.01, 2.0, 8.0, 30.0])
def test_total_cost_is_near_the_least_with_rounds(round_cost: float) -> None:
    oracle = Oracle(JOINT, PRICES, ERRORS, round_cost)
    costs = Costs(PRICES, misclassification=ERRORS, round_cost=round_cost)
    policy = AdaCOSClassifier(costs, **QUICK).fit(*draw(JOINT, 4000, 0))
    least, found = oracle.value(()), realised(policy)
    assert least - 1e-9 <= found <= 1.03 * least
    if round_cost == 8.0:
        # Waiting twice does not pay: the best single batch, though some go on where it is free.
        assert found == pytest.approx(oracle.best_single_batch()[0], rel=0.03)
    if round_cost == 30.0:
        assert not policy.acquire(draw(JOINT, 50, 1)[0]).acquired.any()


def test_where_nothing_is_waited_for_the_policy_is_as_ever() -> None:
    X, y = three_table(80)
    plain = AdaCOSClassifier(THREE_COSTS, **QUICK).fit(X, y)
    free = AdaCOSClassifier(waiting(THREE_COSTS, 0.0), **QUICK).fit(X, y)
    same(free.acquire(X), plain.acquire(X))


def test_a_batch_in_a_consultation_with_missing_values_and_in_a_file(tmp_path: Any) -> None:
    X, y = draw(JOINT, 800, 0)
    costs = Costs(PRICES, misclassification=ERRORS, round_cost=4.0, immediate=[2])
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    result = policy.acquire(X[:200])
    step = policy.consultation().next()
    assert step.covariates == ("x2",)
    assert len(policy.consultation({"x2": 0.0}).next().covariates) > 1
    check_consultation(policy, X[:6])
    missing = np.random.default_rng(0).random((60, 4)) < 0.3
    incomplete = policy.acquire(with_missing(X[:60], missing))
    assert not (incomplete.acquired & missing).any()
    save(policy, tmp_path / "m")
    same(load(tmp_path / "m").acquire(X[:200]), result)


def test_recalls_by_class_with_rounds() -> None:
    X, y = draw(JOINT, 600, 0)
    costs = Costs(PRICES, misclassification=ERRORS, round_cost=2.0)
    policy = TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK), target_recall={2: 0.9}).fit(
        X, y
    )
    assert policy.recall_estimate_[2] >= 0.9
    assert policy.surcharges_[2] > 0


def test_what_may_be_ordered_later_is_never_a_loss() -> None:
    """Deciding anew after a batch costs no more than deciding there, whatever was ordered."""
    costs = Costs(PRICES, misclassification=ERRORS, round_cost=1.0)
    policy = AdaCOSClassifier(costs, **QUICK).fit(*draw(JOINT, 800, 0))
    values = ValueTables(policy.cost_table_, ERRORS).of_classes(policy.model_)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    for stage in range(4):
        future = values.by_move(stage, p, 4)
        assert future.shape == (50, 4 - stage)
        for j in range(4 - stage):
            expected_by = values.evidence.between(stage, stage + 1 + j)
            free = expected_cost(p, *expected_by, values.best[stage + 1 + j])
            # Plans are charged by what became of rows: by chance one belief may seem to lose.
            plain = expected_cost(p, *expected_by, ERRORS.T)
            assert free.mean() <= plain.mean()
        # After the last set nothing is left to order.
        assert len(values.best[4]) == 3
    # Certain rows have nothing to gain.
    assert values.gain_at(1, np.array([[1 - 2e-9, 1e-9, 1e-9]])) < 0

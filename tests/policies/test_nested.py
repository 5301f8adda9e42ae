"""Nested leave-out cost: repeated by hand, honest where the plain estimate is not, and misfits."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
)
from adacos.exceptions import InvalidInputError
from adacos.metrics import operation_costs, total_costs
from adacos.policies.nested import NestedCost, misfit_by_state, nested_cost
from tests.policies.tables import noisy_rows

QUICK = {"strengths": "common", "cv": 3}


COSTS = Costs([0.3] * 12, false_positive=10, false_negative=20)


def test_is_what_refitting_without_each_fold_gives():
    X, y = noisy_rows(np.random.default_rng(0), 150)
    policy = AdaCOSClassifier(COSTS, **QUICK)
    nested = nested_cost(policy, X, y, folds=3)
    assert sorted(np.bincount(nested.fold)) == [50, 50, 50]
    for fold in range(3):
        inside = nested.fold == fold
        fitted = AdaCOSClassifier(COSTS, **QUICK).fit(X[~inside], y[~inside])
        result = fitted.acquire(X[inside])
        np.testing.assert_array_equal(
            nested.realised[inside], total_costs(result, y[inside], COSTS)
        )
        np.testing.assert_array_equal(nested.expected[inside], result.expected_cost)
        np.testing.assert_array_equal(nested.result.acquired[inside], result.acquired)
    assert nested.mean == pytest.approx(nested.realised.mean())
    assert nested.error == pytest.approx(nested.realised.std(ddof=1) / np.sqrt(150))
    assert not hasattr(policy, "model_")
    np.testing.assert_array_equal(nested.of_class[np.arange(150), y], nested.realised)
    errors = np.abs(nested.of_class[:, 1] - nested.of_class[:, 0])
    assert set(np.round(errors, 9)) <= {10.0, 20.0}
    assert "150 rows in 3 folds" in str(nested)


def test_frames_and_classes_of_any_kind():
    pandas = pytest.importorskip("pandas")
    X, y = noisy_rows(np.random.default_rng(1), 120)
    names = [f"x{i}" for i in range(12)]
    words = np.where(y == 1, "yes", "no")
    one = nested_cost(COSClassifier(COSTS, **QUICK), X, y, folds=2)
    other = nested_cost(
        COSClassifier(COSTS, **QUICK), pandas.DataFrame(X, columns=names), words, folds=2
    )
    np.testing.assert_array_equal(one.realised, other.realised)


def test_with_a_target_recall_misses_are_not_counted():
    X, y = noisy_rows(np.random.default_rng(2), 150)
    costs = Costs([0.3] * 12, false_positive=10)
    policy = TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK), target_recall=0.9)
    nested = nested_cost(policy, X, y, folds=2)
    np.testing.assert_array_equal(nested.realised, operation_costs(nested.result, y, costs))


def test_misses_are_counted_where_the_recall_decides_the_answers_only():
    X, y = noisy_rows(np.random.default_rng(2), 150)
    costs = Costs([0.3] * 12, false_positive=10, false_negative=30)
    forward = FullModelClassifier(costs, **QUICK, sequence="forward")
    policy = TargetRecallClassifier(forward, target_recall=0.7)
    nested = nested_cost(policy, X, y, folds=2)
    assert np.any((nested.result.label == 0) & (y == 1))
    np.testing.assert_array_equal(nested.realised, total_costs(nested.result, y, costs))


def test_one_fold_is_refused():
    X, y = noisy_rows(np.random.default_rng(3), 40)
    with pytest.raises(InvalidInputError, match="folds"):
        nested_cost(AdaCOSClassifier(COSTS), X, y, folds=1)


def test_misfits_are_found_where_they_are():
    """Rows that stop early are promised too little, the others what they get."""
    X, y = noisy_rows(np.random.default_rng(4), 400)
    nested = nested_cost(COSClassifier(COSTS, **QUICK), X, y, folds=2)
    assert len(nested.result.names) == 12
    n = len(y)
    rng = np.random.default_rng(5)
    acquired = np.zeros((n, 12), dtype=bool)
    acquired[: n // 2, 0] = True
    wrong = rng.random(n) < 0.2
    expected = np.where(np.arange(n) < n // 2, 0.8, 2.0)
    reported = NestedCost(
        mean=0.0,
        error=0.0,
        realised=10.0 * wrong,
        expected=expected,
        of_class=np.column_stack([np.zeros(n), np.full(n, 10.0)]),
        result=type(nested.result)(
            **{**vars(nested.result), "acquired": acquired, "label": np.zeros(n, dtype=int)}
        ),
        fold=nested.fold,
    )
    early, late = sorted(misfit_by_state(reported), key=lambda state: state.acquired, reverse=True)
    assert early.acquired == ("x0",)
    assert late.acquired == ()
    assert early.rows == late.rows == 200
    assert early.misfits
    assert early.low > 0
    assert not late.misfits


def test_a_state_without_an_error_yet_is_not_called_better_than_promised():
    """Thirty rows, an error of 1,000 promised in one of 300: none seen proves nothing."""
    X, y = noisy_rows(np.random.default_rng(6), 60)
    nested = nested_cost(COSClassifier(COSTS, **QUICK), X, y, folds=2)
    n = len(y)
    realised = np.zeros(n)
    realised[-1] = 1000.0
    acquired = np.zeros((n, 12), dtype=bool)
    acquired[30:, 0] = True
    reported = NestedCost(
        mean=0.0,
        error=0.0,
        realised=realised,
        expected=np.full(n, 1000 / 300),
        of_class=np.column_stack([np.zeros(n), np.full(n, 1000.0)]),
        result=type(nested.result)(
            **{**vars(nested.result), "acquired": acquired, "label": np.zeros(n, dtype=int)}
        ),
        fold=nested.fold,
    )
    assert not any(state.misfits for state in misfit_by_state(reported))


def test_text_classes_where_all_rows_are_answered_alike():
    """With classes as text or as numbers, the same costs."""
    X, y = noisy_rows(np.random.default_rng(4), 60, p=3)
    y[:] = 0
    y[::20] = 1
    policy = AdaCOSClassifier(Costs([5.0] * 3, false_positive=10, false_negative=10), **QUICK)
    reported = nested_cost(policy, X, np.array(["no", "yes"])[y])
    counted = nested_cost(policy, X, y)
    assert set(reported.result.label) == {"no"}
    np.testing.assert_array_equal(reported.realised, counted.realised)

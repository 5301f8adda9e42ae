"""What a result of the engine says of itself, and that errors travel between processes."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, load_pima
from adacos.decision import STOP
from adacos.engine import AcquisitionResult, acquired_in, compact_left
from adacos.exceptions import MalformedRowsError, MissingExtraError


@pytest.fixture(scope="module")
def result() -> AcquisitionResult:
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=100, false_negative=1000)
    return AdaCOSClassifier(costs, cv=2, strengths="common").fit(X, y).acquire(X[:50])


def test_a_frame_has_one_row_for_each(result: AcquisitionResult) -> None:
    frame = result.to_frame()
    for name in ("label", "probability", "cost", "expected_cost", "stage"):
        np.testing.assert_array_equal(frame[name], getattr(result, name))
    assert frame["acquired"][7].split(", ") == list(result.covariates(7))


def test_some_rows_of_a_result(result: AcquisitionResult) -> None:
    chosen = np.array([3, 1, 40])
    some = result.rows(chosen)
    assert len(some) == 3
    for field in fields(result):
        whole = getattr(result, field.name)
        expected = whole if field.name == "names" else whole[chosen]
        np.testing.assert_array_equal(getattr(some, field.name), expected)


def test_a_result_says_what_it_holds(result: AcquisitionResult) -> None:
    assert repr(result.rows(slice(0))) == "AcquisitionResult(0 rows)"
    acquired = result.acquired.sum() / 50
    expected = f"50 rows, {acquired:.2f} of 8 covariates and {result.cost.sum() / 50:.2f} paid"
    assert expected in repr(result)


def test_an_order_and_its_mask() -> None:
    order = np.array([[STOP, 2, STOP, 0], [1, STOP, STOP, 3], [STOP] * 4])
    expected = [[2, 0, STOP, STOP], [1, 3, STOP, STOP], [STOP] * 4]
    np.testing.assert_array_equal(compact_left(order), expected)
    mask = [[True, False, True, False], [False, True, False, True], [False] * 4]
    np.testing.assert_array_equal(acquired_in(order), mask)


@pytest.mark.parametrize(
    "error",
    [MissingExtraError("torch", "rivals"), MalformedRowsError("rows.csv", ["line 3: too long"])],
)
def test_errors_travel_between_processes(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)

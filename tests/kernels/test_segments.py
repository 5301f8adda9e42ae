"""Cuts of a sequence: against all ways to cut it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from adacos.kernels.segments import least_variance_segments


def squares(values: np.ndarray, weight: np.ndarray, first: np.ndarray) -> float:
    total = 0.0
    for part, count in zip(np.split(values, first[1:]), np.split(weight, first[1:]), strict=True):
        mean = np.average(part, axis=0, weights=count)
        total += float((count[:, None] * (part - mean) ** 2).sum())
    return total


@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("functions", [1, 2])
def test_no_other_cuts_leave_less_variance(most: int, functions: int) -> None:
    rng = np.random.default_rng(most)
    for _ in range(5):
        values, weight = rng.normal(size=(9, functions)), rng.integers(1, 5, size=9).astype(float)
        first = least_variance_segments(values, weight, most)
        every = [
            squares(values, weight, np.array([0, *inside]))
            for inside in combinations(range(1, 9), most - 1)
        ]
        assert len(first) == most
        assert first[0] == 0
        assert squares(values, weight, first) == pytest.approx(min(every), abs=1e-12)


def test_few_positions_are_all_kept() -> None:
    first = least_variance_segments(np.arange(3.0)[:, None], np.ones(3), 4)
    np.testing.assert_array_equal(first, [0, 1, 2])


def test_a_step_is_found() -> None:
    values = np.repeat([0.0, 5.0, 6.0], [4, 3, 5])[:, None]
    np.testing.assert_array_equal(least_variance_segments(values, np.ones(12), 2), [0, 4])
    np.testing.assert_array_equal(least_variance_segments(values, np.ones(12), 3), [0, 4, 7])

"""Step halving: the first length that lowers the objective enough, and never without end."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.kernels.line_search import halve


def search(objective, start, step, **options):
    x = np.array([start])
    value = objective(x, x)
    slope = (objective(x + 1e-7 * step, x + 1e-7 * step) - value) / 1e-7
    return halve(objective, x, np.array([step]), x, np.array([step]), value, slope, **options)


@pytest.mark.parametrize(
    ("step", "length"), [(-1.0, 1.0), (-3.0, 0.5), (-5.0, 0.25), (-100.0, 1 / 64)]
)
def test_takes_the_first_length_that_falls_enough(step, length):
    # x² falls from 1 to below 1 if 1 + length * step lies inside (-1, 1), and not on its edge.
    found, odds, point, value = search(lambda odds, point: float(point[0] ** 2), 1.0, step)
    assert found == length
    assert odds[0] == point[0] == 1 + length * step
    assert value == point[0] ** 2


def test_slack_accepts_what_rounding_may_hide():
    flat = search(lambda odds, point: 1.0, 0.0, 1.0, slack=np.inf)
    assert flat[0] == 1.0


def test_ends_where_nothing_falls():
    length, *_ = halve(
        lambda odds, point: 2.0, *(np.zeros(1), np.ones(1)) * 2, 1.0, -1.0, shortest=1e-3
    )
    assert 1e-3 / 2 < length < 1e-3

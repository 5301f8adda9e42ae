"""What is constant between points of the log-odds, with these points to the last bit.

Whether a row continues from a set depends on its log-odds alone, and so does the label. Each is
kept as ascending breaks and one value more than breaks: `values[k]` holds from `breaks[k - 1]`,
included, up to `breaks[k]`, excluded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adacos.typing import Floats, Ints

# Points between two neighbours of the grid at which the intervals are compared with the function.
_CHECKS = 3


class Intervals(NamedTuple):
    """A whole number by intervals of the log-odds.

    Attributes
    ----------
    breaks : ascending first numbers of all intervals but the first.
    values : the number in each interval.
    """

    breaks: Floats
    values: Ints

    def at(self, log_odds: Floats) -> Ints:
        """The number of the interval that each row is in."""
        return self.values[np.searchsorted(self.breaks, log_odds, side="right")]


def intervals_of(function: Callable[[Floats], Ints], grid: Floats) -> Intervals:
    """The intervals of a function that changes at most once between neighbours of a grid.

    Each change is found by bisection down to neighbouring floats. Between the points of the grid
    the result is compared with the function.
    """
    values = function(grid)
    changes = np.flatnonzero(np.diff(values))
    low, high, left = grid[changes], grid[changes + 1], values[changes]
    while (np.nextafter(low, high) < high).any():
        middle = low + 0.5 * (high - low)
        before = function(middle) == left
        apart = np.nextafter(low, high) < high
        low, high = np.where(apart & before, middle, low), np.where(apart & ~before, middle, high)
    found = Intervals(high, values[np.append(changes, len(grid) - 1)])
    share = np.arange(1, _CHECKS + 1) / (_CHECKS + 1)
    between = (grid[:-1, None] + np.diff(grid)[:, None] * share).ravel()
    if not np.array_equal(found.at(between), function(between)):
        raise RuntimeError("a decision changes more than once between two points of its grid")
    return found

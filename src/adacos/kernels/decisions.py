"""Which decisions are the cheapest somewhere, and between which log-odds.

C[y, d] is what decision d costs where y is the class. At class probabilities p it is expected to
cost p'C[:, d], and the least of these over decisions is concave and piecewise linear in p. With two
classes the decisions that attain it follow each other along the log-odds: d before e from

    log(C[0, e] - C[0, d]) - log(C[1, d] - C[1, e])

on. A label is a decision that is named after the class for which it is right.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from adacos.exceptions import InvalidInputError
from adacos.typing import Floats, Ints

# By how much of the stakes a decision must be cheaper than all others somewhere.
_CHEAPER = 1e-9


class Pieces(NamedTuple):
    """The decisions about two classes that are the cheapest somewhere.

    Attributes
    ----------
    columns : their columns, from the least probable second class to the most probable.
    cuts : log-odds at or above which each but the first is cheaper than the one before it.
    """

    columns: tuple[int, ...]
    cuts: tuple[float, ...]


def pieces(matrix: npt.ArrayLike) -> Pieces:
    """The cheapest decision at all log-odds of two classes."""
    costs = np.ascontiguousarray(matrix, dtype=float)
    if costs.ndim != 2 or len(costs) != 2 or not costs.size or not np.all(np.isfinite(costs)):
        raise InvalidInputError(
            "matrix",
            "C[y, decision] has two rows and is finite",
            matrix,
            "Put the true class first: [[correct 0, false positive], [false negative, correct 1]].",
        )
    return _pieces(costs.tobytes())


def pieces_if_two(matrix: Floats) -> Pieces | None:
    """The same; None with three or more classes, which have no log-odds to cut."""
    return pieces(matrix) if len(matrix) == 2 else None


@lru_cache(maxsize=256)
def _pieces(entries: bytes) -> Pieces:
    """The lower convex hull of the points (C[0, d], C[1, d]): cuts rise along it."""
    first, second = np.frombuffer(entries).reshape(2, -1)
    columns: list[int] = []
    cuts: list[float] = []
    for d in np.lexsort((second, first)).tolist():
        if columns and second[d] >= second[columns[-1]]:
            continue
        while columns:
            before = columns[-1]
            cut = float(np.log(first[d] - first[before]) - np.log(second[before] - second[d]))
            if not cuts or cut > cuts[-1]:
                cuts.append(cut)
                break
            # The one before is never cheaper than both its neighbours.
            columns.pop()
            cuts.pop()
        columns.append(d)
    return Pieces(tuple(columns), tuple(cuts))


def cheapest_somewhere(matrix: Floats) -> Ints:
    """Columns of the decisions that are cheaper than all others at some class probabilities.

    Of two classes in the order of `pieces`, of more in that of the columns; of equal decisions the
    first.
    """
    found = pieces_if_two(matrix)
    if found is not None:
        return np.array(found.columns, dtype=np.intp)
    left = list(range(matrix.shape[1]))
    for d in reversed(range(matrix.shape[1])):
        others = [e for e in left if e != d]
        if others and _advantage(matrix, d, others) <= _CHEAPER * float(np.ptp(matrix)):
            left = others
    return np.array(left, dtype=np.intp)


def _advantage(matrix: Floats, column: int, others: list[int]) -> float:
    """By how much a decision is cheaper than all others where it is so most, over p.

    The largest t with p'(C[:, e] - C[:, d]) >= t for all others e, p >= 0 and sum p = 1.
    """
    size = len(matrix)
    more = matrix[:, others] - matrix[:, [column]]
    scale = max(float(np.abs(more).max()), np.finfo(float).tiny)
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.column_stack([-more.T / scale, np.ones(len(others))]),
        b_ub=np.zeros(len(others)),
        A_eq=np.append(np.ones(size), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, 1)] * size + [(None, None)],
    )
    return float(-found.fun) * scale

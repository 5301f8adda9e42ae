"""Cubic B-splines on equally spaced knots, and their split into a linear and a wiggly part.

A spline f(x) = sum_l b_l B_l(x) with the second-difference penalty lam * |D b|^2 is rewritten as
f(x) = a * (x - mean) / sd + Z(x) u with the penalty lam * |u|^2, where Z = B D'(DD')^-1. The two
are the same family because the null space of D holds exactly the linear functions when the knots
are equally spaced. The rewritten penalty is diagonal, the linear part can have a ridge of its own,
and u = 0 is ordinary logistic regression.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from adacos.kernels.namespace import like, namespace, put_along, whole
from adacos.typing import Floats

DEGREE = 3


def bspline_basis(x: Floats, low: float | Floats, high: float | Floats, n_splines: int) -> Floats:
    """Values of the `n_splines` cubic B-splines that cover [low, high]; linear outside.

    The knots are equally spaced with n_splines - 3 intervals inside the range. Outside the range
    each B-spline continues with its value and slope at the boundary, so that f is linear there.
    The range may differ from value to value.
    """
    intervals = n_splines - DEGREE
    xp = namespace(x)
    position = (x - low) * (intervals / (high - low))
    inside = xp.clip(position, 0.0, intervals)
    left = xp.clip(whole(inside), 0, intervals - 1)
    t = inside - left
    ends = xp.stack([1.0 - t, t])
    square, cube = ends**2, ends**3
    inner, steep, bend = 3 * cube - 6 * square + 4, 3 * square, 9 * square - 12 * ends
    value = xp.stack([cube[0], inner[1], inner[0], cube[1]], axis=1)
    slope = xp.stack([-steep[0], bend[1], -bend[0], steep[1]], axis=1)
    value += slope * (position - inside)[:, None]
    basis: Floats = xp.zeros((len(x), n_splines), dtype=xp.float64, device=x.device)
    put_along(basis, left[:, None] + like(x, np.arange(DEGREE + 1)), value / 6.0)
    return basis


@lru_cache
def wiggly_directions(n_splines: int) -> Floats:
    """D'(DD')^-1 for the second-difference matrix D: B-spline weights of the penalised part."""
    difference = np.diff(np.eye(n_splines), n=2, axis=0)
    directions: Floats = difference.T @ np.linalg.inv(difference @ difference.T)
    directions.setflags(write=False)
    return directions


def numeric_columns(
    x: Floats,
    low: float | Floats,
    high: float | Floats,
    mean: float | Floats,
    scale: float | Floats,
    n_splines: int,
) -> Floats:
    """Linear and wiggly part of values; each may have a range and moments of its own."""
    straight = ((x - mean) / scale)[:, None]
    wiggly = bspline_basis(x, low, high, n_splines) @ like(x, wiggly_directions(n_splines))
    columns: Floats = namespace(x).concat([straight, wiggly], axis=1)
    return columns

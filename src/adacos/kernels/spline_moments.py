"""Moments of spline functions over a few points, through powers summed by interval.

A cubic spline is one polynomial of the place t in each interval between knots. Its mean over some
points, the mean of its square and the mean of its product with a score therefore follow from sums
of powers of t over the points of each interval, whatever the coefficients: the points are looked
at once, and any number of splines costs one matrix product each.
"""

from __future__ import annotations

import numpy as np

from adacos.kernels.splines import DEGREE, wiggly_directions
from adacos.typing import Floats

# Cubic B-splines that are not zero on an interval, as polynomials of t in [0, 1], times 6:
# rows are powers of t, columns the four splines from the left.
_PIECES = np.array([[1.0, 4, 1, 0], [-3, 0, 3, 0], [3, -6, 3, 0], [-1, 3, -3, 1]])


def interval_polynomials(
    coefs: Floats,
    center: Floats,
    low: float,
    high: float,
    mean: float,
    scale: float,
    n_splines: int,
) -> Floats:
    """Polynomials (intervals, powers, functions) of the functions `coefs` (columns, functions).

    The columns are those of `adacos.kernels.splines.numeric_columns` less their `center`. The first
    and the last interval lie outside the range, where the functions are linear; t is the distance
    from the left end of an interval, and from the range in the two outer ones, in widths.
    """
    intervals = n_splines - DEGREE
    width = (high - low) / intervals
    weights = wiggly_directions(n_splines) @ coefs[1:]
    result = np.zeros((intervals + 2, DEGREE + 1, coefs.shape[1]))
    for number in range(intervals):
        result[number + 1] = _PIECES @ weights[number : number + DEGREE + 1] / 6.0
        result[number + 1, 0] += (low + number * width - mean) / scale * coefs[0]
        result[number + 1, 1] += width / scale * coefs[0]
    result[1:-1, 0] -= center @ coefs
    result[0, :2] = result[1, :2]
    last = result[-2]
    result[-1, 0], result[-1, 1] = last.sum(axis=0), np.arange(DEGREE + 1.0) @ last
    return result


def spline_moments(
    polynomials: Floats, values: Floats, score: Floats, low: float, high: float
) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and mean product with the score, each (rows, functions).

    Parameters
    ----------
    polynomials : see `interval_polynomials`.
    values : (rows, points) equally probable values of each row.
    score : (points,) of mean zero.
    low, high : range of the splines.
    """
    (n, n_points), (n_intervals, degrees, n_functions) = values.shape, polynomials.shape
    place = (values - low) * ((n_intervals - 2) / (high - low))
    interval = np.clip(np.floor(place), -1.0, n_intervals - 2.0)
    t = (place - np.maximum(interval, 0.0)).ravel()
    cell = (interval.astype(np.intp) + (1 + n_intervals * np.arange(n))[:, None]).ravel()
    score = np.broadcast_to(score, values.shape).ravel()
    sums, products = [], []
    power = np.full(t.size, 1.0 / n_points)
    for degree in range(2 * degrees - 1):
        sums.append(np.bincount(cell, power, minlength=n * n_intervals))
        if degree < degrees:
            products.append(np.bincount(cell, power * score, minlength=n * n_intervals))
        power = power * t
    # Rows of powers by interval against the polynomials and their squares.
    flat = polynomials.transpose(1, 0, 2).reshape(-1, n_functions)
    squares = np.zeros((2 * degrees - 1, n_intervals, n_functions))
    for one in range(degrees):
        for other in range(degrees):
            squares[one + other] += polynomials[:, one] * polynomials[:, other]
    by_row = np.stack([part.reshape(n, n_intervals) for part in sums], axis=1)
    mean = by_row[:, :degrees].reshape(n, -1) @ flat
    square = by_row.reshape(n, -1) @ squares.reshape(-1, n_functions)
    moved = np.stack([part.reshape(n, n_intervals) for part in products], axis=1)
    return mean, np.maximum(square - mean**2, 0.0), moved.reshape(n, -1) @ flat

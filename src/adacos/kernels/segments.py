"""A sequence of numbers cut into segments in which they vary least."""

from __future__ import annotations

import numpy as np

from adacos.typing import Floats, Ints


def least_variance_segments(values: Floats, weight: Floats, most: int) -> Ints:
    """First positions of at most `most` segments with the least weighted squares inside.

    `values` (positions, k) are points, `weight` counts them. Exact, by dynamic programming over the
    last segment: with m positions, most · m² additions.
    """
    m = len(weight)
    if m <= most:
        return np.arange(m)
    count = np.append(0.0, np.cumsum(weight))
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(weight[:, None] * values, axis=0)])
    square = np.append(0.0, np.cumsum(weight * (values**2).sum(axis=1)))
    begin, end = np.arange(m)[:, None], np.arange(1, m + 1)
    inside = end > begin
    size = np.where(inside, count[end] - count[begin], 1.0)
    between = ((total[end] - total[begin]) ** 2).sum(axis=-1)
    within = square[end] - square[begin] - between / np.maximum(size, np.finfo(float).tiny)
    within = np.where(inside, within, np.inf)
    # best[e]: least squares of the first e + 1 positions; came[e]: where the last segment begins.
    best, came = within[0], []
    for _ in range(most - 1):
        with_last = np.vstack([np.full(m, np.inf), best[:-1, None] + within[1:]])
        came.append(with_last.argmin(axis=0))
        best = with_last.min(axis=0)
    first, last = [0], m - 1
    for beginning in reversed(came):
        first.append(int(beginning[last]))
        last = first[-1] - 1
    return np.unique(np.array(first, dtype=np.intp))

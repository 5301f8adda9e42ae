"""Intervals of shares and means of a group of rows, and of its difference from all rows.

All hold whatever the number of rows is, or nearly so:

- A share has the exact interval, see `adacos.kernels.groups.share_interval`.
- A mean of values in a range has the t interval. If all values are equal their spread is unknown:
  then the interval allows for the rows with another value that could have gone unseen.
- A mean of few known values v, such as the costs of errors, is a sum of (v - base) times shares.
  Intervals of sums and differences are those of Zou and Donner (2008, "MOVER"): the distances of
  the ends from the estimates are added as standard errors are. Errors that were not seen count so.

The difference of a group from all rows is (1 - w) times that from the other rows, where w is the
group's share of the rows. Where groups of dependent rows lie on both sides, the ends are subtracted
instead, which assumes nothing about the dependence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adacos.kernels.binomial import interval_of_share
from adacos.kernels.groups import share_interval, standard_error
from adacos.kernels.intervals import ConfidenceInterval, t_interval
from adacos.typing import Bools, Floats, Ints


def share_of(hits: Bools, groups: Ints | None, confidence: float) -> ConfidenceInterval:
    """The share of hits with its exact interval; NaN between 0 and 1 without rows."""
    value = float(hits.mean()) if len(hits) else float("nan")
    return ConfidenceInterval(value, *share_interval(hits, groups, confidence))


def mean_of(
    values: Floats, groups: Ints | None, confidence: float, least: float, most: float
) -> ConfidenceInterval:
    """The mean of values between two bounds with its t interval, see above for equal ones."""
    n = len(values) if groups is None else len(np.unique(groups))
    mean = float(values.mean()) if n else float("nan")
    if n < 2:
        return ConfidenceInterval(mean, least, most)
    scale = standard_error(values, groups)
    if np.ptp(values) == 0:
        unseen = float(interval_of_share(0.0, n, confidence)[1])
        low, high = mean - unseen * (mean - least), mean + unseen * (most - mean)
        return ConfidenceInterval(mean, low, high)
    found = t_interval(mean, scale, n - 1, confidence)
    return ConfidenceInterval(mean, max(found.low, least), min(found.high, most))


def mean_of_known(
    values: Floats, groups: Ints | None, confidence: float, possible: Sequence[float], base: float
) -> ConfidenceInterval:
    """The mean of values of which each is one of a few, with the interval of a sum of shares.

    The `base` is the least or the most of them: then the shares, which add up to one, vary less in
    the sum than independent ones would.
    """
    others = [one for one in possible if one != base]
    shares = [share_of(values == one, groups, confidence) for one in others]
    mean = float(values.mean()) if len(values) else float("nan")
    if not len(values):
        return ConfidenceInterval(mean, min(possible), max(possible))
    more = np.abs(np.array(others) - base)
    below = np.array([one.estimate - one.low for one in shares])
    above = np.array([one.high - one.estimate for one in shares])
    down, up = (float(np.linalg.norm(more * distance)) for distance in (below, above))
    if base > min(possible):
        down, up = up, down
    return ConfidenceInterval(mean, max(min(possible), mean - down), min(max(possible), mean + up))


def wider(first: ConfidenceInterval, second: ConfidenceInterval) -> ConfidenceInterval:
    """Two intervals of one estimate: from the lower of the ends to the higher."""
    ends = min(first.low, second.low), max(first.high, second.high)
    return ConfidenceInterval(first.estimate, *ends)


def sum_of(
    first: ConfidenceInterval, second: ConfidenceInterval, whole: ConfidenceInterval
) -> ConfidenceInterval:
    """A sum: the wider end of that of the parts and of `whole`, the interval of the sum itself."""
    mean = whole.estimate
    if not np.isfinite(mean):
        return whole
    down = float(np.hypot(first.estimate - first.low, second.estimate - second.low))
    up = float(np.hypot(first.high - first.estimate, second.high - second.estimate))
    return wider(whole, ConfidenceInterval(mean, mean - down, mean + up))


def from_whole(
    own: ConfidenceInterval, others: ConfidenceInterval, share: float, dependent: bool
) -> ConfidenceInterval:
    """By how much a group with this share of the rows exceeds all rows, by that of the others."""
    if share == 1:
        return ConfidenceInterval(0.0, 0.0, 0.0)
    difference = own.estimate - others.estimate
    down = own.estimate - own.low, others.high - others.estimate
    up = own.high - own.estimate, others.estimate - others.low
    if not np.isfinite(difference):
        low, high = own.low - others.high, own.high - others.low
    elif dependent:
        low, high = difference - sum(down), difference + sum(up)
    else:
        low, high = difference - float(np.hypot(*down)), difference + float(np.hypot(*up))
    return ConfidenceInterval((1 - share) * difference, (1 - share) * low, (1 - share) * high)


def on_both_sides(groups: Ints | None, inside: Bools) -> bool:
    """Whether rows of one group of dependent rows are both inside and outside."""
    if groups is None:
        return False
    return bool(len(np.intersect1d(groups[inside], groups[~inside])))

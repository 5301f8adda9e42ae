"""Rows that belong together: patients, sites, or copies of a row. A split keeps them on one side.

A group is a number for each row, 0, 1, …; None means rows that are groups of their own.

Equal rows need not be copies: where covariates have few values, different cases agree. They are
taken for copies on either of two signs.

- There are covariates of many values, and rows that are equal in all columns but one hardly differ
  in that one: different cases would, as often as the column varies.
- Within a class the counts of equal rows are more even than those of independent rows can be.
  Counts of independent rows are a mixture of Poisson counts, of which the zeros are not seen.
  E[C (C - 1)] of a Poisson count without its zeros is convex in its mean, so a mixture has at least
  the variance of a single one with the same mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import poisson, t

from adacos.kernels.binomial import interval_of_share
from adacos.typing import Bools, Floats, Ints

# Distinct values from which two rows hardly share one by chance.
MANY_VALUES = 100
# How often nearly equal rows differ in the one column, as a share of how often any two rows do.
LEAST_DIFFERING = 0.25
# Equal rows, and their share of all, below which they are left alone.
LEAST_ROWS, LEAST_SHARE = 10, 0.01
# Distinct rows of a class, and standard errors, from which its counts are called too even.
_LEAST_DISTINCT, _ERRORS = 20, 4.0


def copies(encoded: Floats, y: Floats) -> Ints | None:
    """Groups of equal rows where these look like copies, see above; None where they do not."""
    hashes = hash_values(encoded, 0)
    number = np.unique(hashes.sum(axis=1), return_inverse=True)[1]
    size = np.bincount(number)
    repeated = int(size[size > 1].sum())
    if repeated < max(LEAST_ROWS, LEAST_SHARE * len(y)):
        return None
    of_classes = [np.unique(number[y == k], return_counts=True)[1] for k in np.unique(y)]
    too_even = any(map(_too_even, of_classes))
    return number if too_even or _hardly_differ_in_one(encoded, hashes) else None


def standard_error(values: Floats, groups: Ints | None, weight: Floats | None = None) -> float:
    """Standard error of the weighted mean of rows that are independent, or whose groups are."""
    weight = np.ones(len(values)) if weight is None else weight
    total: Floats = weight * (values - np.average(values, weights=weight))
    if groups is not None:
        total = np.bincount(groups, weights=total)[np.bincount(groups) > 0].astype(np.float64)
    n = len(total)
    return float(np.sqrt((total**2).sum() * n / max(n - 1, 1)) / weight.sum())


def share_interval(
    hits: Bools, groups: Ints | None, confidence: float, counted: float = 1.0
) -> tuple[float, float]:
    """Interval of the share of rows that are hits; exact where every row is a group of its own.

    With groups it is the exact one of as many independent rows as have the variance of the share
    between groups, fewer where there are few groups to estimate that variance (Korn and Graubard).
    Of their number the share `counted` counts.
    """
    n, found = len(hits), int(hits.sum())
    if n == 0:
        return 0.0, 1.0
    share = found / n
    if groups is None:
        low, high = interval_of_share(share, counted * n, confidence)
        return float(low), float(high)
    n_groups = len(np.unique(groups))
    if n_groups == 1:
        return 0.0, 1.0
    trials = float(n_groups)
    if 0 < found < n:
        variance = standard_error(hits.astype(np.float64), groups) ** 2
        # The variance of a share of independent rows is estimated with n - 1.
        trials = n * min(1.0, share * (1 - share) / (n - 1) / variance) if variance else float(n)
    level = (1 + confidence) / 2
    fewer = (t.ppf(level, n - 1) / t.ppf(level, n_groups - 1)) ** 2
    low, high = interval_of_share(share, counted * float(trials * fewer), confidence)
    return float(low), float(high)


def one_of_each(rows: Ints, groups: Ints | None, seed: int) -> Ints:
    """One of these rows of each group, drawn at random; all of them without groups."""
    if groups is None:
        return rows
    shuffled = np.random.default_rng(seed).permutation(rows)
    _, first = np.unique(groups[shuffled], return_index=True)
    return np.sort(shuffled[first])


def hash_values(encoded: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """A random number for each value of each column; equal rows have equal sums."""
    rng = np.random.default_rng(seed)
    result = np.empty(encoded.shape, dtype=np.uint64)
    for k, column in enumerate(encoded.T):
        values, code = np.unique(column, return_inverse=True)
        result[:, k] = rng.integers(2**64, size=len(values), dtype=np.uint64)[code]
    return result


def _pairs(number: NDArray[Any]) -> float:
    """Pairs of rows with the same number."""
    count = np.unique(number, return_counts=True)[1].astype(np.float64)
    return float((count * (count - 1)).sum() / 2)


def _hardly_differ_in_one(encoded: Floats, hashes: NDArray[np.uint64]) -> bool:
    """Whether rows that are equal in all columns but one are equal in that one too."""
    known = ~np.isnan(encoded)
    each = zip(encoded.T, known.T, strict=True)
    many = [len(np.unique(own[there])) >= MANY_VALUES for own, there in each]
    # Rows without a value of such a covariate agree more easily.
    hashes = hashes[known[:, many].any(axis=1)]
    total = hashes.sum(axis=1)
    equal, everyone = _pairs(total), len(hashes) * (len(hashes) - 1) / 2
    if equal == 0:
        return False
    for own in hashes.T:
        differing = 1 - equal / _pairs(total - own)
        if differing > LEAST_DIFFERING * (1 - _pairs(own) / everyone):
            return False
    return True


def _too_even(count: Ints) -> bool:
    """Whether counts of equal rows vary less than those of independent rows can."""
    n, mean = len(count), float(count.mean())
    if n < _LEAST_DISTINCT or count.max() < 2:
        return False
    rate = brentq(lambda x: x / -np.expm1(-x) - mean, 1e-12, mean)
    values = np.arange(1, int(mean + 20 * np.sqrt(mean)) + 20)
    share = poisson.pmf(values, rate) / -np.expm1(-rate)
    variance = float(share @ (values - mean) ** 2)
    error = np.sqrt(n * max(float(share @ (values - mean) ** 4) - variance**2, 0.0))
    return bool(((count - mean) ** 2).sum() - n * variance < -_ERRORS * error)

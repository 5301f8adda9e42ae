"""Evidence that errors have cost more than was promised, since a moment that nobody knows.

Case i costs c_i, between 0 and M_g for its group g, and a mean of m_i was promised. For each λ > 0

    L_i(λ) = exp(λ c_i) / (1 - q_i + q_i exp(λ M_g)),   q_i = m_i / M_g,

has an expectation of 1 at most if the promise is kept, because exp is convex. Products of L_i over
the cases of a group are bounded from below with the mean of their q_i, because log is concave, so
that counts of cases are enough. R = sum over the periods j of the product of all L_i since j, the
statistic of Shiryaev and Roberts, exceeds N / alpha within N periods with a probability of alpha at
most, however often one looks and in whatever order outcomes arrive: R less the number of periods is
a supermartingale (Doob; Shin, Ramdas and Rinaldo 2023, "E-detectors"). R is the mean over some λ.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from adacos.typing import Floats, Ints

# How strongly errors are weighed: as if they were this many times as probable, and between.
_LEAST, _MOST, _POINTS = 0.15, 2.5, 8
# The most expensive error is weighed by e^30 at most: beyond, floats end.
_LARGEST = 30.0


def log_growth(
    total: npt.ArrayLike, promised: npt.ArrayLike, cases: npt.ArrayLike, most: npt.ArrayLike
) -> Floats:
    """Log of the products of L_i in each period, in rows, for each of some λ.

    `total` is what the errors of a period cost; `promised` and `cases` are what was promised and
    how many cases there were, by period and group; `most` is what an error costs at most, by group.
    """
    paid, expected = np.asarray(total, dtype=float), np.asarray(promised, dtype=float)
    number, largest = np.asarray(cases, dtype=float), np.asarray(most, dtype=float)
    # Where nothing can be lost, nothing is learned.
    there = largest > 0
    if not there.any():
        return np.zeros((len(paid), 1))
    expected, number, largest = expected[:, there], number[:, there], largest[there]
    greatest = largest.max()
    weights = np.geomspace(
        _LEAST / greatest, min(_MOST / largest.min(), _LARGEST / greatest), _POINTS
    )
    share = np.divide(expected, number * largest, out=np.zeros_like(expected), where=number > 0)
    raised = np.expm1(np.multiply.outer(largest, weights))
    spread = np.log1p(np.clip(share, 0.0, 1.0)[:, :, None] * raised)
    return np.asarray(np.multiply.outer(paid, weights) - (number[:, :, None] * spread).sum(axis=1))


def log_growth_of_share(
    missed: npt.ArrayLike, found: npt.ArrayLike, weight: npt.ArrayLike, promised: float
) -> Floats:
    """The same for a share of misses of which at most `promised` is promised.

    `missed` and `found` are numbers of cases by period and group. A case of a group counts `weight`
    times, by period and group, because only that part of its group's cases is known: each factor is
    1 + b w (miss - promised), whose expectation is 1 at most where 1 / w is the part that is known.
    With equal weights that is the likelihood ratio of two shares, as in `log_growth`.
    """
    lost, right = np.asarray(missed, dtype=float), np.asarray(found, dtype=float)
    weights = np.asarray(weight, dtype=float)
    odds = np.expm1(np.geomspace(_LEAST, _MOST, _POINTS))
    bet = odds / (1 + promised * odds)
    own = weights / weights.max(axis=1, keepdims=True)
    stake = own[:, :, None] * bet
    return np.asarray(
        (lost[:, :, None] * np.log1p((1 - promised) * stake)).sum(axis=1)
        + (right[:, :, None] * np.log1p(-promised * stake)).sum(axis=1)
    )


def log_growth_of_ranks(codes: Ints, period: Ints, uniform: Floats) -> Floats:
    """Evidence by period that whole numbers, as they arrive, are not of one distribution.

    The rank of each among those before it, ties broken by `uniform`, is uniform and independent of
    the others as long as all are exchangeable (Vovk, Gammerman and Shafer 2005). Bets on ranks that
    are low, high, outer or inner are rows of the kind that `log_evidence` takes.
    """
    above, equal = np.zeros(len(codes)), np.zeros(len(codes))
    for code in np.unique(codes):
        here = codes == code
        before = np.cumsum(here) - here
        equal[here] = before[here]
        above[codes < code] += before[codes < code]
    rank = (above + uniform * (equal + 1)) / np.arange(1, len(codes) + 1)
    side, outer = 2 * rank - 1, 6 * rank * (rank - 1) + 1
    bets = [1 + stake * side for stake in (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)]
    bets += [1 + stake * outer for stake in (-0.6, 0.6)]
    periods = int(period.max()) + 1 if len(period) else 0
    return np.stack([np.bincount(period, np.log(bet), periods) for bet in bets], axis=1)


def log_evidence(growth: Floats) -> Floats:
    """log R after each period."""
    path = np.empty(growth.shape)
    before = np.full(growth.shape[1], -np.inf)
    for period, grown in enumerate(growth):
        before = np.logaddexp(0.0, before) + grown
        path[period] = before
    return np.asarray(logsumexp(path, axis=1) - np.log(growth.shape[1]))


def likeliest_begin(growth: Floats) -> int:
    """The period since which the evidence is greatest."""
    since = np.cumsum(growth[::-1], axis=0)[::-1]
    return int(np.argmax(logsumexp(since, axis=1)))

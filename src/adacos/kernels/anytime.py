"""Bounds on a proportion that hold at every number of trials at once: look as often as you like.

For each proportion p the ratio of the beta-binomial to the binomial likelihood,

    M_n(p) = B(a + k, b + n - k) / (B(a, b) p^k (1 - p)^(n - k)),

is a martingale that starts at 1 if p is the true one, so it ever reaches 1 / alpha with probability
at most alpha (Ville). The interval after n trials holds the p at which it has not: with probability
1 - alpha the true proportion is in all of the intervals (Robbins 1970; Howard, Ramdas, McAuliffe
and Sekhon 2021). With a = b = 1/2 the mixture has weight near 0 and 1, where shares of errors lie.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, xlog1py, xlogy

from adacos.exceptions import InvalidInputError
from adacos.kernels.binomial import check_counts

# Both parameters of the beta distribution that is mixed over.
MIXTURE = 0.5
# Halvings of the interval between an end and the observed share.
_HALVINGS = 60


def confidence_sequence(
    successes: npt.ArrayLike, trials: npt.ArrayLike, confidence: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Lower and upper bounds that hold for all numbers of trials together."""
    if not 0 < confidence < 1:
        raise InvalidInputError(
            "confidence", "strictly between 0 and 1", confidence, "Pass for example 0.95."
        )
    k, n = check_counts(successes, trials)
    share = np.divide(k, n, out=np.full_like(k, 0.5), where=n > 0)
    # The martingale reaches 1 / alpha where the log-likelihood falls to this.
    limit = _log_mixture(k, n) + np.log1p(-confidence)
    return _end(k, n, share, 0.0, limit), _end(k, n, share, 1.0, limit)


def log_martingale(
    successes: npt.ArrayLike, trials: npt.ArrayLike, proportion: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """log M_n(p), infinite where the counts are impossible under p."""
    k, n = check_counts(successes, trials)
    return np.asarray(_log_mixture(k, n) - _log_likelihood(k, n, np.asarray(proportion, float)))


def _log_mixture(k: npt.NDArray[np.float64], n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(betaln(MIXTURE + k, MIXTURE + n - k) - betaln(MIXTURE, MIXTURE))


def _log_likelihood(
    k: npt.NDArray[np.float64], n: npt.NDArray[np.float64], p: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    return np.asarray(xlogy(k, p) + xlog1py(n - k, -p))


def _end(
    k: npt.NDArray[np.float64],
    n: npt.NDArray[np.float64],
    share: npt.NDArray[np.float64],
    end: float,
    limit: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Where between the observed share and 0 or 1 the log-likelihood falls to the limit.

    It is greatest at the share and falls away from it. The outer side of the last interval is
    returned, so that rounding makes the bound wider.
    """
    inside, outside = share, np.full_like(share, end)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        above = _log_likelihood(k, n, middle) > limit
        inside, outside = np.where(above, middle, inside), np.where(above, outside, middle)
    at_end = _log_likelihood(k, n, np.full_like(share, end)) > limit
    return np.where(at_end, end, outside)

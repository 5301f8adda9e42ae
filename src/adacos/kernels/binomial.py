"""Exact (Clopper-Pearson) bounds on a proportion: they hold for every number of trials.

The lower bound after k successes in n trials is the proportion at which k or more successes still
have probability 1 - confidence, the upper bound that of k or fewer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from adacos.exceptions import InvalidInputError


def lower_bound(
    successes: npt.ArrayLike, trials: npt.ArrayLike, confidence: float
) -> npt.NDArray[np.float64]:
    """Bound that the proportion exceeds with at least the given confidence."""
    k, n = check_counts(successes, trials)
    return _lower_bound(k, n, confidence)


def _lower_bound(
    k: npt.NDArray[np.float64], n: npt.NDArray[np.float64], confidence: float
) -> npt.NDArray[np.float64]:
    _check_open_unit("confidence", confidence)
    # The solution for k = 0 is 0, where the beta distribution degenerates.
    bound = betaincinv(np.where(k == 0, 1, k), n - k + 1, 1 - confidence)
    return np.asarray(np.where(k == 0, 0.0, bound))


def upper_bound(
    successes: npt.ArrayLike, trials: npt.ArrayLike, confidence: float
) -> npt.NDArray[np.float64]:
    """Bound that the proportion stays below with at least the given confidence."""
    k, n = check_counts(successes, trials)
    return 1 - lower_bound(n - k, n, confidence)


def interval(
    successes: npt.ArrayLike, trials: npt.ArrayLike, confidence: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Two-sided bounds: each side is exceeded with at most half of 1 - confidence."""
    _check_open_unit("confidence", confidence)
    one_sided = (1 + confidence) / 2
    return (
        lower_bound(successes, trials, one_sided),
        upper_bound(successes, trials, one_sided),
    )


def interval_of_share(
    share: npt.ArrayLike, trials: npt.ArrayLike, confidence: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bounds as of `interval` for shares of effective numbers of trials, not whole ones."""
    n, one_sided = np.asarray(trials, dtype=np.float64), (1 + confidence) / 2
    k = np.asarray(share, dtype=np.float64) * n
    return _lower_bound(k, n, one_sided), 1 - _lower_bound(n - k, n, one_sided)


def trials_needed(proportion: float, confidence: float, failures: int = 0) -> int:
    """Least number of trials whose lower bound reaches `proportion` despite that many failures."""
    _check_open_unit("proportion", proportion)
    _check_open_unit("confidence", confidence)
    if failures < 0:
        raise InvalidInputError("failures", "not negative", failures, "Pass 0 for no failure.")

    def reached(trials: int) -> bool:
        return bool(lower_bound(trials - failures, trials, confidence) >= proportion)

    # The bound grows with the trials: double until it is reached, then bisect.
    too_few, enough = failures, failures + 1
    while not reached(enough):
        too_few, enough = enough, 2 * enough
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if reached(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def check_counts(
    successes: npt.ArrayLike, trials: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Successes and trials as arrays of one shape, refused if they are no counts."""
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    if not np.all((k >= 0) & (k <= n) & (k == np.floor(k)) & (n == np.floor(n)) & (n < np.inf)):
        raise InvalidInputError(
            "successes, trials",
            "whole numbers with 0 <= successes <= trials",
            (successes, trials),
            "Pass the number of successes first, then the number of trials.",
        )
    k, n = np.broadcast_arrays(k, n)
    return k, n


def _check_open_unit(parameter: str, value: float) -> None:
    if not 0 < value < 1:
        raise InvalidInputError(
            parameter, "strictly between 0 and 1", value, "Pass for example 0.95."
        )

"""Log-odds of a mean probability, and the mean log-odds that keep a probability.

With g the sigmoid and u ~ N(mu, sigma²), `integrated_log_odds` is logit E[g(u)]: what is left of
log-odds mu when a normal part of them cannot be known. `coherent_mean` is its inverse in mu: the
mean for which E[g(u)] = g(now), so that the probability expected after an acquisition is the one
believed before it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, log_expit, logit, ndtri_exp

from adacos.kernels.bayes_risk import sigmoid_below
from adacos.typing import Floats

# Rows per block: the temporaries of a block stay in the processor's cache.
_BLOCK = 8192
# Probabilities nearer to 0 than e^-600 are not told apart; beyond, log-odds shift by what exceeds.
_LARGEST = 600.0
_SMALLEST_SIGMA, _LARGEST_SIGMA = 1e-100, 1e8
# A step from where log E[g(u)] is that near to its target is the last: the error that Halley's
# step leaves is of third order.
_CLOSE = 0.02
_ITERATIONS = 50


def integrated_log_odds(mu: npt.ArrayLike, sigma: npt.ArrayLike) -> Floats:
    """logit E[g(u)] for u ~ N(mu, sigma²), to about 2e-6; mu itself where sigma = 0."""
    means, deviations = np.broadcast_arrays(
        np.asarray(mu, dtype=float), np.asarray(sigma, dtype=float)
    )
    result = means.astype(float)
    spread = (deviations > 0) & (np.abs(means) <= _LARGEST)
    m, s = means[spread], np.clip(deviations[spread], _SMALLEST_SIGMA, _LARGEST_SIGMA)
    probability, *_ = _mean_sigmoid(-np.abs(m), s)
    result[spread] = np.copysign(logit(probability), m)
    return np.asarray(result)


def shrink(log_odds: Floats, variance: Floats) -> Floats:
    """Factor of log-odds that integrates a part of that variance out.

    It is even in the log-odds and has a limit at zero.
    """
    size = np.maximum(np.abs(log_odds), 1e-3)
    return np.asarray(integrated_log_odds(size, np.sqrt(variance)) / size)


def coherent_mean(log_odds: npt.ArrayLike, sigma: npt.ArrayLike) -> Floats:
    """The mu with E[g(u)] = g(log_odds) for u ~ N(mu, sigma²); log_odds itself where sigma = 0.

    log E[g(u)] is concave and increasing in mu, and Halley's method finds its place in one to
    four steps. The smaller of the two probabilities is met to a relative 4e-6.
    """
    now, deviations = np.broadcast_arrays(
        np.asarray(log_odds, dtype=float), np.asarray(sigma, dtype=float)
    )
    result = now.astype(float).ravel()
    spread = np.flatnonzero(deviations.ravel() > 0)
    for first in range(0, len(spread), _BLOCK):
        rows = spread[first : first + _BLOCK]
        s = np.clip(deviations.ravel()[rows], _SMALLEST_SIGMA, _LARGEST_SIGMA)
        near = np.minimum(np.abs(result[rows]), _LARGEST)
        excess = np.abs(result[rows]) - near
        result[rows] = np.copysign(excess - _solve(-near, s), result[rows])
    return result.reshape(now.shape)


def _solve(log_odds: Floats, sigma: Floats) -> Floats:
    """`coherent_mean` for log-odds <= 0 and sigma > 0, in one dimension."""
    target = log_expit(log_odds)
    # E[g(u)] -> Φ(mu / sigma) as sigma grows; -sqrt(u² + q² sigma²) meets this and mu = u at 0.
    # E[g(u)] <= E[e^u] bounds mu from below.
    quantile = ndtri_exp(target)
    mu = np.maximum(-np.hypot(log_odds, np.minimum(quantile, 0.0) * sigma), target - 0.5 * sigma**2)
    active = np.arange(len(mu))
    for _ in range(_ITERATIONS):
        probability, first, second = _mean_sigmoid(mu[active], sigma[active])
        gap = np.log(probability) - target[active]
        slope = first / probability
        # Halley's step: second / probability - slope² is the curvature of log E[g(u)].
        step = gap / (slope - 0.5 * gap * (second / probability / slope - slope))
        # The solution never lies right of the log-odds: the mean is pushed away from zero.
        mu[active] = np.minimum(mu[active] - step, log_odds[active])
        active = active[np.abs(gap) > _CLOSE]
        if len(active) == 0:
            break
    return np.asarray(mu)


def _mean_sigmoid(mu: Floats, sigma: Floats) -> tuple[Floats, Floats, Floats]:
    """E[g(u)] for mu <= 0, to a relative 2e-6, and its first two derivatives in mu.

    g(u) = Σ w_k e^{ku} below zero and 1 - g(-u) above. See `adacos.kernels.bayes_risk` for the
    stable form of E[e^{ku} 1(u < 0)].
    """
    a = -mu / sigma
    half_density = 0.5 * np.exp(-0.5 * a**2)
    root = np.sqrt(0.5)
    probability = half_density * erfcx(a * root)
    first, second = np.zeros_like(mu), np.zeros_like(mu)
    for k, weight in enumerate(sigmoid_below(0.0), start=1):
        x = k * sigma - a
        tail = half_density * erfcx(np.abs(x) * root)
        inside = np.exp(np.minimum(k * (0.5 * k * sigma**2 + mu), 0))
        below = np.copysign(tail, x) + inside * (x < 0)
        above = half_density * erfcx((k * sigma + a) * root)
        probability += weight * (below - above)
        first += weight * k * (below + above)
        second += weight * k**2 * (below - above)
    return probability, first, second

"""Bounds that hold at every look: against the definition, a peer's formula, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from adacos.kernels.anytime import MIXTURE, confidence_sequence, log_martingale
from adacos.kernels.binomial import interval


@pytest.mark.parametrize(("k", "n", "p"), [(0, 1, 0.3), (3, 10, 0.3), (10, 10, 0.9), (40, 50, 0.5)])
def test_the_martingale_is_the_mixture_of_likelihood_ratios(k, n, p):
    """By numerical integration over the mixing distribution."""

    def ratio(share):
        likelihoods = share**k * (1 - share) ** (n - k) / (p**k * (1 - p) ** (n - k))
        return likelihoods * stats.beta.pdf(share, MIXTURE, MIXTURE)

    expected, _ = integrate.quad(ratio, 0, 1, limit=200)
    assert np.exp(log_martingale(k, n, p)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.95])
def test_it_is_a_martingale(p):
    """What is expected of the next value is the present one."""
    for k, n in ((0, 0), (1, 4), (7, 7), (30, 100)):
        after = np.exp(log_martingale([k, k + 1], [n + 1, n + 1], p))
        assert (1 - p) * after[0] + p * after[1] == pytest.approx(np.exp(log_martingale(k, n, p)))


@pytest.mark.parametrize(("k", "n"), [(0, 20), (20, 20), (3, 17), (950, 1000), (1, 100_000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_ends_are_where_the_martingale_reaches_its_limit(k, n, confidence):
    low, high = (float(end) for end in confidence_sequence(k, n, confidence))

    def excess(p):
        return float(log_martingale(k, n, p)) + np.log1p(-confidence)

    share = k / n
    if k > 0:
        assert low == pytest.approx(optimize.brentq(excess, 1e-15, share), abs=1e-9)
    else:
        assert low == 0
    if k < n:
        assert high == pytest.approx(optimize.brentq(excess, share, 1 - 1e-12), abs=1e-9)
    else:
        assert high == 1


def test_wider_than_bounds_for_one_look_and_shrinking():
    n = np.array([10, 100, 1000, 10_000])
    low, high = confidence_sequence(0.9 * n, n, 0.95)
    once_low, once_high = interval(0.9 * n, n, 0.95)
    assert np.all(low < once_low)
    assert np.all(once_high < high)
    assert np.all(np.diff(high - low) < 0)
    nothing = confidence_sequence(0, 0, 0.95)
    assert (float(nothing[0]), float(nothing[1])) == (0, 1)


def looks(share: float, trials: int, logs: int, seed: int, bounds) -> float:
    """Share of logs whose bounds exclude the truth at any one of the looks."""
    rng = np.random.default_rng(seed)
    successes = np.cumsum(rng.random((logs, trials)) < share, axis=1)
    n = np.broadcast_to(np.arange(1, trials + 1), successes.shape)
    low, high = bounds(successes, n, 0.95)
    return float(np.mean(np.any((share < low) | (share > high), axis=1)))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_looking_after_every_case_keeps_the_confidence(share):
    """300 logs read after each of 400 positives; intervals for one look fail in many of them."""
    # At most 5%, and three standard errors of the simulation.
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert looks(share, 400, 300, 1, confidence_sequence) <= allowed
    if share < 0.99:
        assert looks(share, 400, 300, 1, interval) > allowed


def test_what_is_no_count_is_refused():
    for successes, trials, confidence in ((2, 1, 0.95), (-1, 1, 0.95), (1, 2, 1.0), (0.5, 1, 0.95)):
        with pytest.raises(ValueError, match=r"successes|confidence"):
            confidence_sequence(successes, trials, confidence)

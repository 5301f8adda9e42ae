"""Mean probabilities and the means that keep them, against adaptive quadrature."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, log_expit, logit

from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk
from adacos.kernels.martingale import coherent_mean, integrated_log_odds

LOG_ODDS = [-40.0, -20.0, -8.0, -3.0, -1.0, -0.1, -1e-3, 0.0, 2.0, 12.0, 40.0]
DEVIATIONS = [1e-8, 1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0, 100.0, 1e3]


def log_mean_sigmoid(mu: float, sigma: float) -> float:
    """log E[g(u)] by quadrature in z = (u - mu) / sigma, cut where the integrand bends."""

    def integrand(z: float) -> float:
        return float(np.exp(log_expit(mu + sigma * z) - 0.5 * z * z) / np.sqrt(2 * np.pi))

    bends = (np.array([-100, -40, -20, -8, -3, -1, 0, 1, 3, 8, 20, 40]) - mu) / sigma
    peak = sigma + np.array([-6, -3, -1, 0, 1, 3, 6])  # of e^u times the density
    cuts = np.concatenate([bends, peak, np.arange(-38, 39, 4), [-1, 0, 1]])
    z = np.unique(np.clip(cuts, -38, 38))
    return float(
        np.log(
            sum(quad(integrand, *pair, epsabs=0, epsrel=1e-10)[0] for pair in itertools.pairwise(z))
        )
    )


@pytest.mark.parametrize("now", LOG_ODDS)
def test_the_probability_is_kept(now):
    for sigma in DEVIATIONS:
        mu = float(coherent_mean(now, sigma))
        # On the side where it is small the probability counts in relative terms.
        sign = -1.0 if now > 0 else 1.0
        assert log_mean_sigmoid(sign * mu, sigma) == pytest.approx(log_expit(sign * now), abs=5e-6)


def test_log_odds_of_the_mean_probability():
    rng = np.random.default_rng(0)
    for mu, sigma in zip(rng.normal(scale=4, size=40), 10 ** rng.uniform(-3, 1.5, 40), strict=True):
        expected = logit(np.exp(log_mean_sigmoid(-abs(mu), sigma)))
        actual = integrated_log_odds(mu, sigma)
        assert actual == pytest.approx(np.copysign(expected, mu), abs=5e-6)


def test_one_undoes_the_other_for_whole_arrays():
    rng = np.random.default_rng(1)
    now, sigma = rng.normal(scale=6, size=(300, 1)), 10 ** rng.uniform(-4, 2, size=90)
    mu = coherent_mean(now, sigma)
    assert mu.shape == (300, 90)
    np.testing.assert_allclose(integrated_log_odds(mu, sigma), now + 0 * sigma, rtol=0, atol=1e-5)


def test_mackay_is_near_in_the_middle():
    """mu = u sqrt(1 + pi sigma² / 8), the approximation in use elsewhere."""
    now, sigma = np.meshgrid(np.linspace(-3, 3, 13), np.linspace(0, 2, 9))
    np.testing.assert_allclose(
        coherent_mean(now, sigma), now * np.sqrt(1 + np.pi * sigma**2 / 8), atol=0.35
    )


def test_nothing_to_come_changes_nothing():
    now = np.array([-900.0, -3.0, 0.0, 1e-300, 5.0, 1e4])
    np.testing.assert_array_equal(coherent_mean(now, 0.0), now)
    np.testing.assert_array_equal(integrated_log_odds(now, 0.0), now)


def test_extreme_inputs_stay_finite_without_warnings():
    now = np.array([-1e4, -600.0, -300.0, -50.0, -1e-9, 0.0, 1e-9, 50.0, 700.0])[:, None]
    sigma = np.array([5e-324, 1e-200, 1e-8, 1e-3, 1, 30, 1e3, 1e8, 1e200])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, integrated = coherent_mean(now, sigma), integrated_log_odds(now, sigma)
    assert np.isfinite(mean).all()
    assert np.isfinite(integrated).all()
    assert np.all(np.abs(mean) >= np.abs(now) * (1 - 1e-12))
    assert np.all(np.abs(integrated) <= np.abs(now) * (1 + 1e-6) + 1e-5)


@given(
    st.floats(-40, 40),
    st.floats(-8, 3).map(lambda e: 10.0**e),
    st.floats(-3, 3).map(lambda e: 10.0**e),
    st.floats(-3, 3).map(lambda e: 10.0**e),
    st.floats(-10, 10),
    st.floats(-10, 10),
)
def test_information_never_raises_the_risk(now, sigma, false_positive, miss, right_0, right_1):
    """Jensen: the Bayes risk is concave in the probability, which is a martingale."""
    matrix = np.array([[right_0, right_0 + false_positive], [right_1 + miss, right_1]])
    after = expected_bayes_risk(coherent_mean(now, sigma), sigma, matrix)
    assert after <= bayes_risk(now, matrix) + 1e-5 * np.ptp(matrix)
    knowing = expit(-now) * right_0 + expit(now) * right_1
    assert after >= knowing - 1e-5 * np.ptp(matrix)

"""Expected savings: the two monotonicities by quadrature, and decisions equal to the integrals'."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

from adacos.kernels import saving
from adacos.kernels.bayes_risk import bayes_risk, decision_threshold
from adacos.kernels.saving import Savings, kept_risk

MATRICES = [
    np.array([[0.0, 100.0], [1000.0, 0.0]]),
    np.array([[-50.0, 400.0], [400.0, -50.0]]),
    np.array([[3.0, 5.0], [20.0, -7.0]]),
]


def mean_over_normal(function, mu: float, sigma: float, cuts: list[float]) -> float:
    z = np.unique(np.clip([-12, -4, 0, 4, 12, *((np.array(cuts) - mu) / sigma)], -12, 12))
    density = np.sqrt(2 * np.pi)
    return sum(
        quad(lambda v: function(mu + sigma * v) * np.exp(-v * v / 2) / density, a, b, epsrel=1e-11)[
            0
        ]
        for a, b in itertools.pairwise(z)
    )


def saved(now: float, sigma: float, matrix: np.ndarray) -> float:
    """V by root finding and quadrature."""
    mu = brentq(
        lambda m: mean_over_normal(expit, m, sigma, [0.0]) - expit(now),
        now - 12 * sigma - 1,
        now + 12 * sigma + 1,
        xtol=1e-12,
    )
    cuts = [0.0, decision_threshold(matrix)]
    after = mean_over_normal(lambda u: float(bayes_risk(u, matrix)), mu, sigma, cuts)
    return float(bayes_risk(now, matrix)) - after


@pytest.mark.parametrize("matrix", MATRICES)
def test_the_saving_grows_with_sigma_and_falls_with_the_distance(matrix: np.ndarray) -> None:
    threshold = decision_threshold(matrix)
    steps = np.array([-4.0, -1.5, -0.4, 0.0, 0.3, 1.0, 3.0])
    table = np.array(
        [[saved(threshold + u, s, matrix) for s in (0.2, 0.7, 1.5, 4.0)] for u in steps]
    )
    slack = 1e-9 * np.ptp(matrix)
    assert np.all(np.diff(table, axis=1) > -slack)
    assert np.all(np.diff(table[steps <= 0], axis=0) > -slack)
    assert np.all(np.diff(table[steps >= 0], axis=0) < slack)
    # And the kernel computes this function.
    now = threshold + steps[:, None]
    computed = bayes_risk(now, matrix) - kept_risk(now, [0.2, 0.7, 1.5, 4.0], matrix)
    np.testing.assert_allclose(computed, table, rtol=0, atol=1e-5 * np.ptp(matrix))


def cell_by_cell(now, sigma, cost, matrix) -> np.ndarray:
    future = cost + kept_risk(now[:, None], sigma, matrix)
    return (future < bayes_risk(now, matrix)[:, None]).any(axis=1)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("shared", [True, False])
def test_bounds_give_the_answer_of_the_integrals(matrix: np.ndarray, shared: bool) -> None:
    """On rows of every kind and at ties, before and after the grid has learned its levels."""
    rng = np.random.default_rng(int(shared))
    for round_ in range(6):
        n, m = 1500, 4
        now = decision_threshold(matrix) + rng.normal(scale=2, size=n)
        sigma = rng.uniform(0.2, 2, m) * rng.uniform(1.0, 1.1, (n, m))
        cost = 10 ** rng.uniform(-3, 0, (1 if shared else n, m)) * np.ptp(matrix)
        if round_ % 2:
            now[:8] = [-800, 800, -60, 60, -20, 20, 0, decision_threshold(matrix)]
            sigma[8:12] = np.array([0.0, 1e-9, 40.0, 1e5])[:, None]
            # Ties: what is saved by the first acquisition is its cost, to the last digit or so.
            saves = bayes_risk(now, matrix) - kept_risk(now, sigma[:, 0], matrix)
            if shared:
                cost[0] = np.sort(saves)[[-400, -300, -200, -100]]
            else:
                cost[:, 0] = saves
        expected = cell_by_cell(now, sigma, cost, matrix)
        np.testing.assert_array_equal(Savings(matrix).any_worthwhile(now, sigma, cost), expected)
        assert round_ or 0.02 < expected.mean() < 0.98


def test_few_integrals_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    matrix, evaluated = MATRICES[0], []
    now = rng.normal(-1, 1.5, 20000)
    sigma = np.array([0.5, 0.8, 1.1]) * rng.uniform(1.0, 1.01, (20000, 1))
    cost = np.array([[4.0, 10.0, 20.0]])
    savings = Savings(matrix)
    savings.any_worthwhile(now, sigma, cost)
    integral = saving.kept_risk
    monkeypatch.setattr(
        saving, "kept_risk", lambda u, *rest: evaluated.append(np.size(u)) or integral(u, *rest)
    )
    savings.any_worthwhile(now, sigma, cost)
    assert sum(evaluated) < 0.1 * sigma.size
    evaluated.clear()
    savings.any_worthwhile(now, sigma, np.repeat(cost, 20000, axis=0))
    assert sum(evaluated) < 0.1 * sigma.size

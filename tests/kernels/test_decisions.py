"""More decisions than classes: which are the cheapest where, and what is expected of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr

from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk, label_of
from adacos.kernels.class_risk import class_label, expected_class_risk, least_risk, roots
from adacos.kernels.decisions import cheapest_somewhere, pieces
from adacos.kernels.saving import Savings, kept_risk

REFER = np.array([[0.0, 20.0, 100.0], [1000.0, 120.0, 50.0]])
SHUFFLED = REFER[:, [2, 0, 1]]
FOUR = np.array([[0.0, 4.0, 15.0, 60.0], [500.0, 200.0, 90.0, 10.0]])
FREE = np.array([[0.0, 0.0, 100.0], [1000.0, 0.0, 0.0]])
# The second and the last decision are never the cheapest.
IDLE = np.array([[0.0, 50.0, 30.0, 31.0], [300.0, 250.0, 10.0, 12.0]])
MATRICES = [REFER, SHUFFLED, FOUR, FREE, IDLE, np.array([[0.0, 5.0], [3.0, 9.0]])]


def by_quadrature(mu: float, sigma: float, matrix: np.ndarray) -> float:
    """E[min over decisions], split where the least cost bends; beyond |u| = 40 it is constant."""
    p = np.linspace(0, 1, 20001)
    best = (np.outer(1 - p, matrix[0]) + np.outer(p, matrix[1])).argmin(axis=1)
    bends = p[1:][np.diff(best) != 0]
    cuts = np.append([-40, -20, -8, -3, 0, 3, 8, 20, 40], np.log(bends / (1 - bends)))
    z = np.unique(np.clip(np.append((cuts - mu) / sigma, [-9, -4, -1, 1, 4, 9]), -9, 9))

    def integrand(x: float) -> float:
        u = mu + sigma * x
        cost = (expit(-u) * matrix[0] + expit(u) * matrix[1]).min()
        return float(cost * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi))

    total = 0.0
    for low, high in itertools.pairwise(z):
        if mu + sigma * high <= -40 or mu + sigma * low >= 40:
            row = matrix[0] if mu + sigma * high <= -40 else matrix[1]
            total += row.min() * (ndtr(high) - ndtr(low))
        else:
            total += quad(integrand, low, high, epsabs=1e-12 * np.ptp(matrix), epsrel=1e-11)[0]
    return total


@pytest.mark.parametrize("matrix", MATRICES)
def test_the_cheapest_decision_is_found_at_every_probability(matrix):
    u = np.concatenate([np.linspace(-12, 12, 4001), [-800, 800]])
    cost = expit(-u)[:, None] * matrix[0] + expit(u)[:, None] * matrix[1]
    np.testing.assert_allclose(bayes_risk(u, matrix), cost.min(axis=1), rtol=1e-13)
    label = label_of(u, matrix)
    np.testing.assert_allclose(cost[np.arange(len(u)), label], cost.min(axis=1), rtol=1e-7)
    columns, cuts = pieces(matrix)
    assert sorted(columns) == sorted(np.unique(label).tolist())
    assert list(cuts) == sorted(cuts)
    assert len(cuts) == len(columns) - 1
    np.testing.assert_array_equal(label_of(np.array(cuts), matrix), columns[1:])


def test_idle_decisions_are_dropped_and_equal_ones_counted_once():
    assert pieces(IDLE).columns == (0, 2)
    assert pieces(np.repeat(REFER, 2, axis=1)).columns == (0, 2, 4)
    assert pieces(FREE).columns == (1,)
    # Three lines through one point: the one in the middle is never cheaper than both others.
    assert pieces([[0.0, 5.0, 10.0], [10.0, 5.0, 0.0]]).columns == (0, 2)


@pytest.mark.parametrize("pieces_of_paper", [None, 400])
def test_the_closed_form_is_that_of_quadrature(pieces_of_paper):
    rng = np.random.default_rng(31)
    random = [np.sort(rng.exponential(100, size=(2, n)), axis=1) for n in (3, 4, 6)]
    random = [np.stack([first, second[::-1]]) for first, second in random]
    for matrix in [*MATRICES, *random]:
        mu = np.concatenate([rng.normal(scale=3, size=25), [-50, 50, 0, 0, 2]])
        sigma = np.concatenate([rng.gamma(1, 1.5, size=25) + 0.01, [1, 1, 1e-8, 300, 20]])
        exact = [by_quadrature(m, s, matrix) for m, s in zip(mu, sigma, strict=True)]
        found = expected_bayes_risk(mu, sigma, matrix, pieces=pieces_of_paper)
        tolerance = 5e-6 if pieces_of_paper is None else 1e-4
        np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance * np.ptp(matrix))


def test_the_closed_form_is_exact_at_a_known_share_and_without_spread():
    mu = np.linspace(-5, 5, 41)
    np.testing.assert_array_equal(expected_bayes_risk(mu, 0.0, REFER), bayes_risk(mu, REFER))
    sigma = 1.3
    share = np.array(
        [quad(lambda x, m=m: expit(m + sigma * x) * np.exp(-x * x / 2), -9, 9)[0] for m in mu]
    ) / np.sqrt(2 * np.pi)
    given = expected_bayes_risk(mu, sigma, REFER, positive=share)
    exact = [by_quadrature(m, sigma, REFER) for m in mu]
    np.testing.assert_allclose(given, exact, rtol=0, atol=5e-6 * np.ptp(REFER))


def test_a_decision_that_is_never_cheapest_changes_no_bit():
    rng = np.random.default_rng(5)
    square = np.array([[0.0, 100.0], [1000.0, 0.0]])
    wider = np.column_stack([square, [1001.0, 1001.0]])
    mu, sigma = rng.normal(scale=3, size=3000), rng.gamma(1, 2, size=3000)
    for form in (None, 40):
        np.testing.assert_array_equal(
            expected_bayes_risk(mu, sigma, wider, pieces=form),
            expected_bayes_risk(mu, sigma, square, pieces=form),
        )
    np.testing.assert_array_equal(bayes_risk(mu, wider), bayes_risk(mu, square))
    np.testing.assert_array_equal(label_of(mu, wider), label_of(mu, square))


@pytest.mark.parametrize("matrix", [REFER, FREE, FOUR])
def test_what_pays_with_several_cuts_is_what_the_integrals_say(matrix):
    rng = np.random.default_rng(8)
    now, sigma = rng.normal(scale=2, size=700), rng.gamma(1, 1, size=(700, 3))
    cost = rng.uniform(0, 15, size=(1, 3))
    expected = (cost + kept_risk(now[:, None], sigma, matrix)) < bayes_risk(now, matrix)[:, None]
    np.testing.assert_array_equal(
        Savings(matrix).any_worthwhile(now, sigma, cost), expected.any(axis=1)
    )
    assert expected.any() == (matrix is not FREE)


def test_cheapest_decisions_of_three_classes_by_a_grid_of_probabilities():
    rng = np.random.default_rng(3)
    share = np.arange(61) / 60
    grid = np.array([(a, b, 1 - a - b) for a in share for b in share if a + b <= 1 + 1e-12])
    for _ in range(30):
        matrix = rng.uniform(0, 100, size=(3, 6))
        found = cheapest_somewhere(matrix)
        seen = np.unique((grid @ matrix).argmin(axis=1))
        assert set(seen.tolist()) <= set(found.tolist())
        np.testing.assert_allclose(
            (grid @ matrix[:, found]).min(axis=1), (grid @ matrix).min(axis=1)
        )
    assert cheapest_somewhere(100 * (1 - np.eye(3))).tolist() == [0, 1, 2]
    with_refer = np.column_stack([100 * (1 - np.eye(3)), [30.0, 30.0, 30.0], [67.0, 67.0, 67.0]])
    assert cheapest_somewhere(with_refer).tolist() == [0, 1, 2, 3]


def test_expected_risk_of_three_classes_with_a_refer_column_against_monte_carlo():
    rng = np.random.default_rng(12)
    matrix = np.column_stack([100 * (1 - np.eye(3)), [30.0, 30.0, 30.0]])
    root = rng.normal(size=(2, 2))
    covariance = root @ root.T
    mean = rng.normal(size=(5, 2))
    found = expected_class_risk(mean, roots(covariance), matrix)
    draws = rng.multivariate_normal(np.zeros(2), covariance, size=400_000)
    for m, value in zip(mean, found, strict=True):
        cost = least_risk(m + draws, matrix)
        error = cost.std() / np.sqrt(len(cost))
        assert abs(cost.mean() - value) < 4 * error + 1e-3 * 100
    assert 3 in class_label(np.zeros((1, 2)), matrix)

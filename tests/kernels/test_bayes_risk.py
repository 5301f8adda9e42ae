"""Bayes-risk kernels against adaptive quadrature, the paper's own sums, and sampling."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.special import expit, ndtr

from adacos.exceptions import InvalidInputError
from adacos.kernels import bayes_risk as kernel
from adacos.kernels.bayes_risk import (
    bayes_risk,
    decision_threshold,
    expected_bayes_risk,
    label_of,
)

TABLE_1 = np.array([[-50.0, 400.0], [400.0, -50.0]])
MATRICES = [
    [[0.0, 1.0], [1.0, 0.0]],
    [[0.0, 100.0], [1000.0, 0.0]],
    [[0.0, 1000.0], [100.0, 0.0]],
    TABLE_1,
    [[-3.0, 1.0], [2.0, 1.5]],
]


def random_matrix(rng: np.random.Generator) -> np.ndarray:
    right = rng.normal(scale=0.5, size=2)
    wrong = right + 10 ** rng.uniform(-2, 2, size=2)
    return np.array([[right[0], wrong[0]], [wrong[1], right[1]]])


def grid(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    mu = rng.uniform(-50, 50, size)
    mu[::2] = rng.normal(scale=3, size=mu[::2].size)
    sigma = 10 ** rng.uniform(-8, 3, size)
    sigma[::3] = 10 ** rng.uniform(-1, 1, sigma[::3].size)
    sigma[::10] = 0
    return mu, sigma


def slope(matrix: np.ndarray) -> float:
    """Largest change of the risk per unit of probability."""
    c = np.asarray(matrix)
    return max(abs(c[1, 0] - c[0, 0]), abs(c[1, 1] - c[0, 1]))


def by_quadrature(mu: float, sigma: float, matrix: np.ndarray) -> float:
    """E[r(u)] to about 1e-12 of the spread of the matrix.

    The variable is z = (u - mu) / sigma on [-9, 9] (mass outside: 2e-19), cut where r has its kink
    or bends and where the Gaussian bends; beyond |u| = 40 r is constant in double precision.
    """
    c = np.asarray(matrix, dtype=float)
    if sigma == 0:
        return float(bayes_risk(mu, c))
    cuts = np.array([-40, -20, -8, -3, 0, 3, 8, 20, 40, decision_threshold(c)])
    z = np.unique(np.clip(np.append((cuts - mu) / sigma, [-9, -4, -1, 1, 4, 9]), -9, 9))

    def integrand(x: float) -> float:
        return float(bayes_risk(mu + sigma * x, c)) * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)

    total = 0.0
    for low, high in itertools.pairwise(z):
        if mu + sigma * high <= -40 or mu + sigma * low >= 40:
            total += (c[0, 0] if mu + sigma * high <= -40 else c[1, 1]) * (ndtr(high) - ndtr(low))
        else:
            total += quad(integrand, low, high, epsabs=1e-13 * np.ptp(c), epsrel=1e-12)[0]
    return total


def by_paper(mu: float, sigma: float, matrix: np.ndarray, xi: int, bound: float = 10.0) -> float:
    """The sums of the section on Bayes risk estimation, term by term, for general costs."""
    c = np.asarray(matrix, dtype=float)
    b = np.concatenate([[-np.inf], np.linspace(-bound, bound, xi + 1), [np.inf]])
    m, v = np.zeros(xi + 3), np.zeros(xi + 3)
    for t in range(2, xi + 2):
        m[t] = (expit(b[t]) - expit(b[t - 1])) / (b[t] - b[t - 1])
        v[t] = expit(b[t - 1]) - m[t] * b[t - 1]
    v[1], v[xi + 2] = expit(-bound), expit(bound)

    def mass(low: float, high: float) -> float:
        return float(ndtr((high - mu) / sigma) - ndtr((low - mu) / sigma))

    def integral_of_sigmoid(a: float, o: float) -> float:
        total = 0.0
        for t in range(1, xi + 3):
            low, high = max(a, b[t - 1]), min(o, b[t])
            if low < high:
                first = sigma / np.sqrt(2 * np.pi) * (
                    np.exp(-((low - mu) ** 2) / (2 * sigma**2))
                    - np.exp(-((high - mu) ** 2) / (2 * sigma**2))
                ) + mu * mass(low, high)
                total += m[t] * first + v[t] * mass(low, high)
        return total

    u_star = decision_threshold(c)
    total = 0.0
    for label, (low, high) in enumerate([(-np.inf, u_star), (u_star, np.inf)]):
        positive = integral_of_sigmoid(low, high)
        total += c[1, label] * positive + c[0, label] * (mass(low, high) - positive)
    return total


@pytest.fixture(scope="module")
def cases() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """(matrix, mu, sigma, E[r(u)] by quadrature), from |mu| = 50 and sigma = 0, 1e-8 to 1e3."""
    rng = np.random.default_rng(20261)
    matrices = [np.asarray(m) for m in MATRICES] + [random_matrix(rng) for _ in range(15)]
    result = []
    for matrix in matrices:
        mu, sigma = grid(rng, 40)
        exact = np.array([by_quadrature(a, s, matrix) for a, s in zip(mu, sigma, strict=True)])
        result.append((matrix, mu, sigma, exact))
    return result


@pytest.mark.parametrize("xi", [40, 200, 1000])
def test_papers_form_keeps_its_error_bound(cases, xi):
    bound = max((20 / xi) ** 2 / 8 * 0.0962251, expit(-10))
    for matrix, mu, sigma, exact in cases:
        error = np.abs(expected_bayes_risk(mu, sigma, matrix, pieces=xi) - exact)
        assert error.max() <= bound * slope(matrix) + 1e-11 * np.ptp(matrix)


def test_accurate_form_keeps_its_error_bound(cases):
    for matrix, mu, sigma, exact in cases:
        c = matrix if decision_threshold(matrix) <= 0 else matrix[::-1, ::-1]
        error = np.abs(expected_bayes_risk(mu, sigma, matrix) - exact)
        bound = 7e-7 * abs(c[1, 1] - c[0, 1]) + 2e-6 * (c[0, 1] - c[0, 0])
        assert error.max() <= bound + 1e-12 * np.ptp(matrix)
        assert error.max() <= 1e-5 * np.ptp(matrix)


def test_papers_form_is_the_papers_sum():
    rng = np.random.default_rng(5)
    for matrix in [*MATRICES, *(random_matrix(rng) for _ in range(5)), [[0, 1], [1e6, 0]]]:
        for xi, bound in [(1, 10.0), (7, 4.0), (40, 10.0)]:
            mu, sigma = rng.normal(scale=5, size=5), 10 ** rng.uniform(-1.5, 2, size=5)
            expected = [by_paper(a, s, matrix, xi, bound) for a, s in zip(mu, sigma, strict=True)]
            actual = expected_bayes_risk(mu, sigma, matrix, pieces=xi, bound=bound)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * np.ptp(matrix))


def test_papers_form_converges_quadratically_down_to_its_floor():
    mu, sigma, matrix = 1.5, 1.0, np.array(MATRICES[1])
    exact = by_quadrature(mu, sigma, matrix)
    error = [
        abs(expected_bayes_risk(mu, sigma, matrix, pieces=xi, bound=20) - exact)
        for xi in (80, 160, 320)
    ]
    assert error[0] / error[1] == pytest.approx(4, rel=0.1)
    assert error[1] / error[2] == pytest.approx(4, rel=0.1)
    # Far in the tail only the constant outside [-bound, bound] is left.
    tail = expected_bayes_risk(-30, 1, [[0, 1], [1, 0]], pieces=4000)
    assert tail == pytest.approx(expit(-10), rel=1e-6)


def test_normal_mixture_is_as_good_as_its_weights_can_be():
    weights, scales = np.array(kernel._NORMAL_MIXTURE).T
    u = -np.concatenate([np.linspace(0, 8, 2000), np.linspace(8, 40, 400)])
    columns, target = ndtr(np.outer(u, scales)), expit(u)
    error = np.abs(columns @ weights - target).max()
    assert error < 7e-7
    # Least largest error over all weights that sum to one, as a linear programme in units of 1e-6.
    one = np.ones((u.size, 1))
    best = linprog(
        np.append(np.zeros(weights.size), 1.0),
        A_ub=np.block([[columns, -1e-6 * one], [-columns, -1e-6 * one]]),
        b_ub=np.concatenate([target, -target]),
        A_eq=np.append(np.ones(weights.size), 0.0)[None],
        b_eq=[1.0],
        bounds=[(None, None)] * weights.size + [(0, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert error <= 1.01e-6 * best.fun


@pytest.mark.parametrize("threshold", [0.0, -0.1, -1.0, -np.log(10), -np.log(1000), -600.0])
def test_polynomial_keeps_its_error_relative_to_the_threshold(threshold):
    u = threshold - np.concatenate([np.linspace(0, 8, 2000), np.linspace(8, 40, 400)])
    powers = np.exp(np.outer(u - threshold, 1 + np.arange(len(kernel.sigmoid_below(threshold)))))
    error = np.abs(powers @ kernel.sigmoid_below(threshold) - expit(u)).max()
    assert error <= kernel._GAIN_TOLERANCE * expit(threshold)


def test_normal_mixture_weights_sum_to_one():
    assert sum(weight for weight, _ in kernel._NORMAL_MIXTURE) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("pieces", [None, 40])
@pytest.mark.parametrize("matrix", MATRICES)
def test_known_log_odds_give_the_bayes_risk_itself(matrix, pieces):
    mu = np.array([-800.0, -50, -1, 0, decision_threshold(matrix), 1, 50, 800])
    risk = expected_bayes_risk(mu, 0.0, matrix, pieces=pieces)
    np.testing.assert_array_equal(risk, bayes_risk(mu, matrix))


@pytest.mark.parametrize("pieces", [None, 40])
@pytest.mark.parametrize("matrix", [*MATRICES, [[0, 1e-300], [1e300, 0]], [[0, 1e9], [1e-9, 0]]])
def test_extreme_inputs_stay_finite_without_warnings(matrix, pieces):
    mu = np.array([-1e4, -50, -1e-9, 0, 1e-9, 50, 1e4])[:, None]
    sigma = np.array([0, 5e-324, 1e-200, 1e-8, 1e-3, 1, 30, 1e3, 1e8, 1e200])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        risk = expected_bayes_risk(mu, sigma, matrix, pieces=pieces)
    assert risk.shape == (7, 10)
    assert np.isfinite(risk).all()
    spread = np.ptp(np.asarray(matrix, dtype=float))
    assert risk.min() >= min(matrix[0][0], matrix[1][1]) - 1e-3 * spread
    assert risk.max() <= np.max(matrix) + 1e-3 * spread


def test_a_vanishing_deviation_approaches_the_bayes_risk():
    mu = np.linspace(-40, 40, 401)
    for matrix in MATRICES:
        risk = expected_bayes_risk(mu, 1e-8, matrix)
        np.testing.assert_allclose(risk, bayes_risk(mu, matrix), rtol=0, atol=3e-6 * slope(matrix))


@pytest.mark.parametrize("pieces", [None, 40])
def test_exchanging_the_classes_mirrors_the_log_odds(pieces):
    rng = np.random.default_rng(8)
    mu, sigma = grid(rng, 200)
    for matrix in MATRICES:
        mirrored = np.asarray(matrix)[::-1, ::-1]
        np.testing.assert_allclose(
            expected_bayes_risk(mu, sigma, matrix, pieces=pieces),
            expected_bayes_risk(-mu, sigma, mirrored, pieces=pieces),
            rtol=0,
            # At u* = 0 neither form is mirrored: the two calls agree to twice the error.
            atol=(1e-12 if pieces else 6e-6) * np.ptp(matrix),
        )


def test_sampling_agrees():
    rng = np.random.default_rng(11)
    for matrix in MATRICES:
        for mu, sigma in [(-2.0, 1.5), (0.3, 0.5), (4.0, 6.0)]:
            draws = bayes_risk(rng.normal(mu, sigma, 100_000), matrix)
            standard_error = draws.std() / np.sqrt(draws.size)
            risk = expected_bayes_risk(mu, sigma, matrix)
            assert abs(draws.mean() - risk) <= 5 * standard_error + 3e-6 * np.ptp(matrix)


means = st.floats(-50, 50)
deviations = st.one_of(st.just(0.0), st.floats(-8, 3).map(lambda e: 10.0**e))
right_costs = st.tuples(st.floats(-10, 10), st.floats(-10, 10))
costlier_by = st.tuples(st.floats(0.01, 100), st.floats(0.01, 100))
matrices = st.builds(
    lambda right, extra: np.array(
        [[right[0], right[0] + extra[0]], [right[1] + extra[1], right[1]]]
    ),
    right_costs,
    costlier_by,
)


def mean_probability(mu: float, sigma: float) -> float:
    """E[g(u)] by trapezoids over twelve standard deviations to each side."""
    edges = np.linspace(-12, 12, 4001)
    weights = np.exp(-0.5 * edges**2)
    return float(expit(mu + sigma * edges) @ weights / weights.sum())


@given(means, deviations, matrices)
def test_no_costlier_than_a_label_fixed_in_advance_no_cheaper_than_knowing_the_class(
    mu, sigma, matrix
):
    # Trapezoids resolve the sigmoid while sigma is moderate.
    sigma = min(sigma, 30.0)
    p = mean_probability(mu, sigma)
    risk = expected_bayes_risk(mu, sigma, matrix)
    allowance = 5e-6 * np.ptp(matrix)
    assert risk <= min((1 - p) * matrix[0] + p * matrix[1]) + allowance
    assert risk >= (1 - p) * matrix[0, 0] + p * matrix[1, 1] - allowance


@given(
    means,
    deviations,
    matrices,
    st.floats(0.1, 10),
    st.tuples(st.floats(-20, 20), st.floats(-20, 20)),
)
def test_rescaling_and_shifting_the_costs_of_a_class(mu, sigma, matrix, factor, shift):
    sigma = min(sigma, 30.0)
    p = mean_probability(mu, sigma)
    changed = factor * matrix + np.array(shift)[:, None]
    expected = factor * expected_bayes_risk(mu, sigma, matrix) + (1 - p) * shift[0] + p * shift[1]
    size = factor * np.ptp(matrix) + np.ptp(changed) + abs(shift[0] - shift[1])
    assert expected_bayes_risk(mu, sigma, changed) == pytest.approx(expected, abs=5e-6 * size)


def test_threshold_and_label():
    assert decision_threshold(TABLE_1) == 0
    assert decision_threshold([[0, 1], [10, 0]]) == pytest.approx(-np.log(10))
    assert decision_threshold([[-1, 4], [3, 1]]) == pytest.approx(np.log(5 / 2))
    np.testing.assert_array_equal(label_of([-1.0, 0.0, 1.0], TABLE_1), [0, 1, 1])


def test_label_attains_the_bayes_risk():
    u = np.linspace(-60, 60, 1001)
    for matrix in MATRICES:
        c = np.asarray(matrix)
        cost = expit(-u) * c[0, label_of(u, c)] + expit(u) * c[1, label_of(u, c)]
        np.testing.assert_allclose(cost, bayes_risk(u, c), rtol=0, atol=1e-14 * np.ptp(c))


def test_bayes_risk_keeps_its_digits_in_the_tails():
    assert bayes_risk(-700.0, [[0, 1], [1, 0]]) == pytest.approx(np.exp(-700), rel=1e-12)
    assert bayes_risk(700.0, [[0, 1], [1, 0]]) == pytest.approx(np.exp(-700), rel=1e-12)
    np.testing.assert_array_equal(bayes_risk([-1e9, 1e9], TABLE_1), [-50, -50])


def test_inputs_broadcast_and_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(3)
    mu, sigma = rng.normal(size=(50, 1)), rng.uniform(0, 2, size=7)
    whole = expected_bayes_risk(mu, sigma, TABLE_1)
    assert whole.shape == (50, 7)
    assert expected_bayes_risk(0.0, 1.0, TABLE_1).shape == ()
    assert expected_bayes_risk(np.empty((0, 3)), 1.0, TABLE_1).shape == (0, 3)
    monkeypatch.setattr(kernel, "_BLOCK", 16)
    np.testing.assert_allclose(expected_bayes_risk(mu, sigma, TABLE_1), whole, rtol=1e-13)


@pytest.mark.parametrize(
    "matrix", [[[0, 0], [1, 0]], [[0, 1], [0, 1]], [[0, 1, 2], [1, 0, 2]], [[0, np.inf], [1, 0]]]
)
def test_a_matrix_in_which_an_error_is_free_has_no_threshold(matrix):
    with pytest.raises(InvalidInputError, match="matrix"):
        decision_threshold(matrix)


@pytest.mark.parametrize("matrix", [[[0, np.inf], [1, 0]], [[0, 1]], [0, 1], [[], []], np.eye(3)])
def test_costs_that_are_not_of_two_classes_are_rejected(matrix):
    with pytest.raises(InvalidInputError, match="matrix"):
        expected_bayes_risk(0.0, 1.0, matrix)


@pytest.mark.parametrize("sigma", [-1.0, np.nan, np.inf])
def test_a_deviation_that_is_none_is_rejected(sigma):
    with pytest.raises(InvalidInputError, match="sigma"):
        expected_bayes_risk(0.0, [1.0, sigma], TABLE_1)


@pytest.mark.parametrize(("pieces", "bound"), [(0, 10.0), (40, 0.0), (40, np.inf)])
def test_an_empty_interpolation_is_rejected(pieces, bound):
    with pytest.raises(InvalidInputError, match="pieces"):
        expected_bayes_risk(0.0, 1.0, TABLE_1, pieces=pieces, bound=bound)

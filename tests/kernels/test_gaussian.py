"""Covariance from tables with missing values and conditional means, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.exceptions import InvalidInputError
from adacos.kernels.gaussian import (
    conditional_mean,
    conditional_normal,
    covariance_with_missing,
    unprojected_covariance,
)


def random_covariance(rng: np.random.Generator, p: int) -> np.ndarray:
    factor = rng.normal(size=(p, p))
    scale = 10 ** rng.uniform(-2, 2, size=p)
    return (factor @ factor.T / p + 0.1 * np.eye(p)) * np.outer(scale, scale)


def with_missing(rng: np.random.Generator, X: np.ndarray, rates: np.ndarray) -> np.ndarray:
    return np.where(rng.random(X.shape) < rates, np.nan, X)


def row_by_row(X, observed, mean, covariance):
    """The closed form of the conditional mean, one row at a time, in units of the deviations.

    As they are, the covariances have condition numbers of 10^8.
    """
    unit = np.sqrt(np.diag(covariance))
    correlation, filled = covariance / np.outer(unit, unit), X.copy()
    for row, seen in enumerate(observed):
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        inner = np.linalg.pinv(correlation[np.ix_(o, o)], hermitian=True)
        away = correlation[np.ix_(m, o)] @ inner @ ((X[row, o] - mean[o]) / unit[o])
        filled[row, m] = mean[m] + unit[m] * away
    return filled


def test_nothing_missing_gives_the_plain_covariance():
    rng = np.random.default_rng(1)
    X = rng.multivariate_normal(np.arange(5.0), random_covariance(rng, 5), size=200)
    mean, covariance = covariance_with_missing(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True), rtol=1e-10)


def test_divides_by_the_observed_fractions():
    X = np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, 6.0], [5.0, 1.0]])
    mean, covariance = unprojected_covariance(X)
    np.testing.assert_allclose(mean, [3, 3])
    # Centred: (-2, -1), (0, .), (., 3), (2, -2), with three quarters of each column observed.
    np.testing.assert_allclose(
        covariance, [[8 / 4 / 0.75, -2 / 4 / 0.75**2], [-2 / 4 / 0.75**2, 14 / 4 / 0.75]]
    )


def test_estimate_is_unbiased_before_projection():
    rng = np.random.default_rng(2)
    p, n, repetitions = 5, 200, 2000
    truth, rates = random_covariance(rng, p), np.array([0.0, 0.1, 0.3, 0.5, 0.2])
    estimates = np.empty((repetitions, p, p))
    for k in range(repetitions):
        X = with_missing(rng, rng.multivariate_normal(np.ones(p), truth, size=n), rates)
        estimates[k] = unprojected_covariance(X)[1]
    deviation = np.sqrt(np.diag(truth))
    error = np.abs(estimates.mean(axis=0) - truth) / np.outer(deviation, deviation)
    monte_carlo = estimates.std(axis=0) / np.outer(deviation, deviation) / np.sqrt(repetitions)
    # Estimated means cost a relative bias of 1 / (n δ), as they do with nothing missing.
    bias = 1 / (n * (1 - rates.max()))
    assert np.all(error <= 4.5 * monte_carlo + bias)


def test_projection_is_positive_definite_and_keeps_the_variances():
    rng = np.random.default_rng(3)
    # Three factors behind twelve columns: the estimate has negative eigenvalues.
    X = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 12)) + 0.05 * rng.normal(size=(150, 12))
    X = with_missing(rng, X * 10 ** rng.uniform(-4, 4, 12), rng.uniform(0, 0.5, 12))
    estimate = unprojected_covariance(X)[1]
    covariance = covariance_with_missing(X)[1]
    deviation = np.sqrt(np.diag(estimate))
    assert np.linalg.eigvalsh(estimate / np.outer(deviation, deviation))[0] < 0
    assert np.linalg.eigvalsh(covariance / np.outer(deviation, deviation))[0] > 0
    np.testing.assert_array_equal(covariance, covariance.T)
    np.testing.assert_allclose(np.diag(covariance), np.diag(estimate), rtol=1e-12)


def test_projection_leaves_conditional_means_close_to_the_hidden_values():
    noise = 0.1
    for seed in range(5):
        rng = np.random.default_rng(seed)
        complete = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 20))
        complete += noise * rng.normal(size=complete.shape)
        X = with_missing(rng, complete, np.linspace(0, 0.04, 20))
        hidden = np.isnan(X)
        filled = conditional_mean(X, ~hidden, *covariance_with_missing(X))
        # No prediction beats the noise; eigenvalues lifted to 1e-6 only give 5 to 12 times it.
        assert np.sqrt(np.mean((filled - complete)[hidden] ** 2)) < 2 * noise


def test_scale_of_a_column_does_not_matter():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(80, 6))
    X = with_missing(rng, X, np.full(6, 0.3))
    scale, shift = 2.0 ** np.arange(-9, 9, 3), np.arange(6.0)
    mean, covariance = covariance_with_missing(X)
    mean_scaled, covariance_scaled = covariance_with_missing(X * scale + shift)
    np.testing.assert_allclose(mean_scaled, mean * scale + shift, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(covariance_scaled, covariance * np.outer(scale, scale), rtol=1e-7)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 3])
def test_constant_column(value):
    rng = np.random.default_rng(6)
    X = rng.multivariate_normal(np.zeros(4), random_covariance(rng, 4), size=100)
    X[:, 2] = value
    X = with_missing(rng, X, np.array([0.1, 0.2, 0.4, 0.3]))
    mean, covariance = covariance_with_missing(X)
    assert np.all(covariance[2] == 0)
    assert np.all(covariance[:, 2] == 0)
    observed = ~np.isnan(X)
    filled = conditional_mean(X, observed, mean, covariance)
    np.testing.assert_allclose(filled[:, 2], value, rtol=1e-14)
    others = [0, 1, 3]
    np.testing.assert_allclose(
        filled[:, others],
        row_by_row(
            X[:, others], observed[:, others], mean[others], covariance[np.ix_(others, others)]
        ),
        rtol=1e-9,
    )


def test_conditional_mean_is_the_closed_form_of_each_row():
    rng = np.random.default_rng(7)
    for p, rate in [(2, 0.5), (9, 0.1), (30, 0.12)]:
        covariance, mean = random_covariance(rng, p), rng.normal(size=p)
        X = with_missing(rng, rng.multivariate_normal(mean, covariance, size=300), np.full(p, rate))
        observed = ~np.isnan(X)
        filled = conditional_mean(X, observed, mean, covariance)
        expected = row_by_row(X, observed, mean, covariance)
        deviation = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(filled / deviation, expected / deviation, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(filled[observed], X[observed])


def test_what_is_not_observed_is_not_read():
    rng = np.random.default_rng(8)
    covariance = random_covariance(rng, 4)
    X = rng.normal(size=(50, 4))
    observed = rng.random(X.shape) < 0.6
    np.testing.assert_array_equal(
        conditional_mean(X, observed, np.zeros(4), covariance),
        conditional_mean(np.where(observed, X, np.nan), observed, np.zeros(4), covariance),
    )


def test_nothing_observed_gives_the_mean_and_everything_observed_the_row():
    rng = np.random.default_rng(9)
    mean, covariance = np.array([1.0, -2.0, 3.0]), random_covariance(rng, 3)
    empty = np.full((2, 3), np.nan)
    np.testing.assert_array_equal(
        conditional_mean(empty, ~np.isnan(empty), mean, covariance), [mean, mean]
    )
    full = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(
        conditional_mean(full, np.ones((4, 3), dtype=bool), mean, covariance), full
    )
    assert conditional_mean(full[:0], full[:0] > 0, mean, covariance).shape == (0, 3)


def test_singular_covariance_is_inverted_on_its_range():
    rng = np.random.default_rng(10)
    factor = rng.normal(size=(5, 2))
    complete = rng.normal(size=(100, 2)) @ factor.T
    observed = np.ones(complete.shape, dtype=bool)
    observed[np.arange(100), np.arange(100) % 5] = False
    filled = conditional_mean(complete, observed, np.zeros(5), factor @ factor.T)
    # Four columns determine the two factors, hence the fifth column.
    np.testing.assert_allclose(filled, complete, rtol=0, atol=1e-9)


def test_all_columns_constant():
    X = np.array([[1.0, 2.0], [np.nan, 2.0]])
    mean, covariance = covariance_with_missing(X)
    np.testing.assert_array_equal(covariance, np.zeros((2, 2)))
    np.testing.assert_array_equal(
        conditional_mean(X, ~np.isnan(X), mean, covariance), [[1, 2], [1, 2]]
    )


@pytest.mark.parametrize("X", [[[1.0, np.nan], [2.0, np.nan]], [1.0, 2.0], np.empty((0, 2))])
def test_a_column_never_observed_is_rejected(X):
    with pytest.raises(InvalidInputError, match="X"):
        covariance_with_missing(X)


def test_patterns_have_the_conditional_covariance_of_each_row():
    rng = np.random.default_rng(3)
    mix = rng.standard_normal((6, 6))
    for covariance in (mix @ mix.T, mix[:, :3] @ mix[:, :3].T):  # the second is singular
        covariance[4] = covariance[:, 4] = 0.0  # a constant column
        mean = rng.standard_normal(6)
        table = rng.multivariate_normal(mean, covariance, 500)
        table[rng.random(table.shape) < 0.4] = np.nan
        table[:3] = np.nan
        _, found = conditional_normal(table, ~np.isnan(table), mean, covariance)
        seen = np.zeros(len(table), dtype=bool)
        for patterns in found:
            for part in patterns.parts(50):
                for row, which in zip(part.rows, part.which, strict=True):
                    seen[row] = True
                    missing = np.flatnonzero(np.isnan(table[row]))
                    known = np.flatnonzero(~np.isnan(table[row]))
                    cross = covariance[np.ix_(missing, known)]
                    inner = np.linalg.pinv(covariance[np.ix_(known, known)], rcond=1e-10)
                    left = covariance[np.ix_(missing, missing)] - cross @ inner @ cross.T
                    np.testing.assert_array_equal(patterns.missing[which], missing)
                    np.testing.assert_allclose(patterns.covariance[which], left, atol=1e-8)
        np.testing.assert_array_equal(seen, np.isnan(table).any(axis=1))

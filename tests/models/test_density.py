"""p(z | x_A) against textbook Bayesian regression, one pair of sets at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, load_pima
from adacos.models.density import ConditionalDensity, fit_densities, moment_matrix
from adacos.typing import Floats, Ints
from tests.models.oracles import predictive


class Problem(NamedTuple):
    """Five covariates: numbers, one category of three (encoded columns 2, 3, 4), a constant."""

    values: Floats
    source: Ints
    columns: Floats
    group: Ints
    coefs: Floats
    order: Ints
    sizes: Ints


def problem(seed: int, n: int = 80, n_free: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    source = np.array([0, 1, 2, 2, 2, 3, 4])
    mixing = rng.normal(size=(7, 7))
    values = rng.normal(size=(n, 7)) @ mixing
    values[:, 5] = 0.0  # covariate 3 is constant and has no basis column
    group = np.array([0, 0, 0, 1, 1, 2, 2, 2, 4, 4])
    columns = np.tanh(values[:, source != 3] @ rng.normal(size=(6, 10)))
    columns -= columns[: n // 2].mean(axis=0)
    order = rng.permutation(5)
    sizes = np.arange(n_free, 6)
    coefs = rng.normal(size=(len(sizes), 10))
    for j, size in enumerate(sizes):
        coefs[j, ~np.isin(group, order[:size])] = 0.0
    return Problem(values, source, columns, group, coefs, order, sizes)


def fit(w: Problem, values: Floats | None = None, columns: Floats | None = None) -> Any:
    gram = moment_matrix(
        w.values if values is None else values, w.columns if columns is None else columns
    )
    return fit_densities(gram, w.source, w.group, w.coefs, w.order, w.sizes)


def contribution(w: Problem, j: int, covariates: Ints) -> Floats:
    inside = np.isin(w.group, covariates)
    return w.columns[:, inside] @ w.coefs[j, inside]


@pytest.mark.parametrize("n_free", [0, 2])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_moments_of_every_pair_are_those_of_the_textbook(seed: int, n_free: int) -> None:
    w = problem(seed, n_free=n_free)
    densities = fit(w)
    assert len(densities) == len(w.sizes) - 1
    rng = np.random.default_rng(seed)
    for i, density in enumerate(densities):
        inside = w.order[: w.sizes[i]]
        regressors = np.flatnonzero(np.isin(w.source, inside))
        np.testing.assert_array_equal(density.regressors, regressors)
        r = rng.normal(size=(6, len(regressors)))
        mean, sd = density.moments(r)
        assert mean.shape == sd.shape == (6, len(w.sizes) - 1 - i)
        for later, j in enumerate(range(i + 1, len(w.sizes))):
            z = contribution(w, j, w.order[w.sizes[i] : w.sizes[j]])
            expected_mean, expected_sd = predictive(w.values[:, regressors], z, r)
            np.testing.assert_allclose(mean[:, later], expected_mean, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(sd[:, later], expected_sd, rtol=1e-6, atol=1e-9)


def test_nothing_acquired_gives_the_marginal_moments() -> None:
    w = problem(3)
    mean, sd = fit(w)[0].moments(np.empty((2, 0)))
    n = len(w.values)
    for later in range(5):
        z = contribution(w, later + 1, w.order)
        np.testing.assert_allclose(mean[:, later], z.mean(), atol=1e-12)
        expected = np.sqrt(np.var(z) * (n + 1) / (n - 2) * (1 + 1 / n))
        np.testing.assert_allclose(sd[:, later], expected, rtol=1e-9)


def test_a_constant_covariate_brings_nothing() -> None:
    w = problem(7)
    w = w._replace(order=np.array([0, 1, 2, 4, 3]))
    for j, size in enumerate(w.sizes):
        w.coefs[j, ~np.isin(w.group, w.order[:size])] = 0.0
    densities = fit(w)
    last: ConditionalDensity = densities[4]
    mean, sd = last.moments(np.random.default_rng(0).normal(size=(3, 6)))
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_array_equal(sd, 0.0)


def test_more_rows_sharpen_the_density_as_if_they_had_been_there() -> None:
    w, extra = problem(8), problem(9)
    together = fit(w, np.vstack([w.values, extra.values]), np.vstack([w.columns, extra.columns]))
    both = w._replace(
        values=np.vstack([w.values, extra.values]), columns=np.vstack([w.columns, extra.columns])
    )
    r = np.zeros((1, len(together[1].regressors)))
    z = contribution(both, 3, w.order[1:3])
    mean, sd = predictive(both.values[:, together[1].regressors], z, r)
    np.testing.assert_allclose(together[1].moments(r)[0][:, 1], mean, rtol=1e-6)
    np.testing.assert_allclose(together[1].moments(r)[1][:, 1], sd, rtol=1e-6)
    np.testing.assert_allclose(
        moment_matrix(both.values, both.columns),
        moment_matrix(w.values, w.columns) + moment_matrix(extra.values, extra.columns),
        rtol=1e-10,
    )


def test_the_spread_is_calibrated_on_new_rows() -> None:
    """On Gaussian data (z - mean) / sd has mean 0 and variance 1 over new rows."""
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(400):
        X = rng.normal(size=(21, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.7], [0, 0, 1]])
        values, columns = X, X - X[:20].mean(axis=0)
        coefs = np.array([[0.0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 2]])
        gram = moment_matrix(values[:20], columns[:20])
        every = np.arange(3)
        densities = fit_densities(gram, every, every, coefs, every, np.arange(4))
        mean, sd = densities[1].moments(values[20:, :1])
        scores.append((columns[20, 1:] @ coefs[3, 1:] - mean[0, 1]) / sd[0, 1])
    scores = np.array(scores)
    assert abs(scores.mean()) < 3 / np.sqrt(400)
    # Heavy tails: the variance of the mean square is at most that of a t with 21 degrees.
    assert abs(np.mean(scores**2) - 1) < 3 * np.sqrt(2.6 / 400)


def test_few_rows_leave_one_degree_of_freedom_for_the_intercept() -> None:
    """Nothing acquired, 10 rows: E[score²] is n (n - 2) / ((n + 1) (n - 3)) = 1.039 exactly.

    With one degree of freedom more it would be 1.169.
    """
    rng = np.random.default_rng(1)
    n, draws, source = 10, 20_000, np.arange(1)
    z = rng.normal(size=(draws, n + 1))
    scores = np.empty(draws)
    for k, row in enumerate(z):
        columns = row[:n, None] - row[:n].mean()
        density = fit_densities(
            moment_matrix(row[:n, None], columns),
            source,
            source,
            np.array([[0.0], [1.0]]),
            source,
            np.arange(2),
        )[0]
        mean, sd = density.moments(np.empty((1, 0)))
        scores[k] = (row[n] - row[:n].mean() - mean[0, 0]) / sd[0, 0]
    squares = scores**2
    error = squares.std() / np.sqrt(draws)
    assert abs(squares.mean() - n * (n - 2) / ((n + 1) * (n - 3))) < 3 * error


# Through a fitted policy


@pytest.fixture(scope="module")
def pima() -> tuple[Any, Any, Any]:
    data = load_pima(as_frame=False)
    X, y = data.X[:300], data.y[:300]
    costs = Costs(list(data.prices.values()), false_positive=100, false_negative=1000)
    return X, y, AdaCOSClassifier(costs, strengths="common").fit(X, y)


def test_densities_of_a_fitted_policy(pima: tuple[Any, Any, Any]) -> None:
    X, _, policy = pima
    model = policy.model_
    columns = model.basis.transform(X)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    rng = np.random.default_rng(0)
    for _ in range(8):
        i, j = sorted(rng.choice(len(model.sequence), 2, replace=False))
        inside, outside = (
            model.sequence.set(i),
            np.setdiff1d(model.sequence.set(j), model.sequence.set(i)),
        )
        mask = np.isin(model.basis.group, outside)
        z = columns[:, mask] @ model.coefs[j, mask]
        regressors = np.sort(inside)
        r = standard[:5][:, regressors]
        expected_mean, expected_sd = predictive(standard[:, regressors], z, r)
        mean, sd = model.densities[i].moments(r)
        np.testing.assert_allclose(mean[:, j - i - 1], expected_mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(sd[:, j - i - 1], expected_sd, rtol=1e-6, atol=1e-9)


def test_unlabelled_rows_enter_the_densities_and_nothing_else(pima: tuple[Any, Any, Any]) -> None:
    X, y, policy = pima
    data = load_pima(as_frame=False)
    further = data.X[300:]
    with_more = AdaCOSClassifier(policy.costs, strengths="common").fit(X, y, X_unlabeled=further)
    one, other = policy.model_, with_more.model_
    np.testing.assert_array_equal(one.sequence.order, other.sequence.order)
    np.testing.assert_allclose(one.coefs, other.coefs, rtol=1e-8, atol=1e-10)
    # Beyond the labelled rows' range a value counts as its nearer end.
    every = np.clip(np.vstack([X, further]), X.min(axis=0), X.max(axis=0))
    standard = (every - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(
        other.moments, moment_matrix(standard, other.basis.transform(every)), rtol=1e-8, atol=1e-8
    )
    r = np.zeros((1, 3))
    assert np.abs(one.densities[3].moments(r)[1] - other.densities[3].moments(r)[1]).max() > 1e-3

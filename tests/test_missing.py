"""Missing values as distributions, against closed forms, sampling and worlds with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from adacos import AdaCOSClassifier, Costs
from adacos.models.density import moment_matrix
from adacos.models.expected_rows import expected_rows
from adacos.models.gam import FAMILIES
from adacos.models.missing import fill_holes, fit_joint, missing_contribution
from adacos.models.set_fits import prepare
from adacos.tables.encoder import TableEncoder


def gaussian_rows(rng, n, p=4, correlation=0.5):
    covariance = correlation + (1 - correlation) * np.eye(p)
    return rng.multivariate_normal(np.zeros(p), covariance, size=n)


def with_holes(rng, X, rate=0.3):
    return np.where(rng.random(X.shape) < rate, np.nan, X)


def prepared(X, y=None, **parameters):
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    encoder = TableEncoder.fit(X, names)
    y = np.arange(len(X)) % 2.0 if y is None else y
    return prepare(
        encoder.transform(X),
        y,
        encoder,
        n_splines=10,
        families=FAMILIES["common"],
        cv=5,
        random_state=0,
        **parameters,
    )


def test_a_complete_table_has_no_holes_and_its_plain_moments():
    X = gaussian_rows(np.random.default_rng(0), 200)
    fits = prepared(X)
    assert fits.holes is None
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(
        fits.moments, moment_matrix(standard, fits.basis.transform(X)), rtol=1e-9, atol=1e-8
    )


def test_moments_of_linear_columns_are_those_of_the_e_step():
    """Σ E[rr' | observed] with the conditional covariance of each row, written out."""
    rng = np.random.default_rng(1)
    X = with_holes(rng, gaussian_rows(rng, 120))
    fits = prepared(X)
    mean, covariance, p = fits.joint.mean, fits.joint.covariance, X.shape[1]
    expected = np.zeros((p, p))
    for row in X:
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        weights = covariance[np.ix_(m, o)] @ np.linalg.pinv(covariance[np.ix_(o, o)])
        full = row.copy()
        full[m] = mean[m] + weights @ (row[o] - mean[o])
        full = (full - fits.basis.mean) / fits.basis.scale
        left = np.zeros((p, p))
        left[np.ix_(m, m)] = covariance[np.ix_(m, m)] - weights @ covariance[np.ix_(o, m)]
        expected += np.outer(full, full) + left / np.outer(fits.basis.scale, fits.basis.scale)
    np.testing.assert_allclose(fits.moments[1 : p + 1, 1 : p + 1], expected, rtol=1e-8, atol=1e-8)
    # The linear basis columns are the standardised values, but for a shift.
    linear = 1 + p + np.flatnonzero(fits.basis.linear[fits.basis.term])
    shift = fits.moments[0, linear] / len(X) - fits.moments[0, 1 : p + 1] / len(X)
    both = fits.moments[np.ix_(linear, linear)] - fits.moments[1 : p + 1, 1 : p + 1]
    center = fits.moments[0, 1 : p + 1]
    np.testing.assert_allclose(
        both,
        np.outer(shift, center) + np.outer(center, shift) + len(X) * np.outer(shift, shift),
        atol=1e-7,
    )
    assert np.linalg.eigvalsh(fits.moments)[0] > -1e-8 * len(X)


def test_moments_of_curved_columns_agree_with_sampling():
    rng = np.random.default_rng(2)
    complete = gaussian_rows(rng, 2000, p=3)
    joint = fit_joint(complete, np.arange(3), ("numeric",) * 3)
    fits = prepared(complete)
    row = np.array([[np.nan, 0.8, np.nan]])
    expected = expected_rows(joint, fits.basis, fill_holes(joint, row, np.ones(3, dtype=bool)))
    weights = joint.covariance[[0, 2], 1] / joint.covariance[1, 1]
    center = joint.mean[[0, 2]] + weights * (0.8 - joint.mean[1])
    left = joint.covariance[np.ix_([0, 2], [0, 2])] - joint.covariance[1, 1] * np.outer(
        weights, weights
    )
    draws = np.full((200_000, 3), 0.8)
    draws[:, [0, 2]] = rng.multivariate_normal(center, left, size=len(draws))
    columns = fits.basis.transform(draws)
    spread = columns.std(axis=0)
    np.testing.assert_allclose(expected.columns[0], columns.mean(axis=0), atol=0.03 * spread.max())
    covariance = expected.covariance[4:, 4:]
    actual = np.cov(columns.T, bias=True)
    scale = np.sqrt(np.outer(np.diag(actual), np.diag(actual))) + 1e-12
    moving = np.flatnonzero(spread > 0.2 * spread.max())
    error = (np.abs(covariance - actual) / scale)[np.ix_(moving, moving)]
    # Sixteen points do not reach the tails, where some columns do all their moving.
    assert error.max() < 0.2
    assert np.median(error) < 0.05
    # The variance of a model's contribution, other covariates missing too.
    coef = rng.normal(size=(1, columns.shape[1])) / spread.clip(0.2)
    part = missing_contribution(
        joint, fits.basis, coef, fill_holes(joint, row, np.ones(3, dtype=bool))
    )
    missing = np.isin(fits.basis.group, [0, 2])
    contribution = columns[:, missing] @ coef[0, missing]
    assert part.mean[0, 0] == pytest.approx(contribution.mean(), abs=0.05 * contribution.std())
    assert part.variance[0, 0] == pytest.approx(contribution.var(), rel=0.1)


def test_a_skewed_covariate_keeps_its_shape():
    """Nothing observed: mean and variance of any function are those of the training rows."""
    rng = np.random.default_rng(3)
    X = np.exp(rng.normal(size=(3000, 2)))
    fits = prepared(X)
    holes = fill_holes(fits.joint, np.full((1, 2), np.nan), np.ones(2, dtype=bool))
    coef = rng.normal(size=(4, len(fits.basis.group)))
    part = missing_contribution(fits.joint, fits.basis, coef, holes)
    actual = fits.basis.transform(X) @ coef.T
    np.testing.assert_allclose(part.mean[0], 0.0, atol=0.15 * actual.std(axis=0).min())
    np.testing.assert_allclose(part.variance[0], actual.var(axis=0), rtol=0.25)


@pytest.mark.parametrize("n_categories", [2, 4])
def test_categories_get_the_probabilities_of_the_normal_discriminant(n_categories):
    rng = np.random.default_rng(4)
    n, share = 60_000, np.array([0.1, 0.2, 0.3, 0.4])[-n_categories:]
    share = share / share.sum()
    centers = np.array([[2.0, 0.0], [0.0, 2.5], [-1.5, 0.0], [0.5, -1.0]])[:n_categories]
    category = rng.choice(n_categories, size=n, p=share)
    x = centers[category] + rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], size=n)
    if n_categories == 2:
        encoded, source, kinds = np.column_stack([x, 3.0 + category]), [0, 1, 2], "binary"
    else:
        encoded = np.column_stack([x, np.eye(n_categories)[category]])
        source, kinds = [0, 1, 2, 2, 2, 2], "categorical"
    joint = fit_joint(encoded, np.array(source), ("numeric", "numeric", kinds))
    rows = encoded[:500].copy()
    rows[:, 2:] = np.nan
    filled = fill_holes(joint, rows, np.ones(len(source), dtype=bool)).values[:, 2:]
    density = np.stack(
        [
            p * multivariate_normal(c, [[1, 0.3], [0.3, 1]]).pdf(x[:500])
            for p, c in zip(share, centers, strict=True)
        ],
        axis=1,
    )
    truth = density / density.sum(axis=1, keepdims=True)
    probability = np.hstack([4.0 - filled, filled - 3.0]) if n_categories == 2 else filled
    np.testing.assert_allclose(probability, truth, atol=0.02)


def test_categories_stay_on_the_simplex_in_training_too():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    n = 300
    group = rng.integers(0, 4, n)
    a = 3.0 * group + rng.normal(size=n)
    table = pandas.DataFrame({"a": a, "group": np.array(list("wxyz"), dtype=object)[group]})
    table.loc[::3, "group"] = None
    y = rng.random(n) < expit(group - 1.5)
    policy = AdaCOSClassifier(Costs(), sequence="forward", strengths="common").fit(table, y)
    complete = policy._set_fits.complete[:, 1:]
    assert complete.min() >= 0
    np.testing.assert_allclose(complete.sum(axis=1), 1.0)


def linear_world(rng, n, correlation=0.0):
    X = gaussian_rows(rng, n, correlation=correlation)
    y = rng.random(n) < expit(-1.0 + X @ np.array([1.0, 1.2, 1.35, 0.0]))
    return X, y.astype(int)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_holes_in_training_neither_narrow_the_outlook_nor_flatten_the_model(correlation):
    """30 % missing: the spread of z is that of new rows, and the calibration slope is 1."""
    slopes = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = linear_world(rng, 1500, correlation)
        costs = Costs([0.3] * 4, false_positive=10, false_negative=100)
        policy = AdaCOSClassifier(costs, strengths="common").fit(with_holes(rng, X), y)
        fresh, labels = linear_world(rng, 20_000, correlation)
        model = policy.model_
        columns = model.basis.transform(fresh)
        _, sd = model.densities[0].moments(np.empty((1, 0)))
        actual = (columns @ model.coefs[1:].T).std(axis=0)
        np.testing.assert_allclose(sd[0], actual, rtol=0.06)
        log_odds = columns @ model.coefs[-1] + model.intercepts[-1]
        slopes.append(calibration_slope(log_odds, labels))
    # Filled in as if known: sd 20 % too small, mean slope 1.17.
    assert np.mean(slopes) == pytest.approx(1.0, abs=0.06)


def calibration_slope(log_odds, y):
    """Slope of a logistic regression of y on the log-odds."""
    design, beta = np.column_stack([np.ones_like(log_odds), log_odds]), np.zeros(2)
    for _ in range(30):
        p = expit(design @ beta)
        hessian = (design.T * (p * (1 - p))) @ design
        beta = beta + np.linalg.solve(hessian, design.T @ (y - p))
    return float(beta[1])

"""Missing values as distributions, against closed forms, sampling and worlds with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import multivariate_normal

from adacos import AdaCOSClassifier, Costs, FullModelClassifier
from adacos.kernels.folds import stratified_folds
from adacos.metrics import total_costs
from adacos.models.additive import FAMILIES
from adacos.models.density import moment_matrix
from adacos.models.expected_rows import expected_rows
from adacos.models.lookahead import begin, look_ahead
from adacos.models.missing import fill_missing, fit_joint, missing_contribution
from adacos.models.set_fits import prepare
from adacos.tables.encoder import TableEncoder
from tests.models.oracles import calibration_slope


def gaussian_rows(rng, n, p=4, correlation=0.5):
    covariance = correlation + (1 - correlation) * np.eye(p)
    return rng.multivariate_normal(np.zeros(p), covariance, size=n)


def with_missing(rng, X, rate=0.3):
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
        fold=stratified_folds(encoder.transform(X), y, 5, 0),
        **parameters,
    )


def test_a_complete_table_has_no_missing_values_and_its_plain_moments():
    X = gaussian_rows(np.random.default_rng(0), 200)
    fits = prepared(X)
    assert fits.missing is None
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(
        fits.moments, moment_matrix(standard, fits.basis.transform(X)), rtol=1e-9, atol=1e-8
    )


@pytest.mark.parametrize("skewed", [False, True])
def test_moments_are_those_of_the_complete_rows(skewed):
    """What missing values hide, in expectation: the Gram matrix of the values that were there."""
    rng = np.random.default_rng(1)
    complete = gaussian_rows(rng, 4000)
    complete = np.exp(0.5 * complete) if skewed else complete
    X = with_missing(rng, complete)
    fits = prepared(X)
    standard = fits.basis.standardise(complete)
    truth = moment_matrix(standard, fits.basis.transform(complete)) / len(X)
    moments = fits.moments / len(X)
    values = slice(1, 5)
    # At their conditional means as if known, variances were 15 to 25% too small.
    np.testing.assert_allclose(
        np.diag(moments)[values], np.diag(truth)[values], rtol=0.10 if skewed else 0.05
    )
    np.testing.assert_allclose(moments[values, values], truth[values, values], atol=0.12)
    spread = np.sqrt(np.diag(truth))
    error = np.abs(moments - truth) / np.outer(spread, spread)
    assert np.quantile(error, 0.95) < 0.08
    assert np.linalg.eigvalsh(fits.moments)[0] > -1e-8 * len(X)


def scores_given(joint, seen, values, missing):
    """Conditional mean and covariance of missing scores, written out."""
    covariance, mean = joint.covariance, joint.mean
    inner = np.linalg.inv(covariance[np.ix_(seen, seen)])
    weights = covariance[np.ix_(missing, seen)] @ inner
    center = mean[missing] + weights @ (values - mean[seen])
    return center, covariance[np.ix_(missing, missing)] - weights @ covariance[
        np.ix_(seen, missing)
    ]


def test_moments_of_one_row_agree_with_sampling():
    rng = np.random.default_rng(2)
    complete = np.exp(0.4 * gaussian_rows(rng, 2000, p=3))
    fits = prepared(complete)
    joint, basis = fits.joint, fits.basis
    row = np.array([[np.nan, 1.5, np.nan]])
    everything = np.ones(3, dtype=bool)
    completed = fill_missing(joint, row, everything)
    expected = expected_rows(joint, basis, completed)
    seen = joint.to_scores(row)[0, [1]]
    draws = rng.multivariate_normal(*scores_given(joint, [1], seen, [0, 2]), size=200_000)
    rows = np.full((len(draws), 3), 1.5)
    for place, k in enumerate([0, 2]):
        rows[:, k] = np.interp(draws[:, place], joint.scores, joint.quantiles[k])
    np.testing.assert_allclose(completed.values[0], rows.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(completed.spread[0], rows.std(axis=0), rtol=0.06, atol=1e-9)
    columns = basis.transform(rows)
    spread = columns.std(axis=0)
    np.testing.assert_allclose(expected.columns[0], columns.mean(axis=0), atol=0.03 * spread.max())
    actual = np.cov(columns.T, bias=True)
    scale = np.sqrt(np.outer(np.diag(actual), np.diag(actual))) + 1e-12
    moving = np.flatnonzero(spread > 0.2 * spread.max())
    error = (np.abs(expected.covariance[4:, 4:] - actual) / scale)[np.ix_(moving, moving)]
    # Sixteen points do not reach the tails, where some columns do all their moving.
    assert error.max() < 0.3
    assert np.median(error) < 0.06
    # The variance of a model's contribution.
    coef = rng.normal(size=(5, columns.shape[1])) / spread.clip(0.2)
    part = missing_contribution(joint, basis, coef, completed)
    missing = np.isin(basis.group, [0, 2])
    contribution = columns[:, missing] @ coef[:, missing].T
    np.testing.assert_allclose(
        part.mean[0], contribution.mean(axis=0), atol=0.05 * contribution.std(axis=0).max()
    )
    np.testing.assert_allclose(part.variance[0], contribution.var(axis=0), rtol=0.2)
    np.testing.assert_allclose(sum(part.means.values()), part.mean)


def test_nothing_observed_leaves_the_marginal_distribution():
    rng = np.random.default_rng(3)
    X = np.exp(0.6 * rng.normal(size=(3000, 2)))
    fits = prepared(X)
    completed = fill_missing(fits.joint, np.full((1, 2), np.nan), np.ones(2, dtype=bool))
    coef = rng.normal(size=(4, len(fits.basis.group)))
    part = missing_contribution(fits.joint, fits.basis, coef, completed)
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
    filled = fill_missing(joint, rows, np.ones(len(source), dtype=bool)).values[:, 2:]
    density = np.stack(
        [
            p * multivariate_normal(c, [[1, 0.3], [0.3, 1]]).pdf(x[:500])
            for p, c in zip(share, centers, strict=True)
        ],
        axis=1,
    )
    truth = density / density.sum(axis=1, keepdims=True)
    probability = np.hstack([4.0 - filled, filled - 3.0]) if n_categories == 2 else filled
    # Ranks bend the classes a little.
    assert np.abs(probability - truth).mean() < 0.03
    assert probability.min() >= 0
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)


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


def linear_problem(rng, n, correlation=0.0):
    X = gaussian_rows(rng, n, correlation=correlation)
    y = rng.random(n) < expit(-1.0 + X @ np.array([1.0, 1.2, 1.35, 0.0]))
    return X, y.astype(int)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_missing_values_in_training_neither_narrow_the_lookahead_nor_flatten_the_model(correlation):
    """30% missing: the spread of z is that of new rows, and the calibration slope is 1."""
    slopes = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = linear_problem(rng, 1500, correlation)
        costs = Costs([0.3] * 4, false_positive=10, false_negative=100)
        policy = AdaCOSClassifier(costs, strengths="common").fit(with_missing(rng, X), y)
        fresh, labels = linear_problem(rng, 20_000, correlation)
        model = policy.model_
        columns = model.basis.transform(fresh)
        _, sd = model.densities[0].moments(np.empty((1, 0)))
        actual = (columns @ model.coefs[1:].T).std(axis=0)
        np.testing.assert_allclose(sd[0], actual, rtol=0.08)
        log_odds = columns @ model.coefs[-1] + model.intercepts[-1]
        slopes.append(calibration_slope(log_odds, labels))
    # Filled in as if known: sd 20% too small, mean slope 1.17.
    assert np.mean(slopes) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("missing", [[0], [2], [0, 1], [0, 1, 2, 3]])
def test_what_is_unavailable_is_integrated_out(missing):
    """A strong covariate at its conditional mean made the answers too sure: slope 0.7 to 0.9."""
    slopes, differences = [], []
    for seed in range(3):
        rng = np.random.default_rng([seed, 7])
        X, y = linear_problem(rng, 4000, 0.3)
        costs = Costs([0.0] * 4, false_positive=10, false_negative=40)
        policy = FullModelClassifier(costs, strengths="common", cv=3).fit(X, y)
        fresh, labels = linear_problem(rng, 20_000, 0.3)
        fresh[:, missing] = np.nan
        result = policy.acquire(fresh)
        differences.append(result.probability.mean() - y.mean())
        if len(missing) < 4:
            slopes.append(calibration_slope(logit(result.probability), labels))
        costs_paid = total_costs(result, labels, costs)
        error = costs_paid.std() / np.sqrt(len(labels))
        constant = min(10 * np.mean(labels == 0), 40 * np.mean(labels == 1))
        assert costs_paid.mean() <= constant + 2 * error
    assert np.mean(differences) == pytest.approx(0.0, abs=0.01)
    if slopes:
        assert np.mean(slopes) == pytest.approx(1.0, abs=0.05)


def test_nothing_entered_is_answered_by_the_base_rate():
    rng = np.random.default_rng(8)
    X, y = linear_problem(rng, 3000)
    y = (rng.random(3000) < expit(-3.0 + X @ np.array([2.0, 1.2, 0.5, 0.0]))).astype(int)
    costs = Costs([0.0, 1.0, 1.0, 1.0], false_positive=10, false_negative=40)
    policy = AdaCOSClassifier(costs, strengths="common").fit(X, y)
    nothing = np.full((1, 4), np.nan)
    assert policy.acquire(nothing).probability[0] == pytest.approx(y.mean(), abs=0.015)
    step = policy.consultation().next()
    assert step.explanation.probability == pytest.approx(y.mean(), abs=0.015)


def test_the_lookahead_of_rows_with_missing_values_is_as_wide_as_what_they_can_learn():
    """The free twin of the next covariate is missing: that covariate brings what the twin would."""
    rng = np.random.default_rng(9)
    twin = rng.normal(size=(3000, 1))
    X = np.hstack([twin, twin + 0.3 * rng.normal(size=(3000, 1))])
    y = (rng.random(3000) < expit(2.0 * X[:, 0])).astype(int)
    costs = Costs([0.0, 1.0], false_positive=10, false_negative=10)
    policy = AdaCOSClassifier(costs, strengths="common").fit(X, y)
    rows = np.array([[np.nan, 0.0], [0.0, 0.0]])
    everything, nothing = np.ones(2, dtype=bool), np.zeros(2, dtype=bool)
    first = everything & (np.arange(2) == 0)
    sd = []
    for row in rows:
        available = ~np.isnan(row)[None]
        state = begin(policy.model_, row[None], available, first, nothing)
        sd.append(look_ahead(state, policy.cost_table_).sd[0, 0])
    assert sd[0] > 3 * sd[1]
    assert policy.acquire(rows).acquired[0, 1]


def test_contributions_sum_to_the_log_odds_with_missing_values_too():
    rng = np.random.default_rng(10)
    X, y = linear_problem(rng, 800, 0.5)
    costs = Costs([0.0, 0.0, 0.0, 1.0], false_positive=10, false_negative=10)
    policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(X, y)
    consultation = policy.consultation()
    consultation.observe(x0=1.3, x1=0.2)
    consultation.unavailable("x2")
    step = consultation.next()
    explanation = step.explanation
    total = explanation.intercept + sum(part.log_odds for part in explanation.contributions)
    assert total == pytest.approx(float(logit(explanation.probability)), abs=1e-9)

"""Fits on rows held as codes, against the same fits on rows as they are."""

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, LogisticGAM
from adacos.kernels.folds import drawn_rows
from adacos.models import large_fits, levels
from adacos.models.basis import fit_basis
from adacos.models.density import moment_matrix
from adacos.models.large_fits import prepare_large
from adacos.models.levels import cut, level_sums, level_values
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL, NUMERIC

COSTS = Costs([1.0] * 4, false_positive=30, false_negative=60)


def rows(n, seed=0):
    """A number, a whole number, two values and one of three categories."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.standard_normal(n),
            rng.poisson(4, n),
            rng.integers(0, 2, n),
            rng.integers(0, 3, n),
        ]
    ).astype(float)
    X[:, 0] += 0.2 * X[:, 1]
    log_odds = np.sin(2 * X[:, 0]) + 0.3 * (X[:, 1] - 4) + X[:, 2] - 0.5 * (X[:, 3] == 1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


@pytest.fixture
def held_as_codes(monkeypatch):
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 1000)
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(large_fits, "BLOCK_ROWS", 2048)


def log_loss(policy, X, y):
    u = policy.model_.log_odds_by_set(policy._encode(X))
    return np.mean(np.logaddexp(0, u) - y[:, None] * u, axis=0)


def test_levels_of_few_values_lose_nothing_and_others_keep_their_bound():
    rng = np.random.default_rng(0)
    weight, own = rng.random(5000), np.array([0])
    counts = rng.poisson(4, 5000).astype(float)[:, None]
    basis, _ = fit_basis(counts, weight, own, (NUMERIC,), 10)
    cuts = cut(NUMERIC, np.unique(counts), counts[:100, 0], basis, own)
    codes = cuts.codes(counts)
    assert codes.dtype == np.uint8
    ends = float(counts.min()), float(counts.max())
    values = level_values(cuts, level_sums(cuts, codes, counts, weight), *ends)
    np.testing.assert_allclose(values[codes], counts, rtol=1e-12)
    heavy = rng.standard_t(2, 5000)[:, None]
    low, high = float(heavy.min()), float(heavy.max())
    basis, _ = fit_basis(heavy, weight, own, (NUMERIC,), 10)
    bends = len(basis.maps.bends(0))
    assert bends > 20
    cuts = cut(NUMERIC, np.empty(0), heavy[:1000, 0], basis, own)
    codes = cuts.codes(heavy)
    assert codes.dtype == np.uint16
    assert cuts.n_levels <= levels.MOST_LEVELS
    found = level_sums(cuts, codes, heavy, weight)
    values = level_values(cuts, found, low, high)
    np.testing.assert_allclose(found.weight @ values, weight @ heavy)
    # What the models see is mapped.
    at_level, mapped = (basis.maps.column(x, 0) for x in (values[codes], heavy))
    h = (high - low) / (levels.MOST_LEVELS // 2 - bends)
    assert np.all(np.abs(at_level - mapped) <= h)
    rate = 3.0 / (high - low)
    error = weight @ (np.sin(rate * at_level) - np.sin(rate * mapped))
    assert abs(error[0]) <= weight.sum() * rate**2 * h**2 / 8
    np.testing.assert_allclose(weight @ at_level, weight @ mapped, rtol=1e-9)
    named = np.eye(3)[rng.integers(0, 3, 50)]
    basis, _ = fit_basis(named, np.ones(50), np.zeros(3, dtype=int), (CATEGORICAL,), 10)
    cuts = cut(CATEGORICAL, np.empty(0), np.empty(0), basis, np.arange(3))
    np.testing.assert_array_equal(np.eye(3)[cuts.codes(named)], named)


def test_basis_and_moments_are_those_of_the_rows(held_as_codes):
    X, y = rows(3000)
    X[:, 0] = np.round(X[:, 0], 2)  # few values: nothing is lost
    encoder = TableEncoder.fit(X, ("a", "b", "c", "d"))
    weight = np.random.default_rng(1).random(len(y)) + 0.5
    fold = np.arange(len(y)) % 3
    shared = {"n_splines": 6, "families": ("per_covariate",), "fold": fold, "weight": weight}
    fits = prepare_large(X, y.astype(float), encoder, seed=0, unlabeled=X[:500], **shared)
    basis = fits.basis
    columns = basis.transform(X)
    np.testing.assert_allclose(weight @ columns, 0.0, atol=1e-9)
    np.testing.assert_allclose(basis.mean, np.average(X, axis=0, weights=weight))
    standard = (X - basis.mean) / basis.scale
    expected = moment_matrix(standard, columns, weight)
    expected += moment_matrix(standard[:500], columns[:500])
    np.testing.assert_allclose(fits.moments, expected, rtol=1e-9, atol=1e-7)


def test_models_and_leave_out_log_odds_are_as_good_as_without_codes(held_as_codes, monkeypatch):
    X, y = rows(6000)
    fresh, truth = rows(20_000, seed=1)
    coded = AdaCOSClassifier(COSTS).fit(X, y)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 10**9)
    plain = AdaCOSClassifier(COSTS).fit(X, y)
    assert coded.sets_ == plain.sets_
    np.testing.assert_allclose(
        log_loss(coded, fresh, truth), log_loss(plain, fresh, truth), rtol=1e-3
    )
    difference = coded.model_.leave_out_log_odds - plain.model_.leave_out_log_odds
    assert np.sqrt(np.mean(difference**2)) < 0.05
    np.testing.assert_allclose(coded.expected_cost_by_set_, plain.expected_cost_by_set_, rtol=0.01)
    same = coded.acquire(fresh).acquired == plain.acquire(fresh).acquired
    assert np.mean(same) > 0.99


def test_the_additive_model_alone_is_as_good_as_without_codes(held_as_codes, monkeypatch):
    X, y = rows(6000)
    fresh, truth = rows(20_000, seed=1)
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    coded = LogisticGAM().fit(X, y, weight)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 10**9)
    plain = LogisticGAM().fit(X, y, weight)
    losses = [
        np.mean(np.logaddexp(0, u) - truth * u)
        for u in (gam.decision_function(fresh) for gam in (coded, plain))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=2e-3)
    np.testing.assert_array_equal(np.isnan(coded.leave_out_proba_), weight == 0)
    assert coded.leave_out_log_loss_ == pytest.approx(plain.leave_out_log_loss_, rel=5e-3)
    assert np.nanmax(np.abs(coded.leave_out_proba_ - plain.leave_out_proba_)) < 0.05


def test_a_row_of_weight_two_is_two_rows(held_as_codes, monkeypatch):
    # With samples of their own the search of the strengths would begin at different places.
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 10**6)
    X, y = rows(2500)
    twice = np.repeat([1.0, 2.0], [2000, 500])
    splits = [
        (np.flatnonzero(np.arange(2500) % 3 != f), np.flatnonzero(np.arange(2500) % 3 == f))
        for f in range(3)
    ]
    fold = np.append(np.arange(2500) % 3, np.arange(2000, 2500) % 3)
    more = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    one = AdaCOSClassifier(COSTS, cv=splits, strengths="per_covariate")
    one.fit(X, y, sample_weight=twice)
    other = AdaCOSClassifier(COSTS, cv=more, strengths="per_covariate")
    other.fit(np.vstack([X, X[2000:]]), np.append(y, y[2000:]))
    encoded = one._encode(X)
    own, others = (policy.model_.log_odds_by_set(encoded)[:, -1] for policy in (one, other))
    # The places of the cuts are quantiles of the rows as they come.
    np.testing.assert_allclose(own, others, atol=0.02)
    assert np.mean(np.abs(own)) > 0.5


def test_common_strengths_blended_on_the_sample_serve_all_rows(held_as_codes, monkeypatch):
    X, y = rows(4000)
    fresh, truth = rows(20_000, seed=1)
    coded = AdaCOSClassifier(COSTS, strengths="common", cv=3).fit(X, y)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 10**9)
    plain = AdaCOSClassifier(COSTS, strengths="common", cv=3).fit(X, y)
    assert coded.sets_ == plain.sets_
    np.testing.assert_allclose(
        log_loss(coded, fresh, truth), log_loss(plain, fresh, truth), rtol=1e-3
    )


def test_a_covariate_that_hardly_ever_varies_need_not_vary_in_the_sample(held_as_codes):
    X, y = rows(3000)
    outside = np.setdiff1d(np.arange(3000), drawn_rows(y.astype(float), 1500, 0))
    X[:, 1] = 0.0
    X[outside[:2], 1] = 1.0, 2.0
    policy = AdaCOSClassifier(COSTS, cv=3).fit(X, y)
    assert np.isfinite(policy.model_.leave_out_log_odds).all()
    X[0, 1] = np.nan
    assert np.isfinite(policy.predict_proba(X[:3])).all()

"""Fits on rows held as codes, against the same fits on rows as they are."""

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, LogisticGAM
from adacos.kernels.class_risk import log_loss as class_log_loss
from adacos.kernels.folds import drawn_rows
from adacos.kernels.multinomial import contrasts, newton_classes, to_reference
from adacos.kernels.strengths import penalty_of
from adacos.models import coded_missing, large_fits, levels, set_fits
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


def test_models_and_out_of_fold_log_odds_are_as_good_as_without_codes(held_as_codes, monkeypatch):
    X, y = rows(6000)
    fresh, truth = rows(20_000, seed=1)
    coded = AdaCOSClassifier(COSTS).fit(X, y)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 10**9)
    plain = AdaCOSClassifier(COSTS).fit(X, y)
    assert coded.sets_ == plain.sets_
    np.testing.assert_allclose(
        log_loss(coded, fresh, truth), log_loss(plain, fresh, truth), rtol=1e-3
    )
    difference = coded.model_.out_of_fold_log_odds - plain.model_.out_of_fold_log_odds
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
    np.testing.assert_array_equal(np.isnan(coded.out_of_fold_proba_), weight == 0)
    assert coded.out_of_fold_log_loss_ == pytest.approx(plain.out_of_fold_log_loss_, rel=5e-3)
    assert np.nanmax(np.abs(coded.out_of_fold_proba_ - plain.out_of_fold_proba_)) < 0.05


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
    assert np.isfinite(policy.model_.out_of_fold_log_odds).all()
    X[0, 1] = np.nan
    assert np.isfinite(policy.predict_proba(X[:3])).all()


def rows_of_classes(n, n_classes, seed=0):
    """The rows with a few values each, so that nothing is lost, and several classes."""
    X = rows(n, seed)[0]
    X[:, 0] = np.round(X[:, 0], 1)
    rng = np.random.default_rng(seed + 100)
    slopes = np.random.default_rng(7).standard_normal((3, n_classes))
    scores = np.sin(2 * X[:, [0]]) * slopes[0] + 0.4 * (X[:, [1]] - 4) * slopes[1]
    scores += X[:, [2]] * slopes[2]
    return X, (scores + rng.gumbel(size=(n, n_classes))).argmax(axis=1)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_a_model_of_several_classes_is_the_optimum_at_its_strengths(held_as_codes, n_classes):
    X, y = rows_of_classes(5000, n_classes)
    encoder = TableEncoder.fit(X, ("a", "b", "c", "d"))
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    shared = {"n_splines": 6, "families": ("per_covariate",), "fold": np.arange(len(y)) % 3}
    fits = prepare_large(
        X, y.astype(float), encoder, seed=0, weight=weight, n_classes=n_classes, **shared
    )
    for members in (np.array([1]), np.array([1, 0, 3])):
        found = fits.fit(members, None)
        inside = np.isin(fits.basis.group, members)
        design = np.column_stack([np.ones(len(y)), fits.basis.transform(X)[:, inside]])
        penalty = penalty_of(np.append(-1, fits.basis.term[inside]), found.strengths)
        basis = contrasts(n_classes)
        optimum = to_reference(newton_classes(design, y, weight, penalty, basis).coef, basis)
        np.testing.assert_allclose(found.intercept, optimum[:, 0], atol=1e-4)
        log_odds = found.intercept + fits.basis.transform(X) @ found.coef.T
        np.testing.assert_allclose(log_odds, design @ optimum.T, atol=2e-4)
        refit = np.empty((len(y), n_classes - 1))
        for f in range(3):
            rest, own = shared["fold"] != f, shared["fold"] == f
            coef = newton_classes(design[rest], y[rest], weight[rest], penalty, basis).coef
            refit[own] = design[own] @ to_reference(coef, basis).T
        # One step from the fit with all rows, and strengths of its own.
        loss = weight @ class_log_loss(refit, y)
        assert found.out_of_fold_loss == pytest.approx(loss, rel=1.5e-3)
        assert np.sqrt(np.mean((found.out_of_fold_log_odds - refit) ** 2)) < 0.1


@pytest.mark.parametrize("n_classes", [3, 4])
def test_several_classes_are_as_good_as_without_codes(held_as_codes, monkeypatch, n_classes):
    X, y = rows_of_classes(6000, n_classes)
    fresh, truth = rows_of_classes(20_000, n_classes, seed=1)
    costs = Costs([1.0] * 4, misclassification=30 * (1 - np.eye(n_classes)))
    coded = AdaCOSClassifier(costs).fit(X, y)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 10**9)
    plain = AdaCOSClassifier(costs).fit(X, y)
    assert coded.sets_ == plain.sets_
    encoded = coded._encode(fresh)
    of_coded, of_plain = (policy.model_.log_odds_by_set(encoded) for policy in (coded, plain))
    for stage in range(len(coded.sets_)):
        losses = [class_log_loss(u[:, stage], truth).mean() for u in (of_coded, of_plain)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    np.testing.assert_allclose(coded.expected_cost_by_set_, plain.expected_cost_by_set_, rtol=0.01)
    assert np.mean(coded.acquire(fresh).acquired == plain.acquire(fresh).acquired) > 0.98
    gam = LogisticGAM().fit(X, y)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 1000)
    other = LogisticGAM().fit(X, y)
    assert other.out_of_fold_log_loss_ == pytest.approx(gam.out_of_fold_log_loss_, rel=5e-3)
    assert np.abs(other.out_of_fold_proba_ - gam.out_of_fold_proba_).max() < 0.05


def with_missing(X, share=0.25, seed=5):
    """The rows with values missing, more often where another is high."""
    X = X.copy()
    rng = np.random.default_rng(seed)
    X[rng.random(X.shape) < share * (1 + (X[:, [1]] > 4)) / 1.5] = np.nan
    return X


def prepared_both_ways(n, n_classes, monkeypatch, **more):
    """Rows with missing values as codes and as columns, all of them in the sample."""
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 10**6)
    X, y = rows_of_classes(n, n_classes)
    encoder = TableEncoder.fit(X, ("a", "b", "c", "d"))
    X = with_missing(X)
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    shared = {
        "n_splines": 6,
        "families": ("per_covariate",),
        "fold": np.arange(len(y)) % 3,
        "weight": weight,
        "n_classes": n_classes,
        **more,
    }
    coded = prepare_large(X, y.astype(float), encoder, seed=0, **shared)
    return X, y, coded, set_fits.prepare(X, y.astype(float), encoder, **shared)


@pytest.mark.parametrize("unlabeled", [False, True])
def test_rows_with_missing_values_are_in_expectation_as_without_codes(
    held_as_codes, monkeypatch, unlabeled
):
    more = {"unlabeled": with_missing(rows_of_classes(400, 2, seed=9)[0])} if unlabeled else {}
    X, _, coded, plain = prepared_both_ways(2500, 2, monkeypatch, **more)
    if unlabeled:
        # The joint model of the sample knows no further rows, that of the codes does.
        assert np.abs(coded.joint.covariance - plain.joint.covariance).max() < 5e-3
        np.testing.assert_allclose(coded.moments[0, 0], plain.moments[0, 0])
        return
    np.testing.assert_allclose(coded.joint.covariance, plain.joint.covariance, atol=1e-12)
    for name in ("low", "high", "mean", "scale", "center"):
        np.testing.assert_allclose(
            getattr(coded.basis, name), getattr(plain.basis, name), rtol=1e-9, atol=1e-9
        )
    # Correlations are kept in two bytes.
    np.testing.assert_allclose(coded.moments, plain.moments, rtol=1e-6, atol=0.02)
    np.testing.assert_array_equal(coded.there, ~np.isnan(X))
    codes = [np.concatenate([b.codes[k] for b in coded.blocks._blocks]) for k in range(4)]
    order = np.concatenate([b.order + 2048 * i for i, b in enumerate(coded.blocks._blocks)])
    columns = np.hstack([t[c] for t, c in zip(coded.tables, codes, strict=True)])
    np.testing.assert_allclose(columns, plain.columns[order], atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_models_of_rows_with_missing_values_are_those_without_codes(
    held_as_codes, monkeypatch, n_classes
):
    monkeypatch.setattr(set_fits, "SHRINKING_FITS", 12)
    *_, coded, plain = prepared_both_ways(4000, n_classes, monkeypatch)
    for members in (np.array([1]), np.array([1, 0, 3, 2])):
        found = coded.fit(members, None)
        # The same strengths, and factors that have settled.
        given = {"strengths": found.strengths, "n_classes": n_classes}
        rows = plain.columns, plain.basis, members, plain.y, plain.weight
        begin = set_fits.fit_additive(*rows, None, **given)
        begin = begin._replace(strengths=found.strengths)
        factor = plain._shrink(members, begin)
        truth = set_fits.fit_additive(*rows, plain.fold, shrink=factor, **given)
        plain_odds = plain.columns @ np.atleast_2d(truth.coef).T + truth.intercept
        coded_odds = plain.columns @ np.atleast_2d(found.coef).T + found.intercept
        np.testing.assert_allclose(coded_odds, plain_odds, rtol=1e-3, atol=3e-3)
        assert np.abs(plain_odds).max() > 0.5
        assert found.out_of_fold_loss == pytest.approx(truth.out_of_fold_loss, rel=2e-3)
        difference = found.out_of_fold_log_odds - truth.out_of_fold_log_odds
        assert np.sqrt(np.mean(difference**2)) < 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_policy_of_rows_with_missing_values_is_as_good_as_without_codes(
    held_as_codes, monkeypatch, n_classes
):
    # The order of the sets is found on the same rows.
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 10**6)
    X, y = rows_of_classes(6000, n_classes)
    X = with_missing(X)
    fresh, truth = rows_of_classes(10_000, n_classes, seed=1)
    costs = Costs([1.0] * 4, misclassification=30 * (1 - np.eye(n_classes)))
    coded = AdaCOSClassifier(costs).fit(X, y)
    assert isinstance(coded.model_.followed.there, np.ndarray)
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 10**9)
    plain = AdaCOSClassifier(costs).fit(X, y)
    assert coded.sets_ == plain.sets_
    for table in (fresh, with_missing(fresh)):
        of_coded, of_plain = (p.model_.log_odds_by_set(p._encode(table)) for p in (coded, plain))
        for stage in range(len(coded.sets_)):
            losses = [class_log_loss(u[:, stage], truth).mean() for u in (of_coded, of_plain)]
            assert losses[0] == pytest.approx(losses[1], rel=2e-3)
        assert np.mean(coded.acquire(table).acquired == plain.acquire(table).acquired) > 0.97


def test_states_beyond_the_most_lose_little(held_as_codes, monkeypatch):
    X, y = rows(6000)
    encoder = TableEncoder.fit(X, ("a", "b", "c", "d"))
    X = with_missing(X)
    shared = {"n_splines": 6, "families": ("per_covariate",), "fold": np.arange(len(y)) % 3}
    every = np.arange(4)
    fits = {}
    for most in (64, 1024):
        monkeypatch.setattr(coded_missing, "MOST_STATES", most)
        fits[most] = prepare_large(X, y.astype(float), encoder, seed=0, **shared)
        assert all(len(own) <= most for own in fits[most].states.plan.states)
    few, many = (fits[most].fit(every, None) for most in (64, 1024))
    assert few.out_of_fold_loss == pytest.approx(many.out_of_fold_loss, rel=1e-3)
    assert np.abs(few.out_of_fold_log_odds - many.out_of_fold_log_odds).mean() < 0.01


def test_rows_that_miss_very_much_together_stay_columns(held_as_codes, monkeypatch):
    monkeypatch.setattr(large_fits, "MOST_PAIRS", 0.1)
    X, y = rows(1500)
    fits = large_fits.prepare_rows(
        with_missing(X),
        y.astype(float),
        TableEncoder.fit(X, ("a", "b", "c", "d")),
        seed=0,
        n_splines=6,
        families=("per_covariate",),
        fold=np.arange(len(y)) % 3,
    )
    assert isinstance(fits, set_fits.SetFits)


def test_odd_rows_with_missing_values_are_held_as_codes(held_as_codes):
    X, y = rows(3000)
    outside = np.setdiff1d(np.arange(3000), drawn_rows(y.astype(float), 1500, 0))
    X = np.column_stack([X, np.full(3000, 7.0), X[:, 2] + 1])
    X[::3, 4] = np.nan  # a constant that is not always there
    X[outside[:3], 0] = np.nan  # missing only outside the sample
    X[1::50] = np.nan  # nothing is known
    costs = Costs([1.0] * 6, false_positive=30, false_negative=60)
    policy = AdaCOSClassifier(costs, cv=3).fit(X, y)
    assert np.isfinite(policy.model_.out_of_fold_log_odds).all()
    assert np.isfinite(policy.predict_proba(X[:60])).all()
    alone = policy.model_.out_of_fold_log_odds[1::50, -1]
    assert np.abs(alone - np.log(y.mean() / (1 - y.mean()))).max() < 0.5

"""Which candidates of the strengths a set tries, and how many columns a basis may have."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import AdaCOSClassifier, COSClassifier, Costs
from adacos.kernels.folds import stratified_folds
from adacos.kernels.strengths import row_loss
from adacos.models import set_fits
from adacos.models.additive import FAMILIES, fit_additive
from adacos.models.basis import SEQUENCE_SPLINES, affordable_splines, sequence_splines
from adacos.models.set_fits import SetFits, prepare
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, NUMERIC


def rows(n: int, p: int, seed: int = 0, missing: float = 0.0, constant: bool = False) -> SetFits:
    """Rows with a share of values missing; the last covariate may be constant."""
    rng = np.random.default_rng(p if seed == 0 else [p, seed])
    X = rng.standard_normal((n, p))
    y = (rng.random(n) < 1 / (1 + np.exp(-np.sin(2 * X[:, 0]) - X[:, 1]))).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, -1] = 1.0 if constant else X[:, -1]
    encoder = TableEncoder.fit(X, [str(i) for i in range(p)])
    fold = stratified_folds(X, y, 4, 0)
    return prepare(X, y, encoder, n_splines=6, families=FAMILIES["auto"], fold=fold)


def class_rows(n: int, seed: int = 0, missing: float = 0.0) -> SetFits:
    """Eight numbers and three classes, one of which bends with the first number."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    scores = np.column_stack([X[:, 0] ** 2 - 1, X[:, 1] + X[:, 2], np.sin(2 * X[:, 3]) - X[:, 4]])
    y = (1.5 * scores + rng.gumbel(size=(n, 3))).argmax(axis=1).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    encoder = TableEncoder.fit(X, list("abcdefgh"))
    fold, families = stratified_folds(X, y, 4, 0), FAMILIES["auto"]
    return prepare(X, y, encoder, n_splines=6, families=families, fold=fold, n_classes=3)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_large_sets_of_several_classes_keep_strengths_too(
    missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave-out log-loss on average within 0.2% of choosing the strengths at every set."""
    losses, chosen = {}, []
    for largest in (0, 10**9):
        monkeypatch.setattr(set_fits, "SMALL_DESIGN", largest)
        fits, start, own = class_rows(400, missing=missing), None, []
        for size in range(1, 9):
            start = fits.fit(np.arange(size), start)
            own.append(start.out_of_fold_loss)
            chosen.append(start.chosen_at)
            outside = ~np.isin(fits.basis.group, np.arange(size))
            assert not start.coef[:, outside].any()
        losses[largest] = np.array(own)
    assert chosen == [1, 2, 3, 3, 5, 5, 5, 8, *range(1, 9)]
    ratio = losses[0] / losses[10**9]
    assert ratio.mean() <= 1.002
    assert ratio.max() <= 1.01
    assert np.any(ratio != 1)


def test_small_sets_try_every_candidate() -> None:
    """Bit for bit the fit without any rule, along the whole sequence."""
    fits, start = rows(150, 4), None
    for size in range(1, 5):
        members = np.arange(size)
        found = fits.fit(members, start)
        whole = fit_additive(
            fits.columns, fits.basis, members, fits.y, fits.weight, fits.fold, start=start
        )
        np.testing.assert_array_equal(found.coef, whole.coef)
        np.testing.assert_array_equal(found.out_of_fold_log_odds, whole.out_of_fold_log_odds)
        assert found.chosen_at == size
        start = found


def test_large_sets_try_what_the_last_choice_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held-out log-loss within 0.1% of trying all at every set."""
    every, start = rows(300, 10), None
    full = []
    for size in range(1, 11):
        start = every.fit(np.arange(size), start)
        full.append(start.out_of_fold_loss)
    monkeypatch.setattr(set_fits, "SMALL_SET", 3)
    fits, start, chosen = rows(300, 10), None, []
    for size in range(1, 11):
        start = fits.fit(np.arange(size), start)
        chosen.append(start.chosen_at)
        assert start.out_of_fold_loss <= full[size - 1] * 1.001
    assert chosen == [1, 2, 3, 3, 5, 5, 5, 8, 8, 8]


def test_the_first_wiggly_covariate_tries_every_smoothness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of coins alone, however large, say nothing of how wiggly a number is."""
    monkeypatch.setattr(set_fits, "SMALL_SET", 0)
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(0, 2, (400, 4)), rng.standard_normal(400)]).astype(float)
    y = (np.sin(3 * X[:, 4]) + X[:, 0] + rng.logistic(size=400) > 0.5).astype(float)
    encoder, fold = TableEncoder.fit(X, list("abcde")), stratified_folds(X, y, 4, 0)
    fits = prepare(X, y, encoder, n_splines=6, families=FAMILIES["auto"], fold=fold)
    coins = fits.fit(np.arange(4), None)
    found = fits.fit(np.arange(5), coins)
    whole = fit_additive(
        fits.columns, fits.basis, np.arange(5), y, fits.weight, fits.fold, start=coins
    )
    np.testing.assert_array_equal(found.out_of_fold_log_odds, whole.out_of_fold_log_odds)
    assert found.chosen_at == 5


def test_columns_are_limited_by_rows_only_where_there_are_many() -> None:
    numeric = (NUMERIC,)
    assert affordable_splines(20, numeric * 28, 10) == 10
    assert affordable_splines(614, (*numeric * 8, BINARY), 10) == 10
    assert affordable_splines(200, numeric * 40, 10) == 7
    assert affordable_splines(200, numeric * 80, 10) == 4
    assert affordable_splines(1000, numeric * 40, 10) == 10
    assert affordable_splines(1000, numeric * 50, 10) == 6
    assert affordable_splines(1000, numeric * 200, 10) == 4
    assert affordable_splines(10_000, numeric * 200, 10) == 10
    assert affordable_splines(50, numeric * 500, 10) == 4
    assert affordable_splines(50, (BINARY,) * 500, 10) == 10
    assert sequence_splines(50, numeric * 40) == SEQUENCE_SPLINES
    assert sequence_splines(5000, numeric * 50) == SEQUENCE_SPLINES
    assert sequence_splines(5000, numeric * 500) == 4


def test_late_in_a_long_sequence_strengths_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held-out log-loss on fresh rows within 0.5% of choosing them at every set."""
    monkeypatch.setattr(set_fits, "SMALL_SET", 3)
    losses = {}
    for longest in (4, 1000):
        monkeypatch.setattr(set_fits, "LONG_SEQUENCE", longest)
        fits, start, own = rows(400, 12), None, []
        fresh = rows(4000, 12, 1)
        for size in range(1, 13):
            start = fits.fit(np.arange(size), start)
            log_odds = start.intercept + fits.basis.transform(fresh.complete) @ start.coef
            own.append(float(row_loss(log_odds, fresh.y).mean()))
        losses[longest] = np.array(own)
    np.testing.assert_array_equal(losses[4][:4], losses[1000][:4])
    assert np.abs(losses[4] / losses[1000] - 1).max() < 5e-3
    assert np.any(losses[4] != losses[1000])


def test_large_designs_keep_strengths_where_values_are_missing_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Leave-out log-loss on average within 0.1% of choosing the strengths at every set."""
    losses = {}
    for largest in (0, 10**9):
        monkeypatch.setattr(set_fits, "SMALL_DESIGN", largest)
        fits, start, own = rows(400, 8, missing=0.1), None, []
        assert fits.missing is not None
        for size in range(1, 9):
            start = fits.fit(np.arange(size), start)
            own.append(start.out_of_fold_loss)
        losses[largest] = np.array(own)
    ratio = losses[0] / losses[10**9]
    assert ratio.mean() <= 1.001
    assert ratio.max() <= 1.005
    assert np.any(ratio != 1)


def test_a_constant_covariate_changes_no_model() -> None:
    fits = rows(150, 3, constant=True)
    start = fits.fit(np.array([0, 1]), None)
    assert fits.fit(np.array([0, 1, 2]), start) is start


def test_kept_fits_do_not_depend_on_what_was_fitted_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(set_fits, "SMALL_SET", 3)
    monkeypatch.setattr(set_fits, "LONG_SEQUENCE", 4)
    fits, start = rows(300, 8), None
    for size in range(1, 7):
        start = fits.fit(np.arange(size), start)
    seventh = fits.fit(np.arange(7), start)
    fits._fitted.clear()
    fits._kept.clear()
    again = fits.fit(np.arange(7), start)
    np.testing.assert_allclose(
        again.out_of_fold_log_odds, seventh.out_of_fold_log_odds, rtol=0, atol=0.02
    )


def test_forward_and_group_lasso_sequences_share_long_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets already fitted along one order are met in another."""
    monkeypatch.setattr(set_fits, "SMALL_SET", 2)
    monkeypatch.setattr(set_fits, "LONG_SEQUENCE", 2)
    fits = rows(200, 6)
    for order in (np.arange(6), np.array([0, 1, 2, 5, 4, 3])):
        start = None
        for size in range(1, 7):
            start = fits.fit(order[:size], start)
            assert np.isfinite(start.out_of_fold_log_odds).all()
            outside = ~np.isin(fits.basis.group, order[:size])
            assert not start.coef[outside].any()


def test_no_set_is_too_expensive_to_be_reached() -> None:
    """Why every set is fitted: AdaCOS weighs what is still to be paid, not what was paid.

    The largest Bayes risk is 50 and six covariates cost 60, yet rows that stay near the threshold
    go on. COS does not: a set that costs more than another in all has not the least total cost.
    """
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 2, n)
        return rng.standard_normal((n, 8)) + 0.6 * (2 * y - 1)[:, None], y

    costs = Costs([10.0] * 8, false_positive=100, false_negative=100)
    policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(*draw(300))
    assert policy.acquire(draw(40_000)[0]).cost.max() > 50
    cos = COSClassifier(costs, strengths="common", cv=3).from_model(policy)
    assert 10 * cos.stage_ <= policy.expected_cost_by_set_.min()

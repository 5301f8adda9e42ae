"""The judge with products of pairs: against scikit-learn, and where additive models are blind."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from adacos.kernels.folds import stratified_folds
from adacos.kernels.strengths import central_strengths
from adacos.models import pairs
from adacos.models.pairs import out_of_fold_by_pairs, paired_fit
from adacos.models.set_fits import SetFits, prepare
from adacos.tables.encoder import TableEncoder


def prepared(X: np.ndarray, y: np.ndarray) -> SetFits:
    encoder = TableEncoder.fit(X, tuple(f"x{i}" for i in range(X.shape[1])))
    encoded = encoder.transform(X)
    fold = stratified_folds(encoded, y, 5, 0)
    return prepare(encoded, y.astype(float), encoder, n_splines=6, families=("common",), fold=fold)


def test_equals_a_penalised_fit_without_each_fold(monkeypatch) -> None:
    """One strength of the products, so that nothing is chosen; penalties as scaled columns."""
    monkeypatch.setattr(pairs, "PAIR_GRID", (10.0,))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (rng.random(300) < expit(X[:, 0] * X[:, 1] + X[:, 2])).astype(int)
    fits = prepared(X, y)
    fold = fits.fold
    standardised = (fits.complete - fits.basis.mean) / fits.basis.scale
    products = np.column_stack(
        [standardised[:, i] * standardised[:, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    )
    products = (products - products.mean(axis=0)) / products.std(axis=0)
    strength = central_strengths(fits.basis.linear)[fits.basis.term]
    design = np.hstack([fits.columns / np.sqrt(strength), products / np.sqrt(10.0)])
    expected = np.empty(300)
    for f in range(5):
        model = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000)
        model.fit(design[fold != f], y[fold != f])
        expected[fold == f] = model.decision_function(design[fold == f])
    np.testing.assert_allclose(out_of_fold_by_pairs(fits, fold, np.arange(3)), expected, atol=2e-3)


def test_sees_what_an_additive_model_cannot() -> None:
    """The class is whether two coins agree: each coin alone says nothing."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(600, 4)).astype(float)
    y = np.where(rng.random(600) < 0.9, X[:, 0] == X[:, 1], X[:, 0] != X[:, 1]).astype(int)
    fits = prepared(X, y)
    likely = expit(out_of_fold_by_pairs(fits, fits.fold, np.arange(X.shape[1])))
    assert np.mean((likely > 0.5) == y) > 0.85
    assert abs(likely.mean() - y.mean()) < 0.01


def test_does_no_harm_where_there_are_no_pairs() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 6))
    truth = expit(X[:, 0] - 0.5 * X[:, 1])
    y = (rng.random(400) < truth).astype(int)
    fits = prepared(X, y)
    likely = expit(out_of_fold_by_pairs(fits, fits.fold, np.arange(X.shape[1])))
    assert np.sqrt(np.mean((likely - truth) ** 2)) < 0.1


def test_of_many_products_those_of_the_first_covariates_are_taken(monkeypatch) -> None:
    monkeypatch.setattr(pairs, "MOST_PAIRS", 4)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 8))
    y = (rng.random(500) < expit(4 * X[:, 3] * X[:, 6])).astype(int)
    fits = prepared(X, y)
    right = []
    for order in ([3, 6, 0, 1, 2, 4, 5, 7], [0, 1, 2, 4, 5, 7, 3, 6]):
        likely = expit(out_of_fold_by_pairs(fits, fits.fold, np.array(order)))
        right.append(np.mean((likely > 0.5) == y))
    assert right[0] > 0.7 > 0.6 > right[1]


def test_out_of_fold_rows_have_no_say_in_the_products() -> None:
    """Classes by chance, hundreds of products: no row can be foretold better than by the shares."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, size=(240, 30)).astype(float)
        y = (rng.random(240) < 0.3).astype(int)
        fits = prepared(X, y)
        share = np.where(y == 1, y.mean(), 1 - y.mean())
        for likely in (
            paired_fit(fits, np.arange(30)).out_of_fold[:, 1],
            expit(out_of_fold_by_pairs(fits, fits.fold, np.arange(30))),
        ):
            gains.append(np.log(np.where(y == 1, likely, 1 - likely) / share).mean())
    assert max(gains) < 0.01

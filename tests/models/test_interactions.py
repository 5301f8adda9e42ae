"""`LogisticGAM` with products of pairs: against scikit-learn, and in worlds of known truth."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from adacos import LogisticGAM, load, save
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import stratified_folds
from adacos.kernels.multinomial import symmetric
from adacos.kernels.threads import one_blas_thread
from adacos.models import interactions
from adacos.models.additive import fit_additive
from adacos.models.basis import AdditiveBasis, fit_basis
from adacos.models.interactions import PairedBasis


def agreeing(n: int, n_classes: int, seed: int = 0) -> tuple[pd.DataFrame, Any, Any]:
    """Words and a number of which none alone says anything; labels and true probabilities."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, size=(n, 2))
    table = pd.DataFrame(
        {
            "left": np.array(["a", "b", "c"])[level[:, 0]],
            "right": np.array(["u", "v", "w"])[level[:, 1]],
            "noise": rng.normal(size=n),
        }
    )
    scores = np.zeros((n, n_classes))
    for k in range(n_classes):
        scores[:, k] = 3.0 * ((level[:, 0] + level[:, 1] - k) % 3 == 0)
    p = softmax(scores, axis=1)
    y = (p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return table, y, p


def additive(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (rng.random(n) < expit(1.5 * X[:, 0] - X[:, 1] ** 2 + 1)).astype(int)


# Against scikit-learn


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_objective_is_that_of_scikit_learn(n_classes: int) -> None:
    """Two values and categories have no wiggly part: one ridge, also on each product."""
    rng = np.random.default_rng(n_classes)
    n, ridge = 300, 0.7
    X = pd.DataFrame({"a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)})
    X["town"] = rng.choice(["north", "south", "west"], n)
    scores = rng.normal(size=(4, n_classes))[2 * X.a + X.b] * 2
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    own = LogisticGAM(smoothness=1.0, ridge=ridge, cv=None, interactions="auto").fit(X, y)

    towns = pd.get_dummies(X["town"]).to_numpy(dtype=float)
    encoded = np.column_stack([X[["a", "b"]], towns]).astype(float)
    standard = (encoded - encoded.mean(axis=0)) / encoded.std(axis=0)
    pairs = [(i, j) for i, j in combinations(range(5), 2) if i < 2]
    products = np.column_stack([standard[:, i] * standard[:, j] for i, j in pairs])
    products = (products - products.mean(axis=0)) / products.std(axis=0)
    design = np.hstack([standard[:, :2], towns - towns.mean(axis=0), products])
    peer = LogisticRegression(C=1 / ridge, tol=1e-12, solver="newton-cg", max_iter=1000)
    peer.fit(design, y)

    def objective(p: Any, coef: Any) -> float:
        return float(n * log_loss(y, p) + 0.5 * ridge * (coef**2).sum())

    mine = objective(own.predict_proba(X), own.coef_)
    assert mine == pytest.approx(objective(peer.predict_proba(design), peer.coef_), rel=1e-8)
    np.testing.assert_allclose(own.predict_proba(X), peer.predict_proba(design), atol=1e-5)
    assert own.interactions_ == [("a", "b"), ("a", "town"), ("b", "town")]


def test_a_pair_has_the_mean_strength_of_its_covariates() -> None:
    X, y = additive(100)
    given: dict[str, Any] = {"smoothness": 1.0, "cv": None, "interactions": [(0, 1)]}
    # The second covariate's main effects are the same; only the product's strength differs.
    loose = LogisticGAM(ridge=[1.0, 1.0, 1.0, 1.0, 1.0], **given).fit(X, y)
    tight = LogisticGAM(ridge=[1.0, 1e10, 1.0, 1.0, 1.0], **given).fit(X, y)
    same = LogisticGAM(ridge=1e5, **given).fit(X, y)
    assert abs(tight.coef_[-1]) < 1e-2 * abs(loose.coef_[-1])
    assert tight.coef_[-1] == pytest.approx(same.coef_[-1], rel=0.5)
    np.testing.assert_array_equal(tight.ridge_, [1.0, 1e10, 1.0, 1.0, 1.0])


# Worlds of known truth


@pytest.mark.parametrize("n_classes", [2, 3])
def test_finds_what_only_two_covariates_say_together(n_classes: int) -> None:
    table, y, _ = agreeing(500, n_classes)
    fresh, labels, truth = agreeing(4000, n_classes, seed=1)
    share = np.bincount(y) / len(y)
    base = log_loss(labels, np.tile(share, (len(labels), 1)))
    bayes = log_loss(labels, truth)
    blind = LogisticGAM(cv=5).fit(table, y)
    seeing = LogisticGAM(cv=5, interactions="auto").fit(table, y)
    assert log_loss(labels, blind.predict_proba(fresh)) > 0.98 * base
    found = log_loss(labels, seeing.predict_proba(fresh))
    assert found - bayes < 0.1 * (base - bayes)
    assert ("left", "right") in seeing.interactions_
    assert seeing.out_of_fold_log_loss_ == pytest.approx(found, rel=0.15)


def test_numbers_multiply() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    p = expit(2 * X[:, 0] * X[:, 1])
    y = (rng.random(5000) < p).astype(int)
    gam = LogisticGAM(cv=5, interactions="auto").fit(X[:800], y[:800])
    bayes, base = log_loss(y[800:], p[800:]), np.log(2)
    assert log_loss(y[800:], gam.predict_proba(X[800:])) - bayes < 0.1 * (base - bayes)


@pytest.mark.parametrize("seed", range(3))
def test_without_interactions_the_additive_model_is_returned_exactly(seed: int) -> None:
    X, y = additive(300, seed)
    plain = LogisticGAM(cv=5).fit(X, y)
    tried = LogisticGAM(cv=5, interactions="auto").fit(X, y)
    assert tried.interactions_ == []
    assert type(tried.basis_) is AdditiveBasis
    np.testing.assert_array_equal(tried.coef_, plain.coef_)
    np.testing.assert_array_equal(tried.contributions(X), plain.contributions(X))
    if seed < 2:  # with the last, products seem to help where one of the folds is not looked at
        np.testing.assert_array_equal(tried.out_of_fold_proba_, plain.out_of_fold_proba_)
        assert tried.out_of_fold_log_loss_ == plain.out_of_fold_log_loss_
    assert tried.out_of_fold_log_loss_ == pytest.approx(plain.out_of_fold_log_loss_, rel=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_default_is_the_additive_fit(n_classes: int) -> None:
    X, y = additive(150)
    y = y + (y == 1) * (X[:, 2] > 0) * (n_classes - 2)
    gam = LogisticGAM(cv=3).fit(X, y)
    encoded, weight, every = gam.encoder_.transform(X), np.ones(150), np.arange(5)
    basis, columns = fit_basis(encoded, weight, gam.encoder_.source, gam.encoder_.kinds, 10)
    fold = stratified_folds(encoded, y.astype(float), 3, 0)
    # As `fit` does: several threads of BLAS round otherwise.
    alone = one_blas_thread(fit_additive)
    plain = alone(columns, basis, every, y.astype(float), weight, fold, n_classes=n_classes)
    later = plain.coef if n_classes == 2 else symmetric(plain.coef)
    np.testing.assert_array_equal(gam.coef_, later)
    assert gam.out_of_fold_log_loss_ == plain.out_of_fold_loss / 150
    assert gam.interactions_ == []


def test_no_pairs_no_products() -> None:
    X, y = additive(100)
    plain = LogisticGAM(cv=3).fit(X[:, :1], y)
    for asked in ("auto", []):
        gam = LogisticGAM(cv=3, interactions=asked).fit(X[:, :1], y)
        np.testing.assert_array_equal(gam.coef_, plain.coef_)


def test_a_fold_is_judged_by_what_the_others_choose(monkeypatch: Any) -> None:
    """Where the choice hangs on one fold, its own rows are predicted without it."""
    table, y, _ = agreeing(200, 2)
    fold = np.arange(200) % 4
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(4)]
    seen: list[Any] = []
    truth = interactions._clear

    def clear(gain: Any, weight: Any) -> bool:
        seen.append(len(gain))
        return truth(gain, weight) and len(seen) != 2

    monkeypatch.setattr(interactions, "_clear", clear)
    gam = LogisticGAM(cv=splits, interactions="auto").fit(table, y)
    monkeypatch.undo()
    assert seen == [200, 150, 150, 150, 150]
    blind = LogisticGAM(cv=splits).fit(table, y).out_of_fold_proba_
    seeing = LogisticGAM(cv=splits, interactions="auto").fit(table, y).out_of_fold_proba_
    np.testing.assert_array_equal(gam.out_of_fold_proba_, np.where(fold == 0, blind, seeing))
    assert gam.out_of_fold_log_loss_ == pytest.approx(log_loss(y, gam.out_of_fold_proba_))


# What the model says


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request: Any) -> tuple[LogisticGAM, pd.DataFrame, Any]:
    table, y, _ = agreeing(300, request.param)
    gam = LogisticGAM(cv=3, strengths="common", interactions=[("left", "right"), (0, 2)])
    return gam.fit(table, y), table, y


def test_contributions_of_covariates_and_pairs_sum_to_the_log_odds(fitted: Any) -> None:
    gam, table, y = fitted
    assert gam.interactions_ == [("left", "right"), ("left", "noise")]
    parts, log_odds = gam.contributions(table), gam.decision_function(table)
    assert parts.shape == (300, 5, *log_odds.shape[1:])
    np.testing.assert_allclose(parts.sum(axis=1) + gam.intercept_, log_odds, atol=1e-9)
    np.testing.assert_allclose(parts.mean(axis=0), 0.0, atol=1e-9)
    assert np.abs(parts[:, 3]).mean() > 5 * np.abs(parts[:, :3]).mean()
    values, effect = gam.shape_function("left")
    probe = pd.concat([table.head(1)] * 3, ignore_index=True).assign(left=values)
    np.testing.assert_allclose(gam.contributions(probe)[:, 0], effect, atol=1e-12)
    assert gam.ridge_.shape == gam.smoothness_.shape == (3,)
    assert gam.score(table, y) > 0.6


def test_beyond_the_range_and_for_new_categories_products_say_little(fitted: Any) -> None:
    gam, table, _ = fitted
    edge = gam.contributions(table.head(9).assign(noise=table["noise"].max()))
    np.testing.assert_array_equal(
        gam.contributions(table.head(9).assign(noise=99.0))[:, 4], edge[:, 4]
    )
    unknown = gam.contributions(table.head(9).assign(left="atlantis"))
    np.testing.assert_allclose(unknown[:, 3], unknown[:1, 3].repeat(9, axis=0), atol=1e-12)
    with pytest.raises(InvalidInputError, match="GaussianImputer"):
        gam.predict(table.assign(noise=np.nan))


def test_files_and_clones(fitted: Any, tmp_path: Path) -> None:
    gam, table, _ = fitted
    save(gam, tmp_path / "gam.adacos")
    again = load(tmp_path / "gam.adacos")
    assert type(again.basis_) is PairedBasis
    np.testing.assert_array_equal(again.predict_proba(table), gam.predict_proba(table))
    np.testing.assert_array_equal(again.contributions(table), gam.contributions(table))
    assert clone(again).get_params()["interactions"] == gam.interactions


def test_a_file_from_before_there_were_interactions(tmp_path: Path) -> None:
    X, y = additive(80)
    gam = LogisticGAM(smoothness=1.0, ridge=1.0, cv=None).fit(X, y)
    del gam.interactions, gam.interactions_
    save(gam, tmp_path / "gam.adacos")
    again = load(tmp_path / "gam.adacos")
    assert again.interactions is None
    np.testing.assert_array_equal(again.contributions(X), gam.contributions(X))


def test_weights_are_repetitions() -> None:
    table, y, _ = agreeing(150, 3)
    weight = np.arange(150) % 3
    rows = np.repeat(np.arange(150), weight)
    given: dict[str, Any] = {"smoothness": 5.0, "ridge": 1.0, "cv": None, "interactions": "auto"}
    one = LogisticGAM(**given).fit(table, y, sample_weight=weight)
    two = LogisticGAM(**given).fit(table.iloc[rows], y[rows])
    np.testing.assert_allclose(one.predict_proba(table), two.predict_proba(table), atol=1e-7)


# Bad input


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("all", "interactions: must be None, 'auto' or a list of pairs"),
        (True, "interactions: must be None, 'auto' or a list of pairs"),
        (2, "interactions: must be None, 'auto' or a list of pairs"),
        (np.eye(2), "interactions: must be None, 'auto' or a list of pairs"),
        (["x0", "x1"], "interactions: must be None, 'auto' or a list of pairs"),
        ([(0, 1, 2)], "interactions: must be None, 'auto' or a list of pairs"),
        ([(0, 0)], "pairs of different covariates"),
        ([("x0", "height")], "interactions: must be a fitted column"),
        ([(0, 5)], "interactions: must be a fitted column"),
    ],
)
def test_what_interactions_may_be(asked: Any, message: str) -> None:
    X, y = additive(40)
    with pytest.raises(InvalidInputError, match=message):
        LogisticGAM(interactions=asked).fit(X, y)


def test_too_many_products_or_rows_are_refused(monkeypatch: Any) -> None:
    X, y = additive(40)
    monkeypatch.setattr(interactions, "MOST_PRODUCTS", 9)
    with pytest.raises(
        InvalidInputError, match=r"at most 9 .* received 10 products. Name the pairs"
    ):
        LogisticGAM(interactions="auto").fit(X, y)
    LogisticGAM(interactions=[(0, 1)], cv=3, strengths="common").fit(X, y)
    monkeypatch.setattr(interactions, "LARGE_ROWS", 40)
    with pytest.raises(InvalidInputError, match="interactions: must be None from 40 rows on"):
        LogisticGAM(interactions="auto").fit(X, y)

"""Fits of a growing design against fits of each design by itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from adacos.kernels import appended
from adacos.kernels.appended import NewColumns, append_columns, kept_fits
from adacos.kernels.irls import curvature, fellner_schall, fold_grams, newton
from adacos.typing import Floats, Ints

FOLDS = 4


def draw(seed: int, n: int = 150, p: int = 12) -> tuple[Floats, Floats, Floats, Ints]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (rng.random(n) < expit(X[:, 0] - X[:, 1] + 0.4 * X[:, -1] - 0.5)).astype(float)
    return np.column_stack([np.ones(n), X]), y, rng.uniform(0.5, 2.0, n), rng.permutation(n) % FOLDS


def refit(design: Floats, y: Floats, weight: Floats, rows: Floats, penalty: Floats) -> Floats:
    return newton(design[rows], y[rows], weight[rows], penalty, tolerance=1e-13).coef


@pytest.mark.parametrize("stale_from", [1, 8, 1000])
def test_appended_fits_are_the_fits_of_the_whole_design(
    monkeypatch: pytest.MonkeyPatch, stale_from: int
) -> None:
    """Whether the curvature is taken anew at every design, at some or never."""
    monkeypatch.setattr(appended, "STALE_ITERATIONS", stale_from)
    design, y, weight, fold = draw(0)
    without_fold = np.repeat(np.arange(FOLDS + 1), 2)
    rng = np.random.default_rng(1)
    penalties = np.vstack([np.zeros(10), 10.0 ** rng.uniform(-1, 1, (12, 10))])
    rows = y, weight, fold, without_fold, np.tile([0, 1], FOLDS + 1)
    fits = kept_fits(design[:, :5], *rows, penalties[:5], np.zeros((5, 10)))
    for first in (5, 7, 9, 11):
        strengths = penalties[first : first + 2]
        new = NewColumns(np.arange(2), strengths, np.zeros(10, dtype=np.bool_))
        fits, kept = append_columns(fits, design[:, : first + 2], new, y, weight, fold)
        np.testing.assert_array_equal(kept, strengths)
        for k, f in enumerate(without_fold):
            whole = refit(design[:, : first + 2], y, weight, fold != f, penalties[: first + 2, k])
            expected = design[:, : first + 2] @ whole
            error = design[:, : first + 2] @ fits.coef[:, k] - expected
            # What `fit_together` documents, for a tolerance of 1e-6.
            assert np.average(curvature(expected, weight) * error**2) <= 6e-6


def test_factors_are_those_of_the_whole_matrix() -> None:
    design, y, weight, fold = draw(2)
    without_fold, candidate = np.repeat(np.arange(FOLDS + 1), 2), np.tile([0, 1], FOLDS + 1)
    penalties = np.vstack([np.zeros(10), np.tile([2.0, 0.1], (12, 5))])
    rows = y, weight, fold, without_fold, candidate
    start = np.random.default_rng(0).normal(0, 0.1, (9, 10))
    fits = kept_fits(design[:, :9], *rows, penalties[:9], start)._replace(iterations=1)
    new = NewColumns(np.arange(4), penalties[9:], np.zeros(10, dtype=np.bool_))
    fits, _ = append_columns(fits, design, new, y, weight, fold)
    assert np.abs(fits.row_curvature[0] - fits.row_curvature[1]).max() > 1e-3
    for k, factor in enumerate(fits.factors):
        left_in = fold != without_fold[k]
        own = fits.row_curvature[candidate[k]][left_in]
        hessian = (design[left_in].T * own) @ design[left_in]
        hessian += np.diag(fits.penalties[:, k])
        np.testing.assert_allclose(factor.T @ factor, hessian, rtol=1e-9, atol=1e-9)


def test_a_fold_has_no_say_in_what_is_found_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All fits share a curvature; taken anew from labels of the fold it would change the path."""
    monkeypatch.setattr(appended, "STALE_ITERATIONS", 1000)
    design, y, weight, fold = draw(3)
    without_fold = np.arange(FOLDS + 1)
    penalties = np.vstack([np.zeros(5), np.ones((10, 5))])
    new = NewColumns(np.array([0, 1]), np.full((2, 5), 3.0), np.ones(5, dtype=np.bool_))
    found = []
    for labels in (y, np.where(fold == 2, 1 - y, y)):
        rows = labels, weight, fold, without_fold, np.zeros(5, dtype=np.intp)
        fits = kept_fits(design[:, :11], *rows, penalties, np.zeros((11, 5)))
        grown, strengths = append_columns(fits, design, new, labels, weight, fold)
        found.append((grown.coef, strengths))
    np.testing.assert_allclose(found[0][0][:, 2], found[1][0][:, 2], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found[0][1][:, 2], found[1][1][:, 2], rtol=1e-9)
    assert np.abs(found[0][0][:, -1] - found[1][0][:, -1]).max() > 0.1


def test_searched_strength_has_the_highest_restricted_likelihood() -> None:
    """For one term of several columns, in the quadratic model the marginal likelihood is known."""
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5))
    schur, score = root @ root.T + np.eye(5), 4.0 * rng.normal(size=5)

    def minus_log_marginal(log_strength: float) -> float:
        whole = schur + np.exp(log_strength) * np.eye(5)
        fitted = 0.5 * score @ np.linalg.solve(whole, score)
        return float(0.5 * np.linalg.slogdet(whole)[1] - 2.5 * log_strength - fitted)

    best = minimize_scalar(minus_log_marginal, bounds=(-6.0, 13.0), method="bounded")
    term = np.zeros(5, dtype=np.intp)
    found = appended.strengths_of_quadratic(schur, score, np.array([30.0]), term)
    assert minus_log_marginal(float(np.log(found[0]))) - best.fun < 0.02


def test_settled_strengths_are_those_of_small_steps() -> None:
    """`fellner_schall` reaches the same optimum of the restricted likelihood, step by step."""
    design, y, weight, fold = draw(5, n=1500)
    term = np.append(-1, np.repeat(np.arange(4), 3))
    begin, start = np.full((4, FOLDS + 1), 3.0), np.zeros((13, FOLDS + 1))
    coef = newton(design, y, weight, np.append(0.0, np.full(12, 3.0))).coef
    grams = fold_grams(design, curvature(design @ coef, weight), fold, FOLDS)
    found, coefs = appended.settle_strengths(
        design, y, weight, fold, term, begin, start + coef[:, None], grams
    )
    left_in = weight[:, None] * (fold[:, None] != np.arange(FOLDS + 1))
    every = grams.sum(axis=0)
    whole = np.stack([*(every - grams), every])
    steps = {"tolerance": 1e-6, "max_iter": 500}
    expected, _ = fellner_schall(design, y, left_in, term, begin[:, 0], coef, whole, **steps)
    useful = expected < 100
    assert useful.any(axis=1).sum() == 2
    np.testing.assert_allclose(found[useful], expected[useful], rtol=0.1)
    assert found[~useful].min() > 30
    for f in range(FOLDS + 1):
        penalty = np.append(0.0, found[term[1:], f])
        refitted = refit(design, y, weight, fold != f, penalty)
        np.testing.assert_allclose(coefs[:, f], refitted, atol=0.01)


def test_a_useless_term_is_pruned() -> None:
    found = appended.strengths_of_quadratic(
        np.eye(3), np.full(3, 0.1), np.array([3.0]), np.zeros(3, int)
    )
    assert found[0] > 1e3

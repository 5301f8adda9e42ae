"""Fits of a growing design against fits of each design by itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from adacos.kernels import appended
from adacos.kernels.appended import NewColumns, append_columns, kept_fits
from adacos.kernels.irls import curvature, newton

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

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
    left_out = np.repeat(np.arange(FOLDS + 1), 2)
    rng = np.random.default_rng(1)
    penalties = np.vstack([np.zeros(10), 10.0 ** rng.uniform(-1, 1, (12, 10))])
    fits = kept_fits(design[:, :5], y, weight, fold, left_out, penalties[:5], np.zeros((5, 10)))
    for first in (5, 7, 9, 11):
        columns = design[:, first : first + 2]
        strengths = penalties[first : first + 2]
        new = NewColumns(columns, np.arange(2), strengths, np.zeros(10, dtype=np.bool_))
        fits, kept = append_columns(fits, new, y, weight, fold)
        np.testing.assert_array_equal(kept, strengths)
        for k, f in enumerate(left_out):
            whole = refit(design[:, : first + 2], y, weight, fold != f, penalties[: first + 2, k])
            expected = design[:, : first + 2] @ whole
            error = design[:, : first + 2] @ fits.coef[:, k] - expected
            # What `fit_together` documents, for a tolerance of 1e-6.
            assert np.average(curvature(expected, weight) * error**2) <= 6e-6


def test_factors_are_those_of_the_whole_matrix() -> None:
    design, y, weight, fold = draw(2)
    left_out = np.arange(FOLDS + 1)
    penalties = np.vstack([np.zeros(5), np.full((12, 5), 2.0)])
    fits = kept_fits(design[:, :9], y, weight, fold, left_out, penalties[:9], np.zeros((9, 5)))
    fits = fits._replace(iterations=1)
    new = NewColumns(design[:, 9:], np.arange(4), penalties[9:], np.zeros(5, dtype=np.bool_))
    fits, _ = append_columns(fits, new, y, weight, fold)
    for f, factor in enumerate(fits.factors):
        rows = fold != f
        hessian = (design[rows].T * fits.row_curvature[rows]) @ design[rows]
        hessian += np.diag(fits.penalties[:, f])
        np.testing.assert_allclose(factor.T @ factor, hessian, rtol=1e-9, atol=1e-9)


def test_a_fold_has_no_say_in_what_is_found_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All fits share a curvature; taken anew from labels of the fold it would change the path."""
    monkeypatch.setattr(appended, "STALE_ITERATIONS", 1000)
    design, y, weight, fold = draw(3)
    left_out = np.arange(FOLDS + 1)
    penalties = np.vstack([np.zeros(5), np.ones((10, 5))])
    new = NewColumns(
        design[:, 11:], np.array([0, 1]), np.full((2, 5), 3.0), np.ones(5, dtype=np.bool_)
    )
    found = []
    for labels in (y, np.where(fold == 2, 1 - y, y)):
        fits = kept_fits(
            design[:, :11], labels, weight, fold, left_out, penalties, np.zeros((11, 5))
        )
        grown, strengths = append_columns(fits, new, labels, weight, fold)
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


def test_a_useless_term_is_pruned() -> None:
    found = appended.strengths_of_quadratic(
        np.eye(3), np.full(3, 0.1), np.array([3.0]), np.zeros(3, int)
    )
    assert found[0] > 1e3

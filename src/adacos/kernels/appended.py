"""Fits without each fold of a design that grows by columns, at kept strengths.

The objective is that of `adacos.kernels.irls`. From one design to the next the row curvature is
kept, so that the Cholesky factor of each fit grows by the new columns instead of being computed
anew: P² operations a column in place of P³ / 3, and the fits go on from where they were. Gradients
are exact, hence so are the optima; what a kept curvature costs is iterations, and when they become
many it is taken anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs
from scipy.special import expit

from adacos.kernels.irls import (
    FREEDOM_TOLERANCE,
    PENALTY_FLOOR,
    SEARCH_STEPS,
    STRENGTH_BOUNDS,
    advance_together,
    cholesky,
    curvature,
    fold_grams,
    left_out_factors,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Iterations from which on the curvature is taken anew at the next design.
STALE_ITERATIONS = 8


class KeptFits(NamedTuple):
    """Fits of one design, the k-th without the rows of fold left_out[k].

    Attributes
    ----------
    design : (n, P), its first column constant.
    left_out : (fits,), the number of folds where no row is left out.
    penalties, coef : (P, fits).
    row_curvature : (n,) kept.
    factors : of the Gram matrix at that curvature plus the penalty, one for each fit.
    iterations : what the last design took.
    """

    design: Floats
    left_out: Ints
    penalties: Floats
    coef: Floats
    row_curvature: Floats
    factors: list[Floats]
    iterations: int


class NewColumns(NamedTuple):
    """Columns (n, k) to append and the term of each.

    `strengths` (terms, fits) are those of the terms, or where the search for them begins in the
    fits that are to `search`.
    """

    columns: Floats
    term: Ints
    strengths: Floats
    search: Bools


def kept_fits(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    left_out: Ints,
    penalties: Floats,
    start: Floats,
) -> KeptFits:
    """Fits from `start`, shape (P, fits), with the curvature of its mean."""
    penalties = np.maximum(penalties, PENALTY_FLOOR * float(weight.sum()))
    row_curvature = curvature(design @ start.mean(axis=1), weight)
    grams = fold_grams(design, row_curvature, fold, int(fold.max()) + 1)
    factors = left_out_factors(grams, left_out, penalties)
    coef, iterations = advance_together(
        design, y, weight, fold, left_out, penalties, start, factors
    )
    return KeptFits(design, left_out, penalties, coef, row_curvature, factors, iterations)


def append_columns(
    fits: KeptFits, new: NewColumns, y: Floats, weight: Floats, fold: Ints
) -> tuple[KeptFits, Floats]:
    """Fits of the design with further columns, and the strengths of these."""
    size, left_out = fits.design.shape[1], fits.left_out
    design = np.hstack([fits.design, new.columns])
    weighted = fits.row_curvature[:, None] * new.columns
    parts = [design[fold == f].T @ weighted[fold == f] for f in range(int(fold.max()) + 1)]
    every = np.sum(parts, axis=0)
    grams = [every - part for part in parts] + [every]
    solved = [
        dtrtrs(factor, grams[f][:size], lower=0, trans=1)[0]
        for factor, f in zip(fits.factors, left_out, strict=True)
    ]
    schur = [grams[f][size:] - part.T @ part for part, f in zip(solved, left_out, strict=True)]
    strengths = new.strengths.copy()
    if new.search.any():
        score = _scores(fits, new.columns, y, weight, fold)
        for k in np.flatnonzero(new.search):
            strengths[:, k] = strengths_of_quadratic(
                schur[k], score[:, k], strengths[:, k], new.term
            )
    penalties = np.maximum(strengths[new.term], PENALTY_FLOOR * float(weight.sum()))
    joined = np.vstack([fits.penalties, penalties])
    start = np.vstack([fits.coef, np.zeros_like(penalties)])
    if fits.iterations >= STALE_ITERATIONS:
        return kept_fits(design, y, weight, fold, left_out, joined, start), strengths
    factors = [_grown(*each) for each in zip(fits.factors, solved, schur, penalties.T, strict=True)]
    coef, iterations = advance_together(design, y, weight, fold, left_out, joined, start, factors)
    kept = KeptFits(design, left_out, joined, coef, fits.row_curvature, factors, iterations)
    return kept, strengths


def _scores(fits: KeptFits, columns: Floats, y: Floats, weight: Floats, fold: Ints) -> Floats:
    """Minus the gradient of the loss in the coefficients of new columns, (k, fits)."""
    residual = y[:, None] - expit(fits.design @ fits.coef)
    residual *= weight[:, None] * (fold[:, None] != fits.left_out)
    return np.asarray(columns.T @ residual)


def strengths_of_quadratic(schur: Floats, score: Floats, begin: Floats, term: Ints) -> Floats:
    """Strengths of terms by restricted likelihood, everything else at its optimum.

    To second order in their coefficients: `schur` is their information once the others follow,
    `score` their gradient at zero. Fellner–Schall steps as in `fellner_schall`.
    """
    of_term = (term == np.arange(len(begin))[:, None]).astype(np.float64)
    size, strengths, freedom = of_term.sum(axis=1), begin, np.full(len(begin), np.inf)
    for _ in range(SEARCH_STEPS):
        inverse = np.linalg.inv(schur + np.diag(strengths[term]))
        previous = freedom
        freedom = np.maximum(size - strengths * (of_term @ np.diag(inverse)), 0.0)
        square = of_term @ (inverse @ score) ** 2
        strengths = np.clip(freedom / np.maximum(square, 1e-300), *STRENGTH_BOUNDS)
        if np.all(np.abs(freedom - previous) <= FREEDOM_TOLERANCE):
            break
    return strengths


def _grown(factor: Floats, solved: Floats, schur: Floats, penalty: Floats) -> Floats:
    """Upper factor R of a matrix that grew: `solved` is R^-T times its new columns."""
    size, new = solved.shape
    joined = np.zeros((size + new, size + new), order="F")
    joined[:size, :size] = factor
    joined[:size, size:] = solved
    joined[size:, size:] = cholesky(schur + np.diag(penalty))
    return joined

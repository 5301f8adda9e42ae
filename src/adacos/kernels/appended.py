"""Fits without each fold of a design that grows by columns, at kept strengths.

The objective is that of `adacos.kernels.irls`. From one design to the next the row curvature is
kept, so that the Cholesky factor of each fit grows by the new columns instead of being computed
again: P² operations a column in place of P³ / 3, and the fits continue from where they were.
Gradients are exact, hence so are the optima; what a kept curvature costs is iterations, and when
they become many it is computed again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri, dtrtrs

from adacos.kernels.irls import (
    FREEDOM_TOLERANCE,
    PENALTY_FLOOR,
    SEARCH_STEPS,
    STRENGTH_BOUNDS,
    advance_together,
    cholesky,
    curvature,
    factors_without_fold,
    fold_grams,
    residuals,
)
from adacos.typing import Bools, Floats, Ints

# Iterations from which on the curvature is taken anew at the next design.
STALE_ITERATIONS = 8
# Steps towards the strength of one term while all else is kept, and how often at most all terms
# are fitted anew in between.
OWN_STEPS, SETTLING_ROUNDS = 100, 3


class KeptFits(NamedTuple):
    """Fits of one design, the k-th without the rows of fold without_fold[k].

    Attributes
    ----------
    without_fold : (fits,), the fold without which it is made; the number of folds for all rows.
    candidate : (fits,), fits that differ in that fold alone are of one candidate.
    penalties, coef : (P, fits).
    row_curvature : (candidates, n) kept.
    factors : of the Gram matrix at that curvature plus the penalty, one for each fit.
    iterations : what the last design took.
    """

    without_fold: Ints
    candidate: Ints
    penalties: Floats
    coef: Floats
    row_curvature: Floats
    factors: list[Floats]
    iterations: int


class NewColumns(NamedTuple):
    """The term of each column to append.

    `strengths` (terms, fits) are those of the terms, or where the search for them begins in the
    fits that are to `search`.
    """

    term: Ints
    strengths: Floats
    search: Bools


def kept_fits(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    without_fold: Ints,
    candidate: Ints,
    penalties: Floats,
    start: Floats,
) -> KeptFits:
    """Fits from `start`, shape (P, fits), with the curvature of each candidate's mean there."""
    penalties = np.maximum(penalties, PENALTY_FLOOR * float(weight.sum()))
    row_curvature = np.empty((int(candidate.max()) + 1, len(y)))
    factors: list[Floats] = [np.empty(0)] * len(without_fold)
    for c, own in enumerate(row_curvature):
        fits = np.flatnonzero(candidate == c)
        own[:] = curvature(design @ start[:, fits].mean(axis=1), weight)
        grams = fold_grams(design, own, fold, int(fold.max()) + 1)
        of_candidate = factors_without_fold(grams, without_fold[fits], penalties[:, fits])
        for k, factor in zip(fits.tolist(), of_candidate, strict=True):
            factors[k] = factor
    coef, iterations = advance_together(
        design, y, weight, fold, without_fold, penalties, start, factors
    )
    return KeptFits(without_fold, candidate, penalties, coef, row_curvature, factors, iterations)


def append_columns(
    fits: KeptFits, design: Floats, new: NewColumns, y: Floats, weight: Floats, fold: Ints
) -> tuple[KeptFits, Floats]:
    """Fits of a design whose last columns are new, and the strengths of these.

    The others are those of `fits`, or near to them: their part of the factors is kept.
    """
    size, n_new, without_fold = len(fits.coef), len(new.term), fits.without_fold
    strengths = new.strengths.copy()
    stale = fits.iterations >= STALE_ITERATIONS
    solved: list[Floats] = []
    schur: list[Floats] = []
    if new.search.any() or not stale:
        grams = _new_grams(fits, design, n_new, fold)
        for factor, gram in zip(fits.factors, grams, strict=True):
            solved.append(dtrtrs(factor, gram[:size], lower=0, trans=1)[0])
            schur.append(gram[size:] - solved[-1].T @ solved[-1])
    if new.search.any():
        score = _scores(fits, design, y, weight, fold)
        for k in np.flatnonzero(new.search):
            strengths[:, k] = strengths_of_quadratic(
                schur[k], score[:, k], strengths[:, k], new.term
            )
    penalties = np.maximum(strengths[new.term], PENALTY_FLOOR * float(weight.sum()))
    joined = np.vstack([fits.penalties, penalties])
    start = np.vstack([fits.coef, np.zeros_like(penalties)])
    if stale:
        rows = y, weight, fold, without_fold, fits.candidate
        return kept_fits(design, *rows, joined, start), strengths
    factors = [_grown(*each) for each in zip(fits.factors, solved, schur, penalties.T, strict=True)]
    coef, iterations = advance_together(
        design, y, weight, fold, without_fold, joined, start, factors
    )
    kept = fits._replace(penalties=joined, coef=coef, factors=factors, iterations=iterations)
    return kept, strengths


def _new_grams(fits: KeptFits, design: Floats, n_new: int, fold: Ints) -> list[Floats]:
    """Products of the columns with the weighted new ones, (P, n_new), for each fit."""
    weighted = (fits.row_curvature[:, :, None] * design[:, -n_new:]).transpose(1, 0, 2)
    flat = weighted.reshape(len(design), -1)
    parts = np.stack([design[fold == f].T @ flat[fold == f] for f in range(int(fold.max()) + 1)])
    parts = parts.reshape(len(parts), design.shape[1], -1, n_new)
    every = parts.sum(axis=0)
    grams = [*(every - parts), every]
    return [grams[f][:, c] for f, c in zip(fits.without_fold, fits.candidate, strict=True)]


def _scores(fits: KeptFits, design: Floats, y: Floats, weight: Floats, fold: Ints) -> Floats:
    """Minus the gradient of the loss in the coefficients of new columns, (k, fits)."""
    size = len(fits.coef)
    residual = residuals(design[:, :size], fits.coef, y)
    residual *= weight * (fold != fits.without_fold[:, None])
    return np.asarray(-(residual @ design[:, size:]).T)


def strengths_of_quadratic(schur: Floats, score: Floats, begin: Floats, term: Ints) -> Floats:
    """Strengths of terms by restricted likelihood, everything else at its optimum.

    To second order in their coefficients: `schur` (P, P) is their information once the others
    follow, `score` (P,) their gradient at zero. Independent groups of coefficients that share the
    strengths have a first axis. Fellner–Schall steps as in `fellner_schall`.
    """
    groups, scores = schur.reshape(-1, *schur.shape[-2:]), score.reshape(-1, len(term))
    of_term = (term == np.arange(len(begin))[:, None]).astype(np.float64)
    size, strengths = len(groups) * of_term.sum(axis=1), begin
    freedom = np.full(len(begin), np.inf)
    for _ in range(SEARCH_STEPS):
        spread, square = np.zeros(len(begin)), np.zeros(len(begin))
        for group, own in zip(groups, scores, strict=True):
            inverse = np.linalg.inv(group + np.diag(strengths[term]))
            spread += of_term @ np.diag(inverse)
            square += of_term @ (inverse @ own) ** 2
        previous = freedom
        freedom = np.maximum(size - strengths * spread, 0.0)
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


def settle_strengths(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    begin: Floats,
    start: Floats,
    grams: Floats,
) -> tuple[Floats, Floats]:
    """Strengths per term (terms, folds + 1) by restricted likelihood, and coefficients at them.

    Found without each fold and, last, with all rows, from `begin` and coefficients `start`; `grams`
    are the Gram matrices of the folds near the optimum. Each term is given its best strength with
    everything else where it is, see `_each_own`, and all are fitted again, until the degrees of
    freedom of every term are settled or the rounds are spent.
    """
    without_fold = np.arange(len(grams) + 1)
    terms = [np.flatnonzero(term == t) for t in range(len(begin))]
    rows = design, y, weight, fold, without_fold
    strengths, coef, freedom = begin, start, np.full(begin.shape, np.inf)
    for more in range(SETTLING_ROUNDS - 1, -1, -1):
        penalties = np.where(term[:, None] >= 0, strengths[term], 0.0)
        penalties = np.maximum(penalties, PENALTY_FLOOR * float(weight.sum()))
        factors = factors_without_fold(grams, without_fold, penalties)
        coef, _ = advance_together(*rows, penalties, coef, factors)
        if more == 0:
            break
        previous = freedom
        found, freedom = _each_own(factors, coef, strengths, terms)
        if np.all(np.abs(freedom - previous) <= FREEDOM_TOLERANCE):
            break
        # Two terms that can stand for each other would swap their parts for ever.
        strengths = found if np.isinf(previous).all() else np.sqrt(strengths * found)
    return strengths, coef


def _each_own(
    factors: list[Floats], coef: Floats, strengths: Floats, terms: list[Ints]
) -> tuple[Floats, Floats]:
    """Best strength of each term while the others keep theirs, and its degrees of freedom.

    Both of shape (terms, fits), as `strengths`; `factors` and `coef` (P, fits) are at the optimum.
    The block of the inverse Hessian is (S + strength)^-1, S the information about the term once
    the others follow, and the coefficients are (S + strength)^-1 times the score. So the term's
    restricted likelihood is known, in the eigenvectors of S coefficient by coefficient, and
    Fellner–Schall steps towards its optimum cost little.
    """
    inverses = [dpotri(factor, lower=0)[0] for factor in factors]
    found, freedom = np.empty_like(strengths), np.empty_like(strengths)
    sizes = np.array([len(own) for own in terms])
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        columns = np.stack([terms[t] for t in same])
        blocks = np.stack([each[columns[:, :, None], columns[:, None]] for each in inverses], 1)
        spread, vectors = np.linalg.eigh(blocks, UPLO="U")
        begin = strengths[same]
        information = np.maximum(1.0 / spread - begin[:, :, None], 0.0)
        score = np.einsum("tkij,tik->tkj", vectors, coef[columns]) / spread
        found[same], freedom[same] = _best_strengths(information, score, begin)
    return found, freedom


def _best_strengths(information: Floats, score: Floats, begin: Floats) -> tuple[Floats, Floats]:
    """Strengths of highest restricted likelihood of independent coefficients, (..., k)."""
    strengths, freedom = begin, np.full(begin.shape, np.inf)
    for _ in range(OWN_STEPS):
        shrunk = 1.0 / (information + strengths[..., None])
        previous, freedom = freedom, (information * shrunk).sum(axis=-1)
        square = ((score * shrunk) ** 2).sum(axis=-1)
        strengths = np.clip(freedom / np.maximum(square, 1e-300), *STRENGTH_BOUNDS)
        if np.all(np.abs(freedom - previous) <= 0.1 * FREEDOM_TOLERANCE):
            break
    return strengths, freedom

"""Penalty strengths for three or more classes, by out-of-fold log-likelihood.

The candidates, the blend of them and the folds are those of two classes, see
`adacos.kernels.strengths`; a strength is shared by all classes. Coefficients and log-odds come and
go as those of each later class against the first, coefficients as (K - 1, P), log-odds as
(n, K - 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky as upper_factor

from adacos.kernels.line_search import halve
from adacos.kernels.multinomial import (
    ClassFit,
    class_fellner_schall,
    class_loss,
    contrasts,
    fit_class_folds,
    fit_classes_together,
    fold_class_grams,
    newton_classes,
    shares_at,
    to_contrasts,
    to_reference,
    turned,
)
from adacos.kernels.strengths import (
    CHOICE_ROWS,
    LEAST_WEIGHT,
    SMOOTHNESS_GRID,
    Blend,
    central_strengths,
    on_simplex,
    one_smoothness,
    penalty_of,
    some_rows,
)
from adacos.typing import Bools, Floats, Ints

# As with two classes, and one looser step: of several classes some are often nearly separated.
RIDGE_GRID = (0.03, 0.3, 3.0, 30.0)


def straight_classes(
    design: Floats, y: Ints, weight: Floats, linear: Bools, n_classes: int
) -> Floats:
    """Coefficients of the straight model: cheap, with a curvature near that of the optimum."""
    begin = np.zeros((n_classes - 1, design.shape[1]))
    penalty, basis = np.ones(int(linear.sum())), contrasts(n_classes)
    fit = newton_classes(design[:, linear], y, weight, penalty, basis, tolerance=1e-4)
    begin[:, linear] = fit.coef
    return to_reference(begin, basis)


def fixed_class_strengths(
    design: Floats,
    y: Ints,
    weight: Floats,
    fold: Ints | None,
    term: Ints,
    strengths: Floats,
    *,
    start: Floats,
    tolerance: float = 1e-12,
) -> Blend:
    """Fit at given strengths, with the out-of-fold log-odds of true refits (NaN without folds)."""
    penalty, basis = penalty_of(term, strengths), contrasts(len(start) + 1)
    begin = to_contrasts(start, basis)
    fit = newton_classes(design, y, weight, penalty, basis, begin, tolerance=tolerance)
    coef = to_reference(fit.coef, basis)
    if fold is None:
        return Blend(strengths, coef, np.full((len(y), len(start)), np.nan), np.nan)
    near = _turn(fit, weight, basis)
    grams = fold_class_grams(design, near.log_odds, weight, fold, int(fold.max()) + 1, near.basis)
    _, held_out = fit_class_folds(
        design, y, weight, fold, penalty[:, None], near.coef, grams, near.basis
    )
    loss = float(weight @ class_loss(held_out[:, :, 0], y, near.basis))
    return Blend(strengths, coef, to_reference(held_out[:, :, 0], near.basis).T, loss)


class _Near(NamedTuple):
    """A fit near those to come, in contrasts that are nearly independent of each other there."""

    coef: Floats
    log_odds: Floats
    basis: Floats


def _turn(fit: ClassFit, weight: Floats, basis: Floats) -> _Near:
    new = turned(fit.log_odds, weight, basis)
    change = new.T @ basis
    return _Near(change @ fit.coef, change @ fit.log_odds, new)


def blend_class_strengths(
    design: Floats,
    y: Ints,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: Bools,
    *,
    families: tuple[str, ...] = ("common", "per_covariate"),
    start: Floats,
    candidates: Bools | None = None,
) -> Blend:
    """Blend of the candidates; parameters as for `adacos.kernels.strengths.blend_strengths`."""
    n_folds = int(fold.max()) + 1
    if candidates is None and len(y) >= 4 * CHOICE_ROWS:
        rows = some_rows(fold, y.astype(np.float64), len(y) // CHOICE_ROWS)
        part = (design[rows], y[rows], weight[rows], fold[rows])
        candidates = blend_class_strengths(*part, term, linear, families=families, start=start).used
    grid = [(s, r) for s in SMOOTHNESS_GRID for r in RIDGE_GRID] if "common" in families else []
    n_candidates = len(grid) + ("per_covariate" in families)
    tried = np.ones(n_candidates, dtype=np.bool_) if candidates is None else candidates
    if linear.all():
        tried = one_smoothness(tried, len(grid), len(RIDGE_GRID))
    found = _candidates(design, y, weight, fold, term, linear, start, grid, tried)
    held_out, basis = found.held_out, found.basis
    shares = stack_class_weights(held_out, y, weight, basis)
    leave_out, mean_shares = np.empty(held_out.shape[:2]), shares / (1 + n_folds)
    for f in range(n_folds):
        rows = fold == f
        others = (held_out[:, ~rows], y[~rows], weight[~rows])
        elsewhere = stack_class_weights(*others, basis, start=shares)
        leave_out[:, rows] = held_out[:, rows] @ elsewhere
        mean_shares += elsewhere / (1 + n_folds)
    used = tried.copy()
    used[tried] = mean_shares >= LEAST_WEIGHT
    return Blend(
        np.exp(np.log(found.strengths) @ shares),
        to_reference(found.coefs @ shares, basis),
        to_reference(leave_out, basis).T,
        float(weight @ class_loss(leave_out, y, basis)),
        used,
    )


class _Candidates(NamedTuple):
    """Candidates side by side: strengths (terms, candidates), contrasts, held-out contrasts, U."""

    strengths: Floats
    coefs: Floats
    held_out: Floats
    basis: Floats


def _candidates(
    design: Floats,
    y: Ints,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: Bools,
    start: Floats,
    grid: list[tuple[float, float]],
    tried: Bools,
) -> _Candidates:
    """Fits of the candidates to be tried: those of the grid, then that per covariate."""
    center = central_strengths(linear)
    plain = contrasts(len(start) + 1)
    begin, penalty = to_contrasts(start, plain), penalty_of(term, center)
    fit = newton_classes(design, y, weight, penalty, plain, begin, tolerance=1e-6)
    near = _turn(fit, weight, plain)
    basis = near.basis
    grams = fold_class_grams(design, near.log_odds, weight, fold, int(fold.max()) + 1, basis)
    strengths = np.empty((len(linear), 0))
    coefs = np.empty((len(start), design.shape[1], 0))
    held_out = np.empty((len(start), len(y), 0))
    if tried[: len(grid)].any():
        chosen = [pair for pair, keep in zip(grid, tried, strict=False) if keep]
        strengths = np.stack([np.where(linear, r, s) for s, r in chosen], axis=1)
        penalties = np.stack([penalty_of(term, column) for column in strengths.T], axis=1)
        coefs, held_out = fit_class_folds(
            design, y, weight, fold, penalties, near.coef, grams, basis
        )
    if tried[len(grid) :].any():
        own, coef, log_odds = _by_restricted_likelihood(
            design, y, weight, fold, term, center, near, grams
        )
        strengths = np.column_stack([strengths, own])
        coefs = np.concatenate([coefs, coef[:, :, None]], axis=2)
        held_out = np.concatenate([held_out, log_odds[:, :, None]], axis=2)
    return _Candidates(strengths, coefs, held_out, basis)


def stack_class_weights(
    log_odds: Floats, y: Ints, weight: Floats, basis: Floats, start: Floats | None = None
) -> Floats:
    """Weights w >= 0 with sum 1 that minimise the loss of log_odds @ w.

    `log_odds` are contrasts (K - 1, n, candidates). The Hessian is the sum over rows and classes of
    s p_k v v', v the class's scores under the candidates less their mean over the classes.
    """
    n_candidates = log_odds.shape[2]
    if n_candidates == 1:
        return np.ones(1)
    shares = np.full(n_candidates, 1.0 / n_candidates) if start is None else start
    mixed = log_odds @ shares
    scores = np.tensordot(basis, log_odds, axes=(1, 0))
    right = scores[y, np.arange(len(y))]

    def loss(mixed: Floats, shares: Floats) -> float:
        return float(weight @ class_loss(mixed, y, basis))

    value = loss(mixed, shares)
    # Candidates are nearly collinear: a ridge, per unit of row weight, that only breaks ties.
    ridge = 1e-6 * float(weight.sum()) * np.eye(n_candidates)
    for _ in range(30):
        p = shares_at(mixed, basis)
        mean = np.einsum("kn,knc->nc", p, scores)
        gradient = weight @ (mean - right)
        centred = (scores - mean) * np.sqrt(weight * p)[:, :, None]
        flat = centred.reshape(-1, n_candidates)
        direction = on_simplex(upper_factor(flat.T @ flat + ridge), gradient, shares) - shares
        slope = float(gradient @ direction)
        if -slope <= 1e-9 * (1.0 + abs(value)):
            break
        _, mixed, shares, value = halve(
            loss, mixed, log_odds @ direction, shares, direction, value, slope, shortest=1e-6
        )
    shares = np.maximum(shares, 0.0)
    return shares / float(shares.sum())


def _by_restricted_likelihood(
    design: Floats,
    y: Ints,
    weight: Floats,
    fold: Ints,
    term: Ints,
    begin: Floats,
    near: _Near,
    grams: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Strengths per term, contrasts on all rows, and contrasts (K - 1, n) without each fold."""
    every = grams.sum(axis=0)
    strengths, coef = class_fellner_schall(
        design, y, weight[:, None], term, begin, near.coef, every[None], near.basis
    )
    left_in = weight[:, None] * (fold[:, None] != np.arange(len(grams)))
    by_fold, refits = class_fellner_schall(
        design, y, left_in, term, begin, near.coef, every - grams, near.basis
    )
    penalties = np.stack([penalty_of(term, lam) for lam in (*by_fold.T, strengths[:, 0])], axis=1)
    fits = fit_classes_together(
        design,
        y,
        weight,
        fold,
        np.arange(len(grams) + 1),
        penalties,
        np.concatenate([refits, coef], axis=2),
        grams,
        near.basis,
    )
    held_out = np.empty((len(coef), len(y)))
    for f in range(len(grams)):
        rows = fold == f
        held_out[:, rows] = fits[:, :, f] @ design[rows].T
    return strengths[:, 0], fits[:, :, -1], held_out

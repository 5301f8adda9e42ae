"""Penalty strengths for three or more classes, by out-of-fold log-likelihood.

The candidates, the blend of them and the folds are those of two classes, see
`adacos.kernels.strengths`; a strength is shared by all classes. Coefficients and log-odds come and
go as those of each later class against the first, coefficients as (K - 1, P), log-odds as
(n, K - 1).

A design with further terms can keep the candidates of the one before (`keep_class_strengths`). To
new terms a common candidate gives its strengths. The candidate per covariate gives those of highest
restricted likelihood, found again without each fold, all else being where it was. Every fit
continues from its own coefficients, so that what a fold keeps was found without it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky as upper_factor
from scipy.linalg.lapack import dpotrs

from adacos.kernels.appended import strengths_of_quadratic
from adacos.kernels.line_search import halve
from adacos.kernels.multinomial import (
    ClassFit,
    class_fellner_schall,
    class_gram,
    class_loss,
    contrasts,
    fold_class_grams,
    newton_classes,
    shares_at,
    to_contrasts,
    to_reference,
    turned,
)
from adacos.kernels.multinomial_fits import (
    ClassRows,
    advance_classes,
    hessian_factors,
    joint_gram,
    objectives,
)
from adacos.kernels.strengths import (
    CHOICE_ROWS,
    LEAST_WEIGHT,
    SMOOTHNESS_GRID,
    Blend,
    StrengthMixture,
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
    rows = ClassRows(design, y, weight, fold, basis)
    held_out = rows.held_out(_with_folds(rows, penalty[None], fit.coef[None]))[:, :, 0]
    loss = float(weight @ class_loss(held_out, y, basis))
    return Blend(strengths, coef, to_reference(held_out, basis).T, loss)


def _with_folds(rows: ClassRows, penalties: Floats, every: Floats) -> Floats:
    """Fits of candidates without each fold and, last, `every`, (candidates, folds + 1, K - 1, P).

    `every` (candidates, K - 1, P) are their optima on all rows, where all begin and whose curvature
    they keep; `penalties` has shape (candidates, P).
    """
    n, n_folds = len(every), rows.n_folds
    factors = [
        hessian_factors(rows, joint_gram(rows, coef), penalty[None])[0]
        for coef, penalty in zip(every, penalties, strict=True)
    ]
    candidate = np.repeat(np.arange(n), n_folds)
    without = advance_classes(
        rows,
        np.tile(np.arange(n_folds), n),
        penalties[candidate],
        every[candidate],
        factors,
        candidate,
    )
    return np.concatenate([without.reshape(n, n_folds, *every.shape[1:]), every[:, None]], axis=1)


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
    if candidates is None and len(y) >= 4 * CHOICE_ROWS:
        rows = some_rows(fold, y.astype(np.float64), len(y) // CHOICE_ROWS)
        part = (design[rows], y[rows], weight[rows], fold[rows])
        candidates = blend_class_strengths(*part, term, linear, families=families, start=start).used
    grid = [(s, r) for s in SMOOTHNESS_GRID for r in RIDGE_GRID] if "common" in families else []
    n_candidates = len(grid) + ("per_covariate" in families)
    tried = np.ones(n_candidates, dtype=np.bool_) if candidates is None else candidates
    if linear.all():
        tried = one_smoothness(tried, len(grid), len(RIDGE_GRID))
    plain = contrasts(len(start) + 1)
    begin, penalty = to_contrasts(start, plain), penalty_of(term, central_strengths(linear))
    fit = newton_classes(design, y, weight, penalty, plain, begin, tolerance=1e-6)
    near = _turn(fit, weight, plain)
    whole = ClassRows(design, y, weight, fold, near.basis)
    strengths, coefs = _candidates(whole, term, linear, near, grid, tried)
    per_covariate = np.arange(n_candidates)[tried] >= len(grid)
    blend = class_blend(whole, strengths, per_covariate, coefs)
    assert blend.used is not None
    used = tried.copy()
    used[tried] = blend.used
    return blend._replace(used=used)


def class_blend(rows: ClassRows, strengths: Floats, per_covariate: Bools, coefs: Floats) -> Blend:
    """Blend of fitted candidates; `used` says which of them have weight.

    `strengths` has shape (terms, candidates, folds + 1), `coefs` (candidates, folds + 1, K - 1, P);
    so has the blend's mixture, with each later class against the first.
    """
    _, y, weight, fold, basis = rows
    held_out, n_folds = rows.held_out(coefs), rows.n_folds
    shares = stack_class_weights(held_out, y, weight, basis)
    out_of_fold, mean_shares = np.empty(held_out.shape[:2]), shares / (1 + n_folds)
    for f in range(n_folds):
        own = fold == f
        others = (held_out[:, ~own], y[~own], weight[~own])
        elsewhere = stack_class_weights(*others, basis, start=shares)
        out_of_fold[:, own] = held_out[:, own] @ elsewhere
        mean_shares += elsewhere / (1 + n_folds)
    kept = mean_shares >= LEAST_WEIGHT
    change = basis[1:] - basis[0]
    return Blend(
        np.exp(np.log(strengths[:, :, -1]) @ shares),
        change @ np.tensordot(shares, coefs[:, -1], axes=1),
        to_reference(out_of_fold, basis).T,
        float(weight @ class_loss(out_of_fold, y, basis)),
        kept,
        StrengthMixture(strengths[:, kept], per_covariate[kept], change @ coefs[kept]),
    )


def _candidates(
    rows: ClassRows,
    term: Ints,
    linear: Bools,
    near: _Near,
    grid: list[tuple[float, float]],
    tried: Bools,
) -> tuple[Floats, Floats]:
    """Fits of the candidates to be tried: those of the grid, then that per covariate.

    Strengths (terms, candidates, folds + 1) and contrasts (candidates, folds + 1, K - 1, P).
    """
    n_fits = rows.n_folds + 1
    strengths = np.empty((len(linear), 0, n_fits))
    coefs = np.empty((0, n_fits, *near.coef.shape))
    if tried[: len(grid)].any():
        chosen = [pair for pair, keep in zip(grid, tried, strict=False) if keep]
        common = np.stack([np.where(linear, r, s) for s, r in chosen], axis=1)
        strengths = np.repeat(common[:, :, None], n_fits, axis=2)
        penalties = np.stack([penalty_of(term, column) for column in common.T])
        coefs = _with_folds(rows, penalties, _on_all_rows(rows, penalties, near.coef))
    if tried[len(grid) :].any():
        own, coef = _by_restricted_likelihood(rows, term, central_strengths(linear), near)
        strengths = np.concatenate([strengths, own[:, None]], axis=1)
        coefs = np.concatenate([coefs, coef[None]])
    return strengths, coefs


def _on_all_rows(rows: ClassRows, penalties: Floats, near: Floats) -> Floats:
    """Fits of candidates on all rows, (candidates, K - 1, P), from a fit near them."""
    n = len(penalties)
    factors = hessian_factors(rows, joint_gram(rows, near), penalties)
    start = np.repeat(near[None], n, axis=0)
    return advance_classes(rows, np.full(n, rows.n_folds), penalties, start, factors, np.arange(n))


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
    rows: ClassRows, term: Ints, begin: Floats, near: _Near
) -> tuple[Floats, Floats]:
    """Strengths (terms, folds + 1) and contrasts (folds + 1, K - 1, P), last those on all rows."""
    design, y, weight, fold, basis = rows
    without_fold = np.arange(rows.n_folds + 1)
    grams = fold_class_grams(design, near.log_odds, weight, fold, rows.n_folds, basis)
    every = grams.sum(axis=0)
    strengths, coef = class_fellner_schall(
        design, y, weight[:, None], term, begin, near.coef, every[None], basis
    )
    left_in = weight[:, None] * (fold[:, None] != without_fold[:-1])
    by_fold, refits = class_fellner_schall(
        design, y, left_in, term, begin, near.coef, every - grams, basis
    )
    found = np.column_stack([by_fold, strengths])
    penalties = np.stack([penalty_of(term, lam) for lam in found.T])
    start = np.moveaxis(np.concatenate([refits, coef], axis=2), 2, 0)
    factors = hessian_factors(rows, joint_gram(rows, coef[:, :, 0]), penalties)
    return found, advance_classes(rows, without_fold, penalties, start, factors, without_fold)


def keep_class_strengths(
    rows: ClassRows, term: Ints, mixture: StrengthMixture, new: Bools
) -> Blend:
    """Blend of candidates whose strengths are kept; `new` says which terms have none yet.

    `mixture` holds all terms and columns: for the new terms where the search for strengths begins,
    and coefficients of zero. Its coefficients are those of each later class against the first,
    shape (candidates, folds + 1, K - 1, P).
    """
    without_fold = np.arange(rows.n_folds + 1)
    strengths, start = mixture.strengths.copy(), rows.basis[1:].T @ mixture.coefs
    factors: list[Floats] = []
    which, penalties = [], []
    for c, per_covariate in enumerate(mixture.per_covariate):
        gram = joint_gram(rows, start[c, -1])
        if per_covariate:
            strengths[:, c] = _searched(rows, term, strengths[:, c], new, start[c], gram)
        own = np.stack([penalty_of(term, column) for column in strengths[:, c].T])
        which.append(len(factors) + (without_fold if per_covariate else 0 * without_fold))
        factors += hessian_factors(rows, gram, own if per_covariate else own[:1])
        penalties.append(own)
    coefs = advance_classes(
        rows,
        np.tile(without_fold, len(start)),
        np.concatenate(penalties),
        start.reshape(-1, *start.shape[2:]),
        factors,
        np.concatenate(which),
    )
    return class_blend(rows, strengths, mixture.per_covariate, coefs.reshape(start.shape))


def _searched(
    rows: ClassRows, term: Ints, begin: Floats, new: Bools, coef: Floats, gram: Floats
) -> Floats:
    """Strengths (terms, folds + 1) with those of the new terms by restricted likelihood.

    `gram` is the joint Hessian of the loss of all rows, from which that of each fold is taken. The
    information about new columns, once the others follow, is the inverse of their block of the
    inverse Hessian, less their penalty.
    """
    design, _, weight, fold, basis = rows
    without_fold, size = np.arange(rows.n_folds + 1), len(basis) - 1
    columns = np.flatnonzero(np.append(new, False)[term])
    of_term = np.tile(np.unique(term[columns], return_inverse=True)[1], size)
    joint = (np.arange(size)[:, None] * len(term) + columns).ravel()
    penalties = np.stack([penalty_of(term, column) for column in begin.T])
    score = -objectives(rows, without_fold, penalties, coef)[1].reshape(len(coef), -1)[:, joint]
    units = np.zeros((len(gram), len(joint)), order="F")
    units[joint, np.arange(len(joint))] = 1.0
    log_odds, strengths = coef[-1] @ design.T, begin.copy()
    for f in without_fold.tolist():
        own = fold == f
        rest = gram - class_gram(design[own], log_odds[:, own], weight[own], basis)
        factor = hessian_factors(rows, rest, penalties[f : f + 1])[0]
        inverse = dpotrs(factor, units, lower=0)[0][joint]
        schur = np.linalg.inv(inverse) - np.diag(np.tile(penalties[f, columns], size))
        strengths[new, f] = strengths_of_quadratic(schur, score[f], begin[new, f], of_term)
    return strengths

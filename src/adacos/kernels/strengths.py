"""Penalty strengths by out-of-fold log-likelihood: candidates are blended, not picked.

Candidates are of two families of diagonal penalties. *Common*: one smoothness strength for every
wiggly part and one ridge strength for every linear part, on a grid. *Per covariate*: a strength for
the linear and one for the wiggly part of each covariate by restricted likelihood, found again
without each fold. All share one design, so a weighted mean of their coefficients is again an
additive model. The weights (not negative, sum one) minimise the held-out loss of the weighted mean
of log-odds, a convex problem; the best single candidate is a corner of it, and picking that corner
is noisy where several are about as good. The out-of-fold log-odds of a fold's rows use weights
found on the *other* folds, so that they do not see the rows they are judged on.

With many rows the strengths are found on a part of them, see `PART_ROWS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky as upper_factor
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from scipy.special import expit

from adacos.kernels.appended import kept_fits, settle_strengths
from adacos.kernels.cone import Cone, cone_fits
from adacos.kernels.irls import (
    NewtonFit,
    curvature,
    fellner_schall,
    fit_folds,
    fit_together,
    fold_coefs,
    fold_grams,
    held_out_log_odds,
    newton,
)
from adacos.kernels.line_search import halve
from adacos.typing import Bools, Floats, Ints

# See `_by_restricted_likelihood`.
Search = Callable[
    [Floats, Floats, Floats, Ints, Ints, Floats, Floats, Floats], tuple[Floats, Floats]
]

# From wiggly to straight and from loose to tight; the blend fills the gaps of the coarse grid.
SMOOTHNESS_GRID = (1.0, 30.0, 1e4)
RIDGE_GRID = (0.3, 3.0, 30.0, 100.0)
# The candidate in the middle, from which all others start.
CENTER = (30.0, 3.0)
# From twice these rows on, every candidate is tried on about this many of them, an equal share of
# each fold and class. Only those used there are fitted on all rows, which also weigh them anew.
PART_ROWS = 4096
# The same with more than two classes, from four times these rows on.
CHOICE_ROWS = 8192
# Strengths per covariate found on a part of the rows begin at most here on all of them: the steps
# hardly leave a term that is pruned.
LOOSE_STRENGTH = 30.0
# A candidate is used when its weight, averaged over the blends with all rows and without each fold,
# is at least this.
LEAST_WEIGHT = 0.05


class Blend(NamedTuple):
    """Fit on all rows and out-of-fold log-odds.

    `strengths` is the geometric mean of the candidates' strengths with the blend's weights; `used`
    says which candidates these are, None where there was no choice, and `mixture` what was found
    for them.
    """

    strengths: Floats
    coef: Floats
    out_of_fold_log_odds: Floats
    out_of_fold_loss: float
    used: Bools | None = None
    mixture: StrengthMixture | None = None


class StrengthMixture(NamedTuple):
    """Used candidates without each fold and, last, with all rows.

    Attributes
    ----------
    strengths : (terms, candidates, folds + 1).
    per_covariate : (candidates,) whether a candidate is of that family.
    coefs : (columns of the design, candidates, folds + 1).
    """

    strengths: Floats
    per_covariate: Bools
    coefs: Floats


def central_strengths(linear: NDArray[np.bool_]) -> Floats:
    """Strengths of the candidate in the middle, for terms that are linear or wiggly parts."""
    return np.where(linear, CENTER[1], CENTER[0])


def row_loss(log_odds: Floats, y: Floats) -> Floats:
    """Negative log-likelihood of each row; `log_odds` may have one column per candidate."""
    labels = y if log_odds.ndim == 1 else y[:, None]
    return np.logaddexp(0.0, log_odds) - labels * log_odds


def fixed_strengths(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints | None,
    term: Ints,
    strengths: Floats,
    *,
    start: Floats | None = None,
    tolerance: float = 1e-12,
    cone: Cone | None = None,
) -> Blend:
    """Fit at given strengths, with the out-of-fold log-odds of true refits (NaN without folds)."""
    penalty = penalty_of(term, strengths)
    fit = newton(design, y, weight, penalty, start, tolerance=tolerance)
    if cone is not None:
        return _fixed_within(design, y, weight, fold, strengths, penalty, fit, tolerance, cone)
    if fold is None:
        return Blend(strengths, fit.coef, np.full(len(y), np.nan), np.nan)
    grams = fold_grams(design, curvature(fit.log_odds, weight), fold, int(fold.max()) + 1)
    _, held_out = fit_folds(design, y, weight, fold, penalty[:, None], fit.coef, grams)
    loss = float(weight @ row_loss(held_out[:, 0], y))
    return Blend(strengths, fit.coef, held_out[:, 0], loss)


def _fixed_within(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints | None,
    strengths: Floats,
    penalty: Floats,
    fit: NewtonFit,
    tolerance: float,
    cone: Cone,
) -> Blend:
    """`fixed_strengths` with coefficients in a cone, from the fit that is not."""
    coefs = fit.coef[:, None, None]
    if fold is not None:
        grams = fold_grams(design, curvature(fit.log_odds, weight), fold, int(fold.max()) + 1)
        coefs = fold_coefs(design, y, weight, fold, penalty[:, None], fit.coef, grams)
        coefs[:, 0, -1] = fit.coef
    penalties = np.broadcast_to(penalty[:, None, None], coefs.shape)
    coefs = cone_fits(design, y, weight, fold, penalties, coefs, cone, tolerance=tolerance)
    if fold is None:
        return Blend(strengths, coefs[:, 0, -1], np.full(len(y), np.nan), np.nan)
    held_out = held_out_log_odds(design, fold, coefs)[:, 0]
    loss = float(weight @ row_loss(held_out, y))
    return Blend(strengths, coefs[:, 0, -1], held_out, loss)


def blend_strengths(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: Bools,
    *,
    families: tuple[str, ...] = ("common", "per_covariate"),
    start: Floats | None = None,
    candidates: Bools | None = None,
    cone: Cone | None = None,
) -> Blend:
    """Blend of the candidates of the given families.

    `term[m]` numbers the penalised terms (-1 for the intercept) and `linear[t]` says whether term t
    is a linear part (ridge) or a wiggly part (smoothness). `start` is a coefficient vector.
    `candidates` limits the choice to those that a similar problem used (`Blend.used`). With a
    `cone` each candidate is fitted within it, at strengths found without it, and so is their blend.
    """
    if candidates is None and len(y) >= 2 * PART_ROWS:
        rows = some_rows(fold, y, round(len(y) / PART_ROWS))
        part = design[rows], y[rows], weight[rows], fold[rows], term, linear
        chosen = _blend_tried(*part, families, start, None, settle_strengths, cone)
        return _blend_chosen(design, y, weight, fold, term, chosen, cone)
    whole = design, y, weight, fold, term, linear
    return _blend_tried(*whole, families, start, candidates, _by_restricted_likelihood, cone)


def _blend_tried(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: Bools,
    families: tuple[str, ...],
    start: Floats | None,
    candidates: Bools | None,
    search: Search,
    cone: Cone | None,
) -> Blend:
    """`blend_strengths` on the rows given; `search` finds strengths per covariate."""
    grid = [(s, r) for s in SMOOTHNESS_GRID for r in RIDGE_GRID] if "common" in families else []
    n_candidates = len(grid) + ("per_covariate" in families)
    tried = np.ones(n_candidates, dtype=np.bool_) if candidates is None else candidates
    if linear.all():
        tried = one_smoothness(tried, len(grid), len(RIDGE_GRID))
    rows = design, y, weight, fold, term, linear
    strengths, coefs = _candidates(*rows, start, grid, tried, search)
    if cone is not None:
        coefs = _within(design, y, weight, fold, term, strengths, coefs, cone)
    held_out = held_out_log_odds(design, fold, coefs)
    per_covariate = np.arange(n_candidates)[tried] >= len(grid)
    return _blend(
        y, weight, fold, held_out, StrengthMixture(strengths, per_covariate, coefs), tried
    )


def _blend(
    y: Floats, weight: Floats, fold: Ints, held_out: Floats, tried: StrengthMixture, names: Bools
) -> Blend:
    """Blend of candidates; `names` says which of all they are."""
    shares = blend_shares(held_out, y, weight, fold)
    out_of_fold = np.einsum("ij,ij->i", held_out, shares[fold])
    kept = shares.mean(axis=0) >= LEAST_WEIGHT
    used = names.copy()
    used[names] = kept
    return Blend(
        np.exp(np.log(np.ascontiguousarray(tried.strengths[:, :, -1])) @ shares[-1]),
        tried.coefs[:, :, -1] @ shares[-1],
        out_of_fold,
        float(weight @ row_loss(out_of_fold, y)),
        used,
        StrengthMixture(tried.strengths[:, kept], tried.per_covariate[kept], tried.coefs[:, kept]),
    )


def _blend_chosen(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    part: Blend,
    cone: Cone | None,
) -> Blend:
    """Blend on all rows of the candidates that a part of them used, from what was found there.

    A common strength is kept. Those per covariate continue to where all rows want them.
    """
    assert part.mixture is not None
    assert part.used is not None
    strengths, coefs = part.mixture.strengths.copy(), part.mixture.coefs.copy()
    n_folds, common = int(fold.max()) + 1, ~part.mixture.per_covariate
    for c in np.flatnonzero(part.mixture.per_covariate):
        grams = fold_grams(design, curvature(design @ coefs[:, c, -1], weight), fold, n_folds)
        begin = np.minimum(strengths[:, c], LOOSE_STRENGTH)
        strengths[:, c], coefs[:, c] = settle_strengths(
            design, y, weight, fold, term, begin, coefs[:, c], grams
        )
    if common.any():
        by_fit = strengths[:, common].transpose(0, 2, 1).reshape(len(strengths), -1)
        fits = kept_fits(
            design,
            y,
            weight,
            fold,
            np.repeat(np.arange(coefs.shape[2]), common.sum()),
            np.tile(np.arange(common.sum()), coefs.shape[2]),
            np.stack([penalty_of(term, lam) for lam in by_fit.T], axis=1),
            coefs[:, common].transpose(0, 2, 1).reshape(len(coefs), -1),
        )
        coefs[:, common] = fits.coef.reshape(len(coefs), -1, common.sum()).transpose(0, 2, 1)
    if cone is not None:
        coefs = _within(design, y, weight, fold, term, strengths, coefs, cone)
    held_out = held_out_log_odds(design, fold, coefs)
    tried = StrengthMixture(strengths, part.mixture.per_covariate, coefs)
    return _blend(y, weight, fold, held_out, tried, part.used)


def _within(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    strengths: Floats,
    coefs: Floats,
    cone: Cone,
) -> Floats:
    """Coefficients of candidates in a cone, with all rows and without each fold."""
    flat = strengths.reshape(len(strengths), -1)
    penalties = np.stack([penalty_of(term, column) for column in flat.T], axis=1)
    return cone_fits(design, y, weight, fold, penalties.reshape(coefs.shape), coefs, cone)


def blend_shares(held_out: Floats, y: Floats, weight: Floats, fold: Ints) -> Floats:
    """Weights of the candidates in the blend, (folds + 1, candidates).

    Row f is found without fold f, the last with all rows.
    """
    every = stack_weights(held_out, y, weight)
    shares = []
    for f in range(int(fold.max()) + 1):
        rows = fold != f
        shares.append(stack_weights(held_out[rows], y[rows], weight[rows], start=every))
    return np.stack([*shares, every])


def _candidates(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: Bools,
    start: Floats | None,
    grid: list[tuple[float, float]],
    tried: Bools,
    search: Search,
) -> tuple[Floats, Floats]:
    """Strengths and coefficients of the candidates to be tried: the grid, then per covariate.

    Each is of shape (..., candidates, folds + 1), see `StrengthMixture`.
    """
    n_folds = int(fold.max()) + 1
    center = central_strengths(linear)
    fit = newton(design, y, weight, penalty_of(term, center), start, tolerance=1e-6)
    grams = fold_grams(design, curvature(fit.log_odds, weight), fold, n_folds)
    strengths = np.empty((len(linear), 0, 1 + n_folds))
    coefs = np.empty((design.shape[1], 0, 1 + n_folds))
    if tried[: len(grid)].any():
        chosen = [pair for pair, keep in zip(grid, tried, strict=False) if keep]
        common = np.stack([np.where(linear, r, s) for s, r in chosen], axis=1)
        strengths = np.repeat(common[:, :, None], 1 + n_folds, axis=2)
        penalties = np.stack([penalty_of(term, column) for column in common.T], axis=1)
        coefs = fold_coefs(design, y, weight, fold, penalties, fit.coef, grams)
    if tried[len(grid) :].any():
        begin = np.repeat(center[:, None], n_folds + 1, axis=1)
        start = np.repeat(fit.coef[:, None], n_folds + 1, axis=1)
        own, own_coefs = search(design, y, weight, fold, term, begin, start, grams)
        strengths = np.concatenate([strengths, own[:, None]], axis=1)
        coefs = np.concatenate([coefs, own_coefs[:, None]], axis=1)
    return strengths, coefs


def one_smoothness(tried: Bools, n_common: int, n_ridge: int) -> Bools:
    """Where nothing is wiggly, of each ridge strength the first smoothness only: all fit alike.

    `n_common` candidates come first, with `n_ridge` ridge strengths for each smoothness.
    """
    once = np.zeros((n_common // n_ridge, n_ridge), dtype=np.bool_)
    once[:1] = tried[:n_common].reshape(once.shape).any(axis=0)
    return np.append(once.ravel(), tried[n_common:])


def some_rows(fold: Ints, y: Floats, step: int) -> Ints:
    """One row in `step`, evenly over folds and classes."""
    return np.sort(np.lexsort((y, fold))[::step])


def stack_weights(
    log_odds: Floats, y: Floats, weight: Floats, start: Floats | None = None
) -> Floats:
    """Weights w >= 0 with sum 1 that minimise the loss of log_odds @ w.

    Newton's method, each quadratic model minimised by `on_simplex`.
    """
    n_candidates = log_odds.shape[1]
    if n_candidates == 1:
        return np.ones(1)
    shares = np.full(n_candidates, 1.0 / n_candidates) if start is None else start
    mixed = log_odds @ shares

    def loss(mixed: Floats, shares: Floats) -> float:
        return float(weight @ row_loss(mixed, y))

    value = loss(mixed, shares)
    # Candidates are nearly collinear: a ridge, per unit of row weight, that only breaks ties.
    ridge = 1e-6 * float(weight.sum()) * np.eye(n_candidates)
    for _ in range(30):
        p = expit(mixed)
        gradient = log_odds.T @ (weight * (p - y))
        hessian = (log_odds.T * (weight * p * (1.0 - p))) @ log_odds + ridge
        direction = on_simplex(upper_factor(hessian), gradient, shares) - shares
        slope = float(gradient @ direction)
        if -slope <= 1e-9 * (1.0 + abs(value)):
            break
        _, mixed, shares, value = halve(
            loss, mixed, log_odds @ direction, shares, direction, value, slope, shortest=1e-6
        )
    shares = np.maximum(shares, 0.0)
    return shares / float(shares.sum())


def on_simplex(factor: Floats, gradient: Floats, shares: Floats) -> Floats:
    """Where on the simplex a quadratic model around `shares` is least.

    The model is 1/2 |R (w - w0)|^2 with R the upper `factor` of the Hessian and w0 its free
    minimiser; it is minimised as non-negative least squares with one more row for the sum.
    """
    target = factor @ shares - solve_triangular(factor, gradient, trans="T")
    # |R w - t| = |(R - t 1') w| where the sum is one. Homogeneous, the problem keeps its
    # direction whatever the weight of the row for the sum, and dividing by the sum is exact.
    shifted = factor - target[:, None]
    heavy = float(np.abs(shifted).max())
    trial, _ = nnls(
        np.vstack([shifted, np.full(len(shares), heavy)]),
        np.append(np.zeros(len(shares)), heavy),
    )
    return np.asarray(trial / trial.sum())


def _by_restricted_likelihood(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    begin: Floats,
    start: Floats,
    grams: Floats,
) -> tuple[Floats, Floats]:
    """Strengths per term and coefficients, found again without each fold and, last, with all rows.

    `begin` and `start` are those that they begin with. The folds do not begin with what all rows
    found: a term pruned with all rows would stay pruned.
    """
    every, without_fold = grams.sum(axis=0), np.arange(len(grams) + 1)
    strengths, coef = fellner_schall(
        design, y, weight[:, None], term, begin[:, -1], start[:, -1], every[None]
    )
    left_in = weight[:, None] * (fold[:, None] != without_fold[:-1])
    by_fold, refits = fellner_schall(
        design, y, left_in, term, begin[:, :-1], start[:, :-1], every - grams
    )
    # The steps stop once the strengths are settled; coefficients that still remember `start`, which
    # may have seen all rows, would flatter the held-out loss.
    found, coefs = np.column_stack([by_fold, strengths]), np.column_stack([refits, coef])
    penalties = np.stack([penalty_of(term, lam) for lam in found.T], axis=1)
    return found, fit_together(design, y, weight, fold, without_fold, penalties, coefs, grams)


def penalty_of(term: Ints, strengths: Floats) -> Floats:
    """Penalty of each column from the strengths of the terms, zero for the intercept."""
    return np.where(term >= 0, np.append(strengths, 0.0)[term], 0.0)

"""Penalised logistic regression by Newton's method.

Objective, for a design D whose first column is constant, labels y in {0, 1}, row weights s and a
diagonal penalty d >= 0 (all arrays):

    J(b) = sum_k s_k [ log(1 + exp(D_k b)) - y_k D_k b ] + 1/2 sum_m d_m b_m^2

The log-likelihood is summed over rows, not averaged, so a strength means the same prior precision
whatever the number of rows. Step halving on J and a floor under the penalty make every fit end,
separated classes, fewer rows than columns and zero columns included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.special import expit

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# The least penalty on any coefficient, the intercept included, per row: it bounds the log-odds on
# separated data (where the unpenalised optimum is at infinity) and is far below what data can see.
PENALTY_FLOOR = 1e-8
# Lock-step iterations contract quickly or not at all; what is left after these is fitted singly.
LOCKSTEP_ITERATIONS = 15


class NewtonFit(NamedTuple):
    """Optimum of the penalised objective."""

    coef: Floats
    log_odds: Floats
    hessian: Floats


def objective(log_odds: Floats, y: Floats, weight: Floats) -> float:
    """Negative log-likelihood, summed over rows."""
    return float(weight @ (np.logaddexp(0.0, log_odds) - y * log_odds))


def weighted_gram(design: Floats, weight: Floats) -> Floats:
    """D' diag(weight) D for non-negative weights, through one symmetric product."""
    scaled = design * np.sqrt(weight)[:, None]
    gram: Floats = scaled.T @ scaled
    return gram


def curvature(log_odds: Floats, weight: Floats) -> Floats:
    """Second derivative of each row's loss in its log-odds."""
    p = expit(log_odds)
    return weight * p * (1.0 - p)


def cholesky(matrix: Floats) -> Floats:
    """Upper Cholesky factor of a positive definite matrix.

    Rounding can leave a nearly singular matrix indefinite; the diagonal is then raised step by
    step, which shortens Newton's step but keeps it a descent direction.
    """
    lift = 0.0
    scale = float(np.trace(matrix)) / len(matrix)
    while True:
        shifted = matrix if lift == 0.0 else matrix + lift * np.eye(len(matrix))
        factor, info = dpotrf(shifted, lower=0, clean=1)
        if info == 0:
            return factor  # type: ignore[no-any-return]
        lift = max(10.0 * lift, 1e-12 * max(scale, 1e-300))


def newton(
    design: Floats,
    y: Floats,
    weight: Floats,
    penalty: Floats,
    start: Floats | None = None,
    *,
    tolerance: float = 1e-9,
    max_iter: int = 200,
) -> NewtonFit:
    """Minimise J from `start`, until half the squared Newton decrement is below the tolerance.

    That quantity is the predicted decrease of J; it is compared with tolerance * (1 + J).
    """
    penalty = np.maximum(penalty, PENALTY_FLOOR * len(y))
    coef = np.zeros(design.shape[1]) if start is None else start.copy()
    log_odds = design @ coef
    value = objective(log_odds, y, weight) + 0.5 * float(penalty @ coef**2)
    hessian = np.empty((0, 0))
    for _ in range(max_iter):
        gradient = design.T @ (weight * (expit(log_odds) - y)) + penalty * coef
        hessian = weighted_gram(design, curvature(log_odds, weight))
        hessian[np.diag_indices_from(hessian)] += penalty
        step, _ = dpotrs(cholesky(hessian), gradient, lower=0)
        decrement = float(gradient @ step)
        if decrement <= 2.0 * tolerance * (1.0 + abs(value)):
            break
        direction = design @ step
        length = 1.0
        while True:
            trial = coef - length * step
            trial_odds = log_odds - length * direction
            trial_value = objective(trial_odds, y, weight) + 0.5 * float(penalty @ trial**2)
            if trial_value <= value - 1e-4 * length * decrement or length < 1e-8:
                break
            length *= 0.5
        coef, log_odds, value = trial, trial_odds, trial_value
    return NewtonFit(coef, log_odds, hessian)


def fold_grams(design: Floats, row_curvature: Floats, fold: Ints, n_folds: int) -> Floats:
    """Weighted Gram matrix of the rows of each fold, shape (n_folds, P, P)."""
    grams = np.empty((n_folds, design.shape[1], design.shape[1]))
    for f in range(n_folds):
        rows = fold == f
        grams[f] = weighted_gram(design[rows], row_curvature[rows])
    return grams


def refit_without_folds(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    penalties: Floats,
    starts: Floats,
    grams: Floats,
    *,
    tolerance: float = 1e-8,
) -> Floats:
    """Held-out log-odds of the true refits without each fold, for several penalties at once.

    `penalties` and `starts` have shape (P, C): C candidate penalties with the coefficients fitted
    on all rows. `grams` are the per-fold Gram matrices at weights close to the optimum. All K * C
    refits advance together: exact gradients, but curvature kept at sum(grams) - grams[f], so an
    iteration is two matrix products for all of them. A refit that stops contracting is finished
    by Newton's method on its own. Returns shape (n, C).
    """
    n, n_columns = design.shape
    n_folds, n_candidates = len(grams), penalties.shape[1]
    penalties = np.maximum(penalties, PENALTY_FLOOR * n)
    total = grams.sum(axis=0)
    pairs = [(f, c) for f in range(n_folds) for c in range(n_candidates)]
    factors = []
    for f, c in pairs:
        hessian = total - grams[f]
        hessian[np.diag_indices_from(hessian)] += penalties[:, c]
        factors.append(cholesky(hessian))
    pair_fold = np.array([f for f, _ in pairs])
    pair_candidate = np.array([c for _, c in pairs])
    coef = starts[:, pair_candidate].copy()
    left_in = weight[:, None] * (fold[:, None] != pair_fold)
    previous = np.full(len(pairs), np.inf)
    open_pairs = np.arange(len(pairs))
    singles: list[int] = []
    for _ in range(LOCKSTEP_ITERATIONS):
        current = coef[:, open_pairs]
        residual = left_in[:, open_pairs] * (expit(design @ current) - y[:, None])
        gradient = design.T @ residual + penalties[:, pair_candidate[open_pairs]] * current
        steps = np.empty((n_columns, len(open_pairs)))
        for position, pair in enumerate(open_pairs):
            steps[:, position], _ = dpotrs(factors[pair], gradient[:, position], lower=0)
        decrement = np.einsum("ij,ij->j", gradient, steps)
        stalled = decrement > 0.7 * previous[open_pairs]
        done = decrement <= tolerance * n
        singles.extend(open_pairs[stalled & ~done])
        moving = ~stalled | done
        coef[:, open_pairs[moving]] -= steps[:, moving]
        previous[open_pairs] = decrement
        open_pairs = open_pairs[~stalled & ~done]
        if len(open_pairs) == 0:
            break
    for pair in [*singles, *open_pairs]:
        rows = fold != pair_fold[pair]
        coef[:, pair] = newton(
            design[rows],
            y[rows],
            weight[rows],
            penalties[:, pair_candidate[pair]],
            coef[:, pair],
            tolerance=tolerance,
        ).coef
    held_out = np.empty((n, n_candidates))
    for f in range(n_folds):
        rows = fold == f
        held_out[rows] = design[rows] @ coef[:, pair_fold == f]
    return held_out


def fellner_schall(
    design: Floats,
    y: Floats,
    weight: Floats,
    term: Ints,
    strengths: Floats,
    start: Floats,
    *,
    gram: Floats | None = None,
    bounds: tuple[float, float] = (1e-3, 1e6),
    tolerance: float = 0.02,
    max_iter: int = 50,
) -> tuple[Floats, Floats]:
    """One strength per term by Fellner–Schall steps towards the restricted-likelihood optimum.

    `term[m]` is the term of column m, -1 where it is unpenalised. The step is
    strength <- (columns of the term - strength * trace of its block of H^-1) / |its coefficients|^2
    whose numerator is the term's effective degrees of freedom. One Newton step is taken between
    two strength steps. With `gram` given, the curvature stays at that Gram matrix. Stops when no
    term's degrees of freedom change by more than the tolerance. Returns strengths, coefficients.
    """
    n = len(y)
    size = np.bincount(term[term >= 0], minlength=len(strengths)).astype(np.float64)
    penalised = term >= 0
    coef = start.copy()
    log_odds = design @ coef
    previous = np.full(len(strengths), np.inf)
    for _ in range(max_iter):
        penalty = np.full(design.shape[1], PENALTY_FLOOR * n)
        penalty[penalised] = strengths[term[penalised]]
        hessian = (
            weighted_gram(design, curvature(log_odds, weight)) if gram is None else gram.copy()
        )
        hessian[np.diag_indices_from(hessian)] += penalty
        factor = cholesky(hessian)
        gradient = design.T @ (weight * (expit(log_odds) - y)) + penalty * coef
        step, _ = dpotrs(factor, gradient, lower=0)
        value = objective(log_odds, y, weight) + 0.5 * float(penalty @ coef**2)
        length = 1.0
        while True:
            trial = coef - length * step
            trial_odds = design @ trial
            trial_value = objective(trial_odds, y, weight) + 0.5 * float(penalty @ trial**2)
            if trial_value <= value or length < 1e-4:
                break
            length *= 0.5
        coef, log_odds = trial, trial_odds
        inverse, _ = dpotri(factor, lower=0)
        spread = np.bincount(term[penalised], np.diag(inverse)[penalised], minlength=len(strengths))
        square = np.bincount(term[penalised], coef[penalised] ** 2, minlength=len(strengths))
        freedom = np.maximum(size - strengths * spread, 0.0)
        strengths = np.clip(freedom / np.maximum(square, 1e-300), *bounds)
        if np.all(np.abs(freedom - previous) <= tolerance):
            break
        previous = freedom
    return strengths, coef

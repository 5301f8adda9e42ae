"""Penalised logistic regression by Newton's method.

Objective, for a design D whose first column is constant, labels y in {0, 1}, row weights s and a
diagonal penalty d >= 0 (all arrays):

    J(b) = sum_k s_k [ log(1 + exp(D_k b)) - y_k D_k b ] + 1/2 sum_m d_m b_m^2

The log-likelihood is summed over rows, not averaged, so a strength means the same prior precision
whatever the number of rows. Step halving on J and a floor under the penalty make every fit end,
separated classes, fewer rows than columns and zero columns included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.special import expit

from adacos.kernels.line_search import halve
from adacos.typing import Floats, Ints

# The least penalty on any coefficient, the intercept included, per unit of row weight: it bounds
# the log-odds on separated data (where the unpenalised optimum is at infinity) and is far below
# what data can see.
PENALTY_FLOOR = 1e-8
# A Newton step at kept curvature must lower the squared decrement at least by this factor.
KEPT_CONTRACTION = 0.3
# Entries of a design from which on single precision pays for the copy. Where the squared decrement
# is less than this share of the objective, or after this number of failures, double precision takes
# over.
SINGLE_PRECISION_FROM = 1_000_000
NEAR, MOST_FAILED = 1e-3, 3
# Fits advanced together that are not done after these iterations are finished one by one.
LOCKSTEP_ITERATIONS = 25
ROWS_AT_ONCE = 2048
# Entries of factors held at the same time: 512 MiB of them.
FACTORS_AT_ONCE = 64_000_000
# Step length where the kept curvature may be too small: stable up to 1 / 0.35 times too small.
DAMPING = 0.7
# Restricted likelihood: the range of a strength, the change of a term's degrees of freedom at which
# the steps stop, and how many there are at most.
STRENGTH_BOUNDS, FREEDOM_TOLERANCE, SEARCH_STEPS = (1e-3, 1e6), 0.05, 40


class NewtonFit(NamedTuple):
    """Optimum of the penalised objective."""

    coef: Floats
    log_odds: Floats


def _blocks(n: int) -> Iterator[slice]:
    """Rows in blocks: what is computed for many fits at once stays in the cache and bounded."""
    return (slice(first, first + ROWS_AT_ONCE) for first in range(0, n, ROWS_AT_ONCE))


def objective(log_odds: Floats, y: Floats, weight: Floats) -> float:
    """Negative log-likelihood, summed over rows."""
    return float(weight @ (np.logaddexp(0.0, log_odds) - y * log_odds))


def weighted_gram(design: NDArray[np.floating], weight: Floats) -> Floats:
    """D' diag(weight) D for non-negative weights, through one symmetric product.

    A design in single precision makes it twice as fast, with an error that only matters where the
    result is not merely the curvature of a step along an exact gradient.
    """
    scaled = design * np.sqrt(weight).astype(design.dtype)[:, None]
    return (scaled.T @ scaled).astype(np.float64)


def curvature(log_odds: Floats, weight: Floats) -> Floats:
    """Second derivative of each row's loss in its log-odds."""
    p: Floats = expit(log_odds)
    return weight * p * (1.0 - p)


def residuals(design: Floats, coef: Floats, y: Floats) -> Floats:
    """Fitted probability less label, one row per column of `coef`: (fits, rows).

    This orientation of the products and an exponential in place take half the time of the plain
    expression. Log-odds below -709 overflow to the probability 0.
    """
    result: Floats = coef.T @ design.T
    np.negative(result, out=result)
    with np.errstate(over="ignore"):
        np.exp(result, out=result)
    result += 1.0
    np.divide(1.0, result, out=result)
    result -= y
    return result


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
    tolerance: float = 1e-12,
    max_iter: int = 200,
) -> NewtonFit:
    """Minimise J from `start`, until half the squared Newton decrement is below the tolerance.

    That quantity is the predicted decrease of J; it is compared with tolerance * (1 + J). The step
    that shows it is still taken.
    """
    penalty = np.maximum(penalty, PENALTY_FLOOR * weight.sum())
    coef = np.zeros(design.shape[1]) if start is None else start.copy()
    log_odds = design @ coef

    def penalised(log_odds: Floats, coef: Floats) -> float:
        return objective(log_odds, y, weight) + 0.5 * float(penalty @ coef**2)

    value = penalised(log_odds, coef)
    # The Gram matrix costs more than all else. It is kept while it contracts well, and computed in
    # single precision unless one in single precision has failed to at once: near the optimum, or
    # so often that the curvature's change is no excuse.
    rough: NDArray[np.floating] = (
        design.astype(np.float32) if design.size >= SINGLE_PRECISION_FROM else design
    )
    factor: Floats | None = None  # of the kept curvature; None if it must be computed
    previous, age, failed = np.inf, 0, 0
    for _ in range(max_iter):
        gradient = design.T @ (weight * (expit(log_odds) - y)) + penalty * coef
        while True:
            computed = factor is None
            if factor is None:
                hessian = weighted_gram(rough, curvature(log_odds, weight))
                hessian[np.diag_indices_from(hessian)] += penalty
                factor, age = cholesky(hessian), 0
            step, _ = dpotrs(factor, gradient, lower=0)
            decrement = float(gradient @ step)
            if computed or decrement <= KEPT_CONTRACTION * previous:
                break
            failed += age == 1
            near = previous <= NEAR * (1.0 + abs(value))
            rough = design if age == 1 and (near or failed > MOST_FAILED) else rough
            factor = None
        if decrement <= 2.0 * tolerance * (1.0 + abs(value)):
            coef, log_odds = coef - step, log_odds - design @ step
            break
        # Close to the optimum rounding would decide the comparison, and the step is safe.
        slack = np.inf if decrement <= 1e-9 * (1.0 + abs(value)) else 0.0
        length, log_odds, coef, value = halve(
            penalised, log_odds, -(design @ step), coef, -step, value, -decrement, slack=slack
        )
        previous = decrement
        factor = factor if length == 1.0 else None
        age += 1
    return NewtonFit(coef, log_odds)


def fold_grams(design: Floats, row_curvature: Floats, fold: Ints, n_folds: int) -> Floats:
    """Weighted Gram matrix of the rows of each fold, shape (n_folds, P, P).

    They serve as kept curvature only: large designs are multiplied in single precision.
    """
    exact = design.size < SINGLE_PRECISION_FROM
    grams = np.empty((n_folds, design.shape[1], design.shape[1]))
    for f in range(n_folds):
        rows = fold == f
        part = design[rows] if exact else design[rows].astype(np.float32)
        grams[f] = weighted_gram(part, row_curvature[rows])
    return grams


def fit_folds(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    penalties: Floats,
    start: Floats,
    grams: Floats,
    *,
    tolerance: float = 1e-6,
) -> tuple[Floats, Floats]:
    """Fits with all rows and true refits without each fold, for several penalties at once.

    `penalties` has shape (P, C), one column per candidate. `start` is a coefficient vector near
    the optimum and `grams` the per-fold Gram matrices at its weights. For the tolerance see
    `fit_together`.

    Returns the coefficients with all rows, shape (P, C), and the held-out log-odds, shape (n, C).
    """
    coefs = fold_coefs(design, y, weight, fold, penalties, start, grams, tolerance=tolerance)
    return coefs[:, :, -1], held_out_log_odds(design, fold, coefs)


def fold_coefs(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    penalties: Floats,
    start: Floats,
    grams: Floats,
    *,
    tolerance: float = 1e-6,
) -> Floats:
    """Coefficients behind `fit_folds`, (P, C, folds + 1): without each fold and with all rows."""
    n_folds, n_candidates = len(grams), penalties.shape[1]
    # Fold number n_folds stands for "none left out".
    without_fold = np.repeat(np.arange(n_folds + 1), n_candidates)
    candidate = np.tile(np.arange(n_candidates), n_folds + 1)
    coef = fit_together(
        design,
        y,
        weight,
        fold,
        without_fold,
        penalties[:, candidate],
        np.repeat(start[:, None], len(without_fold), axis=1),
        grams,
        tolerance=tolerance,
    )
    return coef.reshape(len(start), n_folds + 1, n_candidates).transpose(0, 2, 1)


def held_out_log_odds(design: Floats, fold: Ints, coefs: Floats) -> Floats:
    """Log-odds of each row by the fits without its fold, (n, C); see `fold_coefs`."""
    result = np.empty((len(design), coefs.shape[1]))
    for f in range(coefs.shape[2] - 1):
        rows = np.flatnonzero(fold == f)
        result[rows] = design[rows] @ coefs[:, :, f]
    return result


def fit_together(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    without_fold: Ints,
    penalties: Floats,
    start: Floats,
    grams: Floats,
    *,
    tolerance: float = 1e-6,
) -> Floats:
    """Coefficients of several fits, the k-th without the rows of fold without_fold[k].

    `penalties` and `start` have one column per fit, `grams` are the Gram matrices of the folds.
    All fits advance together: exact gradients, but curvature kept at sum(grams) less the fold's, so
    an iteration is two matrix products for all of them. A fit that stops contracting is finished
    by Newton's method on its own. A fit is done when its squared Newton decrement is at most
    tolerance * sum(weight). That leaves an error of about sqrt(tolerance) in the log-odds, as a
    root mean square with weights p(1 - p); where p is near 0 or 1 it can be larger.
    """
    penalties = np.maximum(penalties, PENALTY_FLOOR * float(weight.sum()))
    coef = np.empty_like(start)
    at_once = max(FACTORS_AT_ONCE // design.shape[1] ** 2, 1)
    for first in range(0, len(without_fold), at_once):
        fits = slice(first, first + at_once)
        factors = factors_without_fold(grams, without_fold[fits], penalties[:, fits])
        coef[:, fits], _ = advance_together(
            design,
            y,
            weight,
            fold,
            without_fold[fits],
            penalties[:, fits],
            start[:, fits],
            factors,
            tolerance=tolerance,
        )
    return coef


def factors_without_fold(grams: Floats, without_fold: Ints, penalties: Floats) -> list[Floats]:
    """Factors of sum(grams) less the Gram matrix of fold without_fold[k], plus the k-th penalty."""
    total = grams.sum(axis=0)
    diagonal = np.arange(len(total))
    factors = []
    for fit, f in enumerate(without_fold.tolist()):
        hessian = total - grams[f] if f < len(grams) else total.copy()
        hessian[diagonal, diagonal] += penalties[:, fit]
        factors.append(cholesky(hessian))
    return factors


def advance_together(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    without_fold: Ints,
    penalties: Floats,
    start: Floats,
    factors: list[Floats],
    *,
    tolerance: float = 1e-6,
) -> tuple[Floats, int]:
    """`fit_together` with the factors of its kept curvature; also how many iterations it took."""
    total_weight = float(weight.sum())
    coef = start.copy()
    last_gradient = np.zeros_like(coef)
    last_step = np.zeros_like(coef)
    length = np.ones(len(without_fold))
    open_fits = np.arange(len(without_fold))
    iteration = 0
    for iteration in range(LOCKSTEP_ITERATIONS):
        current = coef[:, open_fits]
        gradient = penalties[:, open_fits] * current
        for rows in _blocks(len(y)):
            residual = residuals(design[rows], current, y[rows])
            residual *= weight[rows] * (fold[rows] != without_fold[open_fits, None])
            gradient += (residual @ design[rows]).T
        steps = np.empty_like(gradient)
        for position, fit in enumerate(open_fits.tolist()):
            steps[:, position], _ = dpotrs(factors[fit], gradient[:, position], lower=0)
        decrement = np.einsum("ij,ij->j", gradient, steps)
        if iteration:
            # Spectral step length: the curvature along the last step, as the gradients show it,
            # over the kept curvature.
            before = last_gradient[:, open_fits]
            step = last_step[:, open_fits]
            seen = np.einsum("ij,ij->j", step, before - gradient)
            kept = length[open_fits] * np.einsum("ij,ij->j", step, before)
            length[open_fits] = np.clip(kept / np.maximum(seen, 1e-300), 0.1, 2.0)
        coef[:, open_fits] -= length[open_fits] * steps
        last_gradient[:, open_fits], last_step[:, open_fits] = gradient, steps
        open_fits = open_fits[decrement > tolerance * total_weight]
        if len(open_fits) == 0:
            break
    for fit in open_fits.tolist():
        left_in = fold != without_fold[fit]
        coef[:, fit] = newton(
            design[left_in],
            y[left_in],
            weight[left_in],
            penalties[:, fit],
            coef[:, fit],
            tolerance=tolerance,
        ).coef
    return coef, iteration + 1


def fellner_schall(
    design: Floats,
    y: Floats,
    weights: Floats,
    term: Ints,
    strengths: Floats,
    start: Floats,
    grams: Floats,
    *,
    bounds: tuple[float, float] = STRENGTH_BOUNDS,
    tolerance: float = FREEDOM_TOLERANCE,
    max_iter: int = SEARCH_STEPS,
) -> tuple[Floats, Floats]:
    """One strength per term by Fellner–Schall steps towards the restricted-likelihood optimum.

    Several problems that differ in their row weights, the columns of `weights`, advance together;
    `grams` are their Gram matrices near the optimum. All begin with the same `strengths` (terms,)
    and coefficients `start` (P,), or each with a column of its own. `term[m]` is the term of column
    m, -1 where it is unpenalised. A damped Newton step on the coefficients alternates with

        strength <- (columns of the term - strength * trace of its block of H^-1) / |coefficients|^2

    whose numerator is the term's effective degrees of freedom. Stops when those change by at most
    the tolerance in every term. Returns strengths (terms, problems), coefficients (P, problems).
    """
    n_problems = weights.shape[1]
    penalised = term >= 0
    of_term = np.zeros((len(strengths), len(term)))
    of_term[term[penalised], penalised.nonzero()[0]] = 1.0
    size = of_term.sum(axis=1)[:, None]
    floor = PENALTY_FLOOR * weights.sum(axis=0)
    diagonal = np.arange(len(term))
    lam = np.broadcast_to(strengths.reshape(len(strengths), -1), (len(strengths), n_problems))
    coef = np.broadcast_to(start.reshape(len(start), -1), (len(start), n_problems)).copy()
    freedom = np.full((len(strengths), n_problems), np.inf)
    for _ in range(max_iter):
        penalty = np.maximum(of_term.T @ lam, floor)
        gradient = penalty * coef
        for rows in _blocks(len(y)):
            residual = residuals(design[rows], coef, y[rows])
            residual *= weights[rows].T
            gradient += (residual @ design[rows]).T
        spread = np.empty_like(coef)
        for k in range(n_problems):
            hessian = grams[k].copy()
            hessian[diagonal, diagonal] += penalty[:, k]
            factor = cholesky(hessian)
            step, _ = dpotrs(factor, gradient[:, k], lower=0)
            coef[:, k] -= DAMPING * step
            spread[:, k] = np.diag(dpotri(factor, lower=0)[0])
        previous, freedom = freedom, np.maximum(size - lam * (of_term @ spread), 0.0)
        lam = np.clip(freedom / np.maximum(of_term @ coef**2, 1e-300), *bounds)
        if np.all(np.abs(freedom - previous) <= tolerance):
            break
    return lam, coef

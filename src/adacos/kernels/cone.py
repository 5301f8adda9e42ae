"""Penalised logistic regression with coefficients in a cone, as of splines that only rise or fall.

The objective is that of `adacos.kernels.irls`, with coefficients b = T c and c_m >= 0 for the
bounded m. T is square and invertible, so that nothing is lost by it and the problem is convex. Each
step minimises the quadratic model of J within the bounds, exactly, by non-negative least squares
after the free coefficients are eliminated; halving the step on J makes the sequence converge to the
one minimum from any start. A fit that keeps the bounds without being asked is its own answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg import cholesky as upper_factor
from scipy.optimize import nnls
from scipy.special import expit

from adacos.kernels.irls import PENALTY_FLOOR, curvature, objective, weighted_gram
from adacos.kernels.line_search import halve
from adacos.typing import Bools, Floats, Ints

_MOST_STEPS = 200
# How far below zero rounding may put a coefficient that is at its bound.
_ROUNDING = 1e-9


class Cone(NamedTuple):
    """Coefficients b = `basis` @ c of which the `bounded` c are not negative.

    Attributes
    ----------
    basis : (P, P) invertible.
    inverse : its inverse.
    bounded : (P,) mask.
    """

    basis: Floats
    inverse: Floats
    bounded: Bools

    def holds(self, coefs: Floats) -> Bools:
        """Whether coefficients (P, ...) are in the cone, up to rounding."""
        inside = np.tensordot(self.inverse[self.bounded], coefs, axes=1)
        scale = np.abs(coefs).max(axis=0, initial=0.0)
        return np.asarray(inside.min(axis=0, initial=0.0) >= -_ROUNDING * (1.0 + scale))


def cone_of(blocks: list[tuple[Ints, Floats]], size: int) -> Cone | None:
    """The cone in which each block of columns is a non-negative combination; None without any.

    A block has its columns and the square matrix of the combinations, one in each column.
    """
    if not blocks:
        return None
    basis, inverse, bounded = np.eye(size), np.eye(size), np.zeros(size, dtype=np.bool_)
    for columns, combinations in blocks:
        basis[np.ix_(columns, columns)] = combinations
        inverse[np.ix_(columns, columns)] = np.linalg.inv(combinations)
        bounded[columns] = True
    return Cone(basis, inverse, bounded)


def cone_newton(
    design: Floats,
    y: Floats,
    weight: Floats,
    penalty: Floats,
    cone: Cone,
    start: Floats,
    *,
    tolerance: float = 1e-12,
) -> Floats:
    """Coefficients in the cone that minimise J, until its predicted decrease is within tolerance.

    The tolerance is relative to 1 + |J|, as in `adacos.kernels.irls.newton`.
    """
    penalty = np.maximum(penalty, PENALTY_FLOOR * weight.sum())
    turned = design @ cone.basis
    ridge = (cone.basis.T * penalty) @ cone.basis
    c = cone.inverse @ start
    c[cone.bounded] = np.maximum(c[cone.bounded], 0.0)
    log_odds = turned @ c

    def penalised(log_odds: Floats, c: Floats) -> float:
        return objective(log_odds, y, weight) + 0.5 * float(c @ ridge @ c)

    value = penalised(log_odds, c)
    for _ in range(_MOST_STEPS):
        gradient = turned.T @ (weight * (expit(log_odds) - y)) + ridge @ c
        hessian = weighted_gram(turned, curvature(log_odds, weight)) + ridge
        step = within(hessian, gradient, c, cone.bounded) - c
        slope = float(gradient @ step)
        decrease = -slope - 0.5 * float(step @ hessian @ step)
        if slope >= 0.0 or decrease <= tolerance * (1.0 + abs(value)):
            break
        slack = np.inf if decrease <= 1e-10 * (1.0 + abs(value)) else 0.0
        _, log_odds, c, value = halve(
            penalised, log_odds, turned @ step, c, step, value, slope, slack=slack
        )
    c[cone.bounded] = np.maximum(c[cone.bounded], 0.0)
    return np.asarray(cone.basis @ c)


def within(hessian: Floats, gradient: Floats, at: Floats, bounded: Bools) -> Floats:
    """Where a quadratic model around `at` is least with the bounded coordinates not negative."""
    free = ~bounded
    scale = 1.0 / np.sqrt(np.diag(hessian))
    scaled = hessian * np.outer(scale, scale)
    best = at / scale - cho_solve(cho_factor(scaled), gradient * scale)
    inner = cho_factor(scaled[np.ix_(free, free)])
    cross = scaled[np.ix_(free, bounded)]
    pulled = cho_solve(inner, cross)
    left = scaled[np.ix_(bounded, bounded)] - cross.T @ pulled
    # The difference of two near matrices may be indefinite by rounding.
    left[np.diag_indices_from(left)] += 1e-14
    factor = upper_factor(left)
    found, _ = nnls(factor, factor @ best[bounded], maxiter=50 * len(factor))
    result = best.copy()
    result[bounded] = found
    result[free] -= pulled @ (found - best[bounded])
    return np.asarray(result * scale)


def cone_fits(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints | None,
    penalties: Floats,
    coefs: Floats,
    cone: Cone,
    *,
    tolerance: float = 1e-8,
) -> Floats:
    """Fits (P, candidates, folds + 1) brought into the cone: without each fold and with all rows.

    `penalties` has the shape of `coefs`. A fit that is in the cone already is its own answer. The
    others begin where the fit with all rows ends.
    """
    result = coefs.copy()
    outside = ~cone.holds(coefs)
    for candidate, fit in zip(*np.nonzero(outside[:, ::-1]), strict=True):
        without_fold = coefs.shape[2] - 1 - int(fit)
        start = coefs[:, candidate, without_fold]
        rows = slice(None)
        if fit:
            assert fold is not None
            start = result[:, candidate, -1]
            rows = fold != without_fold
        result[:, candidate, without_fold] = cone_newton(
            design[rows],
            y[rows],
            weight[rows],
            penalties[:, candidate, without_fold],
            cone,
            start,
            tolerance=tolerance,
        )
    return result

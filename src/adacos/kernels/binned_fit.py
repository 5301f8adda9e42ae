"""Penalised logistic regression over blocks of rows: few passes, each a sum over the blocks.

The objective is that of `adacos.kernels.irls`. A pass gives loss, gradient and, if asked for, the
Gram matrix of every fold's rows at some coefficients. In between everything is done on the
quadratic model that these make, which costs nothing in rows:

    1/2 b'Hb - b'(H b0 - g),    H, g the Gram matrix and the gradient at b0.

Strengths per term follow from it by restricted likelihood (Fellner–Schall), the next coefficients
by its minimum, and the fits without each fold by the same steps with that fold's part of H and g
removed. These are one Newton step from the fit with all rows: with n rows, P columns and F folds
they move by about sqrt(P / (F n)), and the step is wrong by the square of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from adacos.kernels.appended import strengths_of_quadratic
from adacos.kernels.binned import Sums
from adacos.kernels.irls import PENALTY_FLOOR, cholesky
from adacos.typing import Floats, Ints

# A pass at some coefficients, with the Gram matrix or without it.
Evaluate = Callable[[Floats, bool], Sums]

# The fit ends when the predicted decrease of the objective is below this times the weight of all
# rows: an error of the log-odds of about its root, as a root mean square.
TOLERANCE = 1e-9
# A Gram matrix that lowers the predicted decrease by less than this factor is computed anew.
KEPT_CONTRACTION = 0.5
MOST_PASSES = 40
# Predicted decrease for each unit of weight from which on a step is long.
FAR = 1e-2
# A curvature along a step that is below this share of what was foretold is rounding.
LEAST_CURVATURE = 1e-6
# Shortest step, as a share of that to the minimum of the quadratic model.
SHORTEST = 1e-6
# Strengths are searched at the first coefficients and after the first step; by then they have
# settled far more closely than they are known.
SEARCHES = 2


class BinnedFit(NamedTuple):
    """Fit with all rows, and the quadratic model that it ended with.

    Attributes
    ----------
    strengths : of the terms.
    coef : (columns,) the intercept first.
    gram, gradient : sums of each fold's rows, see `Sums`; the gradient at the coefficients `near`.
    near : (columns,).
    passes : how often the rows were gone through.
    """

    strengths: Floats
    coef: Floats
    gram: Floats
    gradient: Floats
    near: Floats
    passes: int


def fit_in_passes(
    evaluate: Evaluate,
    weight: float,
    term: Ints,
    strengths: Floats,
    start: Floats,
    *,
    search: bool,
    gram: Floats | None = None,
) -> BinnedFit:
    """Minimise the penalised objective from `start`.

    `weight` is that of all rows, `term` the term of each column but the first ones, the intercepts,
    of which there is one for two classes and one for each contrast of more. The strengths of the
    terms are as given or, with `search`, begin there. `gram` is a Gram matrix from near by, if one
    is at hand.
    """
    sums, coef, passes, fresh = evaluate(start, gram is None), start, 1, gram is None
    gram, previous, searches = sums.gram if fresh else gram, np.inf, SEARCHES if search else 0
    while True:
        assert gram is not None
        hessian = gram.sum(axis=0)
        target = hessian @ coef - sums.gradient.sum(axis=0)
        if searches:
            near = hessian, target, coef
            strengths, searches = _searched(*near, strengths, term), searches - 1
        penalty = _penalty(strengths, term, weight, len(coef))
        step = _minimum(hessian, target, penalty) - coef
        decrease = 0.5 * float(step @ (hessian @ step) + penalty @ step**2)
        if not fresh and decrease > KEPT_CONTRACTION * previous:
            sums, fresh, passes = evaluate(coef, True), True, passes + 1
            gram = sums.gram
            continue
        if decrease <= TOLERANCE * weight or passes >= MOST_PASSES:
            return BinnedFit(strengths, coef + step, gram, sums.gradient, coef, passes)
        # After a long step the curvature is another; after a short one the gradients tell enough.
        far = decrease > FAR * weight
        length, value = 1.0, _objective(sums, coef, penalty)
        while True:
            there, passes = evaluate(coef + length * step, far), passes + 1
            if _objective(there, coef + length * step, penalty) <= value or length < SHORTEST:
                break
            length *= 0.5
        moved = length * step
        gram = there.gram if far else _corrected(gram, moved, there.gradient - sums.gradient)
        sums, coef, fresh = there, coef + moved, far
        # After a step that had to be shortened the Gram matrix is computed anew.
        previous = decrease if length == 1.0 else 0.0


def _corrected(gram: Floats, step: Floats, change: Floats) -> Floats:
    """Gram matrices that agree with how each fold's gradient changed along a step (BFGS).

    Few rows far out can change their curvature much; the rest of the matrix stays as it was.
    """
    gram = gram.copy()
    for part, seen in zip(gram, change, strict=True):
        expected = part @ step
        along, predicted = float(seen @ step), float(expected @ step)
        if along > LEAST_CURVATURE * predicted > 0:
            part += np.outer(seen, seen) / along - np.outer(expected, expected) / predicted
    return gram


def without_folds(fit: BinnedFit, weight: float, term: Ints, *, search: bool) -> Floats:
    """Coefficients without each fold, (folds, columns); its strengths are found without it too."""
    hessian, gradient = fit.gram.sum(axis=0), fit.gradient.sum(axis=0)
    fits = []
    for curvature, part in zip(fit.gram, fit.gradient, strict=True):
        left, strengths = hessian - curvature, fit.strengths
        target = left @ fit.near - (gradient - part)
        if search:
            strengths = _searched(left, target, fit.near, strengths, term)
        fits.append(_minimum(left, target, _penalty(strengths, term, weight, len(left))))
    return np.stack(fits)


def _searched(hessian: Floats, target: Floats, near: Floats, begin: Floats, term: Ints) -> Floats:
    """Strengths of highest restricted likelihood under the quadratic model, made at `near`.

    The intercept, which has no strength, follows the other coefficients. With K > 2 classes the
    contrasts are turned so that the curvature between intercepts vanishes, and each then moves
    while the others stay, as with few rows (`adacos.kernels.multinomial`).
    """
    if len(term) == 0:
        return begin
    free = len(target) - len(term)
    if free == 1:
        return strengths_of_quadratic(*_eliminated(hessian, target), begin, term)
    turn = np.linalg.eigh(hessian[:free, :free])[1]
    joint = hessian.reshape(-1, free, len(hessian) // free, free)
    gradient = (hessian @ near - target).reshape(-1, free) @ turn
    place, blocks = near.reshape(-1, free) @ turn, []
    for a, own in enumerate(turn.T):
        block = np.einsum("iajb,a,b->ij", joint, own, own, optimize=True)
        blocks.append(_eliminated(block, block @ place[:, a] - gradient[:, a]))
    schur, score = (np.stack(parts) for parts in zip(*blocks, strict=True))
    return strengths_of_quadratic(schur, score, begin, term[::free])


def _eliminated(hessian: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Curvature and score of all coefficients but the first, which follows them."""
    border, corner = hessian[0, 1:], float(hessian[0, 0])
    schur = hessian[1:, 1:] - np.outer(border, border) / corner
    return schur, target[1:] - border * (target[0] / corner)


def _minimum(hessian: Floats, target: Floats, penalty: Floats) -> Floats:
    factor = cholesky(hessian + np.diag(penalty))
    return np.asarray(dpotrs(factor, target, lower=0)[0])


def _penalty(strengths: Floats, term: Ints, weight: float, size: int) -> Floats:
    penalty = np.zeros(size)
    penalty[size - len(term) :] = strengths[term]
    return np.maximum(penalty, PENALTY_FLOOR * weight)


def _objective(sums: Sums, coef: Floats, penalty: Floats) -> float:
    return float(sums.loss.sum() + 0.5 * penalty @ coef**2)

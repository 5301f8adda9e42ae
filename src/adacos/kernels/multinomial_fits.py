"""Many penalised multinomial fits to the same rows, advanced together.

The fits differ in their penalties and in the fold that they leave out; for the objective see
`adacos.kernels.multinomial`. Every fit takes limited-memory quasi-Newton steps that begin from a
kept joint Hessian, of which there is one for several fits: the fits of one candidate without each
fold share that of all rows. An iteration is two matrix products for all fits. A step that does not
lower the objective enough is halved, and a fit that needs too many is finished by Newton's method.
Arrays have the fits first, so that the numbers of a fit lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from adacos.kernels.irls import PENALTY_FLOOR, SINGLE_PRECISION_FROM, cholesky
from adacos.kernels.line_search import SUFFICIENT
from adacos.kernels.multinomial import class_gram, newton_classes
from adacos.typing import Bools, Floats, Ints

# Pairs of steps and gradients that a fit remembers, and iterations after which it is finished by
# Newton's method.
REMEMBERED, LOCKSTEP_ITERATIONS = 8, 60
# Numbers of a block of rows: its temporaries stay in the cache.
_BLOCK = 131_072
# The shortest step, and the predicted fall, relative to the objective, that rounding hides.
_SHORTEST, _ROUNDING = 1e-8, 1e-9


class ClassRows(NamedTuple):
    """Design (n, P), classes, weights and folds of the rows, and the contrasts U of the fits."""

    design: Floats
    y: Ints
    weight: Floats
    fold: Ints
    basis: Floats

    @property
    def n_folds(self) -> int:
        """Number of folds; as a fold to leave out it means none."""
        return int(self.fold.max()) + 1

    def held_out(self, coefs: Floats) -> Floats:
        """Log-odds (K - 1, n, candidates) by the fits without a row's fold.

        `coefs` (candidates, folds + 1, K - 1, P) are those without each fold, last with all rows.
        """
        result = np.empty((coefs.shape[2], len(self.y), len(coefs)))
        for f in range(self.n_folds):
            own = self.fold == f
            result[:, own] = self.design[own] @ coefs[:, f].transpose(1, 2, 0)
        return result


class _State(NamedTuple):
    """Where the open fits are: contrasts (fits, K - 1, P), J, its gradient, the next length."""

    fits: Ints
    point: Floats
    value: Floats
    gradient: Floats
    length: Floats

    def of(self, kept: Bools) -> _State:
        """Some of the fits."""
        fits, point, value, gradient, length = self
        return _State(fits[kept], point[kept], value[kept], gradient[kept], length[kept])


def joint_gram(rows: ClassRows, coef: Floats) -> Floats:
    """Hessian of the loss of all rows at the contrasts `coef` (K - 1, P); see `class_gram`."""
    design: NDArray[np.floating] = rows.design
    if design.size >= SINGLE_PRECISION_FROM:
        design = design.astype(np.float32)
    return class_gram(design, coef @ rows.design.T, rows.weight, rows.basis)


def hessian_factors(rows: ClassRows, gram: Floats, penalties: Floats) -> list[Floats]:
    """Factors of a joint Hessian, of which `gram` is that of the loss, each with one penalty."""
    diagonal, hessian = gram.diagonal(), gram.copy()
    factors = []
    for penalty in np.maximum(penalties, PENALTY_FLOOR * float(rows.weight.sum())):
        np.fill_diagonal(hessian, diagonal + np.tile(penalty, len(rows.basis) - 1))
        factors.append(cholesky(hessian))
    return factors


def advance_classes(
    rows: ClassRows,
    without_fold: Ints,
    penalties: Floats,
    start: Floats,
    factors: list[Floats],
    which: Ints,
    *,
    tolerance: float = 1e-6,
) -> Floats:
    """Contrasts (fits, K - 1, P), the k-th fit without the rows of fold without_fold[k].

    `penalties` has shape (fits, P); the kept curvature of the k-th fit is factors[which[k]]. A fit
    is done when its squared decrement is at most tolerance * sum(weight), see
    `adacos.kernels.irls.fit_together`.
    """
    total_weight = float(rows.weight.sum())
    penalties = np.maximum(penalties, PENALTY_FLOOR * total_weight)
    result = start.copy()
    first = objectives(rows, without_fold, penalties, start)
    state = _State(np.arange(len(start)), start, *first, np.ones(len(start)))
    pairs: list[tuple[Floats, Floats, Floats]] = []
    for _ in range(LOCKSTEP_ITERATIONS):
        step = _step(state, pairs, factors, which[state.fits])
        decrement = _dots(state.gradient, step)
        done = decrement <= tolerance * total_weight
        if done.any():
            # The step that shows it is still taken.
            result[state.fits[done]] = state.point[done] - step[done]
            state, step, decrement = state.of(~done), step[~done], decrement[~done]
            pairs = [(s, g, r) for s, g, r in ((a[~done], b[~done], c[~done]) for a, b, c in pairs)]
        if len(state.fits) == 0:
            return result
        state, pair = _moved(rows, without_fold, penalties, state, step, decrement)
        pairs = [*pairs[-(REMEMBERED - 1) :], pair]
    for fit, point in zip(state.fits.tolist(), state.point, strict=True):
        left_in = rows.fold != without_fold[fit]
        result[fit] = newton_classes(
            rows.design[left_in],
            rows.y[left_in],
            rows.weight[left_in],
            penalties[fit],
            rows.basis,
            point,
            tolerance=tolerance,
        ).coef
    return result


def _moved(
    rows: ClassRows,
    without_fold: Ints,
    penalties: Floats,
    state: _State,
    step: Floats,
    decrement: Floats,
) -> tuple[_State, tuple[Floats, Floats, Floats]]:
    """The state after a step, and what it shows of the curvature: nothing where it is refused."""
    fits, length = state.fits, state.length
    move = -length[:, None, None] * step
    point = state.point + move
    value, gradient = objectives(rows, without_fold[fits], penalties[fits], point)
    fallen = value <= state.value - SUFFICIENT * length * decrement
    hidden = decrement <= _ROUNDING * (1.0 + np.abs(state.value))
    kept = fallen | hidden | (length < _SHORTEST)
    change = gradient - state.gradient
    seen = _dots(move, change)
    rate = np.where(kept & (seen > 0.0), 1.0 / np.where(seen > 0.0, seen, 1.0), 0.0)
    keep = kept[:, None, None]
    after = _State(
        fits,
        np.where(keep, point, state.point),
        np.where(kept, value, state.value),
        np.where(keep, gradient, state.gradient),
        np.where(kept, 1.0, 0.5 * length),
    )
    return after, (move, change, rate)


def _step(
    state: _State,
    pairs: list[tuple[Floats, Floats, Floats]],
    factors: list[Floats],
    which: Ints,
) -> Floats:
    """The quasi-Newton step (fits, K - 1, P), to be subtracted, by the two loops of L-BFGS."""
    left = state.gradient.copy()
    shares = []
    for move, change, rate in reversed(pairs):
        shares.append(rate * _dots(move, left))
        left -= shares[-1][:, None, None] * change
    step = np.empty_like(left)
    flat = left.reshape(len(left), -1)
    for k in np.unique(which):
        own = np.flatnonzero(which == k)
        solved = dpotrs(factors[k], flat[own].T, lower=0)[0].T
        step[own] = solved.reshape(len(own), *left.shape[1:])
    for (move, change, rate), share in zip(pairs, reversed(shares), strict=True):
        step += (share - rate * _dots(change, step))[:, None, None] * move
    return step


def objectives(
    rows: ClassRows, without_fold: Ints, penalties: Floats, coef: Floats
) -> tuple[Floats, Floats]:
    """J of each fit (fits,) and its gradient in the contrasts `coef` (fits, K - 1, P)."""
    n_fits, n_classes, width = len(coef), len(rows.basis), coef.shape[2]
    flat = (rows.basis @ coef).reshape(-1, width)
    pulled = penalties[:, None] * coef
    value = 0.5 * _dots(coef, pulled)
    gradient = np.zeros_like(flat)
    rows_at_once = max(_BLOCK // len(flat), 64)
    for first in range(0, len(rows.y), rows_at_once):
        part = slice(first, first + rows_at_once)
        design, label = rows.design[part], rows.y[part]
        count = rows.weight[part] * (rows.fold[part] != without_fold[:, None])
        scores = (flat @ design.T).reshape(n_fits, n_classes, -1)
        place = np.arange(len(label))
        own = scores[:, label, place]
        top = scores.max(axis=1)
        scores -= top[:, None]
        np.exp(scores, out=scores)
        total = scores.sum(axis=1)
        value += _row_dots(count, top + np.log(total) - own)
        scores *= (count / total)[:, None]
        scores[:, label, place] -= count
        gradient += scores.reshape(len(flat), -1) @ design
    return value, pulled + rows.basis.T @ gradient.reshape(n_fits, n_classes, width)


def _dots(left: Floats, right: Floats) -> Floats:
    """Inner product of each fit."""
    return _row_dots(left.reshape(len(left), -1), right.reshape(len(right), -1))


def _row_dots(left: Floats, right: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", left, right))

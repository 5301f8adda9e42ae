"""Choice of the penalty strengths by leave-out log-likelihood.

Two families of diagonal penalties compete. *Common*: one smoothness strength for every wiggly part
and one ridge strength for every linear part, searched on a grid. *Per covariate*: a strength for
the linear and one for the wiggly part of each covariate, by restricted likelihood, found anew
without each fold. Every choice, of a grid point within the common family and of the family, is by
held-out loss summed over folds; the leave-out log-odds of a fold's rows come from what wins on the
*other* folds, so that the choice itself does not see the rows it is judged on. Families are
compared by these, since the best of many grid points flatters itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.irls import (
    NewtonFit,
    curvature,
    fellner_schall,
    fit_folds,
    fold_grams,
    newton,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# A factor of ten between neighbours: the held-out loss is flat at the optimum.
SMOOTHNESS_GRID = 0.3 * 10.0 ** np.arange(6)
RIDGE_GRID = 0.1 * 10.0 ** np.arange(4)
START = (2, 1)


class Selection(NamedTuple):
    """The chosen strengths, the fit on all rows and the leave-out log-odds.

    `grid_point` is where the search of a similar problem should start.
    """

    strengths: Floats
    coef: Floats
    leave_out_log_odds: Floats
    leave_out_loss: float
    grid_point: tuple[int, int]


class _Family(NamedTuple):
    """A family's best member, and its log-odds held out of fit and choice."""

    strengths: Floats
    coef: Floats
    log_odds: Floats


def stratified_folds(X: Floats, y: Floats, n_folds: int, seed: int) -> Ints:
    """Fold number of each row: within each class a shuffled deal, continued from class to class.

    The deal is over distinct rows, so copies of a row share a fold (a copy in the training part
    would answer for the held-out one) and the folds do not depend on the order of the rows. A
    class with fewer distinct rows than folds limits their number, which is at least two.
    """
    rng = np.random.default_rng(seed)
    # One random projection tells rows apart; NaN (unknown) takes part as a value of its own.
    key = (np.where(np.isnan(X), 0.5772, X) * rng.standard_normal(X.shape[1])).sum(axis=1)
    deals = [np.unique(key[y == label], return_inverse=True) for label in (0.0, 1.0)]
    n_folds = max(min(n_folds, *(len(distinct) for distinct, _ in deals)), 2)
    fold = np.empty(len(y), dtype=np.intp)
    dealt = 0
    for label, (distinct, copy_of) in zip((0.0, 1.0), deals, strict=True):
        seats = (dealt + rng.permutation(len(distinct))) % n_folds
        fold[y == label] = seats[copy_of]
        dealt += len(distinct)
    return fold


def row_loss(log_odds: Floats, y: Floats) -> Floats:
    """Negative log-likelihood of each row; `log_odds` may have one column per candidate."""
    labels = y if log_odds.ndim == 1 else y[:, None]
    return np.logaddexp(0.0, log_odds) - labels * log_odds


def fixed_strengths(
    design: Floats, y: Floats, weight: Floats, fold: Ints, term: Ints, strengths: Floats
) -> Selection:
    """Fit at given strengths, with the leave-out log-odds of true refits."""
    penalty = _penalty(term, strengths)
    fit = newton(design, y, weight, penalty)
    grams = fold_grams(design, curvature(fit.log_odds, weight), fold, int(fold.max()) + 1)
    _, held_out = fit_folds(design, y, weight, fold, penalty[:, None], fit.coef, grams)
    loss = float(weight @ row_loss(held_out[:, 0], y))
    return Selection(strengths, fit.coef, held_out[:, 0], loss, START)


def select_strengths(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: NDArray[np.bool_],
    *,
    families: tuple[str, ...] = ("common", "per_covariate"),
    start: tuple[int, int] = START,
) -> Selection:
    """Best strengths of the given families.

    `term[m]` numbers the penalised terms (-1 for the intercept) and `linear[t]` says whether term t
    is a linear part (ridge) or a wiggly part (smoothness). The grid is climbed from `start` over
    3 x 3 neighbourhoods; points once visited are kept.
    """
    found: list[_Family] = []
    best, best_fit = (
        start,
        newton(design, y, weight, _penalty(term, _on_grid(start, linear)), tolerance=1e-6),
    )
    if "common" in families:
        common, best, best_fit = _search_grid(design, y, weight, fold, term, linear, best, best_fit)
        found.append(common)
    if "per_covariate" in families:
        found.append(
            _by_restricted_likelihood(
                design, y, weight, fold, term, _on_grid(best, linear), best_fit
            )
        )
    leave_out, chosen = _leave_out_choice(
        np.stack([family.log_odds for family in found], axis=1), y, weight, fold
    )
    winner = found[chosen]
    fit = newton(design, y, weight, _penalty(term, winner.strengths), winner.coef)
    loss = float(weight @ row_loss(leave_out, y))
    return Selection(winner.strengths, fit.coef, leave_out, loss, best)


def _search_grid(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    linear: NDArray[np.bool_],
    best: tuple[int, int],
    best_fit: NewtonFit,
) -> tuple[_Family, tuple[int, int], NewtonFit]:
    """Climb the grid of common strengths; returns the family, its best point and the fit there."""
    n_folds = int(fold.max()) + 1
    points: list[tuple[int, int]] = []
    held_out = np.empty((len(y), 0))
    coefs = np.empty((design.shape[1], 0))
    while True:
        fresh = [point for point in _neighbours(best) if point not in points]
        if not fresh:
            break
        grams = fold_grams(design, curvature(best_fit.log_odds, weight), fold, n_folds)
        penalties = np.stack([_penalty(term, _on_grid(p, linear)) for p in fresh], axis=1)
        fits, log_odds = fit_folds(design, y, weight, fold, penalties, best_fit.coef, grams)
        points += fresh
        held_out = np.hstack([held_out, log_odds])
        coefs = np.hstack([coefs, fits])
        winner = int(np.argmin(weight @ row_loss(held_out, y)))
        if points[winner] == best:
            break
        best = points[winner]
        penalty = _penalty(term, _on_grid(best, linear))
        best_fit = newton(design, y, weight, penalty, coefs[:, winner], tolerance=1e-6)
    leave_out, winner = _leave_out_choice(held_out, y, weight, fold)
    return _Family(_on_grid(best, linear), coefs[:, winner], leave_out), best, best_fit


def _by_restricted_likelihood(
    design: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    term: Ints,
    begin: Floats,
    begin_fit: NewtonFit,
) -> _Family:
    """Strengths per term, on all rows and anew without each fold."""
    n_folds = int(fold.max()) + 1
    grams = fold_grams(design, curvature(begin_fit.log_odds, weight), fold, n_folds)
    every = grams.sum(axis=0)
    chosen, coef = fellner_schall(
        design, y, weight[:, None], term, begin, begin_fit.coef, every[None]
    )
    # The folds too start from `begin`: a term pruned with all rows would stay pruned.
    left_in = weight[:, None] * (fold[:, None] != np.arange(n_folds))
    _, refits = fellner_schall(design, y, left_in, term, begin, begin_fit.coef, every - grams)
    leave_out = np.einsum("ij,ij->i", design, refits[:, fold].T)
    return _Family(chosen[:, 0], coef[:, 0], leave_out)


def _leave_out_choice(
    held_out: Floats, y: Floats, weight: Floats, fold: Ints
) -> tuple[Floats, int]:
    """Best candidate over all folds, and each fold's log-odds by the best on the other folds."""
    loss = weight[:, None] * row_loss(held_out, y)
    by_fold = np.stack([loss[fold == f].sum(axis=0) for f in range(int(fold.max()) + 1)])
    total = by_fold.sum(axis=0)
    best_elsewhere = np.argmin(total - by_fold, axis=1)
    return held_out[np.arange(len(y)), best_elsewhere[fold]], int(np.argmin(total))


def _on_grid(point: tuple[int, int], linear: NDArray[np.bool_]) -> Floats:
    return np.where(linear, RIDGE_GRID[point[1]], SMOOTHNESS_GRID[point[0]])


def _penalty(term: Ints, strengths: Floats) -> Floats:
    return np.where(term >= 0, np.append(strengths, 0.0)[term], 0.0)


def _neighbours(point: tuple[int, int]) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i in range(max(point[0] - 1, 0), min(point[0] + 2, len(SMOOTHNESS_GRID)))
        for j in range(max(point[1] - 1, 0), min(point[1] + 2, len(RIDGE_GRID)))
    ]

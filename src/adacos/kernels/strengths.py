"""Choice of the penalty strengths by leave-out log-likelihood.

Two families of diagonal penalties compete. *Common*: one smoothness strength for every wiggly part
and one ridge strength for every linear part, searched on a grid. *Per covariate*: a strength for
the linear and one for the wiggly part of each covariate, by restricted likelihood, found anew
without each fold. The winner has the least held-out loss summed over folds. The leave-out log-odds
of a fold's rows come from the candidate that wins on the *other* folds, so that the choice itself
does not see the rows it is judged on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.irls import (
    curvature,
    fellner_schall,
    fold_grams,
    newton,
    refit_without_folds,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# A factor of ten between neighbours: the held-out loss is flat at the optimum.
SMOOTHNESS_GRID = 0.3 * 10.0 ** np.arange(6)
RIDGE_GRID = 0.1 * 10.0 ** np.arange(4)
START = (2, 1)


class Selection(NamedTuple):
    """The chosen penalty, the fit on all rows and the leave-out log-odds."""

    strengths: Floats
    coef: Floats
    leave_out_log_odds: Floats
    leave_out_loss: float
    grid_point: tuple[int, int]


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
    held_out = refit_without_folds(
        design, y, weight, fold, penalty[:, None], fit.coef[:, None], grams
    )[:, 0]
    loss = float(weight @ row_loss(held_out, y))
    return Selection(strengths, fit.coef, held_out, loss, START)


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
    n_folds = int(fold.max()) + 1
    held_out: list[Floats] = []
    strengths: list[Floats] = []
    coefs: list[Floats] = []
    best = start

    visited: dict[tuple[int, int], int] = {}
    best_fit = newton(design, y, weight, _penalty(term, _on_grid(start, linear)))
    grams = fold_grams(design, curvature(best_fit.log_odds, weight), fold, n_folds)
    if "common" in families:
        while True:
            fresh = [point for point in _neighbours(best) if point not in visited]
            if not fresh:
                break
            candidates = np.stack([_on_grid(point, linear) for point in fresh])
            penalties = np.stack([_penalty(term, row) for row in candidates], axis=1)
            fits = _fit_path(design, y, weight, penalties, fresh, best_fit.coef)
            odds = refit_without_folds(design, y, weight, fold, penalties, fits, grams)
            for i, point in enumerate(fresh):
                visited[point] = len(held_out)
                held_out.append(odds[:, i])
                strengths.append(candidates[i])
                coefs.append(fits[:, i])
            losses = {p: weight @ row_loss(held_out[i], y) for p, i in visited.items()}
            winner = min(losses, key=lambda p: losses[p])
            if winner == best:
                break
            best = winner
    if "per_covariate" in families and len(linear):
        begin = _on_grid(best, linear)
        chosen, coef = fellner_schall(design, y, weight, term, begin, best_fit.coef)
        fit = newton(design, y, weight, _penalty(term, chosen), coef)
        grams = fold_grams(design, curvature(fit.log_odds, weight), fold, n_folds)
        total = grams.sum(axis=0)
        odds_out = np.empty(len(y))
        for f in range(n_folds):
            rows = fold == f
            # From the grid's strengths, not from `chosen`: a term pruned with all rows would stay so.
            _, coef_f = fellner_schall(
                design[~rows],
                y[~rows],
                weight[~rows],
                term,
                begin,
                best_fit.coef,
                gram=total - grams[f],
            )
            odds_out[rows] = design[rows] @ coef_f
        held_out.append(odds_out)
        strengths.append(chosen)
        coefs.append(fit.coef)

    odds = np.stack(held_out, axis=1)
    loss = weight[:, None] * row_loss(odds, y)
    by_fold = np.stack([loss[fold == f].sum(axis=0) for f in range(n_folds)])
    total_loss = by_fold.sum(axis=0)
    overall = int(np.argmin(total_loss))
    best_elsewhere = np.argmin(total_loss - by_fold, axis=1)
    leave_out = odds[np.arange(len(y)), best_elsewhere[fold]]
    final = newton(design, y, weight, _penalty(term, strengths[overall]), coefs[overall])
    return Selection(
        strengths[overall], final.coef, leave_out, float(weight @ row_loss(leave_out, y)), best
    )


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


def _fit_path(
    design: Floats,
    y: Floats,
    weight: Floats,
    penalties: Floats,
    points: list[tuple[int, int]],
    start: Floats,
) -> Floats:
    """Fits on all rows, one column per penalty, each started from its neighbour's."""
    fits = np.empty_like(penalties)
    previous = start
    for i in range(len(points)):
        previous = newton(design, y, weight, penalties[:, i], previous, tolerance=1e-6).coef
        fits[:, i] = previous
    return fits

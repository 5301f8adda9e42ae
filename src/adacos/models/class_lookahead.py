"""Lookahead to the later sets for rows of three or more classes.

As `adacos.models.lookahead`, with log-odds that are vectors. What a later set may tell is what it
told training rows, see `adacos.models.evidence`; as published, the log-odds after it are normal by
the regression of what is still to come, with the covariance of an average row. What cannot be
acquired stays unknown and tells nothing; in the normal vector it draws the log-odds together, by
the factor that it has for two classes of the mean variance between two classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.belief_plans import expected_cost
from adacos.kernels.class_risk import (
    class_bayes_risk,
    expected_class_risk,
    pair_variance,
    pairwise_shrink,
    probabilities,
    roots,
)
from adacos.kernels.ties import below
from adacos.models.accuracy import FINE
from adacos.models.class_values import ClassValues
from adacos.models.dynamic import ValueTables
from adacos.models.evidence import Evidence
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.lookahead import WalkState, log_odds_now, payable, unweighted
from adacos.models.missing import unpolarised
from adacos.models.unavailable import learnable
from adacos.typing import Bools, Floats, Ints


class ClassLookahead(NamedTuple):
    """Log-odds now, and what each later set costs and leaves at risk.

    Attributes
    ----------
    log_odds : (rows, K - 1) at the set.
    cost : (rows, later sets) or one row when it is the same for all.
    after : expected Bayes risk of some rows after the j-th later set, by misclassification costs.
    future : (rows, later sets) cost of each plus what is expected after it, once evaluated.
    """

    log_odds: Floats
    cost: Floats
    after: Callable[[Ints, int, Floats], Floats]
    future: Floats | None = None

    @property
    def shown(self) -> Floats | None:
        """What continuing did for out-of-fold rows is not counted."""
        return None

    def expected_risk(self, rows: Ints, j: int, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after the j-th later set, at most that now."""
        return np.asarray(self.after(rows, j, matrix))

    def weighed(self, matrix: Floats) -> ClassLookahead:
        """The lookahead with all future costs evaluated, if one stops after each set."""
        if self.future is not None:
            return self
        rows = np.arange(len(self.log_odds))
        risks = [self.expected_risk(rows, j, matrix) for j in range(self.cost.shape[1])]
        risk = np.stack(risks, axis=1) if risks else np.empty((len(rows), 0))
        return self._replace(future=np.asarray(self.cost + risk))

    def unweighted(self, times: float) -> ClassLookahead:
        """The same at the costs as they are, where they were counted `times` times."""
        cost, future = unweighted(self.cost, self.future, times)
        return self._replace(cost=cost, future=future)

    def any_worthwhile(self, matrix: Floats) -> Bools:
        """Whether some later set is expected to save more than it costs, for each row.

        No set can save more than knowing the class would.
        """
        risk = class_bayes_risk(self.log_odds, matrix)
        most = risk - probabilities(self.log_odds) @ np.diag(matrix)
        cost = np.broadcast_to(self.cost, (len(risk), self.cost.shape[1]))
        gain = np.zeros(len(risk), dtype=np.bool_)
        for j in range(cost.shape[1]):
            rows = np.flatnonzero(~gain & (cost[:, j] < most))
            if len(rows):
                future = cost[rows, j] + self.expected_risk(rows, j, matrix)
                gain[rows] = below(future, risk[rows])
        return gain


def look_ahead_classes(
    state: WalkState, costs: CostTable, forecast: Forecast = FORECASTS["coherent"]
) -> ClassLookahead:
    """What the rows know at their set and expect of the later ones."""
    i, sequence = state.stage, state.model.sequence
    log_odds, later = log_odds_now(state), len(sequence) - 1 - i
    masks, rank = sequence.masks(), sequence.rank
    if later == 0:
        cost = np.empty((len(log_odds), 0))
    elif state.available is None:
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)[None, :]
    else:
        reachable = state.available[:, None, :]
        cost = costs.of_batch(masks[i + 1 :] & reachable, given=masks[i] & reachable, rank=rank)
    cost = payable(cost, state.left)
    if forecast is FORECASTS["paper"] and later:
        return ClassLookahead(log_odds, cost, _normal(state))
    belief, evidence = probabilities(log_odds), Evidence.of(state.model, FINE.n_rows)

    def after(rows: Ints, j: int, matrix: Floats) -> Floats:
        found = _expected(state, evidence, belief, rows, i + 1 + j, matrix.T, matrix.T)
        return np.minimum(found, class_bayes_risk(log_odds[rows], matrix))

    return ClassLookahead(log_odds, cost, after)


def _expected(
    state: WalkState,
    evidence: Evidence,
    belief: Floats,
    rows: Ints,
    j: int,
    plans: Floats,
    labels: Floats,
) -> Floats:
    """Expected cost of some rows at S_j with these plans, or labels where nothing is to come."""
    if state.available is None:
        return expected_cost(belief[rows], *evidence.between(state.stage, j), plans)
    found, n_steps = np.empty(len(rows)), j - state.stage
    there = state.available[np.ix_(rows, state.upcoming)]
    can = np.column_stack([there[:, :n_steps], there[:, n_steps:].any(axis=1)])
    patterns, number = np.unique(can, axis=0, return_inverse=True)
    for kind, pattern in enumerate(patterns):
        own = np.flatnonzero(number.ravel() == kind)
        told = evidence.between(state.stage, j, pattern[:-1])
        found[own] = expected_cost(belief[rows[own]], *told, plans if pattern[-1] else labels)
    return found


def _normal(state: WalkState) -> Callable[[Ints, int, Floats], Floats]:
    """The expected risk of a normal vector by the regression."""
    i, model = state.stage, state.model
    basis, size, later = model.basis, model.intercepts.shape[1], len(state.upcoming)
    part = state.part.reshape(-1, len(model.sequence), size)
    fixed = model.intercepts[i + 1 :] + part[:, i + 1 :]
    if state.available is None:
        density = model.densities[i]
        known = density.regressors
        r = basis.standardise(state.encoded[:, known], known)
        mean, root = density.means(r) + fixed, roots(density.variance)
    else:
        moments = learnable(model, state.encoded, state.available, i)
        n_functions = moments.mean.shape[1] // later
        learned, unknown = (
            unpolarised(variance.reshape(-1, later, n_functions), size)
            for variance in (moments.learned, moments.unknown)
        )
        shrink = pairwise_shrink(pair_variance(unknown))[..., None]
        to_come = moments.mean.reshape(-1, later, n_functions)[..., :size]
        mean, root = shrink * (to_come + fixed), shrink[..., None] * roots(learned)

    def after(rows: Ints, j: int, matrix: Floats) -> Floats:
        own = root[j] if root.ndim == 3 else root[rows, j]
        return expected_class_risk(mean[rows, j], own, matrix)

    return after


def weigh_class_plans(state: WalkState, tables: ValueTables) -> tuple[Bools, ClassLookahead]:
    """Whether each row continues where one may stop at any later set, and its future costs.

    They are evaluated for a single row, and where waiting costs something.
    """
    costs, matrix = tables.costs, tables.matrix
    ahead = look_ahead_classes(state, costs)
    belief, risk = probabilities(ahead.log_odds), class_bayes_risk(ahead.log_odds, matrix)
    gain, stated = (np.full(len(belief), -np.inf) for _ in range(2))
    future = np.full((len(belief), ahead.cost.shape[1]), np.inf)
    price, waits = np.broadcast_to(ahead.cost, future.shape), costs.immediate is not None
    within = np.isfinite(price).sum(axis=1)
    for count in np.unique(within[within > 0]).tolist():
        rows, last = np.flatnonzero(within == count), state.stage + count
        values = tables.of_classes(state.model, last)

        def after(own: Ints, j: int, values: ClassValues = values) -> Floats:
            stage = state.stage + 1 + j
            plans, labels = values.best[stage], matrix.T
            left = _expected(state, values.evidence, belief, own, stage, plans, labels)
            return np.asarray(price[own, j] + left)

        whole, some = _by_what_is_there(state, rows, count)
        if waits:
            future[whole, :count] = values.by_move(state.stage, belief[whole], last)
        else:
            gain[whole] = values.gain_at(state.stage, belief[whole])
            stated[whole] = values.stated_gain(state.stage, belief[whole])
            for j, own in _next_there(state, some, count):
                gain[own] = stated[own] = risk[own] - after(own, j) - values.rounding
        shown = some if waits else rows[: len(belief) == 1]
        for j in range(count if len(shown) else 0):
            future[shown, j] = after(shown, j)
    if waits:
        # At least what is paid and what right answers cost.
        future = np.maximum(future, price + (belief @ np.diag(matrix))[:, None])
        return np.asarray(below(future.min(axis=1, initial=np.inf), risk)), ahead._replace(
            future=future
        )
    if len(belief) == 1 and np.isfinite(stated[0]):
        # The plans are told apart by the expectation, and the best saves what is stated.
        ahead = ahead._replace(future=future + (risk - stated - future.min(axis=1))[:, None])
    return gain > 0, ahead


def _by_what_is_there(state: WalkState, rows: Ints, count: int) -> tuple[Ints, Ints]:
    """Rows for which the next covariates are all available, and the others."""
    if state.available is None:
        return rows, rows[:0]
    whole = state.available[np.ix_(rows, state.upcoming[:count])].all(axis=1)
    return rows[whole], rows[~whole]


def _next_there(state: WalkState, rows: Ints, count: int) -> list[tuple[int, Ints]]:
    """For each later set, the rows for which it holds the next covariate that is available."""
    if len(rows) == 0:
        return []
    assert state.available is not None
    there = state.available[np.ix_(rows, state.upcoming[:count])]
    following = np.where(there.any(axis=1), there.argmax(axis=1), -1)
    return [(j, rows[following == j]) for j in np.unique(following[following >= 0]).tolist()]

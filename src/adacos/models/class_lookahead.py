"""Lookahead to the later sets for rows of three or more classes.

As `adacos.models.lookahead`, with log-odds that are vectors. What a later set may say is what it
said of training rows, see `adacos.models.evidence`; as published, the log-odds after it are normal
by the regression of what is still to come, with the covariance of an average row. What cannot be
acquired stays unknown and says nothing; in the normal vector it draws the log-odds together, by
the factor that it has for two classes of the mean variance between two classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.belief_plans import expected_cost
from adacos.kernels.class_risk import (
    class_bayes_risk,
    expected_class_risk,
    probabilities,
    roots,
)
from adacos.kernels.saving import Savings
from adacos.kernels.ties import below
from adacos.models.accuracy import FINE
from adacos.models.class_values import ClassValues
from adacos.models.dynamic import ValueTables
from adacos.models.evidence import Evidence
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.lookahead import (
    Lookahead,
    WalkState,
    costs_of_later,
    log_odds_now,
    to_be_learned,
)
from adacos.models.unavailable import learnable
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class ClassLookahead(Lookahead):
    """The lookahead of three or more classes; what out-of-fold rows showed is not counted.

    Attributes
    ----------
    after : expected Bayes risk of some rows after the j-th later set, by misclassification costs.
    """

    after: Callable[[Ints, int, Floats], Floats]

    def expected_risk(self, rows: Ints, sets: slice, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after some of the later sets, (rows, sets)."""
        places = range(*sets.indices(self.cost.shape[1]))
        risks = [self.after(rows, j, matrix) for j in places]
        return np.stack(risks, axis=1) if risks else np.empty((len(rows), 0))

    def weighed_against(self, savings: Savings) -> tuple[Bools, ClassLookahead]:
        """Whether some later set saves each row more than it costs, if one stops there."""
        risk = class_bayes_risk(self.log_odds, savings.matrix)
        if len(risk) > 1:
            return self._any_worthwhile(risk, savings.matrix), self
        ahead = self.weighed(savings.matrix)
        assert ahead.future is not None
        return np.asarray(below(ahead.future, risk[:, None]).any(axis=1)), ahead

    def _any_worthwhile(self, risk: Floats, matrix: Floats) -> Bools:
        """No set can save more than knowing the class would."""
        most = risk - probabilities(self.log_odds) @ matrix.min(axis=1)
        cost = np.broadcast_to(self.cost, (len(risk), self.cost.shape[1]))
        gain = np.zeros(len(risk), dtype=np.bool_)
        for j in range(cost.shape[1]):
            rows = np.flatnonzero(~gain & (cost[:, j] < most))
            if len(rows):
                gain[rows] = below(cost[rows, j] + self.after(rows, j, matrix), risk[rows])
        return gain


def look_ahead_classes(
    state: WalkState, costs: CostTable, forecast: Forecast = FORECASTS["coherent"]
) -> ClassLookahead:
    """What the rows know at their set and expect of the later ones."""
    i, log_odds, cost = state.stage, log_odds_now(state), costs_of_later(state, costs)
    if forecast is FORECASTS["paper"] and cost.shape[1]:
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
        partition = evidence.between(state.stage, j, pattern[:-1])
        found[own] = expected_cost(belief[rows[own]], *partition, plans if pattern[-1] else labels)
    return found


def _normal(state: WalkState) -> Callable[[Ints, int, Floats], Floats]:
    """The expected risk of a normal vector by the regression."""
    i, model = state.stage, state.model
    informative = state.informative
    if informative is None:
        part = state.part.reshape(-1, *model.intercepts.shape)
        density = model.densities[i]
        known = density.regressors
        r = model.basis.standardise(state.encoded[:, known], known)
        mean = density.means(r) + model.intercepts[i + 1 :] + part[:, i + 1 :]
        root = roots(density.variance)
    else:
        moments = learnable(model, state.encoded, informative, i)
        mean, covariance = to_be_learned(state, moments)
        root = roots(covariance)

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
        # At least what is paid and what the best decision about each class costs.
        future = np.maximum(future, price + (belief @ matrix.min(axis=1))[:, None])
        return np.asarray(below(future.min(axis=1, initial=np.inf), risk)), replace(
            ahead, future=future
        )
    if len(belief) == 1 and np.isfinite(stated[0]):
        # The plans are told apart by the expectation, and the best saves what is stated.
        ahead = replace(ahead, future=future + (risk - stated - future.min(axis=1))[:, None])
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

"""A plan for every state of discrete covariates: what to acquire next, or that one classifies.

The plan of least expected total cost for a joint distribution P(y, x), as a table for looking up;
see `adacos.kernels.planning`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.planning import Actions, solve
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class PlanTable:
    """Best action, log-odds and expected cost of each state; states are numbered row by row.

    Attributes
    ----------
    sizes : number of values of each covariate.
    action : covariate to acquire, or -1 to classify.
    log_odds : of the second class; of K > 2 classes those of each later class against the first,
        (states, K - 1). Those before anything is acquired where the state has probability 0.
    value : expected cost from the state on; NaN where it has probability 0.
    mass : probability of the state's values.
    going : the best covariate to acquire, whether or not it pays; -1 where none is left.
    continuing : (states, K) expected cost of acquiring it by true class, covariate costs counted
        with caution. It says what pays at another belief than the state's own.
    """

    sizes: Ints
    action: Actions
    log_odds: Floats
    value: Floats
    mass: Floats
    going: Actions | None = None
    continuing: Floats | None = None

    @property
    def expected_cost(self) -> float:
        """Expected total cost before anything is acquired."""
        return float(self.value[-1])

    def states(self, codes: Ints, acquired: Bools) -> Ints:
        """Number of the state in which each row is."""
        digits = np.where(acquired, codes, self.sizes)
        return np.asarray(np.ravel_multi_index(tuple(digits.T), tuple(self.sizes + 1)))

    def check(self) -> None:
        """Refuse a table whose parts do not fit each other, as a foreign file may hold it."""
        n_states = int(np.prod(self.sizes + 1.0))
        parts = (self.action, self.value, self.mass)
        if (
            any(part.shape != (n_states,) for part in parts)
            or len(self.log_odds) != n_states
            or self.action.min(initial=-1) < -1
            or self.action.max(initial=-1) >= len(self.sizes)
            or (self.going is None) != (self.continuing is None)
        ):
            raise ValueError("the parts of the plan do not fit each other")
        self._check_actions(self.action)
        if self.going is not None and self.continuing is not None:
            if self.going.shape != (n_states,) or len(self.continuing) != n_states:
                raise ValueError("the parts of the plan do not fit each other")
            self._check_actions(self.going)

    def _check_actions(self, actions: Actions) -> None:
        """A row that is asked for what it has would be asked for ever."""
        table = actions.reshape(tuple(self.sizes + 1))
        if table.max(initial=-1) >= len(self.sizes):
            raise ValueError("the parts of the plan do not fit each other")
        for i, size in enumerate(self.sizes.tolist()):
            if (table.take(range(size), axis=i) == i).any():
                raise ValueError("the plan asks for what was acquired")

    def after(self, codes: Ints, acquired: Bools, place: int) -> tuple[Ints, Floats]:
        """States after acquiring one covariate in one state, and the probability of each."""
        each = np.tile(codes, (int(self.sizes[place]), 1))
        each[:, place] = np.arange(self.sizes[place])
        then = acquired.copy()
        then[place] = True
        states = self.states(each, np.tile(then, (len(each), 1)))
        mass = self.mass[states]
        total = float(mass.sum())
        return states, mass / total if total > 0 else np.full(len(mass), 1 / len(mass))


def tabulate(joint: Floats, costs: CostTable, caution: float = 1.0) -> PlanTable:
    """The best plan for P(y, x), shape (classes, values of the first covariate, …).

    With `caution` covariate costs count that many times in what is chosen.
    """
    return tabulate_each(joint, costs, (caution,))[0]


def tabulate_each(joint: Floats, costs: CostTable, cautions: tuple[float, ...]) -> list[PlanTable]:
    """The best plan with each caution."""
    solutions = solve(joint, costs.of_next, costs.matrix, cautions)
    marginal = solutions[0].marginal
    mass = marginal.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [(solution.weighted_value / mass).ravel() for solution in solutions]
        continuing = [
            np.ascontiguousarray((solution.continuing / marginal).reshape(len(joint), -1).T)
            for solution in solutions
        ]
        np.log(marginal, out=marginal)
        log_odds = (marginal[1:] - marginal[0]).reshape(len(joint) - 1, -1).T
    for ahead in continuing:
        # Where a class cannot be.
        ahead[np.isnan(ahead)] = 0.0
    log_odds = np.where(np.isnan(log_odds), log_odds[-1], log_odds)
    if len(joint) == 2:
        log_odds = log_odds[:, 0]
    log_odds = np.ascontiguousarray(log_odds)
    sizes = np.array(joint.shape[1:], dtype=np.intp)
    return [
        PlanTable(
            sizes,
            solution.action.ravel(),
            log_odds,
            value,
            np.asarray(mass.ravel()),
            solution.going.ravel(),
            ahead,
        )
        for solution, value, ahead in zip(solutions, values, continuing, strict=True)
    ]

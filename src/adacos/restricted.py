"""A decider that asks some covariates of every row first, and others of none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from adacos.costs import CostTable
from adacos.decision import Decider, Decision, DecisionRule, Rows, State
from adacos.reasons import Reasons
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class RestrictedDecider(Decider[State]):
    """A decider that decides as another, but for covariates that somebody demands or rules out.

    Attributes
    ----------
    inner : the decider.
    must : mask of the covariates that every row acquires first, as far as they are available.
    never : mask of those that no row acquires: to the inner decider they are unavailable. Rows that
        have a value all the same use it.
    """

    inner: Decider[State]
    must: Bools
    never: Bools

    @property
    def lists(self) -> tuple[Bools, Bools]:
        """Masks of what every row is asked first, and of what none is asked."""
        return self.must, self.never

    @property
    def opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        first = np.union1d(self.inner.opening, np.flatnonzero(self.must))
        return np.setdiff1d(first, np.flatnonzero(self.never)).astype(np.intp)

    @property
    def answers_by_rule(self) -> bool:
        """Whether the rule gives all answers; else the decider fixes labels of its own."""
        return self.inner.answers_by_rule

    def admitted(self, rows: Rows) -> Rows:
        """The rows without what none is asked, but for what they have."""
        gone = self.never & ~rows.have
        encoded = np.where(gone[self.encoder.source], np.nan, rows.encoded)
        return self.inner.admitted(rows._replace(encoded=encoded, available=rows.available & ~gone))

    def begin(self, rows: Rows) -> State:
        """State of rows that have some covariates."""
        return self.inner.begin(rows)

    def decide(self, state: State) -> Decision:
        """What comes next for each row."""
        return self.inner.decide(state)

    def advance(self, state: State, going: Bools, covariates: Ints) -> State:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        return self.inner.advance(state, going, covariates)

    def limit(self, state: State, left: Floats) -> State:
        """A state of rows that can pay that much more, at most."""
        return self.inner.limit(state, left)

    def log_odds(self, state: State) -> Floats:
        """Log-odds of rows if they stopped now."""
        return self.inner.log_odds(state)

    def explain(self, state: State, decision: Decision) -> Reasons:
        """Why it decides so about one row."""
        return self.inner.explain(state, decision)

    def with_rule(self, rule: DecisionRule) -> Self:
        """The decider that decides by another rule."""
        return self._around(self.inner.with_rule(rule))

    def with_multiplier(self, multiplier: float) -> Self:
        """The decider by which covariate costs count 1 + `multiplier` times."""
        return self._around(self.inner.with_multiplier(multiplier))

    def with_costs(self, costs: CostTable) -> Self:
        """The decider that decides by other costs."""
        return self._around(self.inner.with_costs(costs))

    @cached_property
    def arms(self) -> tuple[Self, Self]:
        """The deciders that a mixture consists of, the second for the rows that spend more."""
        first, second = self.inner.arms
        return self._around(first), self._around(second)

    def _around(self, inner: Decider[State]) -> Self:
        return replace(self, terms=inner.terms, inner=inner)


def restricted(decider: Decider[State], must: Bools, never: Bools) -> Decider[State]:
    """The decider with what it must ask and what it may not; itself where there is neither."""
    if not must.any() and not never.any():
        return decider
    return RestrictedDecider(decider.terms, decider, must, never)

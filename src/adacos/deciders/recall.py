"""A decider that acquires as another does, and answers by a rule of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import logit

from adacos.costs import CostTable
from adacos.deciders.walk_reasons import describe_recalls
from adacos.decision import STOP, Decider, Decision, Rows, State
from adacos.reasons import Reasons
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class RecallDecider(Decider[State]):
    """A decider whose answers reach a target recall.

    Attributes
    ----------
    inner : the decider that acquires.
    prior : probability of the second class before anything is acquired.
    """

    inner: Decider[State]
    prior: float

    @property
    def opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        return np.empty(0, dtype=np.intp) if self.rule.always_positive else self.inner.opening

    @property
    def lists(self) -> tuple[Bools, Bools]:
        """Masks of what every row is asked first, and of what none is asked."""
        return self.inner.lists

    def admitted(self, rows: Rows) -> Rows:
        """The rows as the decider that acquires may see them."""
        return self.inner.admitted(rows)

    def begin(self, rows: Rows) -> State:
        """State of rows that have some covariates."""
        return self.inner.begin(rows)

    def decide(self, state: State) -> Decision:
        """What comes next for each row; nothing where every row is answered positive."""
        decision = self.inner.decide(state)
        if not self.rule.always_positive:
            # Here the recall decides, whatever label the inner decider fixes.
            return decision._replace(label=None)
        n_rows = len(decision.log_odds)
        return Decision(np.full(n_rows, STOP), np.full(n_rows, logit(self.prior)))

    def advance(self, state: State, going: Bools, covariates: Ints) -> State:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        return self.inner.advance(state, going, covariates)

    def limit(self, state: State, left: Floats) -> State:
        """A state of rows that can pay that much more, at most."""
        return self.inner.limit(state, left)

    def log_odds(self, state: State) -> Floats:
        """Log-odds of rows if they stopped now."""
        log_odds = self.inner.log_odds(state)
        return np.full_like(log_odds, logit(self.prior)) if self.rule.always_positive else log_odds

    def with_multiplier(self, multiplier: float) -> Self:
        """The decider by which covariate costs count 1 + `multiplier` times."""
        other = super().with_multiplier(multiplier)
        return replace(other, inner=self.inner.with_multiplier(multiplier))

    def with_costs(self, costs: CostTable) -> Self:
        """The decider that decides by other costs; its answers are as they are."""
        return replace(super().with_costs(costs), inner=self.inner.with_costs(costs))

    @cached_property
    def arms(self) -> tuple[Self, Self]:
        """The deciders that a mixture consists of, the second for the rows that spend more."""
        first, second = (
            replace(self, terms=inner.terms._replace(rule=self.rule), inner=inner)
            for inner in self.inner.arms
        )
        return first, second

    def explain(self, state: State, decision: Decision) -> Reasons:
        """What target recalls have to do with the answer."""
        return Reasons(because=describe_recalls(self))

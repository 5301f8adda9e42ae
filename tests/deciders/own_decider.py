"""A decider with a state of its own and its policy, written from docs/architecture.md alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adacos import STOP, BasePolicy, Costs, Decider, Decision, Reasons, Rows, Terms

Array = NDArray[Any]


@dataclass(frozen=True)
class Belief:
    """Rows with the log-odds that their values so far give."""

    side: Array
    available: Array
    acquired: Array
    log_odds: Array
    payable: Array | bool = True


@dataclass(frozen=True, eq=False)
class EvidenceDecider(Decider[Belief]):
    """Adds the evidence of each value; acquires what lowers the expected cost most in one step.

    A value is evidence by the side of the median on which it lies.
    """

    prior: float
    median: Array
    share: Array  # (classes, covariates) of training rows above the median

    def begin(self, rows: Rows) -> Belief:
        first = rows.encoded[:, self.encoder.first]
        side = (first > self.median).astype(int)
        acquired = rows.have & rows.available
        state = Belief(side, rows.available, acquired, np.full(len(side), self.prior))
        return replace(state, log_odds=self.prior + (acquired * self._evidence(side)).sum(axis=1))

    def _evidence(self, side: Array) -> Array:
        above = np.log(self.share[1]) - np.log(self.share[0])
        below = np.log1p(-self.share[1]) - np.log1p(-self.share[0])
        return np.where(side == 1, above, below)

    def _expected(self, state: Belief) -> Array:
        """Cost of each covariate and of the answer after it, (rows, covariates)."""
        p = 1 / (1 + np.exp(-state.log_odds[:, None]))
        above = p * self.share[1] + (1 - p) * self.share[0]
        total = self.weighed_costs.of_next(state.acquired).copy()
        for side, chance in ((1, above), (0, 1 - above)):
            after = state.log_odds[:, None] + self._evidence(np.full(self.median.shape, side))
            total += chance * self.rule.risk(after.ravel()).reshape(after.shape)
        return np.where(state.available & ~state.acquired & state.payable, total, np.inf)

    def decide(self, state: Belief) -> Decision:
        expected = self._expected(state)
        best = expected.argmin(axis=1)
        pays = expected.min(axis=1) < self.rule.risk(state.log_odds)
        return Decision(np.where(pays, best, STOP), state.log_odds, weighed=expected)

    def advance(self, state: Belief, going: Array, covariates: Array) -> Belief:
        side, available = state.side[going], state.available[going]
        acquired, log_odds = state.acquired[going], state.log_odds[going]
        evidence = self._evidence(side)
        for column in covariates.T:
            rows = np.flatnonzero(column != STOP)
            rows = rows[available[rows, column[rows]]]
            acquired[rows, column[rows]] = True
            log_odds[rows] += evidence[rows, column[rows]]
        return Belief(side, available, acquired, log_odds)

    def limit(self, state: Belief, left: Array) -> Belief:
        return replace(state, payable=self.costs.of_next(state.acquired) <= left[:, None])

    def explain(self, state: Belief, decision: Decision) -> Reasons:
        least = float(np.min(self._expected(state)))
        return Reasons(because=f"The cheapest next step is expected to cost {least:.2f}.")


class EvidenceClassifier(BasePolicy):
    """Naive Bayes of the sides of the medians, one step ahead."""

    saved_fields: ClassVar[dict[str, Any]] = {
        "prior_": float,
        "median_": NDArray[Any],
        "share_": NDArray[Any],
    }

    def __init__(self, costs: Costs | None = None, budget: float | None = None) -> None:
        self.costs = costs
        self.budget = budget

    def fit(self, X: Any, y: Any) -> EvidenceClassifier:
        training = self.begin_fit(X, y)
        values = training.encoded[:, self.encoder_.first]
        self.prior_ = float(np.log(training.y.sum() / (1 - training.y).sum()))
        self.median_ = np.nanmedian(values, axis=0)
        above = values > self.median_
        self.share_ = np.array(
            [(above[training.y == k].mean(axis=0) + 0.01) / 1.02 for k in (0, 1)]
        )
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> EvidenceDecider:
        return EvidenceDecider(terms, self.prior_, self.median_, self.share_)

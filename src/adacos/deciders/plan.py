"""Rows that follow a plan over all states of coded covariates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from adacos.costs import CostTable
from adacos.deciders.plan_reasons import class_shares, plan_reasons
from adacos.decision import STOP, Decider, Decision, ObservedState, Rows
from adacos.families import family
from adacos.kernels.class_risk import least_risk
from adacos.kernels.planning import CLASSIFY, ROUNDING
from adacos.models.cells import WithinCodes
from adacos.models.plans import PlanTable, tabulate
from adacos.models.recent import Recent
from adacos.reasons import Reasons
from adacos.tables.codes import Codes
from adacos.typing import Bools, Floats, Ints

# Plans without what some rows lack that are kept: a consultation asks for the same one each step.
_MOST_PLANS = 8


@dataclass(frozen=True)
class Planned(ObservedState):
    """Rows with the plans for what they have no value of.

    Attributes
    ----------
    number : (rows,) number of each row's plan.
    plans : the planned covariates and the table of each plan.
    statistics : what the values say beyond their codes, see `PlanningDecider`.
    """

    number: Ints
    plans: tuple[tuple[Ints, PlanTable], ...]
    statistics: Floats | None = None


@dataclass(frozen=True, eq=False)
class PlanDecider(Decider[Planned]):
    """A decider that looks up what to do in every state of coded covariates.

    Attributes
    ----------
    codes : how values become codes.
    planned : covariates that the plan asks for.
    joint : P(y, x) of their codes.
    table : the plan where all of them are available.
    caution : how many times covariate costs count in what is chosen.
    """

    codes: Codes
    planned: Ints
    joint: Floats
    table: PlanTable
    caution: float = 1.0
    others: Recent[bytes, PlanTable] = field(
        default_factory=lambda: Recent(_MOST_PLANS), init=False, repr=False
    )

    def read(self, encoded: Floats) -> Ints:
        """The codes of encoded rows, `UNKNOWN` where there is no value."""
        return self.codes.transform(encoded)

    def begin(self, rows: Rows) -> Planned:
        """State of rows that have some covariates."""
        seen = ObservedState.of(self.read(rows.encoded), rows, self.encoder)
        return self._with_plans(seen, self.statistics(rows.encoded))

    def statistics(self, encoded: Floats) -> Floats | None:
        """What is read of encoded rows beyond their codes."""
        return None

    def _with_plans(self, seen: ObservedState, statistics: Floats | None) -> Planned:
        """Rows without the same covariates share the best plan with the others."""
        patterns, number = np.unique(seen.available[:, self.planned], axis=0, return_inverse=True)
        plans = tuple(self._plan_with(there) for there in patterns)
        return Planned(
            seen.values,
            seen.available,
            seen.acquired,
            number.ravel(),
            plans,
            statistics,
            at_any_price=seen.at_any_price,
            unseen=seen.unseen,
        )

    def with_costs(self, costs: CostTable) -> Self:
        """The decider of the best plan at other costs, with the same caution."""
        kept = np.isin(np.arange(len(self.encoder.names)), self.planned)
        table = tabulate(self.joint, costs.only(kept), self.caution)
        return replace(self, terms=self._terms_at(costs), table=table)

    def _plan_with(self, there: Bools) -> tuple[Ints, PlanTable]:
        """The best plan with the planned covariates in a mask, and these."""
        if there.all():
            return self.planned, self.table
        covariates, pattern = self.planned[there], there.tobytes()
        table = self.others.find(pattern)
        if table is None:
            joint = self.joint.sum(axis=tuple(1 + np.flatnonzero(~there)))
            kept = np.isin(np.arange(len(self.encoder.names)), covariates)
            table = tabulate(joint, self.costs.only(kept), self.caution)
            self.others.keep(pattern, table)
        return covariates, table

    def decide(self, state: Planned) -> Decision:
        """What comes next for each row."""
        covariates = np.empty(len(state.values), dtype=np.intp)
        log_odds = np.empty((len(state.values), *family(len(self.classes)).later))
        for rows, planned, table, places in _by_plan(state):
            covariates[rows] = np.append(planned, STOP)[table.action[places]]
            log_odds[rows] = table.log_odds[places]
        return Decision(covariates, log_odds)

    def advance(self, state: Planned, going: Bools, covariates: Ints) -> Planned:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        seen = state.after(going, covariates)
        statistics = None if state.statistics is None else state.statistics[going]
        if not seen.available[np.arange(len(covariates)), covariates[:, 0]].all():
            return self._with_plans(seen, statistics)
        number = state.number[going]
        masks = seen.available, seen.acquired
        return Planned(seen.values, *masks, number, state.plans, statistics, unseen=seen.unseen)

    def limit(self, state: Planned, left: Floats) -> Planned:
        """A state of rows that can pay this amount: the plan without what costs more."""
        payable = self.costs.of_next(state.acquired) <= left[:, None]
        available = state.available & (state.acquired | payable)
        limited = replace(state, available=available, at_any_price=state.available)
        return self._with_plans(limited, state.statistics)


def _by_plan(state: Planned) -> Iterator[tuple[Ints, Ints, PlanTable, Ints]]:
    """Rows that have the same plan, its covariates and table, and where in it each row is."""
    for number, (planned, table) in enumerate(state.plans):
        rows = np.flatnonzero(state.number == number)
        here = np.ix_(rows, planned)
        yield rows, planned, table, table.states(state.values[here], state.acquired[here])


@dataclass(frozen=True, eq=False)
class PlanningDecider(PlanDecider):
    """The plan of `PlanningClassifier`, with its reasons.

    The plan says which covariate is the best to acquire, and what continuing costs if a class is
    the true one. Whether it pays is decided at the probabilities given the values themselves.

    Attributes
    ----------
    within : what values say beyond their codes; None where that is not known.
    """

    within: WithinCodes | None = None

    def statistics(self, encoded: Floats) -> Floats | None:
        """What is read of encoded rows beyond their codes."""
        return None if self.within is None else self.within.statistics(encoded)

    def decide(self, state: Planned) -> Decision:
        """What comes next for each row."""
        decision = super().decide(state)
        if self.within is None or state.statistics is None:
            return decision
        log_odds = decision.log_odds + self.within.more_log_odds(
            state.statistics, state.values, state.acquired, self.codes, self.planned
        )
        matrix = self.costs.matrix
        now = least_risk(log_odds, matrix) - ROUNDING * float(np.ptp(matrix))
        belief = class_shares(log_odds)
        covariates = decision.covariates
        for rows, planned, table, places in _by_plan(state):
            assert table.going is not None
            assert table.continuing is not None
            going = table.going[places]
            future = (belief[rows] * table.continuing[places]).sum(axis=1)
            pays = (going != CLASSIFY) & (future < now[rows])
            covariates[rows] = np.append(planned, STOP)[np.where(pays, going, CLASSIFY)]
        return Decision(covariates, log_odds)

    def explain(self, state: Planned, decision: Decision) -> Reasons:
        """Why it decides so about one row."""
        planned, table = state.plans[int(state.number[0])]
        return plan_reasons(self, state, decision, planned, table, self.codes, self.caution)

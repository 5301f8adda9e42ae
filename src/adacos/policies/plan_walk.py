"""How rows walk through a plan over all states of coded covariates.

A policy that derives from `PlanWalk` learns the codes, the covariates that are planned, P(y, x) of
their codes and the table of the plan.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.engine import STOP, Decision, Rows, Seen
from adacos.models.plans import PlanTable, tabulate
from adacos.policies.base import BasePolicy
from adacos.tables.codes import UNKNOWN, Codes

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Plans without what some rows lack, by the plan with everything and pattern; the least recently
# used ones are dropped. A consultation asks for the same one at every step.
_PLANS: WeakKeyDictionary[PlanTable, OrderedDict[bytes, PlanTable]] = WeakKeyDictionary()
_MOST_PLANS = 8
_LOCK = Lock()


@dataclass(frozen=True)
class Planned(Seen):
    """Rows with the plans for what they lack.

    Attributes
    ----------
    number : (rows,) number of each row's plan.
    plans : the planned covariates and the table of each plan.
    """

    number: Ints
    plans: tuple[tuple[Ints, PlanTable], ...]


class PlanWalk(BasePolicy):
    """Base of the policies that follow a plan over all states.

    Attributes
    ----------
    codes_ : how values become codes.
    planned_ : covariates that the plan asks for.
    joint_ : P(y, x) of their codes.
    table_ : the plan where all of them are available.
    caution_ : how many times covariate costs count in what is chosen.
    """

    codes_: Codes
    planned_: Ints
    joint_: Floats
    table_: PlanTable
    caution_: float = 1.0

    def _read(self, encoded: Floats) -> Ints:
        return self.codes_.transform(encoded)

    def _costs_of(self, covariates: Ints) -> CostTable:
        """Costs of some covariates only."""
        return self.cost_table_.only(np.isin(np.arange(len(self.encoder_.names)), covariates))

    def _begin(self, rows: Rows) -> Planned:
        return self._with_plans(super()._begin(rows))

    def _with_plans(self, seen: Seen) -> Planned:
        """Rows that lack the same covariates share the best plan with the others.

        A category never seen in training, once it was acquired, says nothing: as if it were lacked.
        """
        tells = seen.available & ~(seen.acquired & (seen.values == UNKNOWN))
        patterns, number = np.unique(tells[:, self.planned_], axis=0, return_inverse=True)
        plans = tuple(self._plan_with(there) for there in patterns)
        return Planned(seen.values, seen.available, seen.acquired, number.ravel(), plans)

    def _plan_with(self, there: Bools) -> tuple[Ints, PlanTable]:
        """The best plan with the planned covariates in a mask, and these."""
        if there.all():
            return self.planned_, self.table_
        covariates, pattern = self.planned_[there], there.tobytes()
        with _LOCK:
            plans = _PLANS.setdefault(self.table_, OrderedDict())
            if pattern in plans:
                plans.move_to_end(pattern)
                return covariates, plans[pattern]
        joint = self.joint_.sum(axis=tuple(1 + np.flatnonzero(~there)))
        table = tabulate(joint, self._costs_of(covariates), self.caution_)
        with _LOCK:
            plans[pattern] = table
            while len(plans) > _MOST_PLANS:
                plans.popitem(last=False)
        return covariates, table

    def _decide(self, state: Planned) -> Decision:
        covariates = np.empty(len(state.values), dtype=np.intp)
        later = () if len(self.classes_) == 2 else (len(self.classes_) - 1,)
        log_odds = np.empty((len(state.values), *later))
        for number, (planned, table) in enumerate(state.plans):
            rows = np.flatnonzero(state.number == number)
            here = np.ix_(rows, planned)
            places = table.states(state.values[here], state.acquired[here])
            covariates[rows] = np.append(planned, STOP)[table.action[places]]
            log_odds[rows] = table.log_odds[places]
        return Decision(covariates, log_odds)

    def _advance(self, state: Planned, going: Bools, covariates: Ints) -> Planned:
        seen = state.after(going, covariates)
        if (seen.values[np.arange(len(covariates)), covariates[:, 0]] == UNKNOWN).any():
            return self._with_plans(seen)
        number = state.number[going]
        return Planned(seen.values, seen.available, seen.acquired, number, state.plans)

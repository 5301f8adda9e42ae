"""Rounds: results that are waited for, and covariates that are ordered together.

Where waiting costs something, a row at S_i does not continue covariate by covariate: it orders
S_j \\ S_i at once, for the later set j with the least future cost, and decides again when the
results are there. The future cost counts one round for the batch and what may be ordered after it,
by dynamic programming along the sequence (`adacos.models.dynamic`, with three or more classes
`adacos.models.class_values`). Rows that stood at one set then
stand at several; each group of them walks by itself. A covariate that is immediate comes alone:
seeing it first costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from adacos.costs import CostTable
from adacos.deciders.groups import Groups
from adacos.deciders.out_of_fold import FoldedDecider
from adacos.deciders.sequence import AdaCOSDecider
from adacos.deciders.weighing import DYNAMIC, up_to, weigh
from adacos.decision import STOP, Decision, Rows
from adacos.models.lookahead import Lookahead, WalkState, advance
from adacos.models.sequence_model import SequenceModel
from adacos.reasons import Reasons
from adacos.typing import Bools, Floats, Ints


def ordered(state: WalkState, continues: Bools, lookahead: Lookahead, costs: CostTable) -> Ints:
    """What each row orders next, all of it at once, (rows, covariates); `STOP` for who stops."""
    upcoming, going = state.upcoming, np.flatnonzero(continues)
    batch = np.full((len(continues), max(len(upcoming), 1)), STOP)
    if len(going) == 0:
        return batch
    assert lookahead.future is not None
    length = lookahead.future[going].argmin(axis=1) + 1
    assert costs.immediate is not None
    if costs.immediate[upcoming[0]]:
        length[:] = 1
    batch[going] = np.where(np.arange(len(upcoming)) < length[:, None], upcoming, STOP)
    return batch


@dataclass(frozen=True, eq=False)
class RoundsDecider(FoldedDecider[Groups[WalkState]]):
    """AdaCOS where waiting costs something: what is worth acquiring is ordered together.

    Whether a batch is to be ordered at once depends on what may be ordered after it: whatever the
    lookahead, that is counted.

    Attributes
    ----------
    model : sets, additive models and densities.
    along : AdaCOS along one sequence, for rows at one set.
    """

    model: SequenceModel
    along: AdaCOSDecider = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "along", AdaCOSDecider(self.terms, self.model, DYNAMIC))

    @property
    def opening(self) -> Ints:
        """The covariates of S_1."""
        return self.along.opening

    def begin(self, rows: Rows) -> Groups[WalkState]:
        """State of rows that have some covariates."""
        n_rows = len(rows.encoded)
        return Groups(n_rows, ((np.arange(n_rows), self.along.begin(rows)),))

    def decide(self, state: Groups[WalkState]) -> Decision:
        """What each row orders next."""
        return state.decided(self._decide_at)

    def _decide_at(self, state: WalkState) -> Decision:
        """What rows at one set order."""
        if self.rule.always_positive:
            return up_to(state, 0, self.costs)
        continues, lookahead = weigh(state, self.along.values, DYNAMIC)
        batch = ordered(state, continues, lookahead, self.costs)
        return Decision(batch, lookahead.log_odds, state.original_stage, lookahead)

    def advance(
        self, state: Groups[WalkState], going: Bools, covariates: Ints
    ) -> Groups[WalkState]:
        """The rows in `going` after what each of them ordered."""
        length = (covariates != STOP).sum(axis=1)
        groups = []
        for place, walk, on in state.going(going):
            for steps in np.unique(length[place[on]]).tolist():
                same = on & (length[place] == steps)
                groups.append((place[same], advance(walk, same, steps)))
        return Groups(int(going.sum()), tuple(groups))

    def limit(self, state: Groups[WalkState], left: Floats) -> Groups[WalkState]:
        """The rows at each set with what they can pay."""
        return state.each(lambda rows, walk: self.along.limit(walk, left[rows]))

    def judged(self, state: Groups[WalkState], rows: Ints) -> Groups[WalkState]:
        """A state of training rows with the log-odds of models that did not see them."""
        return state.each(lambda own, walk: self.along.judged(walk, rows[own]))

    def log_odds(self, state: Groups[WalkState]) -> Floats:
        """Log-odds of rows if they stopped now."""
        return state.log_odds(self.along.log_odds)

    def explain(self, state: Groups[WalkState], decision: Decision) -> Reasons:
        """Why it decides so about one row."""
        ((_, walk),) = state.groups
        return self.along.explain(walk, decision)

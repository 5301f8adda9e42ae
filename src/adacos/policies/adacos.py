"""AdaCOS: acquire along the sequence as long as some later set is expected to pay for itself.

At S_i a row stops when F(S_j \\ S_i) >= F(empty) for every j > i, where F(S) is the expected
Bayes risk after acquiring S plus the cost of S. The expectation is over z ~ N(mean, sd²), the
contribution of S_j \\ S_i to the log-odds of model j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adacos.engine import STOP, Decision
from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk
from adacos.models.outlook import Outlook, WalkState, look_ahead
from adacos.policies.sequence_policy import SequencePolicy

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


# Rows × sets evaluated together: below this a call costs more than its numbers.
_CELLS_AT_ONCE = 256


class AdaCOSClassifier(SequencePolicy):
    """Adaptive cost-sensitive acquisition.

    See `SequencePolicy` for parameters and attributes.
    """

    def _next(self, state: WalkState) -> Decision:
        outlook = look_ahead(state, self.cost_table_)
        go_on = expects_gain(outlook, self.rule_.matrix)
        upcoming = state.upcoming[0] if len(state.upcoming) else STOP
        return Decision(np.where(go_on, upcoming, STOP), outlook.log_odds, weighed=outlook)


def expects_gain(outlook: Outlook, matrix: Floats) -> Bools:
    """Whether the future cost of some later set is below the Bayes risk now, for each row.

    Sets are tried in turn on the rows not yet decided, several at a time where rows are few. A set
    that costs as much as could be saved at best cannot pay for itself and is not evaluated.
    """
    risk = bayes_risk(outlook.log_odds, matrix)
    at_best = risk - min(matrix[0, 0], matrix[1, 1])
    gain = np.zeros(len(risk), dtype=np.bool_)
    cost = np.broadcast_to(outlook.cost, outlook.mean.shape)
    at_once = max(_CELLS_AT_ONCE // max(len(risk), 1), 1)
    for first in range(0, outlook.mean.shape[1], at_once):
        sets = slice(first, first + at_once)
        affordable = cost[:, sets] < at_best[:, None]
        rows = np.flatnonzero(~gain & affordable.any(axis=1))
        if len(rows):
            future = cost[rows, sets] + expected_bayes_risk(
                outlook.mean[rows, sets], outlook.sd[rows, sets], matrix
            )
            gain[rows] = (affordable[rows] & (future < risk[rows, None])).any(axis=1)
    return gain

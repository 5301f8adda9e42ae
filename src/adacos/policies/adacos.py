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

    Sets are tried one after the other on the rows not yet decided. A set that costs as much as
    could be saved at best cannot pay for itself and is not evaluated.
    """
    risk = bayes_risk(outlook.log_odds, matrix)
    at_best = risk - min(matrix[0, 0], matrix[1, 1])
    gain = np.zeros(len(risk), dtype=np.bool_)
    cost = np.broadcast_to(outlook.cost, outlook.mean.shape)
    for j in range(outlook.mean.shape[1]):
        rows = np.flatnonzero(~gain & (cost[:, j] < at_best))
        if len(rows):
            future = cost[rows, j] + expected_bayes_risk(
                outlook.mean[rows, j], outlook.sd[rows, j], matrix
            )
            gain[rows] = future < risk[rows]
    return gain

"""AdaCOS: acquire along the sequence as long as some later set is expected to pay for itself.

At S_i a row stops when F(S_j \\ S_i) >= F(empty) for every j > i, where F(S) is the expected
Bayes risk after acquiring S plus the cost of S. The expectation is over z ~ N(mean, sd²), the
contribution of S_j \\ S_i to the log-odds of model j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adacos.consultation.reasons import Prognosis
from adacos.costs import CostTable
from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk
from adacos.models.outlook import Outlook, advance, begin, look_ahead
from adacos.models.sequence_model import SequenceModel
from adacos.policies.base import AcquisitionResult
from adacos.policies.sequence_policy import SequencePolicy

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Rows walked together: enough for long vectors, few enough to stay in the cache.
ROWS_AT_ONCE = 8192


class AdaCOSClassifier(SequencePolicy):
    """Adaptive cost-sensitive acquisition.

    See `SequencePolicy` for parameters and attributes.
    """

    def _goes_on(self, stage: int, prognosis: Prognosis) -> bool:
        matrix = self.cost_table_.matrix
        at_best = prognosis.risk - min(matrix[0, 0], matrix[1, 1])
        return bool(np.any((prognosis.cost < at_best) & (prognosis.future < prognosis.risk)))

    def _run(self, encoded: Floats) -> AcquisitionResult:
        stage = np.empty(len(encoded), dtype=np.intp)
        log_odds = np.empty(len(encoded))
        incomplete = np.isnan(encoded).any(axis=1)
        for kind in (np.flatnonzero(~incomplete), np.flatnonzero(incomplete)):
            for first in range(0, len(kind), ROWS_AT_ONCE):
                rows = kind[first : first + ROWS_AT_ONCE]
                stage[rows], log_odds[rows] = _walk(self.model_, self.cost_table_, encoded[rows])
        return self._stop(encoded, stage, log_odds)


def _walk(model: SequenceModel, costs: CostTable, encoded: Floats) -> tuple[Ints, Floats]:
    """Set at which each row stops, and its log-odds there."""
    stage = np.empty(len(encoded), dtype=np.intp)
    log_odds = np.empty(len(encoded))
    state = begin(model, encoded)
    while len(state.rows):
        outlook = look_ahead(model, costs, state)
        go_on = expects_gain(outlook, costs.matrix)
        stopped = state.rows[~go_on]
        stage[stopped] = state.stage
        log_odds[stopped] = outlook.log_odds[~go_on]
        state = advance(model, state, go_on)
    return stage, log_odds


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

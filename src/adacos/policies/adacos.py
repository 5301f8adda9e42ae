"""AdaCOS: acquire along the sequence as long as some later set is expected to pay for itself.

At S_i a row stops when F(S_j \\ S_i) >= F(empty) for every j > i, where F(S) is the expected
Bayes risk after acquiring S plus the cost of S. The expectation is over the log-odds after S_j,
normal with the standard deviation of z, the contribution of S_j \\ S_i to model j, and a mean that
keeps the probability (`outlook="coherent"`) or that of z (`outlook="paper"`).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs
from adacos.engine import STOP, Decision
from adacos.kernels.bayes_risk import bayes_risk
from adacos.models.forecasts import FORECASTS
from adacos.models.outlook import Outlook, WalkState, look_ahead
from adacos.policies.sequence_policy import SequencePolicy
from adacos.validation import choice

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


# Rows × sets evaluated together: below this a call costs more than its numbers.
_CELLS_AT_ONCE = 256


class AdaCOSClassifier(SequencePolicy):
    """Adaptive cost-sensitive acquisition.

    See `SequencePolicy` for further parameters and for attributes.

    Parameters
    ----------
    outlook : {"coherent", "paper"}, default="coherent"
        How the log-odds after an acquisition are foreseen. "coherent": the probability expected
        then is the probability now, so that information is never expected to do harm. "paper": by
        the regression alone, as published.
    """

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        outlook: str = "coherent",
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: int = 10,
        random_state: int = 0,
        target_recall: float | None = None,
        recall_confidence: float | None = None,
        calibration_fraction: float = 0.5,
        on_uncertifiable: str = "error",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            costs,
            sequence=sequence,
            n_splines=n_splines,
            strengths=strengths,
            cv=cv,
            random_state=random_state,
            target_recall=target_recall,
            recall_confidence=recall_confidence,
            calibration_fraction=calibration_fraction,
            on_uncertifiable=on_uncertifiable,
            n_jobs=n_jobs,
        )
        self.outlook = outlook

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> Self:
        """Learn the set sequence, the models and the conditional densities.

        `X_unlabeled` may hold further rows without labels; they sharpen the covariance used for
        missing values and the conditional densities.
        """
        choice("outlook", self.outlook, tuple(FORECASTS))
        return super().fit(X, y, X_unlabeled)

    def from_model(self, fitted: SequencePolicy) -> Self:
        """Become fitted with the sequence model of another fitted policy, see `SequencePolicy`."""
        choice("outlook", self.outlook, tuple(FORECASTS))
        return super().from_model(fitted)

    def _next(self, state: WalkState) -> Decision:
        outlook = look_ahead(state, self.cost_table_, FORECASTS[self.outlook])
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
            future = cost[rows, sets] + outlook.expected_risk(rows, sets, matrix)
            gain[rows] = (affordable[rows] & (future < risk[rows, None])).any(axis=1)
    return gain

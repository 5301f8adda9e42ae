"""What is asked of a forecast."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.saving import Savings
from adacos.typing import Bools, Floats


class Forecast(Protocol):
    """What the log-odds after an acquisition are expected to be; arrays broadcast."""

    def moments(self, now: Floats, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log-odds after the acquisition."""
        ...

    def expected_risk(self, now: Floats, mean: Floats, sd: Floats, matrix: Floats) -> Floats:
        """Expected Bayes risk after the acquisition, for misclassification costs C[y, label]."""
        ...

    def any_worthwhile(
        self, now: Floats, mean: Floats, sd: Floats, cost: Floats, savings: Savings
    ) -> Bools:
        """Whether some acquisition is expected to save more than it costs, for each row.

        `now` holds one number for each row, `mean` and `sd` one for each row and acquisition,
        `cost` likewise or one row for all. `savings` holds the misclassification costs.
        """
        # Acquisitions are tried in turn on the rows not yet decided.
        matrix = savings.matrix
        risk = bayes_risk(now, matrix)
        gain = np.zeros(len(now), dtype=np.bool_)
        for j, price in enumerate(cost.T):
            rows = np.flatnonzero(~gain & (price < risk - matrix.min()))
            if len(rows):
                after = self.expected_risk(now[rows], mean[rows, j], sd[rows, j], matrix)
                gain[rows] = np.broadcast_to(price, len(now))[rows] + after < risk[rows]
        return gain

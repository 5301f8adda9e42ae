"""COS: one fixed set for every row, the one with the least expected total cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adacos.policies.sequence_policy import SequencePolicy
from adacos.policy import AcquisitionResult
from adacos.sequence_model import SequenceModel


class COSClassifier(SequencePolicy):
    """Cost-sensitive covariate selection.

    See `SequencePolicy` for parameters and attributes.

    Attributes
    ----------
    stage_ : number of the selected set, the argmin of `expected_cost_`.
    """

    def _finish_fit(self, model: SequenceModel) -> None:
        super()._finish_fit(model)
        self.stage_ = int(np.argmin(self.expected_cost_))

    def _acquire(self, encoded: NDArray[np.float64]) -> AcquisitionResult:
        return self._stop_at(encoded, self.stage_)

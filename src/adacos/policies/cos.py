"""COS: one fixed set for every row, the one with the least expected total cost."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from adacos.consultation.reasons import Prognosis
from adacos.costs import CostTable
from adacos.models.known import original_stages
from adacos.policies.base import AcquisitionResult
from adacos.policies.sequence_policy import SequencePolicy


class COSClassifier(SequencePolicy):
    """Cost-sensitive covariate selection.

    See `SequencePolicy` for parameters and attributes.

    Attributes
    ----------
    stage_ : number of the selected set, the argmin of `expected_cost_`.
    """

    def _use_costs(self, costs: CostTable) -> None:
        super()._use_costs(costs)
        self.stage_ = int(np.argmin(self.expected_cost_))

    def _knowing(self, known: NDArray[np.bool_]) -> Self:
        policy = super()._knowing(known)
        stages = original_stages(self.model_.sequence, policy.model_.sequence)
        policy.stage_ = int(np.searchsorted(stages, self.stage_))
        return policy

    def _goes_on(self, stage: int, prognosis: Prognosis) -> bool:
        return stage < self.stage_

    def _run(self, encoded: NDArray[np.float64]) -> AcquisitionResult:
        return self._stop_at(encoded, self.stage_)

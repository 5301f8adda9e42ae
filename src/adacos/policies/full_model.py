"""Full Model: acquire every covariate, then classify by Bayes' rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adacos.consultation.reasons import Prognosis
from adacos.policies.base import AcquisitionResult
from adacos.policies.sequence_policy import SequencePolicy


class FullModelClassifier(SequencePolicy):
    """The logistic GAM on all covariates with the label of least expected cost.

    See `SequencePolicy` for parameters and attributes.
    """

    def _may_stop_at(self) -> NDArray[np.intp]:
        return np.array([len(self.model_.sequence) - 1])

    def _goes_on(self, stage: int, prognosis: Prognosis) -> bool:
        return stage < len(self.model_.sequence) - 1

    def _run(self, encoded: NDArray[np.float64]) -> AcquisitionResult:
        return self._stop_at(encoded, len(self.model_.sequence) - 1)

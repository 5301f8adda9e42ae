"""Full Model: acquire every covariate, then classify by Bayes' rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adacos.engine import Decision
from adacos.models.outlook import WalkState
from adacos.policies.sequence_policy import SequencePolicy, go_on_to


class FullModelClassifier(SequencePolicy):
    """The logistic GAM on all covariates with the label of least expected cost.

    See `SequencePolicy` for parameters and attributes.
    """

    def _may_stop_at(self) -> NDArray[np.intp]:
        return np.array([len(self.model_.sequence) - 1])

    def _next(self, state: WalkState) -> Decision:
        return go_on_to(state, len(state.model.sequence) - 1)

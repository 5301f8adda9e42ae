"""COS: one fixed set for every row, the one with the least expected total cost."""

from __future__ import annotations

from typing import Self

import numpy as np

from adacos.engine import Decision, DecisionRule
from adacos.models.outlook import WalkState
from adacos.policies.sequence_policy import SequencePolicy, go_on_to


class COSClassifier(SequencePolicy):
    """Cost-sensitive covariate selection.

    See `SequencePolicy` for parameters and attributes.

    Attributes
    ----------
    stage_ : number of the selected set, the argmin of `expected_cost_`.
    """

    def _use_rule(self, rule: DecisionRule) -> Self:
        super()._use_rule(rule)
        self.stage_ = int(np.argmin(self.expected_cost_))
        return self

    def _next(self, state: WalkState) -> Decision:
        return go_on_to(state, int(np.searchsorted(state.origin, self.stage_)))

"""Acquire up to one set and stop there, whatever the values: COS, Full Model, always positive."""

from __future__ import annotations

import numpy as np

from adacos.costs import CostTable
from adacos.engine import STOP, Decision
from adacos.kernels.namespace import like, namespace
from adacos.models.class_outlook import look_ahead_classes
from adacos.models.outlook import WalkState, log_odds_now, look_ahead


def go_on_to(state: WalkState, stage: int, costs: CostTable) -> Decision:
    """Acquire up to one set, then stop; at once where the rows are beyond it or cannot pay."""
    log_odds = log_odds_now(state)
    upcoming = state.upcoming[: max(stage - state.stage, 0)]
    wanted = like(log_odds, upcoming if len(upcoming) else np.array([STOP]))
    planned = namespace(log_odds).tile(wanted, (len(log_odds), 1))
    if state.left is not None and len(upcoming):
        # What is left differs between rows: one covariate at a time.
        ahead = look_ahead_classes if state.model.many_classes else look_ahead
        can_pay = np.isfinite(ahead(state, costs).cost[:, 0])
        can_pay = np.broadcast_to(can_pay, len(log_odds))
        planned = np.where(can_pay, upcoming[0], STOP)[:, None]
    return Decision(planned, log_odds, state.original_stage)

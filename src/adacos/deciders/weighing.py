"""Whether rows along a set sequence continue: the expected cost of later sets against that now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adacos.costs import CostTable
from adacos.decision import STOP, Decision
from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.namespace import is_tensor, like, namespace
from adacos.models.class_lookahead import look_ahead_classes, weigh_class_plans
from adacos.models.dynamic import ValueTables
from adacos.models.forecasts import FORECASTS
from adacos.models.lookahead import (
    Lookahead,
    NormalLookahead,
    WalkState,
    costs_of_later,
    log_odds_now,
    look_ahead,
)
from adacos.typing import Bools

# The lookaheads that count the freedom to stop at any later set, the second as rows left out show.
FREE = DYNAMIC, REALISED = "dynamic", "realised"


def up_to(state: WalkState, stage: int, costs: CostTable) -> Decision:
    """Acquire up to one set, then stop; at once where the rows are beyond it or cannot pay."""
    log_odds = log_odds_now(state)
    upcoming = state.upcoming[: max(stage - state.stage, 0)]
    wanted = like(log_odds, upcoming if len(upcoming) else np.array([STOP]))
    planned = namespace(log_odds).tile(wanted, (len(log_odds), 1))
    if state.left is not None and len(upcoming):
        # What is left differs between rows: one covariate at a time.
        can_pay = np.isfinite(costs_of_later(state, costs)[:, 0])
        can_pay = np.broadcast_to(can_pay, len(log_odds))
        planned = np.where(can_pay, upcoming[0], STOP)[:, None]
    return Decision(planned, log_odds, state.original_stage)


def look_ahead_by(state: WalkState, costs: CostTable, lookahead: str = "coherent") -> Lookahead:
    """What the rows know at their set and expect of the later ones."""
    ahead = look_ahead_classes if state.model.many_classes else look_ahead
    return ahead(state, costs, FORECASTS[lookahead])


def weigh(state: WalkState, values: ValueTables, lookahead: str) -> tuple[Bools, Lookahead]:
    """Whether each row continues, and what that was decided by.

    A row continues if the future cost of some later set is below the Bayes risk now. For a few rows
    all future costs are evaluated, and come back with the lookahead.
    """
    if lookahead not in FREE:
        return look_ahead_by(state, values.costs, lookahead).weighed_against(values.savings)
    if state.model.many_classes:
        return weigh_class_plans(state, values)
    if not _shows_plans(state, values.costs) and state.left is None:
        now, nothing = log_odds_now(state), state.part[:, :0]
        continues = namespace(now).zeros_like(now, dtype=namespace(now).bool)
        if len(state.upcoming):
            continues = values.of_sets(state.model).gain_at(state.stage, now) > 0
        return continues, NormalLookahead(now, nothing, nothing, nothing, FORECASTS[lookahead])
    return weigh_freely(state, look_ahead(state, values.costs), values)


def _shows_plans(state: WalkState, costs: CostTable) -> bool:
    """Whether the cost of each later set matters by itself.

    Of a single row the plans are shown; many complete rows, and tensors, need no more than
    their gain.
    """
    one = len(state.part) == 1 and not is_tensor(state.part)
    return one or state.available is not None or costs.immediate is not None


def weigh_freely(
    state: WalkState, ahead: NormalLookahead, values: ValueTables
) -> tuple[Bools, NormalLookahead]:
    """The same where one may stop at any later set that can be paid.

    What continuing did for training rows, out-of-fold, says nothing about rows that cannot continue
    as they did.
    """
    matrix, now = values.matrix, ahead.log_odds
    plans = _shows_plans(state, values.costs)
    continues, shown = np.zeros(len(now), dtype=np.bool_), np.zeros(len(now))
    future = np.full(ahead.mean.shape, np.inf)
    within = np.broadcast_to(np.isfinite(ahead.cost).sum(axis=1), len(now))
    for count in np.unique(within[within > 0]).tolist():
        rows, sets = np.flatnonzero(within == count), slice(0, count)
        worth = values.of_sets(state.model, state.stage + count)
        if state.available is None:
            continues[rows] = worth.gain_at(state.stage, now[rows]) > 0
        if plans:
            sd = ahead.sd[rows, sets]
            if state.available is None:
                sd = np.broadcast_to(worth.sd[state.stage], sd.shape)
            price = np.broadcast_to(ahead.cost, future.shape)[rows, sets]
            shown[rows] = worth.shown_at(state.stage, now[rows])
            if state.available is not None:
                like_them = state.available[np.ix_(rows, state.upcoming[sets])].all(axis=1)
                shown[rows[~like_them]] = 0.0
            after = worth.after(now[rows, None], sd, state.stage, matrix)
            future[rows, sets] = price + after - shown[rows, None]
            if state.available is None:
                # Plans differ by the expectation, and the best saves what decides: a table's value.
                saved = bayes_risk(now[rows], matrix) - worth.gain_at(state.stage, now[rows])
                best = future[rows, sets].min(axis=1)
                future[rows, sets] += (saved - best)[:, None]
    if state.available is not None:
        continues = np.asarray(future.min(axis=1, initial=np.inf) < bayes_risk(now, matrix))
    return continues, replace(ahead, future=future, shown=shown) if plans else ahead

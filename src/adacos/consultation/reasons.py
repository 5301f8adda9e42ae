"""Why a policy over a set sequence decides as it does about one row.

What each later set would cost and leave at risk, which values of the next covariate would change
the label, and what each covariate adds to the log-odds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adacos.costs import CostTable
from adacos.decision import DecisionRule
from adacos.kernels.bayes_risk import decision_threshold
from adacos.models.opening import after_opening
from adacos.models.outlook import Outlook, WalkState, log_odds_with, stage_with
from adacos.reasons import Contribution, Flip, Plan, Reasons, Value
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Bools, Floats

# What rows at a set are expected to cost from there on, by their log-odds.
Worth = Callable[[WalkState, Floats], Floats]

# Values of the next covariate that are tried for a change of label, and for its exact place.
_COARSE, _FINE = 129, 33


def sequence_reasons(
    state: WalkState,
    outlook: Outlook,
    rule: DecisionRule,
    encoder: TableEncoder,
    classes: Sequence[object],
    upcoming: int | None,
) -> Reasons:
    """Reasons about one row that stands at a set; `upcoming` is what it acquires next, if any."""
    label = int(rule.label(outlook.log_odds)[0])
    return Reasons(
        plans=_plans(state, outlook, rule, encoder.names),
        flips=()
        if upcoming is None
        else _flips(
            state,
            upcoming,
            label,
            rule,
            encoder,
            classes[1 - label],
            stage_with(state, upcoming),
        ),
        **_contributions(state, float(outlook.log_odds[0]), encoder.names),
    )


def opening_reasons(
    state: WalkState,
    outlook: Outlook,
    rule: DecisionRule,
    encoder: TableEncoder,
    classes: Sequence[object],
    asked: Sequence[int],
    costs: CostTable,
    worth: Worth,
) -> Reasons:
    """Reasons to ask first for covariates of the set itself, which the row does not have yet.

    They are weighed by themselves, all of them together; `worth` says what rows with these log-odds
    cost from there on. What is expected of them is part of the starting value of the log-odds.
    """
    label = int(rule.label(outlook.log_odds)[0])
    log_odds, mass = after_opening(state)
    left = float(mass @ worth(state, log_odds))
    cost = float(costs.of_order(np.array(asked, dtype=np.intp)))
    names = tuple(encoder.names[k] for k in asked)
    summed = _contributions(state, float(outlook.log_odds[0]), encoder.names)
    expected = [part for part in summed["contributions"] if part.covariate in names]
    return Reasons(
        plans=(Plan(names, cost, cost + left),),
        flips=tuple(
            flip
            for k in asked
            for flip in _flips(state, k, label, rule, encoder, classes[1 - label], state.stage)
        ),
        intercept=summed["intercept"] + sum(part.log_odds for part in expected),
        contributions=tuple(part for part in summed["contributions"] if part not in expected),
    )


def _plans(
    state: WalkState, outlook: Outlook, rule: DecisionRule, names: tuple[str, ...]
) -> tuple[Plan, ...]:
    """One plan for each later set that adds something to be had."""
    cost = np.broadcast_to(outlook.cost, outlook.mean.shape)[0]
    if outlook.future is not None:
        future = outlook.future[0]
    else:
        every = slice(0, outlook.mean.shape[1])
        future = cost + outlook.expected_risk(np.zeros(1, dtype=np.intp), every, rule.matrix)[0]
    plans, covariates = [], []
    for k, price, total in zip(
        state.upcoming.tolist(), cost.tolist(), future.tolist(), strict=True
    ):
        if state.available is None or state.available[0, k]:
            covariates.append(names[k])
            if price < math.inf:
                plans.append(Plan(tuple(covariates), price, total))
    return tuple(plans)


def _contributions(state: WalkState, log_odds: float, names: tuple[str, ...]) -> dict[str, Any]:
    """Intercept and what each covariate adds to it; they sum to the log-odds.

    An unavailable covariate adds what is expected of it. The variance of what is unavailable draws
    the sum towards zero, each part alike.
    """
    stage, lacking = state.stage, state.lacking
    covariates, coef = state.model.sequence.set(stage), state.model.coefs[[stage]]
    means = {} if lacking is None else lacking.means
    there = np.array([k not in means for k in covariates], dtype=np.bool_)
    amounts = np.empty(len(covariates))
    amounts[there] = state.model.basis.contributions(state.encoded, covariates[there], coef)[:, 0]
    amounts[~there] = [means[k][0, stage] for k in covariates[~there].tolist()]
    intercept = float(state.model.intercepts[stage])
    if lacking is not None:
        total = intercept + float(amounts.sum())
        shrink = log_odds / total if total != 0 else 1.0
        intercept, amounts = shrink * intercept, shrink * amounts
    added = tuple(
        Contribution(names[k], None, amount)
        for k, amount in zip(covariates.tolist(), amounts.tolist(), strict=True)
    )
    return {"intercept": intercept, "contributions": added}


def _flips(
    state: WalkState,
    covariate: int,
    label: int,
    rule: DecisionRule,
    encoder: TableEncoder,
    other: object,
    stage: int,
) -> tuple[Flip, ...]:
    """Values of a covariate for which the model of a set that holds it gives the other label."""
    basis = state.model.basis
    columns = np.flatnonzero(basis.source == covariate)
    threshold = decision_threshold(rule.matrix)
    sign = 1.0 if label == 0 else -1.0
    kind, name = basis.kinds[covariate], encoder.names[covariate]
    if kind == CONSTANT:
        return ()
    if kind == NUMERIC:
        grid = np.linspace(basis.low[columns[0]], basis.high[columns[0]], _COARSE)
        beyond = sign * (log_odds_with(state, covariate, grid[:, None], stage) - threshold)
        changes = np.flatnonzero((beyond[1:] > 0) != (beyond[:-1] > 0))
        # Each change is looked at closely.
        close = np.linspace(grid[changes], grid[changes + 1], _FINE, axis=1)
        log_odds = log_odds_with(state, covariate, close.reshape(-1, 1), stage)
        height = sign * (log_odds.reshape(close.shape) - threshold)
        ranges = _ranges(beyond > 0, close, height)
        return (Flip(name, other, ranges, ()),) if ranges else ()
    candidates = np.eye(len(columns)) if kind == CATEGORICAL else np.stack([basis.low, basis.high])
    if kind != CATEGORICAL:
        candidates = candidates[:, columns]
    turning = sign * (log_odds_with(state, covariate, candidates, stage) - threshold) > 0
    names = encoder.categories[covariate] if kind == CATEGORICAL else candidates[:, 0].tolist()
    values: tuple[Value, ...] = tuple(names[i] for i in np.flatnonzero(turning))
    return (Flip(name, other, (), values),) if values else ()


def _ranges(
    positive: Bools, close: Floats, height: Floats
) -> tuple[tuple[float | None, float | None], ...]:
    """Intervals in which a function is positive, from its sign on a grid.

    `close` and `height` hold points and values around each change of sign, in which the last step
    is linear. None stands for the end of the grid.
    """
    if len(close) == 0:
        return ((None, None),) if positive[0] else ()
    step = np.argmax((height[:, 1:] > 0) != (height[:, :1] > 0), axis=1)
    row = np.arange(len(close))
    before, after = height[row, step], height[row, step + 1]
    share = before / (before - after)
    left, right = close[row, step], close[row, step + 1]
    ends: list[float | None] = (left + share * (right - left)).tolist()
    if positive[0]:
        ends.insert(0, None)
    if positive[-1]:
        ends.append(None)
    return tuple(zip(ends[::2], ends[1::2], strict=True))

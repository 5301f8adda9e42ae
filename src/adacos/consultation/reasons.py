"""Why a policy over a set sequence decides as it does about one row.

What each later set would cost and leave at risk, which values of the next covariate would change
the label, and what each covariate adds to the log-odds: with two classes to those of the second,
with three or more to those of the label against the most probable other class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from adacos.costs import CostTable
from adacos.decision import DecisionRule
from adacos.kernels.decisions import pieces
from adacos.models.lookahead import Lookahead, WalkState, log_odds_with, stage_with
from adacos.models.opening import after_opening
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
    lookahead: Lookahead,
    rule: DecisionRule,
    encoder: TableEncoder,
    labels: Sequence[object],
    asked: Sequence[int],
    costs: CostTable,
    worth: Worth,
) -> Reasons:
    """Reasons about one row that is at a set; `asked` is what it acquires next, if anything.

    Covariates of the set itself, which the row does not have yet, are asked for and weighed
    together; `worth` says what rows with these log-odds cost from there on. What is expected of
    them is part of the starting value of the log-odds. Of later covariates the first comes next.
    """
    opening = bool(np.isin(asked, state.model.sequence.set(state.stage)).any())
    label, names = int(rule.label(lookahead.log_odds)[0]), encoder.names
    about = None if costs.decisions is not None else label
    intercept, contributions = _contributions(state, lookahead.log_odds[0], about, names)
    if opening:
        plans: tuple[Plan, ...] = (_opening_plan(state, names, asked, costs, worth),)
        there = {names[k] for k in asked}
        intercept += sum(part.log_odds for part in contributions if part.covariate in there)
        contributions = tuple(part for part in contributions if part.covariate not in there)
    else:
        plans, asked = _plans(state, lookahead, rule, names), asked[:1]
    flips: list[Flip] = []
    for k in asked:
        stage = state.stage if opening else stage_with(state, k)
        flips += _flips(state, k, label, rule, encoder, labels, stage)
    return Reasons(plans, tuple(flips), intercept, contributions)


def _plans(
    state: WalkState,
    lookahead: Lookahead,
    rule: DecisionRule,
    names: tuple[str, ...],
) -> tuple[Plan, ...]:
    """One plan for each later set that adds something available."""
    future = lookahead.weighed(rule.matrix).future
    assert future is not None
    cost = np.broadcast_to(lookahead.cost, future.shape)[0].tolist()
    plans, covariates = [], []
    for k, price, total in zip(state.upcoming.tolist(), cost, future[0].tolist(), strict=True):
        if state.available is None or state.available[0, k]:
            covariates.append(names[k])
            if price < math.inf:
                plans.append(Plan(tuple(covariates), price, total))
    return tuple(plans)


def _opening_plan(
    state: WalkState,
    names: tuple[str, ...],
    asked: Sequence[int],
    costs: CostTable,
    worth: Worth,
) -> Plan:
    """The plan to acquire the covariates of the set itself, all together."""
    log_odds, mass = after_opening(state)
    cost = float(costs.of_order(np.array(asked, dtype=np.intp)))
    left = float(mass @ worth(state, log_odds))
    return Plan(tuple(names[k] for k in asked), cost, cost + left)


def _contributions(
    state: WalkState, log_odds: Floats, label: int | None, names: tuple[str, ...]
) -> tuple[float, tuple[Contribution, ...]]:
    """Intercept and what each covariate adds to it; they sum to the log-odds.

    An unavailable covariate adds what is expected of it. The variance of what is unavailable draws
    the sum towards zero, each part alike.
    """
    model, stage, missing_part = state.model, state.stage, state.missing_part
    pair = _explained(log_odds, label)
    covariates = model.sequence.set(stage)
    coef = (pair @ np.atleast_2d(model.coefs[stage]))[None]
    means = {} if missing_part is None else missing_part.means
    there = np.array([k not in means for k in covariates], dtype=np.bool_)
    amounts = np.empty(len(covariates))
    amounts[there] = model.basis.contributions(state.encoded, covariates[there], coef)[:, 0]
    amounts[~there] = [float(means[k][0] @ pair) for k in covariates[~there].tolist()]
    intercept = float(np.atleast_1d(model.intercepts[stage]) @ pair)
    total = intercept + float(amounts.sum())
    if missing_part is not None and total != 0:
        shrink = float(np.atleast_1d(log_odds) @ pair) / total
        intercept, amounts = shrink * intercept, shrink * amounts
    pairs = zip(covariates.tolist(), amounts.tolist(), strict=True)
    return intercept, tuple(Contribution(names[k], None, amount) for k, amount in pairs)


def _explained(log_odds: Floats, label: int | None) -> Floats:
    """Which combination of the log-odds of one row is explained.

    A class against the most probable other one; without a label the most probable class.
    """
    every = np.append(0.0, log_odds)
    if len(every) == 2:
        return np.ones(1)
    label = int(np.argmax(every)) if label is None else label
    other = int(np.argmax(np.where(np.arange(len(every)) == label, -np.inf, every)))
    return np.asarray(np.eye(len(every))[label, 1:] - np.eye(len(every))[other, 1:])


def _lead(rule: DecisionRule, log_odds: Floats, label: int) -> Floats:
    """Positive where a label is given; with two classes, how far beyond its cut-offs."""
    if log_odds.ndim == 1:
        columns, cuts = pieces(rule.matrix)
        if label not in columns:
            return np.full_like(log_odds, -1.0)
        place = columns.index(label)
        above = log_odds - cuts[place - 1] if place else np.full_like(log_odds, np.inf)
        return above if place == len(cuts) else np.minimum(above, -(log_odds - cuts[place]))
    return np.where(rule.label(log_odds) == label, 1.0, -1.0)


def _flips(
    state: WalkState,
    covariate: int,
    label: int,
    rule: DecisionRule,
    encoder: TableEncoder,
    labels: Sequence[object],
    stage: int,
) -> list[Flip]:
    """Values of a covariate for which the model of a set that holds it gives another label."""
    basis, name = state.model.basis, encoder.names[covariate]
    columns = np.flatnonzero(basis.source == covariate)
    kind = basis.kinds[covariate]
    others = [k for k in range(len(labels)) if k != label]
    found = []
    if kind == CONSTANT:
        return []
    if kind == NUMERIC:
        grid = basis.grid(int(columns[0]), _COARSE)
        log_odds = log_odds_with(state, covariate, grid[:, None], stage)
        for k in others:
            ahead = _lead(rule, log_odds, k) > 0
            changes = np.flatnonzero(ahead[1:] != ahead[:-1])
            # Each change is looked at closely.
            close = np.linspace(grid[changes], grid[changes + 1], _FINE, axis=1)
            near = log_odds_with(state, covariate, close.reshape(-1, 1), stage)
            ranges = _ranges(ahead, close, _lead(rule, near, k).reshape(close.shape))
            found += [Flip(name, labels[k], ranges, ())] if ranges else []
        return found
    candidates = np.eye(len(columns)) if kind == CATEGORICAL else np.stack([basis.low, basis.high])
    if kind != CATEGORICAL:
        candidates = candidates[:, columns]
    words = encoder.categories[covariate] if kind == CATEGORICAL else candidates[:, 0].tolist()
    log_odds = log_odds_with(state, covariate, candidates, stage)
    for k in others:
        turning = np.flatnonzero(_lead(rule, log_odds, k) > 0)
        values: tuple[Value, ...] = tuple(words[i] for i in turning)
        found += [Flip(name, labels[k], (), values)] if values else []
    return found


def _ranges(
    positive: Bools, close: Floats, height: Floats
) -> tuple[tuple[float | None, float | None], ...]:
    """Intervals in which a function is positive, from its sign on a grid.

    `close` and `height` hold points and values around each change of sign, in which the last step
    is linear. None means the end of the grid.
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

"""Why a policy over a set sequence decides as it does about one row with three or more classes.

The plans are those of `adacos.consultation.reasons`. Contributions are those to the log-odds of the
label against the most probable other class; the values of the next covariate that
would change the label are listed for each label that they would change it to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from adacos.consultation.reasons import Worth
from adacos.costs import CostTable
from adacos.decision import DecisionRule
from adacos.models.class_outlook import ClassOutlook
from adacos.models.opening import after_opening
from adacos.models.outlook import WalkState, log_odds_with, stage_with
from adacos.reasons import Contribution, Flip, Plan, Reasons, Value
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Floats, Ints

# Values of the next covariate that are tried for a change of label, and for its exact place.
_COARSE, _FINE = 129, 33


def class_reasons(
    state: WalkState,
    outlook: ClassOutlook,
    rule: DecisionRule,
    encoder: TableEncoder,
    classes: Sequence[object],
    asked: Sequence[int],
    costs: CostTable,
    worth: Worth,
) -> Reasons:
    """Reasons about one row that stands at a set; `asked` is what it acquires next, if anything.

    Covariates of the set itself are asked for together, and `worth` says what rows with these
    log-odds cost from there on; of later ones the first comes next.
    """
    opening = bool(np.isin(asked, state.model.sequence.set(state.stage)).any())
    asked = asked if opening else asked[:1]
    label = int(rule.label(outlook.log_odds)[0])
    intercept, contributions = _contributions(state, outlook.log_odds[0], label, encoder.names)
    plans = (
        (_opening_plan(state, encoder.names, asked, costs, worth),)
        if opening
        else _plans(state, outlook, rule, encoder.names)
    )
    if opening:
        # What is expected of covariates not yet there is part of where the log-odds start.
        names = {encoder.names[k] for k in asked}
        intercept += sum(part.log_odds for part in contributions if part.covariate in names)
        contributions = tuple(part for part in contributions if part.covariate not in names)
    flips: list[Flip] = []
    for k in asked:
        stage = state.stage if opening else stage_with(state, k)
        flips += _flips(state, k, label, rule, encoder, classes, stage)
    return Reasons(plans, tuple(flips), intercept, contributions)


def _plans(
    state: WalkState, outlook: ClassOutlook, rule: DecisionRule, names: tuple[str, ...]
) -> tuple[Plan, ...]:
    """One plan for each later set that adds something to be had."""
    future = (outlook if outlook.future is not None else outlook.weighed(rule.matrix)).future
    assert future is not None
    cost = np.broadcast_to(outlook.cost, future.shape)[0].tolist()
    plans, covariates = [], []
    for k, price, total in zip(state.upcoming.tolist(), cost, future[0].tolist(), strict=True):
        if price < np.inf and (state.available is None or state.available[0, k]):
            covariates.append(names[k])
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
    state: WalkState, log_odds: Floats, label: int, names: tuple[str, ...]
) -> tuple[float, tuple[Contribution, ...]]:
    """Intercept and what each covariate adds to the log-odds of the label against another."""
    every = np.append(0.0, log_odds)
    rival = int(np.argmax(np.where(np.arange(len(every)) == label, -np.inf, every)))
    pair = np.eye(len(every))[label, 1:] - np.eye(len(every))[rival, 1:]
    model, stage = state.model, state.stage
    covariates, coef = model.sequence.set(stage), (pair @ model.coefs[stage])[None]
    means = {} if state.lacking is None else state.lacking.means
    there = np.array([k not in means for k in covariates], dtype=np.bool_)
    amounts = np.empty(len(covariates))
    amounts[there] = model.basis.contributions(state.encoded, covariates[there], coef)[:, 0]
    amounts[~there] = [float(means[k][0] @ pair) for k in covariates[~there].tolist()]
    intercept = float(model.intercepts[stage] @ pair)
    total = intercept + float(amounts.sum())
    if state.lacking is not None and total != 0:
        shrink = float(log_odds @ pair) / total
        intercept, amounts = shrink * intercept, shrink * amounts
    pairs = zip(covariates.tolist(), amounts.tolist(), strict=True)
    return intercept, tuple(Contribution(names[k], None, amount) for k, amount in pairs)


def _flips(
    state: WalkState,
    covariate: int,
    label: int,
    rule: DecisionRule,
    encoder: TableEncoder,
    classes: Sequence[object],
    stage: int,
) -> list[Flip]:
    """Values of a covariate for which the model of a set that holds it gives another label."""
    basis, name = state.model.basis, encoder.names[covariate]
    columns = np.flatnonzero(basis.source == covariate)
    kind = basis.kinds[covariate]
    if kind == CONSTANT:
        return []

    def labels(values: Floats) -> Ints:
        return rule.label(log_odds_with(state, covariate, values, stage))

    if kind == NUMERIC:
        grid = np.linspace(basis.low[columns[0]], basis.high[columns[0]], _COARSE)
        given = labels(grid[:, None])
        others = [k for k in np.unique(given).tolist() if k != label]
        return [Flip(name, classes[k], _ranges(grid, given == k, labels, k), ()) for k in others]
    if kind == CATEGORICAL:
        candidates, words = np.eye(len(columns)), list(encoder.categories[covariate])
    else:
        candidates = np.stack([basis.low, basis.high])[:, columns]
        words = candidates[:, 0].tolist()
    given = labels(candidates)
    found: list[Flip] = []
    for k in np.unique(given).tolist():
        if k != label:
            values: tuple[Value, ...] = tuple(words[i] for i in np.flatnonzero(given == k))
            found.append(Flip(name, classes[k], (), values))
    return found


def _ranges(
    grid: Floats, inside: NDArray[np.bool_], labels: Callable[[Floats], Ints], k: int
) -> tuple[tuple[float | None, float | None], ...]:
    """Intervals of the grid with label k, their ends looked at closely; None at its own ends."""
    ends: list[float | None] = [None] if inside[0] else []
    for place in np.flatnonzero(inside[1:] != inside[:-1]).tolist():
        close = np.linspace(grid[place], grid[place + 1], _FINE)
        same = (labels(close[:, None]) == k) == inside[place]
        last = int(np.flatnonzero(same)[-1]) if same.all() else int(np.argmin(same)) - 1
        ends.append(float(0.5 * (close[max(last, 0)] + close[min(last + 1, _FINE - 1)])))
    if inside[-1]:
        ends.append(None)
    return tuple(zip(ends[::2], ends[1::2], strict=True))

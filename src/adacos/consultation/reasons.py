"""What a policy over a set sequence says about one row, with its reasons.

The row stands at the set whose covariates are acquired, known or unavailable. Values acquired
ahead of the sequence count as known: the model is then the one that knows them, see
`adacos.models.known`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos.consultation.steps import Advice, Part, Prospect, Turn
from adacos.costs import CostTable
from adacos.kernels.bayes_risk import (
    bayes_risk,
    decision_threshold,
    expected_bayes_risk,
    label_of,
)
from adacos.kernels.splines import bspline_basis, wiggly_directions
from adacos.models.outlook import WalkState, advance, contribution, filled_in, look_ahead
from adacos.models.sequence_model import SequenceModel
from adacos.models.sequences import SetSequence
from adacos.tables.kinds import CATEGORICAL, CONSTANT, NUMERIC

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Values of the next covariate that are tried for a change of label, and for its exact place.
_COARSE, _FINE = 129, 33


class Place(NamedTuple):
    """Where a row stands in a set sequence.

    Attributes
    ----------
    ahead : covariates with a value that lie beyond the set; they act as known.
    last : rank in the order of the last covariate inside the set that was acquired, or -1.
    pending : covariates of S_1 that have not been asked for yet.
    """

    ahead: Bools
    last: int
    pending: tuple[int, ...]


class Prognosis(NamedTuple):
    """Bayes risk now, and cost and future cost of each later set."""

    risk: float
    cost: Floats
    future: Floats


def place(sequence: SetSequence, have: Bools, known: Bools, unavailable: Bools) -> Place:
    """Place of a row that has these values, of which `known` were there from the start."""
    last, in_order = -1, True
    ahead = known.copy()
    for rank, covariate in enumerate(sequence.order):
        if known[covariate] or unavailable[covariate]:
            continue
        if have[covariate]:
            if in_order:
                last = rank
            else:
                ahead[covariate] = True
        else:
            in_order = False
    settled = have | known | unavailable
    pending = tuple(int(k) for k in sequence.set(0) if not settled[k])
    return Place(ahead, last, pending)


def advise(
    model: SequenceModel,
    costs: CostTable,
    goes_on: Callable[[int, Prognosis], bool],
    encoded: Floats,
    missing: Bools,
    stage: int,
) -> Advice:
    """Advice for one row that stands at a set.

    Parameters
    ----------
    goes_on : whether the policy acquires more at a set.
    encoded : one row (1, encoded columns); only values inside the sets passed are read.
    missing : covariates without a value that are not to be had.
    stage : number of the set.
    """
    available = ~missing[None, :] if missing.any() else None
    state = _stand_at(model, encoded, available, stage)
    while True:
        outlook = look_ahead(model, costs, state)
        cost = np.broadcast_to(outlook.cost, outlook.mean.shape)[0]
        future = cost + expected_bayes_risk(outlook.mean[0], outlook.sd[0], costs.matrix)
        risk = float(bayes_risk(outlook.log_odds, costs.matrix)[0])
        going = goes_on(state.stage, Prognosis(risk, cost, future))
        upcoming = int(model.sequence.order[model.sequence.sizes[state.stage]]) if going else -1
        if not going or not missing[upcoming]:
            break
        state = advance(model, state, np.ones(1, dtype=np.bool_))
    label = int(label_of(outlook.log_odds, costs.matrix)[0])
    return Advice(
        covariates=(upcoming,) if going else (),
        label=label,
        probability=float(expit(outlook.log_odds[0])),
        bayes_risk=risk,
        prospects=_prospects(model.sequence, state.stage, missing, cost, future),
        intercept=float(model.intercepts[state.stage]),
        parts=_parts(model, state),
        turns=_turns(model, state, upcoming, label, costs) if going else (),
    )


def _stand_at(
    model: SequenceModel, encoded: Floats, available: Bools | None, stage: int
) -> WalkState:
    covariates = model.sequence.set(stage)
    if available is not None:
        covariates = covariates[available[0, covariates]]
    part = _contributions(model, encoded, covariates).sum(axis=0, keepdims=True)
    return WalkState(stage, np.zeros(1, dtype=np.intp), encoded, available, part)


def _contributions(model: SequenceModel, encoded: Floats, covariates: Ints) -> Floats:
    """f_jk(x_k) of one row for these covariates (rows) and every model j (columns).

    The splines of all numeric covariates are evaluated together.
    """
    basis = model.basis
    result = np.empty((len(covariates), len(model.sequence)))
    numeric = np.array([basis.kinds[k] == NUMERIC for k in covariates], dtype=np.bool_)
    for position in np.flatnonzero(~numeric):
        result[position] = contribution(model, encoded, None, covariates[position])[0]
    if numeric.any():
        own = np.searchsorted(basis.source, covariates[numeric])
        x, low, high = encoded[0, own], basis.low[own], basis.high[own]
        straight = (x - basis.mean[own]) / basis.scale[own]
        wiggly = bspline_basis(x, low, high, basis.n_splines) @ wiggly_directions(basis.n_splines)
        first = np.searchsorted(basis.group, covariates[numeric])
        columns = first[:, None] + np.arange(basis.n_splines - 1)
        centred = np.column_stack([straight, wiggly]) - basis.center[columns]
        result[numeric] = np.einsum("kc,jkc->kj", centred, model.coefs[:, columns])
    return result


def _prospects(
    sequence: SetSequence, stage: int, missing: Bools, cost: Floats, future: Floats
) -> tuple[Prospect, ...]:
    """One prospect for each later set that adds something to be had."""
    found, covariates = [], []
    for k, own, total in zip(
        sequence.order[sequence.sizes[stage] :].tolist(),
        cost.tolist(),
        future.tolist(),
        strict=True,
    ):
        if not missing[k]:
            covariates.append(k)
            found.append(Prospect(tuple(covariates), own, total))
    return tuple(found)


def _parts(model: SequenceModel, state: WalkState) -> tuple[Part, ...]:
    _, values = filled_in(model, state)
    covariates = model.sequence.set(state.stage)
    amounts = _contributions(model, values, covariates)[:, state.stage].tolist()
    available = state.available
    return tuple(
        Part(k, amount, available is not None and not bool(available[0, k]))
        for k, amount in zip(covariates.tolist(), amounts, strict=True)
    )


def _turns(
    model: SequenceModel, state: WalkState, covariate: int, label: int, costs: CostTable
) -> tuple[Turn, ...]:
    """Values of the next covariate for which the model of the next set gives the other label."""
    basis = model.basis
    own = np.flatnonzero(basis.source == covariate)
    threshold = decision_threshold(costs.matrix)
    sign = 1.0 if label == 0 else -1.0

    def beyond(values: Floats) -> Floats:
        """How far the log-odds lie on the other label's side, for each value (rows)."""
        n = len(values)
        encoded = np.repeat(state.encoded, n, axis=0)
        encoded[:, own] = values
        repeated = WalkState(
            state.stage,
            np.arange(n),
            encoded,
            None if state.available is None else np.repeat(state.available, n, axis=0),
            np.repeat(state.part, n, axis=0),
        )
        moved = advance(model, repeated, np.ones(n, dtype=np.bool_))
        part, _ = filled_in(model, moved)
        log_odds = model.intercepts[moved.stage] + part[:, moved.stage]
        return np.asarray(sign * (log_odds - threshold))

    kind = basis.kinds[covariate]
    if kind == CONSTANT:
        return ()
    if kind == NUMERIC:
        ranges = _ranges(float(basis.low[own[0]]), float(basis.high[own[0]]), beyond)
        return (Turn(covariate, ranges, ()),) if ranges else ()
    categorical = kind == CATEGORICAL
    candidates = np.eye(len(own)) if categorical else np.array([basis.low[own], basis.high[own]])
    values = tuple(
        number if categorical else float(candidates[number, 0])
        for number in np.flatnonzero(beyond(candidates) > 0).tolist()
    )
    return (Turn(covariate, (), values),) if values else ()


def _ranges(
    low: float, high: float, beyond: Callable[[Floats], Floats]
) -> tuple[tuple[float | None, float | None], ...]:
    """Intervals of [low, high] in which `beyond` is positive."""
    grid = np.linspace(low, high, _COARSE)
    positive = beyond(grid[:, None]) > 0
    changes = np.flatnonzero(positive[1:] != positive[:-1])
    if len(changes) == 0:
        return ((None, None),) if positive[0] else ()
    # Each change is looked at closely; the last step is linear.
    close = np.linspace(grid[changes], grid[changes + 1], _FINE, axis=1)
    height = beyond(close.reshape(-1, 1)).reshape(close.shape)
    step = np.argmax((height[:, 1:] > 0) != (height[:, :1] > 0), axis=1)
    row = np.arange(len(changes))
    before, after = height[row, step], height[row, step + 1]
    share = before / (before - after)
    left, right = close[row, step], close[row, step + 1]
    ends: list[float | None] = (left + share * (right - left)).tolist()
    if positive[0]:
        ends.insert(0, None)
    if positive[-1]:
        ends.append(None)
    return tuple(zip(ends[::2], ends[1::2], strict=True))

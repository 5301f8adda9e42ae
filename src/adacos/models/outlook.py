"""Where rows stand at one set of the sequence, and what the later sets hold in store.

`look_ahead` gives the log-odds now and, for each later set, mean and standard deviation of the
log-odds after acquiring it and its cost. Rows walk the sequence together as a `WalkState`;
covariates that are unavailable for a row are replaced by their mean given what was acquired.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.models.sequence_model import SequenceModel

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


class WalkState(NamedTuple):
    """Rows that have acquired what is available of S_stage.

    Attributes
    ----------
    stage : number of the set.
    rows : positions of the rows in the table they came from.
    encoded : their encoded values, of which only those of S_stage have been read.
    available : mask (rows, covariates), None when everything is available.
    part : (rows, sets) contribution of the acquired covariates to the log-odds of each model.
    """

    stage: int
    rows: Ints
    encoded: Floats
    available: Bools | None
    part: Floats


class Outlook(NamedTuple):
    """Log-odds now; per later set, moments of the log-odds after acquiring it, and its cost.

    `cost` has one row when it is the same for all.
    """

    log_odds: Floats
    mean: Floats
    sd: Floats
    cost: Floats


def begin(model: SequenceModel, encoded: Floats) -> WalkState:
    """Rows at S_1."""
    available = None
    if np.isnan(encoded).any():
        first = np.searchsorted(model.basis.source, np.arange(len(model.sequence.order)))
        available = ~np.isnan(encoded[:, first])
    part = np.zeros((len(encoded), len(model.sequence)))
    state = WalkState(0, np.arange(len(encoded)), encoded, available, part)
    for covariate in model.sequence.set(0):
        part += contribution(model, encoded, available, covariate)
    return state


def advance(model: SequenceModel, state: WalkState, go_on: Bools) -> WalkState:
    """The rows in `go_on` after acquiring the next covariate."""
    stage = state.stage + 1
    encoded = state.encoded[go_on]
    available = None if state.available is None else state.available[go_on]
    part = state.part[go_on]
    if len(part):
        part += contribution(model, encoded, available, model.sequence.set(stage)[-1])
    return WalkState(stage, state.rows[go_on], encoded, available, part)


def filled_in(model: SequenceModel, state: WalkState) -> tuple[Floats, Floats]:
    """Contributions and values of S_stage, unavailable covariates at their conditional mean."""
    if state.available is None:
        return state.part, state.encoded
    values = model.fill(state.encoded, state.stage)
    part = state.part.copy()
    for covariate in model.sequence.set(state.stage):
        part += contribution(model, values, ~state.available, covariate)
    return part, values


def look_ahead(model: SequenceModel, costs: CostTable, state: WalkState) -> Outlook:
    """What the rows know at their set and expect of the later ones."""
    i, sequence, basis = state.stage, model.sequence, model.basis
    part, values = filled_in(model, state)
    log_odds = model.intercepts[i] + part[:, i]
    if i + 1 == len(sequence):
        nothing = np.empty((len(part), 0))
        return Outlook(log_odds, nothing, nothing, nothing)
    density = model.densities[i]
    known = density.regressors
    r = (values[:, known] - basis.mean[known]) / basis.scale[known]
    masks = sequence.masks()
    if state.available is None:
        mean, sd = density.moments(r)
        cost = costs.of(masks[i + 1 :], given=masks[i])[None, :]
    else:
        to_come = sequence.order[sequence.sizes[i] :]
        mean, sd = density.moments(r, state.available[:, to_come])
        reachable = state.available[:, None, :]
        cost = costs.of(masks[i + 1 :] & reachable, given=masks[i] & reachable)
    mean += model.intercepts[i + 1 :] + part[:, i + 1 :]
    return Outlook(log_odds, mean, sd, cost)


def contribution(
    model: SequenceModel, values: Floats, where: Bools | None, covariate: int
) -> Floats:
    """f_jk(x_k) of one covariate under every model j, zero for rows outside `where`."""
    own = values[:, model.basis.source == covariate]
    coefs = model.coefs[:, model.basis.group == covariate].T
    if where is None:
        return model.basis.block(own, covariate) @ coefs
    rows = where[:, covariate]
    result = np.zeros((len(values), coefs.shape[1]))
    result[rows] = model.basis.block(own[rows], covariate) @ coefs
    return result

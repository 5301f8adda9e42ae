"""Rows walking through a policy that decides from what was acquired so far, all rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.kernels.bayes_risk import label_of
from adacos.policies.base import AcquisitionResult, finish, free_of_charge

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

STOP = -1
# Rows decided together: enough for long vectors, few enough for small temporaries.
_ROWS_AT_ONCE = 4096


def begin(n_rows: int, known: Bools) -> Bools:
    """What every row has before it acquires anything."""
    return np.tile(known, (n_rows, 1))


def walk(acquired: Bools, decide: Callable[[Ints, Bools], Ints]) -> tuple[Bools, Ints]:
    """Let every row acquire until it stops; what it had acquired at last, and in which order.

    `acquired` is what each row starts from. `decide` is given positions of rows and what they have
    acquired, and answers with a covariate not yet acquired, or `STOP`, for each of them.
    """
    acquired = acquired.copy()
    order = np.full(acquired.shape, -1, dtype=np.intp)
    live = np.arange(len(acquired))
    for step in range(acquired.shape[1]):
        action = np.concatenate(
            [
                decide(rows, acquired[rows])
                for rows in np.split(live, range(_ROWS_AT_ONCE, len(live), _ROWS_AT_ONCE))
            ]
        )
        live, action = live[action != STOP], action[action != STOP]
        acquired[live, action] = True
        order[live, step] = action
        if not len(live):
            break
    return acquired, order


def stop_at(
    log_odds: Floats, acquired: Bools, order: Ints, known: Bools | None, costs: CostTable
) -> AcquisitionResult:
    """Result of rows that end at these log-odds and are given the Bayes label.

    `acquired` may contain the covariates in `known`, if any, from which the walk began; they are
    free.
    """
    label, stage = label_of(log_odds, costs.matrix), (order >= 0).sum(axis=1)
    result = finish(log_odds, label, acquired, order, stage, costs)
    return result if known is None else free_of_charge(result, known, costs)


def next_costs(costs: CostTable, acquired: Bools) -> Floats:
    """Cost of each covariate as the next one, shape of `acquired`."""
    if not len(costs.shared):
        return np.broadcast_to(costs.covariates, acquired.shape)
    before = acquired[..., None, :]
    return costs.of(before | np.eye(len(costs.names), dtype=np.bool_), given=before)

"""Rounds: results that are waited for, and covariates that are ordered together.

Where waiting costs something, a row at S_i does not go on covariate by covariate: it orders
S_j \\ S_i at once, for the later set j with the least future cost, and decides anew when the
results are there. The future cost counts one round for the batch and what may be ordered after it,
by dynamic programming along the sequence (`adacos.models.dynamic`, of more than two classes
`adacos.models.class_values`). Rows that stood at one set then
stand at several; each group of them walks by itself. A covariate that is immediate comes alone:
seeing it first costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.engine import STOP, Decision
from adacos.exceptions import InvalidInputError
from adacos.models.class_outlook import ClassOutlook
from adacos.models.outlook import Outlook, WalkState, advance

Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


class Walks(NamedTuple):
    """Rows at different sets: how many they are, and their places and state, group by group."""

    n_rows: int
    groups: tuple[tuple[Ints, WalkState], ...]


def together(decisions: list[tuple[Ints, Decision]], n_rows: int) -> Decision:
    """The decisions about groups of rows as one about all of them."""
    longest = max(decision.covariates.shape[1] for _, decision in decisions)
    covariates = np.full((n_rows, longest), STOP)
    log_odds = np.empty((n_rows, *decisions[0][1].log_odds.shape[1:]))
    stage = np.empty(n_rows, dtype=np.intp)
    for rows, decision in decisions:
        covariates[rows, : decision.covariates.shape[1]] = decision.covariates
        assert decision.stage is not None
        log_odds[rows], stage[rows] = decision.log_odds, decision.stage
    return Decision(covariates, log_odds, stage)


def ordered(
    state: WalkState, go_on: Bools, outlook: Outlook | ClassOutlook, costs: CostTable
) -> Ints:
    """What each row orders next, all of it at once, (rows, covariates); `STOP` for who stops."""
    upcoming, going = state.upcoming, np.flatnonzero(go_on)
    batch = np.full((len(go_on), max(len(upcoming), 1)), STOP)
    if len(going) == 0:
        return batch
    assert outlook.future is not None
    length = outlook.future[going].argmin(axis=1) + 1
    assert costs.immediate is not None
    if costs.immediate[upcoming[0]]:
        length[:] = 1
    batch[going] = np.where(np.arange(len(upcoming)) < length[:, None], upcoming, STOP)
    return batch


def advance_groups(state: Walks, going: Bools, covariates: Ints) -> Walks:
    """The rows in `going` after what each of them ordered."""
    length = np.zeros(len(going), dtype=np.intp)
    length[going] = (covariates != STOP).sum(axis=1)
    number = np.cumsum(going) - 1
    groups = []
    for rows, walk in state.groups:
        for steps in np.unique(length[rows[going[rows]]]).tolist():
            same = going[rows] & (length[rows] == steps)
            groups.append((number[rows[same]], advance(walk, same, steps)))
    return Walks(int(going.sum()), tuple(groups))


def refuse_rounds(policy: Any, *, why: str) -> None:
    """Refuse a cost of rounds."""
    if policy.costs is not None and policy.costs.round_cost > 0:
        raise InvalidInputError(
            "costs",
            f"cannot have a round cost: {why}",
            f"round_cost={policy.costs.round_cost:g}",
            "AdaCOSClassifier and COSClassifier order covariates together.",
        )

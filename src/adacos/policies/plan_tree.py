"""The picture of a plan: its first questions, and what becomes of rows after each answer.

A plan has a state for every combination of values, far too many to draw. The picture follows it
for a few questions, and joins values after which everything drawn is the same; rows that are
asked more are described as those of a leaf (`adacos.policies.tree`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adacos.engine import AcquisitionResult
from adacos.kernels.class_risk import best_label
from adacos.kernels.planning import CLASSIFY
from adacos.models.cells import WithinCodes
from adacos.models.plans import PlanTable
from adacos.policies.tree import Tree, tree_of
from adacos.tables.codes import UNKNOWN, Codes
from adacos.tables.description import Description
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, CATEGORICAL
from adacos.typing import Floats, Ints

# Questions on a path that are drawn, fewer where that would be more combinations of values.
MOST_QUESTIONS, MOST_COMBINATIONS = 3, 150
# Questions on a path of a plan that is written as a protocol, and states that are looked at.
WRITTEN_QUESTIONS, WRITTEN_STATES = 4, 5_000


@dataclass(frozen=True, eq=False)
class CodeSplit:
    """Which way a row goes by the code of a covariate.

    Attributes
    ----------
    covariate : the covariate, by position.
    way : number of the branch for each code.
    cuts : where a number passes to the next code; empty for a category.
    """

    covariate: int
    way: Ints
    cuts: Floats

    def side(self, encoded: Floats, encoder: TableEncoder) -> Ints:
        """Number of the branch of each row; -1 where the value, or its category, is not known."""
        own = encoded[:, encoder.source == self.covariate]
        if encoder.kinds[self.covariate] == CATEGORICAL:
            known = own.max(axis=1) >= 1
            code = np.argmax(own, axis=1)
        else:
            known = ~np.isnan(own[:, 0])
            code = np.searchsorted(self.cuts, own[:, 0], side="right")
        return np.where(known, self.way[np.where(known, code, 0)], -1)

    def words(self, encoder: TableEncoder, said: Description) -> tuple[str, ...]:
        """What a value must be to go each way."""
        return tuple(
            self._condition(np.flatnonzero(self.way == number), encoder, said)
            for number in range(int(self.way.max()) + 1)
        )

    def _condition(self, codes: Ints, encoder: TableEncoder, said: Description) -> str:
        k = self.covariate
        kind, name = encoder.kinds[k], encoder.names[k]
        label = said.label(name)
        if kind in (CATEGORICAL, BINARY):
            values = encoder.categories[k] or (float(encoder.low[k]), float(encoder.high[k]))
            return f"{label} = " + " or ".join(said.shown(name, values[code]) for code in codes)
        # Codes next to each other are one range.
        parts = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
        ranges = []
        for part in parts:
            low = "" if part[0] == 0 else said.shown(name, float(self.cuts[part[0] - 1]))
            last = part[-1] == len(self.cuts)
            high = "" if last else said.shown(name, float(self.cuts[part[-1]]))
            if low and high:
                ranges.append(f"{low} ≤ {label} < {high}")
            else:
                ranges.append(f"{label} ≥ {low}" if low else f"{label} < {high}")
        return " or ".join(ranges)


@dataclass(frozen=True, eq=False)
class PlanNode:
    """A place of the picture; what a question saves is not known of it.

    Attributes
    ----------
    path : covariates acquired on the way here, in order.
    split : what is acquired here, and which way rows go then; None where the picture ends.
    below : numbers of the nodes that follow, one for each way.
    gain, error : 0.
    label : number of the answer, of a plan that is written also where it asks; else None.
    """

    path: Ints
    split: CodeSplit | None = None
    below: tuple[int, ...] = ()
    gain: float = 0.0
    error: float = 0.0
    label: int | None = None


def plan_nodes(
    table: PlanTable,
    planned: Ints,
    codes: Codes,
    matrix: Floats,
    within: WithinCodes | None,
    *,
    written: bool = False,
) -> tuple[PlanNode, ...]:
    """The first questions of a plan, the root first; a single leaf where nothing is asked.

    `planned` are the covariates of the table's axes, `matrix` the misclassification costs by which
    labels are chosen. Where a value says more than its code, whether rows are asked on is decided
    by the value: there the picture ends. Of a plan that is `written` each end has an answer, by
    codes alone.
    """
    within = None if written else within
    whole = [within is None or within.says_no_more(codes, k) for k in planned.tolist()]
    label = best_label(table.log_odds, matrix)
    largest = int(table.sizes[whole].max(initial=2))
    depths = range(MOST_QUESTIONS, 1, -1)
    most = next((depth for depth in depths if largest**depth <= MOST_COMBINATIONS), 1)
    states = 0

    def drawn(state: Ints, depth: int, by_code: bool = True) -> Any:
        """Everything that is drawn from a state on, to be compared with that from others."""
        nonlocal states
        states += 1
        place = _number(table, state)
        action = int(table.action[place])
        if action == CLASSIFY or (written and (depth == most or states > WRITTEN_STATES)):
            return int(label[place])
        if depth == most or not by_code:
            return (action,)
        values = range(table.sizes[action])
        after = tuple(drawn(_with(state, action, v), depth + 1, whole[action]) for v in values)
        if written and len(set(after)) == 1 and isinstance(after[0], int):
            # A question after which every value has the same answer, as deeper ones are cut off.
            return after[0]
        return (action, after, int(label[place])) if written else (action, after)

    unknown = np.full(len(planned), UNKNOWN)
    if written:
        # As deep as there is room for all states.
        most = WRITTEN_QUESTIONS
        while (seen := drawn(unknown, 0)) is not None and states > WRITTEN_STATES and most > 1:
            most, states = most - 1, 0
    else:
        seen = drawn(unknown, 0)
    return _nodes_of(seen, planned, codes)


def _nodes_of(drawn: Any, planned: Ints, codes: Codes) -> tuple[PlanNode, ...]:
    """The nodes of what is drawn, the root first."""
    nodes: list[PlanNode] = []

    def grow(seen: Any, path: Ints) -> int:
        """Add the nodes of what is drawn, and give the number of the first."""
        number = len(nodes)
        nodes.append(PlanNode(path))
        if not isinstance(seen, tuple):
            nodes[number] = replace(nodes[number], label=seen)
            return number
        if len(seen) == 1:
            return number
        action, after, *now = seen
        ways = list(dict.fromkeys(after))
        covariate = int(planned[action])
        split = CodeSplit(
            covariate,
            np.array([ways.index(one) for one in after], dtype=np.intp),
            codes.cuts[covariate],
        )
        below = tuple(grow(one, np.append(path, covariate)) for one in ways)
        label_if_stopped = now[0] if now else None
        nodes[number] = replace(nodes[number], split=split, below=below, label=label_if_stopped)
        return number

    grow(drawn, np.empty(0, dtype=np.intp))
    return tuple(nodes)


def plan_tree(
    nodes: tuple[PlanNode, ...],
    encoder: TableEncoder,
    planned: Ints,
    encoded: Floats,
    result: AcquisitionResult,
    classes: list[Any],
) -> Tree:
    """What became of rows that followed a plan.

    Rows without a covariate of the plan follow another, and are not counted unless all do. The
    labels of the result are 0, 1, ….
    """
    incomplete = np.isnan(encoded[:, np.isin(encoder.source, planned)]).any(axis=1)
    rows = np.flatnonzero(~incomplete | incomplete.all())
    some = replace(
        result,
        label=result.label[rows],
        acquired=result.acquired[rows],
        cost=result.cost[rows],
    )
    return tree_of(nodes, encoder, encoded[rows], some, classes)


def _with(state: Ints, place: int, code: int) -> Ints:
    after = state.copy()
    after[place] = code
    return after


def _number(table: PlanTable, state: Ints) -> int:
    """Number of a state, in which what was not acquired is unknown; there may be just one."""
    return int(table.states(state[None], (state != UNKNOWN)[None]).max())

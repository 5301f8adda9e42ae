"""Where an additive model fails: cells of two covariates that hold more or fewer positives.

Under an additive model the log-odds are a sum over covariates. Where what one value says depends on
another, the sum is wrong in some cell "this covariate low, that one high", even though it is right
on average over either. Each cell is judged by probabilities of models that did not see its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from adacos.kernels.binomial import interval_of_share
from adacos.kernels.groups import share_interval
from adacos.policies.base import BasePolicy
from adacos.policies.sequence_policy import SequencePolicy
from adacos.tables.description import Description
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, NUMERIC
from adacos.typing import Bools, Floats, Ints

# Cells of fewer rows are left out: nothing can be said of them.
LEAST_ROWS = 20


class Side(NamedTuple):
    """Values of a covariate: not above a number, above it, or one of its codes."""

    covariate: str
    relation: str
    value: float | str

    def describe(self, said: Description) -> str:
        """The same in words."""
        return f"{said.label(self.covariate)} {self.relation} {said.shown(*self[::2])}"


class MisfitCell(NamedTuple):
    """Rows with values on two sides: share of positives expected and found, and its interval."""

    first: Side
    second: Side
    rows: int
    expected: float
    found: float
    low: float
    high: float

    def describe(self, said: Description) -> str:
        """What is wrong there, in words."""
        where = f"{self.first.describe(said)} and {self.second.describe(said)}"
        return (
            f"Of the {self.rows:,} rows with {where}, "
            f"{self.expected:.0%} were expected to be positive and {self.found:.0%} are "
            f"(interval {self.low:.0%} to {self.high:.0%})."
        )


def misfit_by_cell(
    encoder: TableEncoder,
    encoded: Floats,
    y: Floats,
    probability: Floats,
    *,
    confidence: float = 0.95,
    groups: Ints | None = None,
    learned_from: float | None = None,
) -> list[MisfitCell]:
    """The cells of two covariates in which an additive model is wrong, the worst first.

    Parameters
    ----------
    encoder : what was learned about the columns.
    encoded : (rows, columns) encoded values, NaN where there is none.
    y : (rows,) classes as 0 and 1.
    probability : (rows,) of the second class, by a model of all covariates that did not see the
        row.
    confidence : with which no cell is named where the probabilities are right. The intervals are
        those of a binomial share, wider as more cells are looked at; probabilities that differ
        inside a cell make them cautious.
    groups : the number of each row's group, where rows belong together: the intervals are wider.
    learned_from : number of the training rows, where these are others; see `_counted`.
    """
    sides, members = _sides(encoder, encoded)
    if not sides:
        return []
    inside = members.astype(np.float64)
    rows = inside.T @ inside
    positives = inside.T @ (inside * y[:, None])
    expected = inside.T @ (inside * probability[:, None])
    pairs = [
        (i, j)
        for i, j in combinations(range(len(sides)), 2)
        if sides[i].covariate != sides[j].covariate and rows[i, j] >= LEAST_ROWS
    ]
    if not pairs:
        return []
    of_pair = tuple(np.array(pairs).T)
    n, hits, share = rows[of_pair], positives[of_pair], expected[of_pair] / rows[of_pair]
    level = 1 - (1 - confidence) / len(pairs)
    counted = _counted(len(y), learned_from)
    low, high = interval_of_share(hits / n, counted * n, level)
    if groups is not None:
        # Those of independent rows are narrower: other cells fit.
        for k in np.flatnonzero((share < low) | (share > high)):
            own = members[:, pairs[k][0]] & members[:, pairs[k][1]]
            low[k], high[k] = share_interval(y[own] == 1, groups[own], level, counted)
    cells = [
        MisfitCell(
            sides[pairs[k][0]],
            sides[pairs[k][1]],
            int(n[k]),
            *(float(amount[k]) for amount in (share, hits / n, low, high)),
        )
        for k in np.flatnonzero((share < low) | (share > high))
    ]
    return sorted(cells, key=lambda cell: -abs(cell.found - cell.expected) * np.sqrt(cell.rows))


def learned_from(policy: SequencePolicy) -> float:
    """Number of the training rows of a policy; of rows with weights the effective one."""
    weight = policy.model_.weight
    effective = float(weight.sum() ** 2 / (weight @ weight))
    if policy.training_rows_ is None or np.any(weight != weight[0]):
        return effective
    return float(len(policy.training_rows_.digests))


def _counted(n_rows: int, n_training: float | None) -> float:
    """The share of new rows that counts against a model learned from `n_training` rows.

    What a model expects in a cell has an error of its own: where a sum is right, at most that of
    the share of positives among the training rows of the cell. The difference of the two shares
    varies as the share of 1 / (1 / new + 1 / training) rows, both numbers those of the cell.
    """
    return 1.0 if n_training is None else 1.0 / (1.0 + n_rows / n_training)


def advice(policy: BasePolicy, cells: Sequence[MisfitCell]) -> str | None:
    """Which policy to try where cells misfit; None where none does."""
    if not cells:
        return None
    described = (
        "What one covariate says here depends on the value of another, which a sum cannot express."
    )
    if policy.in_one_order:
        return (
            f"{described} Try BranchingClassifier (--policy branching) or, where most covariates "
            "have few values, PlanningClassifier (--policy planning): their questions depend on "
            "the values. Or let AutoPolicyClassifier (--policy auto) find out whether that is "
            "cheaper."
        )
    return f"{described} More branches (max_depth) or trees (--policy cegb) may cost less."


def _sides(encoder: TableEncoder, encoded: Floats) -> tuple[list[Side], Bools]:
    """Every side of every covariate, and which rows are on it."""
    sides = list(_each_side(encoder, encoded))
    members = [rows for _, rows in sides]
    return [side for side, _ in sides], np.array(members, dtype=np.bool_).reshape(
        -1, len(encoded)
    ).T


def _each_side(encoder: TableEncoder, encoded: Floats) -> Iterator[tuple[Side, Bools]]:
    for k, name in enumerate(encoder.names):
        columns = encoded[:, encoder.source == k]
        known = ~np.isnan(columns).any(axis=1)
        if not known.any():
            continue
        if encoder.kinds[k] == NUMERIC:
            # Halfway between the values around the median, which no row then equals.
            values = np.unique(columns[known, 0])
            if len(values) < 2:
                continue
            above = int(np.searchsorted(values, np.median(columns[known, 0]), side="right"))
            above = min(max(above, 1), len(values) - 1)
            cut = float((values[above - 1] + values[above]) / 2)
            yield Side(name, "≤", cut), known & (columns[:, 0] <= cut)
            yield Side(name, ">", cut), known & (columns[:, 0] > cut)
        elif encoder.kinds[k] == BINARY:
            for code in (float(encoder.low[k]), float(encoder.high[k])):
                yield Side(name, "=", code), known & (columns[:, 0] == code)
        else:
            for column, category in enumerate(encoder.categories[k]):
                yield Side(name, "=", category), known & (columns[:, column] > 0.5)

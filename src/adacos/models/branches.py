"""A tree of questions whose leaves go along a set sequence each.

Every row that reaches a node with a split acquires its covariate and goes to one of two nodes, by
the value. A node without a split is a leaf: its rows continue as AdaCOS with the leaf's own model,
whose first set holds what was acquired on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adacos.models.sequence_model import SequenceModel
from adacos.tables.description import Description
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL, NUMERIC
from adacos.typing import Floats, Ints

LEFT, RIGHT = 0, 1


class Way(Protocol):
    """Which way rows go once a covariate is known."""

    @property
    def covariate(self) -> int:
        """The covariate, by position."""

    def side(self, encoded: Floats, encoder: TableEncoder) -> Ints:
        """Number of the way of each row, from 0; -1 where the covariate is not known."""

    def words(self, encoder: TableEncoder, said: Description) -> tuple[str, ...]:
        """What a value must be to go each way."""


@dataclass(frozen=True)
class Split:
    """Which way a row goes once a covariate is known.

    Attributes
    ----------
    covariate : the covariate, by position.
    weights : one for each of its encoded columns: 1 for a number, 0 or 1 for each category.
    cut : a row goes right if its encoded values times the weights exceed it.
    """

    covariate: int
    weights: Floats
    cut: float

    def side(self, encoded: Floats, encoder: TableEncoder) -> Ints:
        """LEFT or RIGHT for each row; -1 where the covariate is not known."""
        values = encoded[:, encoder.source == self.covariate] @ self.weights
        return np.where(np.isnan(values), -1, np.where(values > self.cut, RIGHT, LEFT))

    def words(self, encoder: TableEncoder, said: Description) -> tuple[str, str]:
        """What a value must be to go left, and right."""
        k = self.covariate
        kind, name = encoder.kinds[k], encoder.names[k]
        label = said.label(name)
        if kind == NUMERIC:
            cut = said.shown(name, self.cut)
            return f"{label} ≤ {cut}", f"{label} > {cut}"
        if kind == CATEGORICAL:
            values = np.array(encoder.categories[k], dtype=object)
            sides = [values[self.weights < 0.5], values[self.weights > 0.5]]
        else:
            sides = [np.array([float(encoder.low[k])]), np.array([float(encoder.high[k])])]
        left, right = (" or ".join(said.shown(name, value) for value in side) for side in sides)
        return f"{label} = {left}", f"{label} = {right}"


@dataclass(frozen=True, eq=False)
class Node:
    """One place of the tree.

    Attributes
    ----------
    path : covariates acquired on the way here, in order; the free ones are not among them.
    split : what is acquired here, and which way rows go then; None at a leaf.
    below : numbers of the two nodes that follow; empty at a leaf.
    model : models and densities with which the rows of a leaf continue; None elsewhere.
    gain, error : how much less a row that comes here costs with the split, cross-validated, and
        the standard error of that; 0 at a leaf.
    """

    path: Ints
    split: Split | None = None
    below: tuple[int, ...] = ()
    model: SequenceModel | None = None
    gain: float = 0.0
    error: float = 0.0


class Questions(Protocol):
    """What a node of any tree of questions has, see `Node`."""

    @property
    def path(self) -> Ints:
        """Covariates acquired on the way."""

    @property
    def split(self) -> Way | None:
        """What is acquired here, and which way rows go then."""

    @property
    def below(self) -> tuple[int, ...]:
        """Numbers of the nodes that follow, one for each way."""

    @property
    def gain(self) -> float:
        """How much less a row costs with the split."""

    @property
    def error(self) -> float:
        """Standard error of that."""


def route(nodes: Sequence[Questions], encoded: Floats, encoder: TableEncoder) -> Ints:
    """Number of the node at which each row ends up when everything known of it is used.

    A leaf, or a node whose covariate is not known.
    """
    place = np.zeros(len(encoded), dtype=np.intp)
    for number, node in enumerate(nodes):
        if node.split is None:
            continue
        here = np.flatnonzero(place == number)
        side = node.split.side(encoded[here], encoder)
        known = side >= 0
        place[here[known]] = np.array(node.below)[side[known]]
    return place

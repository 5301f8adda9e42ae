"""A tree of questions whose leaves go on along a set sequence each.

Every row that reaches a node with a split acquires its covariate and goes on to one of two nodes,
by the value. A node without a split is a leaf: its rows go on as AdaCOS with the leaf's own model,
whose first set holds what was acquired on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adacos.models.sequence_model import SequenceModel
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL, NUMERIC

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

LEFT, RIGHT = 0, 1


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

    def words(self, encoder: TableEncoder) -> tuple[str, str]:
        """What a value must be to go left, and right."""
        k = self.covariate
        kind, name = encoder.kinds[k], encoder.names[k]
        if kind == NUMERIC:
            return f"{name} ≤ {self.cut:.4g}", f"{name} > {self.cut:.4g}"
        if kind == CATEGORICAL:
            values = np.array(encoder.categories[k], dtype=object)
            sides = [values[self.weights < 0.5], values[self.weights > 0.5]]
            left, right = (" or ".join(str(value) for value in side) for side in sides)
            return f"{name} = {left}", f"{name} = {right}"
        low, high = float(encoder.low[k]), float(encoder.high[k])
        return f"{name} = {low:g}", f"{name} = {high:g}"


@dataclass(frozen=True, eq=False)
class Node:
    """One place of the tree.

    Attributes
    ----------
    path : covariates acquired on the way here, in order; the free ones are not among them.
    split : what is acquired here, and which way rows go then; None at a leaf.
    below : numbers of the two nodes that follow; empty at a leaf.
    model : models and densities with which the rows of a leaf go on; None elsewhere.
    """

    path: Ints
    split: Split | None = None
    below: tuple[int, ...] = ()
    model: SequenceModel | None = None


def route(nodes: Sequence[Node], encoded: Floats, encoder: TableEncoder) -> Ints:
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


def leaves(nodes: Sequence[Node]) -> Iterator[tuple[int, Node, SequenceModel]]:
    """Number, node and model of every leaf."""
    for number, node in enumerate(nodes):
        if node.model is not None:
            yield number, node, node.model

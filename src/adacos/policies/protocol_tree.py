"""The picture of a protocol: its places as a tree, each with the way that leads to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adacos.protocols import ProtocolGraph
from adacos.protocols.graph import ProtocolTest
from adacos.tables.description import Description
from adacos.tables.encoder import TableEncoder
from adacos.typing import Floats, Ints

# Places that are drawn; where a protocol has more, later ones are not.
MOST_DRAWN = 63
_CONTRARY = {"<": "≥", "<=": ">", ">": "≤", ">=": "<"}
_SIGN = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True, eq=False)
class ProtocolWay:
    """Which way rows go at a test: yes, no, and apart if its value is unavailable.

    Attributes
    ----------
    test : the test.
    sides : number of the way for yes, no and unavailable.
    """

    test: ProtocolTest
    sides: tuple[int, int, int]

    @property
    def covariate(self) -> int:
        """The covariate, by position."""
        return self.test.covariate

    def side(self, encoded: Floats, encoder: TableEncoder) -> Ints:
        """Number of the way of each row."""
        own = encoded[:, encoder.source == self.covariate]
        known = ~np.isnan(own[:, 0])
        side = np.full(len(own), self.sides[2])
        side[known] = np.where(self.test.holds(own[known]), self.sides[0], self.sides[1])
        return side

    def words(self, encoder: TableEncoder, said: Description) -> tuple[str, ...]:
        """What a value must be to go each way."""
        name = encoder.names[self.covariate]
        yes, no = self._values(encoder, said, name)
        words: dict[int, list[str]] = {}
        for text, way in zip((yes, no, "not available"), self.sides, strict=True):
            words.setdefault(way, []).append(text)
        label = said.label(name)
        return tuple(
            f"{label} is there or not"
            if len(words[way]) == 3
            else f"{label} {' or '.join(words[way])}"
            for way in sorted(words)
        )

    def _values(self, encoder: TableEncoder, said: Description, name: str) -> tuple[str, str]:
        """What a value is where the test holds, and where it does not."""
        test = self.test
        if test.operator in ("", "gone"):
            return "there", "there"
        if test.operator != "in":
            shown = said.shown(name, float(test.values[0]))
            return (
                f"{_SIGN.get(test.operator, test.operator)} {shown}",
                f"{_CONTRARY[test.operator]} {shown}",
            )
        levels = encoder.categories[self.covariate]
        values: list[str | float] = [v for v, on in zip(levels, test.levels, strict=False) if on]
        values = values or test.values.tolist()
        text = " or ".join(said.shown(name, value) for value in values)
        return f"= {text}", f"is not {text}"


@dataclass(frozen=True, eq=False)
class ProtocolNode:
    """A place of the picture; what a question saves is not known of it.

    Attributes
    ----------
    path : covariates acquired on the way here, in order.
    split : what is acquired here, and which way rows go then; None where the picture ends.
    below : numbers of the nodes that follow, one for each way.
    gain, error : 0.
    """

    path: Ints
    split: ProtocolWay | None = None
    below: tuple[int, ...] = ()
    gain: float = 0.0
    error: float = 0.0


def protocol_nodes(graph: ProtocolGraph) -> tuple[ProtocolNode, ...]:
    """The first places of a protocol as a tree, level by level, the root first."""
    nodes, places = [ProtocolNode(np.empty(0, dtype=np.intp))], [graph.start]
    at = 0
    while at < len(nodes):
        place, node = places[at], nodes[at]
        if place < len(graph.tests):
            test = graph.tests[place]
            targets = list(dict.fromkeys((test.yes, test.no, test.unknown)))
            if len(nodes) + len(targets) <= MOST_DRAWN:
                ways = (test.yes, test.no, test.unknown)
                sides = tuple(targets.index(way) for way in ways)
                path = node.path
                if test.covariate not in path:
                    path = np.append(path, test.covariate)
                below = tuple(range(len(nodes), len(nodes) + len(targets)))
                nodes += [ProtocolNode(path) for _ in targets]
                places += targets
                assert len(sides) == 3
                nodes[at] = replace(node, split=ProtocolWay(test, sides), below=below)
        at += 1
    return tuple(nodes)

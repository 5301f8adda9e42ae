"""Rows whose states differ in kind: groups of them, each with a state of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple

import numpy as np

from adacos.decision import STOP, Decision, State
from adacos.typing import Bools, Floats, Ints


class Groups(NamedTuple, Generic[State]):
    """How many rows there are, and the places and the state of each group of them."""

    n_rows: int
    groups: tuple[tuple[Ints, State], ...]

    def each(self, change: Callable[[Ints, State], State]) -> Groups[State]:
        """The same rows with the state of each group changed."""
        return Groups(self.n_rows, tuple((rows, change(rows, own)) for rows, own in self.groups))

    def going(self, going: Bools) -> Iterator[tuple[Ints, State, Bools]]:
        """Each group: the places that its rows will have among those in `going`, where they are in
        it, its state, and which of its rows continue.
        """
        number = np.cumsum(going) - 1
        for rows, own in self.groups:
            yield number[rows], own, going[rows]

    def decided(self, decide: Callable[[State], Decision]) -> Decision:
        """The decisions about the groups as one about all rows."""
        decisions = [(rows, decide(own)) for rows, own in self.groups]
        _, first = decisions[0]
        if len(decisions) == 1 and self.n_rows == 1:
            return first
        listed = [decision.covariates.reshape(len(rows), -1) for rows, decision in decisions]
        covariates = np.full((self.n_rows, max(part.shape[1] for part in listed)), STOP)
        stage = None if first.stage is None else np.empty(self.n_rows, dtype=np.intp)
        for part, (rows, decision) in zip(listed, decisions, strict=True):
            covariates[rows, : part.shape[1]] = part
            if stage is not None and decision.stage is not None:
                stage[rows] = decision.stage
        log_odds = _gathered(self.n_rows, [(rows, d.log_odds) for rows, d in decisions])
        return Decision(covariates, log_odds, stage)

    def log_odds(self, find: Callable[[State], Floats]) -> Floats:
        """The log-odds of the groups as those of all rows."""
        return _gathered(self.n_rows, [(rows, find(own)) for rows, own in self.groups])


def _gathered(n_rows: int, parts: list[tuple[Ints, Floats]]) -> Floats:
    """Numbers of groups of rows, each in its place."""
    every = np.empty((n_rows, *parts[0][1].shape[1:]))
    for rows, own in parts:
        every[rows] = own
    return every

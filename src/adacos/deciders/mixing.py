"""Two deciders for the rows of one table: a share of the rows has the one that spends more.

Along one sequence what rows spend on average falls in steps as covariates count more often: rows
that are alike all continue, or all stop, and before the first covariate all rows are alike. A
budget between two steps is spent by a mixture of the deciders on either side. By Lagrange's
argument no other way to spend it on average costs less than such a mixture.

Which decider a row has follows from its key and the seed alone. Without keys that of a row is
its place in the table, and that of a consultation is the place of the first row. Whole numbers in
turn are spread evenly, so that a table of n rows has the share to within one row or two; other keys
are hashed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np

from adacos.decision import AnyDecider, Decider, Decision, Mixture, Rows, State
from adacos.engine import AcquisitionResult, run
from adacos.typing import Bools, Floats, Ints


class MixedState(NamedTuple, Generic[State]):
    """Rows of two deciders: how many they are, their places and states, and which decider it is."""

    n_rows: int
    groups: tuple[tuple[Ints, State, int], ...]


@dataclass(frozen=True, eq=False)
class MixedDecider(Decider[MixedState[State]]):
    """Two deciders, of which each row has one.

    Attributes
    ----------
    pair : the deciders.
    second : mask of the rows that have the second.
    """

    pair: tuple[Decider[State], Decider[State]]
    second: Bools

    @property
    def opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        return self.pair[0].opening

    def begin(self, rows: Rows) -> MixedState[State]:
        """State of rows that have some covariates."""
        assert rows.numbers is not None
        groups = []
        for arm, decider in enumerate(self.pair):
            here = np.flatnonzero(self.second[rows.numbers] == bool(arm))
            if len(here):
                part = rows._replace(
                    encoded=rows.encoded[here],
                    available=rows.available[here],
                    numbers=rows.numbers[here],
                )
                groups.append((here, decider.begin(part), arm))
        return MixedState(len(rows.encoded), tuple(groups))

    def limit(self, state: MixedState[State], left: Floats) -> MixedState[State]:
        """A state of rows that can pay that much more, at most."""
        groups = tuple(
            (rows, self.pair[arm].limit(own, left[rows]), arm) for rows, own, arm in state.groups
        )
        return state._replace(groups=groups)

    def decide(self, state: MixedState[State]) -> Decision:
        """What comes next for each row."""
        decisions = [(rows, self.pair[arm].decide(own)) for rows, own, arm in state.groups]
        _, first = decisions[0]
        covariates = np.empty(state.n_rows, dtype=np.intp)
        log_odds = np.empty((state.n_rows, *first.log_odds.shape[1:]))
        stage = None if first.stage is None else np.empty(state.n_rows, dtype=np.intp)
        for rows, decision in decisions:
            covariates[rows], log_odds[rows] = decision.covariates, decision.log_odds
            if stage is not None and decision.stage is not None:
                stage[rows] = decision.stage
        return Decision(covariates, log_odds, stage)

    def log_odds(self, state: MixedState[State]) -> Floats:
        """Log-odds of rows if they stopped now."""
        log_odds = [(rows, self.pair[arm].log_odds(own)) for rows, own, arm in state.groups]
        every = np.empty((state.n_rows, *log_odds[0][1].shape[1:]))
        for rows, own in log_odds:
            every[rows] = own
        return every

    def advance(
        self, state: MixedState[State], going: Bools, covariates: Ints
    ) -> MixedState[State]:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        number = np.cumsum(going) - 1
        groups = []
        for rows, own, arm in state.groups:
            on = going[rows]
            if on.any():
                places = number[rows[on]]
                groups.append((places, self.pair[arm].advance(own, on, covariates[places]), arm))
        return MixedState(int(going.sum()), tuple(groups))


def mixed(decider: AnyDecider, n_rows: int, keys: Sequence[Hashable] | None = None) -> AnyDecider:
    """What decides about `n_rows` rows: the decider, or the two of its mixture."""
    mixture = decider.terms.mixture
    if mixture is None:
        return decider
    first, second = decider.arms
    mask = mixture.rows(range(n_rows) if keys is None else keys)
    return MixedDecider(first.terms, (first, second), mask)


def run_mixed(decider: AnyDecider, encoded: Floats) -> AcquisitionResult:
    """Every row walked to its stop, nothing known, by the decider that its place gives it."""
    return run(mixed(decider, len(encoded)), encoded)


def describe_mixture(mixture: Mixture | None) -> str:
    """Which rows count covariate costs less often, in words, after a space; empty if none do."""
    if mixture is None:
        return ""
    return (
        f" For {mixture.share:.1%} of the rows, drawn by their keys, they count "
        f"{1 + mixture.multiplier:.4g} times."
    )

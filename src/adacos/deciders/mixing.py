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

from adacos.deciders.groups import Groups
from adacos.decision import AnyDecider, Decider, Decision, Mixture, Rows, State
from adacos.engine import AcquisitionResult, run
from adacos.typing import Bools, Floats, Ints


class OfPair(NamedTuple, Generic[State]):
    """A state of rows that have the same decider, and the number of the decider."""

    own: State
    arm: int


@dataclass(frozen=True, eq=False)
class MixedDecider(Decider[Groups[OfPair[State]]]):
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

    def admitted(self, rows: Rows) -> Rows:
        """The rows as both deciders may see them."""
        return self.pair[0].admitted(rows)

    def begin(self, rows: Rows) -> Groups[OfPair[State]]:
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
                groups.append((here, OfPair(decider.begin(part), arm)))
        return Groups(len(rows.encoded), tuple(groups))

    def limit(self, state: Groups[OfPair[State]], left: Floats) -> Groups[OfPair[State]]:
        """A state of rows that can pay that much more, at most."""
        return state.each(
            lambda rows, at: at._replace(own=self.pair[at.arm].limit(at.own, left[rows]))
        )

    def decide(self, state: Groups[OfPair[State]]) -> Decision:
        """What comes next for each row."""
        return state.decided(lambda at: self.pair[at.arm].decide(at.own))

    def log_odds(self, state: Groups[OfPair[State]]) -> Floats:
        """Log-odds of rows if they stopped now."""
        return state.log_odds(lambda at: self.pair[at.arm].log_odds(at.own))

    def advance(
        self, state: Groups[OfPair[State]], going: Bools, covariates: Ints
    ) -> Groups[OfPair[State]]:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        groups = []
        for place, (own, arm), on in state.going(going):
            if on.any():
                moved = self.pair[arm].advance(own, on, covariates[place[on]])
                groups.append((place[on], OfPair(moved, arm)))
        return Groups(int(going.sum()), tuple(groups))


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
    return f" For {mixture.share:.1%} of the rows, drawn by their keys, they count slightly less."

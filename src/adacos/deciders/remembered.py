"""Rows along a set sequence at many costs: what does not depend on costs is computed once.

Where rows stand at a set, and what they expect of the later ones, follows from their values and
the models. So the states of all rows at a set are kept, whoever continues to it at some costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable
from adacos.decision import Decider, Decision, Rows
from adacos.models.lookahead import WalkState, advance, look_ahead
from adacos.models.missing import MissingContribution
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Track:
    """Rows that begin alike, at every set that some of them reached at some costs.

    Attributes
    ----------
    states : all of the rows by number of the set.
    """

    states: dict[int, WalkState]

    def at(self, stage: int, rows: Ints, costs: CostTable) -> WalkState:
        """Some of the rows at a set."""
        if stage not in self.states:
            before = max(number for number in self.states if number < stage)
            start = self.states[before]
            every = np.ones(len(start.encoded), dtype=np.bool_)
            self.states[stage] = _looking_ahead(advance(start, every, stage - before), costs)
        whole = self.states[stage]
        return whole if len(rows) == len(whole.encoded) else _some(whole, rows)


def _looking_ahead(state: WalkState, costs: CostTable) -> WalkState:
    """The state with what is expected of the later sets, where that takes long."""
    if state.available is None or state.model.many_classes or not len(state.upcoming):
        return state
    return state._replace(ahead=look_ahead(state, costs))


def _some(state: WalkState, rows: Ints) -> WalkState:
    """Some of the rows of a state."""
    available, missing_part, ahead = state.available, state.missing_part, state.ahead
    if missing_part is not None:
        means = {k: mean[rows] for k, mean in missing_part.means.items()}
        missing_part = MissingContribution(
            missing_part.mean[rows], missing_part.variance[rows], means
        )
    if ahead is not None:
        own = {name: getattr(ahead, name)[rows] for name in ("log_odds", "mean", "sd")}
        ahead = replace(ahead, **own)
    return state._replace(
        encoded=state.encoded[rows],
        available=None if available is None else available[rows],
        part=state.part[rows],
        missing_part=missing_part,
        ahead=ahead,
    )


class PlaceOnTrack(NamedTuple):
    """Rows at a set: their track, the number of the set, their places there, what they can pay."""

    track: Track
    stage: int
    rows: Ints
    left: Floats | None = None


@dataclass(frozen=True, eq=False)
class RememberedDecider(Decider[PlaceOnTrack]):
    """A decider along a sequence whose states are remembered.

    Attributes
    ----------
    inner : the decider.
    tracks : what was remembered, of one table of rows and one model; shared by deciders at other
        costs.
    """

    inner: Decider[WalkState]
    tracks: dict[bytes, object] = field(repr=False)

    @property
    def opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        return self.inner.opening

    def begin(self, rows: Rows) -> PlaceOnTrack:
        """State of rows that have some covariates."""
        assert rows.numbers is not None
        key = b"".join(map(np.ndarray.tobytes, (rows.numbers, rows.have)))
        track = self.tracks.get(key)
        if not isinstance(track, Track):
            state = self.inner.begin(rows)
            track = Track({state.stage: _looking_ahead(state, self.costs)})
            self.tracks[key] = track
        return PlaceOnTrack(track, min(track.states), np.arange(len(rows.encoded)))

    def decide(self, state: PlaceOnTrack) -> Decision:
        """What comes next for each row."""
        return self.inner.decide(self._state(state))

    def advance(self, state: PlaceOnTrack, going: Bools, covariates: Ints) -> PlaceOnTrack:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        return PlaceOnTrack(state.track, state.stage + covariates.shape[1], state.rows[going])

    def limit(self, state: PlaceOnTrack, left: Floats) -> PlaceOnTrack:
        """A state of rows that can pay that much more, at most."""
        return state._replace(left=left)

    def _state(self, place: PlaceOnTrack) -> WalkState:
        state = place.track.at(place.stage, place.rows, self.costs)
        return state if place.left is None else self.inner.limit(state, place.left)

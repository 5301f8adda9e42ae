"""A decider whose first questions form a tree; each leaf continues as AdaCOS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from adacos.costs import ROUNDING
from adacos.deciders.out_of_fold import FoldedDecider
from adacos.deciders.sequence import AdaCOSDecider
from adacos.decision import STOP, Decision, Rows
from adacos.models.branches import Node
from adacos.models.lookahead import WalkState, advance, begin, log_odds_now
from adacos.models.sequence_model import SequenceModel
from adacos.reasons import Reasons
from adacos.typing import Bools, Floats, Ints

# In place of a node: the row goes along a set sequence.
_SETTLED = -1


class BranchState(NamedTuple):
    """Rows at different places of the tree.

    Attributes
    ----------
    encoded : their encoded values, of which only those acquired have been read.
    available : mask (rows, covariates) of what can be acquired or is there.
    have : mask (rows, covariates) of what they have, as far as it is available.
    known : mask (covariates) of what was known from the start.
    node : node at whose question each row is; -1 for rows along a set sequence.
    walks : rows along a set sequence: their positions, and their state there.
    """

    encoded: Floats
    available: Bools
    have: Bools
    known: Bools
    node: Ints
    walks: tuple[tuple[Ints, WalkState], ...]

    def each(self, change: Callable[[Ints, WalkState], WalkState]) -> BranchState:
        """The same rows with the state of each group along a sequence changed."""
        return self._replace(walks=tuple((rows, change(rows, walk)) for rows, walk in self.walks))


@dataclass(frozen=True, eq=False)
class TreeDecider(FoldedDecider[BranchState]):
    """Ask the questions of a tree, and continue along the sequence of the leaf.

    Attributes
    ----------
    model : the model without branches, for rows without the covariate of a branch.
    lookahead : model of the log-odds after an acquisition, see `AdaCOSClassifier`.
    nodes : the tree, with the models of its leaves.
    along : AdaCOS without branches; it decides about rows along any sequence.
    """

    model: SequenceModel
    lookahead: str = field(metadata={"first_name": "outlook"})
    nodes: tuple[Node, ...]
    along: AdaCOSDecider = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "along", AdaCOSDecider(self.terms, self.model, self.lookahead))

    def with_multiplier(self, multiplier: float) -> Self:
        """The decider by which covariate costs count 1 + `multiplier` times."""
        decider = super().with_multiplier(multiplier)
        object.__setattr__(decider, "along", self.along.with_multiplier(multiplier))
        return decider

    @property
    def opening(self) -> Ints:
        """The free covariates."""
        return self.along.opening

    def begin(self, rows: Rows) -> BranchState:
        """State of rows that have some covariates."""
        n_rows = len(rows.encoded)
        have, node = rows.have & rows.available, np.zeros(n_rows, dtype=np.intp)
        state = BranchState(rows.encoded, rows.available, have, rows.known, node, ())
        if not self.rule.always_positive:
            return self._placed(state)
        every = np.arange(n_rows)
        return state._replace(node=node + _SETTLED, walks=((every, self.along.begin(rows)),))

    def _placed(self, state: BranchState) -> BranchState:
        """Rows moved down the tree as far as what they have takes them."""
        node, walks = state.node.copy(), list(state.walks)

        def settle(rows: Ints, model: SequenceModel, known: Bools) -> None:
            if len(rows):
                have = np.asarray(state.have[rows].any(axis=0))
                walk = begin(model, state.encoded[rows], state.available[rows], have, known)
                walks.append((rows, walk))
                node[rows] = _SETTLED

        for number, place in enumerate(self.nodes):
            here = np.flatnonzero(node == number)
            if len(here) == 0:
                continue
            if place.split is None:
                assert place.model is not None
                settle(here, place.model, state.known)
                continue
            k = place.split.covariate
            # Off the branches what was acquired on them counts as known.
            incomplete = here[~state.available[here, k]]
            settle(incomplete, self.model, state.known | self._on_path(number))
            ready = here[state.have[here, k]]
            unseen = self.encoder.unseen(state.encoded[ready])
            if unseen is not None and unseen[:, k].any():
                # What says nothing leads to no branch.
                settle(ready[unseen[:, k]], self.model, state.known | self._on_path(number))
                ready = ready[~unseen[:, k]]
            side = place.split.side(state.encoded[ready], self.encoder)
            node[ready] = np.array(place.below)[side]
        return state._replace(node=node, walks=tuple(walks))

    def _on_path(self, number: int) -> Bools:
        """Mask of the covariates acquired on the way to a node."""
        return np.isin(np.arange(len(self.encoder.names)), self.nodes[number].path)

    def limit(self, state: BranchState, left: Floats) -> BranchState:
        """A state of rows that can pay that much more, at most."""
        assert self.budget is not None
        available, price = state.available.copy(), self.costs.of_next(state.have)
        for number, node in enumerate(self.nodes):
            here = np.flatnonzero(state.node == number)
            if node.split is not None and len(here):
                k = node.split.covariate
                way = np.array([*node.path, k], dtype=np.intp)
                whole = self.costs.of_order(way, given=state.known)
                # By what the way costs: what is acquired off it later does not lead back to it.
                beyond_budget = (price[here, k] > left[here]) | (
                    whole > self.budget * (1 + ROUNDING)
                )
                available[here[beyond_budget & ~state.have[here, k]], k] = False
        state = self._placed(state._replace(available=available))
        return state.each(lambda rows, walk: self.along.limit(walk, left[rows]))

    def judged(self, state: BranchState, rows: Ints) -> BranchState:
        """A state of training rows with the log-odds of models that did not see them."""
        return state.each(lambda own, walk: self.along.judged(walk, rows[own]))

    def decide(self, state: BranchState) -> Decision:
        """What comes next for each row."""
        if self.rule.always_positive:
            ((_, walk),) = state.walks
            return self.along.decide(walk)
        covariates = np.full(len(state.node), STOP)
        log_odds = np.full((len(state.node), *self.model.intercepts.shape[1:]), np.nan)
        weighed = None
        for number, node in enumerate(self.nodes):
            if node.split is not None:
                covariates[state.node == number] = node.split.covariate
        for rows, walk in state.walks:
            weighed = self.along.decide(walk)
            covariates[rows], log_odds[rows] = weighed.covariates, weighed.log_odds
        if len(state.node) == 1 and state.node[0] != _SETTLED:
            # A row that continues needs no log-odds; of a single one they are shown.
            log_odds = self.log_odds(state)
        return Decision(covariates, log_odds, weighed=weighed)

    def log_odds(self, state: BranchState) -> Floats:
        """Log-odds of rows if they stopped now; without branches where one asks for more."""
        log_odds = np.empty((len(state.node), *self.model.intercepts.shape[1:]))
        for rows, walk in state.walks:
            log_odds[rows] = log_odds_now(walk)
        for number in np.unique(state.node[state.node != _SETTLED]).tolist():
            rows = np.flatnonzero(state.node == number)
            log_odds[rows] = log_odds_now(self._unbranched(state, rows))
        return log_odds

    def _unbranched(self, state: BranchState, rows: Ints) -> WalkState:
        """Rows at one node as they would stand without branches."""
        known = state.known | self._on_path(int(state.node[rows[0]]))
        have = np.asarray(state.have[rows].any(axis=0))
        return begin(self.model, state.encoded[rows], state.available[rows], have, known)

    def advance(self, state: BranchState, going: Bools, covariates: Ints) -> BranchState:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        number = np.cumsum(going) - 1
        walks = tuple(
            (number[rows[going[rows]]], advance(walk, going[rows]))
            for rows, walk in state.walks
            if going[rows].any()
        )
        have, available = state.have[going], state.available[going]
        each = np.arange(len(have))
        have[each, covariates[:, 0]] = available[each, covariates[:, 0]]
        return self._placed(
            state._replace(
                encoded=state.encoded[going],
                available=available,
                have=have,
                node=state.node[going],
                walks=walks,
            )
        )

    def explain(self, state: BranchState, decision: Decision) -> Reasons:
        """Why it decides so about one row; why a branch is there its policy says."""
        if state.walks:
            ((_, walk),) = state.walks
            return self.along.explain(walk, decision.weighed_as(Decision) or decision)
        stop = Decision(np.array([STOP]), decision.log_odds)
        walk = self._unbranched(state, np.arange(1))
        return replace(self.along.explain(walk, stop), plans=(), node=int(state.node[0]))

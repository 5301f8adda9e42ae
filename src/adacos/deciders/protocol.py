"""A decider that follows a protocol, and knows the classes of training rows at each place."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from adacos.decision import STOP, Decision, ObservedDecider, ObservedState
from adacos.kernels.class_risk import log_odds_of
from adacos.protocols import ProtocolGraph
from adacos.reasons import Reasons
from adacos.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class ProtocolDecider(ObservedDecider):
    """Acquire what the next test needs, and give the answer of the protocol.

    Attributes
    ----------
    graph : the places of the protocol.
    shares : (places, classes) share of each class among the training rows that pass a place.
    rows : (places,) how many training rows pass it.
    """

    graph: ProtocolGraph
    shares: Floats
    rows: Ints
    log_odds_at: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places, n_classes = len(self.graph), len(self.classes)
        fit = self.shares.shape == (places, n_classes) and self.rows.shape == (places,)
        if not fit or not (self.shares > 0).all() or not np.isfinite(self.shares).all():
            raise ValueError("the shares of classes do not fit the protocol")
        log_odds = log_odds_of(self.shares)
        one = log_odds.shape[1] == 1
        object.__setattr__(self, "log_odds_at", log_odds[:, 0] if one else log_odds)

    @property
    def answers_by_rule(self) -> bool:
        """No: the protocol answers."""
        return False

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        place = self._place(state)
        tests = np.array([test.covariate for test in self.graph.tests], dtype=np.intp)
        covariates = np.append(tests, np.full(len(self.graph.labels), STOP))[place]
        return Decision(covariates, self.log_odds_at[place], label=self.graph.label_of(place))

    def _place(self, state: ObservedState) -> Ints:
        """At which place each row is."""
        source = self.encoder.source
        place, _ = self.graph.locate(state.values, source, state.available, state.acquired)
        return place

    def explain(self, state: ObservedState, decision: Decision) -> Reasons:
        """Which line of the protocol asks, or answers."""
        place, graph = int(self._place(state)[0]), self.graph
        rows = f"{self.rows[place]:,} training rows came here."
        if place < len(graph.tests):
            test = graph.tests[place]
            return Reasons(because=f"Line {test.line} of the protocol: {test.words}. {rows}")
        number = place - len(graph.tests)
        label = self.decisions[graph.labels[number]]
        return Reasons(
            because=f"Line {graph.lines[number]} of the protocol answers {label}. {rows}"
        )

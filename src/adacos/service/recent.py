"""The last weeks of a case log next to all of them, and of which answers the outcome is known.

Whose outcome is known is a selection: often only those called positive are followed up. Observed
means therefore count each case with an outcome as many times as its answer has cases without one,
as if outcomes were known at random among the cases of one answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

from adacos.service.case_tallies import Tally
from adacos.service.promises import CertifiedRecall, Promises

# In each year something is called changed that is not with this probability at most: half of it is
# for all promises together, and half for all that is watched in the values of cases.
FALSE_ALARMS = 0.05
_WEEKS_A_YEAR = 365.25 / 7
# Lengths of windows (weeks).
_WEEKS = (4, 13, None)


@dataclass(frozen=True)
class MeanAndPromise:
    """An observed mean, none where an answer has no known outcome, and what was promised."""

    observed: float | None
    promised: float | None


@dataclass(frozen=True)
class Window:
    """Cases of the last `weeks`, or of all of them, the first of which begins at `since`.

    `recalls` are those of the classes that are certified, else that of the second of two.
    """

    weeks: int | None
    since: str
    cases: int
    with_outcome: int
    total_cost: MeanAndPromise
    recalls: dict[str, MeanAndPromise]

    @property
    def compared(self) -> dict[str, MeanAndPromise]:
        """All that is compared, by its name."""
        recalls = {f"recall of {name}": pair for name, pair in self.recalls.items()}
        return {"total_cost": self.total_cost, **recalls}


@dataclass(frozen=True)
class Coverage:
    """How many cases got an answer, and of how many of them the outcome is known."""

    answer: str
    cases: int
    with_outcome: int


def change_limit(watched: int) -> float:
    """Log of the evidence beyond which one of the things watched together has changed."""
    return math.log(_WEEKS_A_YEAR * watched / (FALSE_ALARMS / 2))


def coverage_of(promises: Promises, tallies: list[Tally]) -> list[Coverage]:
    """Of which answers the outcome is known."""
    answers = promises.classes if promises.decisions is None else promises.decisions
    return [
        Coverage(str(answer), *_cases_and_outcomes([t for t in tallies if t.label == number]))
        for number, answer in enumerate(answers)
    ]


def windows_of(promises: Promises, tallies: list[Tally]) -> list[Window]:
    """The last weeks of some cases, counted from the last week that has any, and all of them."""
    if not tallies:
        return []
    last, found = date.fromisoformat(max(tally.week for tally in tallies)), []
    for weeks in _WEEKS:
        since = min(tally.week for tally in tallies)
        if weeks is not None:
            since = max(since, (last - timedelta(weeks=weeks - 1)).isoformat())
        found.append(_window(promises, [t for t in tallies if t.week >= since], weeks, since))
    return found


def _window(promises: Promises, tallies: list[Tally], weeks: int | None, since: str) -> Window:
    cases, closed = _cases_and_outcomes(tallies)
    weight, costs = _weights(tallies), promises.costs
    cost = MeanAndPromise(None, sum(tally.expected_cost for tally in tallies) / cases)
    if weight is not None:
        wrong = sum(
            weight[tally.label] * tally.cases * costs[tally.outcome][tally.label]
            for tally in tallies
            if tally.outcome is not None
        )
        paid = sum(tally.cost for tally in tallies)
        cost = MeanAndPromise((paid + wrong) / cases, cost.promised)
    watched = promises.certified
    bounds: list[float | None] = [one.bound for one in watched]
    if not watched and promises.decisions is None and len(promises.classes) == 2:
        watched, bounds = [CertifiedRecall(1, [1], 0.0)], [None]
    recalls = {
        str(promises.classes[one.of_class]): MeanAndPromise(_recall(tallies, one), bound)
        for one, bound in zip(watched, bounds, strict=True)
    }
    return Window(weeks, since, cases, closed, cost, recalls)


def _recall(tallies: list[Tally], certified: CertifiedRecall) -> float | None:
    """Share of a class's cases with one of the labels; a certificate is of followed cases only."""
    if certified.bound:
        tallies = [tally for tally in tallies if tally.course == "followed"]
    weight = _weights(tallies)
    own = [tally for tally in tallies if tally.outcome == certified.of_class]
    if weight is None or not own:
        return None
    right = sum(weight[t.label] * t.cases for t in own if t.label in certified.labels)
    return right / sum(weight[t.label] * t.cases for t in own)


def _weights(tallies: list[Tally]) -> dict[int, float] | None:
    """How many cases one with an outcome counts as, by label; None where a label has none."""
    counts = {
        label: _cases_and_outcomes([tally for tally in tallies if tally.label == label])
        for label in {tally.label for tally in tallies}
    }
    if any(cases and not closed for cases, closed in counts.values()):
        return None
    return {label: cases / closed if closed else 0.0 for label, (cases, closed) in counts.items()}


def _cases_and_outcomes(tallies: list[Tally]) -> tuple[int, int]:
    closed = sum(tally.cases for tally in tallies if tally.outcome is not None)
    return sum(tally.cases for tally in tallies), closed

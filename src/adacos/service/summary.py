"""What was observed on recorded cases, with intervals, beside what the model promised.

All intervals may be looked at as often as one likes: with the stated confidence the truth is in all
of them, today's and every later one. Errors that have not been seen yet are allowed for: a label's
share of errors has an upper bound above 0 even if there was none so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from adacos.consultation import fingerprint
from adacos.kernels.anytime import confidence_sequence
from adacos.policies.base import BasePolicy
from adacos.service.case_log import Tally

CONFIDENCE = 0.95

Verdict = Literal["kept", "broken", "undecided"]


@dataclass(frozen=True)
class Interval:
    """An observed value between bounds, beside what was promised.

    The promise is kept or broken where the bounds lie wholly on one side of it.
    """

    observed: float | None
    low: float | None
    high: float | None
    promised: float | None
    promise: Verdict | None
    cases: int


@dataclass(frozen=True, kw_only=True)
class Group:
    """What was observed on some cases."""

    cases: int
    with_outcome: int
    covariate_cost: float | None
    total_cost: Interval
    recall: Interval
    false_discovery_rate: Interval


@dataclass(frozen=True, kw_only=True)
class Summary(Group):
    """What was observed on the recorded cases of the present model, beside what was promised.

    Cases that were stopped early are counted in `stopped_early` and nowhere else: what is promised
    is promised of consultations that the policy ends.
    """

    model: str
    confidence: float
    of_other_models: int
    certified_recall: Interval | None
    stopped_early: Group


def summary(policy: BasePolicy, tallies: list[Tally], of_other_models: int) -> Summary:
    """The summary of the cases of a policy.

    The promised total cost is the mean of what was expected when each case was classified. A recall
    is promised by a certificate only; it speaks of consultations that begin with nothing known and
    follow the questions, so those are judged on their own. Nothing is promised of cases that the
    user stopped early, who may know more than the model: they are kept apart.
    """
    ended = [tally for tally in tallies if tally.course != "stopped"]
    stopped = [tally for tally in tallies if tally.course == "stopped"]
    certificate = getattr(policy, "certificate_", None)
    followed = [tally for tally in _closed(ended) if tally.course == "followed"]
    matrix = policy.rule_.matrix.tolist()
    return Summary(
        model=fingerprint(policy),
        confidence=CONFIDENCE,
        of_other_models=of_other_models,
        **vars(_observed(ended, matrix, promising=True)),
        certified_recall=None
        if certificate is None
        else _share(followed, _positive, _answered_positive, float(certificate.bound)),
        stopped_early=_observed(stopped, matrix, promising=False),
    )


def _observed(tallies: list[Tally], matrix: list[list[float]], *, promising: bool) -> Group:
    """Costs and shares of some cases, beside what was expected of them if that is a promise."""
    closed, cases = _closed(tallies), _cases(tallies)
    return Group(
        cases=cases,
        with_outcome=_cases(closed),
        covariate_cost=sum(tally.cost for tally in tallies) / cases if cases else None,
        total_cost=_total_cost(closed, matrix, promising=promising),
        recall=_share(closed, _positive, _answered_positive, None),
        false_discovery_rate=_share(
            closed, _answered_positive, lambda tally: tally.outcome == 0, None
        ),
    )


def _closed(tallies: list[Tally]) -> list[Tally]:
    return [tally for tally in tallies if tally.outcome is not None]


def _positive(tally: Tally) -> bool:
    return tally.outcome == 1


def _answered_positive(tally: Tally) -> bool:
    return tally.label == 1


def _cases(tallies: Iterable[Tally]) -> int:
    return sum(tally.cases for tally in tallies)


def _verdict(*, kept: bool, broken: bool) -> Verdict:
    """What the interval says about a promise."""
    return "kept" if kept else "broken" if broken else "undecided"


def _share(
    tallies: list[Tally],
    among: Callable[[Tally], bool],
    counted: Callable[[Tally], bool],
    promised: float | None,
) -> Interval:
    """Share of `counted` cases among some, with its bounds; a promise is a lower limit."""
    relevant = [tally for tally in tallies if among(tally)]
    total, successes = _cases(relevant), _cases(tally for tally in relevant if counted(tally))
    low, high = (float(end) for end in confidence_sequence(successes, total, CONFIDENCE))
    promise = None
    if promised is not None and total:
        promise = _verdict(kept=low >= promised, broken=high < promised)
    return Interval(successes / total if total else None, low, high, promised, promise, total)


def _total_cost(closed: list[Tally], matrix: list[list[float]], *, promising: bool) -> Interval:
    """The mean total cost, between what it would be at the bounds of both shares of errors.

    What was paid is known; what is uncertain is how often each label is wrong. The bounds on the
    two shares hold together with the stated confidence, because each is given half of the rest.
    """
    n = _cases(closed)
    if n == 0:
        return Interval(None, None, None, None, None, 0)
    paid = sum(tally.cost for tally in closed)
    observed = low = high = paid
    for label in (0, 1):
        own = [tally for tally in closed if tally.label == label]
        cases, wrong = _cases(own), _cases(tally for tally in own if tally.outcome != label)
        right, more = matrix[label][label], matrix[1 - label][label] - matrix[label][label]
        ends = confidence_sequence(wrong, cases, (1 + CONFIDENCE) / 2)
        observed += cases * right + wrong * more
        low += cases * (right + float(ends[0]) * more)
        high += cases * (right + float(ends[1]) * more)
    observed, low, high = observed / n, low / n, high / n
    if not promising:
        return Interval(observed, low, high, None, None, n)
    promised = sum(tally.expected_cost for tally in closed) / n
    promise = _verdict(kept=high <= promised, broken=low > promised)
    return Interval(observed, low, high, promised, promise, n)

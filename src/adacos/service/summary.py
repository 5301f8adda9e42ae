"""What was observed on recorded cases, with intervals, compared with what the model promised.

All intervals may be looked at as often as one likes: with the stated confidence the truth is in all
of them, today's and every later one. Errors that have not been seen yet are allowed for: a label's
share of errors has an upper bound above 0 even if there was none so far.

Bounds are of all cases together. A change is looked for as well: cases of the last weeks that speak
against a promise break it, however well it was kept before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from adacos.kernels.anytime import confidence_sequence
from adacos.kernels.change import (
    likeliest_begin,
    log_evidence,
    log_growth,
    log_growth_of_share,
)
from adacos.service.case_tallies import Tally
from adacos.service.promises import CertifiedRecall, Promises
from adacos.service.recent import Coverage, Window, change_limit, coverage_of, windows_of

CONFIDENCE = 0.95
# What is left out where there is none.
_ABSENT = ("recall", "false_discovery_rate", "by_class", "certified_recalls")

Verdict = Literal["kept", "broken", "undecided"]


@dataclass(frozen=True)
class Change:
    """Cases since some week against which a promise does not hold, however it was kept before.

    `since` is the Monday with which that week begins.
    """

    since: str
    observed: float
    promised: float
    cases: int


@dataclass(frozen=True)
class Interval:
    """An observed value between bounds, and what was promised.

    The promise is kept or broken where the bounds lie wholly on one side of it. It is broken too
    where the cases of the last weeks speak against it, as `change` says.
    """

    observed: float | None
    low: float | None
    high: float | None
    promised: float | None
    promise: Verdict | None
    cases: int
    change: Change | None = None


@dataclass(frozen=True)
class Shares:
    """How a class was answered: found among its cases, and wrong among those answered with it."""

    recall: Interval
    false_discovery_rate: Interval


@dataclass(frozen=True, kw_only=True)
class Group:
    """What was observed on some cases.

    `recall` and `false_discovery_rate` are those of the second class. With three or more classes
    they are absent and `by_class` holds those of each; of two `by_class` is absent.
    """

    cases: int
    with_outcome: int
    covariate_cost: float | None
    total_cost: Interval
    recall: Interval | None = None
    false_discovery_rate: Interval | None = None
    by_class: dict[str, Shares] | None = None


@dataclass(frozen=True, kw_only=True)
class Summary(Group):
    """What was observed on the recorded cases of one model, and what was promised.

    Cases that were stopped early are counted in `stopped_early` and nowhere else: what is promised
    is promised of consultations that the policy ends. With three or more classes
    `certified_recalls` holds those that are certified; it is absent where none is. `windows` are
    the last weeks and all of them; `coverage` says of which answers the outcome is known.
    """

    model: str
    confidence: float
    of_other_models: int
    certified_recall: Interval | None
    certified_recalls: dict[str, Interval] | None = None
    stopped_early: Group
    windows: list[Window]
    coverage: list[Coverage]

    @property
    def shown(self) -> dict[str, Interval]:
        """What is promised or watched, by its name."""
        named = {"total_cost": self.total_cost, "recall": self.recall}
        named["certified_recall"] = self.certified_recall
        for label, interval in (self.certified_recalls or {}).items():
            named[f"certified_recall of {label}"] = interval
        return {name: interval for name, interval in named.items() if interval is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the shares that there are not for this number of classes."""
        return _without_absent(asdict(self))


def summary(promises: Promises, tallies: list[Tally], of_other_models: int) -> Summary:
    """The summary of the cases of a model.

    The promised total cost is the mean of what was expected when each case was classified. A recall
    is promised by a certificate only; it speaks of consultations that begin with nothing known and
    follow the questions, so those are judged on their own. Nothing is promised of cases that the
    user stopped early, who may know more than the model: they are kept apart.
    """
    ended = [tally for tally in tallies if tally.course != "stopped"]
    stopped = [tally for tally in tallies if tally.course == "stopped"]
    followed = [tally for tally in ended if tally.course == "followed"]
    matrix, named = promises.costs, promises.decisions is not None
    many = [str(label) for label in promises.classes] if len(matrix) > 2 else []
    limit = change_limit(1 + len(promises.certified))
    found = [_found(followed, one, limit) for one in promises.certified]
    by_class = bool(found) and (named or bool(many))
    return Summary(
        model=promises.model,
        confidence=CONFIDENCE,
        of_other_models=of_other_models,
        **vars(_observed(ended, matrix, many, named=named, limit=limit)),
        certified_recall=found[0] if found and not by_class else None,
        certified_recalls={
            str(promises.classes[one.of_class]): interval
            for one, interval in zip(promises.certified, found, strict=True)
        }
        if by_class
        else None,
        stopped_early=_observed(stopped, matrix, many, named=named, limit=None),
        windows=windows_of(promises, ended),
        coverage=coverage_of(promises, ended),
    )


def _observed(
    tallies: list[Tally],
    matrix: list[list[float]],
    many: list[str],
    *,
    named: bool,
    limit: float | None,
) -> Group:
    """Costs and shares of some cases, and what was expected of them if that is a promise.

    Evidence beyond `limit` is a change; without it nothing is promised.
    `many` names the classes where there are more than two. Where decisions are `named` in place of
    labels, none of them is right or wrong for a class: there are costs only.
    """
    closed, cases = _closed(tallies), _cases(tallies)
    group = Group(
        cases=cases,
        with_outcome=_cases(closed),
        covariate_cost=sum(tally.cost for tally in tallies) / cases if cases else None,
        total_cost=_total_cost(closed, matrix, limit),
    )
    if named:
        return group
    if many:
        return replace(group, by_class={name: _shares(closed, k) for k, name in enumerate(many)})
    return replace(group, **vars(_shares(closed, 1)))


def _shares(closed: list[Tally], number: int) -> Shares:
    """How the class of this number was answered."""
    wrong = _share(
        closed, lambda tally: tally.label == number, lambda tally: tally.outcome != number
    )
    return Shares(_recall(closed, number), wrong)


def _recall(closed: list[Tally], number: int) -> Interval:
    """How many of a class's cases were answered with it."""
    return _share(
        closed, lambda tally: tally.outcome == number, lambda tally: tally.label == number
    )


def _found(tallies: list[Tally], certified: CertifiedRecall, limit: float) -> Interval:
    """How many of a class's cases were answered with it, or decided so that it is protected."""
    found = _share(
        _closed(tallies),
        lambda tally: tally.outcome == certified.of_class,
        lambda tally: tally.label in certified.labels,
    )
    if found.low is None or found.high is None or not found.cases:
        return replace(found, promised=certified.bound)
    change = _change_of_recall(tallies, certified, limit)
    kept, broken = found.low >= certified.bound, found.high < certified.bound
    promise = _verdict(kept=kept, broken=broken or change is not None)
    return replace(found, promised=certified.bound, promise=promise, change=change)


def _without_absent(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_absent(value) if name == "stopped_early" else value
        for name, value in values.items()
        if value is not None or name not in _ABSENT
    }


def _closed(tallies: list[Tally]) -> list[Tally]:
    return [tally for tally in tallies if tally.outcome is not None]


def _cases(tallies: Iterable[Tally]) -> int:
    return sum(tally.cases for tally in tallies)


def _verdict(*, kept: bool, broken: bool) -> Verdict:
    """What the interval says about a promise."""
    return "broken" if broken else "kept" if kept else "undecided"


def _share(
    tallies: list[Tally], among: Callable[[Tally], bool], counted: Callable[[Tally], bool]
) -> Interval:
    """Share of `counted` cases among some, with its bounds."""
    relevant = [tally for tally in tallies if among(tally)]
    total, successes = _cases(relevant), _cases(tally for tally in relevant if counted(tally))
    low, high = (float(end) for end in confidence_sequence(successes, total, CONFIDENCE))
    return Interval(successes / total if total else None, low, high, None, None, total)


def _change_of_recall(
    tallies: list[Tally], certified: CertifiedRecall, limit: float
) -> Change | None:
    """Since when a recall is lower than promised, if it is.

    The cases with an outcome stand for all with their answer in their week.
    """
    numbers, weeks = _by_week(tallies)
    labels = 1 + max(tally.label for tally in tallies)
    cases, closed, own = (np.zeros((len(weeks), labels)) for _ in range(3))
    for week, tally in zip(numbers, tallies, strict=True):
        place = week, tally.label
        cases[place] += tally.cases
        closed[place] += tally.cases * (tally.outcome is not None)
        own[place] += tally.cases * (tally.outcome == certified.of_class)
    weight = np.divide(cases, closed, out=np.ones_like(cases), where=closed > 0)
    right = np.isin(np.arange(labels), certified.labels)
    growth = log_growth_of_share(own * ~right, own * right, weight, 1 - certified.bound)
    if log_evidence(growth)[-1] < limit:
        return None
    first = likeliest_begin(growth)
    since = (own * weight)[first:]
    observed = float(since[:, right].sum() / since.sum())
    return Change(weeks[first], observed, certified.bound, int(own[first:].sum()))


def _change_of_cost(tallies: list[Tally], matrix: list[list[float]], limit: float) -> Change | None:
    """Since when cases cost more than was promised of them, if they do."""
    costs = np.asarray(matrix)
    least = costs.min(axis=0)
    numbers, weeks = _by_week(tallies)
    cases, promised = (np.zeros((len(weeks), costs.shape[1])) for _ in range(2))
    for week, tally in zip(numbers, tallies, strict=True):
        cases[week, tally.label] += tally.cases
        promised[week, tally.label] += (
            tally.expected_cost - tally.cost - tally.cases * least[tally.label]
        )
    errors = _sums(
        numbers, tallies, lambda t: t.cases * (costs[t.outcome, t.label] - least[t.label])
    )
    growth = log_growth(errors, promised, cases, costs.max(axis=0) - least)
    if log_evidence(growth)[-1] < limit:
        return None
    first = likeliest_begin(growth)
    since = [t for week, t in zip(numbers, tallies, strict=True) if week >= first]
    number = _cases(since)
    paid = sum(t.cost + t.cases * costs[t.outcome, t.label] for t in since)
    expected = sum(t.expected_cost for t in since)
    return Change(weeks[first], float(paid) / number, expected / number, number)


def _by_week(tallies: list[Tally]) -> tuple[list[int], list[str]]:
    """The number of the week of each tally, and the weeks."""
    weeks = sorted({tally.week for tally in tallies})
    number = {week: k for k, week in enumerate(weeks)}
    return [number[tally.week] for tally in tallies], weeks


def _sums(numbers: list[int], tallies: list[Tally], of: Callable[[Any], float]) -> Any:
    """Sums over the tallies of each week."""
    return np.bincount(numbers, [of(tally) for tally in tallies])


def _total_cost(closed: list[Tally], matrix: list[list[float]], limit: float | None) -> Interval:
    """The mean total cost, between what it would be at the bounds of all shares of errors.

    What was paid is known; what is uncertain is how often each label is wrong, and which class is
    the right one then. The bounds on these shares hold together with the stated confidence, because
    each is given an equal part of the rest.
    """
    n = _cases(closed)
    if n == 0:
        return Interval(None, None, None, None, None, 0)
    paid = sum(tally.cost for tally in closed)
    observed = low = high = paid
    n_classes, n_labels = len(matrix), len(matrix[0])
    confidence = 1 - (1 - CONFIDENCE) / (n_labels * (n_classes - 1))
    for label in range(n_labels):
        own = [tally for tally in closed if tally.label == label]
        # Of a decision any class may be the one that the others are compared with.
        base = min(label, n_classes - 1)
        others = [true for true in range(n_classes) if true != base]
        cases = _cases(own)
        wrong = [_cases(tally for tally in own if tally.outcome == true) for true in others]
        right = matrix[base][label]
        more = [matrix[true][label] - right for true in others]
        least, most = confidence_sequence(wrong, [cases] * len(others), confidence)
        ends = list(zip(least.tolist(), most.tolist(), strict=True))
        observed += cases * right + sum(k * one for k, one in zip(wrong, more, strict=True))
        low += cases * (right - _most_expensive(ends, [-one for one in more]))
        high += cases * (right + _most_expensive(ends, more))
    observed, low, high = observed / n, low / n, high / n
    if limit is None:
        return Interval(observed, low, high, None, None, n)
    promised = sum(tally.expected_cost for tally in closed) / n
    change = _change_of_cost(closed, matrix, limit)
    promise = _verdict(kept=high <= promised, broken=low > promised or change is not None)
    return Interval(observed, low, high, promised, promise, n, change)


def _most_expensive(ends: Sequence[tuple[float, float]], more: Sequence[float]) -> float:
    """The most that errors can cost whose shares lie between these ends and make up 1 at most."""
    total, space = 0.0, 1.0 - sum(low for low, _ in ends)
    for (low, high), one in sorted(zip(ends, more, strict=True), key=lambda item: -item[1]):
        share = min(high, low + space) if one > 0 else low
        space -= share - low
        total += share * one
    return total

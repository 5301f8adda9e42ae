"""Whether cases have changed: values among those asked for them, answers, and numbers of questions.

Which cases are asked a question depends on earlier values, so their values are not distributed as
in a table where everybody has them. They are therefore compared with those of earlier cases that
reached the same question: as long as cases come from one distribution, these are exchangeable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adacos.kernels.change import likeliest_begin, log_evidence, log_growth_of_ranks
from adacos.service.case_tallies import week_of
from adacos.service.promises import Promises
from adacos.service.recent import change_limit
from adacos.typing import Floats, Ints

# Equal intervals of the training range within which values are distinguished.
_INTERVALS = 32


@dataclass(frozen=True)
class Shift:
    """Cases since some week that are not as those before.

    `before` and `after` are means of numbers; None of texts.
    """

    since: str
    cases: int
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Watched:
    """What is watched: a covariate by its name, "answer" or "number of questions".

    `cases` reached it; of these `unavailable` had no value, and `outside` one beyond the training
    range.
    """

    what: str
    cases: int
    unavailable: int
    outside: int
    change: Shift | None


@dataclass
class _Stream:
    """Values in their order of arrival, with their weeks; None where one is unavailable."""

    weeks: list[str]
    values: list[Any]

    def add(self, week: str, value: Any) -> None:
        self.weeks.append(week)
        self.values.append(value)


def watched(
    promises: Promises, cases: Iterable[tuple[str, int, Mapping[str, Any]]]
) -> list[Watched]:
    """What changed in the cases of a model, given as `CaseLog.consultations` gives them."""
    questions = {name: _Stream([], []) for name in promises.covariates}
    answers, numbers = _Stream([], []), _Stream([], [])
    for moment, label, described in cases:
        week, chosen = week_of(moment), {*described.get("must", ()), *described.get("never", ())}
        asked = {**described["acquired"], **dict.fromkeys(described["unavailable"])}
        answers.add(week, float(label))
        numbers.add(week, float(len(asked)))
        for name in asked.keys() & questions.keys() - chosen:
            questions[name].add(week, asked[name])
    limit = change_limit(len(questions) + 2)
    return [
        *(_watched(name, one, promises.ranges.get(name), limit) for name, one in questions.items()),
        _watched("answer", answers, None, limit),
        _watched("number of questions", numbers, None, limit),
    ]


def _watched(what: str, stream: _Stream, ends: list[float] | None, limit: float) -> Watched:
    gone = np.array([value is None for value in stream.values], dtype=np.bool_)
    codes, numbers = _codes(stream.values, ends)
    outside = 0
    if numbers is not None and ends is not None:
        outside = int(((numbers < ends[0]) | (numbers > ends[1])).sum())
    change = None if codes is None else _shift(codes, numbers, stream.weeks, limit)
    return Watched(what, len(gone), int(gone.sum()), outside, change)


def _shift(codes: Ints, numbers: Floats | None, names: list[str], limit: float) -> Shift | None:
    """Since when values are not as before, if they are not."""
    if len(codes) == 0:
        return None
    weeks, week = np.unique(names, return_inverse=True)
    # Ties are broken alike at every look.
    uniform = np.random.default_rng(0).random(len(codes))
    growth = log_growth_of_ranks(codes, week, uniform)
    if log_evidence(growth)[-1] < limit:
        return None
    first = likeliest_begin(growth)
    later = week >= first
    means = [_mean(numbers, ~later), _mean(numbers, later)]
    return Shift(str(weeks[first]), int(later.sum()), *means)


def _codes(values: list[Any], ends: list[float] | None) -> tuple[Ints | None, Floats | None]:
    """Values as whole numbers in their order, unavailable ones last, and as numbers if they are.

    None where they are texts of what counts as a number, such as dates, which never come again.
    """
    there = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in there):
        if ends is not None:
            return None, None
        shown = np.array(["" if value is None else f"={value}" for value in values])
        levels, codes = np.unique(shown, return_inverse=True)
        return np.where(shown == "", len(levels), codes).astype(np.intp), None
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    edges = np.unique(numbers[~np.isnan(numbers)])
    if ends is not None:
        edges = np.append(
            np.linspace(ends[0], ends[1], _INTERVALS + 1), np.nextafter(ends[1], np.inf)
        )
    codes = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), len(edges) + 1, codes), numbers


def _mean(numbers: Floats | None, rows: Any) -> float | None:
    if numbers is None or np.isnan(numbers[rows]).all():
        return None
    return float(np.nanmean(numbers[rows]))

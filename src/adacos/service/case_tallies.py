"""Cases counted by model, week, course, label and outcome, as they are recorded.

A log of a million cases takes seconds to read, its counts take milliseconds. They are changed in
the transaction of the case, after the audit, whose lock lets one author at a time get here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from math import isclose
from typing import Any

import sqlalchemy as sa

from adacos.service.case_tables import CASES, TALLIES
from adacos.service.schemas import Course

_NONE = -1
_KEY = tuple(column.name for column in TALLIES.primary_key)
_SUMS = ("cases", "cost", "expected_cost")
# What rounding may make of a sum of costs, as a share of it.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Tally:
    """Cases of one model and week with the same label, the same outcome and the same course."""

    label: int
    outcome: int | None
    course: Course
    cases: int
    cost: float
    expected_cost: float
    week: str


def count(connection: sa.Connection, case: Mapping[str, Any], *, times: int = 1) -> None:
    """Add a case, by its columns, or take it away with -1."""
    key = {
        "model": case["model"],
        "week": week_of(case["recorded"]),
        "course": case["course"],
        "label": case["label"],
        "outcome": _NONE if case["outcome"] is None else case["outcome"],
    }
    more = {
        "cases": times,
        "cost": times * case["cost"],
        "expected_cost": times * case["expected_cost"],
    }
    own = sa.and_(*(TALLIES.c[name] == value for name, value in key.items()))
    added = {name: TALLIES.c[name] + value for name, value in more.items()}
    if connection.execute(sa.update(TALLIES).where(own).values(**added)).rowcount == 0:
        connection.execute(sa.insert(TALLIES), {**key, **more})


def count_again(connection: sa.Connection) -> None:
    """Count all cases from scratch."""
    connection.execute(sa.delete(TALLIES))
    rows = [
        {**dict(zip(_KEY, key, strict=True)), **dict(zip(_SUMS, sums, strict=True))}
        for key, sums in _counted(connection).items()
    ]
    if rows:
        connection.execute(sa.insert(TALLIES), rows)


def are_right(connection: sa.Connection) -> bool:
    """Whether the counts are those of the cases."""
    there = _by_key(connection.execute(sa.select(TALLIES).where(TALLIES.c.cases != 0)))
    counted = _counted(connection)
    return there.keys() == counted.keys() and all(
        isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        for key, sums in counted.items()
        for one, other in zip(sums, there[key], strict=True)
    )


def tallies_of(connection: sa.Connection, model: str) -> tuple[list[Tally], int]:
    """The counts of one model, in the order of weeks, and the number of cases of others."""
    own = sa.select(TALLIES).where(TALLIES.c.model == model, TALLIES.c.cases > 0)
    others = sa.select(sa.func.sum(TALLIES.c.cases)).where(TALLIES.c.model != model)
    found = connection.execute(own.order_by(TALLIES.c.week)).mappings()
    of_others = connection.execute(others).scalar_one()
    return [_tally(row) for row in found], int(of_others or 0)


def _tally(row: Mapping[Any, Any]) -> Tally:
    return Tally(
        label=row["label"],
        outcome=None if row["outcome"] == _NONE else row["outcome"],
        course=row["course"],
        cases=row["cases"],
        cost=row["cost"],
        expected_cost=row["expected_cost"],
        week=row["week"],
    )


def _counted(connection: sa.Connection) -> dict[tuple[Any, ...], list[float]]:
    """What the counts must be, by their keys."""
    kind = (
        CASES.c.model,
        sa.func.substr(CASES.c.recorded, 1, 10),
        CASES.c.course,
        CASES.c.label,
        sa.func.coalesce(CASES.c.outcome, _NONE),
    )
    sums = sa.func.count(), sa.func.sum(CASES.c.cost), sa.func.sum(CASES.c.expected_cost)
    rows = connection.execute(sa.select(*kind, *sums).group_by(*kind))
    return _by_key((model, week_of(day), *rest) for model, day, *rest in rows)


def _by_key(rows: Iterable[Any]) -> dict[tuple[Any, ...], list[float]]:
    """Sums by key, of rows that hold both."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        sums = found.setdefault(tuple(row[: len(_KEY)]), [0] * len(_SUMS))
        for number, more in enumerate(row[len(_KEY) :]):
            sums[number] += more
    return found


def week_of(recorded: str) -> str:
    """The Monday of the week of a moment."""
    day = date.fromisoformat(recorded[:10])
    return (day - timedelta(days=day.weekday())).isoformat()

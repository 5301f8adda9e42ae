"""Dates as numbers: days since 1970, or a part such as the month, in whatever way they are written.

How a column of dates is read is a text, `PART` or `PART:ORDER`, which a model file holds. A date
with slashes or hyphens and the year at the end, 03/04/2026, needs the order: day or month first.
With points, 3.4.2026, the day is first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from math import nan
from numbers import Real
from typing import Any

from adacos.exceptions import InvalidInputError
from adacos.tables.cells import UNKNOWN
from adacos.validation import choices

_EPOCH = datetime(1970, 1, 1)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


def _hour(at: datetime) -> float:
    return (at - datetime.combine(at.date(), datetime.min.time())) / _HOUR


PARTS: dict[str, Callable[[datetime], float]] = {
    "days": lambda at: (at - _EPOCH) / _DAY,
    "year": lambda at: at.year,
    "month": lambda at: at.month,
    "weekday": lambda at: at.isoweekday(),
    "hour": _hour,
}
ORDERS = ("day-first", "month-first")
# What the number is, for people.
IN_WORDS = {
    "days": "days since 1970",
    "year": "year",
    "month": "month, 1 to 12",
    "weekday": "weekday, 1 for Monday",
    "hour": "hour of the day",
}
EXAMPLE = "2026-01-31"
_YEAR_FIRST = re.compile(r"(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})(?:[T ](.+))?")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?:[T ](.+))?")


def is_form(form: str) -> bool:
    """Whether a text says how a column of dates is read."""
    part, colon, order = form.partition(":")
    return part in PARTS and order in (ORDERS if colon else ("",))


def check_date(option: str, name: str, form: str) -> str:
    """How a column of dates is read, if it is one of the ways."""
    if is_form(form):
        return form
    part = form.partition(":")[0]
    ways = [*PARTS, *(f"{part if part in PARTS else 'days'}:{order}" for order in ORDERS)]
    remedy = f"For example {option} {name}=month. {choices([form], ways, 'They are')}"
    raise InvalidInputError(option, "must say what is taken of a date", f"{name}={form}", remedy)


def date_number(cell: Any, form: str) -> float | None:
    """The number of a date, NaN for an unknown value, None for anything else."""
    text = str(cell).strip()
    if text.lower() in UNKNOWN:
        return nan
    part, _, order = form.partition(":")
    at = _read(text, order)
    return None if at is None else float(PARTS[part](at))


def no_date(cell: Any) -> str:
    """What is wrong with a cell that holds no date, in words."""
    found = _YEAR_LAST.fullmatch(str(cell).strip())
    if found and found[2] != ".":
        return "is no date whose order is known: day or month first? Add :day-first or :month-first"
    return f"is no date, such as {EXAMPLE}"


def number_of(given: Any, name: str, form: str) -> float:
    """The number of a date that a person or program gives for a covariate; a number stays one."""
    if isinstance(given, str | date):
        number = date_number(given, form)
        if number is None or number != number:
            remedy = (
                f"For example {EXAMPLE}; a number counts as {IN_WORDS[form.partition(':')[0]]}."
            )
            raise InvalidInputError(name, "must be a date", given, remedy)
        return number
    if isinstance(given, Real):
        return float(given)
    raise InvalidInputError(name, "must be a date", type(given).__name__, f"For example {EXAMPLE}.")


def _read(text: str, order: str) -> datetime | None:
    first, last = _YEAR_FIRST.fullmatch(text), _YEAR_LAST.fullmatch(text)
    if first and (first[2] or len(first[3] + first[4]) == 4):
        year, month, day, clock = first[1], first[3], first[4], first[5]
    elif last and (order or last[2] == "."):
        day, month, year, clock = last[1], last[3], last[4], last[5]
        if order == "month-first" and last[2] != ".":
            day, month = month, day
    else:
        return None
    try:
        at = datetime(int(year), int(month), int(day))
        if clock is None:
            return at
        # Of a time with a zone the clock on the wall counts.
        return datetime.fromisoformat(f"{at:%Y-%m-%d}T{clock.strip()}").replace(tzinfo=None)
    except ValueError:
        return None

"""Dates as numbers, against the calendar of the standard library and of pandas."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from adacos import AdaCOSClassifier, Costs
from adacos.exceptions import InvalidInputError
from adacos.tables.columns import ColumnTable
from adacos.tables.dates import PARTS, check_date, date_number


@pytest.mark.parametrize("part", PARTS)
def test_numbers_are_those_of_the_calendar(part: str) -> None:
    rng = np.random.default_rng(0)
    for day in rng.integers(-20_000, 25_000, 200).tolist():
        at = pd.Timestamp(date(1970, 1, 1) + timedelta(days=day)) + pd.Timedelta(
            minutes=int(rng.integers(0, 1440))
        )
        truth = {
            "days": at.timestamp() / 86400,
            "year": at.year,
            "month": at.month,
            "weekday": at.isoweekday(),
            "hour": at.hour + at.minute / 60,
        }[part]
        for text in (
            f"{at:%Y-%m-%d %H:%M}",
            f"{at:%Y-%m-%dT%H:%M:00Z}",
            f"{at:%d.%m.%Y %H:%M}",
            f"{at:%Y%m%dT%H:%M:00}",
        ):
            assert date_number(text, part) == pytest.approx(truth), text
        assert date_number(f"{at:%m/%d/%Y %H:%M}", f"{part}:month-first") == pytest.approx(truth)
        assert date_number(f"{at:%d/%m/%Y %H:%M}", f"{part}:day-first") == pytest.approx(truth)


@pytest.mark.parametrize("cell", ["03/04/2026", "2026-02-30", "soon", "12.3", "202613", "3.4.26"])
def test_what_is_no_date(cell: str) -> None:
    assert date_number(cell, "days") is None


def test_missing_dates_are_missing() -> None:
    for cell in ("", " NA ", "?"):
        assert np.isnan(date_number(cell, "month"))


def test_ways_to_read_a_date_are_checked() -> None:
    for form in ("week", "month:", "month:first", ""):
        with pytest.raises(InvalidInputError, match="must say what is taken of a date"):
            check_date("--date", "when", form)


def test_a_policy_reads_dates_as_the_rows_it_was_fitted_on() -> None:
    """In frames of any kind, with dates as such or as text, and in consultations."""
    rng = np.random.default_rng(1)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 300), unit="D")
    month = np.asarray(when.month, dtype=float)
    y = (rng.random(300) < np.where((month < 4) | (month > 10), 0.85, 0.15)).astype(int)
    noise = rng.normal(size=300)
    costs = Costs({"when": 1.0, "x": 1.0}, false_positive=20, false_negative=20)
    table = ColumnTable({"when": month, "x": noise}, {"when": "month"})
    policy = AdaCOSClassifier(costs, strengths="common").fit(table, y)
    plain = policy.acquire(table)
    assert plain.acquired[:, 0].mean() > 0.9
    for column in (when, when.strftime("%Y-%m-%d"), when.strftime("%d.%m.%Y"), list(when.date)):
        own = policy.acquire(pd.DataFrame({"when": column, "x": noise}))
        np.testing.assert_array_equal(own.probability, plain.probability)
    known = policy.consultation(known={"when": "2026-01-31"})
    assert known.next().probability == policy.consultation(known={"when": 1}).next().probability
    case = policy.consultation(known={"when": date(2026, 7, 1), "x": 0.0})
    assert case.next().label == 0
    with pytest.raises(InvalidInputError, match="when: must be a date"):
        policy.consultation(known={"when": "in spring"})
    with pytest.raises(InvalidInputError, match="when: must be a date"):
        policy.acquire(pd.DataFrame({"when": ["in spring"], "x": [0.0]}))

"""A year of cases, looked at after every day: false alarms, and how soon a change is noticed.

Everybody is asked A, and only those with a middle A are asked B, which goes with A. Where
nothing else is said, the outcome becomes known for nine in ten of those called positive, and for
three in ten of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr

from adacos.kernels.change import (
    log_evidence,
    log_growth,
    log_growth_of_ranks,
    log_growth_of_share,
)
from adacos.service.drift import _codes
from adacos.service.recent import FALSE_ALARMS, change_limit

DAYS, A_DAY, ILL, MISS = 365, 20, 0.35, 1000.0
# Shares of outcomes that become known, of negatives and of positives.
SOME, ALL = (0.3, 0.9), (1.0, 1.0)
LENGTH = 7
ENDS = [-2.5, 2.5]


class Year(NamedTuple):
    """The cases of a year, in order."""

    day: np.ndarray
    a: np.ndarray
    b: np.ndarray
    asked_b: np.ndarray
    ill: np.ndarray
    label: np.ndarray
    known: np.ndarray


def year(
    seed: int,
    recall: float,
    *,
    later: float | None = None,
    change: int = DAYS,
    coverage: tuple[float, float] = SOME,
) -> Year:
    """A year in which so many of the ill are found, and from some day on others."""
    rng = np.random.default_rng([7, seed])
    n = DAYS * A_DAY
    day = np.repeat(np.arange(DAYS), A_DAY)
    a = rng.normal(size=n)
    b = 0.7 * a + 0.7 * rng.normal(size=n)
    ill = rng.random(n) < ILL
    found = rng.random(n) < np.where(day < change, recall, recall if later is None else later)
    label = np.where(ill, found, False).astype(int)
    known = rng.random(n) < np.array(coverage)[label]
    return Year(day, a, b, (a > 0) & (a < 1.5), ill, label, known)


def by_day(one: Year, chosen: np.ndarray) -> np.ndarray:
    return np.bincount(one.day[chosen], minlength=DAYS)


def looked_at_daily(growth_of, *counts: np.ndarray) -> np.ndarray:
    """Evidence after each day where a look has whole weeks and the days so far of the last one.

    `growth_of` takes counts by week, as the summary has them at that look.
    """
    weeks = -(-DAYS // LENGTH)
    padded = [np.pad(one, (0, weeks * LENGTH - DAYS)).reshape(weeks, LENGTH) for one in counts]
    evidence = np.full((weeks, LENGTH), -np.inf)
    whole = growth_of(*(one.sum(axis=1) for one in padded))
    before = np.full(whole.shape[1], -np.inf)
    partial = [growth_of(*(one[:, : k + 1].sum(axis=1) for one in padded)) for k in range(LENGTH)]
    for week in range(weeks):
        start = np.logaddexp(0.0, before)
        for k in range(LENGTH):
            evidence[week, k] = np.logaddexp.reduce(start + partial[k][week])
        before = start + whole[week]
    return evidence.ravel()[:DAYS] - np.log(whole.shape[1])


def of_recall(one: Year, promised: float, *, weighted: bool) -> np.ndarray:
    """Evidence that a recall is lower than promised; whose outcome is known is heeded or not."""

    def growth(found, missed, called, known_called, others, known_others):
        weight = np.ones((len(found), 2))
        if weighted:
            for k, (cases, closed) in enumerate([(called, known_called), (others, known_others)]):
                np.divide(cases, closed, out=weight[:, k], where=closed > 0)
        nothing = np.zeros_like(found)
        lost, right = np.stack([nothing, missed], 1), np.stack([found, nothing], 1)
        return log_growth_of_share(lost, right, weight, 1 - promised)

    positive = one.label == 1
    parts = (
        one.known & one.ill & positive,
        one.known & one.ill & ~positive,
        positive,
        positive & one.known,
        ~positive,
        ~positive & one.known,
    )
    return looked_at_daily(growth, *(by_day(one, part) for part in parts))


def of_cost(one: Year, stated: float) -> np.ndarray:
    """Evidence that negatives are ill more often than stated."""

    def growth(missed, cases):
        promised = cases[:, None] * stated * MISS
        return log_growth(missed * MISS, promised, cases[:, None], [MISS])

    negative = one.known & (one.label == 0)
    return looked_at_daily(growth, by_day(one, negative & one.ill), by_day(one, negative))


def of_ranks(by_days: np.ndarray) -> np.ndarray:
    """Evidence after each day of growth by day."""
    before, evidence = np.full(by_days.shape[1], -np.inf), []
    for number, grown in enumerate(by_days):
        start = np.logaddexp(0.0, before) if number % LENGTH == 0 else before
        before = start + grown
        evidence.append(np.logaddexp.reduce(before) - np.log(len(before)))
    return np.array(evidence)


def of_values(one: Year, values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Evidence that values among some cases are not as those before."""
    codes, _ = _codes(values[among].tolist(), ENDS)
    uniform = np.random.default_rng(0).random(len(codes))
    growth = log_growth_of_ranks(codes, one.day[among], uniform)
    return of_ranks(np.pad(growth, ((0, DAYS - len(growth)), (0, 0))))


def of_population(one: Year) -> np.ndarray:
    """The same of B among those asked, against its distribution where everybody has it."""
    place = ndtr(one.b[one.asked_b] / np.hypot(0.7, 0.7))
    bets = [1 + stake * (2 * place - 1) for stake in (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)]
    day = one.day[one.asked_b]
    growth = np.stack([np.bincount(day, np.log(bet), DAYS) for bet in bets], axis=1)
    return of_ranks(growth)


def alarms(one: Year, promised: float, stated: float) -> bool:
    """Whether anything is called changed on any day: two promises, and four things watched."""
    everyone = np.ones(len(one.day), dtype=bool)
    two, four = change_limit(2), change_limit(4)
    watched = (
        of_values(one, one.a, everyone),
        of_values(one, one.b, one.asked_b),
        of_values(one, one.label.astype(float), everyone),
        of_values(one, 1.0 + one.asked_b, everyone),
    )
    return bool(
        of_recall(one, promised, weighted=True).max() >= two
        or of_cost(one, stated).max() >= two
        or max(each.max() for each in watched) >= four
    )


def share_of_ill_negatives(recall: float) -> float:
    return ILL * (1 - recall) / (1 - ILL * recall)


def first_day(evidence: np.ndarray, limit: float) -> float:
    above = np.flatnonzero(evidence >= limit)
    return float(above[0]) if len(above) else np.inf


@pytest.mark.parametrize("years", [60, pytest.param(1000, marks=pytest.mark.study)])
def test_a_year_without_a_change_is_rarely_called_changed(years: int) -> None:
    """Promises are kept exactly, which is the worst that may be; every day is a look."""
    stated = share_of_ill_negatives(0.853)
    called = sum(alarms(year(seed, 0.853), 0.853, stated) for seed in range(years))
    print(f"{called} of {years} years")
    assert called / years <= FALSE_ALARMS


def is_called_lower(one: Year, promised: float, delays: tuple[float, float], seed: int) -> bool:
    """Whether a recall is called lower at a daily look, where outcomes arrive late."""
    rng, week = np.random.default_rng([9, seed]), one.day // LENGTH
    back = one.day + rng.exponential(np.array(delays)[one.label])
    for look in range(LENGTH, DAYS):
        seen, weeks = one.day <= look, look // LENGTH + 1
        known = seen & one.known & (back <= look + 1)

        def by_week(chosen: np.ndarray, weeks: int = weeks) -> np.ndarray:
            answers = [chosen & (one.label == label) for label in (0, 1)]
            return np.stack([np.bincount(week[each], minlength=weeks) for each in answers], axis=1)

        closed, own = by_week(known), by_week(known & one.ill)
        weight = np.divide(by_week(seen), closed, out=np.ones(closed.shape), where=closed > 0)
        lost, right = own * [1, 0], own * [0, 1]
        growth = log_growth_of_share(lost, right, weight, 1 - promised)
        if log_evidence(growth)[-1] >= change_limit(2):
            return True
    return False


@pytest.mark.parametrize("years", [10, pytest.param(300, marks=pytest.mark.study)])
def test_outcomes_that_arrive_late_are_no_change(years: int) -> None:
    """Of negatives after 60 days in the mean, of positives after 5, at the recall promised."""
    called = sum(
        is_called_lower(year(seed, 0.853), 0.853, (60.0, 5.0), seed) for seed in range(years)
    )
    print(f"{called} of {years} years")
    assert called / years <= FALSE_ALARMS / 2


@pytest.mark.parametrize("years", [30, pytest.param(300, marks=pytest.mark.study)])
@pytest.mark.parametrize(("coverage", "most"), [(ALL, 60), (SOME, 120)])
def test_a_recall_that_falls_is_noticed(
    years: int, coverage: tuple[float, float], most: int
) -> None:
    """From 92% to 75% on day 180, where 85.3% are promised: within two months, or four."""
    days, limit = [], change_limit(2)
    for seed in range(years):
        one = year(seed, 0.92, later=0.75, change=180, coverage=coverage)
        days.append(first_day(of_recall(one, 0.853, weighted=True), limit) - 180)
    print(f"median {np.median(days)} days, nine in ten within {np.quantile(days, 0.9)}")
    assert np.mean(np.array(days) < 0) <= FALSE_ALARMS
    assert np.median(days) <= most


@pytest.mark.parametrize("years", [30, pytest.param(300, marks=pytest.mark.study)])
def test_who_ignores_which_cases_were_selected_is_wrong(years: int) -> None:
    """B is called changed where nothing is, and a recall that falls is hidden."""
    ones = [year(seed, 0.92, later=0.75, change=180) for seed in range(years)]
    falsely = np.mean([of_population(one)[:180].max() >= change_limit(4) for one in ones])
    noticed = [first_day(of_recall(one, 0.853, weighted=False), change_limit(2)) for one in ones]
    share = np.isfinite(noticed).mean()
    print(f"false alarms of B {falsely:.0%}, falling recalls noticed {share:.0%}")
    assert falsely > 0.9
    assert share < 0.1

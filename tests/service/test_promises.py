"""Verdicts on promises, by simulation with a known truth: neither hasty nor worn out by looking."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

import numpy as np
import pytest

from adacos.kernels.change import log_evidence, log_growth
from adacos.service import readiness
from adacos.service.case_tallies import Tally
from adacos.service.promises import CertifiedRecall, Promises
from adacos.service.recent import FALSE_ALARMS, change_limit
from adacos.service.summary import summary

MISS = 1000.0
WEEK = "2026-01-05"


def policy(bound: float | None = None):
    """What is promised of a model of two classes."""
    certified = [] if bound is None else [CertifiedRecall(1, [1], bound)]
    return Promises("0" * 16, [0, 1], None, [[0.0, 10.0], [MISS, 0.0]], certified, [], {})


def negatives(cases: int, missed: int, expected_share: float) -> list[Tally]:
    """Cases called negative, of which some were positive; each promised an expected cost."""
    expected = 1.0 + expected_share * MISS
    return [
        Tally(0, outcome, "followed", n, n * 1.0, n * expected, WEEK)
        for outcome, n in ((0, cases - missed), (1, missed))
        if n
    ]


@pytest.mark.parametrize("cases", [30, 100, 1000])
def test_a_miss_rate_twice_the_promised_one_is_hardly_ever_called_kept(cases):
    """1% against 0.5%: logs without a miss yet must not pass for proof."""
    missed = np.random.default_rng(cases).binomial(cases, 0.01, size=300)
    kept = [
        int(np.sum(missed == one))
        for one in np.unique(missed)
        if summary(policy(), negatives(cases, int(one), 0.005), 0).total_cost.promise == "kept"
    ]
    assert sum(kept) <= 0.05 * len(missed)


def test_a_promise_that_is_kept_is_called_so_in_the_end():
    found = summary(policy(), negatives(20_000, 40, 0.005), 0).total_cost
    assert found.promise == "kept"
    assert found.observed == pytest.approx(1.0 + 0.002 * MISS)
    assert summary(policy(), negatives(20_000, 200, 0.005), 0).total_cost.promise == "broken"


def test_an_exact_promise_read_every_ten_cases_is_rarely_called_broken():
    rng = np.random.default_rng(7)
    logs, cases = 150, 200
    wrong = np.cumsum(rng.random((logs, cases)) < 0.1, axis=1)

    @cache
    def verdict(n: int, errors: int):
        return summary(policy(), negatives(n, errors, 0.1), 0).total_cost.promise

    called = sum(
        any(verdict(n, int(log[n - 1])) != "undecided" for n in range(10, cases + 1, 10))
        for log in wrong
    )
    assert called / logs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / logs)


def positives(found: int, missed: int) -> list[Tally]:
    return [
        Tally(label, 1, "followed", n, float(n), float(n), WEEK)
        for label, n in ((1, found), (0, missed))
        if n
    ]


def test_recall_exactly_as_certified_read_every_ten_positives():
    rng = np.random.default_rng(3)
    logs, cases = 150, 300
    found = np.cumsum(rng.random((logs, cases)) < 0.9, axis=1)

    @cache
    def verdict(n: int, hits: int):
        return summary(policy(bound=0.9), positives(hits, n - hits), 0).certified_recall.promise

    called = sum(
        any(verdict(n, int(log[n - 1])) == "broken" for n in range(10, cases + 1, 10))
        for log in found
    )
    assert called / logs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / logs)


def test_a_target_without_certificate_is_no_promise():
    found = summary(policy(), positives(0, 50), 0)
    assert found.recall.promised is None
    assert found.recall.promise is None
    assert found.certified_recall is None


def test_certified_recalls_of_several_classes_are_judged_one_by_one():
    certified = [CertifiedRecall(1, [1], 0.9), CertifiedRecall(2, [2], 0.5)]
    classes, costs = ["ash", "elm", 'the "oak"'], (100.0 * (1 - np.eye(3))).tolist()
    made = Promises("0" * 16, classes, None, costs, certified, [], {})
    tallies = [
        Tally(label, outcome, course, n, float(n), float(n), WEEK)
        for label, outcome, course, n in (
            (1, 1, "followed", 40),
            (0, 1, "followed", 160),
            (2, 2, "followed", 195),
            (1, 2, "followed", 5),
            # Who departs from the questions is not among those promised anything.
            (0, 2, "departed", 500),
        )
    ]
    found = summary(made, tallies, 0)
    assert found.certified_recall is None
    assert found.certified_recalls["elm"].promise == "broken"
    assert found.certified_recalls["elm"].observed == pytest.approx(0.2)
    assert found.certified_recalls['the "oak"'].promise == "kept"
    assert "certified_recalls" not in summary(policy(), positives(3, 1), 0).to_dict()
    reported = readiness._promises(found)
    assert 'what="certified_recall of the \\"oak\\"",promise="kept"} 1.0' in reported


FIRST = date(2026, 1, 5)
PROMISED, A_DAY, ILL = 0.853, 20, 0.35


def days(recalls: list[float], seed: int) -> list[Tally]:
    """Twenty cases a day, a third of them ill, of whom so many are found; the well cost nothing."""
    rng = np.random.default_rng(seed)
    tallies = []
    for day, recall in enumerate(recalls):
        ill = int(rng.binomial(A_DAY, ILL))
        found = int(rng.binomial(ill, recall))
        monday = (FIRST + timedelta(days=day - day % 7)).isoformat()
        for label, cases in ((1, found), (0, ill - found)):
            if cases:
                stated = cases * (1.0 + (1 - PROMISED) * MISS)
                tallies.append(Tally(label, 1, "followed", cases, float(cases), stated, monday))
    return tallies


def up_to(tallies: list[Tally], day: date) -> list[Tally]:
    return [tally for tally in tallies if tally.week < day.isoformat()]


def test_a_recall_that_decays_is_noticed_though_the_mean_of_all_cases_is_high():
    """From 92% to 75% on day 180, and from 95% to 60% on day 270, where 85.3% are certified."""
    for high, low, day, seed in ((0.92, 0.75, 180, 0), (0.95, 0.6, 270, 1)):
        tallies = days([high] * day + [low] * 60, seed)
        change_day = FIRST + timedelta(days=day)
        before = summary(policy(bound=PROMISED), up_to(tallies, change_day), 0).certified_recall
        assert (before.promise, before.change) == ("kept", None)
        found = summary(policy(bound=PROMISED), tallies, 0).certified_recall
        assert found.observed > PROMISED
        assert found.promise == "broken"
        since = date.fromisoformat(found.change.since)
        assert abs((since - change_day).days) < 21
        assert abs(found.change.observed - low) < 0.1
        assert found.change.cases < found.cases


def test_a_cost_that_rises_is_noticed_though_the_mean_of_all_cases_is_low():
    """Errors were half as frequent as stated, and are then twice as frequent."""
    stated, weeks = 0.05, [0.025] * 30 + [0.1] * 8
    rng = np.random.default_rng(2)
    tallies = []
    for week, share in enumerate(weeks):
        missed = int(rng.binomial(100, share))
        monday = (FIRST + timedelta(weeks=week)).isoformat()
        for outcome, cases in ((0, 100 - missed), (1, missed)):
            expected = cases * (1.0 + stated * MISS)
            tallies.append(Tally(0, outcome, "departed", cases, float(cases), expected, monday))
    found = summary(policy(), tallies, 0).total_cost
    assert found.observed < found.promised
    assert found.promise == "broken"
    assert found.change.since >= (FIRST + timedelta(weeks=27)).isoformat()
    assert found.change.observed > found.change.promised == pytest.approx(1.0 + stated * MISS)
    early = [tally for tally in tallies if tally.week < found.change.since]
    assert summary(policy(), early, 0).total_cost.change is None


def test_promises_that_are_kept_are_rarely_called_changed():
    """Five years of three hundred services, looked at after every day; 5% a year at most."""
    services, weeks = 300, 261
    rng = np.random.default_rng(4)
    # Two labels, of which one error costs ten times the other; shares of errors as stated.
    cases = np.stack([np.full((services, weeks), 90), np.full((services, weeks), 10)], axis=-1)
    shares, most = np.array([0.05, 0.3]), np.array([MISS, 100.0])
    wrong = rng.binomial(cases, shares)
    limit, called = change_limit(1), 0
    for one in range(services):
        growth = log_growth(wrong[one] @ most, cases[one] * shares * most, cases[one], most)
        called += bool(np.any(log_evidence(growth) >= limit))
    rate = 5 * FALSE_ALARMS
    assert called / services <= rate + 3 * np.sqrt(rate * (1 - rate) / services)


def test_the_evidence_of_a_change_is_that_of_its_definition():
    """R is the mean over λ of the sum over the first periods of products, here computed one by one.

    Counts of cases of several stated shares give no more of it than the cases one by one.
    """
    rng = np.random.default_rng(5)
    periods, most = 6, 3.0
    stated = [rng.random(4) * most for _ in range(periods)]
    paid = [most * (rng.random(4) < 0.4) for _ in range(periods)]
    total, promised = np.array([p.sum() for p in paid]), np.array([[s.sum()] for s in stated])
    found = log_evidence(log_growth(total, promised, np.full((periods, 1), 4), [most]))
    weights = np.geomspace(0.15 / most, 2.5 / most, 8)
    for last in range(periods):
        alike, single = 0.0, 0.0
        for weight in weights:
            for first in range(last + 1):
                of_counts, one_by_one = 1.0, 1.0
                for k in range(first, last + 1):
                    mean = promised[k, 0] / (4 * most)
                    for c, m in zip(paid[k], stated[k] / most, strict=True):
                        up = np.exp(weight * c)
                        of_counts *= up / (1 - mean + mean * np.exp(weight * most))
                        one_by_one *= up / (1 - m + m * np.exp(weight * most))
                alike += of_counts / len(weights)
                single += one_by_one / len(weights)
        assert np.exp(found[last]) == pytest.approx(alike)
        assert alike <= single

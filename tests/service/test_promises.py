"""Verdicts on promises, by simulation with a known truth: neither hasty nor worn out by looking."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from adacos.service import readiness
from adacos.service import summary as summaries
from adacos.service.case_log import Tally
from adacos.service.summary import summary

MISS = 1000.0


def policy(bound: float | None = None, target: float | None = None):
    """What the summary reads of a policy."""
    made = SimpleNamespace(rule_=SimpleNamespace(matrix=np.array([[0.0, 10.0], [MISS, 0.0]])))
    if bound is not None:
        made.certificate_ = SimpleNamespace(bound=bound)
    if target is not None:
        made.target_recall = target
    return made


@pytest.fixture(autouse=True)
def _named(monkeypatch):
    monkeypatch.setattr(summaries, "fingerprint", lambda policy: "0" * 16)


def negatives(cases: int, missed: int, expected_share: float) -> list[Tally]:
    """Cases called negative, of which some were positive; each promised an expected cost."""
    expected = 1.0 + expected_share * MISS
    return [
        Tally(0, outcome, "followed", n, n * 1.0, n * expected)
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
        Tally(label, 1, "followed", n, float(n), float(n))
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
    found = summary(policy(target=0.9), positives(0, 50), 0)
    assert found.recall.promised is None
    assert found.recall.promise is None
    assert found.certified_recall is None


def test_certified_recalls_of_several_classes_are_judged_one_by_one():
    made = SimpleNamespace(
        rule_=SimpleNamespace(matrix=100.0 * (1 - np.eye(3))),
        classes_=np.array(["ash", "elm", 'the "oak"']),
        certificate_=SimpleNamespace(classes=("elm", 'the "oak"'), bounds=(0.9, 0.5)),
    )
    tallies = [
        Tally(label, outcome, course, n, float(n), float(n))
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
    told = readiness._promises(found)
    assert 'what="certified_recall of the \\"oak\\"",promise="kept"} 1.0' in told

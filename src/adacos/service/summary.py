"""What was observed on recorded cases, with intervals, beside what the model promised.

Shares have exact binomial intervals, the mean total cost one by the normal approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from adacos.consultation import fingerprint
from adacos.kernels.binomial import interval
from adacos.policies.base import BasePolicy
from adacos.service.case_log import Tally

CONFIDENCE = 0.95
# Two-sided normal quantile of this confidence.
_QUANTILE = 1.959963984540054
# Cases from which on the normal approximation is trusted with a verdict.
_ENOUGH = 30


def summary(policy: BasePolicy, tallies: list[Tally], of_other_models: int) -> dict[str, Any]:
    """The summary as plain JSON values.

    The promised total cost is the mean of what was expected when each case was classified, the
    promised recall the target. A certificate speaks of consultations that begin with nothing known
    and follow the questions, so those are judged on their own. Nothing is promised of cases that
    the user stopped early, who may know more than the model: they are kept apart.
    """
    ended = [tally for tally in tallies if tally.course != "stopped"]
    stopped = [tally for tally in tallies if tally.course == "stopped"]
    certificate = getattr(policy, "certificate_", None)
    matrix = policy.rule_.matrix.tolist()
    return {
        "model": fingerprint(policy),
        "confidence": CONFIDENCE,
        "of_other_models": of_other_models,
        **_observed(ended, matrix, promising=True, target=getattr(policy, "target_recall", None)),
        "certified_recall": None
        if certificate is None
        else _share(
            [tally for tally in _closed(ended) if tally.course == "followed"],
            _positive,
            _answered_positive,
            certificate.bound,
        ),
        "stopped_early": _observed(stopped, matrix, promising=False, target=None),
    }


def _observed(
    tallies: list[Tally], matrix: list[list[float]], *, promising: bool, target: float | None
) -> dict[str, Any]:
    """Costs and shares of some cases, beside what was expected of them if that is a promise."""
    closed, cases = _closed(tallies), _cases(tallies)
    total_cost = _total_cost(closed, matrix)
    return {
        "cases": cases,
        "with_outcome": _cases(closed),
        "covariate_cost": sum(tally.cost for tally in tallies) / cases if cases else None,
        "total_cost": total_cost
        if promising
        else {**total_cost, "promised": None, "promise": None},
        "recall": _share(closed, _positive, _answered_positive, target),
        "false_discovery_rate": _share(
            closed, _answered_positive, lambda tally: tally.outcome == 0, None
        ),
    }


def _closed(tallies: list[Tally]) -> list[Tally]:
    return [tally for tally in tallies if tally.outcome is not None]


def _positive(tally: Tally) -> bool:
    return tally.outcome == 1


def _answered_positive(tally: Tally) -> bool:
    return tally.label == 1


def _cases(tallies: Iterable[Tally]) -> int:
    return sum(tally.cases for tally in tallies)


def _verdict(*, kept: bool, broken: bool) -> str:
    """What the interval says about a promise."""
    return "kept" if kept else "broken" if broken else "undecided"


def _share(
    tallies: list[Tally],
    among: Callable[[Tally], bool],
    counted: Callable[[Tally], bool],
    promised: float | None,
) -> dict[str, Any]:
    """Share of `counted` cases among some, with exact bounds; a promise is a lower limit."""
    relevant = [tally for tally in tallies if among(tally)]
    total, successes = _cases(relevant), _cases(tally for tally in relevant if counted(tally))
    low, high = (float(bound) for bound in interval(successes, total, CONFIDENCE))
    promise = None
    if promised is not None and total:
        promise = _verdict(kept=low >= promised, broken=high < promised)
    return {
        "observed": successes / total if total else None,
        "low": low,
        "high": high,
        "promised": promised,
        "promise": promise,
        "cases": total,
    }


def _total_cost(closed: list[Tally], matrix: list[list[float]]) -> dict[str, Any]:
    n = _cases(closed)
    empty = {"observed": None, "low": None, "high": None, "promised": None, "promise": None}
    if n == 0:
        return {**empty, "cases": 0}
    # Each case costs what it paid plus C[outcome, label].
    total = squares = 0.0
    for tally in closed:
        wrong = matrix[int(tally.outcome or 0)][tally.label]
        total += tally.cost + tally.cases * wrong
        squares += tally.squared_cost + 2 * wrong * tally.cost + tally.cases * wrong**2
    mean, promised = total / n, sum(tally.expected_cost for tally in closed) / n
    if n == 1:
        return {**empty, "observed": mean, "promised": promised, "cases": 1}
    variance = max(squares - n * mean**2, 0.0) / (n - 1)
    half = _QUANTILE * math.sqrt(variance / n)
    enough = n >= _ENOUGH
    return {
        "observed": mean,
        "low": mean - half,
        "high": mean + half,
        "promised": promised,
        "promise": _verdict(
            kept=enough and mean + half <= promised, broken=enough and mean - half > promised
        ),
        "cases": n,
    }

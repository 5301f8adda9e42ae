"""Whether the case log answers, and what it says about promises, for probes and for Prometheus.

Probes need no key, so what they learn is kept for a moment: many of them cost no more than one.
"""

from __future__ import annotations

import time
from typing import Literal

from sqlalchemy.exc import SQLAlchemyError

from adacos.service.access import BusyError
from adacos.service.case_routes import PolicyCases
from adacos.service.database import LogLostError
from adacos.service.logs import LOG, error_kind
from adacos.service.summary import Summary

# How long (seconds) an answer of the log is good for.
_KEPT = 1.0
_ERRORS = (SQLAlchemyError, LogLostError, BusyError)

State = Literal["ready", "failing", "absent"]


class Readiness:
    """The state of one policy's case log."""

    def __init__(self, cases: PolicyCases | None) -> None:
        self._cases = cases
        self._state: State = "absent" if cases is None else "failing"
        self._until = 0.0

    async def of_case_log(self) -> State:
        """Whether the log is there and is the one that was opened."""
        if self._cases is not None and time.monotonic() > self._until:
            # Others that ask meanwhile are given what was known before.
            self._until = time.monotonic() + _KEPT
            try:
                await self._cases.threads.run(self._cases.log.check)
                self._state = "ready"
            except _ERRORS as error:
                if self._state == "ready":
                    LOG.error("case log failed", extra=error_kind(error))
                self._state = "failing"
        return self._state

    async def metrics(self) -> str:
        """The state of the log and of the promises, in the text format of Prometheus."""
        if self._cases is None:
            return ""
        try:
            summary = await self._cases.threads.run(self._cases.summary)
        except _ERRORS:
            return _gauge("adacos_case_log_up", "Whether the case log answers.", {"": 0.0})
        return _gauge("adacos_case_log_up", "Whether the case log answers.", {"": 1.0}) + _promises(
            summary
        )


def _promises(summary: Summary) -> str:
    shown = {_escaped(what): interval for what, interval in summary.shown.items()}
    values = {
        f'{{what="{what}",value="{name}"}}': float(getattr(interval, name))
        for what, interval in shown.items()
        for name in ("observed", "low", "high", "promised")
        if getattr(interval, name) is not None
    }
    verdicts = {
        f'{{what="{what}",promise="{verdict}"}}': float(interval.promise == verdict)
        for what, interval in shown.items()
        if interval.promise is not None
        for verdict in ("kept", "broken", "undecided")
    }
    counts = {
        '{kind="all"}': float(summary.cases),
        '{kind="with_outcome"}': float(summary.with_outcome),
    }
    changed = {
        f'{{what="{what}"}}': float(interval.change is not None)
        for what, interval in shown.items()
        if interval.promise is not None
    }
    recent = {
        f'{{weeks="{window.weeks or "all"}",what="{_escaped(what)}",value="{name}"}}': value
        for window in summary.windows
        for what, pair in window.compared.items()
        for name, value in vars(pair).items()
        if value is not None
    }
    known = {
        f'{{answer="{_escaped(one.answer)}",kind="{kind}"}}': float(number)
        for one in summary.coverage
        for kind, number in (("all", one.cases), ("with_outcome", one.with_outcome))
    }
    return (
        _gauge("adacos_cases", "Cases of this model that ran to their end.", counts)
        + _gauge("adacos_observed", "What was observed, with bounds that always hold.", values)
        + _gauge("adacos_promise", "1 at what the bounds say about a promise.", verdicts)
        + _gauge("adacos_changed", "1 where the last weeks speak against a promise.", changed)
        + _gauge("adacos_recent", "Means of the last weeks, and what was promised.", recent)
        + _gauge("adacos_answers", "Cases by answer, and those with an outcome.", known)
    )


def _escaped(label: str) -> str:
    """A class in the value of a label of Prometheus."""
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _gauge(name: str, text: str, values: dict[str, float]) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
    lines += [f"{name}{labels} {value!r}" for labels, value in values.items()]
    return "\n".join(lines) + "\n"

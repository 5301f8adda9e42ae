"""Whether a certificate covers a consultation: the only place that decides it, and says so.

A certificate is about consultations that begin with nothing known and are answered as asked, for
rows like those it was made with. Terminal, page, HTTP and case log all ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adacos.consultation.steps import Acquire

if TYPE_CHECKING:
    from adacos.consultation.consultation import Consultation


def departures(consultation: Consultation) -> tuple[str, ...]:
    """Why no certificate covers a consultation, as clauses; none where it does."""
    found = (
        (consultation.known, "values were known from the start"),
        (consultation.missing, "a question was skipped"),
        (_has_other_values(consultation), "a value was entered that was not asked for"),
        (consultation.warnings, "a value is unlike those in training"),
        (consultation.stopped, "it was stopped early"),
        (consultation.must or consultation.never, "somebody chose what is asked"),
    )
    return tuple(reason for holds, reason in found if holds)


def not_covered(reasons: tuple[str, ...]) -> str:
    """The caveat to print before a certificate; empty where it covers the consultation."""
    if not reasons:
        return ""
    *others, last = reasons
    described = f"{', '.join(others)} and {last}" if others else last
    return f"The certificate does not cover this consultation: {described}."


def _has_other_values(consultation: Consultation) -> bool:
    """Whether there are values that the policy, asked step by step, would not have asked for."""
    left = {k: v for k, v in consultation.values.items() if k not in consultation.known}
    missing, asked = set(consultation.missing), consultation.begun_again()
    while left and isinstance(step := asked.next(), Acquire):
        answered = {name: left.pop(name) for name in step.covariates if name in left}
        skipped = missing.intersection(step.covariates)
        if len(answered) + len(skipped) < len(step.covariates):
            break
        if answered:
            asked.observe(answered)
        if skipped:
            asked.unavailable(*skipped)
    return bool(left)

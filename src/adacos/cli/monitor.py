"""`adacos monitor`: whether the promises of a model hold, and whether its cases have changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from adacos.cli.cases import Log, opened, user
from adacos.cli.common import Json
from adacos.exceptions import InvalidInputError
from adacos.validation import choices, listed

if TYPE_CHECKING:
    from adacos.service.case_log import CaseLog
    from adacos.service.drift import Shift, Watched
    from adacos.service.recent import MeanAndPromise
    from adacos.service.summary import Summary

_OF_PROMISE = (
    "See whether covariates, patients or the recording of outcomes have changed. Then recalibrate "
    "on recent rows (adacos recalibrate), or fit again to have a certificate again."
)
_OF_VALUES = (
    "See whether the unit, the instrument or the patients have changed. Promises may still hold: "
    "recent outcomes say so."
)


def monitor(
    context: typer.Context,
    log: Log,
    model: Annotated[
        str | None,
        typer.Option(help="Fingerprint of the model; by default the one served last."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch promises and cases over time.

    Compares what was promised with the recorded cases, and names what has
    changed, since when, and what to do. Look as often as you like: where nothing
    changes, something is called changed in 5% of years at most.

    Ends with code 1 if anything has changed.

    Example:

        adacos monitor sqlite:///cases.db
    """
    case_log = opened(context, log)
    from adacos.service.case_chain import Author
    from adacos.service.drift import watched
    from adacos.service.summary import summary

    name = _chosen(case_log, model)
    promises = case_log.promises_of(name)
    if promises is None:
        raise InvalidInputError(
            "model",
            "the log must keep what it promises",
            name,
            "Start the service with this model once; --earlier will do.",
        )
    found = summary(promises, *case_log.tallies(name, Author(user(), "adacos monitor")))
    values = watched(promises, case_log.consultations(name))
    changes = {what: one.change for what, one in found.shown.items() if one.change is not None}
    if as_json:
        shown = {"summary": found.to_dict(), "watched": [asdict(one) for one in values]}
        typer.echo(json.dumps(shown))
    else:
        for line in (*_lines(found), *_value_lines(values)):
            typer.echo(line)
        for what, change in changes.items():
            typer.echo(
                f"CHANGED {what.replace('_', ' ')}: since {change.since} {change.observed:.4g} in "
                f"{change.cases} cases, {change.promised:.4g} promised. {_OF_PROMISE}"
            )
        for one in values:
            if one.change is not None:
                typer.echo(f"CHANGED {one.what}: {_shift(one.change)}. {_OF_VALUES}")
    if changes or any(one.change is not None for one in values):
        raise typer.Exit(1)


def _chosen(log: CaseLog, model: str | None) -> str:
    known = log.models()
    if not known:
        raise InvalidInputError("log", "must know a model", "none", "Serve one on it first.")
    if model is not None and model not in known:
        raise InvalidInputError(
            "model", "must be one of the log", model, choices([model], known, "They are")
        )
    return known[0] if model is None else model


def _lines(found: Summary) -> list[str]:
    """Cases, outcomes and windows."""
    known = [
        f"{one.with_outcome / one.cases:.0%} of {one.answer}" for one in found.coverage if one.cases
    ]
    lines = [f"Model {found.model}: {found.cases} cases, {found.with_outcome} with an outcome"]
    if known:
        lines.append(f"Outcomes are known of {listed(known)} by answer.")
    for window in found.windows:
        when = f"since {window.since}"
        if window.weeks is not None:
            when = f"last {window.weeks} weeks, {when}"
        pairs = window.compared.items()
        shown = ", ".join(f"{what.replace('_', ' ')} {_pair(what, one)}" for what, one in pairs)
        lines.append(f"{when}: {window.cases} cases, {shown}")
    return lines


def _value_lines(values: list[Watched]) -> list[str]:
    """Of covariates only: answers and numbers of questions are always there."""
    return [
        f"{one.what}: {one.cases} cases, {one.unavailable} unavailable, {one.outside} out of range"
        for one in values[:-2]
        if one.cases
    ]


def _pair(what: str, compared: MeanAndPromise) -> str:
    def shown(number: float | None) -> str:
        form = ".4g" if what == "total_cost" else ".1%"
        return "unknown" if number is None else f"{number:{form}}"

    promised = "" if compared.promised is None else f" ({shown(compared.promised)} promised)"
    return shown(compared.observed) + promised


def _shift(change: Shift) -> str:
    shown = f"{change.cases} cases since {change.since} are not as those before"
    if change.before is None or change.after is None:
        return shown
    return f"{shown}: mean {change.after:.4g} after {change.before:.4g}"

"""`adacos cases`: check the case log, and delete from it what may not be kept."""

from __future__ import annotations

import getpass
import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from adacos.cli.common import Json, say
from adacos.cli.serve import check_case_log, need_service

if TYPE_CHECKING:
    from adacos.service.case_log import CaseLog

app = typer.Typer(
    help="Check a case log, or delete old cases.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Log = Annotated[
    str,
    typer.Argument(
        envvar="ADACOS_CASE_LOG",
        help="URL of the log, such as sqlite:///cases.db; with a password in the environment.",
        show_envvar=True,
    ),
]


@app.command()
def verify(
    context: typer.Context,
    log: Log,
    head: Annotated[
        str | None,
        typer.Option(help="Head that an earlier check printed; it must be there."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no case was changed.

    Cases, outcomes and audit must be as they were recorded.

    Keep the head that it prints somewhere else: nobody can then change the log before it unnoticed.
    Ends with code 1 if anything was changed or is missing.

    Example:

        adacos cases verify sqlite:///cases.db
    """
    verdict = opened(context, log).verify(head)
    if as_json:
        typer.echo(json.dumps(asdict(verdict)))
    else:
        typer.echo(
            f"{verdict.cases} cases, {verdict.deleted} deleted, {verdict.rows} rows of audit; "
            f"head {verdict.head}"
        )
        for what in verdict.changed:
            typer.echo(f"changed: {what}")
        for case_id in verdict.missing:
            typer.echo(f"missing: case {case_id}")
    if verdict.changed or verdict.missing:
        raise typer.Exit(1)


@app.command()
def delete(
    context: typer.Context,
    log: Log,
    before: Annotated[
        datetime,
        typer.Option(formats=["%Y-%m-%d"], help="Cases recorded before this day (UTC) go."),
    ],
) -> None:
    """Delete old cases.

    Their outcomes go too; the audit keeps their identifiers and your name.

    Example:

        adacos cases delete sqlite:///cases.db --before 2026-01-01
    """
    from adacos.service.case_chain import Author

    log_there = opened(context, log)
    author = Author(user(), "adacos cases delete")
    deleted, gone = log_there.delete(before.replace(tzinfo=UTC).isoformat(), author)
    typer.echo(f"{deleted} cases deleted")
    if not gone:
        say(
            "Their values are in the journal (the file whose name ends in -wal) until nobody reads "
            "the log meanwhile: run the command again, or stop the service.",
            err=True,
        )
        raise typer.Exit(1)


def opened(context: typer.Context, log: str) -> CaseLog:
    """The log behind a URL, which must be there."""
    need_service()
    from adacos.service.case_log import CaseLog

    check_case_log(context, "log", log)
    return CaseLog(log, create=False)


def user() -> str:
    """Who acts, for the audit."""
    try:
        return getpass.getuser()[:64]
    except (OSError, KeyError):
        return f"user {os.getuid()}"

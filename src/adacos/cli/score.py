"""`adacos score`: answer every row of a file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from adacos.batch import ScoreSummary, check_folders, score_file, score_folder
from adacos.cli.common import (
    Decimal,
    Encoding,
    EscapeFormulas,
    ExpectSha256,
    FlagUnusual,
    Json,
    KeyColumn,
    Model,
    SkipMalformed,
    load_policy,
    print_json,
    progress,
    report_malformed,
    say,
)
from adacos.cli.table_columns import split_columns, split_names
from adacos.cli.workers import DaskTimeout, connect, refuse_timeout_alone
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.tables.description import Description, description_of
from adacos.tables.reading import CHUNK_ROWS
from adacos.tables.writing import refuse_same_file
from adacos.validation import listed

_WORDS = {
    "outside_range": "outside the range",
    "implausible": "implausible",
    "unknown_category": "unknown categories",
    "unknown_value": "values never seen",
}
Known = Annotated[
    list[str] | None,
    typer.Option(help="Covariate known from the start; several separated by commas."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(help="Column to copy, such as an identifier; several separated by commas."),
]


def score(
    model: Model,
    source: Annotated[
        Path, typer.Argument(help="CSV (plain or .gz), .xlsx, Parquet, or a folder.")
    ],
    destination: Annotated[
        Path, typer.Argument(help="CSV or Parquet file to write; a folder with --dask.")
    ],
    known: Known = None,
    keep: Keep = None,
    key: KeyColumn = None,
    flag_unusual: FlagUnusual = False,
    escape_formulas: EscapeFormulas = False,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = CHUNK_ROWS,
    dask: Annotated[
        str | None,
        typer.Option(help="Dask scheduler whose workers answer, such as tcp://host:8786."),
    ] = None,
    dask_timeout: DaskTimeout = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Answer every row of a file of any size.

    An empty cell is a value that cannot be acquired, as is a covariate without a column. Where
    values may still be acquired, `adacos next` says which; blank cells of covariates with a cost
    are counted, but for those that workers read. The output appears only when it is complete.
    Values behind an answer that are implausible, outside the training range or never seen in
    training are counted in the summary; --flag-unusual names them row by row.

    With --dask the workers read Parquet files and write a new folder of
    Parquet files; both must be on a disk that they share.

    Example:

        adacos score model.adacos patients.csv answers.csv --keep id
    """
    started = time.perf_counter()
    refuse_timeout_alone(dask, dask_timeout)
    refuse_same_file(destination, [model])
    options: dict[str, Any] = {
        "key": key,
        "skip_malformed": skip_malformed,
        "flag_unusual": flag_unusual,
        "escape_formulas": escape_formulas,
        "chunk_rows": chunk_rows,
        "encoding": encoding,
        "decimal": decimal,
    }
    if dask is not None:
        _check_alone(options)
        check_folders(source, destination)
    policy = load_policy(model, expect_sha256)
    columns: dict[str, Any] = {"known": split_names(known or [], policy.encoder_.names)}
    columns["keep"] = split_columns(keep or [], source, encoding, decimal)
    if dask is not None:
        client = connect(dask, dask_timeout)
        summary = _by_workers(policy, source, destination, client, columns, as_json)
    else:
        with progress(f"scoring {source.name}", as_json) as report:
            summary = score_file(policy, source, destination, **columns, **options, progress=report)
    seconds = time.perf_counter() - started
    report_malformed(summary.malformed)
    if as_json:
        _report_json(summary, destination, seconds)
    else:
        named = "column unusual" if flag_unusual else "--flag-unusual names them"
        named += " without --dask" * (dask is not None)
        _report_absent(summary.absent, source)
        _report_blank(summary)
        _report(summary, description_of(policy), destination, seconds, named)


def _check_alone(options: dict[str, Any]) -> None:
    """Refuse options that workers do not know."""
    usual = {"key": None, "chunk_rows": CHUNK_ROWS, "encoding": "utf-8-sig", "decimal": "."}
    for name, value in options.items():
        if value != usual.get(name, False):
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(
                option, "cannot be combined with --dask", value, "Leave one of the two out."
            )


def _by_workers(
    policy: BasePolicy,
    source: Path,
    destination: Path,
    client: Any,
    columns: dict[str, Any],
    as_json: bool,
) -> ScoreSummary:
    with client, progress(f"scoring {source.name}", as_json) as report:
        return score_folder(policy, source, destination, client, **columns, progress=report)


def _report_json(summary: ScoreSummary, destination: Path, seconds: float) -> None:
    malformed = [bad._asdict() for bad in summary.malformed]
    content = {**asdict(summary), "malformed": malformed, "seconds": round(seconds, 2)}
    print_json({"output": str(destination), **content})


def _report_absent(absent: Sequence[str], source: Path) -> None:
    if absent:
        say(
            f"{source.name} has no column {listed(absent)}: unavailable for every row. "
            "Where values may still be acquired, `adacos next` says which to acquire.",
            err=True,
        )


def _report_blank(summary: ScoreSummary) -> None:
    if summary.blank:
        cells = listed(f"{name} {count:,}" for name, count in summary.blank.items())
        say(
            f"Blank cells of covariates with a cost, taken as unavailable: {cells} (of "
            f"{summary.rows:,} rows). Where values are only not acquired yet, `adacos next` says "
            "which to acquire.",
            err=True,
        )


def _report(
    summary: ScoreSummary, said: Description, destination: Path, seconds: float, named: str
) -> None:
    counts = ", ".join(
        f"{count:,} x {said.class_name(label)}" for label, count in sorted(summary.labels.items())
    )
    say(
        f"{destination} written: {summary.rows:,} of {summary.rows_read:,} rows read, in "
        f"{seconds:.1f} s; {counts}; mean covariate cost {said.money(summary.mean_cost)}, mean "
        f"expected total cost {said.money(summary.mean_expected_cost)}"
    )
    if summary.unusual:
        unusual = ", ".join(f"{count:,} {_WORDS[kind]}" for kind, count in summary.unusual.items())
        rows = f"{summary.unusual_rows:,} row{'s' if summary.unusual_rows > 1 else ''}"
        say(f"Values unlike those in training: {unusual}, in {rows} ({named})", err=True)

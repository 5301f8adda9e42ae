"""`adacos score`: answer every row of a file."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from adacos.batch import ScoreSummary, score_file
from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    print_json,
    progress,
    say,
    tell_malformed,
)
from adacos.tables.description import Description, description_of
from adacos.tables.writing import refuse_same_file

_WORDS = {
    "outside_range": "outside the range",
    "implausible": "implausible",
    "unknown_category": "unknown categories",
    "unknown_value": "values never seen",
}


def score(
    model: Model,
    source: Annotated[Path, typer.Argument(help="CSV (plain or .gz) or Parquet file.")],
    destination: Annotated[Path, typer.Argument(help="CSV or Parquet file to write.")],
    known: Annotated[
        list[str] | None, typer.Option(help="Covariate known from the start; repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column to copy, such as an identifier; repeatable.")
    ] = None,
    flag_unusual: Annotated[
        bool,
        typer.Option(
            "--flag-unusual",
            help="Add a column with the values behind each answer that training did not see.",
        ),
    ] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="Put an apostrophe before text that a spreadsheet would take for a formula.",
        ),
    ] = False,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 50_000,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Answer every row of a file, of any size, into another file.

    An empty cell is a value that cannot be acquired. The output appears only when it is complete.
    Values behind an answer that are implausible, outside the training range or never seen in
    training are counted in the summary; --flag-unusual names them row by row.

    Example:

        adacos score model.adacos patients.csv answers.csv --keep id
    """
    started = time.perf_counter()
    refuse_same_file(destination, [model])
    policy = load_policy(model, expect_sha256)
    with progress(f"scoring {source.name}", as_json) as report:
        summary = score_file(
            policy,
            source,
            destination,
            known=known or [],
            keep=keep or [],
            skip_malformed=skip_malformed,
            flag_unusual=flag_unusual,
            escape_formulas=escape_formulas,
            chunk_rows=chunk_rows,
            encoding=encoding,
            decimal=decimal,
            progress=report,
        )
    seconds = time.perf_counter() - started
    tell_malformed(summary.malformed)
    if as_json:
        malformed = [bad._asdict() for bad in summary.malformed]
        content = {**asdict(summary), "malformed": malformed, "seconds": round(seconds, 2)}
        print_json({"output": str(destination), **content})
    else:
        _tell(summary, description_of(policy), destination, seconds, flag_unusual)


def _tell(
    summary: ScoreSummary, said: Description, destination: Path, seconds: float, flagged: bool
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
        where = "column unusual" if flagged else "--flag-unusual names them"
        rows = f"{summary.unusual_rows:,} row{'s' if summary.unusual_rows > 1 else ''}"
        say(f"Values unlike those in training: {unusual}, in {rows} ({where})", err=True)

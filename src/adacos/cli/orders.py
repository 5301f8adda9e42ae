"""`adacos next`: what to acquire next for every row of a file."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from adacos.batch import OrderSummary, next_file
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
from adacos.tables.description import Description, description_of
from adacos.tables.reading import CHUNK_ROWS
from adacos.tables.writing import refuse_same_file
from adacos.validation import listed


def next_steps(
    model: Model,
    source: Annotated[
        Path, typer.Argument(help="CSV, .xlsx or Parquet: what is known of each row so far.")
    ],
    destination: Annotated[Path, typer.Argument(help="CSV or Parquet file to write.")],
    known: Annotated[
        list[str] | None, typer.Option(help="Covariates whose values cost nothing, as a,b.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to copy; several separated by commas. Default: all but the covariates."
        ),
    ] = None,
    paid: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with what a row has paid so far. Default: the costs of its covariates.",
        ),
    ] = None,
    key: KeyColumn = None,
    flag_unusual: FlagUnusual = False,
    escape_formulas: EscapeFormulas = False,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = CHUNK_ROWS,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Say what to acquire next for every row.

    An empty cell has not been acquired yet, nor has a covariate without a column. The word
    unavailable in a cell says that the value cannot be acquired. Order what the column next of the
    output lists, fill the results into the input, and run the command again until every row has a
    label.

    Example:

        adacos next model.adacos known.csv orders.csv
    """
    started = time.perf_counter()
    refuse_same_file(destination, [model])
    policy = load_policy(model, expect_sha256)
    with progress(f"deciding about {source.name}", as_json) as report:
        summary = next_file(
            policy,
            source,
            destination,
            known=split_names(known or [], policy.encoder_.names),
            keep=None if keep is None else split_columns(keep, source, encoding, decimal),
            paid=paid,
            key=key,
            skip_malformed=skip_malformed,
            flag_unusual=flag_unusual,
            escape_formulas=escape_formulas,
            chunk_rows=chunk_rows,
            encoding=encoding,
            decimal=decimal,
            progress=report,
        )
    seconds = time.perf_counter() - started
    report_malformed(summary.malformed)
    if as_json:
        malformed = [bad._asdict() for bad in summary.malformed]
        content = {**asdict(summary), "malformed": malformed, "seconds": round(seconds, 2)}
        print_json({"output": str(destination), **content})
        return
    _report(summary, description_of(policy), source, destination, seconds)


def _report(
    summary: OrderSummary, said: Description, source: Path, destination: Path, seconds: float
) -> None:
    if summary.absent:
        say(f"{source.name} has no column {listed(summary.absent)}: not acquired yet.", err=True)
    say(f"{destination} written in {seconds:.1f} s: {_in_words(summary, said)}")
    if summary.unusual_rows:
        rows = f"{summary.unusual_rows:,} (--flag-unusual names them in the column unusual)"
        say(f"Rows with values unlike those in training: {rows}", err=True)


def _in_words(summary: OrderSummary, said: Description) -> str:
    stopped = sum(summary.labels.values())
    labels = [
        f"{count:,} x {said.class_name(label)}" for label, count in sorted(summary.labels.items())
    ]
    orders = [
        f"{count:,} x {said.label(name)}"
        for name, count in sorted(summary.orders.items(), key=lambda item: -item[1])
    ]
    stop = f"{stopped:,} stop" + (f" ({', '.join(labels)})" if labels else "")
    order = f"{summary.rows - stopped:,} continue"
    if orders:
        order += f" (next {', '.join(orders)}, for {said.money(summary.cost)} in all)"
    return f"{summary.rows:,} of {summary.rows_read:,} rows read; {stop}; {order}"

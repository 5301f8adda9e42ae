"""`adacos score`: answer every row of a file."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from adacos.batch import score_file
from adacos.cli.common import (
    Encoding,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    print_json,
    progress,
    tell_malformed,
)


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
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 50_000,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Answer every row of a file, of any size, into another file.

    An empty cell is a value that cannot be acquired. The output appears only when it is complete.

    Example:

        adacos score model.adacos patients.csv answers.csv --keep id
    """
    started = time.perf_counter()
    policy = load_policy(model)
    with progress(f"scoring {source.name}", as_json) as report:
        summary = score_file(
            policy,
            source,
            destination,
            known=known or [],
            keep=keep or [],
            skip_malformed=skip_malformed,
            chunk_rows=chunk_rows,
            encoding=encoding,
            progress=report,
        )
    seconds = time.perf_counter() - started
    tell_malformed(summary.malformed)
    if as_json:
        malformed = [bad._asdict() for bad in summary.malformed]
        content = {**asdict(summary), "malformed": malformed, "seconds": round(seconds, 2)}
        print_json({"output": str(destination), **content})
        return
    counts = ", ".join(f"{count:,} x {label}" for label, count in sorted(summary.labels.items()))
    typer.echo(
        f"{destination} written: {summary.rows:,} rows in {seconds:.1f} s; {counts}; "
        f"mean covariate cost {summary.mean_cost:.2f}, "
        f"mean expected total cost {summary.mean_expected_cost:.2f}"
    )

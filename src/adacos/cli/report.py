"""`adacos report`: one HTML page about a model on held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
from adacos.tables.description import description_of
from adacos.tables.reading import Kinds, TableFile
from adacos.tables.writing import refuse_same_file, whole_or_absent


def report(
    model: Model,
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Write a self-contained page: what the policy does, its costs, calibration and recall.

    The rows should not have been used for fitting.

    Example:

        adacos report model.adacos --data held_out.csv --target diabetes --out report.html
    """
    from adacos.cli.training import against, classes
    from adacos.report import write_report

    refuse_same_file(out, [model, data])
    policy = load_policy(model, expect_sha256)
    encoder = policy.encoder_
    kinds = Kinds.of(encoder)
    kinds = kinds._replace(text=kinds.text | {target})
    with progress(f"reading {data.name}", as_json) as tell:
        piece = TableFile(data, encoding=encoding, decimal=decimal).read(
            {*encoder.names, target}, kinds, skip_malformed=skip_malformed, progress=tell
        )
    tell_malformed(piece.malformed)
    given = piece.table.column(target)
    labelled = given != ""
    y = classes(given[labelled]) if positive is None else against(given[labelled], positive)
    table = piece.table.select(list(encoder.names))[labelled]
    with progress("drawing", as_json), whole_or_absent(out) as temporary:
        written = write_report(
            policy,
            table,
            y,
            temporary,
            title or description_of(policy).title or f"Report on {model.name}",
        )
    if as_json:
        print_json({"report": str(out), **written})
    else:
        say(f"{out} written: {len(y):,} rows, mean total cost {written['total_cost']:.2f}")

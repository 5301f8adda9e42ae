"""`adacos report`: one HTML page about a model on held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    HeldOutGroups,
    Json,
    Model,
    SkipMalformed,
    Uncertain,
    load_policy,
    print_json,
    progress,
    say,
)
from adacos.cli.prices import stated_uncertain
from adacos.tables.description import description_of
from adacos.tables.writing import check_output, refuse_same_file, whole_or_absent


def report(
    model: Model,
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    training: Annotated[
        Path | None,
        typer.Option(
            help="The rows that the model was fitted on, to compare it with boosting on the best "
            "fixed set of covariates."
        ),
    ] = None,
    uncertain: Uncertain = None,
    groups: HeldOutGroups = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Write a page about a model on held-out rows.

    One file: what the policy does, its costs, calibration and recall.
    The rows should not have been used for fitting. With --training the
    policy is compared with gradient boosting on the best fixed set of
    covariates, which is fitted on those rows; that takes up to a minute.

    Example:

        adacos report model.adacos --data held_out.csv --target diabetes --out report.html
    """
    from adacos.cli.held_out import read_held_out
    from adacos.report import write_report

    check_output(out, "--out")
    refuse_same_file(out, [model, data, *([training] if training else [])])
    policy = load_policy(model, expect_sha256)
    stated = stated_uncertain(policy, uncertain, decimal)
    as_given = target, positive, skip_malformed, encoding, decimal, as_json
    table, y, number = read_held_out(policy, data, *as_given, groups)
    learned = None if training is None else read_held_out(policy, training, *as_given)[:2]
    what = "drawing" if learned is None else "fitting boosting on fixed sets, and drawing"
    with progress(what, as_json), whole_or_absent(out) as temporary:
        written = write_report(
            policy,
            table,
            y,
            temporary,
            title or description_of(policy).title or f"Report on {model.name}",
            learned,
            number,
            stated,
        )
    if written["training_rows"]:
        say(
            f"warning: {written['training_rows']:,} of {len(y):,} rows are rows that the model was "
            "trained on: the report is too optimistic. Use other rows.",
            err=True,
        )
    if as_json:
        print_json({"report": str(out), **written})
    else:
        what, amount = "total cost", written.get("total_cost")
        if amount is None:
            what, amount = "cost of covariates and false alarms", written["operation_cost"]
        money = description_of(policy).money(amount)
        say(f"{out} written: {len(y):,} rows, mean {what} {money}")

"""`adacos sensitivity`: what depends on costs that are not known exactly."""

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
from adacos.tables.description import description_of


def sensitivity(
    model: Model,
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    uncertain: Uncertain = None,
    draws: Annotated[
        int,
        typer.Option(
            min=0, help="Draws of all costs, for the value of knowing them: 2 or more, or 0."
        ),
    ] = 50,
    plot: Annotated[
        Path | None, typer.Option(help="PNG, PDF or SVG file to draw the tornado diagram into.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    groups: HeldOutGroups = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Show what uncertain costs change.

    One cost at a time and all together, without another fit. Without
    --uncertain each cost is half of it to half as much again. The rows
    should not have been used for fitting.

    Example:

        adacos sensitivity model.adacos --data held_out.csv --target diabetes \\
            --uncertain false_negative=200:600,Glucose=10:25
    """
    from adacos.cli.held_out import read_held_out
    from adacos.cli.prices import stated_uncertain
    from adacos.cli.tradeoff import check_plot
    from adacos.document.style import check_matplotlib
    from adacos.policies.sensitivity import sensitivity as sensitivity_of
    from adacos.policies.sensitivity_figures import tornado_file
    from adacos.tables.writing import write_whole

    if plot is not None:
        check_plot(plot, [model, data])
        check_matplotlib()
    policy = load_policy(model, expect_sha256)
    stated = stated_uncertain(policy, uncertain, decimal)
    table, y, number = read_held_out(
        policy, data, target, positive, skip_malformed, encoding, decimal, as_json, groups
    )
    with progress("deciding at other costs", as_json):
        grid = 5 if as_json else 0
        found = sensitivity_of(policy, table, y, stated, draws=draws, grid=grid, groups=number)
    if plot is not None:
        currency = description_of(policy).currency or ""
        write_whole(plot, tornado_file(found, currency, plot.suffix[1:].lower()))
    if as_json:
        print_json(found.to_dict())
        return
    say(str(found))
    if plot is not None:
        say(f"{plot} written")

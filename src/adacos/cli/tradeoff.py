"""`adacos tradeoff`: what more spending on covariates saves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    HeldOutGroups,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    plain_console,
    print_json,
    progress,
    say,
)
from adacos.exceptions import InvalidInputError
from adacos.tables.description import description_of
from adacos.tables.writing import check_output, refuse_same_file


def tradeoff(
    model: Model,
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    plot: Annotated[
        Path | None, typer.Option(help="PNG, PDF or SVG file to draw the curve into.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, help="Most points of the curve.")] = 15,
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
    """Show covariate cost against error cost.

    For all mean budgets. The rows should not have been used for fitting. One model serves every
    budget; fit with --mean-budget to make one that keeps the budget chosen.

    Example:

        adacos tradeoff model.adacos --data held_out.csv --target diabetes --plot curve.png
    """
    from adacos.cli.held_out import read_held_out
    from adacos.document.style import check_matplotlib
    from adacos.policies.trade_off import trade_off
    from adacos.report.figures import trade_off_file
    from adacos.report.words import implied_cost
    from adacos.tables.writing import write_whole

    if plot is not None:
        check_plot(plot, [model, data])
        check_matplotlib()
    policy = load_policy(model, expect_sha256)
    table, y, number = read_held_out(
        policy, data, target, positive, skip_malformed, encoding, decimal, as_json, groups
    )
    with progress("walking the rows", as_json):
        curve = trade_off(policy, table, y, points=points, groups=number)
    if plot is not None:
        currency = description_of(policy).currency
        named = f" ({currency})" if currency else ""
        write_whole(plot, trade_off_file(curve, named, plot.suffix[1:].lower()))
    if as_json:
        own = None if curve.own is None else asdict(curve.own)
        print_json({"rows": curve.rows, **curve.to_dict(), "as_fitted": own})
        return
    plain_console().print(_table(curve, description_of(policy)))
    if note := implied_cost(policy.chosen):
        say(note)
    if policy.unwrapped.chosen.mean_budget is not None:
        times = 1 + policy.multiplier_
        say(
            f"To keep its mean budget, the model counts covariate costs {times:.4g} times: the "
            "last line is the model as it was fitted. The others are those of other budgets, from "
            "none at all."
        )
    if plot is not None:
        say(f"{plot} written")


def check_plot(plot: Path, inputs: list[Path]) -> None:
    """Refuse a file that no figure can be written to."""
    if plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InvalidInputError(
            "--plot", "must end in .png, .pdf or .svg", str(plot), "For example --plot curve.png."
        )
    check_output(plot, "--plot")
    refuse_same_file(plot, inputs)


def _table(curve: Any, said: Any) -> Table:
    """The curve as a table for people."""
    table = Table(f"covariate costs counted; means over {curve.rows:,} rows ± standard error")
    for title in ("covariates", "errors", "total"):
        table.add_column(title, justify="right")
    named = [(f"× {1 + p.multiplier:.4g}", p) for p in curve.points]
    if curve.own is not None:
        named.append(("as fitted", curve.own))
    for name, p in named:
        amounts = (
            (p.covariate_cost, p.covariate_error),
            (p.misclassification_cost, p.misclassification_error),
            (p.total_cost, p.total_error),
        )
        described = (f"{said.money(mean)} ± {error:.2f}" for mean, error in amounts)
        table.add_row(name, *described)
    return table

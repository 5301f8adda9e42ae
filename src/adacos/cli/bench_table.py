"""`adacos bench table`: methods side by side on a table of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from adacos.cli.bench_results import print_table
from adacos.cli.common import Decimal, Encoding, SkipMalformed, progress, report_malformed, say
from adacos.cli.prices import costs_given, read_prices
from adacos.cli.table_columns import (
    Categorical,
    Columns,
    Dates,
    Dropped,
    Groups,
    Numeric,
    read_dates,
)
from adacos.cli.training import check_errors, read_training_rows
from adacos.exceptions import InvalidInputError
from adacos.tables.reading import TableFile

_UNKNOWN = "To compare methods both errors need a cost."


def table(
    data: Annotated[Path, typer.Argument(help="CSV (plain or .gz), .xlsx or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class, two values or more.")],
    prices: Annotated[
        list[str] | None,
        typer.Option(help="TOML or CSV price list, or NAME=COST; may be given repeatedly."),
    ] = None,
    panel: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SHARED:MEMBER,MEMBER: covariates that share a cost."),
    ] = None,
    default_price: Annotated[
        float | None, typer.Option(help="Cost of covariates without one in --prices.")
    ] = None,
    false_positive: Annotated[
        float | None, typer.Option(help="Cost of a false alarm: positive is answered, wrongly.")
    ] = None,
    false_negative: Annotated[
        float | None, typer.Option(help="Cost of a missed case: negative is answered, wrongly.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive class; by default the second in order.")
    ] = None,
    drop: Dropped = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    date: Dates = None,
    groups: Groups = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas, or all; the others are compared with the first. "
            "Default: AdaCOS, Branching, COS, Full Model and boosting on the best fixed set."
        ),
    ] = None,
    splits: Annotated[int, typer.Option(help="Random five-fold splits.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; by default one per processor.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the report; a stopped run resumes there.")
    ] = Path("table"),
    plugin: Annotated[
        list[Path] | None, typer.Option(help="Python file that registers methods of your own.")
    ] = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON and nothing else.")
    ] = False,
) -> None:
    """Compare methods on a table of your own.

    The table, the price list and the costs of errors are given as to `adacos fit`. Every row is
    tested, also one with missing values, which cannot be acquired. Rows that look like copies of
    each other are kept in one fold, and so are those of a group that --groups names.

    Example:

        adacos bench table patients.csv --target diabetes --prices prices.toml
            --false-positive 100 --false-negative 1000
    """
    from joblib import cpu_count

    from adacos.bench.own_table import TableOptions, grouped, run_table
    from adacos.cli.bench import load_plugins, names_in
    from adacos.datasets import Dataset

    load_plugins(plugin or [])
    file = TableFile(data, encoding=encoding, decimal=decimal)
    columns = Columns(
        target,
        positive,
        drop or [],
        categorical or [],
        numeric or [],
        groups,
        dates=read_dates(date or [], file.columns),
    ).of(file)
    covariates = list(columns.covariates)
    listed_prices = read_prices(
        prices or [], panel or [], covariates, decimal, columns.others(file)
    )
    errors = {"false_positive": false_positive, "false_negative": false_negative}
    costs = costs_given(listed_prices, covariates, default_price, errors, _UNKNOWN)
    with progress(f"reading {data.name}", as_json) as report_progress:
        rows = read_training_rows(file, columns, skip_malformed, report_progress, many=True)
    check_errors(costs, rows, target)
    report_malformed(rows.malformed)
    if np.unique(rows.y, return_counts=True)[1].max() < 5:
        rule = "needs five rows of a class at least"
        raise InvalidInputError(data.name, rule, f"{len(rows.y)} rows", "Add rows.")
    dataset = Dataset(
        rows.table,
        rows.y,
        listed_prices.prices,
        listed_prices.panels,  # type: ignore[arg-type]
        str(data),
        tuple(covariates),
        rows.groups,
    )
    options = TableOptions(
        name=data.name.split(".")[0],
        table=dataset,
        misclassification=tuple(map(tuple, costs.matrix.tolist())),
        methods=names_in(methods),
        splits=splits,
        seed=seed,
        jobs=cpu_count() if jobs is None else jobs,
        out=out,
    )
    options, doubts = grouped(options)
    for doubt in doubts:
        say(f"warning: {doubt}", err=True)
    report = run_table(options, progress=False if as_json else None, doubts=doubts)
    if as_json:
        content = {"report": str(report.index), "table": report.records(), "warnings": doubts}
        typer.echo(json.dumps(content, indent=2))
    else:
        print_table(report)
    if report.failures:
        raise typer.Exit(1)

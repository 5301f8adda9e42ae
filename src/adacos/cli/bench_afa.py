"""`adacos bench afa`: accuracy under budgets, on made problems or on a table of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adacos.cli.bench_results import print_afa
from adacos.cli.common import Decimal, Encoding, SkipMalformed, progress, report_malformed
from adacos.cli.prices import read_prices
from adacos.cli.table_columns import Categorical, Columns, Dropped, Numeric
from adacos.cli.training import read_training_rows
from adacos.exceptions import InvalidInputError
from adacos.tables.reading import TableFile

if TYPE_CHECKING:
    from adacos.bench.afa_cases import TableSettings


def afa(
    data: Annotated[
        Path | None,
        typer.Option(help="CSV, .xlsx or Parquet to run on. Default: CUBE and its variants."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="With --data: column with the class.")] = None,
    prices: Annotated[
        list[str] | None,
        typer.Option(help="With --data: price list, or NAME=COST. Default: equal costs."),
    ] = None,
    drop: Dropped = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Names separated by commas. Default: AdaCOS, Branching, DIME, GDFS."),
    ] = None,
    instances: Annotated[int, typer.Option(help="Samples of each problem.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first sample.")] = 0,
    rows: Annotated[int, typer.Option(help="Most training rows.")] = 2000,
    quick: Annotated[
        bool, typer.Option("--quick", help="One sample of 400 rows, one problem, few methods.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; by default one per processor.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the report; a stopped run resumes there.")
    ] = Path("afa"),
    plugin: Annotated[
        list[Path] | None, typer.Option(help="Python file that registers methods of your own.")
    ] = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON and nothing else.")
    ] = False,
) -> None:
    """Compare accuracy under budgets.

    The protocol is that of AFABench. Every row may pay for 1, 2, 3, … covariates of mean cost,
    and is then classified.

    Example:

        adacos bench afa --data patients.csv --target diabetes --methods adacos,dime
    """
    from joblib import cpu_count

    from adacos.bench.afa import AFAOptions, run_afa
    from adacos.cli.bench import load_plugins, names_in

    if (data is None) != (target is None):
        given = "--target" if data is None else "--data"
        raise InvalidInputError("data", "goes with --target", given, "Give both or neither.")
    load_plugins(plugin or [])
    settings = None
    if data is not None and target is not None:
        file = TableFile(data, encoding=encoding, decimal=decimal)
        columns = Columns(target, None, drop or [], categorical or [], numeric or []).of(file)
        settings = [_own_table(file, columns, prices or [], skip_malformed, as_json)]
    report = run_afa(
        AFAOptions(
            methods=names_in(methods),
            settings=settings,
            instances=instances,
            seed=seed,
            rows=rows,
            jobs=cpu_count() if jobs is None else jobs,
            out=out,
            quick=quick,
        ),
        progress=False if as_json else None,
    )
    if as_json:
        typer.echo(json.dumps(report.summary(), indent=2))
    else:
        print_afa(report)
    if report.failures:
        raise typer.Exit(1)


def _own_table(
    file: TableFile, columns: Columns, prices: list[str], skip_malformed: bool, quiet: bool
) -> TableSettings:
    """The rows of a file, with their costs or equal ones."""
    from adacos.bench.afa_cases import TableSettings
    from adacos.datasets import Dataset

    covariates = list(columns.covariates)
    listed = read_prices(prices, [], covariates, ".", columns.others(file))
    costs = {name: float(listed.prices.get(name, 1.0)) for name in covariates}
    with progress(f"reading {file.path.name}", quiet) as report_progress:
        rows = read_training_rows(file, columns, skip_malformed, report_progress, many=True)
    report_malformed(rows.malformed)
    name = file.path.name.split(".")[0]
    panels: Any = listed.panels
    dataset = Dataset(rows.table, rows.y, costs, panels, str(file.path), tuple(covariates))
    return TableSettings.of(name, dataset)

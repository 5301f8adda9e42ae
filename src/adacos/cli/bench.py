"""`adacos bench`: run benchmarks and write their reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.bench_afa import afa
from adacos.cli.bench_results import (
    paper_as_json,
    print_budgets,
    print_lomax,
    print_paper,
    print_regret,
)
from adacos.cli.bench_table import table
from adacos.exceptions import AdacosError, InvalidInputError

app = typer.Typer(
    help="Run benchmarks and write their reports.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Out = Annotated[Path, typer.Option(help="Folder of the report; a stopped run resumes there.")]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one per processor.")]
Splits = Annotated[int, typer.Option(help="Random five-fold splits besides the paper's folds.")]
Seed = Annotated[int, typer.Option(help="Seed of the random splits.")]
Reference = Annotated[
    Path | None,
    typer.Option(help="Table of the authors' code's numbers, or the folder that holds it."),
]
Data = Annotated[
    list[str] | None,
    typer.Option(help="NAME=PATH of a data set that is not bundled, such as physionet=FOLDER."),
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option(help="Python file that registers methods or data sets of your own."),
]


@app.command()
def paper(
    methods: Annotated[
        str | None,
        typer.Option(help="Names separated by commas, or all. Default: AdaCOS, COS, Full Model."),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(help="Names separated by commas. Default: the bundled ones and --data."),
    ] = None,
    data: Data = None,
    splits: Splits = 0,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Out = Path("report"),
    quick: Annotated[bool, typer.Option("--quick", help="Two folds only.")] = False,
    reference: Reference = None,
    plugin: Plugin = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the claims as JSON and nothing else.")
    ] = False,
) -> None:
    """Reproduce the paper's tables and figures."""
    from joblib import cpu_count

    from adacos.bench.paper import PaperOptions, run_paper

    load_plugins(plugin or [])
    options = PaperOptions(
        methods=names_in(methods),
        datasets=names_in(datasets),
        data=_paths(data or []),
        splits=splits,
        seed=seed,
        jobs=cpu_count() if jobs is None else jobs,
        out=out,
        quick=quick,
        reference=reference,
    )
    report = run_paper(options, progress=False if as_json else None)
    if as_json:
        typer.echo(json.dumps(paper_as_json(report), indent=2))
    else:
        print_paper(report)
    if report.failures:
        raise typer.Exit(1)


app.command("table")(table)
app.command("afa")(afa)


@app.command("list")
def listnames_in(plugin: Plugin = None) -> None:
    """List the methods and data sets."""
    from adacos.registry import DATASETS, METHODS

    load_plugins(plugin or [])
    for title, names in (("methods", METHODS), ("data sets", DATASETS)):
        typer.echo(f"{title}:")
        for name in names:
            typer.echo(f"  {name}")


@app.command()
def regret(
    methods: Annotated[
        str | None, typer.Option(help="Names separated by commas. Default: all installed.")
    ] = None,
    problems: Annotated[int, typer.Option(help="Random simulated problems of each kind.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the first problem of each kind.")] = 0,
    rows: Annotated[int, typer.Option(help="Training rows.")] = 1000,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Problems with numeric covariates.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="One problem of each kind, 300 rows, few methods.")
    ] = False,
    jobs: Jobs = None,
    out: Out = Path("regret"),
    plugin: Plugin = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON and nothing else.")
    ] = False,
) -> None:
    """Compare methods with a known optimum."""
    from joblib import cpu_count

    from adacos.bench.continuous import run_continuous
    from adacos.bench.regret import RegretOptions, run_regret

    load_plugins(plugin or [])
    report = (run_continuous if continuous else run_regret)(
        RegretOptions(
            methods=names_in(methods),
            problems=problems,
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
        print_regret(report)
    if report.below_optimum or report.failures:
        raise typer.Exit(1)


@app.command()
def networks(
    files: Annotated[
        list[Path], typer.Argument(help="Bayesian networks as .bif or .bif.gz, or their folders.")
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="NETWORK=VARIABLE:VALUE[,VALUE]: the class of a network and its positive values."
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names separated by commas. Default: all installed.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Samples to learn from, of each network.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the first sample.")] = 0,
    rows: Annotated[int, typer.Option(help="Training rows.")] = 2000,
    quick: Annotated[
        bool, typer.Option("--quick", help="One sample of 300 rows, one price level, few methods.")
    ] = False,
    jobs: Jobs = None,
    out: Out = Path("networks"),
    plugin: Plugin = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON and nothing else.")
    ] = False,
) -> None:
    """Compare methods on Bayesian networks."""
    from joblib import cpu_count

    from adacos.bench.networks import run_networks
    from adacos.bench.regret import RegretOptions

    load_plugins(plugin or [])
    report = run_networks(
        files,
        RegretOptions(
            methods=names_in(methods),
            problems=samples,
            seed=seed,
            rows=rows,
            jobs=cpu_count() if jobs is None else jobs,
            out=out,
            quick=quick,
        ),
        _targets(target or []),
        progress=False if as_json else None,
    )
    if as_json:
        typer.echo(json.dumps(report.summary(), indent=2))
    else:
        print_regret(report)
    if report.below_optimum or report.failures:
        raise typer.Exit(1)


@app.command()
def lomax(
    data: Annotated[
        Path, typer.Option(help="Folder of the sets: NAME.csv with its costs in NAME.json.")
    ],
    methods: Annotated[
        str | None,
        typer.Option(help="Names separated by commas, or all. Default: AdaCOS, COS and STreeD."),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Sets separated by commas. Default: all.")
    ] = None,
    splits: Annotated[int, typer.Option(help="Random 80/20 splits.")] = 40,
    seed: Seed = 0,
    against: Annotated[
        str, typer.Option(help="Method by whose total cost the others' are divided.")
    ] = "STreeD",
    jobs: Jobs = None,
    out: Out = Path("lomax"),
    plugin: Plugin = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the ratios as JSON and nothing else.")
    ] = False,
) -> None:
    """Compare methods on Lomax's data sets."""
    from joblib import cpu_count

    from adacos.bench.lomax import LomaxOptions, run_lomax

    load_plugins(plugin or [])
    options = LomaxOptions(
        data=data,
        methods=names_in(methods),
        datasets=names_in(datasets),
        splits=splits,
        seed=seed,
        against=against,
        jobs=cpu_count() if jobs is None else jobs,
        out=out,
    )
    report = run_lomax(options, progress=False if as_json else None)
    if as_json:
        typer.echo(json.dumps(report.summary(), indent=2))
    else:
        print_lomax(report)
    if report.failures:
        raise typer.Exit(1)


@app.command()
def budgets(
    dataset: Annotated[str, typer.Option(help="A bundled data set; its panels count.")] = "heart",
    methods: Annotated[
        str | None,
        typer.Option(help="Names separated by commas. Default: AdaCOS, Branching and COS."),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="mean: over rows; ceiling: for each row at most.")
    ] = "mean",
    shares: Annotated[
        str, typer.Option(help="Budgets as shares of what all covariates cost.")
    ] = "0.4,0.2,0.1,0.05",
    error: Annotated[
        float | None,
        typer.Option(help="Cost of each error. Default: twenty times that of all covariates."),
    ] = None,
    folds: Annotated[int, typer.Option(help="How many folds of the paper, the first ones.")] = 5,
    jobs: Jobs = None,
    out: Out = Path("budgets"),
    plugin: Plugin = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON and nothing else.")
    ] = False,
) -> None:
    """Compare methods with a budget."""
    from joblib import cpu_count

    from adacos.bench.budgets import BudgetOptions, run_budgets

    load_plugins(plugin or [])
    options = BudgetOptions(
        dataset=dataset,
        methods=names_in(methods),
        kind=kind,
        shares=_numbers(shares),
        error=error,
        folds=folds,
        jobs=cpu_count() if jobs is None else jobs,
        out=out,
    )
    report = run_budgets(options, progress=False if as_json else None)
    if as_json:
        typer.echo(json.dumps({"report": str(report.index), "table": report.records()}, indent=2))
    else:
        print_budgets(report)
    if report.failures:
        raise typer.Exit(1)


def load_plugins(paths: list[Path]) -> None:
    """Run Python files that register methods or data sets; they may import their neighbours."""
    import runpy
    import sys

    from adacos.bench.tasks import describe

    for path in paths:
        if not path.is_file():
            raise InvalidInputError("plugin", "must be a Python file", str(path), "Check the path.")
        folder = str(path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            runpy.run_path(str(path.resolve()), run_name="adacos_plugin")
        except AdacosError:
            raise
        except Exception as error:
            raise InvalidInputError(
                "plugin", f"{path} must run without an error", describe(error), "Correct the file."
            ) from error


def names_in(text: str | None) -> tuple[str, ...] | None:
    """Names separated by commas; None stays None."""
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in names_in(text) or ())
    except ValueError:
        raise InvalidInputError(
            "shares", "must be numbers separated by commas", text, "For example 0.4,0.2,0.1."
        ) from None


def _targets(stated: list[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    targets = {}
    for text in stated:
        name, sign, rest = text.partition("=")
        variable, colon, values = rest.partition(":")
        if not (name and sign and variable and colon and names_in(values)):
            raise InvalidInputError(
                "target",
                "must be NETWORK=VARIABLE:VALUE",
                text,
                "For example --target asia=lung:yes.",
            )
        targets[name] = variable, names_in(values) or ()
    return targets


def _paths(pairs: list[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for pair in pairs:
        name, sign, path = pair.partition("=")
        if not (name and sign and path) or name in files:
            raise InvalidInputError(
                "data",
                "must be NAME=PATH, each name once",
                pair,
                "For example --data physionet=path/to/challenge-2012.",
            )
        files[name] = Path(path)
    return files

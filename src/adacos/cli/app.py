"""The console script `adacos`: its commands, and how errors are told."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from adacos import __version__
from adacos.cli import ask, bench, datasets, explain, fit, info, report, score, serve
from adacos.exceptions import AdacosError, MissingExtraError

app = typer.Typer(
    name="adacos",
    help="Which covariate to acquire next, and when to stop and classify.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    fit.fit,
    ask.ask,
    score.score,
    explain.explain,
    report.report,
    info.info,
    serve.serve,
):
    app.command()(command)
app.add_typer(bench.app, name="bench")
app.add_typer(datasets.app, name="datasets")


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Which covariate to acquire next, and when to stop and classify."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; what went wrong is told without a traceback.

    Exit codes: 0 done, 1 something failed on the way, 2 wrong usage or input.
    """
    try:
        app()
    except MissingExtraError as error:
        _fail(error, 1)
    except AdacosError as error:
        _fail(error, 2)
    except (OSError, MemoryError) as error:
        _fail(error, 1)


def _fail(error: BaseException, code: int) -> None:
    typer.echo(f"adacos: {error or type(error).__name__}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()

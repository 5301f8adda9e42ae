"""The console script `adacos`: its commands, and how errors are told."""

from __future__ import annotations

import sys

import typer

from adacos.cli import bench
from adacos.exceptions import AdacosError

app = typer.Typer(
    name="adacos",
    help="Which covariate to acquire next, and when to stop and classify.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line; an error of the user's is one line, without a traceback."""
    try:
        app()
    except AdacosError as error:
        typer.echo(f"adacos: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()

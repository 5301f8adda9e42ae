"""The console script `adacos`: its commands, how errors are reported, and how signals end it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from adacos import __version__
from adacos.cli import (
    ask,
    audit,
    bench,
    cases,
    compare,
    datasets,
    explain,
    export,
    fit,
    info,
    monitor,
    orders,
    recalibrate,
    report,
    restrict,
    score,
    sensitivity,
    serve,
    tradeoff,
    worth,
)
from adacos.cli.common import printing_warnings, say
from adacos.exceptions import AdacosError, InvalidInputError, MissingExtraError
from adacos.validation import did_you_mean

# Characters from which what to do is on a line of its own.
_LINE = 100
# What the user or a parent process has chosen, such as nohup, stays.
_DEFAULT_HANDLERS = (signal.SIG_DFL, signal.default_int_handler)


class Commands(TyperGroup):
    """The commands; of an option that a command does not have, the nearest one is named."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # NoSuchOption, which typer has from click or of its own: it lists all that are near.
            name, near = (getattr(error, key, None) for key in ("option_name", "possibilities"))
            if name and near:
                meant = did_you_mean([name], near).strip()
                vars(error).update(message=f"No such option: {name}. {meant}", possibilities=None)
            raise


app = typer.Typer(
    name="adacos",
    cls=Commands,
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
    tradeoff.tradeoff,
    compare.compare,
    compare.protocol,
    sensitivity.sensitivity,
    audit.audit,
    worth.worth,
    recalibrate.recalibrate,
    restrict.restrict,
    export.export,
    info.info,
    serve.serve,
    monitor.monitor,
):
    app.command()(command)
app.command("next")(orders.next_steps)
app.add_typer(bench.app, name="bench")
app.add_typer(datasets.app, name="datasets")
app.add_typer(cases.app, name="cases")


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Which covariate to acquire next, and when to stop and classify."""
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand != "serve":  # which has handlers of its own
        context.call_on_close(_end_tidily())
        context.with_resource(printing_warnings())


def main() -> None:
    """Run the command line; what went wrong is reported without a traceback.

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
    text = f"adacos: {error or type(error).__name__}"
    if isinstance(error, InvalidInputError) and error.remedy and len(text) > _LINE:
        text = f"{text.removesuffix(error.remedy).rstrip()}\n  {error.remedy}"
    say(text, err=True)
    sys.exit(code)


def _end_tidily() -> Callable[[], None]:
    """SIGTERM and a closed terminal unwind the stack, so that no temporary file is left behind.

    The first Ctrl-C does so too; a second one waits for it, and the third ends at once. Returns
    the function that puts the former handlers back.
    """
    presses = 0

    def terminated(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            raise KeyboardInterrupt
        if presses > 2:
            os._exit(128 + number)

    handlers = {"SIGTERM": terminated, "SIGHUP": terminated, "SIGINT": interrupted}
    former: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name, handler in handlers.items():
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) in _DEFAULT_HANDLERS:
                former[number] = signal.signal(number, handler)

    def put_back() -> None:
        if presses == 0:  # else the process is ending, and must not be interrupted in it
            for number, handler in former.items():
                signal.signal(number, handler)

    return put_back


if __name__ == "__main__":
    main()

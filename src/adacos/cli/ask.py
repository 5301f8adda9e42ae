"""`adacos ask`: a consultation in the terminal."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from adacos.cli.common import Json, Model, load_policy, pairs, typed_value, typed_values
from adacos.consultation import Consultation
from adacos.exceptions import InvalidInputError
from adacos.steps import Acquire, Classify

_HELP = """\
Type the value, or
  skip           it is not available
  undo           take the last answer back
  why            the reasons, in numbers
  NAME=VALUE     I measured something else
  stop           classify now, with what there is
  help, quit"""


def ask(
    model: Model,
    known: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE known from the start; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask about one case, step by step, until there is a decision.

    With --json every step is one line, and answers are read line by line all the same.

    Example:

        adacos ask model.adacos --known Age=50
    """
    policy = load_policy(model)
    consultation = policy.consultation(typed_values(policy, pairs(known or [], "known")))
    console = Console(quiet=as_json, highlight=False, soft_wrap=True)
    console.print("For research use. Type help for what can be answered.", style="dim")
    while True:
        step = consultation.next()
        if isinstance(step, Classify):
            _finish(step, consultation, console, as_json)
            # A slip of the hand may have decided: it can still be taken back.
            if as_json or _read("enter to finish, or undo", as_json) != "undo":
                return
            consultation.undo()
            continue
        _show(step, console, as_json)
        answer = _read(step.covariates[0] if len(step.covariates) == 1 else "", as_json)
        if answer == "quit":
            console.print("stopped without a decision")
            raise typer.Exit(1)
        if answer == "stop":
            consultation.stop()
        else:
            _take(answer, step, consultation, console)


def _show(step: Acquire, console: Console, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(step.to_dict(), allow_nan=False))
        return
    told = step.explanation
    for warning in step.warnings:
        console.print(f"! {warning}", style="yellow")
    console.print(
        f"\n[bold]{' and '.join(step.covariates)}[/]?  costs {step.cost:.2f}, paid so far "
        f"{told.paid:.2f}"
    )
    expected = f"now {told.probability:.1%}; expected total cost {told.stop_now:.2f} if stopping"
    if told.best_plan is not None:
        expected += f", {told.best_plan.expected_total_cost:.2f} going on"
    console.print(expected, style="dim")
    for name, cost in step.sharing:
        console.print(f"together with it {name} would cost {cost:.2f}", style="dim")


def _read(prompt: str, as_json: bool) -> str:
    try:
        return input("" if as_json else f"{prompt}> ").strip()
    except EOFError:
        return "quit"


def _take(answer: str, step: Acquire, consultation: Consultation, console: Console) -> None:
    """Act on an answer; a mistake is told and changes nothing."""
    try:
        if answer in ("help", "?", ""):
            console.print(_HELP)
        elif answer == "why":
            console.print(str(step.explanation))
        elif answer == "undo":
            consultation.undo()
        elif answer == "skip":
            consultation.unavailable(*step.covariates)
        elif "=" in answer:
            consultation.observe(typed_values(consultation.policy, pairs([answer], "answer")))
        elif len(step.covariates) > 1:
            console.print(f"several are asked for: {step.covariates[0]}=VALUE, …", style="yellow")
        else:
            (name,) = step.covariates
            consultation.observe({name: typed_value(consultation.policy, name, answer)})
    except InvalidInputError as error:
        console.print(f"! {error.rule}; received {error.value}. {error.remedy}", style="yellow")


def _finish(step: Classify, consultation: Consultation, console: Console, as_json: bool) -> None:
    if as_json:
        content: dict[str, Any] = {**step.to_dict(), "state": consultation.state()}
        typer.echo(json.dumps(content, allow_nan=False))
        return
    for warning in step.warnings:
        console.print(f"! {warning}", style="yellow")
    console.print(f"\n[bold]Decision: {step.label}[/]  probability {step.probability:.1%}")
    console.print(f"paid {step.cost:.2f}, expected total cost {step.expected_cost:.2f}")
    console.print(str(step.explanation), style="dim")

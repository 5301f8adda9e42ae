"""`adacos ask`: a consultation in the terminal."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from adacos.cli.common import (
    ExpectSha256,
    Json,
    Model,
    allowed,
    example_pair,
    load_policy,
    pairs,
    plain_console,
    price_note,
    printable,
    typed_value,
    typed_values,
)
from adacos.consultation import check_value
from adacos.consultation.steps import Acquire, Classify, Value, ValueWarning
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.tables.reading import did_you_mean

_HELP = """\
Type the value (yes and no do for 1 and 0), or
  skip           it is not available
  undo           take the last answer back
  why            the reasons, in numbers
  NAME=VALUE     I measured something else
  stop           classify now, with what there is
  help, quit"""

# A value with one of these warnings may be a slip of the hand, and is taken when it is repeated.
_DOUBTFUL = ("unknown_category", "unknown_value", "implausible")


def ask(
    model: Model,
    known: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE known from the start, several separated by commas."),
    ] = None,
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Ask about one case, step by step, until there is a decision.

    An unknown category and a number far outside the training range are
    asked for again; the same answer given twice is taken.

    With --json every step is one line, answers are read line by line, and an
    answer that was not taken is told by a line with the action "repeat".

    Example:

        adacos ask model.adacos --known Age=50
    """
    policy = load_policy(model, expect_sha256)
    dialogue = _Dialogue(policy, typed_values(policy, known or [], "--known"), as_json)
    dialogue.console.print(
        f"For research use. Probabilities are those of {policy.classes_.tolist()[1]}. "
        "Type help for help.",
        style="dim",
    )
    while True:
        step = dialogue.consultation.next()
        if isinstance(step, Classify):
            dialogue.finish(step)
            # A slip of the hand may have decided: it can still be taken back.
            if as_json or dialogue.read("enter to finish, or undo") != "undo":
                return
            dialogue.take("undo", None)
            continue
        dialogue.question(step)
        answer = dialogue.read(step.covariates[0] if len(step.covariates) == 1 else "")
        if answer == "quit":
            dialogue.console.print("stopped without a decision")
            raise typer.Exit(1)
        dialogue.take(answer, step)


class _Dialogue:
    """A consultation, with what was told already and the answer that is to be repeated."""

    def __init__(self, policy: BasePolicy, known: dict[str, Value], as_json: bool) -> None:
        self.consultation = policy.consultation(known)
        self.console = plain_console(quiet=as_json)
        self._policy, self._as_json = policy, as_json
        self._told: set[str] = set()
        self._doubtful = ""

    def question(self, step: Acquire) -> None:
        """Show what is asked for, what may be answered and what it costs."""
        if self._as_json:
            typer.echo(json.dumps(step.to_dict(), allow_nan=False))
            return
        self._warn(step.warnings)
        told = step.explanation
        note = price_note(self._policy, step, self.consultation.values)
        price = f"costs {step.cost:.2f}{f' ({note})' if note else ''}"
        self._headline(f"{' and '.join(step.covariates)}?", f"{price}, paid so far {told.paid:.2f}")
        for name in step.covariates:
            lead = "one of" if self._categories(name) else "in training"
            if len(step.covariates) > 1:
                lead = f"{name}, {lead}"
            self.console.print(f"{lead}: {allowed(self._policy.encoder_, name)}")
        expected = (
            f"now {told.probability:.1%}; expected total cost {told.stop_now:.2f} if stopping"
        )
        if told.best_plan is not None:
            expected += f", {told.best_plan.expected_total_cost:.2f} going on"
        self.console.print(expected, style="dim")
        for name, cost in step.sharing:
            self.console.print(f"once it is paid, {name} costs {cost:.2f}", style="dim")

    def read(self, prompt: str) -> str:
        """The next line; its end counts as quit."""
        try:
            return input("" if self._as_json else printable(f"{prompt}> ")).strip()
        except EOFError:
            return "quit"

    def take(self, answer: str, step: Acquire | None) -> None:
        """Act on an answer; a mistake is told and changes nothing."""
        insisted, self._doubtful = answer == self._doubtful, ""
        try:
            if answer == "undo":
                self.consultation.undo()
            elif step is None or answer in ("help", "?", ""):
                self.console.print(_HELP)
            elif answer == "why":
                self.console.print(str(step.explanation))
            elif answer == "skip":
                self.consultation.unavailable(*step.covariates)
            elif answer == "stop":
                self.consultation.stop()
            else:
                self._observe(answer, step, insisted)
        except InvalidInputError as error:
            self._complain(f"{error.rule}; received {error.value}. {error.remedy}")

    def finish(self, step: Classify) -> None:
        """Show the decision."""
        if self._as_json:
            content: dict[str, Any] = {**step.to_dict(), "state": self.consultation.state()}
            typer.echo(json.dumps(content, allow_nan=False))
            return
        self._warn(step.warnings)
        self._headline(f"Decision: {step.label}", f"probability {step.probability:.1%}")
        self.console.print(f"paid {step.cost:.2f}, expected total cost {step.expected_cost:.2f}")
        self.console.print(str(step.explanation), style="dim")

    def _observe(self, answer: str, step: Acquire, insisted: bool) -> None:
        values = self._values(answer, step)
        encoder = self._policy.encoder_
        checked = [check_value(encoder, encoder.names.index(n), v)[1] for n, v in values.items()]
        doubts = [found for found in checked if found is not None and found.kind in _DOUBTFUL]
        if doubts and not insisted:
            self._doubtful = answer
            for doubt in doubts:
                self._complain(self._doubt_in_words(doubt))
            return
        self.consultation.observe(values)
        self._told |= {doubt.message for doubt in doubts}

    def _values(self, answer: str, step: Acquire) -> dict[str, Value]:
        """Values by covariate: of the one asked for, or of those named in the answer."""
        encoder = self._policy.encoder_
        first = step.covariates[0]
        single = len(step.covariates) == 1
        if single and ("=" not in answer or answer in self._categories(first)):
            texts = {first: answer}
        elif "=" in answer:
            texts = pairs([answer], encoder.names, "answer", example_pair(encoder))
        else:
            raise InvalidInputError(
                "answer", "several are asked for", answer, f"For example {example_pair(encoder)}."
            )
        for name in texts:
            if name in self.consultation.values:
                raise InvalidInputError(
                    name, "has a value already", name, "undo takes the last answer back."
                )
        absent = "Type skip if there is no value."
        return {name: typed_value(self._policy, name, t, absent) for name, t in texts.items()}

    def _categories(self, name: str) -> tuple[str, ...]:
        encoder = self._policy.encoder_
        return encoder.categories[encoder.names.index(name)]

    def _doubt_in_words(self, doubt: ValueWarning) -> str:
        if doubt.kind != "unknown_category":
            return f"{doubt.message} Type it again if it is right."
        meant = did_you_mean([str(doubt.value)], self._categories(doubt.covariate))
        return (
            f"{doubt.covariate} = {doubt.value} was never seen in training. {meant}"
            "Type it again if it is right: it then counts as an average row."
        )

    def _headline(self, first: str, rest: str) -> None:
        # One text, so that a long line is broken between words.
        self.console.print()
        self.console.print(Text.assemble((first, "bold"), "  ", rest))

    def _warn(self, warnings: tuple[ValueWarning, ...]) -> None:
        """Tell what is odd about the values, each thing once."""
        for warning in warnings:
            if warning.message not in self._told:
                self._told.add(warning.message)
                self.console.print(f"! {warning}", style="yellow")

    def _complain(self, message: str) -> None:
        if self._as_json:
            typer.echo(json.dumps({"action": "repeat", "message": message}))
        else:
            self.console.print(f"! {message}", style="yellow")

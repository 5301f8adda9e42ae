"""`adacos ask`: a consultation in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.text import Text

from adacos.card import headline, rule_in_words
from adacos.cli.ask_help import AFTERWARDS, WHILE_ASKED, WHILE_CONFIRMED, listed
from adacos.cli.common import (
    ExpectSha256,
    Json,
    Key,
    Model,
    TypedDecimal,
    allowed,
    example_pair,
    in_words,
    load_policy,
    pairs,
    plain_console,
    price_note,
    printable,
    typed_value,
    typed_values,
)
from adacos.consultation import check_value
from adacos.consultation.coverage import not_covered
from adacos.consultation.cut_off import cut_off_of, named_ranges, percent
from adacos.consultation.steps import (
    Acquire,
    Classify,
    Explanation,
    ValueWarning,
    ranges_in_words,
    reasons_in_words,
)
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.reasons import Value
from adacos.tables.cells import check_decimal
from adacos.tables.description import coded_values, describe, description_of
from adacos.validation import did_you_mean


def ask(
    model: Model,
    known: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE known from the start, several separated by commas."),
    ] = None,
    description: Annotated[
        Path | None,
        typer.Option("--describe", help="Description in place of the model's own (TOML)."),
    ] = None,
    key: Key = None,
    must: Annotated[
        list[str] | None, typer.Option(help="Question asked first in any case; repeatable.")
    ] = None,
    never: Annotated[
        list[str] | None, typer.Option(help="Question that is not asked; repeatable.")
    ] = None,
    decimal: TypedDecimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Ask about one case, question by question.

    A value unlike those in training, such as a number outside their range or an
    unknown category, is asked again; the same answer given twice is accepted.
    After the result further values may be entered.

    With --json every step is one line and answers are read line by line. An
    answer that was not accepted is reported by a line with the action "repeat".
    The result ends the consultation.

    Example:

        adacos ask model.adacos --known Age=50
    """
    policy = load_policy(model, expect_sha256)
    if description is not None:
        describe(policy, description)
    check_decimal(decimal)
    values = typed_values(policy, known or [], "--known", decimal)
    dialogue = _Dialogue(policy, values, as_json, decimal, key, (must or [], never or []))
    while True:
        step = dialogue.consultation.next()
        if isinstance(step, Classify):
            dialogue.finish(step)
            answer = "" if as_json else dialogue.read("enter to finish, NAME=VALUE, or undo")
            if answer in ("", "quit"):
                return
            dialogue.take_afterwards(answer, step)
            continue
        dialogue.question(step)
        answer = dialogue.read(dialogue.prompt(step.covariates))
        if answer == "quit":
            dialogue.leave()
        dialogue.take(answer, step)


class _Dialogue:
    """A consultation, with what was said already and the answer that is to be repeated."""

    def __init__(
        self,
        policy: BasePolicy,
        known: dict[str, Value],
        as_json: bool,
        decimal: str,
        key: str | None,
        chosen: tuple[list[str], list[str]],
    ) -> None:
        self.console = plain_console(quiet=as_json)
        self._policy, self._as_json, self._decimal = policy, as_json, decimal
        self._said, self._binary = description_of(policy), len(policy.classes_) == 2
        self._reported: set[str] = set()
        self._doubtful = ""
        self._introduce()
        self.consultation = policy.consultation(
            self._confirmed(known), key=0 if key is None else key, must=chosen[0], never=chosen[1]
        )
        if known:
            self._report_coverage()

    def question(self, step: Acquire) -> None:
        """Show the question, the possible answers and what it costs."""
        if self._as_json:
            typer.echo(json.dumps(step.to_dict(), allow_nan=False))
            return
        self._warn(step.warnings)
        why, money = step.explanation, self._said.money
        note = "" if step.ordered else price_note(self._policy, step, self.consultation.values)
        price = f"costs {money(step.cost)}{f' ({note})' if note else ''}"
        price = "ordered, and paid for" if step.ordered else price
        *others, last = (self._said.label(name) for name in step.covariates)
        asked = f"{', '.join(others)} and {last}?" if others else f"{last}?"
        self._headline(asked, f"{price}, paid so far {money(why.paid)}")
        for name in step.covariates:
            self._report_values(name, several=len(step.covariates) > 1)
        expected = f"{self._now(why)}; expected total cost {money(why.stop_now)} if you stop"
        if why.best_plan is not None:
            expected += f", {money(why.best_plan.expected_total_cost)} if you continue"
        self.console.print(expected, style="dim")
        if why.expected_saving <= 0 and not step.ordered:
            self.console.print(why.because, style="dim")
        for name, cost in step.sharing:
            self.console.print(
                f"once it is paid, {self._said.label(name)} costs {money(cost)}", style="dim"
            )

    def read(self, prompt: str) -> str:
        """The next line; its end counts as quit."""
        try:
            return input("" if self._as_json else printable(f"{prompt}> ")).strip()
        except EOFError:
            return "quit"

    def leave(self) -> None:
        """End without a result."""
        self.console.print("stopped without a result")
        raise typer.Exit(1)

    def prompt(self, names: tuple[str, ...]) -> str:
        """The covariate that a bare value is taken for; of several each is to be named."""
        if len(names) == 1:
            return self._said.label(names[0])
        return ", ".join(f"{name}=" for name in names)

    def take(self, answer: str, step: Acquire) -> None:
        """Act on an answer; a mistake is reported and changes nothing."""
        try:
            if answer in ("help", "?", ""):
                self.console.print(WHILE_ASKED)
            elif answer == "why":
                self.console.print(self._reasons(step))
            elif answer == "undo":
                self.consultation.undo()
            elif answer == "skip":
                self.consultation.unavailable(*step.covariates)
            elif answer == "order":
                self.consultation.order()
            elif answer == "other":
                self._list_alternatives()
            elif answer.startswith("because "):
                self._note(answer)
            elif answer == "stop":
                self.consultation.stop()
            else:
                self._observe(answer, self._values(answer, step), step)
        except InvalidInputError as error:
            self._complain(error.text)

    def take_afterwards(self, answer: str, step: Classify) -> None:
        """Act on what is typed after the result: undo, or a further value."""
        try:
            if answer in ("help", "?"):
                self.console.print(AFTERWARDS)
            elif answer == "why":
                self.console.print(self._reasons(step))
            elif answer == "undo":
                self.consultation.undo()
            elif answer.startswith("because "):
                self._note(answer)
            else:
                self._observe(answer, self._named_values(answer))
        except InvalidInputError as error:
            self._complain(error.text)

    def _note(self, answer: str) -> None:
        """Keep the reason of a person."""
        self.consultation.because(answer.removeprefix("because "))
        self.console.print("noted", style="dim")

    def _list_alternatives(self) -> None:
        """All open questions, the one with the least expected total cost first."""
        for line in listed(self.consultation.alternatives(), self._said):
            self.console.print(line)

    def finish(self, step: Classify) -> None:
        """Show the result."""
        if self._as_json:
            covered = {"not_covered": not_covered(self.consultation.departures)}
            state = {"state": self.consultation.state()}
            typer.echo(json.dumps({**step.to_dict(), **covered, **state}, allow_nan=False))
            return
        self._warn(step.warnings)
        money = self._said.money
        self._headline(
            f"Result: {self._said.class_name(step.label)}",
            f"probability {step.probability:.1%}{self._cut_off()}",
        )
        self.console.print(
            f"paid {money(step.cost)}, expected total cost {money(step.expected_cost)}"
        )
        self._report_coverage()
        self.console.print(self._reasons(step), style="dim")

    def _report_coverage(self) -> None:
        """The certificate once, and why it does not cover the consultation, if so."""
        certificate = self._policy.certificate_
        if certificate is None:
            return
        caveat = not_covered(self.consultation.departures)
        if caveat:
            self.console.print(caveat, style="yellow")
        if str(certificate) not in self._reported:
            self.console.print(str(certificate), style="dim")
            self._reported.add(str(certificate))

    def _introduce(self) -> None:
        said, positive = self._said, self._policy.classes_.tolist()[1]
        first = headline(self._policy)
        if first is not None:
            self.console.print(first, style="yellow")
        if said.title:
            self.console.print(said.title, style="bold")
        if said.intended_use:
            self.console.print(f"Intended use: {said.intended_use}", style="dim")
        outcome = said.outcome or said.classes.get(str(positive)) or f"class {positive}"
        self.console.print(
            "For research use. "
            f"{f'Probabilities are those of {outcome}. ' if self._binary else ''}"
            f"{rule_in_words(self._policy)} Type help for help.",
            style="dim",
        )

    def _confirmed(self, known: dict[str, Value]) -> dict[str, Value]:
        """The values known from the start, each doubtful one typed a second time."""
        for name in known:
            while doubts := self._doubts({name: known[name]}):
                for message in doubts:
                    self._complain(message)
                answer = self.read(self._said.label(name))
                if answer == "quit":
                    self.leave()
                if answer in ("help", "?", "why", ""):
                    self.console.print(WHILE_CONFIRMED)
                    continue
                try:
                    again = self._typed(name, answer)
                except InvalidInputError as error:
                    self._complain(error.text)
                    continue
                if again == known[name]:
                    break
                known[name] = again
        return known

    def _reasons(self, step: Acquire | Classify) -> str:
        return reasons_in_words(in_words(step, self._said), self._said.money)

    def _now(self, why: Explanation) -> str:
        """The probability so far, with the cut-off, or with what would be decided."""
        if why.probabilities is None:
            decided = self._policy.cost_table_.decisions is not None
            rule = f" ({why.label})" if decided else self._cut_off()
            return f"now {why.probability:.1%}{rule}"
        each = why.probabilities.items()
        return "now " + ", ".join(f"{self._said.class_name(name)} {p:.1%}" for name, p in each)

    def _cut_off(self) -> str:
        if not self._binary or not self._policy.decider_.answers_by_rule:
            return ""
        named = self._policy.cost_table_.decisions
        if named is not None:
            return f" ({ranges_in_words(named_ranges(named, self._policy.rule_.matrix))})"
        return f" (cut-off {percent(cut_off_of(self._policy.rule_))})"

    def _report_values(self, name: str, several: bool) -> None:
        """The values that may be answered, the meaning of codes, and what the covariate is."""
        encoder, own = self._policy.encoder_, self._said.of(name)
        lead = "one of" if self._categories(name) else "in training"
        if several:
            lead = f"{name if own.label is None else f'{own.label} ({name})'}, {lead}"
        unit = f" {own.unit}" if own.unit else ""
        self.console.print(f"{lead}: {allowed(encoder, name)}{unit}")
        if own.values:
            codes = coded_values(encoder, encoder.names.index(name), self._said)
            meant = [
                f"{code if isinstance(code, str) else f'{code:g}'} = {self._said.shown(name, code)}"
                for code in codes
            ]
            self.console.print(", ".join(meant))
        if own.help:
            self.console.print(own.help, style="dim")

    def _observe(self, answer: str, values: dict[str, Value], step: Acquire | None = None) -> None:
        """Add values; doubtful ones are taken when the same answer is given again.

        The first result of several that a step asks for says that all of them were ordered.
        """
        insisted, self._doubtful = answer == self._doubtful, ""
        doubts = self._doubts(values)
        if doubts and not insisted:
            self._doubtful = answer
            for message in doubts:
                self._complain(message)
            return
        if self.consultation.stopped:
            # More is known than when it was stopped: the policy is asked again.
            self.consultation.undo()
        if step is not None and not step.ordered:
            back = [name for name in step.covariates if name in values]
            if 0 < len(back) < len(step.covariates) and self._waits(step.covariates):
                self.consultation.order(*step.covariates)
        self.consultation.observe(values)
        self._reported |= {warning.message for warning in self.consultation.warnings if doubts}

    def _waits(self, names: tuple[str, ...]) -> bool:
        """Whether the results of these covariates are waited for."""
        costs = self._policy.cost_table_
        return bool(costs.waiting(np.isin(costs.names, names)) > 0)

    def _doubts(self, values: dict[str, Value]) -> list[str]:
        """Why values may be slips of the hand, in words."""
        encoder, warnings = self._policy.encoder_, []
        for name, value in values.items():
            _, warning = check_value(encoder, encoder.names.index(name), value, self._said)
            if warning is not None:
                warnings.append(self._doubt_in_words(warning))
        return warnings

    def _values(self, answer: str, step: Acquire) -> dict[str, Value]:
        """Values by covariate: of the one asked for, or of those named in the answer."""
        first = step.covariates[0]
        if len(step.covariates) > 1:
            return self._named_values(answer)
        if "=" in answer and answer not in self._categories(first):
            return self._named_values(answer)
        return {first: self._typed(first, answer)}

    def _named_values(self, answer: str) -> dict[str, Value]:
        encoder = self._policy.encoder_
        example = example_pair(encoder)
        if "=" not in answer:
            raise InvalidInputError("answer", "needs a name", answer, f"For example {example}.")
        # A covariate may be called by its label too.
        by_label = {self._said.label(name): name for name in encoder.names}
        names = list(dict.fromkeys([*encoder.names, *by_label]))
        given = pairs([answer], names, "answer", example)
        texts = {by_label.get(name, name): text for name, text in given.items()}
        for name in texts:
            if name in self.consultation.values:
                raise InvalidInputError(
                    name, "has a value already", name, "undo takes the last answer back."
                )
        return {name: self._typed(name, text) for name, text in texts.items()}

    def _typed(self, name: str, text: str) -> Value:
        """A typed value; the label of a code means the code."""
        codes = {label: code for code, label in self._said.of(name).values.items()}
        absent = "Type skip if there is no value."
        return typed_value(self._policy, name, codes.get(text, text), absent, self._decimal)

    def _categories(self, name: str) -> tuple[str, ...]:
        encoder = self._policy.encoder_
        k = encoder.names.index(name)
        return (*encoder.categories[k], *encoder.grouped_of(k))

    def _doubt_in_words(self, doubt: ValueWarning) -> str:
        if doubt.kind != "unknown_category":
            return f"{doubt.message} Type it again if it is right."
        labels = self._said.of(doubt.covariate).values.values()
        meant = did_you_mean([str(doubt.value)], [*self._categories(doubt.covariate), *labels])
        return (
            f"{doubt.covariate} = {doubt.value} was never seen in training. {meant}"
            "Type it again if it is right: it then counts as a missing value."
        )

    def _headline(self, first: str, rest: str) -> None:
        # One text, so that a long line is broken between words.
        self.console.print()
        self.console.print(Text.assemble((first, "bold"), "  ", rest))

    def _warn(self, warnings: tuple[ValueWarning, ...]) -> None:
        """Print what is odd about the values, each thing once."""
        for warning in warnings:
            if warning.message not in self._reported:
                self._reported.add(warning.message)
                self.console.print(f"! {warning}", style="yellow")

    def _complain(self, message: str) -> None:
        if self._as_json:
            typer.echo(json.dumps({"action": "repeat", "message": message}))
        else:
            self.console.print(f"! {message}", style="yellow")

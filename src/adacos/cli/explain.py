"""`adacos explain`: what the policy does with one row, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    Json,
    Key,
    Model,
    in_words,
    load_policy,
    plain_console,
    price_note,
    print_json,
    typed_values,
)
from adacos.consultation.steps import Acquire, Classify, reasons_in_words
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.reasons import Value
from adacos.tables.description import description_of
from adacos.tables.pieces import Kinds
from adacos.tables.reading import TableFile
from adacos.validation import choices


def explain(
    model: Model,
    row: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, several separated by commas; repeatable."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Take the row from this file instead.")] = None,
    line: Annotated[int, typer.Option(min=2, help="Line of the row in that file.")] = 2,
    known: Annotated[
        list[str] | None, typer.Option(help="Covariate known from the start; repeatable.")
    ] = None,
    key: Key = None,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Explain the answer to one row, step by step.

    A covariate without a value counts as unavailable.

    Example:

        adacos explain model.adacos --row Age=50,BMI=31.2,Glucose=140
    """
    policy = load_policy(model, expect_sha256)
    if (row is None) == (data is None):
        rule = "give one of the two, not both" if row else "one of the two is needed"
        raise InvalidInputError("--row or --data", rule, "", "For example --row NAME=VALUE.")
    values = (
        typed_values(policy, row or [], "--row", decimal)
        if data is None
        else _from_file(policy, TableFile(data, encoding=encoding, decimal=decimal), line)
    )
    steps = walk(policy, values, known or [], key)
    if as_json:
        print_json({"values": values, "steps": [step.to_dict() for step in steps]})
        return
    console, said = plain_console(), description_of(policy)
    have = set(known or [])
    for number, step in enumerate(steps, start=1):
        worded = in_words(step, said)
        heading = f"{number}. {worded.text(said.money)}"
        if isinstance(step, Acquire):
            if note := price_note(policy, step, have):
                heading = f"{heading.removesuffix('.')} ({note})."
            have |= set(step.covariates)
        console.print(heading, style="bold")
        console.print(reasons_in_words(worded, said.money))
    for warning in steps[-1].warnings:
        console.print(f"! {warning}", style="yellow")


def walk(
    policy: BasePolicy, values: dict[str, Value], known: list[str], key: str | None = None
) -> list[Acquire | Classify]:
    """The steps of a consultation that is answered from `values`."""
    absent = [name for name in known if name not in values]
    if absent:
        raise InvalidInputError(
            "--known",
            "needs a value in the row",
            absent,
            choices(absent, list(values), "The row has"),
        )
    consultation = policy.consultation(
        {name: values[name] for name in known}, key=0 if key is None else key
    )
    missing = [name for name in policy.encoder_.names if name not in values]
    if missing:
        consultation.unavailable(*missing)
    steps: list[Acquire | Classify] = []
    while isinstance(step := consultation.next(), Acquire):
        steps.append(step)
        consultation.observe({name: values[name] for name in step.covariates})
    return [*steps, step]


def _from_file(policy: BasePolicy, file: TableFile, line: int) -> dict[str, Value]:
    encoder = policy.encoder_
    last = 1
    for piece in file.pieces(encoder.names, Kinds.of(encoder)):
        last = max([last, *piece.lines[-1:].tolist(), *(bad.line for bad in piece.malformed)])
        for bad in piece.malformed:
            if bad.line == line:
                raise InvalidInputError(file.path.name, "the row must be readable", str(bad), "")
        (places,) = (piece.lines == line).nonzero()
        if len(places):
            cells: dict[str, Any] = {
                name: piece.table.column(name)[places[0]].item() for name in encoder.names
            }
            return {name: cell for name, cell in cells.items() if cell == cell and cell != ""}
    there = f"has rows on lines 2 to {last:,}" if last > 1 else "has no rows"
    rule = f"must be the line of a row: {file.path.name} {there}"
    raise InvalidInputError("--line", rule, line, "Line 1 is the header.")

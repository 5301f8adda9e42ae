"""`adacos compare` and `adacos protocol`: policies side by side, and their questions as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from adacos.cli.common import (
    Decimal,
    Encoding,
    HeldOutGroups,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    plain_console,
    print_json,
    progress,
    say,
)
from adacos.exceptions import InvalidInputError
from adacos.tables.description import description_of
from adacos.tables.writing import check_output, refuse_same_file
from adacos.validation import real


def compare(
    model: Model,
    others: Annotated[
        list[Path],
        typer.Argument(
            help="Model files (.adacos), or protocols as text or TOML, to compare with it."
        ),
    ],
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    groups: HeldOutGroups = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    as_json: Json = False,
) -> None:
    """Compare models and protocols.

    On the same held-out rows, with intervals of the differences, row by row.
    A protocol has the columns, classes and covariate costs of the model; one
    that asks for other columns is fitted first: `fit --policy protocol`.

    Example:

        adacos compare model.adacos today.txt --data held_out.csv --target diabetes
    """
    from adacos.cli.held_out import read_held_out
    from adacos.policies.comparing import as_policy, class_numbers, compared, finding, judge
    from adacos.policies.estimates import charged
    from adacos.protocols import DecisionProtocol

    confidence = real("--confidence", confidence, above=0, below=1)
    first = load_policy(model)
    said = description_of(first)
    names = _names([model, *others])
    # Every file is read before the first policy runs, so that a mistake in a name comes at once.
    read = {name: _read(path) for name, path in names.items()}
    judged, true = [], None
    for name, found_in_file in read.items():
        is_protocol = isinstance(found_in_file, DecisionProtocol)
        policy = first if is_protocol else found_in_file
        table, y, number = read_held_out(
            policy, data, target, positive, skip_malformed, encoding, decimal, as_json, groups
        )
        given = found_in_file.with_classes(dict(said.classes)) if is_protocol else policy
        own = as_policy(name, given, first, table, y)
        true = class_numbers(first, y) if true is None else true
        with progress(f"running {name} on the rows", as_json):
            judged.append(judge(name, own, table))
    assert true is not None
    found = compared(judged, true, charged(first), finding(first), number, confidence)
    if as_json:
        print_json(found.to_dict())
        return
    grid = found.grid()
    table_of = Table(title=grid.caption, title_justify="left")
    # A line for each measure, so that long intervals fit.
    table_of.add_column("")
    for name in names:
        table_of.add_column(name, justify="right")
    for measure, *cells in list(zip(grid.header, *grid.rows, strict=True))[1:]:
        table_of.add_row(measure, *cells)
    plain_console().print(table_of)
    for one in found.policies[1:]:
        say(found.describe(one))


def _read(path: Path) -> Any:
    """The model or the protocol of a file."""
    from adacos.protocols import DecisionProtocol

    return load_policy(path) if path.suffix == ".adacos" else DecisionProtocol.read(path)


def protocol(
    model: Model,
    out: Annotated[
        Path | None, typer.Option(help="File to write; without it the text is printed.")
    ] = None,
) -> None:
    """Write a model's tree as a protocol.

    For Branching, Planning and protocols. It can be edited. Where the tree ends, the protocol
    gives the answer that most training rows got there.

    Example:

        adacos protocol model.adacos --out protocol.txt
    """
    from adacos.policies.written import protocol_of

    if out is not None:
        check_output(out, "--out")
        refuse_same_file(out, [model])
    text = protocol_of(load_policy(model))
    if out is None:
        say(str(text).rstrip("\n"))
        return
    text.save(out)
    say(f"{out} written")


def _names(paths: list[Path]) -> dict[str, Path]:
    """A name for each file: without its folder and ending, where those are different."""
    stems = [path.stem for path in paths]
    short = len(set(stems)) == len(stems)
    names = {path.stem if short else str(path): path for path in paths}
    if len(names) < len(paths):
        rule = "must be different files"
        raise InvalidInputError("others", rule, ", ".join(map(str, paths)), "Name each once.")
    return names

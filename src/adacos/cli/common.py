"""What several commands share: models, NAME=VALUE pairs, and how results are shown."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from adacos.consultation.steps import Acquire, Classify
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.reasons import Value
from adacos.tables.categories import OTHER
from adacos.tables.cells import DECIMALS, MISSING, number
from adacos.tables.dates import EXAMPLE, IN_WORDS, number_of
from adacos.tables.description import Description, description_of
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import NUMERIC
from adacos.tables.pieces import Malformed
from adacos.validation import choices, listed, near_file

if TYPE_CHECKING:
    from rich.console import Console

Model = Annotated[Path, typer.Argument(help="Model file written by `adacos fit`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
SkipMalformed = Annotated[
    bool, typer.Option("--skip-malformed", help="Leave rows out that cannot be read.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV file.")]
Decimal = Annotated[str, typer.Option(help="Decimal sign of numbers in CSV files, . or , (comma).")]
TypedDecimal = Annotated[
    str, typer.Option("--decimal", help="Decimal sign of typed numbers, . or , (comma).")
]
FlagUnusual = Annotated[
    bool,
    typer.Option(
        "--flag-unusual",
        help="Add a column with the values behind each answer that training did not see.",
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe before text that a spreadsheet would take for a formula.",
    ),
]
HeldOutGroups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column that groups rows, such as patient or site: errors and intervals are then "
        "those of independent groups.",
    ),
]
Uncertain = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|NAME=LOW:HIGH",
        help="Uncertain costs: a TOML price list with a table \\[uncertain], or pairs such as "
        "false_negative=200:600.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        help="What the case is known by; of two policies that keep a mean budget together, "
        "it decides which one the case has."
    ),
]
KeyColumn = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="Column with what a row is known by. Of two policies that keep a mean budget "
        "together, it decides which one the row has, in any order of the rows.",
    ),
]
ExpectSha256 = Annotated[
    str | None,
    typer.Option(help="Refuse the model unless its file has this SHA-256, which `fit` prints."),
]

_YES, _NO = ("yes", "true"), ("no", "false")
# What steers a terminal, or turns the direction of text around, in place of being seen.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text from tables and models with control characters spelled out, for a terminal."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def say(text: str, *, err: bool = False) -> None:
    """Print a line that may hold names and values of the user's."""
    typer.echo(printable(text), err=err)


def plain_console(**options: Any) -> Console:
    """A console that prints what users named unchanged: no markup, no emoji codes, no colours.

    A column called "Systolic BP [mmHg]" would lose its unit otherwise; one that holds the codes
    that steer a terminal is shown with the codes spelled out.
    """
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    return PlainConsole(markup=False, emoji=False, highlight=False, **options)


def load_policy(path: Path, sha256: str | None = None) -> BasePolicy:
    """The fitted policy in a model file, whose digest is compared if one is given."""
    from adacos.persistence import load

    if not path.is_file():
        raise InvalidInputError(
            "model",
            "must be an existing file",
            str(path),
            near_file(path) or "Create one with `adacos fit`.",
        )
    policy = load(path, sha256=sha256)
    if not isinstance(policy, BasePolicy):
        raise InvalidInputError(
            "model", "must be a policy", type(policy).__name__, "Write one with `adacos fit`."
        )
    return policy


def pairs(
    items: Sequence[str], names: Sequence[str], parameter: str, example: str
) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; several may stand in one text, separated by commas.

    Names and values may hold commas themselves: a text is cut only where NAME= follows a comma.
    """
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    # Lists show a name that holds a comma in quotation marks: it may be typed so.
    beginning = re.compile(rf'(?:^|,)\s*(?:"({known})"|({known}|[^,=]+?))\s*=')
    values: dict[str, str] = {}
    for text in items:
        starts = list(beginning.finditer(text))
        if not starts or starts[0].start() > 0:
            given = {text.partition("=")[0].strip()} - set(names)
            raise InvalidInputError(
                parameter,
                "must be NAME=VALUE",
                text,
                f"For example {example}. {choices(given, names, 'The names are')}",
            )
        ends = [start.start() for start in starts[1:]] + [len(text)]
        for start, end in zip(starts, ends, strict=True):
            name, value = start[1] or start[2], text[start.end() : end].strip()
            if not value or name in values:
                rule = "each name must have a value, and only one"
                raise InvalidInputError(parameter, rule, text, f"For example {example}.")
            values[name] = value
    return values


def example_pair(encoder: TableEncoder) -> str:
    """NAME=VALUE as it could be given to this model."""
    name, value = encoder.example
    return f"{name}={value if isinstance(value, str) else f'{value:g}'}"


def typed_value(
    policy: BasePolicy,
    name: str,
    text: str,
    absent: str = "Leave it out if there is no value.",
    decimal: str = ".",
) -> Value:
    """A value typed by the user: a category, a number, or yes or no where that is 1 or 0.

    `absent` is the advice for a text that means that there is no value.
    """
    encoder = policy.encoder_
    if name not in encoder.names:
        raise InvalidInputError(
            name, "must be a covariate", "", choices([name], encoder.names, "The covariates are")
        )
    k = encoder.names.index(name)
    levels = (*encoder.categories[k], *encoder.grouped_of(k))
    if text.strip('"') in levels:
        # As lists show a category that holds a comma.
        text = text.strip('"')
    if text not in levels and text.lower() in {missing.lower() for missing in MISSING}:
        raise InvalidInputError(name, "needs a value", text, absent)
    if levels:
        return text
    if name in encoder.date_forms and number(text, decimal) is None:
        return number_of(text, name, encoder.date_forms[name])
    word = text.lower()
    if word in _YES + _NO and {encoder.low[k], encoder.high[k]} <= {0.0, 1.0}:
        return float(word in _YES)
    value = number(text, decimal)
    if value is None or math.isnan(value):
        remedy = f"In training it was {allowed(encoder, name)}."
        if re.search(r"\d[.,]", text):
            remedy += f" Use a decimal {DECIMALS[decimal]}, and nothing between thousands."
        raise InvalidInputError(name, "must be a number", text, remedy)
    return value


def typed_values(
    policy: BasePolicy, items: Sequence[str], option: str, decimal: str = "."
) -> dict[str, Value]:
    """Values typed by the user as NAME=VALUE after an option, by covariate."""
    encoder = policy.encoder_
    example = f"{option} {quote(example_pair(encoder))}"
    values = pairs(items, encoder.names, option, example)
    return {name: typed_value(policy, name, text, decimal=decimal) for name, text in values.items()}


def allowed(encoder: TableEncoder, name: str, most: int = 12) -> str:
    """The values of a covariate in training, in words."""
    k = encoder.names.index(name)
    levels, low, high = encoder.categories[k], encoder.low[k], encoder.high[k]
    if levels:
        rare = len(encoder.grouped_of(k))
        more = f", … ({len(levels)} in all)" if len(levels) > most else ""
        group = f"; {OTHER} means {rare:,} rare ones" if rare else ""
        return listed(levels[:most]) + more + group
    if name in encoder.date_forms:
        part = IN_WORDS[encoder.date_forms[name].partition(":")[0]]
        return f"a date such as {EXAMPLE} ({part}: {low:g} to {high:g})"
    if encoder.kinds[k] == NUMERIC:
        return f"{low:g} to {high:g}"
    if low == high:
        return f"{low:g}"
    return f"{low:g} or {high:g}" + (" (no or yes)" if (low, high) == (0, 1) else "")


def price_note(policy: BasePolicy, step: Acquire, have: Collection[str]) -> str:
    """How much of the list price was paid already with other members of a panel, in words."""
    costs = policy.cost_table_
    asked = np.array([costs.names.index(name) for name in step.covariates])
    there = np.array([name in have for name in costs.names])
    less = float(costs.of_order(asked) - costs.of_order(asked, given=there))
    panels = {number for number in costs.panel[asked].tolist() if number >= 0}
    earlier = [
        name
        for name, number in zip(costs.names, costs.panel.tolist(), strict=True)
        if name in have and number in panels
    ]
    if not earlier or less < 0.005:
        return ""
    said = description_of(policy)
    labels = [said.label(name) for name in earlier]
    return f"{said.money(less)} of the list price already paid with {listed(labels)}"


def in_words(step: Acquire | Classify, said: Description) -> Acquire | Classify:
    """A step with covariates, values and classes as the description calls them."""

    def labels(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(said.label(name) for name in names)

    explanation = step.explanation
    plan = explanation.best_plan
    explanation = replace(
        explanation,
        label=said.class_name(explanation.label) if said.classes else explanation.label,
        best_plan=plan and replace(plan, covariates=labels(plan.covariates)),
        flips=tuple(
            replace(
                flip,
                covariate=said.label(flip.covariate),
                label=said.class_name(flip.label),
                values=tuple(said.shown(flip.covariate, value) for value in flip.values),
            )
            for flip in explanation.flips
        ),
        contributions=tuple(
            replace(
                part,
                covariate=said.label(part.covariate),
                value=None if part.value is None else said.shown(part.covariate, part.value),
            )
            for part in explanation.contributions
        ),
    )
    if isinstance(step, Acquire):
        return replace(step, covariates=labels(step.covariates), explanation=explanation)
    return replace(step, label=said.class_name(step.label), explanation=explanation)


def print_json(content: Any) -> None:
    """Print plain values as JSON."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False, default=_plain))


def report_malformed(malformed: Sequence[Malformed]) -> None:
    """List rows that were skipped, on standard error."""
    if malformed:
        say(f"skipped {len(malformed)} malformed rows:", err=True)
        for bad in malformed[:20]:
            say(f"  {bad}", err=True)
        if len(malformed) > 20:
            say(f"  and {len(malformed) - 20} more", err=True)


@contextmanager
def progress(what: str, quiet: bool, unit: str = "rows") -> Iterator[Callable[[int, float], None]]:
    """What is being done and for how long, on standard error; nothing if quiet or no terminal.

    The function it hands over takes the number of rows (or of another unit) done and the share of
    the whole, from which the time left follows.
    """
    console = plain_console(stderr=True, quiet=quiet)
    if not console.is_terminal or quiet:
        yield lambda done, share: None
        return
    from rich import progress as parts

    columns = (
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(bar_width=20),
        parts.TimeElapsedColumn(),
        parts.TextColumn("left", style="dim"),
        parts.TimeRemainingColumn(),
    )
    with parts.Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(printable(what), total=None)

        def update(done: int, share: float) -> None:
            text = printable(f"{what}: {done:,} {unit}")
            shown.update(task, description=text, completed=share, total=1.0)

        yield update


@contextmanager
def printing_warnings() -> Iterator[None]:
    """Print warnings of the library at once as lines on standard error, each once."""
    printed = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            say(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain")

"""What several commands share: models, NAME=VALUE pairs, and how results are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from adacos.exceptions import InvalidInputError
from adacos.files import Malformed
from adacos.policy import BasePolicy
from adacos.steps import Value

Model = Annotated[Path, typer.Argument(help="Model file written by `adacos fit`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
SkipMalformed = Annotated[
    bool, typer.Option("--skip-malformed", help="Leave rows out that cannot be read.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV file.")]


def load_policy(path: Path) -> BasePolicy:
    """The fitted policy in a model file."""
    from adacos.persistence import load

    if not path.is_file():
        raise InvalidInputError(
            "model", "must be a file", str(path), "Write one with `adacos fit`."
        )
    policy = load(path)
    if not isinstance(policy, BasePolicy):
        raise InvalidInputError(
            "model", "must be a policy", type(policy).__name__, "Write one with `adacos fit`."
        )
    return policy


def pairs(items: Sequence[str], parameter: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; several may stand in one text, separated by commas."""
    found: dict[str, str] = {}
    for item in (part for text in items for part in text.split(",")):
        name, sign, value = (part.strip() for part in item.partition("="))
        if not (name and sign and value) or name in found:
            raise InvalidInputError(
                parameter,
                "must be NAME=VALUE, each name once",
                item,
                f"For example --{parameter} Age=50 --{parameter} BMI=31.2.",
            )
        found[name] = value
    return found


def typed_value(policy: BasePolicy, name: str, text: str) -> Value:
    """A value typed by the user: a category, or a number."""
    encoder = policy.encoder_
    if name not in encoder.names:
        raise InvalidInputError(
            name, "must be a covariate", name, f"They are {', '.join(encoder.names)}."
        )
    if encoder.categories[encoder.names.index(name)]:
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidInputError(name, "must be a number", text, "Use a decimal point.") from None


def typed_values(policy: BasePolicy, texts: dict[str, str]) -> dict[str, Value]:
    """Values typed by the user, by covariate."""
    return {name: typed_value(policy, name, text) for name, text in texts.items()}


def print_json(content: Any) -> None:
    """Print plain values as JSON."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False, default=_plain))


def tell_malformed(malformed: Sequence[Malformed]) -> None:
    """List rows that were left out, on standard error."""
    if malformed:
        typer.echo(f"left out {len(malformed)} malformed rows:", err=True)
        for bad in malformed[:20]:
            typer.echo(f"  {bad}", err=True)
        if len(malformed) > 20:
            typer.echo(f"  and {len(malformed) - 20} more", err=True)


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A spinner on standard error with a number of rows; nothing if quiet or not a terminal."""
    from rich.console import Console

    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal or quiet:
        yield lambda rows: None
        return
    with console.status(what) as status:
        yield lambda rows: status.update(f"{what}: {rows:,} rows")


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain")

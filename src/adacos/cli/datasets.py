"""`adacos datasets`: the bundled tables, listed or written out to try the commands on."""

from __future__ import annotations

import csv
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from adacos.cli.common import Json, print_json
from adacos.datasets import Dataset
from adacos.exceptions import InvalidInputError
from adacos.registry import DATASETS, Source
from adacos.tables.writing import whole_or_absent
from adacos.validation import choices, listed

app = typer.Typer(invoke_without_command=True, pretty_exceptions_enable=False)


@app.callback()
def datasets(context: typer.Context, as_json: Json = False) -> None:
    """List the bundled tables, or export one.

    Example:

        adacos datasets export pima --out data
    """
    if context.invoked_subcommand is None:
        list_datasets(as_json)


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """List the bundled tables.

    Example:

        adacos datasets list
    """
    rows = []
    for name, source in _at_hand().items():
        data: Dataset = source.load()
        rows.append(
            {
                "name": name,
                "rows": len(data.y),
                "covariates": list(data.names),
                "positives": int((data.y == np.unique(data.y)[-1]).sum()),
                "about": source.about,
            }
        )
    if as_json:
        print_json(rows)
        return
    for item in rows:
        typer.echo(f"{item['name']:<10} {item['about']}")


@app.command()
def export(
    name: Annotated[str, typer.Argument(help="Name, as `adacos datasets list` gives it.")],
    out: Annotated[Path, typer.Option(help="Folder to write into.")] = Path(),
    as_json: Json = False,
) -> None:
    """Write a bundled table and its costs.

    NAME.csv has the class in column y, NAME.toml the covariate costs. Where the
    table has a description, NAME-words.toml holds it for `fit --describe`.

    Example:

        adacos datasets export pima --out data
    """
    if name not in _at_hand():
        raise InvalidInputError(
            "name", "must be a bundled table", name, choices([name], _at_hand(), "The tables are")
        )
    data: Dataset = DATASETS[name].load(files=True)
    out.mkdir(parents=True, exist_ok=True)
    table, prices = out / f"{name}.csv", out / f"{name}.toml"
    with (
        whole_or_absent(table) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*data.names, "y"])
        for row, label in zip(_rows(data.X), data.y.tolist(), strict=True):
            writer.writerow([*map(_text, row), label])
    with whole_or_absent(prices) as temporary:
        temporary.write_text(_toml(data), encoding="utf-8")
    written = {"table": str(table), "prices": str(prices)}
    description = resources.files("adacos.datasets") / "data" / f"{name}.words.toml"
    if description.is_file():
        words = out / f"{name}-words.toml"
        with whole_or_absent(words) as temporary:
            temporary.write_bytes(description.read_bytes())
        written["description"] = str(words)
    if as_json:
        print_json({**written, "target": "y"})
    else:
        typer.echo(f"{listed(written.values())} written; the class is in column y")


def _at_hand() -> dict[str, Source]:
    """The tables that need no file of the user's."""
    return {name: source for name, source in DATASETS.items() if source.obtain is None}


def _rows(X: Any) -> list[Any]:
    rows: list[Any]
    if isinstance(X, np.ndarray):
        rows = X.tolist()
    else:
        import narwhals as nw

        rows = nw.from_native(X, eager_only=True).rows()
    return rows


def _text(value: Any) -> str:
    """A cell of the table: empty where the value is unknown."""
    if value is None or value != value:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _toml(data: Dataset) -> str:
    lines = ["[prices]", *(f'"{name}" = {cost!r}' for name, cost in data.prices.items())]
    for title, (shared, members) in data.panels.items():
        listed = ", ".join(f'"{member}"' for member in members)
        lines += ["", f"[panels.{title}]", f"shared = {shared!r}", f"members = [{listed}]"]
    return "\n".join(lines) + "\n"

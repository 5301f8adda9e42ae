"""`adacos datasets`: the bundled tables, listed or written out to try the commands on."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.common import Json, print_json
from adacos.datasets import load_heart, load_pima, load_wisconsin
from adacos.datasets._dataset import Dataset
from adacos.exceptions import InvalidInputError
from adacos.tables.reading import choices
from adacos.tables.writing import whole_or_absent

LOADERS: dict[str, Callable[..., Dataset]] = {
    "pima": load_pima,
    "wisconsin": load_wisconsin,
    "heart": load_heart,
}

app = typer.Typer(invoke_without_command=True, pretty_exceptions_enable=False)


@app.callback()
def datasets(context: typer.Context, as_json: Json = False) -> None:
    """List the bundled tables (also without `list`), or write one out.

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
    found = []
    for name, loader in LOADERS.items():
        data = loader(as_frame=False)
        found.append(
            {
                "name": name,
                "rows": len(data.y),
                "covariates": list(data.names),
                "positives": int(data.y.sum()),
                "about": (loader.__doc__ or "").strip().splitlines()[0],
            }
        )
    if as_json:
        print_json(found)
        return
    for item in found:
        typer.echo(f"{item['name']:<10} {item['about']}")


@app.command()
def export(
    name: Annotated[str, typer.Argument(help="pima, wisconsin or heart.")],
    out: Annotated[Path, typer.Option(help="Folder to write into.")] = Path(),
    as_json: Json = False,
) -> None:
    """Write a bundled table as NAME.csv (class in column y) and its costs as NAME.toml.

    Example:

        adacos datasets export pima --out data
    """
    if name not in LOADERS:
        raise InvalidInputError(
            "name", "must be a bundled table", name, choices([name], LOADERS, "They are")
        )
    data = LOADERS[name](as_frame=False)
    out.mkdir(parents=True, exist_ok=True)
    table, prices = out / f"{name}.csv", out / f"{name}.toml"
    with (
        whole_or_absent(table) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*data.names, "y"])
        for row, label in zip(data.X.tolist(), data.y.tolist(), strict=True):
            writer.writerow([*("" if x != x else f"{x:.12g}" for x in row), label])
    with whole_or_absent(prices) as temporary:
        temporary.write_text(_toml(data), encoding="utf-8")
    if as_json:
        print_json({"table": str(table), "prices": str(prices), "target": "y"})
    else:
        typer.echo(f"{table} and {prices} written; the class is in column y")


def _toml(data: Dataset) -> str:
    lines = ["[prices]", *(f'"{name}" = {cost!r}' for name, cost in data.prices.items())]
    for title, (shared, members) in data.panels.items():
        listed = ", ".join(f'"{member}"' for member in members)
        lines += ["", f"[panels.{title}]", f"shared = {shared!r}", f"members = [{listed}]"]
    return "\n".join(lines) + "\n"

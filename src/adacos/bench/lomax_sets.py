"""The cost-sensitive sets of Lomax (2013): a table and its costs at three levels.

`NAME.csv` holds the covariates and the class `y`; `NAME.json` for each level `misclassification`
(true class first), `prices` (of the first test of a group, or of a test without group) and
`discounted` (group → covariate → price once another member of the group has been paid).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.bench.settings import Setting
from adacos.costs import Costs
from adacos.datasets import Dataset
from adacos.exceptions import InvalidInputError
from adacos.tables.cells import csv_rows, number
from adacos.tables.columns import ColumnTable

LEVELS = ("low", "middle", "high")
_EXAMPLE = "Each set is NAME.csv with the class in column y, and NAME.json with its costs."


class LomaxSet(NamedTuple):
    """A set: its table, what errors cost at each level, and how many classes it has."""

    table: Dataset
    settings: tuple[Setting, ...]
    n_classes: int


def find_sets(folder: Path) -> list[str]:
    """Names of the sets in a folder, or a clear error."""
    names = sorted(path.stem for path in folder.glob("*.json") if path.with_suffix(".csv").exists())
    if not names:
        raise InvalidInputError(
            "data",
            "must be a folder that holds Lomax's sets",
            f"{folder} without any" if folder.is_dir() else f"{folder}, which is no folder",
            f"Pass --data FOLDER. {_EXAMPLE}",
        )
    return names


def read_set(folder: Path, name: str) -> LomaxSet:
    """One set of the folder."""
    columns = _columns(folder / f"{name}.csv")
    if "y" not in columns:
        raise InvalidInputError(f"{name}.csv", "must have a column y", list(columns), _EXAMPLE)
    classes, y = np.unique(columns.pop("y"), return_inverse=True)
    levels = _levels(folder / f"{name}.json", list(columns))
    prices = {str(k): float(v) for k, v in levels[LEVELS[0]]["prices"].items()}
    panels = levels[LEVELS[0]]["discounted"]
    source = f"Lomax (2013), read from {folder / name}"
    table = Dataset(ColumnTable(columns), y, prices, panels, source, tuple(columns))
    settings = tuple(_setting(name, level, levels[level]) for level in LEVELS)
    for setting in settings:
        setting.costs(prices, panels).bind(list(columns), len(classes))
    return LomaxSet(table, settings, len(classes))


def _setting(name: str, level: str, content: dict[str, Any]) -> Setting:
    matrix = Costs(misclassification=content["misclassification"]).matrix.tolist()
    return Setting(level, matrix[0][1], tuple(map(tuple, matrix)), datasets=(name,), panels=True)


def _levels(path: Path, columns: list[str]) -> dict[str, Any]:
    """The content of a costs file: three levels with the same prices."""
    try:
        levels = json.loads(path.read_text(encoding="utf-8"))
        parts = [(levels[level]["prices"], levels[level]["discounted"]) for level in LEVELS]
        whole = all(isinstance(part, dict) for pair in parts for part in pair)
        whole = whole and all("misclassification" in levels[level] for level in LEVELS)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            path.name, f"must hold the levels {', '.join(LEVELS)}", repr(error), _EXAMPLE
        ) from error
    if not whole or any(part != parts[0] for part in parts) or set(parts[0][0]) != set(columns):
        raise InvalidInputError(
            path.name,
            "must price every covariate, the same at each level, and say what errors cost",
            sorted(parts[0][0]) if isinstance(parts[0][0], dict) else parts[0][0],
            _EXAMPLE,
        )
    return dict(levels)


def _columns(path: Path) -> dict[str, NDArray[Any]]:
    """Columns of numbers, and of text where a cell is none."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = [row.cells for row in csv_rows(file, path.name)]
    columns: dict[str, NDArray[Any]] = {}
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        numbers = [number(cell) for cell in cells]
        columns[name] = np.array(cells if None in numbers else numbers)
    return columns

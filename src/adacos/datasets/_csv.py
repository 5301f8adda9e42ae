"""Reading of comma-separated numbers, without a data frame library."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.tables import cells
from adacos.tables.cells import Row, check_names, csv_rows


def read_columns(lines: Iterable[str], source: str) -> dict[str, NDArray[np.float64]]:
    """Columns of a table whose first line holds the names; an empty cell becomes NaN.

    `source` names the table in the errors, which also give the line.
    """
    table = csv_rows(lines, source)
    names = next(table, Row([], 1)).cells
    check_names(names, source)
    rows = []
    for row, line, fault in table:
        if fault or len(row) != len(names):
            raise InvalidInputError(
                source,
                f"line {line} must hold {len(names)} cells, as line 1 does",
                fault or row,
                "Correct or remove the line.",
            )
        rows.append([number(cell, source, line) for cell in row])
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    return dict(zip(names, values.T, strict=True))


def number(cell: str, source: str, line: int) -> float:
    """A finite number, or NaN for an empty cell."""
    value = cells.number(cell)
    if value is None or (cell and isnan(value)):
        raise InvalidInputError(
            source,
            f"line {line} must hold finite numbers, or nothing where a value is unknown",
            cell,
            "Correct the cell or leave it empty.",
        )
    return value


def binary_class(values: NDArray[np.float64], source: str, name: str) -> NDArray[np.int64]:
    """The class column as integers, 0 or 1 in every row."""
    wrong = values[~np.isin(values, (0, 1))]
    if wrong.size:
        raise InvalidInputError(
            source,
            f"column {name} must hold 0 or 1 in every row",
            float(wrong[0]),
            f"Correct the {wrong.size} other value(s) or remove their rows.",
        )
    return values.astype(np.int64)

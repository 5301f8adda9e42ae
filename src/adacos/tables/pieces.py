"""Rows of a file as columns: what a piece of a table is, and how cells become one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import nan
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.tables.cells import UNAVAILABLE, UNKNOWN, Row, no_number, number, truth
from adacos.tables.columns import ColumnTable
from adacos.tables.dates import date_number, no_date
from adacos.tables.encoder import TableEncoder
from adacos.typing import Bools, Ints


class Malformed(NamedTuple):
    """A row that is skipped: its line, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class Piece(NamedTuple):
    """Some rows of a table, the line of each, and the rows between them that are skipped.

    `unavailable` masks the rows with the word `UNAVAILABLE`, by column, where there are any.
    """

    table: ColumnTable
    lines: Ints
    malformed: list[Malformed]
    unavailable: Mapping[str, Bools] = MappingProxyType({})


class Kinds(NamedTuple):
    """How columns are read: those of text, those of true and false; all others are numbers.

    True is 1 and false is 0, in a CSV file as in a Parquet file. Of the columns of text, `codes`
    are those of digits with zeros in front. In columns of `orders` the word `UNAVAILABLE` is no
    value of its own. Those of `dates` are numbers taken from dates, in the way given.
    """

    text: frozenset[str]
    truth: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    orders: frozenset[str] = frozenset()
    dates: Mapping[str, str] = MappingProxyType({})

    @staticmethod
    def of(encoder: TableEncoder) -> Kinds:
        """Kinds of the columns that a model was fitted on."""
        described = zip(encoder.names, encoder.categories, encoder.low, encoder.high, strict=True)
        text, truth, orders = set(), set(), set()
        dates = encoder.date_forms
        for name, levels, low, high in described:
            if levels:
                text.add(name)
            elif name in dates:
                pass
            elif {low, high} <= {0.0, 1.0}:
                truth.add(name)
            if UNAVAILABLE not in {level.lower() for level in levels}:
                orders.add(name)
        return Kinds(frozenset(text), frozenset(truth), orders=frozenset(orders), dates=dates)


def parse_rows(
    rows: list[Row], columns: list[str], wanted: list[str], kinds: Kinds, decimal: str
) -> Piece:
    """Rows of cells as columns; a row with a wrong cell is skipped and reported."""
    width = len(columns)
    malformed = [
        Malformed(row.line, row.fault or f"cells: {len(row.cells)} instead of {width}")
        for row in rows
        if row.fault or (row.cells and len(row.cells) != width)
    ]
    kept = [row for row in rows if len(row.cells) == width]
    if width > 1:
        # As a spreadsheet leaves them below the table: nobody's row.
        empty = [row for row in kept if not any(cell.strip() for cell in row.cells)]
        malformed += [Malformed(row.line, "every cell is empty") for row in empty]
        kept = [row for row in kept if any(cell.strip() for cell in row.cells)]
    lines = np.array([row.line for row in kept], dtype=np.intp)
    cells_of = zip(*(row.cells for row in kept), strict=True) if kept else [()] * width
    by_column = dict(zip(columns, cells_of, strict=True))
    faults: dict[int, str] = {}
    result: dict[str, NDArray[Any]] = {}
    unavailable: dict[str, Bools] = {}
    for name in wanted:
        cells: Sequence[str] = by_column[name]
        if name in kinds.orders:
            cells = noted(cells, name, unavailable)
        if name in kinds.text:
            result[name] = texts(cells)
        else:
            result[name] = numbers(cells, name, kinds, faults, decimal)
    return without(faults, result, lines, malformed, unavailable, kinds)


def noted(cells: Sequence[Any], name: str, unavailable: dict[str, Bools]) -> Sequence[Any]:
    """The cells, empty in place of the word for what is unavailable; where it was is noted."""
    marked = [isinstance(cell, str) and cell.strip().lower() == UNAVAILABLE for cell in cells]
    if not any(marked):
        return cells
    unavailable[name] = np.array(marked, dtype=np.bool_)
    return ["" if mark else cell for cell, mark in zip(cells, marked, strict=True)]


def texts(cells: Iterable[Any]) -> NDArray[np.str_]:
    """Cells as text, with "" for what is unknown."""
    stripped = ("" if cell is None else str(cell).strip() for cell in cells)
    known = ["" if text.lower() in UNKNOWN else text for text in stripped]
    return np.array(known, dtype=np.str_)


def numbers(
    cells: Collection[Any], name: str, kinds: Kinds, faults: dict[int, str], decimal: str = "."
) -> NDArray[np.float64]:
    """Cells of a column as numbers; where one is no number, the row's fault is noted."""
    values: list[float | None]
    form = kinds.dates.get(name)
    if form is not None:
        values = [nan if cell is None else date_number(cell, form) for cell in cells]
    else:
        parse = truth if name in kinds.truth else number
        values = [nan if cell is None else parse(cell, decimal) for cell in cells]
    if None in values:
        for position, (value, cell) in enumerate(zip(values, cells, strict=True)):
            if value is None:
                wrong = no_number(cell, decimal) if form is None else no_date(cell)
                faults.setdefault(position, f"{cell!r} in column {name!r} {wrong}")
        values = [nan if value is None else value for value in values]
    return np.array(values, dtype=np.float64)


def without(
    faults: dict[int, str],
    columns: dict[str, NDArray[Any]],
    lines: Ints,
    more: list[Malformed],
    unavailable: dict[str, Bools],
    kinds: Kinds,
) -> Piece:
    """The piece of these columns, without the rows in which a cell is no number."""
    table = ColumnTable(columns, {n: kinds.dates[n] for n in columns if n in kinds.dates})
    if not faults:
        return Piece(table, lines, sorted(more), unavailable)
    good = np.ones(len(lines), dtype=np.bool_)
    good[list(faults)] = False
    malformed = [Malformed(int(lines[row]), reason) for row, reason in faults.items()]
    noted = {name: mask[good] for name, mask in unavailable.items()}
    return Piece(table[good], lines[good], sorted(more + malformed), noted)

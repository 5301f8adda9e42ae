"""Tables in files: CSV read in pieces, and Parquet.

CSV is read without a data-frame library: a malformed row is known by its line, and memory holds one
piece at a time. A cell without text, or with one of the texts in `MISSING`, is unknown. The word
none is not among them: it often is a category of its own, as in "chest pain: none".
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from math import isinf, nan
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError, MalformedRowsError, MissingExtraError
from adacos.tables.columns import ColumnTable
from adacos.tables.encoder import TableEncoder

Ints = NDArray[np.intp]

CHUNK_ROWS = 50_000
_SAMPLE_ROWS = 10_000
# Texts of a CSV cell that mean unknown, in any case.
MISSING = ("NA", "N/A", "NaN", "null", "?")
_UNKNOWN = frozenset({"", *(text.lower() for text in MISSING)})
_TRUTH = {"true": 1.0, "false": 0.0}
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
# A column is text if fewer of its known cells than this share are numbers.
_NUMERIC_SHARE = 0.9
_MOST_CELL_CHARACTERS = 1_000_000


class Malformed(NamedTuple):
    """A row that was left out: its line, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class Piece(NamedTuple):
    """Some rows of a table, the line of each, and the rows between them that were left out."""

    table: ColumnTable
    lines: Ints
    malformed: list[Malformed]


class Kinds(NamedTuple):
    """How columns are read: those of text, those of true and false; all others are numbers.

    True is 1 and false is 0, in a CSV file as in a Parquet file.
    """

    text: frozenset[str]
    truth: frozenset[str] = frozenset()

    @staticmethod
    def of(encoder: TableEncoder) -> Kinds:
        """Kinds of the columns that a model was fitted on."""
        described = zip(encoder.names, encoder.categories, encoder.low, encoder.high, strict=True)
        text, truth = set(), set()
        for name, levels, low, high in described:
            if levels:
                text.add(name)
            elif {low, high} <= {0.0, 1.0}:
                truth.add(name)
        return Kinds(frozenset(text), frozenset(truth))


class TableFile:
    """A CSV file (plain or .gz) or a Parquet file.

    Attributes
    ----------
    columns : names of the columns.
    """

    def __init__(self, path: str | Path, *, encoding: str = "utf-8-sig") -> None:
        self.path, self._encoding = Path(path), encoding
        if not self.path.is_file():
            raise InvalidInputError("file", "must exist", str(path), "Check the path.")
        if self.path.suffix.lower() in _SPREADSHEETS:
            raise InvalidInputError(
                "file", "must be CSV or Parquet", str(path), "Save the sheet as CSV."
            )
        self.is_parquet = self.path.suffix.lower() in (".parquet", ".pq")
        if self.is_parquet:
            self.columns = [str(name) for name in _parquet().ParquetFile(self.path).schema.names]
        else:
            with self._open() as file:
                self._delimiter, self.columns = self._header(file)

    def kinds(self) -> Kinds:
        """What the columns hold, judged by the first rows."""
        if self.is_parquet:
            schema = _parquet().read_schema(self.path)
            return Kinds(frozenset(field.name for field in schema if not _is_number(field.type)))
        with self._open() as file:
            sample = islice(self._rows(file), _SAMPLE_ROWS)
            rows = [row for row, _ in sample if len(row) == len(self.columns)]
        text, truth = set(), set()
        for name, cells in zip(self.columns, zip(*rows, strict=True), strict=False):
            known = [cell for cell in cells if cell.strip().lower() not in _UNKNOWN]
            if known and all(cell.strip().lower() in _TRUTH for cell in known):
                truth.add(name)
            elif sum(_is_float(cell) for cell in known) < _NUMERIC_SHARE * len(known):
                text.add(name)
        return Kinds(frozenset(text), frozenset(truth))

    def pieces(
        self, only: Collection[str], kinds: Kinds, chunk_rows: int = CHUNK_ROWS
    ) -> Iterator[Piece]:
        """The columns `only`, piece by piece."""
        absent = [name for name in only if name not in self.columns]
        if absent:
            raise InvalidInputError(
                self.path.name,
                "must have every column that is needed",
                f"no {listed(absent)}",
                choices(absent, self.columns, "It has"),
            )
        wanted = [name for name in self.columns if name in set(only)]
        if self.is_parquet:
            yield from self._parquet_pieces(wanted, kinds, chunk_rows)
            return
        with self._open() as file:
            numbered = self._rows(file)
            while taken := list(islice(numbered, chunk_rows)):
                rows, lines = [row for row, _ in taken], [line for _, line in taken]
                yield _parse(rows, lines, self.columns, wanted, kinds)

    def read(self, only: Collection[str], kinds: Kinds, *, skip_malformed: bool = False) -> Piece:
        """All rows at once; malformed ones are an error unless they may be left out."""
        pieces = list(self.pieces(only, kinds))
        malformed = [bad for piece in pieces for bad in piece.malformed]
        if malformed and not skip_malformed:
            raise MalformedRowsError(self.path.name, [str(bad) for bad in malformed])
        if not any(len(piece.table) for piece in pieces):
            raise InvalidInputError(
                self.path.name, "needs at least one row", "no rows", "Check the file."
            )
        names = pieces[0].table.columns
        table = ColumnTable(
            {name: np.concatenate([piece.table.column(name) for piece in pieces]) for name in names}
        )
        return Piece(table, np.concatenate([piece.lines for piece in pieces]), malformed)

    def _open(self) -> IO[str]:
        if self.path.suffix.lower() == ".gz":
            return gzip.open(self.path, "rt", encoding=self._encoding, newline="")
        return open(self.path, encoding=self._encoding, newline="")

    def _header(self, file: IO[str]) -> tuple[str, list[str]]:
        try:
            line = file.readline()
        except UnicodeDecodeError as error:
            raise self._unreadable(error, 1) from error
        delimiter = max(",;\t|", key=line.count)
        columns = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
        if not columns or len(set(columns)) < len(columns) or "" in columns:
            raise InvalidInputError(
                self.path.name,
                "line 1 must hold one different name for each column",
                line.strip(),
                "Add or correct the header.",
            )
        return delimiter, columns

    def _rows(self, file: IO[str]) -> Iterator[tuple[list[str], int]]:
        """Cells and line of each row below the header."""
        csv.field_size_limit(_MOST_CELL_CHARACTERS)
        reader = csv.reader(file, delimiter=self._delimiter)
        try:
            next(reader)
            for row in reader:
                yield row, reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise self._unreadable(error, reader.line_num + 1) from error

    def _unreadable(self, error: Exception, line: int) -> InvalidInputError:
        if isinstance(error, UnicodeDecodeError):
            return InvalidInputError(
                self.path.name,
                f"must be {self._encoding} text",
                f"other bytes after line {line - 1}",
                "It is often worth trying --encoding latin-1.",
            )
        return InvalidInputError(
            self.path.name,
            "must be well-formed CSV",
            f"line {line}: {error}",
            "A quotation mark without its partner is the usual cause.",
        )

    def _parquet_pieces(self, wanted: list[str], kinds: Kinds, chunk_rows: int) -> Iterator[Piece]:
        start = 1
        file = _parquet().ParquetFile(self.path)
        for batch in file.iter_batches(batch_size=chunk_rows, columns=wanted):
            columns: dict[str, NDArray[Any]] = {}
            lines = np.arange(start, start + len(batch))
            start += len(batch)
            faults: dict[int, str] = {}
            for name in wanted:
                cells = batch.column(name).to_pylist()
                if name in kinds.text:
                    columns[name] = np.array(["" if c is None else str(c) for c in cells])
                    continue
                # Numbers that stand as text are read as they are in a CSV file.
                if not _is_number(batch.column(name).type):
                    cells = ["" if c is None else str(c) for c in cells]
                parse = _truth if name in kinds.truth else _number
                values = [nan if c is None else parse(c) for c in cells]
                columns[name] = _numbers(values, cells, name, faults)
            yield _without(faults, columns, lines, [])


def _parse(
    rows: list[list[str]], lines: list[int], columns: list[str], wanted: list[str], kinds: Kinds
) -> Piece:
    """Rows of cells as columns; a row with a wrong cell is left out and told."""
    width = len(columns)
    malformed: list[Malformed] = []
    if any(len(row) != width for row in rows):
        malformed = [
            Malformed(line, f"cells: {len(row)} instead of {width}")
            for row, line in zip(rows, lines, strict=True)
            if row and len(row) != width
        ]
        kept = [(row, line) for row, line in zip(rows, lines, strict=True) if len(row) == width]
        rows, lines = [row for row, _ in kept], [line for _, line in kept]
    by_column = dict(zip(columns, zip(*rows, strict=True) if rows else [()] * width, strict=True))
    faults: dict[int, str] = {}
    result: dict[str, NDArray[Any]] = {}
    for name in wanted:
        cells = by_column[name]
        if name in kinds.text:
            known = ["" if c.strip().lower() in _UNKNOWN else c.strip() for c in cells]
            result[name] = np.array(known, dtype=np.str_)
        else:
            parse = _truth if name in kinds.truth else _number
            result[name] = _numbers([parse(cell) for cell in cells], cells, name, faults)
    return _without(faults, result, np.array(lines, dtype=np.intp), malformed)


def _numbers(
    values: list[float | None], cells: Collection[Any], name: str, faults: dict[int, str]
) -> NDArray[np.float64]:
    """Parsed cells as an array; where one is no number, the row's fault is noted."""
    if None in values:
        for position, (value, cell) in enumerate(zip(values, cells, strict=True)):
            if value is None:
                faults.setdefault(position, f"{cell!r} in column {name!r} is not a finite number")
        values = [nan if value is None else value for value in values]
    return np.array(values, dtype=np.float64)


def _without(
    faults: dict[int, str], columns: dict[str, NDArray[Any]], lines: Ints, more: list[Malformed]
) -> Piece:
    table = ColumnTable(columns)
    if not faults:
        return Piece(table, lines, sorted(more))
    good = np.ones(len(lines), dtype=np.bool_)
    good[list(faults)] = False
    malformed = [Malformed(int(lines[row]), reason) for row, reason in faults.items()]
    return Piece(table[good], lines[good], sorted(more + malformed))


def _number(cell: Any) -> float | None:
    """A number, NaN for an unknown value, None for anything else."""
    try:
        value = float(cell)
    except ValueError:
        return nan if str(cell).strip().lower() in _UNKNOWN else None
    return None if isinf(value) else value


def _truth(cell: Any) -> float | None:
    """True as 1 and false as 0; otherwise like `_number`."""
    value = _TRUTH.get(str(cell).strip().lower())
    return _number(cell) if value is None else value


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    return pyarrow.parquet


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def listed(items: Iterable[Any]) -> str:
    """Items in a row; one that holds a comma itself is quoted."""
    return ", ".join(f'"{item}"' if "," in str(item) else str(item) for item in items)


def did_you_mean(given: Iterable[str], names: Iterable[str]) -> str:
    """A question with the names nearest to those given, and a space; empty if none is near."""
    by_case: dict[str, str] = {}
    for name in names:
        by_case.setdefault(name.casefold(), name)
    near = (get_close_matches(item.casefold(), by_case, n=1) for item in given)
    meant = [by_case[match] for matches in near for match in matches]
    return f"Did you mean {listed(meant)}? " if meant else ""


def choices(given: Iterable[str], names: Collection[str], lead: str) -> str:
    """What could have been meant instead of `given`, then all names after the words `lead`."""
    return f"{did_you_mean(given, names)}{lead} {listed(names)}."

"""Tables in files: CSV and sheets of Excel read in pieces, and Parquet.

CSV is read without a data-frame library: a malformed row is known by its line, and memory holds one
piece at a time. The rows of a sheet are read as those of a CSV file. A cell without text, or with
one of the texts in `MISSING`, is unknown. The word none is not among them: it often is a category
of its own, as in "chest pain: none". In rows for a fitted model the word `UNAVAILABLE` is unknown
too, and noted. Whatever the bytes of a file are, the error is an `InvalidInputError` that names the
file.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError, MalformedRowsError
from adacos.tables import excel, parquet
from adacos.tables.cells import (
    UNKNOWN,
    Row,
    are_codes,
    check_decimal,
    check_names,
    csv_rows,
    delimiter_of,
    is_number,
    is_truth,
)
from adacos.tables.columns import ColumnTable
from adacos.tables.pieces import Kinds, Piece, noted, numbers, parse_rows, texts, without
from adacos.typing import Bools
from adacos.validation import choices, did_you_mean, listed, near_file

CHUNK_ROWS = 50_000
_SAMPLE_ROWS = 10_000
_SPREADSHEETS = (".xls", ".xlsb", ".ods")
# A column is text if fewer of its known cells than this share are numbers.
_NUMERIC_SHARE = 0.9
_MOST_LINE_CHARACTERS = 10_000_000


class TableFile:
    """A CSV file (plain or .gz), a sheet of Excel, a Parquet file or a folder of such; encoding and
    decimal sign are for text.

    Of `table.xlsx` the first sheet is read, of `table.xlsx#Name` that of this name.

    Attributes
    ----------
    columns : names of the columns.
    share_read : how much of the file has been read, 0 to 1.
    """

    def __init__(
        self, path: str | Path, *, encoding: str = "utf-8-sig", decimal: str = "."
    ) -> None:
        self._encoding, self.share_read = encoding, 0.0
        self.path, self._sheet = excel.split_sheet(Path(path))
        check_decimal(decimal)
        self._decimal = decimal
        _check_file(self.path)
        self.is_parquet = parquet.is_parquet(self.path)
        if self.is_parquet:
            self.columns = parquet.column_names(self.path)
            return
        self._is_excel = self.path.suffix.lower() in excel.ENDINGS
        if not self._is_excel:
            _check_encoding(encoding)
            self._refuse_utf16()
            with self._open() as file:
                self._delimiter = delimiter_of(next(self._lines(file), ""), decimal)
        with closing(self._rows()) as rows:
            header = next(rows, Row([], 1))
        self.columns = [name.strip() for name in header.cells]
        check_names(self.columns, self.path.name)

    def kinds(self) -> Kinds:
        """What the columns hold, judged by the first rows."""
        if self.is_parquet:
            return Kinds(parquet.text_columns(self.path))
        with closing(self._rows()) as every:
            sample = islice(every, 1, _SAMPLE_ROWS + 1)
            rows = [row.cells for row in sample if len(row.cells) == len(self.columns)]
        text, true_or_false, codes = set(), set(), set()
        for name, cells in zip(self.columns, zip(*rows, strict=True), strict=False):
            known = [cell for cell in cells if cell.strip().lower() not in UNKNOWN]
            if known and all(is_truth(cell) for cell in known):
                true_or_false.add(name)
            elif known and are_codes(known):
                codes.add(name)
            elif sum(is_number(cell, self._decimal) for cell in known) < _NUMERIC_SHARE * len(
                known
            ):
                text.add(name)
        return Kinds(frozenset(text | codes), frozenset(true_or_false), frozenset(codes))

    def require(self, only: Collection[str]) -> None:
        """Refuse the table if it has not all of these columns."""
        there = set(self.columns)
        absent = [name for name in only if name not in there]
        if absent:
            raise InvalidInputError(
                self.path.name,
                f"has no column {listed(absent)}",
                "",
                # What was asked for by its own name is not meant by another.
                did_you_mean(absent, there.difference(only)) + choices([], self.columns, "It has"),
            )

    def absent(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of the names of covariates that no column has; a near miss is refused."""
        own = {_plain(column): column for column in self.columns if column not in names}
        own.pop("", None)
        absent = tuple(name for name in names if name not in self.columns)
        for name in absent:
            if _plain(name) in own:
                raise InvalidInputError(
                    self.path.name,
                    "its columns must have the names of the covariates",
                    f"{own[_plain(name)]} where the model has {name}",
                    "Rename the column.",
                )
        return absent

    def pieces(
        self,
        only: Collection[str],
        kinds: Kinds,
        chunk_rows: int = CHUNK_ROWS,
        group: int | None = None,
    ) -> Iterator[Piece]:
        """The columns `only`, piece by piece; of a Parquet file, of one group of rows if asked."""
        self.require(only)
        only = set(only)
        wanted = [name for name in self.columns if name in only]
        if self.is_parquet:
            yield from self._parquet_pieces(wanted, kinds, chunk_rows, group)
            return
        with closing(self._rows()) as every:
            rows = islice(every, 1, None)
            while taken := list(islice(rows, chunk_rows)):
                yield parse_rows(taken, self.columns, wanted, kinds, self._decimal)

    def read(
        self,
        only: Collection[str],
        kinds: Kinds,
        *,
        skip_malformed: bool = False,
        progress: Callable[[int, float], None] = lambda rows, share: None,
    ) -> Piece:
        """All rows at once; malformed ones are an error unless they may be skipped.

        `progress` is called with the number of rows and the share of the file read so far.
        """
        pieces: list[Piece] = []
        for piece in self.pieces(only, kinds):
            pieces.append(piece)
            progress(sum(len(part.lines) for part in pieces), self.share_read)
        malformed = [bad for piece in pieces for bad in piece.malformed]
        if malformed and not skip_malformed:
            raise MalformedRowsError(self.path.name, [str(bad) for bad in malformed])
        if not any(len(piece.table) for piece in pieces):
            raise InvalidInputError(
                self.path.name, "needs at least one row", "no rows", "Check the file."
            )
        names = pieces[0].table.columns
        table = ColumnTable(
            {
                name: np.concatenate([piece.table.column(name) for piece in pieces])
                for name in names
            },
            pieces[0].table.dates,
        )
        return Piece(table, np.concatenate([piece.lines for piece in pieces]), malformed)

    def _refuse_utf16(self) -> None:
        """Spreadsheets save "Unicode text" as UTF-16, whose first two bytes say so."""
        with self._open() as file:
            begins = cast(TextIOWrapper, file).buffer.read(2)
        wide = codecs.lookup(self._encoding).name.startswith(("utf-16", "utf-32"))
        if begins in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and not wide:
            rule, remedy = f"must be {self._encoding} text", "Read it with --encoding utf-16."
            raise InvalidInputError(self.path.name, rule, "UTF-16 text", remedy)

    @contextmanager
    def _open(self) -> Iterator[IO[str]]:
        compressed = self.path.suffix.lower() == ".gz"
        try:
            with open(self.path, "rb") as raw:
                self._raw, self._size = raw, max(os.fstat(raw.fileno()).st_size, 1)
                data: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
                with TextIOWrapper(data, encoding=self._encoding, newline="") as file:
                    yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidInputError(
                self.path.name,
                "must be a whole gzip file",
                str(error),
                "It is cut short or damaged: fetch it again.",
            ) from error

    def _lines(self, file: IO[str]) -> Iterator[str]:
        """Lines of bounded length, so that memory is, whatever the file holds."""
        count = 0
        try:
            while line := file.readline(_MOST_LINE_CHARACTERS):
                count += 1
                if len(line) == _MOST_LINE_CHARACTERS:
                    raise InvalidInputError(
                        self.path.name,
                        f"no line may hold {_MOST_LINE_CHARACTERS:,} characters or more",
                        f"line {count}",
                        "Check that it is a CSV file.",
                    )
                yield line
        except UnicodeError as error:
            raise InvalidInputError(
                self.path.name,
                f"must be {self._encoding} text",
                f"other bytes after line {count}",
                "It is often worth trying --encoding latin-1.",
            ) from error

    def _rows(self) -> Generator[Row]:
        """The rows of cells, the header among them."""
        if self._is_excel:
            for row, share in excel.rows(self.path, self._sheet, self._decimal):
                self.share_read = share
                yield row
            return
        with self._open() as file:
            rows = csv_rows(self._lines(file), self.path.name, self._delimiter)
            for count, row in enumerate(rows):
                if count % 1000 == 0:
                    self.share_read = self._raw.tell() / self._size
                yield row

    def _parquet_pieces(
        self, wanted: list[str], kinds: Kinds, chunk_rows: int, group: int | None
    ) -> Iterator[Piece]:
        start = 1 + (parquet.rows_before(self.path, group) if group else 0)
        as_text = kinds.text | kinds.dates.keys()
        for batch, share in parquet.batches(self.path, wanted, as_text, chunk_rows, group):
            self.share_read = share
            columns: dict[str, NDArray[Any]] = {}
            unavailable: dict[str, Bools] = {}
            lines = np.arange(start, start + len(batch[wanted[0]]))
            start += len(lines)
            faults: dict[int, str] = {}
            for name in wanted:
                own = batch[name]
                if isinstance(own, np.ndarray):
                    columns[name] = own
                    continue
                cells = noted(own, name, unavailable) if name in kinds.orders else own
                if name in kinds.text:
                    columns[name] = texts(cells)
                    continue
                columns[name] = numbers(cells, name, kinds, faults)
            yield without(faults, columns, lines, [], unavailable, kinds)


def _plain(name: str) -> str:
    """A name without what people write one way or another."""
    return "".join(filter(str.isalnum, name.casefold()))


def _check_file(path: Path) -> None:
    if not path.exists():
        raise InvalidInputError(
            "file", "must exist", str(path), near_file(path) or "Check the path."
        )
    if path.is_dir():
        if parquet.files(path):
            return
        raise InvalidInputError(
            "file",
            "a folder must hold Parquet files",
            str(path),
            "None in it ends in .parquet or .pq. Name a CSV file itself.",
        )
    if not path.is_file():
        raise InvalidInputError(
            "file", "must be a plain file", str(path), "Write a pipe into a file first."
        )
    if path.suffix.lower() in _SPREADSHEETS:
        raise InvalidInputError(
            "file",
            "must be CSV, Parquet or .xlsx",
            str(path),
            "Save it as .xlsx or the sheet as CSV.",
        )


def _check_encoding(encoding: str) -> None:
    try:
        TextIOWrapper(BytesIO(), encoding=encoding)
    except (LookupError, ValueError):
        raise InvalidInputError(
            "encoding", "must be a text encoding", encoding, "For example utf-8 or latin-1."
        ) from None

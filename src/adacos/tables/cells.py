"""Cells of CSV text, strictly: every line belongs to one row, or is named in an error.

The one CSV reader of the library. A quotation mark without its partner swallows the rows up to the
next one, and a lenient reader says nothing about it. Here a quoted cell that is never closed, that
runs over more lines than any note does, or that holds lines shaped like the row it is in, is an
error with the line on which it begins: how many rows it swallowed is unknown, so it is never
skipped. A row that is wrong within its own line is reported by its line and may be skipped.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from math import isinf, nan
from typing import Any, NamedTuple

from adacos.exceptions import InvalidInputError
from adacos.validation import listed

DELIMITERS = ",;\t|"
# Decimal signs, and what each is called.
DECIMALS = {".": "point", ",": "comma"}
# Texts of a cell that mean unknown, in any case.
MISSING = ("NA", "N/A", "NaN", "null", "?")
UNKNOWN = frozenset({"", *(text.lower() for text in MISSING)})
# Text of a cell, in any case, whose value cannot be acquired, where others may be acquired later.
UNAVAILABLE = "unavailable"
# Digits as they are typed; a digit of another script is a number too, and no code here.
_DIGITS = re.compile(r"[0-9]+")
# From this share of cells with zeros in front a column of digits holds codes.
_PADDED_SHARE = 0.1
_TRUTH = {"true": 1.0, "false": 0.0}
_MOST_CELL_CHARACTERS = 1_000_000
_MOST_CELL_LINES = 200
# Rows that show what the cells of a column hold.
_RECENT_ROWS, _LEAST_CELLS = 100, 5
_LINE_END = re.compile(r"\r\n|\r|\n")
_DIGIT_AND_SIGN = re.compile(r".*\d[.,'\s\u00a0\u202f]\d")
_QUOTE = (
    "A quotation mark without its partner is the usual cause. A note whose lines look like rows "
    "must be written in one line."
)


class Row(NamedTuple):
    """Cells of one row and the line on which it ends; `fault` says why it cannot be read."""

    cells: list[str]
    line: int
    fault: str = ""


# Columns that a refused header names.
_MOST_NAMED = 20


def csv_rows(lines: Iterable[str], source: str, delimiter: str = ",") -> Iterator[Row]:
    """Rows of CSV text, the header among them; `source` names the text in errors."""
    rows = _rows_as_read(lines, source, delimiter)
    # The first rows are judged by one another.
    head = list(islice(rows, _RECENT_ROWS))
    width = next((len(row.cells) for row, _ in head if row.cells), 0)
    recent = deque(
        (row.cells for row, own in head[1:] if len(row.cells) == width and len(own) == 1),
        maxlen=_RECENT_ROWS,
    )
    for number, (row, own) in enumerate(chain(head, rows)):
        if len(own) > 1 and (
            len(row.cells) != width
            or len(own) > _MOST_CELL_LINES
            or _holds_rows(own, row.cells, recent if number else (), delimiter)
        ):
            begins = row.line - len(own) + 1
            raise _unclosed(source, begins, f"line {row.line}, over whole rows")
        if number >= _RECENT_ROWS and len(row.cells) == width:
            recent.append(row.cells)
        yield row


def _rows_as_read(
    lines: Iterable[str], source: str, delimiter: str
) -> Iterator[tuple[Row, list[str]]]:
    """Rows as a lenient reader would have them, each with its lines."""
    csv.field_size_limit(_MOST_CELL_CHARACTERS)
    own: list[str] = []

    def kept() -> Iterator[str]:
        for line in lines:
            own.append(line)
            yield line

    reader = csv.reader(kept(), delimiter=delimiter, strict=True)
    while True:
        begins = reader.line_num + 1
        own.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise _unclosed(source, begins, "the end of the file") from None
            if reader.line_num > begins or "limit" in str(error):
                raise _unclosed(source, begins, f"line {reader.line_num} ({error})") from None
            yield Row([], reader.line_num, f"quotation marks: {error}"), list(own)
            continue
        yield Row(cells, reader.line_num), list(own)


def delimiter_of(header: str, decimal: str = ".") -> str:
    """The delimiter that cuts a header into the most cells; of several, not the decimal sign."""

    def cells(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        except csv.Error:
            return 0

    return max(sorted(DELIMITERS, key=decimal.__eq__), key=cells)


def check_decimal(decimal: str) -> None:
    """A decimal sign is a point or a comma."""
    if decimal not in DECIMALS:
        raise InvalidInputError(
            "decimal", "must be a point or a comma", decimal, 'For example decimal=",".'
        )


def check_names(names: list[str], source: str) -> None:
    """A header holds one different name for each column."""
    repeated = sorted(name for name, count in Counter(names).items() if name and count > 1)
    unnamed = [place for place, name in enumerate(names, start=1) if not name]
    if not names or repeated or unnamed:
        problems = [f"more than one {_first(repeated)}"] * bool(repeated)
        problems += [f"no name for column {_first(unnamed)}"] * bool(unnamed)
        raise InvalidInputError(
            source,
            "line 1 must hold one different name for each column",
            "; ".join(problems) or "nothing",
            "Add or correct the header.",
        )


def _first(items: Sequence[Any]) -> str:
    """The first items of a list, and how many more there are."""
    more = len(items) - _MOST_NAMED
    return listed(items[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def number(cell: Any, decimal: str = ".") -> float | None:
    """A finite number, NaN for an unknown value, None for anything else.

    With a decimal comma there may be no point: whether it separates thousands is unknown.
    """
    try:
        value = float(cell if decimal == "." else with_point(cell))
    except (ValueError, OverflowError):
        return nan if str(cell).strip().lower() in UNKNOWN else None
    # Python reads 1_0 as 10; in a table it is a slip or a code.
    return None if isinf(value) or (isinstance(cell, str) and "_" in cell) else value


def with_point(cell: Any) -> Any:
    """A text with a decimal comma as one with a decimal point; none that holds a point already."""
    if not isinstance(cell, str):
        return cell
    return "" if "." in cell else cell.replace(",", ".")


def no_number(cell: Any, decimal: str = ".") -> str:
    """Why a cell is refused where a number should be, in words."""
    if isinstance(cell, str) and _DIGIT_AND_SIGN.match(cell):
        sign = DECIMALS[decimal]
        return f"is not a finite number with a decimal {sign} and no separators of thousands"
    return "is not a finite number"


def truth(cell: Any, decimal: str = ".") -> float | None:
    """True as 1 and false as 0; otherwise like `number`."""
    value = _TRUTH.get(str(cell).strip().lower())
    return number(cell, decimal) if value is None else value


def is_truth(cell: str) -> bool:
    """Whether a cell says true or false."""
    return cell.strip().lower() in _TRUTH


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell holds a number, infinite ones included."""
    try:
        float(cell if decimal == "." else with_point(cell))
    except ValueError:
        return False
    return "_" not in cell


def are_codes(cells: Sequence[str]) -> bool:
    """Whether cells of digits are codes, which are no numbers: 00501 and 501 are two of them.

    Zeros in front say so where every cell has the same length, or where a tenth has them; in
    fewer cells of several lengths they are a way of writing a number.
    """
    if not all(_DIGITS.fullmatch(cell.strip()) for cell in cells):
        return False
    lengths = {len(cell.strip()) for cell in cells}
    padded = sum(cell.strip()[0] == "0" and len(cell.strip()) > 1 for cell in cells)
    return padded > 0 and (len(lengths) == 1 or padded >= _PADDED_SHARE * len(cells))


def _holds_rows(
    lines: list[str], cells: list[str], recent: Iterable[list[str]], delimiter: str
) -> bool:
    """Whether the lines of a row look like rows that a stray quotation mark ran over.

    Lines have numbers where rows have numbers; and one of them has as many cells as the row and
    such a number, or all together have as many cells as that many rows. A line is compared with
    recent rows and with the cells of its row that stand on other lines.
    """
    width, shapes, count = len(cells), [], 0
    broken = [column for column, cell in enumerate(cells) if _LINE_END.search(cell)]
    for number, line in enumerate(lines):
        parts = _cells_alone(line, delimiter, width)
        first = broken[0] if number == 0 else 0
        last = broken[-1] if number == len(lines) - 1 else width - 1
        if parts == [""]:
            continue
        count += len(parts)
        compared = dict(enumerate(parts))
        if len(parts) != width:
            # With too many or too few cells a line still begins and ends as a row does.
            compared = {0: parts[0], width - 1: parts[-1]}
        kinds = []
        for column in compared.keys() & set(range(first, last + 1)):
            seen = [row[column] for row in recent]
            seen += [] if column in broken else [cells[column]]
            kinds.append((_kind(seen, _LEAST_CELLS), _kind([compared[column]])))
        shapes.append((True, False) not in kinds)
        if len(parts) == width and shapes[-1] and (True, True) in kinds:
            return True
    return all(shapes) and count >= len(shapes) * width


def _cells_alone(line: str, delimiter: str, width: int) -> list[str]:
    """Cells of a line by itself: with its quotation marks if they are then as many as there should
    be, else without."""
    line = line.rstrip("\r\n")
    cells = next(csv.reader([line], delimiter=delimiter), [""])
    return cells if len(cells) == width else line.replace('"', "").split(delimiter)


def _kind(cells: list[str], least: int = 1) -> bool | None:
    """Whether all known cells hold numbers; None if there are too few to say."""
    known = [cell for cell in cells if cell.strip().lower() not in UNKNOWN]
    return all(map(is_number, known)) if len(known) >= least else None


def _unclosed(source: str, line: int, end: str) -> InvalidInputError:
    return InvalidInputError(
        source,
        "every quoted cell must be closed, or rows would be lost",
        f"line {line}: a quoted cell begins and runs to {end}",
        _QUOTE,
    )

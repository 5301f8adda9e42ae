"""Cells of CSV text, strictly: every line belongs to one row, or is named in an error.

The one CSV reader of the library. A quotation mark without its partner swallows the rows up to the
next one, and a lenient reader says nothing about it. Here a quoted cell that is never closed, that
runs over more lines than any note does, or that holds lines shaped like the row it stands in, is an
error with the line on which it begins: how many rows it swallowed cannot be told, so it is never
skipped. A row that is wrong within its own line is told by its line and may be left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from math import isinf, nan
from typing import Any, NamedTuple

from adacos.exceptions import InvalidInputError

DELIMITERS = ",;\t|"
# Decimal signs, and what each is called.
DECIMALS = {".": "point", ",": "comma"}
# Texts of a cell that mean unknown, in any case.
MISSING = ("NA", "N/A", "NaN", "null", "?")
UNKNOWN = frozenset({"", *(text.lower() for text in MISSING)})
_TRUTH = {"true": 1.0, "false": 0.0}
_MOST_CELL_CHARACTERS = 1_000_000
_MOST_CELL_LINES = 200
_LINE_END = re.compile(r"\r\n|\r|\n")
_DIGIT_AND_SIGN = re.compile(r".*\d[.,'\s\u00a0\u202f]\d")
_QUOTE = "A quotation mark without its partner is the usual cause."


class Row(NamedTuple):
    """Cells of one row and the line on which it ends; `fault` says why it cannot be read."""

    cells: list[str]
    line: int
    fault: str = ""


def csv_rows(lines: Iterable[str], source: str, delimiter: str = ",") -> Iterator[Row]:
    """Rows of CSV text, the header among them; `source` names the text in errors."""
    csv.field_size_limit(_MOST_CELL_CHARACTERS)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        begins = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise _unclosed(source, begins, "the end of the file") from None
            if reader.line_num > begins or "limit" in str(error):
                raise _unclosed(source, begins, f"line {reader.line_num} ({error})") from None
            yield Row([], reader.line_num, f"quotation marks: {error}")
            continue
        width = width or len(cells)
        if reader.line_num > begins and (
            len(cells) != width or _holds_rows(cells, delimiter, reader.line_num - begins)
        ):
            raise _unclosed(source, begins, f"line {reader.line_num}, over whole rows")
        yield Row(cells, reader.line_num)


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
    if not names or len(set(names)) < len(names) or "" in names:
        raise InvalidInputError(
            source,
            "line 1 must hold one different name for each column",
            ", ".join(names),
            "Add or correct the header.",
        )


def number(cell: Any, decimal: str = ".") -> float | None:
    """A finite number, NaN for an unknown value, None for anything else.

    With a decimal comma there may be no point: whether it separates thousands cannot be told.
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


def _holds_rows(cells: list[str], delimiter: str, more_lines: int) -> bool:
    """Whether a cell of several lines looks like rows that a stray quotation mark ran over.

    A line inside it is like the row itself if it has as many cells, and numbers where the row has
    numbers; of its last line only the cells before the quotation mark are known.
    """
    if more_lines > _MOST_CELL_LINES:
        return True
    for position, cell in enumerate(cells):
        lines = _LINE_END.split(cell)[1:]
        for count, line in enumerate(lines, start=1):
            parts = line.split(delimiter)
            if len(parts) != (len(cells) if count < len(lines) else position + 1):
                continue
            kinds = [
                (is_number(part), is_number(cells[k]))
                for k, part in enumerate(parts)
                if k != position and not {part.strip().lower(), cells[k].strip().lower()} & UNKNOWN
            ]
            if (True, True) in kinds and all(here == there for here, there in kinds):
                return True
    return False


def _unclosed(source: str, line: int, end: str) -> InvalidInputError:
    return InvalidInputError(
        source,
        "every quoted cell must be closed, or rows would be lost",
        f"line {line}: a quoted cell begins and runs to {end}",
        _QUOTE,
    )

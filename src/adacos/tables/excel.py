"""Excel files through openpyxl, an extra: a sheet as rows of cells, read as those of a CSV file.

A number is written as Python writes it, a date as 2026-01-31, true and false as words. Of a formula
the value counts that the spreadsheet saved. Whatever is wrong is an `InvalidInputError`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.tables.cells import Row
from adacos.validation import choices

ENDINGS = (".xlsx", ".xlsm")
# A file whose members are larger together than this once unpacked is refused.
MOST_BYTES = 2 << 30
_MARK = "#"


def split_sheet(path: Path) -> tuple[Path, str | None]:
    """The file and the sheet of `table.xlsx#Sheet`; no sheet where none is named."""
    if path.suffix.lower() in ENDINGS or path.exists():
        return path, None
    text = str(path)
    for ending in ENDINGS:
        place = text.lower().find(ending + _MARK)
        if place > 0:
            end = place + len(ending)
            return Path(text[:end]), text[end + 1 :]
    return path, None


def rows(path: Path, sheet: str | None, decimal: str = ".") -> Iterator[tuple[Row, float]]:
    """Rows of a sheet, the first one where none is named, each with the share read by then.

    Empty cells at the end of a row, and empty rows at the end of a sheet, are those that a
    spreadsheet leaves around a table: they are not handed over.
    """
    with _sheet(path, sheet) as own:
        last = max(own.max_row or 1, 1)
        own.reset_dimensions()
        width, empty = 0, []
        for line, cells in enumerate(own.iter_rows(), start=1):
            texts = [_text(cell.value, decimal) for cell in cells]
            while len(texts) > width and not texts[-1]:
                texts.pop()
            texts += [""] * (width - len(texts))
            wrong = [cell for cell in cells if cell.data_type == "e"]
            fault = f"{wrong[0].coordinate} holds the error {wrong[0].value}" if wrong else ""
            row = Row(texts, line, fault)
            width = width or len(texts)
            if not any(texts):
                empty.append((row, line / last))
                continue
            yield from empty
            empty.clear()
            yield row, min(line / last, 1.0)


def _text(value: Any, decimal: str) -> str:
    """A cell as it would be written in a CSV file with this decimal sign."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value) if value.is_integer() else value).replace(".", decimal)
    if isinstance(value, datetime) and value.time() == time(0):
        value = value.date()
    return value.isoformat() if isinstance(value, date) else str(value).strip()


@contextmanager
def _sheet(path: Path, sheet: str | None) -> Iterator[Any]:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "excel") from error
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MOST_BYTES:
            raise ValueError(f"{size:,} bytes once unpacked, more than {MOST_BYTES:,}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:
        raise _damaged(path, error) from error
    try:
        names = [own.title for own in book.worksheets]
        if sheet is not None and sheet not in names:
            example = (
                f"{choices([sheet], names, 'It has')} Name one as {path.name}{_MARK}{names[0]}."
            )
            raise InvalidInputError(path.name, "must have the sheet that is named", sheet, example)
        yield book.worksheets[0] if sheet is None else book[sheet]
    except InvalidInputError:
        raise
    except Exception as error:
        raise _damaged(path, error) from error
    finally:
        book.close()


def _damaged(path: Path, error: Exception) -> InvalidInputError:
    """The error for a file that openpyxl, zipfile or the XML parser cannot read."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InvalidInputError(
        path.name,
        "must be a whole Excel file (.xlsx)",
        reason,
        "It is cut short, damaged or protected: save it again, or save the sheet as CSV.",
    )

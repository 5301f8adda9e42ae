"""Parquet files through pyarrow, an extra: whatever is wrong with one is an `InvalidInputError`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.tables.cells import check_names
from adacos.typing import Floats
from adacos.validation import listed

ENDINGS = (".parquet", ".pq")


def is_parquet(path: Path) -> bool:
    """Whether a path names Parquet: a file by its ending, or a folder of such files."""
    return path.suffix.lower() in ENDINGS or bool(path.is_dir() and files(path))


def files(path: Path) -> list[Path]:
    """The files of a table: itself, or all in a folder, by their names."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.suffix.lower() in ENDINGS and p.is_file())


def column_names(path: Path) -> list[str]:
    """Names of the columns, which all files must share."""
    first: list[str] = []
    for file in files(path):
        with _readable(file) as pyarrow_parquet:
            names = [str(name) for name in pyarrow_parquet.read_schema(file).names]
        check_names(names, file.name)
        first = first or names
        if set(names) != set(first):
            raise InvalidInputError(
                file.name,
                "files of one table must have the same columns",
                listed(sorted(set(names) ^ set(first))),
                "Keep other tables in folders of their own.",
            )
    return first


def text_columns(path: Path) -> frozenset[str]:
    """Columns that hold text or categories."""
    found: set[str] = set()
    for file in files(path):
        with _readable(file) as pyarrow_parquet:
            schema = pyarrow_parquet.read_schema(file)
        found |= {field.name for field in schema if _is_text(field.type)}
    return frozenset(found)


def n_rows(path: Path) -> int:
    """Number of rows."""
    total = 0
    for file in files(path):
        with _readable(file) as pyarrow_parquet:
            total += int(pyarrow_parquet.read_metadata(file).num_rows)
    return total


def row_groups(path: Path) -> list[tuple[Path, int]]:
    """File and number of each group of rows, in the order of the table, without empty ones."""
    found = []
    for file in files(path):
        with _readable(file) as pyarrow_parquet:
            metadata = pyarrow_parquet.read_metadata(file)
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        found += [(file, number) for number, size in enumerate(sizes) if size]
    return found


def rows_before(file: Path, group: int) -> int:
    """Rows of a file in the groups before this one."""
    with _readable(file) as pyarrow_parquet:
        metadata = pyarrow_parquet.read_metadata(file)
    return sum(int(metadata.row_group(number).num_rows) for number in range(group))


def batches(
    path: Path, wanted: list[str], text: Collection[str], rows: int, group: int | None = None
) -> Iterator[tuple[dict[str, list[Any] | Floats], float]]:
    """Cells by column, at most that many rows at a time, and the share of the table read by then.

    Numbers come as an array with NaN for what is missing, unless one is infinite or the column is
    to be read as `text`. What is no number is handed over as text, so that it is read as in a CSV
    file. From a single file one group of rows can be read alone.
    """
    done, whole = 0, max(n_rows(path), 1)
    for file in files(path):
        with _readable(file) as pyarrow_parquet, pyarrow_parquet.ParquetFile(file) as opened:
            only = None if group is None else [group]
            for batch in opened.iter_batches(batch_size=rows, row_groups=only, columns=wanted):
                done += len(batch)
                columns = {name: _cells(batch.column(name), name, text, file) for name in wanted}
                yield columns, done / whole


def _cells(column: Any, name: str, text: Collection[str], file: Path) -> list[Any] | Floats:
    if not _is_number(column.type):
        if name not in text and not _is_text(column.type) and column.null_count < len(column):
            raise InvalidInputError(
                f"column {name!r} of {file.name}",
                "must be numeric, boolean, text or categorical",
                str(column.type),
                "Convert it, for example a date to a number of days, or leave it out. adacos fit "
                f"reads a date with --date {name}=month.",
            )
        return [None if cell is None else str(cell) for cell in column.to_pylist()]
    if name not in text:
        # As in a CSV file an integer that no float holds becomes the nearest one that does.
        values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        if not np.isinf(values).any():
            return np.array(values, dtype=np.float64)
    return list(column.to_pylist())


@contextmanager
def _readable(path: Path) -> Iterator[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        yield pyarrow.parquet
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            path.name,
            "must be a whole Parquet file",
            str(error).splitlines()[0] if str(error) else type(error).__name__,
            "It is cut short or damaged: fetch it again.",
        ) from error


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type) or _is_number(kind.value_type)
    return str(kind) in ("string", "large_string", "string_view")

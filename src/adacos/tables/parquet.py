"""Parquet files through pyarrow, an extra: whatever is wrong with one is an `InvalidInputError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.tables.cells import check_names


def column_names(path: Path) -> list[str]:
    """Names of the columns."""
    with _readable(path) as pyarrow_parquet:
        names = [str(name) for name in pyarrow_parquet.read_schema(path).names]
    check_names(names, path.name)
    return names


def text_columns(path: Path) -> frozenset[str]:
    """Columns that hold no numbers."""
    with _readable(path) as pyarrow_parquet:
        schema = pyarrow_parquet.read_schema(path)
    return frozenset(field.name for field in schema if not _is_number(field.type))


def batches(
    path: Path, wanted: list[str], rows: int
) -> Iterator[tuple[dict[str, list[Any]], float]]:
    """Cells by column, at most so many rows at a time, and the share of the file read by then.

    What is no number is handed over as text, so that it is read as in a CSV file.
    """
    done = 0
    with _readable(path) as pyarrow_parquet, pyarrow_parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            done += len(batch)
            columns = {}
            for name in wanted:
                cells = batch.column(name).to_pylist()
                if not _is_number(batch.column(name).type):
                    cells = [None if cell is None else str(cell) for cell in cells]
                columns[name] = cells
            yield columns, done / max(file.metadata.num_rows, 1)


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

"""Score files of any size: rows are read, answered and written in pieces.

Memory holds one piece at a time. The output appears when the last row is written; anything that
stops the run before leaves no output behind.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError, MalformedRowsError, MissingExtraError
from adacos.policies.base import BasePolicy
from adacos.tables.reading import (
    CHUNK_ROWS,
    Kinds,
    Malformed,
    Piece,
    TableFile,
    choices,
)
from adacos.tables.writing import whole_or_absent

Write = Callable[[dict[str, list[Any]]], None]

_PARQUET = (".parquet", ".pq")
RESULTS = ("label", "probability", "cost", "expected_cost", "acquired")


@dataclass(frozen=True)
class ScoreSummary:
    """What was scored.

    Attributes
    ----------
    rows : number of rows scored.
    malformed : rows left out.
    labels : how often each label was given.
    mean_cost : mean covariate cost paid.
    mean_expected_cost : mean of covariate cost plus Bayes risk.
    """

    rows: int
    malformed: list[Malformed]
    labels: dict[str, int]
    mean_cost: float
    mean_expected_cost: float


def score_file(
    policy: BasePolicy,
    source: str | Path,
    destination: str | Path,
    *,
    known: Sequence[str] = (),
    keep: Sequence[str] = (),
    skip_malformed: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    encoding: str = "utf-8-sig",
    progress: Callable[[int], None] = lambda rows: None,
) -> ScoreSummary:
    """Answer every row of a CSV or Parquet file into another one.

    The output has the columns of `keep`, then label, probability, cost, expected_cost, and what was
    acquired, in order, separated by semicolons.

    Parameters
    ----------
    policy : a fitted policy.
    source, destination : files; the ending says of which kind.
    known : covariates known from the start in every row that has a value.
    keep : columns to copy, such as an identifier.
    skip_malformed : leave rows out that cannot be read; by default they are an error.
    chunk_rows : rows in memory at a time.
    encoding : of a CSV source.
    progress : called with the number of rows written so far.
    """
    names = policy.encoder_.names
    _check_names("known", known, names, "must name covariates of the model")
    if Path(destination).suffix.lower() not in (".csv", *_PARQUET):
        raise InvalidInputError(
            "output", "must end in .csv, .parquet or .pq", str(destination), "Rename it."
        )
    clash = [name for name in keep if name in RESULTS]
    if clash:
        raise InvalidInputError(
            "keep", "must not name a column of the results", clash, "Rename it in the input."
        )
    file = TableFile(source, encoding=encoding)
    _check_names("keep", keep, file.columns, "must name columns of the input")
    kinds = Kinds.of(policy.encoder_)
    kinds = kinds._replace(text=kinds.text | (set(keep) - set(names)))
    rows, labels, malformed = 0, Counter[str](), list[Malformed]()
    sums = np.zeros(2)
    with whole_or_absent(destination) as temporary, _writer(destination, temporary) as write:
        for piece in file.pieces({*names, *keep}, kinds, chunk_rows):
            malformed += piece.malformed
            if malformed and not skip_malformed:
                raise MalformedRowsError(file.path.name, [str(bad) for bad in malformed])
            if len(piece.table) == 0:
                continue
            result = _answer(policy, piece, known)
            write({**_kept(piece, keep), **_columns(result)})
            rows += len(result)
            labels.update(str(label) for label in result.label.tolist())
            sums += result.cost.sum(), result.expected_cost.sum()
            progress(rows)
        if rows == 0:
            raise InvalidInputError(
                file.path.name, "needs at least one row", "no rows", "Check the file."
            )
    return ScoreSummary(rows, malformed, dict(labels), *(sums / rows).tolist())


def _answer(policy: BasePolicy, piece: Piece, known: Sequence[str]) -> AcquisitionResult:
    table = piece.table.select(list(policy.encoder_.names))
    if not known:
        return policy.acquire(table)
    mask = np.zeros(table.shape, dtype=np.bool_)
    for position, name in enumerate(policy.encoder_.names):
        if name in known:
            values = table.column(name)
            mask[:, position] = values != "" if values.dtype.kind == "U" else ~np.isnan(values)
    return policy.acquire(table, known=mask)


def _kept(piece: Piece, keep: Sequence[str]) -> dict[str, list[Any]]:
    return {name: piece.table.column(name).tolist() for name in keep}


def _columns(result: AcquisitionResult) -> dict[str, list[Any]]:
    listed: dict[bytes, str] = {}
    acquired = []
    for row, order in enumerate(result.order):
        pattern = order.tobytes()
        if pattern not in listed:
            listed[pattern] = ";".join(result.covariates(row))
        acquired.append(listed[pattern])
    return {
        "label": result.label.tolist(),
        "probability": result.probability.tolist(),
        "cost": result.cost.tolist(),
        "expected_cost": result.expected_cost.tolist(),
        "acquired": acquired,
    }


@contextmanager
def _writer(destination: str | Path, temporary: Path) -> Iterator[Write]:
    """A function that appends columns to the file, in the format of the destination's ending."""
    if Path(destination).suffix.lower() in _PARQUET:
        with _parquet_writer(temporary) as write:
            yield write
        return
    with open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        begun = False

        def write_rows(columns: dict[str, list[Any]]) -> None:
            nonlocal begun
            if not begun:
                writer.writerow(columns)
                begun = True
            writer.writerows(zip(*columns.values(), strict=True))

        yield write_rows


@contextmanager
def _parquet_writer(temporary: Path) -> Iterator[Write]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    writer = None

    def write(columns: dict[str, list[Any]]) -> None:
        nonlocal writer
        table = pyarrow.table(columns)
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(temporary, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _check_names(parameter: str, given: Sequence[str], names: Sequence[str], rule: str) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidInputError(parameter, rule, unknown, choices(unknown, names, "They are"))

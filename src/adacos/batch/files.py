"""One file answered into another by this process.

Memory holds one piece at a time. The output appears when the last row is written; anything that
stops the run before leaves no output behind.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError, MalformedRowsError, MissingExtraError
from adacos.families import family_of
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import inner_fits
from adacos.policies.partitions import acquired_texts
from adacos.tables.cells import is_number
from adacos.tables.columns import ColumnTable
from adacos.tables.description import Description, description_of
from adacos.tables.parquet import ENDINGS
from adacos.tables.pieces import Kinds, Malformed, Piece
from adacos.tables.reading import CHUNK_ROWS, TableFile
from adacos.tables.unusual import KINDS, unusual
from adacos.tables.writing import refuse_same_file, whole_or_absent
from adacos.typing import Bools, Floats
from adacos.validation import and_more, choices, listed

Write = Callable[[dict[str, list[Any]]], None]

RESULTS = ("label", "class", "probability", "cost", "expected_cost", "acquired", "unusual")
# A spreadsheet takes text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class ScoreSummary:
    """What was scored.

    Attributes
    ----------
    rows_read : number of rows in the source.
    rows : number of rows scored and written: those read without the malformed ones.
    malformed : rows that could not be read, which are omitted.
    labels : how often each label was given.
    mean_cost : mean covariate cost paid.
    mean_expected_cost : mean of covariate cost plus Bayes risk.
    unusual : how many of the values that were acquired or known are unlike those of the training
        rows, by kind ("outside_range", "implausible", "unknown_category", "unknown_value").
    unusual_rows : number of rows with such a value.
    absent : covariates that the source has no column of: unavailable for every row.
    blank : by covariate that has a cost, how many of its cells are blank: unavailable there. None
        where workers scored, who do not count them.
    """

    rows_read: int
    rows: int
    malformed: list[Malformed]
    labels: dict[str, int]
    mean_cost: float
    mean_expected_cost: float
    unusual: dict[str, int]
    unusual_rows: int
    absent: tuple[str, ...] = ()
    blank: dict[str, int] | None = None


def score_file(
    policy: BasePolicy,
    source: str | Path,
    destination: str | Path,
    *,
    known: Sequence[str] = (),
    keep: Sequence[str] = (),
    key: str | None = None,
    skip_malformed: bool = False,
    flag_unusual: bool = False,
    escape_formulas: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    encoding: str = "utf-8-sig",
    decimal: str = ".",
    progress: Callable[[int, float], None] = lambda rows, share: None,
) -> ScoreSummary:
    """Answer every row of a CSV or Parquet file into another one.

    The output has the columns of `keep`, then label, class (its name, where the model's description
    names the classes), probability (with three or more classes a column "probability of CLASS" for
    each), cost, expected_cost, and what was acquired, in order, separated by semicolons.

    Parameters
    ----------
    policy : a fitted policy.
    source, destination : two files; the ending says of which kind.
    known : covariates known from the start in every row that has a value.
    keep : columns to copy, such as an identifier.
    key : column with what each row is known by. Where a mean budget is kept by a mixture of two
        policies, it decides which of them the row has; without it the place in the file does.
    skip_malformed : leave rows out that cannot be read; by default they are an error.
    flag_unusual : add a column `unusual` with each value behind the answer that is unlike those of
        the training rows, such as "Age:implausible", separated by semicolons.
    escape_formulas : put an apostrophe before text that a spreadsheet would take for a formula; for
        CSV output.
    chunk_rows : rows in memory at a time.
    encoding, decimal : of a CSV source; the output is written with decimal points.
    progress : called with the number of rows written so far and the share of the source read.
    """
    check_output_table(destination, source, keep, RESULTS, escape_formulas)
    names = policy.encoder_.names
    check_names("known", known, names, "must name covariates of the model")
    file = TableFile(source, encoding=encoding, decimal=decimal)
    check_names("keep", keep, file.columns, "must name columns of the input")
    check_key(key, file.columns, names)
    texts = [*keep] if key is None else [*keep, key]
    absent = absent_covariates(file, names)
    tally, priced = _Tally(), priced_columns(policy, absent)
    with (
        whole_or_absent(destination) as temporary,
        table_writer(destination, temporary, escape_formulas) as write,
    ):
        for piece in read_pieces(file, policy, texts, skip_malformed, chunk_rows, tally.malformed):
            result, flags = _answer(policy, piece, known, row_keys(piece, key, tally.rows))
            answers = _columns(result, description_of(policy), policy.classes_.tolist())
            columns = {**kept_columns(piece, keep), **answers}
            if flag_unusual:
                columns["unusual"] = in_words(flags, names)
            write(columns)
            tally.add(result, flags)
            tally.blank.update(blank_cells(piece, priced))
            progress(tally.rows, file.share_read)
        refuse_no_rows(file, tally.rows)
    return replace(tally.summary(), absent=absent)


def absent_covariates(file: TableFile, names: Sequence[str]) -> tuple[str, ...]:
    """Covariates that a table to score has no column of; it must have one of them."""
    absent = file.absent(names)
    if len(absent) == len(names):
        raise InvalidInputError(
            file.path.name,
            "must have a covariate of the model",
            f"columns {listed(file.columns)}",
            f"{choices(file.columns, names, 'The covariates are')} `adacos next` says what to "
            "acquire first.",
        )
    return absent


def read_pieces(
    file: TableFile,
    policy: BasePolicy,
    keep: Sequence[str],
    skip_malformed: bool,
    chunk_rows: int,
    malformed: list[Malformed],
    numbers: Sequence[str] = (),
) -> Iterator[Piece]:
    """The pieces of a table that have rows: the covariates in the order of the model, then others.

    A covariate without a column has no value. Rows that cannot be read are an error, or are added
    to `malformed`. Columns to keep are text, those in `numbers` numbers.
    """
    names = policy.encoder_.names
    kinds = Kinds.of(policy.encoder_)
    kinds = kinds._replace(text=kinds.text | (set(keep) - set(names) - set(numbers)))
    others = [name for name in dict.fromkeys([*keep, *numbers]) if name not in names]
    there = {*names, *others} & set(file.columns)
    for piece in file.pieces(there, kinds, chunk_rows):
        malformed += piece.malformed
        if malformed and not skip_malformed:
            raise MalformedRowsError(file.path.name, [str(bad) for bad in malformed])
        if len(piece.table):
            yield piece._replace(table=with_absent(piece.table, [*names, *others], kinds))


def with_absent(table: ColumnTable, names: Sequence[str], kinds: Kinds) -> ColumnTable:
    """These columns in this order; one that is not there has no value."""
    there, n_rows = set(table.columns), len(table)
    columns: dict[str, NDArray[Any]] = {}
    for name in names:
        empty = np.full(n_rows, "") if name in kinds.text else np.full(n_rows, np.nan)
        columns[name] = table.column(name) if name in there else empty
    return ColumnTable(columns)


def refuse_no_rows(file: TableFile, rows: int) -> None:
    """Refuse a table without rows once it has been read."""
    if rows == 0:
        raise InvalidInputError(
            file.path.name, "needs at least one row", "no rows", "Check the file."
        )


@dataclass
class _Tally:
    """What has been scored so far."""

    rows: int = 0
    malformed: list[Malformed] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    unusual: NDArray[np.intp] = field(default_factory=lambda: np.zeros(len(KINDS), np.intp))
    unusual_rows: int = 0
    blank: Counter[str] = field(default_factory=Counter)

    def add(self, result: AcquisitionResult, flags: NDArray[np.int8]) -> None:
        self.rows += len(result)
        self.labels.update(str(label) for label in result.label.tolist())
        self.sums += result.cost.sum(), result.expected_cost.sum()
        self.unusual += np.bincount(flags.ravel(), minlength=len(KINDS))
        self.unusual_rows += int((flags > 0).any(axis=1).sum())

    def summary(self) -> ScoreSummary:
        counts = zip(KINDS[1:], self.unusual[1:].tolist(), strict=True)
        mean_cost, mean_expected_cost = (self.sums / self.rows).tolist()
        return ScoreSummary(
            rows_read=self.rows + len(self.malformed),
            rows=self.rows,
            malformed=self.malformed,
            labels=dict(self.labels),
            mean_cost=mean_cost,
            mean_expected_cost=mean_expected_cost,
            unusual={kind: count for kind, count in counts if count},
            unusual_rows=self.unusual_rows,
            blank=dict(+self.blank),
        )


def priced_columns(policy: BasePolicy, absent: Collection[str]) -> list[str]:
    """Covariates with a cost that a table has a column of."""
    pairs = zip(policy.encoder_.names, policy.cost_table_.covariates, strict=True)
    return [name for name, cost in pairs if cost > 0 and name not in absent]


def blank_cells(piece: Piece, names: Sequence[str]) -> dict[str, int]:
    """How many cells of some columns are blank, and do not say that the value is unavailable."""
    counts = {}
    for name in names:
        cells = piece.table.column(name)
        blank = cells == "" if cells.dtype.kind == "U" else np.isnan(cells)
        counts[name] = int(np.count_nonzero(blank & ~piece.unavailable.get(name, np.bool_(False))))
    return counts


def check_output_table(
    destination: str | Path,
    source: str | Path,
    keep: Sequence[str],
    results: Collection[str],
    escape_formulas: bool,
) -> None:
    """Refuse an output of another kind, one that is read, and columns called as the results."""
    ending = Path(destination).suffix.lower()
    if ending not in (".csv", *ENDINGS):
        raise InvalidInputError(
            "output", "must end in .csv, .parquet or .pq", str(destination), "Rename it."
        )
    if escape_formulas and ending != ".csv":
        raise InvalidInputError(
            "output", "formulas are escaped in .csv only", str(destination), "Write a .csv file."
        )
    refuse_same_file(destination, [source])
    clash = [name for name in keep if name in results]
    if clash:
        raise InvalidInputError(
            "keep", "must not name a column of the results", clash, "Rename it in the input."
        )


def values_there(policy: BasePolicy, piece: Piece, names: Collection[str]) -> Bools:
    """Mask (rows, covariates) of the values that there are of some covariates."""
    covariates = policy.encoder_.names
    mask = np.zeros((len(piece.table), len(covariates)), dtype=np.bool_)
    for position, name in enumerate(covariates):
        if name in names:
            values = piece.table.column(name)
            mask[:, position] = values != "" if values.dtype.kind == "U" else ~np.isnan(values)
    return mask


def _answer(
    policy: BasePolicy, piece: Piece, known: Sequence[str], keys: Sequence[Hashable]
) -> tuple[AcquisitionResult, NDArray[np.int8]]:
    """The answers, and what is unusual about the values behind them."""
    table = piece.table.select(list(policy.encoder_.names))
    mask = values_there(policy, piece, known)
    with inner_fits():
        result = policy.acquire(table, known=mask if known else None, keys=keys)
    kinds = unusual(policy.encoder_, table, description_of(policy))
    return result, np.where(result.acquired | mask, kinds, 0)


def check_key(key: str | None, columns: Sequence[str], covariates: Collection[str]) -> None:
    """Refuse a column of keys that is not there, or that is acquired."""
    if key is None:
        return
    check_names("key", [key], columns, "must name a column of the input")
    if key in covariates:
        rule, remedy = "must not be a covariate", "Name the column that identifies a row."
        raise InvalidInputError("key", rule, key, remedy)


def row_keys(piece: Piece, key: str | None, before: int) -> Sequence[Hashable]:
    """What the rows of a piece are known by: a column, or their places after `before` rows."""
    if key is None:
        return range(before, before + len(piece.table))
    keys = piece.table.column(key)
    missing = np.flatnonzero(keys == "")
    if len(missing):
        raise InvalidInputError(
            f"column {key!r}",
            "must hold a key in every row",
            f"nothing on line {piece.lines[missing[0]]}{and_more(len(missing))}",
            "Fill it in.",
        )
    return [str(one) for one in keys.tolist()]


def in_words(flags: NDArray[np.int8], names: Sequence[str]) -> list[str]:
    """What is unusual about the values of each row."""
    words = [""] * len(flags)
    for row in np.flatnonzero((flags > 0).any(axis=1)).tolist():
        pairs = zip(names, flags[row].tolist(), strict=True)
        words[row] = ";".join(f"{name}:{KINDS[flag]}" for name, flag in pairs if flag)
    return words


def kept_columns(piece: Piece, keep: Sequence[str]) -> dict[str, list[Any]]:
    """The columns to copy."""
    return {name: piece.table.column(name).tolist() for name in keep}


def _columns(
    result: AcquisitionResult, said: Description, classes: Sequence[Any]
) -> dict[str, list[Any]]:
    label = result.label.tolist()
    return {
        "label": label,
        **({"class": [said.class_name(one) for one in label]} if said.classes else {}),
        **probabilities(result.probability, classes),
        "cost": result.cost.tolist(),
        "expected_cost": result.expected_cost.tolist(),
        "acquired": acquired_texts(result),
    }


def probabilities(probability: Floats, classes: Sequence[Any]) -> dict[str, list[Any]]:
    """The probability of the second of two classes; of more one column for each."""
    columns = family_of(probability).columns(probability, classes, " of ")
    return {name: column.tolist() for name, column in columns.items()}


@contextmanager
def table_writer(
    destination: str | Path, temporary: Path, escape_formulas: bool
) -> Iterator[Write]:
    """A function that appends columns to the file, in the format of the destination's ending."""
    if Path(destination).suffix.lower() in ENDINGS:
        with parquet_writer(temporary) as write:
            yield write
        return
    with open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        begun = False

        def write_rows(columns: dict[str, list[Any]]) -> None:
            nonlocal begun
            if escape_formulas:
                columns = {
                    _escaped(name): [_escaped(cell) for cell in cells]
                    for name, cells in columns.items()
                }
            if not begun:
                writer.writerow(columns)
                begun = True
            writer.writerows(zip(*columns.values(), strict=True))

        yield write_rows


def _escaped(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; numbers stay as they are."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not is_number(cell):
        return f"'{cell}"
    return cell


@contextmanager
def parquet_writer(temporary: Path) -> Iterator[Write]:
    """A function that appends columns to a Parquet file."""
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


def check_names(parameter: str, given: Sequence[str], names: Sequence[str], rule: str) -> None:
    """Refuse names that are not there."""
    there = set(names)
    unknown = [name for name in given if name not in there]
    if unknown:
        raise InvalidInputError(parameter, rule, unknown, choices(unknown, names, "There are"))

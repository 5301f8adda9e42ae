"""Training rows from a file: which columns, which classes, how many rows, how long it will take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from adacos.cli.common import say
from adacos.cli.table_columns import Columns
from adacos.cli.workers import connect
from adacos.costs import Costs
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import drawn_rows
from adacos.models.coded_missing import MOST_PAIRS
from adacos.models.large_fits import LARGE_ROWS
from adacos.models.streamed_fits import KEPT_ROWS
from adacos.registry import POLICIES
from adacos.tables.categories import MAX_CATEGORIES
from adacos.tables.cells import are_codes
from adacos.tables.columns import ColumnTable
from adacos.tables.description import description_of
from adacos.tables.parquet import n_rows
from adacos.tables.parquet_table import ParquetTable
from adacos.tables.pieces import Kinds, Malformed, Piece
from adacos.tables.reading import TableFile
from adacos.tables.weights import prevalence_weights
from adacos.typing import Bools, Floats
from adacos.validation import and_more, choices, listed

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# Policies that hold very many rows as codes, and how many rows others learn from.
_HOLD_CODES = ("adacos", "cos", "full")
MOST_ROWS = 200_000


class TrainingRows(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    table : the covariates.
    y : the class of each row; with --positive 1 for that class and 0 for all others.
    class_names : what 0 and 1 stand for then, by the class as text.
    n_read : rows in the file, with those that could not be read.
    malformed : rows that could not be read.
    missing : share of missing values of the covariates that have any.
    codes : covariates kept as categories for the zeros in front of their digits.
    groups, weights : of each row, where a column of them was named.
    whole : the rows and their classes, where they are read a piece at a time; `table` and `y` are
        then those rows whose out-of-fold log-odds the model keeps.
    """

    table: ColumnTable
    y: NDArray[Any]
    n_read: int
    malformed: list[Malformed]
    missing: dict[str, float]
    class_names: dict[str, str]
    codes: tuple[str, ...] = ()
    groups: NDArray[Any] | None = None
    weights: Floats | None = None
    whole: tuple[Any, NDArray[Any]] | None = None

    @property
    def n_rows(self) -> int:
        """Rows to learn from."""
        return len(self.y if self.whole is None else self.whole[1])

    def n_codes(self, policy: str) -> int:
        """Rows that will be held as codes; none if they are few."""
        return self.n_rows if not self.most(policy) and self.n_rows >= LARGE_ROWS else 0

    def most(self, policy: str) -> int:
        """How many rows are learned from where nobody says: 0 for all.

        Codes take little memory, however many rows they are, see `adacos.models.large_fits`; other
        rows take 7 KB each at 20 covariates.
        """
        few = policy not in _HOLD_CODES or _pairs_of_missing(self.table) > MOST_PAIRS
        return MOST_ROWS if few else 0

    def drawn(self, most: int, seed: int) -> TrainingRows:
        """At most `most` rows, drawn at random; 0 for all."""
        if not 0 < most < len(self.y):
            return self
        rows = np.sort(np.random.default_rng(seed).choice(len(self.y), most, replace=False))
        say(
            f"learning from {most:,} of {len(self.y):,} rows, drawn at random (--max-rows)",
            err=True,
        )
        return self._chosen(rows)

    def _chosen(self, rows: NDArray[Any]) -> TrainingRows:
        groups, weights = (None if v is None else v[rows] for v in (self.groups, self.weights))
        return self._replace(table=self.table[rows], y=self.y[rows], groups=groups, weights=weights)

    def counted(self, prevalence: float | None) -> TrainingRows:
        """The rows that count, weighted for a prevalence if one is given."""
        if prevalence is not None:
            if len(np.unique(self.y)) > 2:
                rule = "is for two classes"
                remedy = "Name one with --positive, or give a column of --weights."
                raise InvalidInputError("--prevalence", rule, f"{prevalence:g}", remedy)
            return self._replace(weights=prevalence_weights(self.y, prevalence))
        if self.weights is None or self.weights.all():
            return self
        some = self.weights > 0
        say(f"{(~some).sum():,} of {len(some):,} rows have weight 0: not learned from", err=True)
        return self._chosen(np.flatnonzero(some))


def read_training_rows(
    file: TableFile,
    columns: Columns,
    skip_malformed: bool,
    progress: Callable[[int, float], None],
    many: bool = False,
) -> TrainingRows:
    """The rows with a class, which must be one of two, or of more where `many` are taken."""
    judged, target, positive = file.kinds(), columns.target, columns.positive
    as_text, as_numbers = columns.as_text, columns.as_numbers
    kinds = Kinds(
        (judged.text | as_text) - as_numbers,
        judged.truth - as_text - as_numbers,
        dates=columns.dates,
    )
    codes = judged.codes - as_text - as_numbers
    wanted = [*columns.covariates, target, *columns.of_rows]
    piece = file.read(wanted, kinds, skip_malformed=skip_malformed, progress=progress)
    y = piece.table.column(target)
    labelled = y != ""
    if not skip_malformed and not labelled.all():
        _refuse_unlabelled(piece.lines[~labelled], target)
    y = y[labelled]
    labels = classes(y) if positive is None else against(y, positive)
    names = {} if positive is None else names_against(y, positive)
    present = np.unique(labels)
    if len(present) < 2 or (len(present) > 2 and not many):
        raise InvalidInputError(
            f"column {target!r}",
            "must hold two classes",
            f"{len(present)}: {listed(present)}",
            "Name one with --positive to set it against the others, or choose a policy for three "
            f"or more classes: {listed(sorted(_for_many_classes()))}.",
        )
    table = piece.table.select(list(columns.covariates))[labelled]
    n_read = len(piece.lines) + len(piece.malformed)
    described = tuple(name for name in columns.covariates if name in codes)
    groups, weights = columns.groups, columns.weights
    return TrainingRows(
        table,
        labels,
        n_read,
        piece.malformed,
        missing_shares(table),
        names,
        described,
        None if groups is None else row_groups(piece.table.column(groups)[labelled], groups),
        None if weights is None else _weights(piece, labelled, weights),
    )


def _weights(piece: Piece, labelled: Bools, name: str) -> Floats:
    """The weight of each row, of which none may be missing or negative."""
    weights: Floats = piece.table.column(name)[labelled]
    wrong = np.flatnonzero(~(weights >= 0))
    if len(wrong):
        first = weights[wrong[0]]
        raise InvalidInputError(
            f"column {name!r}",
            "must hold a weight in every row (--weights), 0 or more",
            f"{'nothing' if np.isnan(first) else f'{first:g}'} on line "
            f"{piece.lines[labelled][wrong[0]]}{and_more(len(wrong))}",
            "Fill it in: 1 for a row that counts once, 0 for one to leave.",
        )
    return weights


def row_groups(column: NDArray[Any], name: str) -> NDArray[Any]:
    """The group of each row, of which none may be missing."""
    missing = np.flatnonzero(column == "")
    if len(missing):
        raise InvalidInputError(
            f"column {name!r}",
            "must hold a group in every row (--groups)",
            f"nothing in {len(missing):,} rows",
            "Give a row that belongs to no other a group of its own.",
        )
    return column


def _for_many_classes() -> list[str]:
    """Names of the policies that take three or more classes."""
    return [name for name, own in POLICIES.items() if own.load().takes_many_classes]


def read_in_pieces(data: Path, columns: Columns, seed: int) -> TrainingRows:
    """Rows in Parquet files, of which a part is read into memory.

    If very many values are missing together, that part is all that is learned from.
    """
    target, positive = columns.target, columns.positive
    whole = ParquetTable(data, categorical=[target, *columns.categorical])
    given = whole.values(target)
    if not (given != "").all():
        _refuse_unlabelled(np.flatnonzero(given == "") + 1, target)
    labels = classes(given) if positive is None else against(given, positive)
    names = {} if positive is None else names_against(given, positive)
    whole = whole.only(list(columns.covariates))
    kept = drawn_rows(np.unique(labels, return_inverse=True)[1].astype(float), KEPT_ROWS, seed)
    table = whole.rows(kept)
    rows = TrainingRows(table, labels[kept], len(labels), [], missing_shares(table), names)
    if _pairs_of_missing(table) <= MOST_PAIRS:
        return rows._replace(whole=(whole, labels))
    say(
        f"learning from {len(kept):,} of {len(labels):,} rows, drawn at random (--max-rows)",
        err=True,
    )
    return rows


def _pairs_of_missing(table: ColumnTable) -> float:
    """Pairs of encoded values that are missing together in the mean row."""
    count = np.zeros(len(table))
    for name in table.columns:
        column = table.column(name)
        text = column.dtype.kind == "U"
        width = min(len(np.unique(column)), MAX_CATEGORIES) if text else 1
        count += width * (column == "" if text else np.isnan(column))
    return float(np.mean(count * (count - 1.0) / 2))


def on_workers(rows: TrainingRows, address: str, timeout: str | None) -> TrainingRows:
    """The same rows, held by the workers of a Dask scheduler."""
    if rows.whole is None:
        raise InvalidInputError(
            "--dask",
            f"is for {LARGE_ROWS:,} or more rows in Parquet files, few values missing together",
            address,
            "Leave it out.",
        )
    # The client ends with this process.
    connect(address, timeout)
    table, labels = rows.whole
    return rows._replace(whole=(table.spread(), labels))


def check_takes_weights(
    estimator: BasePolicy,
    policy: str,
    columns: Columns,
    prevalence: float | None,
) -> None:
    """Refuse weights for a policy that has no use for them, and with what counts rows."""
    if columns.weights is None and prevalence is None:
        return
    option = "--weights" if prevalence is None else "--prevalence"
    if prevalence is not None and columns.weights is not None:
        value = f"--weights {columns.weights}"
        raise InvalidInputError(option, "cannot be given with weights", value, "Leave one out.")
    # A target recall takes weights where the policy inside does.
    if not has_fit_parameter(estimator.wrapped, "sample_weight"):
        rule = "goes with --policy adacos, branching, cos and full"
        raise InvalidInputError(option, rule, f"--policy {policy}", "Choose one of them.")
    if estimator.recall_aim.recall_confidence is not None:
        rule = "cannot be given with --recall-confidence, whose exact tests count rows"
        raise InvalidInputError(option, rule, "", "Leave one of them out.")


def check_takes_groups(estimator: BasePolicy, policy: str, groups: str | None) -> None:
    """Refuse groups for a policy that has no use for them."""
    if groups is not None and not has_fit_parameter(estimator, "groups"):
        raise InvalidInputError(
            "--groups",
            "goes with --target-recall or --policy adacos, branching, planning, auto, cos and full",
            f"--policy {policy}",
            "Choose one of them, or leave the option out.",
        )


def check_errors(costs: Costs, rows: TrainingRows, target: str) -> None:
    """Refuse costs of errors that are those of another number of classes."""
    present = np.unique(rows.y)
    if len(present) == len(costs.matrix):
        return
    matrix = (
        "write misclassification = [[0, ...], ...] under [errors] in a TOML price list: a row for "
        f"each true class, in the order {listed(present)}, a column for each label."
    )
    if len(costs.matrix) == 2:
        raise InvalidInputError(
            f"column {target!r}",
            "must hold two classes where a false positive and a false negative have a cost",
            f"{len(present)}: {listed(present)}",
            f"Name one with --positive to set it against the others, or {matrix}",
        )
    raise InvalidInputError(
        "errors",
        f"must say what each error costs, for {len(present)} classes",
        f"those of {len(costs.matrix)}",
        matrix[0].upper() + matrix[1:],
    )


def _refuse_unlabelled(lines: NDArray[np.intp], target: str) -> None:
    raise InvalidInputError(
        f"column {target!r}",
        "must hold a class in every row",
        f"nothing on line {lines[0]}{and_more(len(lines))}",
        "Fill it in, or leave such rows out with --skip-malformed.",
    )


def missing_shares(table: ColumnTable) -> dict[str, float]:
    """Share of missing values of the columns that have any."""
    shares = {}
    for name in table.columns:
        values = table.column(name)
        share = float(np.mean(values == "" if values.dtype.kind == "U" else np.isnan(values)))
        if share > 0:
            shares[name] = share
    return shares


def as_in_fit(policy: BasePolicy, given: NDArray[Any], positive: str | None) -> NDArray[Any]:
    """The classes of rows as a fitted policy knows them, with --positive or as in `fit`.

    A model that was fitted with --positive keeps what its classes 1 and 0 stand for.
    """
    known, names = policy.classes_, description_of(policy).classes
    if len(known) == 2 and set(names) == {"0", "1"}:
        others, own = names["0"], names["1"]
        # Else the names are words for a target of 0 and 1.
        of_target = set(np.unique(given).tolist()) <= {others, own}
        if of_target or others == f"not {own}":
            if positive not in (None, own):
                raise InvalidInputError(
                    "--positive",
                    "must be the class that the model was fitted with",
                    positive,
                    f"It is {own}. Leave --positive out.",
                )
            # Classes that are called as the model calls them are no values of the target.
            numbered = not of_target and np.isin(classes(given), known).all()
            return classes(given) if numbered else against(given, own, empty=True)
    if positive is not None:
        return against(given, positive)
    return given if known.dtype.kind == "U" else classes(given)


def classes(y: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers where all classes are, else as they stand, as codes such as 007 do."""
    if are_codes(y.tolist()):
        return y
    try:
        numbers = y.astype(np.float64)
    except ValueError:
        return y
    whole = np.all(numbers == np.round(numbers))
    return numbers.astype(np.int64) if whole else numbers


def against(y: NDArray[Any], positive: str, empty: bool = False) -> NDArray[Any]:
    """1 for the positive class, which there must be unless it may be `empty`; 0 for any other."""
    values = np.unique(y).tolist()
    if positive not in values and not empty:
        raise InvalidInputError(
            "--positive",
            "must be a value of the target",
            positive,
            choices([positive], values, "It has"),
        )
    alike = [name for name in values if name != positive and _folded(name) == _folded(positive)]
    if alike:
        raise InvalidInputError(
            "target",
            "must have one spelling of the positive class",
            listed([positive, *alike]),
            "Write them alike in the table.",
        )
    return np.asarray(y == positive, dtype=np.int64)


def _folded(name: str) -> str:
    return name.strip().casefold()


def names_against(y: NDArray[Any], positive: str) -> dict[str, str]:
    """What the classes 0 and 1 of `against` stand for."""
    others = [name for name in np.unique(y).tolist() if name != positive]
    return {"0": others[0] if len(others) == 1 else f"not {positive}", "1": positive}


def in_pieces(file: TableFile, policy: str) -> bool:
    """Whether rows are read a piece at a time: very many in Parquet, for a policy that can."""
    return policy in _HOLD_CODES and file.is_parquet and n_rows(file.path) >= LARGE_ROWS


def expected_seconds(table: ColumnTable, n_codes: int = 0, n_classes: int = 2) -> float:
    """About how long a fit takes, by what was measured on one core; `n_codes` rows held as codes.

    A factor of two either way is usual. K classes took (K - 1)^1.7 times as long as two, held as
    codes K (K - 1) / 2 times. A set
    costs the rows times its columns, and more where its strengths are chosen, which up to 40
    covariates is everywhere.
    """
    columns = (table.column(name) for name in table.columns)
    levels = (min(len(np.unique(c)), MAX_CATEGORIES) if c.dtype.kind == "U" else 9 for c in columns)
    p = sum(levels) / 9
    if n_codes:
        return (0.3 * p + 1.5e-7 * n_codes * p * min(p, 40)) * n_classes * (n_classes - 1) / 2
    of_two = 0.08 * p + 1.4e-6 * len(table) * p * min(p, 40)
    return float(of_two * (n_classes - 1) ** 1.7)

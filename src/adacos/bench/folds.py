"""Which rows a fold of a cross-validation holds out, and which of them belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from adacos.bench.settings import CrossValidation
from adacos.datasets import Dataset, paper_folds
from adacos.datasets._folds import N_FOLDS
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import shuffled_folds
from adacos.kernels.groups import copies
from adacos.tables.columns import ColumnTable
from adacos.tables.encoder import TableEncoder, covariate_names, validate_table
from adacos.tables.labels import check_labels
from adacos.tables.suspicions import describe_visits
from adacos.tables.weights import count_copies, group_numbers
from adacos.typing import Bools, Ints


def with_groups(table: Dataset) -> tuple[Dataset, str]:
    """The table with the number of each row's group, and what was seen of copies, if anything.

    Groups that the table names are numbered. Without them rows that look like copies of each other
    are groups; a table without either stays as it is, also where rows look like visits.
    """
    if table.groups is not None:
        return table._replace(groups=group_numbers(table.groups, len(table.y))), ""
    probe = BaseEstimator()
    rows = validate_table(probe, table.X, reset=True)
    names, labels = covariate_names(probe), check_labels(table.y, many=True)[1]
    encoded = TableEncoder.fit(rows, names).transform(rows)
    found = copies(encoded, labels)
    if found is not None:
        return table._replace(groups=found), count_copies(found)
    return table, describe_visits(table.X, table.y, table.names) or ""


def fold_of_rows(table: Dataset, split: CrossValidation) -> tuple[Ints, Bools]:
    """Fold whose models do not learn from each row, -1 for none, and whether it is tested there.

    Only complete rows are tested, or every row of the split. With three or more classes one that
    has too few rows for all folds is in training only. Random splits keep groups together: a row
    that is not tested is kept out with its group. The paper's folds are the paper's.
    """
    tested = np.full(len(table.y), split.every_row) | ~missing_cells(table.X).any(axis=1)
    classes, number = np.unique(table.y, return_inverse=True)
    groups = None if split.seed is None else table.groups
    if groups is not None:
        return _fold_of_groups(groups, tested, number, split)
    folds, rows = np.full(len(tested), -1, dtype=np.int64), np.arange(len(tested))
    if len(classes) > 2:
        rows = np.flatnonzero((np.bincount(number, weights=tested) >= N_FOLDS)[number])
    gaps = np.where(tested, 0.0, np.nan)[rows, None]
    seed = {} if split.seed is None else {"seed": split.seed}
    folds[rows] = paper_folds(gaps, table.y[rows], **seed)
    return folds, folds >= 0


def _fold_of_groups(
    groups: Ints, tested: Bools, number: Ints, split: CrossValidation
) -> tuple[Ints, Bools]:
    """`fold_of_rows` of a table with groups, of which each is dealt to a fold.

    Classes with too few groups are in training only, and two must have enough.
    """
    pairs = np.unique(np.column_stack([number, groups])[tested], axis=0)
    enough = np.bincount(pairs[:, 0], minlength=int(number.max()) + 1) >= N_FOLDS
    if np.count_nonzero(enough) < 2:
        raise InvalidInputError(
            "groups",
            f"must be at least {N_FOLDS} with rows of each class, to hold each out once",
            f"{int(np.bincount(pairs[:, 0]).min(initial=0))} of a class",
            "Add rows of other groups, or give different cases groups of their own.",
        )
    tested = tested & enough[number]
    dealt = np.isin(groups, groups[tested])
    folds = np.full(len(groups), -1, dtype=np.int64)
    folds[dealt] = shuffled_folds(
        number[dealt].astype(np.float64), N_FOLDS, int(split.seed or 0), groups[dealt]
    )
    return folds, tested


def missing_cells(X: Any) -> NDArray[np.bool_]:
    """Mask of unknown values of an array or a data frame."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        return np.isnan(X)
    if isinstance(X, ColumnTable):
        columns = [X.column(name) for name in X.columns]
        return np.column_stack([c == "" if c.dtype.kind == "U" else np.isnan(c) for c in columns])
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    gaps = []
    for name in frame.columns:
        column = frame[name]
        gap = column.is_null().to_numpy()
        if column.dtype.is_float():
            gap = gap | np.isnan(column.fill_null(0.0).to_numpy())
        gaps.append(gap)
    return np.column_stack(gaps)

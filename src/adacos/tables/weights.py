"""Weights, groups and folds that a caller gives to training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.validation import (
    _check_sample_weight,
    column_or_1d,
)

from adacos.exceptions import InvalidInputError, TableWarning
from adacos.kernels.folds import stratified_folds
from adacos.kernels.groups import copies
from adacos.kernels.near_copies import NearCopies
from adacos.tables.encoder import TableEncoder, covariate_names, validate_table
from adacos.tables.labels import check_labels, check_one_label_each
from adacos.typing import Bools, Floats, Ints
from adacos.validation import integer, listed, real

# Weights are counts of rows; beyond these nothing can be estimated in floats.
LARGEST_WEIGHT, SMALLEST_SUM = 1e12, 0.5
# What to do about copies of rows, in Python and on the command line.
COPIES_REMEDY = (
    "Leave copies out, or give them weights (sample_weight); name the patients or sites that rows "
    "belong to with groups; if all rows are different cases, give each a group of its own: "
    "groups=range(len(y))."
)
COPIES_OPTIONS = (
    "Leave copies out, or give them weights (--weights COLUMN); name the patients or sites that "
    "rows belong to with --groups COLUMN; if all rows are different cases, that column may be one "
    "with another value in each row."
)


# The same for visits, in which a value or two have changed.
VISITS_REMEDY = (
    "Are they visits of one patient, or measurements of one thing? Then name the patients with "
    "groups: fit(X, y, groups=patient). Rows of a patient are then on one side of every split and "
    "count once in a certificate, which may be false else. If all rows are different cases: "
    "groups=range(len(y))."
)
VISITS_OPTIONS = (
    "Are they visits of one patient, or measurements of one thing? Then name the column of the "
    "patients with --groups COLUMN. Rows of a patient are then on one side of every split and "
    "count once in a certificate, which may be false else. If all rows are different cases, that "
    "column may be one with another value in each row."
)


def check_weights(sample_weight: Any, labels: Floats) -> Floats:
    """Weight of each row: not negative, and positive for rows of both classes."""
    weight = _weights_of(sample_weight, labels)
    if np.any(weight < 0):
        raise InvalidInputError(
            "sample_weight", "must not be negative", float(weight.min()), "Use 0 to leave out."
        )
    if len(np.unique(labels[weight > 0])) < 2:
        raise InvalidInputError(
            "sample_weight",
            "must leave rows of both classes",
            "weights of zero for all rows of a class",
            "Give rows of each class a positive weight.",
        )
    if weight.max(initial=0.0) > LARGEST_WEIGHT or not weight.sum() >= SMALLEST_SUM:
        raise InvalidInputError(
            "sample_weight",
            f"must be at most {LARGEST_WEIGHT:g} for a row and {SMALLEST_SUM:g} at least for all",
            f"up to {weight.max(initial=0.0):g}, {weight.sum():g} for all",
            "A weight says how often a row counts: divide them by their mean.",
        )
    return weight


def _weights_of(given: Any, labels: Floats) -> Floats:
    """A finite number for each row, or a clear error; beyond floats it counts as infinity."""
    try:
        weight: Floats = _check_sample_weight(given, labels, dtype=np.float64)
        return weight
    except OverflowError:
        return np.full(len(labels), np.inf)
    except (TypeError, ValueError) as error:
        failed = error
    try:
        number = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        received = str(failed)
    else:
        wrong = np.argwhere(~np.isfinite(number))
        if number.shape == labels.shape and not len(wrong):
            return number  # nothing but zeros, which have a rule of their own
        received = f"{type(given).__name__} of shape {number.shape}"
        if len(wrong) and number.ndim == 1:
            received = f"{number[wrong[0, 0]]:g} for row {wrong[0, 0]}"
    raise InvalidInputError(
        "sample_weight",
        f"must be {len(labels)} finite numbers, one for each row",
        received,
        "A weight says how often a row counts: 1 for once, 0 to leave it out.",
    ) from failed


def prevalence_weights(y: Any, prevalence: float | Mapping[Any, float]) -> Floats:
    """Weight rows so that classes have the shares that they have among new rows.

    Tables of a case-control study, or with one class drawn more often, have other shares. With
    these weights as `sample_weight`, probabilities and costs are those of new rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The class of each row.
    prevalence : float or mapping of class to float
        Share of the positive class, the second in order, among new rows; with three or more
        classes the share of each.

    Returns
    -------
    ndarray of shape (n_rows,)
        For each row the share of its class among new rows over its share here; 1 on average.

    Examples
    --------
    >>> from adacos import prevalence_weights
    >>> prevalence_weights([0, 0, 1, 1], 0.05)
    array([1.9, 1.9, 0.1, 0.1])
    """
    classes, labels = check_labels(y, many=True)
    number = labels.astype(np.intp)
    shares = shares_by_class(prevalence, classes.tolist())
    weights: Floats = (shares / np.bincount(number) * len(number))[number]
    return weights


def shares_by_class(prevalence: float | Mapping[Any, float], names: list[Any]) -> Floats:
    """Share of each class, from one number with two classes, or from one by name."""
    if not isinstance(prevalence, Mapping):
        if len(names) > 2:
            raise InvalidInputError(
                "prevalence",
                "must give each class its share where there are three or more",
                prevalence,
                f"Pass a mapping with {listed(names)}.",
            )
        share = real("prevalence", prevalence, above=0, below=1)
        prevalence = dict(zip(names, (1 - share, share), strict=True))
    if set(prevalence) != set(names):
        remedy = f"Name {listed(names)}."
        raise InvalidInputError("prevalence", "must name every class", listed(prevalence), remedy)
    shares = np.array([real(f"prevalence[{name!r}]", prevalence[name], above=0) for name in names])
    if abs(shares.sum() - 1) > 1e-6:
        rule = "shares must add up to 1"
        raise InvalidInputError("prevalence", rule, f"{shares.sum():g}", "Correct one of them.")
    return shares


def group_numbers(groups: Any, n_rows: int) -> Ints:
    """Number of the group of each row, 0, 1, …"""
    column = column_or_1d(groups)
    if len(column) != n_rows:
        raise InvalidInputError(
            "groups",
            f"needs one group for each of the {n_rows} rows",
            len(column),
            "Pass that of X.",
        )
    missing = sum(value is None or value != value for value in column.tolist())
    if missing:
        raise InvalidInputError(
            "groups",
            "must name a group for every row",
            f"none for {missing} rows",
            "Give a row that belongs to no other a group of its own.",
        )
    return np.asarray(np.unique(column, return_inverse=True)[1], dtype=np.intp)


def groups_or_copies(groups: Any, encoded: Floats, labels: Floats) -> Ints | None:
    """Number of the group of each row: as given, or rows that look like copies of each other."""
    return copies(encoded, labels) if groups is None else group_numbers(groups, len(labels))


def groups_of(groups: Any, encoded: Floats, labels: Floats, *, split: bool = True) -> Ints | None:
    """The groups given, or those of rows that look like copies of each other, with a warning.

    `split` if groups of every class are to be on both sides of a split, for which one is too few.
    """
    found = groups_or_copies(groups, encoded, labels)
    alone = found is not None and [k for k in np.unique(labels) if not np.ptp(found[labels == k])]
    if split and alone and groups is not None:
        raise InvalidInputError(
            "groups",
            "must be two or more for the rows of each class, to hold one of them out",
            "a single group with all rows of a class",
            "Add rows of other groups, or take smaller groups.",
        )
    if found is None or (split and alone):
        return None
    if groups is None:
        warnings.warn(describe_copies(found), TableWarning, stacklevel=4)
    return found


def describe_copies(groups: Ints) -> str:
    """What was seen of copies, and what to do about them."""
    return (
        f"{count_copies(groups)} Equal rows stay on one side of every split and count once in a "
        f"certificate. {COPIES_REMEDY}"
    )


def count_copies(groups: Ints) -> str:
    """How many rows look like copies."""
    size = np.bincount(groups)
    return (
        f"{size[size > 1].sum():,} of {len(groups):,} rows are equal to another row, more than "
        "different cases would be."
    )


def count_near_copies(found: NearCopies, n_rows: int, names: Sequence[str]) -> str:
    """How many rows look like visits of one patient, and what changes between them."""
    changing = listed([names[k] for k in found.changing])
    return (
        f"{found.rows:,} of {n_rows:,} rows are equal to another row in the class and in all "
        f"covariates but {changing}, more than different cases would be."
    )


def check_folds(
    cv: Any,
    encoded: Floats,
    labels: Floats,
    kept: Bools,
    seed: int,
    groups: Ints | None = None,
) -> Ints:
    """Fold of each kept row: dealt out, or as the given splits of all rows hold them out."""
    if isinstance(cv, Integral):
        n_folds = integer("cv", cv, at_least=2)
        own = None if groups is None else groups[kept]
        return stratified_folds(encoded[kept], labels[kept], n_folds, seed, own)
    held_out = [test for _, test in check_cv(cv).split(encoded, labels, groups)]
    once = np.bincount(np.concatenate(held_out), minlength=len(labels))
    fold = np.empty(len(labels), dtype=np.intp)
    for number, rows in enumerate(held_out):
        fold[rows] = number
    present, renumbered = np.unique(fold[kept], return_inverse=True)
    if len(once) != len(labels) or np.any(once != 1) or len(present) < 2:
        raise InvalidInputError(
            "cv",
            "must be an integer >= 2 or at least two splits that hold out every row once",
            cv,
            "Use a number of folds, or KFold or GroupKFold.",
        )
    return renumbered


def weighed_rows(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    cv: Any,
    seed: int,
) -> tuple[Any, NDArray[Any], Floats, Ints, Ints | None]:
    """Rows of positive weight, as they were given, with classes, weights, folds and groups."""
    table = validate_table(estimator, X, reset=True)
    _, labels = check_labels(y, many=True)
    check_one_label_each(table, labels)
    weight = check_weights(sample_weight, labels)
    kept = weight > 0
    rows = table[kept] if isinstance(table, np.ndarray) else table[np.flatnonzero(kept)]
    encoded = TableEncoder.fit(rows, covariate_names(estimator)).transform(table)
    number = groups_of(groups, encoded, labels)
    fold = check_folds(cv, encoded, labels, kept, seed, number)
    native = rows if isinstance(rows, np.ndarray) else rows.to_native()
    own = None if number is None else number[kept]
    return native, np.asarray(y).ravel()[kept], weight[kept], fold, own

"""Weights and folds that a caller gives to training rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import stratified_folds
from adacos.tables.encoder import TableEncoder, covariate_names, validate_table
from adacos.tables.labels import check_labels
from adacos.validation import integer

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


def check_weights(sample_weight: Any, labels: Floats) -> Floats:
    """Weight of each row: not negative, and positive for rows of both classes."""
    weight: Floats = _check_sample_weight(sample_weight, labels, dtype=np.float64)
    if np.any(weight < 0):
        raise InvalidInputError(
            "sample_weight", "must not be negative", float(weight.min()), "Use 0 to leave out."
        )
    if len(np.unique(labels[weight > 0])) < 2:
        raise InvalidInputError(
            "sample_weight",
            "must leave rows of both classes",
            "positive weights in one class at most",
            "Give rows of each class a positive weight.",
        )
    return weight


def check_folds(cv: Any, encoded: Floats, labels: Floats, kept: Bools, seed: int) -> Ints:
    """Fold of each kept row: dealt out, or as the given splits of all rows hold them out."""
    if isinstance(cv, Integral):
        n_folds = integer("cv", cv, at_least=2)
        return stratified_folds(encoded[kept], labels[kept], n_folds, seed)
    held_out = [test for _, test in check_cv(cv).split(encoded, labels)]
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
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, NDArray[Any], Floats, Ints]:
    """Rows of positive weight, as they were given, with their classes, weights and folds."""
    table = validate_table(estimator, X, reset=True)
    _, labels = check_labels(y, many=estimator.takes_many_classes)
    check_consistent_length(X, labels)
    weight = check_weights(sample_weight, labels)
    kept = weight > 0
    rows = table[kept] if isinstance(table, np.ndarray) else table.filter(kept.tolist())
    encoded = TableEncoder.fit(rows, covariate_names(estimator)).transform(table)
    fold = check_folds(estimator.cv, encoded, labels, kept, estimator.random_state)
    native = rows if isinstance(rows, np.ndarray) else rows.to_native()
    return native, np.asarray(y).ravel()[kept], weight[kept], fold

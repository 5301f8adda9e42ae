"""What the classes of a table may be, and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from adacos.exceptions import InvalidInputError
from adacos.kernels.namespace import host
from adacos.typing import Floats

# What takes more than two classes, for those who tried something else.
MANY_CLASSES = "LogisticGAM, the policies from AdaCOSClassifier to FullModelClassifier, and STreeD"


def _check_kind_of_labels(y: NDArray[Any]) -> None:
    """Refuse classes of which some are missing, and words among numbers: they have no order."""
    if y.dtype.kind != "O" or y.ndim != 1:
        return
    for row, label in enumerate(y):
        if label is None or type(label).__name__ == "NAType" or label != label:
            rule, remedy = "must hold a class for each row", "Leave out rows without a class."
            raise InvalidInputError("y", f"{rule}: no NaN", f"{label} in row {row}", remedy)
    if len({isinstance(label, str) for label in y}) > 1:
        rule, remedy = "must be all words or all numbers", "For example y.astype(str)."
        raise InvalidInputError("y", rule, "some of each", remedy)


def check_one_label_each(X: Any, labels: Floats) -> None:
    """Refuse classes that are more or fewer than the rows."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(labels):
        raise InvalidInputError(
            "y",
            "must have one class for each row of X",
            f"{len(labels)} classes for {n_rows} rows",
            "Take both from the same rows.",
        )


def check_labels(y: Any, *, many: bool = False) -> tuple[NDArray[Any], Floats]:
    """The classes in order, and y as 0.0, 1.0, …; more than two of them only where `many` are."""
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

    if y is None:
        raise InvalidInputError(
            "y",
            "fit requires y to be passed, but the target y is None",
            "",
            "Pass the class of each row.",
        )
    _check_kind_of_labels(np.asarray(host(y)))
    y = check_array(host(y), ensure_2d=False, dtype=None, input_name="y")
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.utils.validation import column_or_1d

        y = column_or_1d(y, warn=True)
    if y.ndim != 1:
        raise InvalidInputError(
            "y", "must be one-dimensional", f"shape {y.shape}", "Pass one class for each row."
        )
    check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    if len(classes) > 2 and not many:
        raise InvalidInputError(
            "y",
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}",
            f"{len(classes)} classes",
            f"Three or more classes are taken by {MANY_CLASSES}.",
        )
    if len(classes) < 2:
        raise InvalidInputError(
            "y",
            "needs two classes",
            f"one class: {classes.tolist()}",
            "Collect rows of the other class; a classifier cannot be learned from one class.",
        )
    return classes, code.astype(np.float64)

"""What a policy's answers cost, and how right they were.

Functions take an `AcquisitionResult`, the true labels and, where needed, the costs. `y` and the
result's labels are in the user's classes; the second class in order is the positive one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.costs import Costs
from adacos.exceptions import InvalidInputError

Floats = NDArray[np.float64]


def total_costs(result: Any, y: ArrayLike, costs: Costs) -> Floats:
    """Total cost of each row: covariate cost paid plus C[true class, label]."""
    true, label = _as_binary(result, y)
    return np.asarray(result.cost + costs.matrix[true, label])


def total_cost(result: Any, y: ArrayLike, costs: Costs) -> float:
    """Mean total cost."""
    return float(total_costs(result, y, costs).mean())


def weighted_accuracy(result: Any, y: ArrayLike, positive_weight: float = 10.0) -> float:
    """Share of right answers with each positive row counted `positive_weight` times."""
    true, label = _as_binary(result, y)
    weight = np.where(true == 1, positive_weight, 1.0)
    return float(np.average(true == label, weights=weight))


def recall(result: Any, y: ArrayLike) -> float:
    """Share of positive rows answered positive; NaN without positive rows."""
    true, label = _as_binary(result, y)
    return float(label[true == 1].mean()) if np.any(true == 1) else float("nan")


def neg_total_cost_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Scorer for model selection: the negative mean total cost of a fitted policy on (X, y).

    Pass it as `scoring=` to `GridSearchCV` or `cross_val_score`.
    """
    result = estimator.acquire(X)
    true, label = _as_binary(result, y, estimator.classes_)
    return -float((result.cost + estimator.cost_table_.matrix[true, label]).mean())


def _as_binary(
    result: Any, y: ArrayLike, classes: NDArray[Any] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """True classes and labels as 0 and 1."""
    y = np.asarray(y)
    if len(y) != len(result.label):
        raise InvalidInputError(
            "y",
            "needs one label per row of the result",
            f"{len(y)} labels for {len(result.label)} rows",
            "Pass the labels of the rows that were acquired.",
        )
    if classes is None:
        classes = np.unique(np.concatenate([y, np.asarray(result.label)]))
    return np.searchsorted(classes, y), np.searchsorted(classes, result.label)

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
from adacos.kernels.binomial import interval

Floats = NDArray[np.float64]


def total_costs(result: Any, y: ArrayLike, costs: Costs) -> Floats:
    """Total cost of each row: covariate cost paid plus C[true class, label]."""
    true, label = _as_binary(result, y)
    return np.asarray(result.cost + costs.matrix[true, label])


def total_cost(result: Any, y: ArrayLike, costs: Costs) -> float:
    """Mean total cost."""
    return float(total_costs(result, y, costs).mean())


def operation_costs(result: Any, y: ArrayLike, costs: Costs) -> Floats:
    """Operation cost of each row: covariate cost paid, plus the cost of a false positive.

    It leaves out what a missed positive costs, which nobody states under a target recall.
    """
    true, label = _as_binary(result, y)
    return np.asarray(result.cost + costs.matrix[0, 1] * ((true == 0) & (label == 1)))


def operation_cost(result: Any, y: ArrayLike, costs: Costs) -> float:
    """Mean operation cost."""
    return float(operation_costs(result, y, costs).mean())


def weighted_accuracy(result: Any, y: ArrayLike, positive_weight: float = 10.0) -> float:
    """Share of right answers with each positive row counted `positive_weight` times."""
    true, label = _as_binary(result, y)
    weight = np.where(true == 1, positive_weight, 1.0)
    return float(np.average(true == label, weights=weight))


def recall(result: Any, y: ArrayLike) -> float:
    """Share of positive rows answered positive; NaN without positive rows."""
    true, label = _as_binary(result, y)
    return float(label[true == 1].mean()) if np.any(true == 1) else float("nan")


def recall_interval(result: Any, y: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of the recall; (0, 1) without positive rows."""
    true, label = _as_binary(result, y)
    return _interval(label[true == 1] == 1, confidence)


def false_discovery_rate(result: Any, y: ArrayLike) -> float:
    """Share of negative rows among those answered positive; NaN if none is."""
    true, label = _as_binary(result, y)
    return float((true[label == 1] == 0).mean()) if np.any(label == 1) else float("nan")


def false_discovery_rate_interval(
    result: Any, y: ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """Exact two-sided interval of the false discovery rate; (0, 1) if none is answered positive."""
    true, label = _as_binary(result, y)
    return _interval(true[label == 1] == 0, confidence)


def neg_total_cost_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Scorer for model selection: the negative mean total cost of a fitted policy on (X, y).

    Pass it as `scoring=` to `GridSearchCV` or `cross_val_score`. The policy may be the last step of
    a `Pipeline`; the costs are then those of the columns that reach it.
    """
    policy = estimator
    while hasattr(policy, "steps"):
        if len(policy.steps) > 1:
            X = policy[:-1].transform(X)
        policy = policy.steps[-1][1]
    result = policy.acquire(X)
    true, label = _as_binary(result, y, policy.classes_)
    return -float((result.cost + policy.cost_table_.matrix[true, label]).mean())


def _interval(successes: NDArray[np.bool_], confidence: float) -> tuple[float, float]:
    low, high = interval(int(successes.sum()), len(successes), confidence)
    return float(low), float(high)


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
    present = np.unique(np.concatenate([y, np.asarray(result.label)]))
    if classes is None:
        # Where only one of 0 and 1 occurs, it is still the one it is.
        classes = np.array([0, 1]) if np.all(np.isin(present, [0, 1])) else present
    if len(classes) != 2 or not np.all(np.isin(present, classes)):
        raise InvalidInputError(
            "y",
            "y and the labels must be of two classes",
            present.tolist(),
            "Pass labels of the classes the policy was fitted with, or code them as 0 and 1.",
        )
    return np.searchsorted(classes, y), np.searchsorted(classes, result.label)

"""What is particular about more than two classes: what is refused, and the dearest error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.policies.class_recall import targets_of

Floats = NDArray[np.float64]


def check_with_classes(policy: Any) -> None:
    """Refuse what goes with another number of classes."""
    if len(policy.classes_) == 2:
        refuse_named_recall(policy.target_recall, policy.classes_)
        return
    if policy.target_recall is not None:
        targets_of(policy.target_recall, policy.classes_)
    if policy.recall_confidence is not None and policy.on_uncertifiable == "always_positive":
        raise InvalidInputError(
            "on_uncertifiable",
            "cannot be 'always_positive' with more than two classes, of which none is the positive",
            f"{len(policy.classes_)} classes",
            "Choose 'error', or 'largest' for what the rows do prove.",
        )


def refuse_named_recall(target_recall: Any, classes: NDArray[Any]) -> None:
    """Refuse a target recall by class where there are two classes."""
    if isinstance(target_recall, Mapping):
        raise InvalidInputError(
            "target_recall",
            f"must be a number with two classes: the recall of the second, {classes.tolist()[1]!r}",
            target_recall,
            "For example target_recall=0.95. To protect the other class, let y be 1 for it.",
        )


def dearest_error(matrix: Floats, y: Floats, weight: Floats | None = None) -> float:
    """What the dearest error costs more than the cheapest answer.

    Of more than two classes, of which the dearest is often very rare, its mean over the rows: the
    dearest error for the class of each.
    """
    if len(matrix) == 2:
        return float(np.ptp(matrix))
    return float(np.average(np.ptp(matrix, axis=1)[y.astype(np.intp)], weights=weight))

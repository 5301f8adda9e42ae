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
    check_many_classes(policy)


def check_many_classes(policy: Any, certifies: bool = False) -> None:
    """Refuse what goes with two classes only, where there are more.

    `certifies` says that a recall is certified; else it is if the policy has a confidence.
    """
    if len(policy.classes_) == 2:
        return
    if policy.target_recall is not None:
        targets_of(policy.target_recall, policy.classes_)
    certifies = certifies or policy.recall_confidence is not None
    if certifies and policy.on_uncertifiable == "always_positive":
        raise InvalidInputError(
            "on_uncertifiable",
            "cannot be 'always_positive' with more than two classes, of which none is the positive",
            f"{len(policy.classes_)} classes",
            "Choose 'error', or 'largest' for what the rows do prove.",
        )


def recall_of_two(target_recall: Any, classes: NDArray[Any]) -> Any:
    """The target recall of two classes as a number; it may name the second."""
    if isinstance(target_recall, Mapping) and [*target_recall] == classes.tolist()[1:]:
        return target_recall[classes.tolist()[1]]
    refuse_named_recall(target_recall, classes)
    return target_recall


def asked_recall(policy: Any) -> Any:
    """The target recall of a fitted policy, of two classes as a number; None without one."""
    recall = getattr(policy, "target_recall", None)
    return recall_of_two(recall, policy.classes_) if len(policy.classes_) == 2 else recall


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

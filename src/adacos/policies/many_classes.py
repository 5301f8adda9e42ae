"""What is particular about more than two classes: what is refused, and the dearest error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError

Floats = NDArray[np.float64]


def refuse_with_many_classes(policy: Any, *, calibrated: bool = False) -> None:
    """Refuse what is there for two classes only, where there are more."""
    if len(policy.classes_) == 2:
        return
    if calibrated or policy.target_recall is not None:
        raise InvalidInputError(
            "target_recall",
            "needs two classes: the positive one is the one it protects",
            f"{len(policy.classes_)} classes",
            "Price the errors instead: Costs(..., misclassification=C), dear in the row of the "
            "class to protect.",
        )
    for name in ("budget", "mean_budget"):
        if getattr(policy, name) is not None:
            raise InvalidInputError(
                name,
                "needs two classes",
                f"{len(policy.classes_)} classes",
                "Leave it out; dearer covariates make rows stop earlier.",
            )
    if hasattr(policy, "outlook") and policy.cost_table_.immediate is not None:
        raise InvalidInputError(
            "costs",
            "a round cost needs two classes where rows are asked one by one",
            f"{len(policy.classes_)} classes",
            "Leave round_cost out, or use COSClassifier, which orders its set at once.",
        )


def dearest_error(matrix: Floats, y: Floats, weight: Floats | None = None) -> float:
    """What the dearest error costs more than the cheapest answer.

    Of more than two classes, of which the dearest is often very rare, its mean over the rows: the
    dearest error for the class of each.
    """
    if len(matrix) == 2:
        return float(np.ptp(matrix))
    return float(np.average(np.ptp(matrix, axis=1)[y.astype(np.intp)], weights=weight))

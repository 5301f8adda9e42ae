"""What a policy has for two classes only, refused by name where there are more."""

from __future__ import annotations

from typing import Any

from adacos.exceptions import InvalidInputError


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

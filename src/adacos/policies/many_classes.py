"""What is particular about three or more classes: what is refused, the most expensive error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adacos.exceptions import InvalidInputError
from adacos.policies.budgets import refuse_mean_budget
from adacos.policies.recall import (
    by_name_of_class,
    protecting_of,
    recall_of_two,
    refuse_false_negative_cost,
    targets_of,
)
from adacos.typing import Floats

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy


def check_with_classes(policy: BasePolicy) -> None:
    """Refuse what goes with another number of classes."""
    recall = resolved_target_recall(policy)
    if recalls_by_class(policy):
        check_many_classes(policy)
        if recall is not None:
            refuse_mean_budget(policy)
    elif recall is not None:
        check_in_place_of_cost(policy)


def check_in_place_of_cost(policy: BasePolicy) -> None:
    """Refuse what needs the false-negative cost where a target recall takes its place."""
    refuse_false_negative_cost(policy.costs)
    if policy.sequence not in ("auto", "group_lasso"):
        raise InvalidInputError(
            "sequence",
            "must be 'group_lasso' with a target recall",
            policy.sequence,
            "Forward selection needs the false-negative cost, which a target recall replaces.",
        )


def check_many_classes(policy: BasePolicy, certifies: bool = False) -> None:
    """Refuse what goes with two classes only, where there are more.

    `certifies` says that a recall is certified; else it is if the policy has a confidence.
    """
    if not recalls_by_class(policy):
        return
    aim = policy.recall_aim
    if aim.target_recall is not None:
        targets_of(aim.target_recall, policy.classes_, protecting_of(policy))
    certifies = certifies or aim.recall_confidence is not None
    if certifies and aim.on_uncertifiable == "always_positive":
        raise InvalidInputError(
            "on_uncertifiable",
            "cannot be 'always_positive' with three or more classes or with decisions, of which "
            "none is the positive",
            f"{len(policy.classes_)} classes",
            "Choose 'error', or 'largest' for what the rows do prove.",
        )


def resolved_target_recall(policy: BasePolicy) -> Any:
    """The target recall of a fitted policy, of two classes as a number; None without one."""
    recall = policy.recall_aim.target_recall
    if policy.cost_table_.decisions is not None:
        return by_name_of_class(recall, policy.classes_)
    return recall if recalls_by_class(policy) else recall_of_two(recall, policy.classes_)


def recalls_by_class(policy: BasePolicy) -> bool:
    """Whether surcharges on errors reach target recalls, for want of one positive label."""
    return len(policy.classes_) > 2 or policy.cost_table_.decisions is not None


def max_error_cost(matrix: Floats, y: Floats, weight: Floats | None = None) -> float:
    """What the most expensive error costs more than the cheapest answer.

    With three or more classes the most expensive one is often very rare. Then it is the mean over
    the rows of the most expensive error for the class of each.
    """
    if len(matrix) == 2:
        return float(np.ptp(matrix))
    return float(np.average(np.ptp(matrix, axis=1)[y.astype(np.intp)], weights=weight))

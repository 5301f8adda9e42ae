"""Which policies are drawn as a tree of questions: those that branch, and those that plan."""

from __future__ import annotations

from typing import TypeGuard

from adacos.policies.base import BasePolicy
from adacos.policies.branching import BranchingClassifier
from adacos.policies.planning import PlanningClassifier


def has_tree(policy: BasePolicy) -> TypeGuard[BranchingClassifier | PlanningClassifier]:
    """Whether what a policy asks depends on the values, and a tree shows how."""
    return policy.has_tree

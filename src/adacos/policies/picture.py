"""Which policies are drawn as a tree: those that branch, plan, or follow a protocol."""

from __future__ import annotations

from typing import TypeGuard

from adacos.policies.base import BasePolicy
from adacos.policies.branching import BranchingClassifier
from adacos.policies.planning import PlanningClassifier
from adacos.policies.protocol import ProtocolClassifier


def has_tree(
    policy: BasePolicy,
) -> TypeGuard[BranchingClassifier | PlanningClassifier | ProtocolClassifier]:
    """Whether what a policy asks depends on the values, and a tree shows how."""
    return policy.has_tree

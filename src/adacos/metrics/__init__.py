"""What a policy's answers cost, how right they were, and what it would cost elsewhere."""

from adacos.metrics.off_policy import OffPolicyCost, off_policy_cost
from adacos.metrics.results import (
    false_discovery_rate,
    false_discovery_rate_interval,
    neg_total_cost_scorer,
    operation_cost,
    operation_costs,
    recall,
    recall_interval,
    total_cost,
    total_cost_scorer,
    total_costs,
    weighted_accuracy,
)

__all__ = [
    "OffPolicyCost",
    "false_discovery_rate",
    "false_discovery_rate_interval",
    "neg_total_cost_scorer",
    "off_policy_cost",
    "operation_cost",
    "operation_costs",
    "recall",
    "recall_interval",
    "total_cost",
    "total_cost_scorer",
    "total_costs",
    "weighted_accuracy",
]

"""The threshold of a policy over a set sequence for a target recall, without a certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adacos.kernels.folds import drawn_rows
from adacos.policies.recall import boldest_threshold, recall_threshold, threshold_rule

# Positive training rows on which a threshold is found, drawn where there are more.
_MOST_POSITIVES = 5000


def estimated_threshold(policy: Any, recall: float) -> tuple[float, float]:
    """Threshold as log-odds, and the recall of training rows at it, counted as the policy asks."""
    threshold = policy._threshold_at_every_set(recall)
    leave_out = policy._leave_out_of_positives()
    weight = policy.model_.weight[policy.model_.y == 1]
    # A confidence has the threshold found on calibration rows.
    if policy.recall_at == "stop" and policy.recall_confidence is None:
        highest = recall_threshold(leave_out.max(axis=1), recall, weight)
        return boldest_threshold(_recall_at_stop(policy), recall, threshold, highest)
    reached = np.all(leave_out >= threshold, axis=1)
    return threshold, float(np.average(reached, weights=weight))


def _recall_at_stop(policy: Any) -> Callable[[float], float]:
    """From a threshold to the recall of training rows by models that did not see them."""
    rows = np.flatnonzero(policy.model_.y == 1)
    rows = rows[drawn_rows(np.ones(len(rows)), _MOST_POSITIVES, policy.random_state)]
    answers, weight = policy._answers_left_out(rows), policy.model_.weight[rows]
    decider, costs = policy.decider_, policy.cost_table_.matrix

    def recall_at(threshold: float) -> float:
        found = answers(decider.with_rule(threshold_rule(costs, threshold))) == 1
        return float(np.average(found, weights=weight))

    return recall_at

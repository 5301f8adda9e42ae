"""Recalls of a policy that stops by the rule of its answers, estimated on its training rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from adacos.kernels.folds import drawn_rows
from adacos.policies.recall import (
    Reached,
    RecallAim,
    boldest_threshold,
    protecting_of,
    recall_threshold,
    targets_of,
    threshold_rule,
)
from adacos.policies.surcharges import least_reaching, out_of_fold_recalls
from adacos.typing import Floats

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy

# Positive training rows on which a threshold is found, drawn where there are more.
_MOST_POSITIVES = 5000


def estimated(policy: SequencePolicy, aim: RecallAim) -> Reached:
    """The threshold that training rows ask for, or the surcharges, without a certificate."""
    targets = targets_of(aim.target_recall, policy.classes_, protecting_of(policy))
    if targets.by_class:
        return least_reaching(policy, targets, partial(out_of_fold_recalls, policy))
    recall = float(targets.recalls[0])
    threshold, out_of_fold = (
        threshold_at_every_set(policy, recall),
        policy._out_of_fold_of_positives(),
    )
    weight = _weight_of_positives(policy)
    # A confidence has the threshold found on calibration rows.
    if aim.recall_at == "stop" and aim.recall_confidence is None:
        highest = recall_threshold(out_of_fold.max(axis=1), recall, weight)
        at_stop = _recall_at_stop(policy)
        threshold, estimate = boldest_threshold(at_stop, recall, threshold, highest)
    else:
        reached = np.all(out_of_fold >= threshold, axis=1)
        estimate = float(np.average(reached, weights=weight))
    return Reached.by_stopping(policy.cost_table_.matrix, threshold, estimate)


def threshold_at_every_set(policy: SequencePolicy, recall: float) -> float:
    """The paper's threshold for a target recall, as log-odds: reached at every set."""
    least, weight = policy._out_of_fold_of_positives().min(axis=1), _weight_of_positives(policy)
    threshold = recall_threshold(least, recall, None if np.all(weight == 1) else weight)
    model = policy.model_
    if 0 in policy._may_stop_at() and model.sequence.n_free == 0:
        # At the empty set all rows are alike: a threshold just above would miss every one.
        threshold = min(threshold, float(model.intercepts[0]) - 1e-9)
    return threshold


def _weight_of_positives(policy: SequencePolicy) -> Floats:
    weight: Floats = policy.model_.weight[policy.model_.y == 1]
    return weight


def _recall_at_stop(policy: SequencePolicy) -> Callable[[float], float]:
    """From a threshold to the recall of training rows by models that did not see them."""
    rows = np.flatnonzero(policy.model_.y == 1)
    rows = rows[drawn_rows(np.ones(len(rows)), _MOST_POSITIVES, policy.random_state)]
    answers, weight = policy._answers_out_of_fold(rows), policy.model_.weight[rows]
    decider, costs = policy.decider_, policy.cost_table_.matrix

    def recall_at(threshold: float) -> float:
        found = answers(decider.with_rule(threshold_rule(costs, threshold))) == 1
        return float(np.average(found, weights=weight))

    return recall_at

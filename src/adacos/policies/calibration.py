"""Certified recalls of a policy over a set sequence, earned on calibration rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from adacos.decision import DecisionRule
from adacos.engine import run
from adacos.policies.certificate import from_first_discriminating, prove
from adacos.policies.many_classes import check_with_classes
from adacos.policies.recall import (
    ProvingRows,
    Targets,
    proving_rows,
    refuse_false_negative_cost,
    refuse_training_rows,
    targets_of,
    threshold_rule,
    threshold_sequence,
    value_or_default,
)
from adacos.policies.surcharges import (
    left_out_recalls,
    surcharged,
    surcharges_to_try,
    use_surcharges,
)
from adacos.typing import Bools, Floats, Ints

# Calibration rows on which it is checked that a certified policy tells rows apart at all.
_ROWS_LOOKED_AT = 2048


def calibrate(
    policy: Any,
    X: Any,
    y: Any,
    target_recall: Any,
    confidence: float | None,
    trained: bool,
    groups: Any,
) -> None:
    """Let a policy over a set sequence have the recalls that these rows certify."""
    check_with_classes(policy)
    refuse_false_negative_cost(policy.costs)
    wanted = policy.target_recall if target_recall is None else target_recall
    targets = targets_of(wanted, policy.classes_)
    confidence = value_or_default("confidence", confidence, policy.recall_confidence)
    encoded = policy._encode(X)
    if not trained:
        refuse_training_rows(policy.training_rows_, encoded)
    proving = proving_rows(encoded, y, policy.classes_, targets, groups, policy.random_state)
    certified = _certified_surcharges if targets.by_class else _certified_threshold
    certified(policy, encoded, proving, targets, confidence)


def _certified_threshold(
    policy: Any, encoded: Floats, proving: ProvingRows, targets: Targets, confidence: float
) -> None:
    """Let a policy of two classes answer by the boldest threshold that these rows certify."""
    held_out, others = encoded[proving.members[0]], encoded[proving.others]
    # A row that reaches the threshold at every set is not missed wherever the policy stops.
    least = policy._log_odds_anywhere(held_out).min(axis=1)
    decider, costs = policy.decider_, policy.cost_table_.matrix

    def may_be_missed(threshold: float) -> Bools:
        return np.asarray(least < threshold + 1e-6)

    def label_at(threshold: float, rows: Floats) -> Ints:
        return run(decider.with_rule(threshold_rule(costs, threshold)), rows).label

    def misses_at(threshold: float) -> int:
        return int(np.sum(label_at(threshold, held_out[may_be_missed(threshold)]) != 1))

    def discriminates(threshold: float) -> bool:
        every = max(-(-len(others) // _ROWS_LOOKED_AT), 1)
        return not (label_at(threshold, others[::every]) == 1).all()

    thresholds = threshold_sequence(policy._leave_out_of_positives())
    # Where the estimate answers positive for all, the costs ask for just that.
    if discriminates(policy._threshold_at_every_set(float(targets.recalls[0]))):
        thresholds = from_first_discriminating(thresholds, discriminates)
    threshold = prove(
        policy,
        targets,
        thresholds.tolist(),
        misses_at,
        proving,
        confidence,
        at_most=lambda threshold: int(np.sum(may_be_missed(threshold))),
        positive=-np.inf,
    )
    if len(others) and not np.isinf(threshold) and not discriminates(threshold):
        note = "; at these costs every calibration row is answered positive"
        method = policy.certificate_.method + note
        policy.certificate_ = replace(policy.certificate_, method=method)
    policy._use_threshold(threshold)


def _certified_surcharges(
    policy: Any, encoded: Floats, proving: ProvingRows, targets: Targets, confidence: float
) -> None:
    """Let a policy of more have the boldest surcharges that these rows certify."""
    members = [encoded[rows] for rows in proving.members]
    decider, matrix = policy.decider_, policy.cost_table_.matrix

    def misses_at(surcharges: Floats) -> list[int]:
        surcharging = decider.with_rule(DecisionRule(surcharged(matrix, targets, surcharges)))
        answers = zip(targets.classes, members, strict=True)
        return [int(np.sum(run(surcharging, rows).label != k)) for k, rows in answers]

    tried = surcharges_to_try(policy, targets, partial(left_out_recalls, policy))
    use_surcharges(policy, targets, prove(policy, targets, tried, misses_at, proving, confidence))

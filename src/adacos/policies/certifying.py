"""The certified threshold of a policy over a set sequence, earned on calibration rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from adacos.engine import run
from adacos.exceptions import NotCertifiableError
from adacos.policies.many_classes import recall_of_two, resolved_target_recall
from adacos.policies.recall import (
    ProvingRows,
    RecallCertificate,
    always_positive,
    certify,
    from_first_discriminating,
    positive_rows,
    proving_rows,
    refuse_false_negative_cost,
    refuse_training_rows,
    threshold_rule,
    threshold_sequence,
    value_or_default,
)
from adacos.typing import Bools, Floats, Ints

# Calibration rows on which it is checked that a certified policy tells rows apart at all.
_ROWS_LOOKED_AT = 2048


def calibrate_threshold(
    policy: Any,
    X: Any,
    y: Any,
    target_recall: Any,
    confidence: float | None,
    trained: bool,
    groups: Any,
) -> None:
    """Let a policy of two classes answer by a threshold that these rows certify."""
    asked = recall_of_two(target_recall, policy.classes_)
    recall = value_or_default("target_recall", asked, resolved_target_recall(policy))
    confidence = value_or_default("confidence", confidence, policy.recall_confidence)
    refuse_false_negative_cost(policy.costs)
    encoded = policy._encode(X)
    if not trained:
        refuse_training_rows(policy.training_rows_, encoded)
    positive = positive_rows(y, policy.classes_, len(encoded))
    proving = proving_rows(encoded, positive, groups, policy.random_state)
    try:
        certificate, threshold = certified_threshold(policy, proving, recall, confidence)
    except NotCertifiableError:
        if policy.on_uncertifiable == "error":
            raise
        certificate = always_positive(recall, confidence, len(proving.positive))
        threshold = -np.inf
    policy.certificate_ = certificate
    policy.recall_estimate_ = 1 - certificate.misses / certificate.n_positives
    policy._use_threshold(threshold)


def certified_threshold(
    policy: Any, proving: ProvingRows, recall: float, confidence: float
) -> tuple[RecallCertificate, float]:
    """Certificate and its threshold as log-odds."""
    held_out, others = proving.positive, proving.others
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
    if discriminates(policy._threshold_at_every_set(recall)):
        thresholds = from_first_discriminating(thresholds, discriminates)
    try:
        certificate, threshold = certify(
            misses_at,
            thresholds,
            len(held_out),
            recall,
            confidence,
            at_most=lambda threshold: int(np.sum(may_be_missed(threshold))),
        )
    except NotCertifiableError as refusal:
        if policy.on_uncertifiable != "largest":
            raise
        certificate, threshold = refusal.certificate, float(thresholds[0])
    certificate = replace(certificate, method=certificate.method + proving.note)
    if len(others) and not discriminates(threshold):
        note = "; at these costs every calibration row is answered positive"
        certificate = replace(certificate, method=certificate.method + note)
    return certificate, threshold

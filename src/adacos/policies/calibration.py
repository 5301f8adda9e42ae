"""Certified recalls of a policy over a set sequence, earned on calibration rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from adacos.decision import DecisionRule
from adacos.engine import run
from adacos.policies.budgets import refuse_mean_budget
from adacos.policies.certificate import Proved, from_first_discriminating, prove
from adacos.policies.many_classes import check_many_classes, check_with_classes
from adacos.policies.recall import (
    ProvingRows,
    Reached,
    RecallAim,
    Targets,
    counting_note,
    protecting_of,
    proving_rows,
    refuse_false_negative_cost,
    refuse_training_rows,
    stated_confidence,
    targets_of,
    threshold_rule,
    threshold_sequence,
)
from adacos.policies.recall_estimate import threshold_at_every_set
from adacos.policies.surcharges import (
    out_of_fold_recalls,
    reached_by,
    surcharged,
    surcharges_to_try,
)
from adacos.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy

# From rules, cautious first, and how many rows each misses to the boldest that is certified.
ByRules = Callable[..., Proved[Any]]
# Calibration rows on which it is checked that a certified policy tells rows apart at all.
_ROWS_LOOKED_AT = 2048


def certified(
    policy: SequencePolicy,
    X: Any,
    y: Any,
    aim: RecallAim,
    *,
    allow_training_rows: bool = False,
    groups: Any = None,
) -> Reached:
    """The recalls that these rows certify of a policy that stops by the rule of its answers."""
    refuse_mean_budget(policy)
    check_with_classes(policy)
    check_many_classes(policy, certifies=True)
    refuse_false_negative_cost(policy.costs)
    targets = targets_of(aim.target_recall, policy.classes_, protecting_of(policy))
    confidence = stated_confidence(aim)
    encoded = policy._encode(X)
    if not allow_training_rows:
        refuse_training_rows(policy.training_rows_, encoded)
    proving = proving_rows(encoded, y, policy.classes_, targets, groups, policy.random_state)
    proving = proving._replace(note=proving.note + counting_note(policy, targets))
    by_rules = partial(
        prove,
        policy.classes_,
        aim.on_uncertifiable,
        targets,
        proving=proving,
        confidence=confidence,
    )
    found = _certified_surcharges if targets.by_class else _certified_threshold
    return found(policy, encoded, proving, targets, by_rules)


def _certified_threshold(
    policy: SequencePolicy,
    encoded: Floats,
    proving: ProvingRows,
    targets: Targets,
    by_rules: ByRules,
) -> Reached:
    """The boldest threshold of two classes that these rows certify."""
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

    thresholds = threshold_sequence(policy._out_of_fold_of_positives())
    # Where the estimate answers positive for all, the costs ask for just that.
    if discriminates(threshold_at_every_set(policy, float(targets.recalls[0]))):
        thresholds = from_first_discriminating(thresholds, discriminates)
    threshold, certificate, estimate = by_rules(
        thresholds.tolist(),
        misses_at,
        at_most=lambda threshold: int(np.sum(may_be_missed(threshold))),
        positive=-np.inf,
    )
    if len(others) and not np.isinf(threshold) and not discriminates(threshold):
        note = "; at these costs every calibration row is answered positive"
        certificate = replace(certificate, method=certificate.method + note)
    return Reached.by_stopping(costs, threshold, estimate)._replace(certificate=certificate)


def _certified_surcharges(
    policy: SequencePolicy,
    encoded: Floats,
    proving: ProvingRows,
    targets: Targets,
    by_rules: ByRules,
) -> Reached:
    """The boldest surcharges of more classes that these rows certify."""
    members = [encoded[rows] for rows in proving.members]
    decider, matrix = policy.decider_, policy.cost_table_.matrix

    def misses_at(surcharges: Floats) -> list[int]:
        surcharging = decider.with_rule(DecisionRule(surcharged(matrix, targets, surcharges)))
        answers, found = zip(targets.classes, members, strict=True), targets.found(len(matrix))
        return [int(np.sum(~found[k, run(surcharging, rows).label])) for k, rows in answers]

    tried = surcharges_to_try(policy, targets, partial(out_of_fold_recalls, policy))
    surcharges, certificate, estimate = by_rules(tried, misses_at)
    return reached_by(policy, targets, surcharges, estimate, certificate)

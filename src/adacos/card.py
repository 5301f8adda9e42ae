"""The model card: what a policy may ask for, what it costs, what is promised, in plain values.

One card serves the command line, the service with its page, and the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from adacos import __version__
from adacos.consultation import fingerprint
from adacos.consultation.cut_off import cut_off_of, named_ranges, percent
from adacos.consultation.steps import Classify, ranges_in_words
from adacos.costs import CostTable
from adacos.deciders.mixing import describe_mixture
from adacos.models.sequence_model import SequenceModel
from adacos.policies.base import BasePolicy
from adacos.policies.branching import branches
from adacos.policies.estimates import cost_estimates
from adacos.policies.many_classes import recalls_by_class, resolved_target_recall
from adacos.policies.misfit import MisfitCell, Side, advice
from adacos.policies.picture import has_tree
from adacos.policies.recall import counting_in_words
from adacos.policies.recall import percent as certified_percent
from adacos.policies.restriction import restriction_as_values
from adacos.policies.sequence_policy import asked_in_order
from adacos.policies.tree import described_tree
from adacos.reasons import WeighedDecision
from adacos.tables.description import Description, coded_values, description_of
from adacos.typing import Floats
from adacos.validation import listed

NOTICE = "Research use only: not a medical device. The decision stays with you."
# A mean that differs by less than this share is said to be the same.
_NEARLY = 0.01
_EVERYONE_POSITIVE = (
    "The model calls everyone positive and acquires nothing; it does not discriminate."
)
_NUMBERS = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def model_card(policy: BasePolicy) -> dict[str, Any]:
    """The card as plain JSON values; what a policy does not have is None.

    Of a policy that was chosen automatically it is the card of the chosen one.
    """
    given = policy.as_fitted
    policy = given.chosen
    said = description_of(policy)
    model = policy.sequence_model
    many, by_rule = len(policy.classes_) > 2, policy.decider_.answers_by_rule
    by_rule, stated = by_rule and policy.cost_table_.decisions is None, recalls_by_class(policy)
    sets = policy.sets_ if asked_in_order(policy) else None
    return {
        "model": fingerprint(given),
        "policy": type(given).__name__,
        "wraps": None if given.wrapped is given else type(given.wrapped).__name__,
        "choice": _choice(given.unwrapped),
        "version": __version__,
        "title": said.title,
        "outcome": said.outcome,
        "intended_use": said.intended_use,
        "citation": said.citation,
        "currency": said.currency,
        "headline": headline(policy),
        "classes": policy.classes_.tolist(),
        "class_names": [said.classes.get(str(label)) for label in policy.classes_.tolist()],
        "positive_class": None if many else policy.classes_.tolist()[1],
        # With three or more classes as they were stated, without surcharges.
        "misclassification_costs": (policy.cost_table_ if stated else policy.rule_).matrix.tolist(),
        # With a target recall nobody stated the false-negative cost: it follows from the recall.
        "false_negative_implied": policy.false_negative_cost_ is not None,
        "threshold": None if many or not by_rule else cut_off_of(policy.rule_),
        "threshold_reason": None if many or not by_rule else threshold_reason(policy),
        **_decisions(policy),
        "covariates": [_covariate(policy, k, said) for k in range(len(policy.encoder_.names))],
        "panels": panels_of(policy),
        "training_rows": None if model is None else _learned_from(policy),
        "training_positives": None if many or model is None else _positives(policy, model),
        **({} if not many else {"training_classes": _class_counts(model)}),
        "weighted_shares": None if model is None else _weighted_shares(policy, model),
        **({"surcharges": _by_name(policy.surcharges_ or {})} if recalls_by_class(policy) else {}),
        "order": None if sets is None else list(sets[-1]),
        "sequence": policy.sequence_,
        "sets": None if sets is None else [list(names) for names in sets],
        "out_of_fold_cost_by_set": policy.expected_cost_by_set_.tolist()
        if asked_in_order(policy)
        else None,
        "tree": _tree(policy),
        "cost_estimates": [item._asdict() for item in cost_estimates(given)],
        "misfit": _misfit(given),
        "target_recall": _by_name(resolved_target_recall(policy)),
        "recall_estimate": _by_name(policy.recall_estimate_),
        "recall_at": policy.unwrapped.recall_aim.recall_at,
        "certificate": _certificate(policy),
        "round_cost": policy.cost_table_.round_cost,
        "immediate": _immediate(policy.cost_table_),
        "budget": policy.decider_.budget,
        "mean_budget": policy.unwrapped.chosen.mean_budget,
        "multiplier": _multiplier(policy.unwrapped.chosen),
        "budget_text": budgets_in_words(policy),
        "recalibration": _recalibration(given),
        "restriction": restriction_as_values(given),
        "notice": NOTICE,
    }


def _decisions(policy: BasePolicy) -> dict[str, Any]:
    """What is decided in place of labels, and when; nothing where labels are given."""
    if policy.cost_table_.decisions is None:
        return {}
    own = named_ranges(policy.cost_table_.decisions, policy.rule_.matrix)
    if not policy.decider_.answers_by_rule:
        own = tuple(WeighedDecision(one.decision, one.expected_cost) for one in own)
    ranges = [{"decision": one.decision, "above": one.above, "below": one.below} for one in own]
    names = list(policy.cost_table_.decisions)
    return {"decisions": ranges, "decision_names": names, "rule": rule_in_words(policy)}


def headline(policy: BasePolicy) -> str | None:
    """What must be said before anything else: that the model calls everyone positive."""
    certificate = policy.certificate_
    if policy.always_positive_:
        return (
            f"{_EVERYONE_POSITIVE} A recall of {certificate.recall:.1%} with "
            f"{certificate.confidence:.1%} confidence could not be certified."
        )
    if _calls_everyone_positive(policy):
        alike = "It finds every case, as answering positive without any model does."
        says_nothing = "" if certificate is None else " The certificate says no more than that."
        return f"{_EVERYONE_POSITIVE} {alike}{says_nothing}"
    if certificate is None:
        return None
    if "every calibration row is answered positive" in certificate.method:
        return (
            "The certificate says nothing: at these costs the model calls everyone positive, which "
            "finds every case without any model."
        )
    return None


def _calls_everyone_positive(policy: BasePolicy) -> bool:
    """Whether a policy with a target recall answers positive before it acquires anything."""
    recall = resolved_target_recall(policy)
    if not isinstance(recall, float) or policy.mixture_ is not None:
        return False
    step = policy.consultation().next()
    return isinstance(step, Classify) and step.label == policy.classes_[1]


def deciding_matrix(policy: BasePolicy) -> Floats:
    """The misclassification costs by which labels are decided."""
    return np.asarray(policy.rule_.matrix)


def threshold_reason(policy: BasePolicy) -> str:
    """Why the positive class is given at or above the cut-off, in words."""
    if policy.always_positive_:
        return "everyone is called positive"
    certificate = policy.certificate_
    if certificate is not None:
        return (
            f"certified to find at least {certified_percent(certificate.bound)} of cases "
            f"with {certified_percent(certificate.confidence)} confidence"
        )
    recall = resolved_target_recall(policy)
    if recall is not None:
        if policy.unwrapped.recall_aim.recall_at == "every_set":
            return f"chosen to find at least about {recall:.1%} of cases, wherever they stop"
        return f"chosen to find about {recall:.1%} of cases"
    (c00, c01), (c10, c11) = deciding_matrix(policy).tolist()
    ratio = (c10 - c11) / (c01 - c00)
    if math.isclose(ratio, 1.0):
        return "missing a case counts as much as a false alarm"
    if ratio > 1:
        return f"missing a case counts as much as {_times(ratio)} false alarms"
    return f"a false alarm counts as much as {_times(1 / ratio)} missed cases"


def rule_in_words(policy: BasePolicy) -> str:
    """When the positive class is given, and why; of more classes how the label is chosen."""
    policy = policy.chosen
    if not policy.decider_.answers_by_rule:
        return "The answer is the one that the protocol names, whatever the probability."
    named = policy.cost_table_.decisions
    if named is not None:
        ranges = ranges_in_words(named_ranges(named, policy.rule_.matrix))
        lead = "The decision is the one with the lowest expected cost"
        return f"{lead}: {ranges}." if ranges else f"{lead}, of {listed(named)}."
    if len(policy.classes_) > 2:
        return "The answer is the class with the lowest expected cost of being wrong."
    reason, cut_off = threshold_reason(policy), cut_off_of(policy.rule_)
    if cut_off == 0:
        return f"{reason.capitalize()}."
    return f"Called positive at {percent(cut_off)} or above: {reason}."


def _by_name(values: Any) -> Any:
    """Values by class with the classes as text; anything else as it is."""
    return {str(k): v for k, v in values.items()} if isinstance(values, Mapping) else values


def recalls_in_words(policy: BasePolicy) -> list[str]:
    """What is asked of the recall of classes, of which there are more than two, and its price."""
    said, certified = description_of(policy), policy.certificate_ is not None
    surcharges, wanted = policy.surcharges_ or {}, resolved_target_recall(policy)
    estimates = policy.recall_estimate_ or {}
    return [
        f"Recall of {said.class_name(label)}{_in_brackets(counting_in_words(policy, label))}: "
        + ("" if certified else f"target {wanted[label]:.1%}, ")
        + (f"{estimates[label]:.1%} " if label in estimates else "")
        + ("of the calibration rows" if certified else "estimated, " * bool(estimates))
        + ("" if certified else "not certified")
        + (f"; errors about it count {said.money(extra)} more than was stated." if extra else ".")
        for label, extra in surcharges.items()
    ]


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


def _immediate(costs: CostTable) -> list[str]:
    """Covariates that are not waited for, where waiting costs something."""
    if costs.immediate is None:
        return []
    return [costs.names[k] for k in np.flatnonzero(costs.immediate)]


def _multiplier(policy: BasePolicy) -> float | None:
    """By how much more than once covariate costs count; None without a mean budget."""
    return None if policy.mean_spent_ is None else policy.multiplier_


def budgets_in_words(policy: BasePolicy) -> str | None:
    """What a row may pay, and how a mean budget is kept; None without a budget."""
    described, money, policy = [], description_of(policy).money, policy.unwrapped.chosen
    if policy.decider_.budget is not None:
        described.append(f"No row pays more than {money(policy.decider_.budget)} for covariates.")
    mean = policy.mean_budget
    if mean is not None:
        described.append(f"Rows pay {money(mean)} on average at most.")
    multiplier, spent = policy.multiplier_, policy.mean_spent_
    if spent is not None:
        described.append(
            f"To keep it covariate costs count {1 + multiplier:.4g} times: training rows, "
            f"cross-validated, pay {money(spent)}." + describe_mixture(policy.mixture_)
            if multiplier > 0
            else f"It does not bind: training rows, cross-validated, pay {money(spent)}."
        )
    complete = policy.mean_spent_complete_
    if spent is not None and complete is not None and abs(complete - spent) > _NEARLY * spent:
        described.append(
            "That is the mean of rows with values missing as in training: complete rows pay "
            f"{money(complete)}."
        )
    return " ".join(described) or None


def panel_titles(policy: BasePolicy) -> list[str]:
    """Names of the panels in the order of their numbers in the cost table."""
    return [] if policy.costs is None else list(policy.costs.panels)


def _learned_from(policy: BasePolicy) -> int | None:
    """How many rows the policy was trained on; None where it keeps no digests of them."""
    return None if policy.training_rows_ is None else len(policy.training_rows_.digests)


def _positives(policy: BasePolicy, model: SequenceModel) -> int:
    """Positive training rows; where only some rows were kept, by their weights."""
    kept_all = len(model.y) == _learned_from(policy)
    return round(float(model.y.sum() if kept_all else model.weight @ model.y))


def _weighted_shares(policy: BasePolicy, model: SequenceModel) -> list[float] | None:
    """Share of each class by the weights of its rows, where rows had weights."""
    if len(model.y) != _learned_from(policy) or np.all(model.weight == model.weight[0]):
        return None
    counts = np.bincount(model.y.astype(np.intp), weights=model.weight)
    shares: list[float] = (counts / counts.sum()).tolist()
    return shares


def _class_counts(model: SequenceModel | None) -> list[int] | None:
    """Training rows of each class."""
    return None if model is None else np.bincount(model.y.astype(np.intp)).tolist()


def _tree(policy: BasePolicy) -> dict[str, Any] | None:
    """The questions as data and text, where the values decide what is asked."""
    if not has_tree(policy) or (branches(policy) and policy.always_positive_):
        return None
    tree = described_tree(policy)
    return {**tree.to_dict(), "text": tree.text(description_of(policy).money)}


def _choice(policy: BasePolicy) -> dict[str, Any] | None:
    """What was chosen automatically, among what, and why."""
    if policy.choice_ is None:
        return None
    return {
        "policy": policy.choice_,
        "reason": policy.reason(description_of(policy).money),
        "compared": [asdict(item) for item in policy.compared_],
    }


def _misfit(policy: BasePolicy) -> dict[str, Any] | None:
    """Where expectation and what happened differ, in words, and what to try; None if not known."""
    if policy.misfit_ is None:
        return None
    said = description_of(policy)
    cells = [MisfitCell(Side(*own[0]), Side(*own[1]), *own[2:]) for own in policy.misfit_]
    states = []
    for acquired, label, rows, expected, realised in policy.misfit_states_:
        names = " and ".join(said.label(name) for name in acquired) or "nothing"
        states.append(
            f"{rows:,} rows that stopped with {names}, answered {said.class_name(label)}: "
            f"{said.money(expected)} expected per row, {said.money(realised)} found."
        )
    described = advice(policy.chosen, cells)
    if described is None and states:
        described = (
            "AutoPolicyClassifier (--policy auto) finds out whether another policy is cheaper."
        )
    return {"cells": [cell.describe(said) for cell in cells], "states": states, "advice": described}


def recalibration_in_words(policy: BasePolicy) -> str | None:
    """How a policy was recalibrated, and what of its promises does not hold; None if it was not."""
    found = policy.recalibration_
    if found is None:
        return None
    described = found.text(np.array(list(map(description_of(policy).class_name, policy.classes_))))
    wanted = resolved_target_recall(policy) is not None and policy.certificate_ is None
    return described + (" No recall is certified since then." if wanted else "")


def _recalibration(policy: BasePolicy) -> dict[str, Any] | None:
    """How a policy was recalibrated, in numbers and words."""
    found = policy.recalibration_
    if found is None:
        return None
    return {
        "before": found.before.tolist(),
        "after": found.after.tolist(),
        "shift": found.shift.tolist(),
        "shift_error": None if found.shift_error is None else found.shift_error.tolist(),
        "slope": found.slope,
        "slope_error": found.slope_error,
        "rows": found.rows,
        "text": recalibration_in_words(policy),
    }


def _times(ratio: float) -> str:
    whole = round(ratio)
    if math.isclose(ratio, whole, rel_tol=1e-6) and 2 <= whole < 2 + len(_NUMBERS):
        return _NUMBERS[whole - 2]
    return f"{ratio:,.0f}" if ratio >= 20 else f"{ratio:.3g}"


def _certificate(policy: BasePolicy) -> dict[str, Any] | None:
    certificate = policy.certificate_
    return None if certificate is None else {**asdict(certificate), "text": str(certificate)}


def panels_of(policy: BasePolicy) -> list[dict[str, Any]]:
    """The panels: members, the cost they share (None if it differs), their discounted costs."""
    costs = policy.cost_table_
    after = costs.covariates - costs.discount
    members = [np.flatnonzero(costs.panel == number) for number in range(len(costs.shared))]
    return [
        {
            "name": title,
            # Nobody's share is common where the discounts differ.
            "shared": float(costs.shared[number]) if _same_discount(costs, number) else None,
            "members": [costs.names[k] for k in members[number]],
            "discounted": {costs.names[k]: round(float(after[k]), 10) for k in members[number]},
        }
        for number, title in enumerate(panel_titles(policy))
    ]


def _same_discount(costs: CostTable, number: int) -> bool:
    """Whether all members of a panel have the same discount."""
    return costs.excess is None or not costs.excess[costs.panel == number].any()


def _covariate(policy: BasePolicy, k: int, said: Description) -> dict[str, Any]:
    encoder, costs = policy.encoder_, policy.cost_table_
    name, numeric = encoder.names[k], not encoder.categories[k]
    own = said.of(name)
    return {
        "name": name,
        "label": said.label(name),
        "unit": own.unit,
        "help": own.help,
        "kind": encoder.kinds[k],
        "date": encoder.date_forms.get(name),
        "low": float(encoder.low[k]) if numeric else None,
        "high": float(encoder.high[k]) if numeric else None,
        "plausible": None if own.range is None else list(own.range),
        "categories": list(encoder.categories[k]),
        "grouped": list(encoder.grouped_of(k)),
        "choices": [
            {"value": value, "label": said.shown(name, value)}
            for value in coded_values(encoder, k, said)
        ],
        "cost": float(costs.covariates[k]),
        "panel": panel_titles(policy)[costs.panel[k]] if costs.panel[k] >= 0 else None,
    }

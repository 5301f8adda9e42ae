"""The model card: what a policy may ask for, what it costs, what is promised, in plain values.

One card serves the command line, the service with its page, and the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos import __version__
from adacos.consultation import fingerprint
from adacos.costs import CostTable
from adacos.kernels.bayes_risk import decision_threshold
from adacos.models.sequence_model import SequenceModel
from adacos.policies.auto import AutoPolicyClassifier, settled
from adacos.policies.base import BasePolicy
from adacos.policies.branching import branches
from adacos.policies.leave_out import LeaveOutCost, leave_out_cost, misfit_by_state
from adacos.policies.many_classes import asked_recall
from adacos.policies.misfit import Cell, Side, advice, misfit_by_cell
from adacos.policies.picture import pictured
from adacos.policies.sequence_policy import SequencePolicy, asked_in_order
from adacos.policies.target_recall import inside
from adacos.policies.tree import told_tree
from adacos.tables.description import Description, coded_values, description_of

Floats = NDArray[np.float64]

NOTICE = "Research use only: not a medical device, and no substitute for clinical judgement."
# Cells of a misfit that are kept.
_CELLS = 3
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


class LeaveOut(NamedTuple):
    """Mean cost of one way of answering the training rows, each by models that did not see it."""

    name: str
    cost: float
    error: float


def model_card(policy: BasePolicy) -> dict[str, Any]:
    """The card as plain JSON values; what a policy does not have is None.

    Of a policy that was chosen automatically it is the card of the chosen one.
    """
    given, policy = policy, settled(policy)
    said = description_of(policy)
    model = policy.model_ if isinstance(policy, SequencePolicy) else None
    many = len(policy.classes_) > 2
    sets = policy.sets_ if asked_in_order(policy) else None
    return {
        "model": fingerprint(given),
        "policy": type(given).__name__,
        "wraps": None if inside(given) is given else type(inside(given)).__name__,
        "choice": _choice(inside(given)),
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
        # Of more than two classes as they were stated, without surcharges.
        "misclassification_costs": (policy.cost_table_ if many else policy.rule_).matrix.tolist(),
        # With a target recall nobody stated the false-negative cost: it follows from the recall.
        "false_negative_implied": hasattr(policy, "false_negative_cost_"),
        "threshold": None if many else threshold_of(policy),
        "threshold_reason": None if many else threshold_reason(policy),
        "covariates": [_covariate(policy, k, said) for k in range(len(policy.encoder_.names))],
        "panels": panels_of(policy),
        "training_rows": None if model is None else len(policy.training_rows_.digests),
        "training_positives": None if many or model is None else _positives(policy, model),
        **({} if not many else {"training_classes": _class_counts(model)}),
        **({} if not many else {"surcharges": _by_name(getattr(policy, "surcharges_", {}))}),
        "order": None if sets is None else list(sets[-1]),
        "sets": None if sets is None else [list(names) for names in sets],
        "leave_out_cost_by_set": policy.expected_cost_.tolist() if asked_in_order(policy) else None,
        "tree": _tree(policy),
        "leave_out": [item._asdict() for item in leave_out_costs(given)],
        "misfit": _misfit(given),
        "target_recall": _by_name(asked_recall(policy)),
        "recall_estimate": _by_name(getattr(policy, "recall_estimate_", None)),
        "certificate": _certificate(policy),
        "round_cost": policy.cost_table_.round_cost,
        "immediate": _immediate(policy.cost_table_),
        "budget": policy.ceiling,
        "mean_budget": getattr(settled(inside(policy)), "mean_budget", None),
        "multiplier": _multiplier(settled(inside(policy))),
        "budget_text": budgets_in_words(policy),
        "notice": NOTICE,
    }


def headline(policy: BasePolicy) -> str | None:
    """What must be said before anything else: that nobody is told apart."""
    certificate = getattr(policy, "certificate_", None)
    if certificate is None:
        return None
    if getattr(policy, "always_positive_", False):
        return (
            "Everyone is answered positive, and nothing is acquired: a recall of "
            f"{certificate.recall:.1%} with {certificate.confidence:.1%} confidence could not be "
            "certified. This model tells nobody apart."
        )
    if "every calibration row is answered positive" in certificate.method:
        return (
            "The certificate says nothing: at these costs everyone is answered positive, which "
            "finds every case without any model."
        )
    return None


def deciding_matrix(policy: BasePolicy) -> Floats:
    """The misclassification costs by which labels are decided."""
    return np.asarray(policy.rule_.matrix)


def threshold_of(policy: BasePolicy) -> float:
    """The probability from which on the answer is positive."""
    if getattr(policy, "always_positive_", False):
        return 0.0
    given = getattr(policy, "threshold_", None)
    return float(expit(decision_threshold(deciding_matrix(policy))) if given is None else given)


def threshold_reason(policy: BasePolicy) -> str:
    """Why the answer is positive from that probability on, in words."""
    if getattr(policy, "always_positive_", False):
        return "every row is answered positive"
    recall = asked_recall(policy)
    if recall is not None:
        return f"so that at least {recall:.1%} of the cases are found"
    (c00, c01), (c10, c11) = deciding_matrix(policy).tolist()
    ratio = (c10 - c11) / (c01 - c00)
    if math.isclose(ratio, 1.0):
        return "because a missed case and a false alarm cost the same"
    if ratio > 1:
        return f"because a missed case costs {_times(ratio)} false alarms"
    return f"because a false alarm costs {_times(1 / ratio)} missed cases"


def percent(share: float) -> str:
    """A share in per cent, small ones with two digits."""
    return (
        f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
        if share >= 0.01 or share == 0
        else (f"{100 * share:.2g}\N{NO-BREAK SPACE}%")
    )


def _by_name(values: Any) -> Any:
    """Values by class with the classes as text; anything else as it is."""
    return {str(k): v for k, v in values.items()} if isinstance(values, Mapping) else values


def recalls_in_words(policy: BasePolicy) -> list[str]:
    """What is asked of the recall of classes, of which there are more than two, and its price."""
    said, certified = description_of(policy), hasattr(policy, "certificate_")
    surcharges = getattr(policy, "surcharges_", {})
    return [
        f"Recall of {said.class_name(label)}: "
        + ("" if certified else f"target {policy.target_recall[label]:.1%}, ")
        + f"{policy.recall_estimate_[label]:.1%} "
        + ("of the rows held back" if certified else "estimated, not certified")
        + (f"; errors about it count {said.money(extra)} more than was stated." if extra else ".")
        for label, extra in surcharges.items()
    ]


def _immediate(costs: CostTable) -> list[str]:
    """Covariates that are not waited for, where waiting costs something."""
    if costs.immediate is None:
        return []
    return [costs.names[k] for k in np.flatnonzero(costs.immediate)]


def _multiplier(policy: BasePolicy) -> float | None:
    """By how much more than once covariate costs count; None without a mean budget."""
    return getattr(policy, "multiplier_", None) if hasattr(policy, "mean_spent_") else None


def budgets_in_words(policy: BasePolicy) -> str | None:
    """What a row may pay, and how a mean budget is kept; None without a budget."""
    told, money, policy = [], description_of(policy).money, settled(inside(policy))
    if policy.ceiling is not None:
        told.append(f"No row pays more than {money(policy.ceiling)} for covariates.")
    mean = getattr(policy, "mean_budget", None)
    if mean is not None:
        told.append(f"Rows pay {money(mean)} on average at most.")
    multiplier = _multiplier(policy)
    if multiplier is not None:
        told.append(
            f"To keep it covariate costs count {1 + multiplier:.4g} times: training rows left out "
            f"of the models pay {money(policy.mean_spent_)}."
            if multiplier > 0
            else f"It does not bind: training rows left out of the models pay "
            f"{money(policy.mean_spent_)}."
        )
    return " ".join(told) or None


def panel_titles(policy: BasePolicy) -> list[str]:
    """Names of the panels in the order of their numbers in the cost table."""
    return [] if policy.costs is None else list(policy.costs.panels)


def leave_out_costs(policy: BasePolicy) -> list[LeaveOut]:
    """Cost of the policy beside its alternatives, on training rows left out of the models.

    As `estimate_leave_out` found it; before that, the alternatives alone, for a policy that keeps
    its leave-out log-odds.
    """
    if hasattr(policy, "leave_out_"):
        return [LeaveOut(*item) for item in policy.leave_out_]
    policy = settled(policy)
    if not isinstance(policy, SequencePolicy):
        return []
    model = policy.model_
    return _of_sets(policy) + _of_all_alike(policy, model.y.astype(np.intp), model.weight)


def estimate_leave_out(policy: BasePolicy, X: Any, y: Any, *, nested: bool = False) -> None:
    """Set `leave_out_`: name, mean cost and standard error of the policy and its alternatives.

    And `misfit_`: where an additive model is wrong about these rows, for a policy that has one, and
    if `nested` where the policy expects another cost than it has.

    The cost is the total cost; where a target recall takes the place of what a missed case costs,
    that of covariates and false alarms.

    Parameters
    ----------
    policy : a fitted policy.
    X, y : the rows that it was fitted on.
    nested : fit the policy anew without each of five folds, with everything that it chooses. Else
        where a row stops is decided by the model of all rows, and only its answer there by models
        that did not see it, which is a little optimistic; a policy without leave-out log-odds is
        then left out.
    """
    true = np.searchsorted(policy.classes_, np.asarray(y))
    compared, chosen = [], settled(policy)
    honest = None
    if nested:
        honest = leave_out_cost(policy, X, y)
        compared.append(
            LeaveOut("this policy, fitted anew in each fold", honest.mean, honest.error)
        )
    elif isinstance(chosen, SequencePolicy):
        result = chosen.acquire(X)
        at_stop = chosen._leave_out_at_stop(chosen._encode(X), result)
        label = chosen.rule_.label(at_stop)
        own_name = "this policy, stops chosen with these rows"
        compared.append(_mean(own_name, result.cost + _charged(policy)[true, label]))
    compared += _of_sets(chosen) if isinstance(chosen, SequencePolicy) else []
    policy.leave_out_ = tuple(tuple(item) for item in compared + _of_all_alike(policy, true))
    if isinstance(chosen, SequencePolicy) and len(chosen.classes_) == 2:
        p = expit(chosen._leave_out_with_all())
        cells = misfit_by_cell(chosen.encoder_, chosen._encode(X), true.astype(np.float64), p)
        policy.misfit_ = tuple(
            (tuple(cell.first), tuple(cell.second), *cell[2:]) for cell in cells[:_CELLS]
        )
    if honest is not None and not hasattr(policy, "false_negative_cost_"):
        policy.misfit_states_ = _states(honest)


def _positives(policy: SequencePolicy, model: SequenceModel) -> int:
    """Positive training rows; where only some rows were kept, by their weights."""
    kept_all = len(model.y) == len(policy.training_rows_.digests)
    return round(float(model.y.sum() if kept_all else model.weight @ model.y))


def _class_counts(model: SequenceModel | None) -> list[int] | None:
    """Training rows of each class."""
    return None if model is None else np.bincount(model.y.astype(np.intp)).tolist()


def _states(own: LeaveOutCost) -> tuple[tuple[Any, ...], ...]:
    """The states of a policy that misfit, as plain values."""
    return tuple(
        (state.acquired, str(state.label), state.rows, state.expected, state.realised)
        for state in misfit_by_state(own)
        if state.misfits
    )


def _tree(policy: BasePolicy) -> dict[str, Any] | None:
    """The questions as data and text, where the values decide what is asked."""
    if not pictured(policy) or (branches(policy) and policy.always_positive_):
        return None
    tree = told_tree(policy)
    return {**tree.to_dict(), "text": tree.text(description_of(policy).money)}


def _choice(policy: BasePolicy) -> dict[str, Any] | None:
    """What was chosen automatically, among what, and why."""
    if not isinstance(policy, AutoPolicyClassifier):
        return None
    return {
        "policy": policy.choice_,
        "reason": policy.reason(description_of(policy).money),
        "compared": [asdict(item) for item in policy.compared_],
    }


def _misfit(policy: BasePolicy) -> dict[str, Any] | None:
    """Where expectation and what happened differ, in words, and what to try; None if not known."""
    if not hasattr(policy, "misfit_"):
        return None
    said = description_of(policy)
    cells = [Cell(Side(*own[0]), Side(*own[1]), *own[2:]) for own in policy.misfit_]
    states = []
    for acquired, label, rows, expected, realised in getattr(policy, "misfit_states_", ()):
        names = " and ".join(said.label(name) for name in acquired) or "nothing"
        states.append(
            f"{rows:,} rows that stopped with {names}, answered {said.class_name(label)}: "
            f"{said.money(expected)} expected per row, {said.money(realised)} found."
        )
    told = advice(settled(policy), cells)
    if told is None and states:
        told = "AutoPolicyClassifier (--policy auto) finds out whether another policy is cheaper."
    return {"cells": [cell.told(said) for cell in cells], "states": states, "advice": told}


def _of_sets(policy: SequencePolicy) -> list[LeaveOut]:
    """What one set for all rows would have cost: the best of the sequence, and all covariates."""
    model = policy.model_
    label = policy.rule_.label(model.leave_out_log_odds)
    wrong = _charged(policy)[model.y.astype(np.intp)[:, None], label]
    by_set = wrong + model.sequence.costs(policy.cost_table_)
    best = int(np.argmin(np.average(by_set, axis=0, weights=model.weight)))
    return [
        _mean("one set for all (COS), chosen with these rows", by_set[:, best], model.weight),
        _mean("full model", by_set[:, -1], model.weight),
    ]


def _of_all_alike(
    policy: BasePolicy, true: NDArray[np.intp], weight: Floats | None = None
) -> list[LeaveOut]:
    """What answering everyone alike would have cost; negative is no answer to a target recall."""
    charged = _charged(policy)
    if len(charged) > 2:
        names = [description_of(policy).class_name(label) for label in policy.classes_.tolist()]
        return [_mean(f"everyone {name}", charged[true, k], weight) for k, name in enumerate(names)]
    constants = [_mean("everyone positive", charged[true, 1], weight)]
    if not hasattr(policy, "false_negative_cost_"):
        constants.append(_mean("everyone negative", charged[true, 0], weight))
    return constants


def _charged(policy: BasePolicy) -> Floats:
    """Misclassification costs that somebody stated."""
    matrix: Floats = policy.cost_table_.matrix
    return matrix * [[1, 1], [0, 0]] if hasattr(policy, "false_negative_cost_") else matrix


def _mean(name: str, values: Floats, weight: Floats | None = None) -> LeaveOut:
    """Mean and its standard error; a row of weight w counts as w rows."""
    n = len(values) if weight is None else float(weight.sum())
    mean = float(np.average(values, weights=weight))
    spread = float(np.average((values - mean) ** 2, weights=weight))
    return LeaveOut(name, mean, float(np.sqrt(spread / max(n - 1, 1e-9))))


def _times(ratio: float) -> str:
    whole = round(ratio)
    if math.isclose(ratio, whole, rel_tol=1e-6) and 2 <= whole < 2 + len(_NUMBERS):
        return _NUMBERS[whole - 2]
    return f"{ratio:,.0f}" if ratio >= 20 else f"{ratio:.3g}"


def _certificate(policy: BasePolicy) -> dict[str, Any] | None:
    certificate = getattr(policy, "certificate_", None)
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
        "low": float(encoder.low[k]) if numeric else None,
        "high": float(encoder.high[k]) if numeric else None,
        "plausible": None if own.range is None else list(own.range),
        "categories": list(encoder.categories[k]),
        "choices": [
            {"value": value, "label": said.shown(name, value)}
            for value in coded_values(encoder, k, said)
        ],
        "cost": float(costs.covariates[k]),
        "panel": panel_titles(policy)[costs.panel[k]] if costs.panel[k] >= 0 else None,
    }

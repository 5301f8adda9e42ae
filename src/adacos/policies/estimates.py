"""What a fitted policy is estimated to cost new rows, kept with it for its card."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos.kernels.groups import standard_error
from adacos.policies.base import BasePolicy
from adacos.policies.leave_out import LeaveOutCost, leave_out_cost, misfit_by_state
from adacos.policies.misfit import misfit_by_cell
from adacos.policies.sequence_policy import SequencePolicy, has_sets
from adacos.tables.description import description_of
from adacos.tables.weights import group_numbers
from adacos.typing import Floats, Ints

# Cells of a misfit that are kept.
_CELLS = 3
# How the cost of the policy itself is named among its alternatives.
_OWN = "this policy"


class LeaveOut(NamedTuple):
    """Mean cost of one way of answering the training rows, each by models that did not see it."""

    name: str
    cost: float
    error: float


def leave_out_costs(policy: BasePolicy) -> list[LeaveOut]:
    """Cost of the policy next to its alternatives, cross-validated on the training rows.

    As `estimate_leave_out` found it; before that, the alternatives alone, for a policy that keeps
    its out-of-fold log-odds.
    """
    if policy.leave_out_ is not None:
        return [LeaveOut(*item) for item in policy.leave_out_]
    policy = policy.chosen
    if not has_sets(policy):
        return []
    model = policy.model_
    return _of_sets(policy) + _of_all_alike(policy, model.y.astype(np.intp), model.weight)


def estimate_leave_out(
    policy: BasePolicy,
    X: Any,
    y: Any,
    *,
    nested: bool = False,
    groups: Any = None,
    sample_weight: Floats | None = None,
) -> None:
    """Set `leave_out_`: name, mean cost and standard error of the policy and its alternatives.

    And `misfit_`: where an additive model is wrong about these rows, for a policy that has one, and
    if `nested` where the policy expects another cost than it has.

    The cost is the total cost; where a target recall takes the place of what a missed case costs,
    that of covariates and false alarms.

    Parameters
    ----------
    policy : a fitted policy.
    X, y : the rows that it was fitted on.
    nested : fit the policy again without each of five folds, with everything that it chooses. Else
        where a row stops is decided by the model of all rows, and only its answer there by models
        that did not see it, which is a little optimistic. A policy without out-of-fold log-odds is
        always fitted so, except for what Auto compared already and around a target recall.
    groups, sample_weight : of each row, as for `fit`; a weight is positive. With weights nothing is
        said of where a model is wrong: the rows are others than those it is of.
    """
    true = np.searchsorted(policy.classes_, np.asarray(y))
    number = None if groups is None else group_numbers(groups, len(true))
    compared, chosen = [], policy.chosen
    honest = None
    if nested or policy.needs_nested_fits:
        honest = leave_out_cost(policy, X, y, groups=groups, sample_weight=sample_weight)
        compared.append(LeaveOut(f"{_OWN}, nested cross-validation", honest.mean, honest.error))
    elif has_sets(chosen):
        result = chosen.acquire(X)
        at_stop = chosen._leave_out_at_stop(chosen._encode(X), result)
        label = chosen.rule_.label(at_stop)
        own_name = f"{_OWN}, stops chosen with these rows"
        realised = result.cost + _charged(policy)[true, label]
        compared.append(_mean(own_name, realised, sample_weight, number))
    compared += _of_sets(chosen, number) if has_sets(chosen) else []
    compared += _of_all_alike(policy, true, sample_weight, number)
    policy.leave_out_ = tuple(tuple(item) for item in compared)
    if sample_weight is not None:
        return
    if has_sets(chosen) and len(chosen.classes_) == 2:
        p = expit(chosen._leave_out_with_all())
        cells = misfit_by_cell(
            chosen.encoder_, chosen._encode(X), true.astype(np.float64), p, groups=number
        )
        policy.misfit_ = tuple(
            (tuple(cell.first), tuple(cell.second), *cell[2:]) for cell in cells[:_CELLS]
        )
    if honest is not None and policy.false_negative_cost_ is None:
        policy.misfit_states_ = _states(honest)


def cost_doubt(policy: BasePolicy) -> str | None:
    """Say in words that a policy costs more out of fold than everyone answered alike."""
    costs = leave_out_costs(policy)
    constant_answers = [item for item in costs if item.name.startswith("everyone")]
    if not constant_answers or not costs[0].name.startswith(_OWN):
        return None
    own, alike = costs[0], min(constant_answers, key=lambda item: item.cost)
    if own.cost - alike.cost <= 2 * math.hypot(own.error, alike.error):
        return None
    money = description_of(policy).money
    return (
        f"on rows it was not fitted on this policy costs {money(own.cost)} a row, {alike.name} "
        f"{money(alike.cost)}: it does not suit this table. Try --policy auto, which compares."
    )


def _states(own: LeaveOutCost) -> tuple[tuple[Any, ...], ...]:
    """The states of a policy that misfit, as plain values."""
    return tuple(
        (state.acquired, str(state.label), state.rows, state.expected, state.realised)
        for state in misfit_by_state(own)
        if state.misfits
    )


def _of_sets(policy: SequencePolicy, groups: Ints | None = None) -> list[LeaveOut]:
    """What one set for all rows would have cost: the best of the sequence, and all covariates."""
    model = policy.model_
    label = policy.rule_.label(model.leave_out_log_odds)
    wrong = _charged(policy)[model.y.astype(np.intp)[:, None], label]
    by_set = wrong + model.sequence.costs(policy.cost_table_)
    best = int(np.argmin(np.average(by_set, axis=0, weights=model.weight)))
    cos = "one set for all (COS), chosen with these rows"
    return [
        _mean(name, by_set[:, column], model.weight, groups)
        for name, column in ((cos, best), ("full model", -1))
    ]


def _of_all_alike(
    policy: BasePolicy,
    true: NDArray[np.intp],
    weight: Floats | None = None,
    groups: Ints | None = None,
) -> list[LeaveOut]:
    """What answering everyone alike would have cost; negative is no answer to a target recall."""
    charged = _charged(policy)
    if len(charged) > 2:
        names = [description_of(policy).class_name(label) for label in policy.classes_.tolist()]
        alike = dict(enumerate(names))
    else:
        alike = {1: "positive"} | ({0: "negative"} if policy.false_negative_cost_ is None else {})
    return [
        _mean(f"everyone {name}", charged[true, k], weight, groups) for k, name in alike.items()
    ]


def _charged(policy: BasePolicy) -> Floats:
    """Misclassification costs that somebody stated."""
    matrix: Floats = policy.cost_table_.matrix
    return matrix * [[1, 1], [0, 0]] if policy.false_negative_cost_ is not None else matrix


def _mean(
    name: str, values: Floats, weight: Floats | None = None, groups: Ints | None = None
) -> LeaveOut:
    """Weighted mean and its standard error."""
    mean = float(np.average(values, weights=weight))
    return LeaveOut(name, mean, standard_error(values, groups, weight))

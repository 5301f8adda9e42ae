"""What a fitted policy is estimated to cost new rows, kept with it for its card."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from sklearn.base import clone

from adacos.costs import ROUNDING
from adacos.kernels.groups import standard_error
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import inner_fits
from adacos.policies.misfit import misfit_by_cell
from adacos.policies.nested import NestedCost, misfit_by_state, nested_cost
from adacos.policies.sequence_policy import SequencePolicy, has_sets
from adacos.tables.description import description_of
from adacos.tables.weights import groups_or_copies
from adacos.typing import Floats, Ints

# Cells of a misfit that are kept.
_CELLS = 3
# How the cost of the policy itself is named among its alternatives.
_OWN = "this policy"
# With fewer rows than the first number, and no more covariates than the second, fits without a
# fold take seconds; the plain estimate is then 5% too low and more. Inner folds of these fits.
_FEW_ROWS, _FEW_COVARIATES, _INNER_FOLDS = 1_000, 20, 3
# How often a policy that costs as much as its best fixed set is doubted at most, all sets together.
LEVEL = 0.01


class CostEstimate(NamedTuple):
    """Mean cost of one way of answering the training rows, each by models that did not see it."""

    name: str
    cost: float
    error: float


def cost_estimates(policy: BasePolicy) -> list[CostEstimate]:
    """Cost of the policy next to its alternatives, cross-validated on the training rows.

    As `estimate_costs` found it; before that, the alternatives alone, for a policy that keeps
    its out-of-fold log-odds.
    """
    if policy.cost_estimates_ is not None:
        return [CostEstimate(*item) for item in policy.cost_estimates_]
    policy = policy.chosen
    if not has_sets(policy):
        return []
    model = policy.model_
    return _of_sets(policy) + _of_all_alike(policy, model.y.astype(np.intp), model.weight)


def estimate_costs(
    policy: BasePolicy,
    X: Any,
    y: Any,
    *,
    nested: bool = False,
    groups: Any = None,
    sample_weight: Floats | None = None,
) -> str | None:
    """Set `cost_estimates_`: name, mean cost and standard error of the policy and its alternatives.

    Gives a doubt in words where answering everyone alike, or one set for every row, costs less.
    Sets also `misfit_`: where an additive model is wrong about these rows, for a policy that has
    one, and after nested fits where the policy expects another cost than it has.

    The cost is the total cost; where a target recall takes the place of what a missed case costs,
    that of covariates and false alarms.

    Parameters
    ----------
    policy : a fitted policy.
    X, y : the rows that it was fitted on.
    nested : fit the policy again without each of five folds, with everything that it chooses. So
        it is always, with fewer inner folds, for a policy over sets with fewer than 1,000 rows and
        at most 20 covariates, and for a policy without out-of-fold log-odds. Else where a row stops
        is decided by the model of all rows, and only its answer there by models that did not see
        it, which is a little optimistic. Auto has the cost of its choice from the comparison.
    groups, sample_weight : of each row, as for `fit`; a weight is positive. With weights nothing is
        said of where a model is wrong: the rows are others than those it is of.
    """
    true = np.searchsorted(policy.classes_, np.asarray(y))
    number = groups_or_copies(groups, policy._encode(X), true.astype(np.float64))
    compared, chosen = [], policy.chosen
    honest = None
    own = None
    # Where a target recall is given to the policy inside, that policy is fitted again.
    fitted = policy if policy.chooses or policy.unwrapped is not policy else chosen
    if nested or _is_better_nested(fitted, len(true)):
        again = fitted if nested else _with_fewer_folds(fitted)
        honest = nested_cost(again, X, y, groups=number, sample_weight=sample_weight)
        compared.append(CostEstimate(f"{_OWN}, nested cross-validation", honest.mean, honest.error))
        own = honest.realised
    else:
        own = out_of_fold_cost(policy, X, true)
        if own is not None:
            of_policy = policy._out_of_fold is not None
            how = "in the comparison" if of_policy else "stops chosen with these rows"
            compared.append(_mean(f"{_OWN}, {how}", own, sample_weight, number))
    compared += _of_sets(chosen, number) if has_sets(chosen) else []
    compared += _of_all_alike(policy, true, sample_weight, number)
    policy.cost_estimates_ = tuple(tuple(item) for item in compared)
    doubt = None
    if own is not None:
        doubt = cost_doubt(policy, own, true, sample_weight, number)
        doubt = doubt or set_doubt(policy, X, own, true, number)
    if sample_weight is not None:
        return doubt
    if has_sets(chosen) and len(chosen.classes_) == 2:
        p = expit(chosen._out_of_fold_with_all())
        cells = misfit_by_cell(
            chosen.encoder_, chosen._encode(X), true.astype(np.float64), p, groups=number
        )
        policy.misfit_ = tuple(
            (tuple(cell.first), tuple(cell.second), *cell[2:]) for cell in cells[:_CELLS]
        )
    if honest is not None and policy.false_negative_cost_ is None:
        policy.misfit_states_ = _states(honest)
    return doubt


def out_of_fold_cost(policy: BasePolicy, X: Any, true: NDArray[np.intp]) -> Floats | None:
    """Cost of each training row by models that did not see it; NaN where there was none.

    For a policy over sets where a row stops is decided by the model of all rows. None for one that
    keeps nothing of it.
    """
    if policy._out_of_fold is not None:
        return policy._out_of_fold[0]
    chosen = policy.chosen
    if not has_sets(chosen):
        return None
    with inner_fits():
        result = chosen.acquire(X)
    label = chosen.rule_.label(chosen._out_of_fold_at_stop(chosen._encode(X), result))
    cost: Floats = result.cost + charged(policy)[true, label]
    return cost


def _is_better_nested(policy: BasePolicy, n_rows: int) -> bool:
    """Whether fits without some of the rows best show what a policy costs, or alone do."""
    if policy.needs_nested_fits or not isinstance(policy, SequencePolicy):
        return policy.needs_nested_fits
    few = n_rows < _FEW_ROWS and len(policy.encoder_.names) <= _FEW_COVARIATES
    return few and policy.recall_aim.recall_confidence is None and isinstance(policy.cv, Integral)


def _with_fewer_folds(policy: BasePolicy) -> BasePolicy:
    """A policy like this one that is fitted faster."""
    if not isinstance(policy, SequencePolicy):
        return policy
    faster: BasePolicy = clone(policy).set_params(cv=min(policy.cv, _INNER_FOLDS), verbose=0)
    return faster


def cost_doubt(
    policy: BasePolicy,
    own: Floats,
    true: NDArray[np.intp],
    weight: Floats | None = None,
    groups: Ints | None = None,
) -> str | None:
    """Say in words that a policy costs more out of fold than everyone answered alike.

    The difference has its standard error, row by row; that it is not below 0 is a doubt.

    Parameters
    ----------
    policy : the policy.
    own : (rows,) its out-of-fold cost; NaN where there is none.
    true : numbers of the classes.
    weight, groups : of each row.
    """
    known = ~np.isnan(own)
    if known.sum() < 2:
        return None
    own, true = own[known], true[known]
    weight = None if weight is None else weight[known]
    groups = None if groups is None else groups[known]
    by_label = charged(policy)[true]
    mean = np.average(by_label, axis=0, weights=weight)
    alike = _alike(policy)
    best = min(alike, key=lambda k: mean[k])
    more = _mean("", own - by_label[:, best], weight, groups)
    if more.cost <= 0:
        return None
    money = description_of(policy).money
    remedy = (
        "Add rows or covariates, or answer so without a policy."
        if policy.chooses
        else "Try AutoPolicyClassifier (--policy auto), which compares."
    )
    return (
        f"on rows it was not fitted on this policy costs {money(float(more.cost + mean[best]))} a "
        f"row, everyone {alike[best]} {money(float(mean[best]))}. The difference is "
        f"{money(more.cost)} ± {money(more.error)}: its questions are not shown to pay. {remedy}"
    )


def set_doubt(
    policy: BasePolicy,
    X: Any,
    own: Floats,
    true: NDArray[np.intp],
    groups: Ints | None = None,
) -> str | None:
    """Say in words that a policy costs more out of fold than the best of its sets for every row.

    Compared are rows that are complete, weighted to represent the table, as new ones will be. The
    difference must be above 0 with a confidence of 1 - `LEVEL` over the number of sets, as the best
    of them was chosen with the same rows. Policies with a target recall are not compared: it costs.

    Parameters
    ----------
    policy : the policy.
    X : the training rows.
    own : (rows,) its out-of-fold cost; NaN where there is none.
    true : numbers of the classes.
    groups : of each row.
    """
    chosen = policy.chosen
    by_recall = any(each.recall_aim.target_recall is not None for each in (policy, chosen))
    if not has_sets(chosen) or by_recall:
        return None
    model, prices = chosen.model_, chosen.model_.sequence.costs(chosen.cost_table_)
    budgets = [b for b in (policy.budget, policy.mean_budget) if b is not None]
    sets = chosen._may_stop_at()
    sets = sets[prices[sets] <= min(budgets, default=np.inf) * (1 + ROUNDING)]
    if not np.array_equal(model.y, true) or len(sets) < 2:
        return None
    weight = model.weights_of_complete(chosen._encode(X))
    known = ~np.isnan(own) & (weight > 0)
    if known.sum() < 2:
        return None
    label = chosen.rule_.label(model.out_of_fold_log_odds[np.ix_(known, sets)])
    by_set = charged(policy)[true[known][:, None], label] + prices[sets]
    weight, groups = weight[known], None if groups is None else groups[known]
    best = int(np.argmin(np.average(by_set, axis=0, weights=weight)))
    more = _mean("", own[known] - by_set[:, best], weight, groups)
    if more.cost <= ndtri(1.0 - LEVEL / len(sets)) * more.error:
        return None
    money = description_of(policy).money
    cost = float(np.average(by_set[:, best], weights=weight))
    return (
        f"on rows it was not fitted on this policy costs {money(cost + more.cost)} a row, the best "
        f"of its sets for every row ({', '.join(chosen.sets_[sets[best]]) or 'none asked'}) "
        f"{money(cost)}. The difference of {money(more.cost)} ± {money(more.error)} is more than "
        'chance explains: it stops in the wrong places. Try lookahead="dynamic", '
        "PlanningClassifier (--policy planning), or COSClassifier (--policy cos), which has that "
        "set for every row."
    )


def _states(own: NestedCost) -> tuple[tuple[Any, ...], ...]:
    """The states of a policy that misfit, as plain values."""
    return tuple(
        (state.acquired, str(state.label), state.rows, state.expected, state.realised)
        for state in misfit_by_state(own)
        if state.misfits
    )


def _of_sets(policy: SequencePolicy, groups: Ints | None = None) -> list[CostEstimate]:
    """What one set for all rows would have cost: the best of the sequence, and all covariates."""
    model = policy.model_
    label = policy.rule_.label(model.out_of_fold_log_odds)
    wrong = charged(policy)[model.y.astype(np.intp)[:, None], label]
    by_set = wrong + model.set_costs(policy.cost_table_)
    best = int(np.argmin(np.average(by_set, axis=0, weights=model.weight)))
    cos = "one set for all (COS), chosen with these rows"
    alternatives = [(cos, best), ("full model", -1)]
    if policy.false_negative_cost_ is not None:
        # What a missed case costs is not counted: how many are found has to be said.
        found, count = label == 1, model.weight * (model.y == 1)
        recalls = np.average(found, axis=0, weights=count)
        alternatives = [(f"{name}, recall {recalls[k]:.1%}", k) for name, k in alternatives]
    return [_mean(name, by_set[:, column], model.weight, groups) for name, column in alternatives]


def _of_all_alike(
    policy: BasePolicy,
    true: NDArray[np.intp],
    weight: Floats | None = None,
    groups: Ints | None = None,
) -> list[CostEstimate]:
    """What answering everyone alike would have cost; negative is no answer to a target recall."""
    matrix = charged(policy)
    return [
        _mean(f"everyone {name}", matrix[true, k], weight, groups)
        for k, name in _alike(policy).items()
    ]


def _alike(policy: BasePolicy) -> dict[int, str]:
    """Answers that everyone may be given alike: number of the class, and its name."""
    if len(charged(policy)) > 2 or policy.cost_table_.decisions is not None:
        said = description_of(policy)
        return {k: said.class_name(label) for k, label in enumerate(policy.decisions_.tolist())}
    return {1: "positive"} | ({0: "negative"} if policy.false_negative_cost_ is None else {})


def charged(policy: BasePolicy) -> Floats:
    """Misclassification costs that somebody stated."""
    matrix: Floats = policy.cost_table_.matrix
    return matrix * [[1, 1], [0, 0]] if policy.false_negative_cost_ is not None else matrix


def _mean(
    name: str, values: Floats, weight: Floats | None = None, groups: Ints | None = None
) -> CostEstimate:
    """Weighted mean and its standard error."""
    mean = float(np.average(values, weights=weight))
    return CostEstimate(name, mean, standard_error(values, groups, weight))

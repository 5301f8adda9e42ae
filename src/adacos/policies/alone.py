"""What answering by one covariate alone would cost, as a hint that another order is cheaper.

A sequence by the group lasso begins with covariates that say much for their cost. A strong but
expensive one comes late, and every row pays for what comes before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from adacos.kernels.folds import stratified_folds
from adacos.kernels.groups import standard_error
from adacos.models.short_plans import CellRows
from adacos.policies.base import BasePolicy
from adacos.policies.estimates import out_of_fold_cost
from adacos.policies.sequence_policy import SequencePolicy
from adacos.tables.description import description_of
from adacos.tables.weights import groups_or_copies
from adacos.typing import Floats, Ints

# Folds of the rows.
_FOLDS = 10
# How often a covariate that is no cheaper would be named.
_LEVEL = 0.01


def cheaper_alone(
    policy: BasePolicy, X: Any, own: Floats, true: Ints, groups: Ints | None = None
) -> tuple[str, str] | None:
    """The covariate that alone costs less than the policy, and that in words; None without one.

    Parameters
    ----------
    policy : a fitted policy; of one whose order was not found by the group lasso nothing is said.
    X : the rows that it was fitted on.
    own : (rows,) its out-of-fold cost; NaN where there is none.
    true : numbers of the classes.
    groups : of each row.
    """
    if not _could_be_in_another_order(policy):
        return None
    encoded, costs = policy._encode(X), policy.cost_table_
    fold = stratified_folds(encoded, true.astype(np.float64), _FOLDS, 0, groups)
    weight = np.ones(len(true))
    cells = CellRows(encoded, policy.encoder_.source, true, weight, fold, costs, policy.budget)
    found = cells.cheapest(most=1)
    if found is None:
        return None
    known = ~np.isnan(own)
    less = (own - found.cost)[known]
    error = standard_error(less, None if groups is None else groups[known])
    if less.mean() <= norm.isf(_LEVEL / found.compared) * error:
        return None
    name, money = policy.encoder_.names[found.covariates[0]], description_of(policy).money
    return name, (
        f"answering by {name} alone costs {money(float(found.cost[known].mean()))} a row, this "
        f"policy {money(float(own[known].mean()))}, by rows that were not learned from: another "
        'order of the covariates may be cheaper. Try sequence="auto" (--sequence auto), which '
        "compares two orders and takes up to twice as long to fit."
    )


def order_doubt(policy: BasePolicy, X: Any, y: Any, groups: Any = None) -> str | None:
    """`cheaper_alone` in words, for a policy and the rows that it was fitted on."""
    if not _could_be_in_another_order(policy):
        return None
    true = np.searchsorted(policy.classes_, np.asarray(y))
    own = out_of_fold_cost(policy, X, true)
    number = groups_or_copies(groups, policy._encode(X), true.astype(np.float64))
    found = None if own is None else cheaper_alone(policy, X, own, true, number)
    return None if found is None else found[1]


def _could_be_in_another_order(policy: BasePolicy) -> bool:
    """Whether another order can be asked for, and rows stop by what they cost, counted once."""
    return (
        isinstance(policy, SequencePolicy)
        and policy.sequence == "group_lasso"
        and len(policy._may_stop_at()) > 1
        and len(policy.encoder_.names) > 1
        and policy.recall_aim.target_recall is None
        and policy.mean_budget is None
        and bool(np.all(policy.model_.weight == 1))
    )

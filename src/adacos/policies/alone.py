"""What answering by one covariate alone would cost, as a hint that another order is cheaper.

A sequence by the group lasso begins with covariates that say much for their cost. A strong but
expensive one comes late, and every row pays for what comes before. Seeing that takes no fit: a
covariate is cut into cells, and each row is answered by the shares of the classes in its cell among
rows of other folds. If that costs less than the policy does, a sequence that begins with this
covariate may cost less too.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import norm

from adacos.costs import ROUNDING
from adacos.kernels.folds import stratified_folds
from adacos.kernels.groups import standard_error
from adacos.policies.base import BasePolicy
from adacos.policies.estimates import out_of_fold_cost
from adacos.policies.sequence_policy import SequencePolicy
from adacos.tables.description import description_of
from adacos.tables.weights import group_numbers
from adacos.typing import Floats, Ints

# Cells of a number at most, rows of each at least, and folds of the rows.
_CELLS, _ROWS, _FOLDS = 20, 40, 10
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
    known = ~np.isnan(own)
    encoded, names = policy._encode(X), policy.encoder_.names
    fold = stratified_folds(encoded, true.astype(np.float64), _FOLDS, 0, groups)
    prices = policy.cost_table_.of(np.eye(len(names), dtype=np.bool_)).tolist()
    least, named = 0.0, None
    for k, (name, price) in enumerate(zip(names, prices, strict=True)):
        if policy.budget is not None and price > policy.budget * (1 + ROUNDING):
            continue
        columns = encoded[:, policy.encoder_.source == k]
        wrong = _cost(_cells(columns), true, fold, policy.cost_table_.matrix)
        alone = wrong + price * ~np.isnan(columns[:, 0])
        less = (own - alone)[known]
        error = standard_error(less, None if groups is None else groups[known])
        surely = float(less.mean() - norm.isf(_LEVEL / len(names)) * error)
        if surely > least:
            least = surely
            named = name, float(alone[known].mean()), float(own[known].mean())
    if named is None:
        return None
    money, (name, alone_cost, own_cost) = description_of(policy).money, named
    return name, (
        f"answering by {name} alone costs {money(alone_cost)} a row, this policy "
        f"{money(own_cost)}, by rows that were not learned from: another order of the covariates "
        'may be cheaper. Try sequence="both" (--sequence both), which compares two orders and '
        "takes two to three times as long to fit."
    )


def order_doubt(policy: BasePolicy, X: Any, y: Any, groups: Any = None) -> str | None:
    """`cheaper_alone` in words, for a policy and the rows that it was fitted on."""
    if not _could_be_in_another_order(policy):
        return None
    true = np.searchsorted(policy.classes_, np.asarray(y))
    own = out_of_fold_cost(policy, X, true)
    number = None if groups is None else group_numbers(groups, len(true))
    found = None if own is None else cheaper_alone(policy, X, own, true, number)
    return None if found is None else found[1]


def _could_be_in_another_order(policy: BasePolicy) -> bool:
    """Whether the order was found by the group lasso, and `sequence="both"` can be asked for."""
    return (
        isinstance(policy, SequencePolicy)
        and policy.sequence_ == "group_lasso"
        and len(policy._may_stop_at()) > 1
        and len(policy.encoder_.names) > 1
        and policy.recall_aim.target_recall is None
        and policy.mean_budget is None
        and isinstance(policy.cv, Integral)
        and bool(np.all(policy.model_.weight == 1))
    )


def _cells(columns: Floats) -> Ints:
    """Number of each row's cell: a category, or a share of rows; the last where none is known.

    A number is one column, a category one for each level.
    """
    missing = np.isnan(columns[:, 0])
    if columns.shape[1] > 1:
        cell, n_cells = np.where(missing[:, None], 0, columns).argmax(axis=1), columns.shape[1]
    else:
        n_cells = int(np.clip(len(columns) // _ROWS, 2, _CELLS))
        edges = np.unique(np.quantile(columns[~missing], np.arange(1, n_cells) / n_cells))
        cell, n_cells = np.searchsorted(edges, columns[:, 0], side="right"), len(edges) + 1
    return np.asarray(np.where(missing, n_cells, cell))


def _cost(cell: Ints, true: Ints, fold: Ints, matrix: Floats) -> Floats:
    """Cost of each row's answer by the shares of classes in its cell, among rows of other folds."""
    n_classes = len(matrix)
    count = np.zeros((int(fold.max()) + 1, int(cell.max()) + 1, n_classes))
    np.add.at(count, (fold, cell, true), 1.0)
    # In an empty cell the shares of all rows decide.
    others = count.sum(axis=0) - count + np.bincount(true, minlength=n_classes) / len(true)
    label = (others @ matrix).argmin(axis=2)
    return np.asarray(matrix[true, label[fold, cell]])

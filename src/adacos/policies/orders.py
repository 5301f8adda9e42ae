"""Two ways to find the set sequence of a policy, and which of them costs less.

The group lasso begins with covariates that say much for their cost, and is blind to what a wrong
answer costs; forward selection lowers the total cost step by step, and may stop short of covariates
that only pay together. Both orders are found on all rows. Then each row is walked along either by
models that did not see it, and its two costs are compared.

With `sequence="auto"` this is done only where the group lasso begins badly: where other one or two
covariates for every row cost less than its first ones, see `adacos.models.short_plans`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from adacos.kernels.groups import standard_error
from adacos.models.large_fits import PreparedRows
from adacos.models.sequence_model import SequenceModel, build_sequence_model
from adacos.models.short_plans import CellRows
from adacos.policies.budgets import KeptRows, out_of_fold_totals
from adacos.typing import Floats
from adacos.validation import level_of_caller

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy

SEQUENCES = ("group_lasso", "forward")
# Ways that are taken again for other misclassification costs.
BY_ALL_COSTS = ("forward", "both")
# By how many standard errors forward selection must be cheaper: it was found by what wrong answers
# to these rows cost, and flatters itself a little.
_ERRORS = 1.0


def cheapest_sequence(policy: SequencePolicy, fits: PreparedRows) -> tuple[str, SequenceModel]:
    """The way in which a policy costs less, or the one that is asked for, and its model.

    Of two the group lasso is kept unless forward selection is cheaper beyond a standard error. A
    mean budget is not counted: it is kept along the order that is taken.
    """
    if policy.sequence in SEQUENCES:
        asked = policy.sequence
        return asked, build_sequence_model(fits, policy.cost_table_, asked, policy.budget)
    models, totals = {}, {}
    for way in SEQUENCES:
        models[way] = build_sequence_model(fits, policy.cost_table_, way, policy.budget)
        policy._finish_fit(models[way])
        rows = policy._kept_rows()
        if way == "group_lasso" and policy.sequence == "auto" and _is_good(policy, fits, rows):
            return way, models[way]
        totals[way] = out_of_fold_totals(policy.decider_, rows)
    less = totals["group_lasso"] - totals["forward"]
    way = SEQUENCES[_is_above_error(less, fits, rows)]
    return way, models[way]


def _is_good(policy: SequencePolicy, fits: PreparedRows, rows: KeptRows) -> bool:
    """Whether forward selection is not worth a try, or impossible without the costs of all errors.

    It is worth one where other one or two covariates for every row cost less than those with which
    the order begins, or than none of them.
    """
    if policy.recall_aim.target_recall is not None or len(policy._may_stop_at()) < 2:
        return True
    label, fold = rows.y.astype(np.intp), fits.fold[rows.numbers]
    encoded = rows.encoded, policy.encoder_.source
    cells = CellRows(*encoded, label, rows.weight, fold, policy.cost_table_, policy.budget)
    found = cells.cheapest()
    if found is None:
        return True
    order = policy.model_.sequence.order
    first = order[np.isin(order, cells.candidates)].tolist()
    begun = (cells.cost(tuple(sorted(first[:size]))) for size in range(3))
    return min(map(cells.mean, begun)) <= found.mean


def _is_above_error(less: Floats, fits: PreparedRows, rows: KeptRows) -> bool:
    """Whether the mean of what rows save is above its standard error."""
    groups = None if fits.table is None else fits.table[2]
    error = standard_error(less, None if groups is None else groups[rows.numbers], rows.weight)
    return bool(np.average(less, weights=rows.weight) > _ERRORS * error)


def warn_of_both(sequence: str) -> None:
    """Say what compares two orders from now on, where "both" is asked for."""
    if sequence == "both":
        warnings.warn(
            'sequence="both" is deprecated: sequence="auto" compares both orders where it may pay. '
            "The next release refuses it.",
            FutureWarning,
            stacklevel=level_of_caller(),
        )

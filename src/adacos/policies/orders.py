"""Two ways to find the set sequence of a policy, and which of them costs less.

The group lasso begins with covariates that say much for their cost, and is blind to what a wrong
answer costs; forward selection lowers the total cost step by step, and may stop short of covariates
that only pay together. Both orders are found on all rows. Then each row is walked along either by
models that did not see it, and its two costs are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adacos.kernels.groups import standard_error
from adacos.models.large_fits import PreparedRows
from adacos.models.sequence_model import SequenceModel, build_sequence_model
from adacos.policies.budgets import KeptRows, out_of_fold_totals

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy

SEQUENCES = ("group_lasso", "forward")
# By how many standard errors forward selection must be cheaper: it was found by what wrong answers
# to these rows cost, and flatters itself a little.
_ERRORS = 1.0


def cheaper_sequence(policy: SequencePolicy, fits: PreparedRows) -> tuple[str, SequenceModel]:
    """The way in which a policy costs less, and its model.

    The group lasso is kept unless forward selection is cheaper beyond a standard error. A mean
    budget is not counted: it is kept along the order that is taken.
    """
    models, totals = {}, {}
    for way in SEQUENCES:
        models[way] = build_sequence_model(fits, policy.cost_table_, way, policy.budget)
        policy._finish_fit(models[way])
        rows: KeptRows = policy._kept_rows()
        totals[way] = out_of_fold_totals(policy.decider_, rows)
    lasso, forward = (totals[way] for way in SEQUENCES)
    groups = None if fits.table is None else fits.table[2]
    own = None if groups is None else groups[rows.numbers]
    less, error = float((lasso - forward).mean()), standard_error(lasso - forward, own)
    way = SEQUENCES[less > _ERRORS * error]
    return way, models[way]

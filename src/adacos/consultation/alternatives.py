"""All open questions of a consultation, by the expected total cost of the plan that holds each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adacos.consultation.steps import Alternative, Explanation
from adacos.costs import CostTable
from adacos.reasons import Plan
from adacos.typing import Bools, Ints


def ranked(
    costs: CostTable, plans: Sequence[Plan], explanation: Explanation, have: Bools, open_: Bools
) -> tuple[Alternative, ...]:
    """The open questions, the one with the least expected total cost first.

    Parameters
    ----------
    costs : covariate costs.
    plans : plans that were weighed; what was paid does not count in them.
    explanation : of the step, with what was paid and the flips of its question.
    have, open_ : masks of the values there are, and of what can be asked.
    """
    price, found = costs.of_next(have), []
    for k in np.flatnonzero(open_).tolist():
        name = costs.names[k]
        own = [plan for plan in plans if name in plan.covariates]
        plan = min(own, key=lambda one: len(one.covariates), default=None)
        found.append(
            Alternative(
                covariate=name,
                cost=float(price[k] + costs.waiting(np.arange(len(have)) == k)),
                expected_total_cost=None
                if plan is None
                else explanation.paid + plan.expected_total_cost,
                others=()
                if plan is None
                else tuple(other for other in plan.covariates if other != name),
                flips=tuple(str(flip) for flip in explanation.flips if flip.covariate == name),
            )
        )
    return tuple(sorted(found, key=_rank))


def _rank(one: Alternative) -> tuple[float, float]:
    """By expected total cost; questions without one come last, by what they cost."""
    total = one.expected_total_cost
    return np.inf if total is None else total, one.cost


def sharing(
    costs: CostTable, covariates: Ints, settled: Bools, after: Bools
) -> tuple[tuple[str, float], ...]:
    """Members of the same panels that can still be acquired, and their cost `after`."""
    if not len(costs.shared):
        return ()
    panels = np.setdiff1d(costs.panel[covariates], [-1])
    members = np.flatnonzero(np.isin(costs.panel, panels) & ~settled)
    amounts = costs.of_next(after)[members]
    return tuple(
        (costs.names[k], float(amount)) for k, amount in zip(members, amounts, strict=True)
    )

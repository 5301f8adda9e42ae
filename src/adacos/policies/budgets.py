"""What rows may pay: a ceiling for each of them, and a mean over all.

The ceiling is kept by the engine, see `adacos.engine.Budget`; a policy over a set sequence besides
leaves the sets beyond it out of its lookahead, and asks first what can be paid.

The mean is kept by a Lagrange multiplier m: with every covariate cost counted 1 + m times, rows
stop earlier. Along one sequence each row stops the earlier the larger m is, so that the mean
covariate cost falls with m; wanted is the least m at which it is within the budget. It is found on
the training rows, each walked by log-odds of models that did not see it. Where rows are alike the
mean falls in steps; a budget between two of them is spent by a mixture, see
`adacos.deciders.mixing`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adacos.costs import ROUNDING, total_of
from adacos.deciders.out_of_fold import AnyFoldedDecider, FoldedDecider
from adacos.decision import Mixture, State
from adacos.engine import run
from adacos.exceptions import InvalidInputError, UnspentBudgetWarning
from adacos.kernels.folds import drawn_rows
from adacos.models.sequence_model import SequenceModel
from adacos.policies.rounds import refuse_rounds
from adacos.typing import Floats, Ints
from adacos.validation import Constraints, amount

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy
    from adacos.policies.sequence_policy import SequencePolicy

BUDGET_CONSTRAINTS: Constraints = {"budget": amount, "mean_budget": amount}
# Rows on which the multiplier is found, drawn where there are more.
_MOST_ROWS = 10_000
# Accuracy of 1 + m, relative, and the largest m tried: it makes a cent dearer than any error.
_ACCURACY, _LARGEST = 1e-6, 2.0**60
# Share of a budget that need not be topped up.
_NEARLY = 0.99


class KeptRows(NamedTuple):
    """Training rows on which budgets and costs are found.

    Attributes
    ----------
    encoded : their encoded values.
    numbers : their places among the training rows.
    y, weight : their labels, and how often each counts.
    """

    encoded: Floats
    numbers: Ints
    y: Floats
    weight: Floats

    @classmethod
    def drawn(cls, encoded: Floats, model: SequenceModel, seed: int) -> KeptRows:
        """All training rows, or some of each class where there are more than enough."""
        rows = drawn_rows(model.y, _MOST_ROWS, seed)
        return cls(encoded[rows], rows, model.y[rows], model.weight[rows])


class Kept(NamedTuple):
    """How a mean budget is kept.

    Attributes
    ----------
    multiplier : by how much more than once covariate costs count; infinite if nothing keeps it.
    spent : what rows then pay on average, with the mixture.
    mixture : which rows walk with a lower multiplier, where that spends the budget.
    """

    multiplier: float
    spent: float
    mixture: Mixture | None


def keep_mean_budget(
    decider: FoldedDecider[State], rows: KeptRows, budget: float, seed: int
) -> Kept:
    """The least multiplier at which training rows keep a mean budget.

    They keep it if, followed by models that did not see them, they pay no more on average, and
    followed as new rows will be, no more than a standard error above it: where many rows are
    alike, models without a row part them, while all of them are asked as one. What is left of the
    budget is spent with the largest multiplier that does not keep it, by as many rows as can.
    """
    too_much: dict[float, Spent] = {}

    def spent(multiplier: float) -> Spent:
        return _spent(decider.with_multiplier(multiplier), rows)

    def keeps(multiplier: float) -> bool:
        found = spent(multiplier)
        kept = found.out_of_fold <= budget and found.as_new <= budget + found.error
        if not kept:
            too_much[multiplier] = found
        return kept

    multiplier = least_multiplier(keeps)
    if np.isinf(multiplier):
        return Kept(multiplier, np.inf, None)
    less = spent(multiplier).by_new_rows
    if not too_much or less >= _NEARLY * budget:
        return Kept(multiplier, less, None)
    other = max(too_much)
    more = too_much[other].by_new_rows
    if more <= budget:
        return Kept(multiplier, less, None)
    share = (budget - less) / (more - less)
    return Kept(multiplier, budget, Mixture(other, share, seed))


def least_multiplier(keeps: Callable[[float], bool]) -> float:
    """The least multiplier that keeps a budget, as all larger ones do; infinite if none does."""
    if keeps(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not keeps(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            return np.inf
    while high - low > _ACCURACY * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


class Spent(NamedTuple):
    """Mean covariate cost of training rows.

    Attributes
    ----------
    out_of_fold : walked by models that did not see them.
    error : its standard error.
    as_new : walked as rows are that nobody has seen.
    """

    out_of_fold: float
    error: float
    as_new: float

    @property
    def by_new_rows(self) -> float:
        """What new rows pay: as out-of-fold rows, unless these differ where new ones are alike."""
        parted = abs(self.out_of_fold - self.as_new) > 2 * self.error
        return self.as_new if parted else self.out_of_fold


def _spent(decider: FoldedDecider[State], rows: KeptRows) -> Spent:
    cost, weight = run(decider.out_of_fold(rows.numbers), rows.encoded).cost, rows.weight
    mean = float(np.average(cost, weights=weight))
    spread = float(np.average((cost - mean) ** 2, weights=weight))
    as_new = float(np.average(run(decider, rows.encoded).cost, weights=weight))
    return Spent(mean, float(np.sqrt(spread / max(float(weight.sum()) - 1, 1.0))), as_new)


def spend_mean_budget(policy: SequencePolicy, rows: KeptRows) -> None:
    """Let a fitted policy keep its mean budget, and say what rows then pay."""
    assert policy.mean_budget is not None
    decider = policy.decider_.with_multiplier(0.0)
    kept = keep_mean_budget(decider, rows, policy.mean_budget, policy.random_state)
    policy.mean_spent_ = kept.spent
    policy.finish_fit(policy.rule_, kept.multiplier, kept.mixture)
    policy.mean_spent_complete_ = _spent_by_complete(policy, rows)


def _spent_by_complete(policy: SequencePolicy, rows: KeptRows) -> float | None:
    """What rows pay on average that are complete and else like all others, by a fitted policy.

    None where no value is missing, or no complete rows stand for the table.
    """
    decider: AnyFoldedDecider = policy.decider_
    weight = policy.model_.weights_of_complete(shared_rows(policy._rows))[rows.numbers]
    complete = weight > 0
    if complete.all() or not complete.any():
        return None
    first, second = (
        run(arm.out_of_fold(rows.numbers[complete]), rows.encoded[complete]).cost
        for arm in decider.arms
    )
    mixture = decider.terms.mixture
    share = 0.0 if mixture is None else mixture.share
    return float(np.average((1 - share) * first + share * second, weights=weight[complete]))


def out_of_fold_totals(decider: FoldedDecider[State], rows: KeptRows) -> Floats:
    """Total cost of each training row, walked by models that did not see it."""
    result = run(decider.out_of_fold(rows.numbers), rows.encoded)
    return total_of(result.cost, rows.y, result.label, decider.rule.matrix)


def out_of_fold_total(decider: FoldedDecider[State], rows: KeptRows) -> float:
    """Their mean."""
    return float(np.average(out_of_fold_totals(decider, rows), weights=rows.weight))


def check_budgets(policy: BasePolicy) -> None:
    """Refuse a budget together with a cost of rounds."""
    if policy.budget is not None or policy.mean_budget is not None:
        refuse_rounds(policy, why="a budget counts covariates and not the time they take")


def warn_of_unspent(policy: SequencePolicy, name: str) -> None:
    """Warn where a budget by this name pays for no set of a fitted policy."""
    most, costs = getattr(policy, name), policy.model_.sequence.costs(policy.cost_table_)
    least = float(costs[costs > 0].min(initial=np.inf))
    if most and most * (1 + ROUNDING) < least < np.inf:
        remedy = f"Raise {name}."
        if name == "mean_budget":
            remedy = "AdaCOSClassifier spends it: some rows acquire, others nothing."
        warnings.warn(
            f"{name}={most:g} pays for no set of covariates: the cheapest costs {least:g}. Every "
            f"row acquires only what is free. {remedy}",
            UnspentBudgetWarning,
            stacklevel=5,
        )


def refuse_mean_budget(policy: BasePolicy) -> None:
    """Refuse a mean budget where recalls are found by walking rows.

    A certified threshold and surcharges move where rows stop, hence what they pay, and the
    multiplier moves where they stop, hence their recalls: what is found for one of them no longer
    holds once the other is found, and a certificate allows no change at all. Where recalls are
    reached by the answers alone, both hold.
    """
    if policy.mean_budget is not None:
        raise InvalidInputError(
            "mean_budget",
            "goes with no recall certificate and no recall by class: either moves where rows stop, "
            "and so what the other was found by",
            policy.mean_budget,
            f"Fit TargetRecallClassifier({type(policy).__name__}(costs, mean_budget="
            f"{policy.mean_budget:g}), target_recall=..., recall_confidence=...): it keeps the "
            "mean budget and reaches the recall by its answers alone. Or set budget, a ceiling "
            "for each row, instead.",
        )


def shared_rows(rows: Floats | None, what: str = "a mean budget") -> Floats:
    """The encoded training rows of a policy whose fit is shared, for what is found on them."""
    if rows is None:
        raise InvalidInputError(
            "fitted",
            f"must be fitted in this process, for {what}",
            "a policy without its training rows",
            f"Fit this policy: {what} is kept in cross-validation."
            + (" Or pass recall_at='every_set'." if "recall" in what else ""),
        )
    return rows

"""What rows may pay: a ceiling for each of them, and a mean over all.

The ceiling is kept by the engine, see `adacos.engine.Purse`; a policy over a set sequence besides
leaves the sets beyond it out of its outlook, and asks first what can be paid.

The mean is kept by a Lagrange multiplier m: with every covariate cost counted 1 + m times, rows
stop earlier. Along one sequence each row stops the earlier the larger m is, so that the mean
covariate cost falls with m; wanted is the least m at which it is within the budget. It is found on
the training rows, each walked by log-odds of models that did not see it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import total_of
from adacos.engine import AcquisitionResult, Decision, Rows, run
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import drawn_rows
from adacos.models.class_outlook import ClassOutlook
from adacos.models.large_fits import PreparedRows
from adacos.models.outlook import Outlook, WalkState
from adacos.policies.rounds import refuse_rounds
from adacos.validation import Constraints, amount

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

BUDGET_CONSTRAINTS: Constraints = {"budget": amount, "mean_budget": amount}
# Rows on which the multiplier is found, drawn where there are more.
_MOST_ROWS = 10_000
# Accuracy of 1 + m, relative, and the largest m tried: it makes a cent dearer than any error.
_ACCURACY, _LARGEST = 1e-6, 2.0**60


class LeftOut(NamedTuple):
    """A state with the numbers of its training rows."""

    state: Any
    rows: Ints


class LeaveOutPolicy:
    """A fitted policy whose training rows walk by log-odds of models that did not see them."""

    def __init__(self, policy: Any, rows: Ints) -> None:
        self.policy, self.rows = policy, rows
        self.classes_, self.encoder_ = policy.classes_, policy.encoder_
        self.cost_table_, self.rule_ = policy.cost_table_, policy.rule_
        self.ceiling: float | None = policy.ceiling
        self._opening: Callable[[], Ints] = policy._opening

    def _begin(self, rows: Rows) -> LeftOut:
        assert rows.numbers is not None
        return LeftOut(self.policy._begin(rows), self.rows[rows.numbers])

    def _within(self, state: LeftOut, left: Floats) -> LeftOut:
        return state._replace(state=self.policy._within(state.state, left))

    def _decide(self, state: LeftOut) -> Decision:
        decision: Decision = self.policy._decide(self.policy._left_out(*state))
        return decision

    def _advance(self, state: LeftOut, going: Bools, covariates: Ints) -> LeftOut:
        return LeftOut(self.policy._advance(state.state, going, covariates), state.rows[going])


def keep_mean_budget(policy: Any, encoded: Floats) -> tuple[float, float]:
    """The least multiplier at which training rows keep the mean budget, and what they then pay.

    Infinite if there is none. They keep it if, walked by models that did not see them, they pay no
    more on average, and walked as new rows will be, no more than a standard error above it: where
    many rows are alike, models without a row part them, while all of them walk as one. The policy
    is left with the multiplier tried last.
    """

    budget: float = policy.mean_budget

    def spent(multiplier: float) -> Spent:
        policy.multiplier_ = multiplier
        return _spent(policy, encoded)

    def keeps(multiplier: float) -> bool:
        mean, error, as_new = spent(multiplier)
        return mean <= budget and as_new <= budget + error

    multiplier = least_multiplier(keeps)
    return multiplier, spent(multiplier).left_out if np.isfinite(multiplier) else np.inf


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
    left_out : walked by models that did not see them.
    error : its standard error.
    as_new : walked as rows are that nobody has seen.
    """

    left_out: float
    error: float
    as_new: float


def _spent(policy: Any, encoded: Floats) -> Spent:
    result, rows = _drawn_left_out(policy, encoded)
    weight = policy.model_.weight[rows]
    mean = float(np.average(result.cost, weights=weight))
    spread = float(np.average((result.cost - mean) ** 2, weights=weight))
    as_new = float(np.average(policy._run(encoded[rows]).cost, weights=weight))
    return Spent(mean, float(np.sqrt(spread / max(float(weight.sum()) - 1, 1.0))), as_new)


def leave_out_total(policy: Any, encoded: Floats) -> float:
    """Mean total cost of the training rows, each walked by models that did not see it."""
    result, rows = _drawn_left_out(policy, encoded)
    model = policy.model_
    total = total_of(result.cost, model.y[rows], result.label, policy.rule_.matrix)
    return float(np.average(total, weights=model.weight[rows]))


def _drawn_left_out(policy: Any, encoded: Floats) -> tuple[AcquisitionResult, Ints]:
    """What becomes of training rows walked by models that did not see them, and their numbers."""
    rows = drawn_rows(policy.model_.y, _MOST_ROWS, policy.random_state)
    return run_left_out(policy, encoded[rows], rows), rows


def run_left_out(policy: Any, encoded: Floats, rows: Ints) -> AcquisitionResult:
    """What becomes of these training rows, walked by models that did not see them."""
    nothing = np.zeros(len(policy.encoder_.names), dtype=np.bool_)
    return run(LeaveOutPolicy(policy, rows), encoded, nothing)


def check_budgets(policy: Any) -> None:
    """Refuse a budget together with a cost of rounds."""
    if policy.budget is not None or policy.mean_budget is not None:
        refuse_rounds(policy, why="a budget counts covariates and not the time they take")


def refuse_mean_budget(policy: Any) -> None:
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
            f"Wrap it: TargetRecallClassifier({type(policy).__name__}(costs, mean_budget="
            f"{policy.mean_budget:g}), target_recall=...) keeps the mean budget and reaches the "
            "recall by its answers alone. Or set budget, a ceiling for each row, instead.",
        )


def shared_rows(fits: PreparedRows | None, what: str = "a mean budget") -> Any:
    """The training rows of a policy whose fit is shared, for what is kept on them."""
    if fits is None or fits.table is None:
        raise InvalidInputError(
            "fitted",
            f"must be fitted in this process with {what} too",
            "a policy without its training rows",
            f"Fit this policy: {what} is kept on rows that are left out.",
        )
    return fits.table[0]


def told_of_budgets(policy: Any, state: WalkState, outlook: Outlook | ClassOutlook) -> str:
    """What budgets have to do with a decision about one row, in words."""
    told, times = [], 1 + policy.multiplier_
    if state.left is not None and np.isinf(outlook.cost).any():
        first = state.upcoming[int(np.argmax(np.isinf(outlook.cost[0])))]
        told.append(
            f"Of the budget of {policy.ceiling:.2f} there is {state.left[0] / times:.2f} left; "
            f"what comes from {policy.encoder_.names[first]} on is beyond it."
        )
    if times > 1:
        told.append(
            f"To keep the mean budget of {policy.mean_budget:.2f}, covariate costs count "
            f"{times:.2f} times when going on is weighed."
        )
    return " ".join(told)

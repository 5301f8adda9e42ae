"""What more spending saves: covariate cost against misclassification cost, for all mean budgets.

A mean budget is kept by counting covariate costs 1 + m times, see `adacos.policies.budgets`. One
fit serves every m: the rows are walked once for each of some multipliers, from none to the one at
which nothing more is paid.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.deciders.mixing import run_mixed
from adacos.engine import AcquisitionResult, run
from adacos.exceptions import InvalidInputError
from adacos.kernels.groups import standard_error
from adacos.kernels.threads import one_blas_thread
from adacos.metrics.evaluation import held_out_rows
from adacos.policies.fitted import fitted_policy
from adacos.validation import integer, real

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# The largest multiplier: whatever costs something is dearer than any error.
_LARGEST = 2.0**60


@dataclass(frozen=True)
class TradeOffPoint:
    """What rows cost with one multiplier; means over the rows and their standard errors.

    Parameters
    ----------
    multiplier : float
        By how much more than once covariate costs count.
    covariate_cost, covariate_error : float
        What was paid for covariates.
    misclassification_cost, misclassification_error : float
        What the answers cost.
    total_cost, total_error : float
        Both together.
    """

    multiplier: float
    covariate_cost: float
    covariate_error: float
    misclassification_cost: float
    misclassification_error: float
    total_cost: float
    total_error: float


@dataclass(frozen=True)
class TradeOff:
    """Points by multiplier, from none to the one at which least is paid, see `trade_off`.

    Parameters
    ----------
    points : tuple of TradeOffPoint
        What rows cost with each multiplier.
    rows : int
        How many rows they are means of.
    own : TradeOffPoint, default=None
        What the policy as it is costs the rows: with a mean budget the one that it keeps.
    """

    points: tuple[TradeOffPoint, ...]
    rows: int
    own: TradeOffPoint | None = None

    def __str__(self) -> str:
        lines = [f"{'multiplier':>10}  {'covariates':>16}  {'errors':>16}  {'total':>16}"]
        named = [(f"{p.multiplier:10.4g}", p) for p in self.points]
        if self.own is not None:
            named.append((f"{'as fitted':>10}", self.own))
        for name, p in named:
            amounts = (
                f"{mean:9.2f} ± {error:4.2f}"
                for mean, error in (
                    (p.covariate_cost, p.covariate_error),
                    (p.misclassification_cost, p.misclassification_error),
                    (p.total_cost, p.total_error),
                )
            )
            lines.append(f"{name}  " + "  ".join(amounts))
        return "\n".join(lines)

    def within(self, mean_budget: float) -> TradeOffPoint:
        """Find the point that spends most within a mean budget.

        Parameters
        ----------
        mean_budget : float
            What rows may pay for covariates on average.

        Returns
        -------
        TradeOffPoint
            The point.

        Raises
        ------
        InvalidInputError
            If every point spends more.
        """
        budget = real("mean_budget", mean_budget, at_least=0)
        inside = [point for point in self.points if point.covariate_cost <= budget]
        if inside:
            return max(inside, key=lambda point: point.covariate_cost)
        least = min(point.covariate_cost for point in self.points)
        raise InvalidInputError(
            "mean_budget",
            f"must be at least {least:g}, what is paid in any case",
            mean_budget,
            "Choose a larger budget.",
        )

    def to_dict(self) -> dict[str, list[float]]:
        """Give the columns of the table by name.

        Returns
        -------
        dict
            One list for each field of a point; `pandas.DataFrame` takes it as it is.
        """
        columns = zip(*(astuple(point) for point in self.points), strict=True)
        names = (field.name for field in fields(TradeOffPoint))
        return {name: list(column) for name, column in zip(names, columns, strict=True)}


@one_blas_thread
def trade_off(
    policy: BasePolicy, X: Any, y: ArrayLike, *, points: int = 30, groups: ArrayLike | None = None
) -> TradeOff:
    """Covariate cost against misclassification cost for all mean budgets, from one fit.

    Parameters
    ----------
    policy : AdaCOSClassifier, BranchingClassifier or AutoPolicyClassifier
        A fitted policy; it is not changed. A ceiling for each row is kept.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that it was not fitted on.
    y : array-like of shape (n_rows,)
        Their classes.
    points : int, default=30
        Multipliers tried; those that lead to what another led to already are dropped.
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together. Standard errors are
        then those of independent groups.

    Returns
    -------
    TradeOff
        What rows cost, by multiplier. Where more is counted, less is paid except by a few rows that
        continue to a later set instead.

    Raises
    ------
    InvalidInputError
        If the policy does not weigh acquisitions by their costs.

    Warns
    -----
    TrainingRowsWarning
        If rows look like those that the policy was trained on.

    Notes
    -----
    The cost of an error is the one in force: with a target recall, the cost of a false negative
    that its threshold implies.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima, trade_off
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=500, false_negative=500)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> curve = trade_off(policy, X[1::2], y[1::2])
    >>> curve.points[0].covariate_cost > curve.within(5.0).covariate_cost
    True
    """
    integer("points", points, at_least=2)
    chosen = fitted_policy(policy).chosen
    if chosen.resolved_lookahead is None:
        raise InvalidInputError(
            "policy",
            "must weigh acquisitions row by row: AdaCOS, Branching, or Auto that chose one of them",
            type(chosen).__name__,
            "For example AdaCOSClassifier(costs).fit(X, y).",
        )
    encoded, place, number_of, _ = held_out_rows(policy, X, y, groups, "the curve is")
    decider = chosen.decider_.arms[0]
    found: dict[float, TradeOffPoint] = {}

    def point(multiplier: float) -> TradeOffPoint:
        return described(multiplier, run(decider.with_multiplier(multiplier), encoded))

    def described(multiplier: float, result: AcquisitionResult) -> TradeOffPoint:
        wrong = decider.rule.matrix[place, result.label]
        parts = (result.cost, wrong, result.cost + wrong)
        means = [v for part in parts for v in (float(part.mean()), standard_error(part, number_of))]
        return TradeOffPoint(multiplier, *means)

    least, last = point(_LARGEST).covariate_cost, 1.0
    while point(last).covariate_cost > least and last < _LARGEST:
        last *= 2
    for multiplier in np.geomspace(1.0, 1.0 + last, points) - 1.0:
        own = point(float(multiplier))
        found.setdefault(own.covariate_cost, own)
    own = described(decider.multiplier, run_mixed(chosen.decider_, encoded))
    return TradeOff(tuple(found.values()), len(place), own)

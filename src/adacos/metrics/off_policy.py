"""What a policy would cost, from rows of which another policy or protocol chose what to record."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from adacos.exceptions import InvalidInputError, TableWarning
from adacos.kernels.groups import standard_error
from adacos.kernels.intervals import row_interval
from adacos.kernels.threads import one_blas_thread
from adacos.metrics.evaluation import held_out_rows
from adacos.metrics.logged_rows import (
    Followed,
    Stage,
    always_recorded,
    estimated_propensities,
    expected_along,
    prerequisites,
    walk_recorded,
    weights_along,
)
from adacos.typing import Bools, Floats, Ints
from adacos.validation import choice, choices, integer, level_of_caller, listed, real

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

METHODS = ("doubly_robust", "weighted", "direct")
# Propensities below this are no support: such a row would count more than a hundredfold.
LEAST_PROPENSITY = 0.01
# Share of the rows without support from which a warning says so, and covariates that it names.
_UNSUPPORTED, _NAMED = 0.01, 3
# Effective rows, as a share of those followed, below which a few of them decide.
_FEW_EFFECTIVE = 0.2


@dataclass(frozen=True)
class OffPolicyCost:
    """What a policy would cost per row, from rows collected by another; see `off_policy_cost`.

    Parameters
    ----------
    estimate : float
        Mean total cost, if everything that the policy asks for could be acquired.
    standard_error : float or None
        Its standard error; None for the direct estimate.
    interval : tuple of (float, float) or None
        Confidence interval, likewise.
    method : str
        How it was estimated.
    rows : int
        How many rows there are.
    followed_rows : int
        Those that hold everything the policy asks for.
    followed_cost : float
        Their mean total cost: biased where sick rows are recorded more fully than others.
    effective_rows : float
        As many rows of equal weight would have the followed rows' precision.
    unsupported_share : float
        Share of the rows, at least, of which the policy asks for what such rows do not hold.
    unsupported : tuple of (str, float)
        The covariates asked for there, with their part of that share.
    order : tuple of str
        The order in which covariates were taken to be recorded.

    See Also
    --------
    off_policy_cost : Makes it.

    Examples
    --------
    >>> from adacos.metrics import OffPolicyCost
    >>> cost = OffPolicyCost(
    ...     12.5, 0.5, (11.5, 13.5), "doubly_robust", 900, 300, 19.0, 210.4, 0.0, (), ("a",)
    ... )
    >>> print(cost)
    12.5 ± 0.5 per row (doubly_robust); 300 of 900 rows could be followed to the end, as good as
    210 of equal weight. Their own mean cost is 19. Without support: 0.0% of the rows.
    """

    estimate: float
    standard_error: float | None
    interval: tuple[float, float] | None
    method: str
    rows: int
    followed_rows: int
    followed_cost: float
    effective_rows: float
    unsupported_share: float
    unsupported: tuple[tuple[str, float], ...]
    order: tuple[str, ...]

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.3g}"
        return (
            f"{self.estimate:.4g}{error} per row ({self.method}); {self.followed_rows:,} of "
            f"{self.rows:,} rows could be followed to the end, as good as\n"
            f"{self.effective_rows:,.0f} of equal weight. Their own mean cost is "
            f"{self.followed_cost:.4g}. Without support: {self.unsupported_share:.1%} of the rows."
        )


@one_blas_thread
def off_policy_cost(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    order: Sequence[str] | None = None,
    method: str = "doubly_robust",
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> OffPolicyCost:
    """Estimate what a policy would cost, from rows that another policy or protocol collected.

    The cost on the rows that happen to be complete is biased: of the sick more is recorded. Here
    a row in which the policy can be followed counts for those like it in which it cannot. That is
    right if what was recorded next depended only on what had been recorded before, and on the
    class. Nobody can see in the rows whether it also depended on what nobody recorded.

    Parameters
    ----------
    policy : policy
        A fitted policy; it is not changed.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that it was not fitted on. NaN means that the value was not recorded, not that it
        could not have been.
    y : array-like of shape (n_rows,)
        Their classes, all known.
    propensities : array-like of shape (n_rows, n_covariates), default=None
        Probability of each covariate being recorded, given what had been recorded before of the
        row. By default a `LogisticGAM` estimates it, with the class among what was known. Where one
        policy without chance collected the rows pass ``X.notna()``: what it asked for was certain.
    order : sequence of str, default=None
        The order in which it was decided what to record. Covariates not named were always
        recorded. By default from the most often recorded covariate to the least.
    method : {"doubly_robust", "weighted", "direct"}, default="doubly_robust"
        Weights of one over the probability that all was recorded which the policy asks for, divided
        by their sum ("weighted"); regressions from the stop of the policy back ("direct"); or
        these, corrected by weighted residuals ("doubly_robust").
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together.
    confidence : float, default=0.95
        Of the interval.
    random_state : int, default=0
        Seed of the five folds of the regressions.

    Returns
    -------
    OffPolicyCost
        Estimate, standard error, interval, and how far the rows support it.

    Raises
    ------
    InvalidInputError
        If the policy cannot be followed to its stop in any row, or knows no cost of a missed case.

    Warns
    -----
    TableWarning
        If the policy asks for what rows like these do not hold: a propensity below 0.01. Or if a
        few rows have most of the weight.
    TrainingRowsWarning
        If rows look like those that the policy was trained on.

    See Also
    --------
    total_costs : Total cost where everything was recorded.

    Notes
    -----
    Formulas and assumptions are on the page about theory. Standard errors are of influence values
    and take propensities as known; where they are estimated the weighted interval is too wide. A
    direct estimate has none: its error is that of the models.

    Examples
    --------
    The BMI is recorded mostly where glucose is high:

    >>> import numpy as np
    >>> from adacos import BranchingClassifier, Costs, load_pima
    >>> from adacos.metrics import off_policy_cost
    >>> X, y, prices, *_ = load_pima()
    >>> policy = BranchingClassifier(Costs(prices, false_positive=100, false_negative=400))
    >>> policy = policy.fit(X[:400], y[:400])
    >>> records, draw = X[400:].copy(), np.random.default_rng(0).random(len(X) - 400)
    >>> records.loc[draw > np.where(records["Glucose"] > 120, 0.9, 0.3), "BMI"] = np.nan
    >>> off_policy_cost(policy, records, y[400:]).method
    'doubly_robust'
    """
    choice("method", method, METHODS)
    real("confidence", confidence, above=0, below=1)
    integer("random_state", random_state, at_least=0)
    chosen = policy.chosen
    _check_costs(policy, chosen)
    encoded, true, number, _ = held_out_rows(policy, X, y, groups, "the estimate is")
    names, source = chosen.encoder_.names, chosen.encoder_.source
    recorded = ~np.isnan(encoded[:, chosen.encoder_.first])
    positions = _order(order, recorded, names)
    stages = walk_recorded(chosen.decider_, encoded, true, recorded)
    if propensities is None:
        asked = np.any([stage.asks.any(axis=0) for stage in stages], axis=0)
        wanted = asked | prerequisites(recorded, positions)[asked].any(axis=0)
        e = estimated_propensities(encoded, true, recorded, positions, source, wanted)
    else:
        e = _checked(propensities, recorded, names)
    along = weights_along(stages, recorded, e, positions, LEAST_PROPENSITY)
    total, weight, followed = _stopped(stages, along.weights, len(true))
    if not weight.any():
        _refuse(stages, recorded, names)
    effective = float(weight.sum() ** 2 / (weight**2).sum())
    lost = _lost(along, names)
    _warn(along, lost, method, effective, int(followed.sum()))
    if method == "weighted":
        mean = float(np.average(total, weights=weight))
        values = mean + weight * (total - mean) / weight.mean()
    else:
        expected = expected_along(stages, encoded, true, recorded, source, number, random_state)
        values = expected[0].copy()
        if method == "doubly_robust":
            values += _corrections(stages, along.weights, expected, len(true))
    known = method != "direct"
    interval = row_interval(values, number, confidence=confidence)
    return OffPolicyCost(
        estimate=float(values.mean()),
        standard_error=standard_error(values, number) if known else None,
        interval=(interval.low, interval.high) if known else None,
        method=method,
        rows=len(true),
        followed_rows=int(followed.sum()),
        followed_cost=float(total[followed].mean()),
        effective_rows=effective,
        unsupported_share=float(along.unsupported.mean()),
        unsupported=lost,
        order=tuple(names[k] for k in positions.tolist()),
    )


def _check_costs(*policies: BasePolicy) -> None:
    """Refuse a policy that knows no cost of a missed case."""
    if any(policy.false_negative_cost_ is not None for policy in policies):
        raise InvalidInputError(
            "policy",
            "must have a cost for each error, for a total cost",
            "a target recall in place of the false-negative cost",
            "Fit with Costs(..., false_positive=..., false_negative=...).",
        )


def _lost(along: Followed, names: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """Covariates that are asked for without support, with the share of the rows."""
    share = along.blame / len(along.unsupported)
    return tuple((names[k], float(share[k])) for k in np.argsort(-share) if share[k] > 0)


class _Stopped(NamedTuple):
    """Total cost and weight of each row, 0 where it could not be followed; mask of the others."""

    total: Floats
    weight: Floats
    stopped: Bools


def _stopped(stages: tuple[Stage, ...], weights: tuple[Floats, ...], n_rows: int) -> _Stopped:
    """What became of each row at the end of its walk."""
    total, weight = np.zeros(n_rows), np.zeros(n_rows)
    stopped = np.zeros(n_rows, dtype=np.bool_)
    for stage, at_stage in zip(stages, weights, strict=True):
        rows = stage.rows[stage.stops]
        total[rows], weight[rows] = stage.cost[stage.stops], at_stage[stage.stops]
        stopped[rows] = True
    return _Stopped(total, weight, stopped)


def _corrections(
    stages: tuple[Stage, ...],
    weights: tuple[Floats, ...],
    expected: tuple[Floats, ...],
    n_rows: int,
) -> Floats:
    """Weighted sum of what each answer changed in what was expected, by row."""
    found, before = np.zeros(n_rows), np.zeros(n_rows)
    for t, stage in enumerate(stages):
        if t:
            found[stage.rows] += weights[t] * (expected[t] - before[stage.rows])
        before[stage.rows] = expected[t]
    return found


def _order(order: Sequence[str] | None, recorded: Bools, names: tuple[str, ...]) -> Ints:
    """Positions of the covariates in the order in which they were recorded."""
    if order is None:
        return np.argsort(-recorded.sum(axis=0), kind="stable")
    given = [order] if isinstance(order, str) else list(order)
    strange = [str(name) for name in given if name not in names]
    if strange or len(set(given)) < len(given):
        raise InvalidInputError(
            "order", "must name covariates, each once", given, choices(strange, names, "There are ")
        )
    always = always_recorded(recorded)
    left = [k for k, name in enumerate(names) if name not in given]
    missing = [names[k] for k in left if not always[k]]
    if missing:
        raise InvalidInputError(
            "order",
            "must name every covariate that is not recorded in all rows",
            given,
            f"Add {listed(missing)}.",
        )
    return np.array(left + [names.index(name) for name in given], dtype=np.intp)


def _checked(propensities: Any, recorded: Bools, names: tuple[str, ...]) -> Floats:
    """Propensities as given, if they can be such of these rows."""
    columns = [str(name) for name in getattr(propensities, "columns", names)]
    try:
        e = np.array(propensities, dtype=np.float64)
    except (TypeError, ValueError):
        e = np.empty(0)
    if e.shape != recorded.shape or columns != list(names) or not ((e >= 0) & (e <= 1)).all():
        raise InvalidInputError(
            "propensities",
            f"must hold a probability for each row and covariate, {recorded.shape}",
            f"{e.shape}" if e.shape != recorded.shape else "other columns, or no probabilities",
            f"The columns are those of {listed(names)}; 1 for what is always recorded.",
        )
    if (recorded & (e == 0)).any():
        row, k = np.argwhere(recorded & (e == 0))[0].tolist()
        raise InvalidInputError(
            "propensities",
            "must be above 0 for what was recorded",
            f"0 for {names[k]} in row {row}, which is recorded",
            "Pass the probabilities by which these rows were collected.",
        )
    return e


def _refuse(stages: tuple[Stage, ...], recorded: Bools, names: tuple[str, ...]) -> None:
    """Say that nothing can be said, and for want of which covariates."""
    n_missing = np.zeros(len(names), dtype=np.intp)
    for stage in stages:
        n_missing += (stage.asks & ~recorded[stage.rows]).sum(axis=0)
    worst = [names[k] for k in np.argsort(-n_missing)[:_NAMED] if n_missing[k]]
    raise InvalidInputError(
        "X",
        "must hold, in some rows with support, everything that the policy asks for",
        f"{len(recorded):,} rows, none of which does",
        f"Most often missing: {listed(worst)}. Record these in a random share of the rows. What "
        "the policy would cost cannot be known from these rows."
        if worst
        else "Their propensities are all below 0.01. What the policy would cost cannot be known.",
    )


def _warn(
    along: Followed,
    lost: tuple[tuple[str, float], ...],
    method: str,
    effective: float,
    followed: int,
) -> None:
    """Warn that the policy asks for what such rows do not hold, or that few rows decide."""
    share = float(along.unsupported.mean())
    if share >= _UNSUPPORTED:
        what = listed(f"{name} ({part:.1%} of the rows)" for name, part in lost[:_NAMED])
        there = (
            "The estimate describes the other rows only."
            if method == "weighted"
            else "What it would cost there is extrapolated, and the interval leaves that out."
        )
        warnings.warn(
            f"For {share:.1%} of the rows or more the policy asks for what rows like these do not "
            f"hold (propensity below {LEAST_PROPENSITY:g}): {what}. {there} Record these "
            "covariates in a random share of such rows, or pass propensities if they are known.",
            TableWarning,
            stacklevel=level_of_caller(),
        )
    if effective < _FEW_EFFECTIVE * followed:
        warnings.warn(
            f"A few of the {followed:,} rows that could be followed have most of the weight: "
            f"together they are as good as {effective:,.0f}. If one policy without chance "
            "collected the rows, pass propensities=X.notna(). Otherwise more rows are needed.",
            TableWarning,
            stacklevel=level_of_caller(),
        )

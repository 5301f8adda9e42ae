"""`compare`: policies and protocols side by side on the same rows, with paired intervals.

Each row has the cost of the first policy and that of another; their difference has a much smaller
error than either mean, because rows that are expensive for one are so for the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from adacos.document.blocks import Grid, fragment
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError, TrainingRowsWarning
from adacos.kernels.groups import standard_error
from adacos.kernels.intervals import ConfidenceInterval, row_interval
from adacos.policies.base import BasePolicy
from adacos.policies.estimates import charged
from adacos.policies.protocol import ProtocolClassifier
from adacos.protocols import DecisionProtocol
from adacos.tables.row_digests import trained_among
from adacos.tables.weights import group_numbers
from adacos.typing import Bools, Floats, Ints
from adacos.validation import level_of_caller, real

MEASURES = ("total", "covariates", "errors", "asked", "right", "recall")
_TITLES = ("total cost", "covariate costs", "cost of errors", "covariates asked", "right", "recall")


@dataclass(frozen=True)
class Measured:
    """One measure of a policy: a mean over rows.

    Parameters
    ----------
    mean, error : float
        The mean and its standard error.
    more : ConfidenceInterval
        By how much it is more than that of the first policy, row by row.
    """

    mean: float
    error: float
    more: ConfidenceInterval


@dataclass(frozen=True)
class PolicyMeasures:
    """What one policy did with the rows.

    Parameters
    ----------
    name : str
        Its name.
    total, covariates, errors : Measured
        Total cost, what was paid for covariates, and what the answers cost.
    asked : Measured
        Number of covariates acquired.
    right : Measured or None
        Share of right answers; None where decisions take the place of classes.
    recall : Measured or None
        Share of positive rows answered positive, or decided about as `Costs(protects=...)` says;
        None with three or more classes, or with fewer than two positive rows.
    """

    name: str
    total: Measured
    covariates: Measured
    errors: Measured
    asked: Measured
    right: Measured | None
    recall: Measured | None


@dataclass(frozen=True)
class Comparison:
    """Policies on the same rows, the first of which the others are compared with.

    Parameters
    ----------
    policies : tuple of PolicyMeasures
        In the order in which they were given.
    rows : int
        How many rows there are.
    confidence : float
        Of the intervals.
    """

    policies: tuple[PolicyMeasures, ...]
    rows: int
    confidence: float

    def __str__(self) -> str:
        grid = self.grid()
        width = [max(map(len, column)) for column in zip(grid.header, *grid.rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{w}}" for cell, w in zip(row, width, strict=True)).rstrip()
            for row in (grid.header, *grid.rows)
        ]
        return "\n".join([*lines, *(self.describe(one) for one in self.policies[1:]), grid.caption])

    def _repr_html_(self) -> str:
        return fragment([self.grid()])

    def grid(self) -> Grid:
        """Give the means as a table, an interval of the difference next to each."""
        rows = []
        for number, one in enumerate(self.policies):
            cells = [one.name]
            for measure in MEASURES:
                own: Measured | None = getattr(one, measure)
                percent = measure in ("right", "recall")
                cells.append("–" if own is None else _shown(own, percent, number > 0))
            rows.append(tuple(cells))
        caption = (
            f"Means over {self.rows:,} rows; in brackets the {self.confidence:.0%} interval of the "
            f"difference to {self.policies[0].name}, row by row."
        )
        return Grid(("", *_TITLES), tuple(rows), caption)

    def describe(self, one: PolicyMeasures) -> str:
        """Say in one sentence how much more or less a policy costs than the first."""
        first, more = self.policies[0].name, one.total.more
        if not more.excludes(0.0):
            return (
                f"{one.name} and {first} are not shown to differ in total cost: between "
                f"{-more.low:.2f} less and {more.high:.2f} more a row."
                if more.low < 0 < more.high
                else f"{one.name} and {first} cost the same."
            )
        low, high = sorted((abs(more.low), abs(more.high)))
        word = "more" if more.estimate > 0 else "less"
        return (
            f"{one.name} costs {abs(more.estimate):.2f} {word} a row than {first} "
            f"({low:.2f} to {high:.2f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as plain JSON values."""
        return asdict(self)


class Judged(NamedTuple):
    """What a policy did with the rows: labels are 0, 1, …."""

    name: str
    result: AcquisitionResult
    label: Ints


def compare(
    policies: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compare policies and protocols on the same rows, with paired intervals.

    Parameters
    ----------
    policies : mapping of str to policy or DecisionProtocol
        Two or more by name, the first a fitted policy: the others are compared with it. A protocol
        has its columns, classes and covariate costs.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that none of them was fitted on.
    y : array-like of shape (n_rows,)
        Their classes.
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together. Intervals are then
        those of independent groups.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    Comparison
        Costs, recall and burden of each, and differences to the first; print it to see them.

    Warns
    -----
    TrainingRowsWarning
        If rows look like those that a policy was trained on.

    Notes
    -----
    Each policy pays covariates by its own costs. All answers are charged by the error costs of the
    first one; with a target recall in the place of a false-negative cost, by those of false alarms.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, DecisionProtocol, compare, load_pima
    >>> X, y, prices, *_ = load_pima(zeros="missing")
    >>> costs = Costs(prices, false_positive=500, false_negative=500)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> today = DecisionProtocol("if Glucose > 140: positive\\nunavailable: positive\\nnegative")
    >>> comparison = compare({"AdaCOS": policy, "today": today}, X[1::2], y[1::2])
    >>> comparison.policies[1].asked.mean < comparison.policies[0].asked.mean
    True
    """
    confidence = real("confidence", confidence, above=0, below=1)
    if not isinstance(policies, Mapping) or len(policies) < 2:
        raise InvalidInputError(
            "policies",
            "must be two or more by name",
            type(policies).__name__ if not isinstance(policies, Mapping) else len(policies),
            'For example {"AdaCOS": policy, "today": DecisionProtocol(text)}.',
        )
    (_, first), *_ = policies.items()
    if not isinstance(first, BasePolicy):
        raise InvalidInputError(
            "policies", "the first must be a fitted policy", type(first).__name__, ""
        )
    check_is_fitted(first)
    true = class_numbers(first, y)
    judged = [judge(name, as_policy(name, own, first, X, y), X) for name, own in policies.items()]
    return compared(judged, true, charged(first), finding(first), groups, confidence)


def as_policy(name: str, given: Any, first: BasePolicy, X: Any, y: Any) -> BasePolicy:
    """A policy that can be compared with the first: itself, or a protocol with its columns."""
    if isinstance(given, DecisionProtocol | str):
        policy: BasePolicy = ProtocolClassifier(protocol=given).from_model(first, X, y)
        return policy
    if not isinstance(given, BasePolicy):
        rule = f"{name}: must be a policy or a DecisionProtocol"
        raise InvalidInputError("policies", rule, type(given).__name__, "")
    check_is_fitted(given)
    for own, others, what in (
        (given.classes_, first.classes_, "classes"),
        (given.decisions_, first.decisions_, "decisions"),
    ):
        if not np.array_equal(own, others):
            rule = f"{name}: must have the {what} of the first, {others.tolist()}"
            raise InvalidInputError(
                "policies", rule, own.tolist(), f"Fit both with the same {what}."
            )
    return given


def finding(policy: BasePolicy) -> Bools | None:
    """Mask of the labels that find a positive row; None with three or more classes.

    With decisions in the costs those that protect the second class; None if nobody says which.
    """
    named = policy.cost_table_.decisions
    if policy.cost_table_.matrix.shape[0] > 2:
        return None
    if named is None:
        return np.array([False, True])
    protects = {} if policy.costs is None else policy.costs.protects
    own = protects.get(policy.classes_.tolist()[1])
    return None if own is None else np.isin(named, own)


def class_numbers(policy: BasePolicy, y: ArrayLike) -> Ints:
    """Numbers of classes, each of which the policy must know."""
    labels = np.asarray(y).ravel()
    strange = np.setdiff1d(labels, policy.classes_)
    if len(strange):
        raise InvalidInputError(
            "y",
            f"must hold one of the classes {policy.classes_.tolist()} for each row",
            strange.tolist()[:5],
            "Pass the classes of these rows.",
        )
    return np.searchsorted(policy.classes_, labels)


def judge(name: str, policy: BasePolicy, X: Any) -> Judged:
    """What a policy does with rows; a warning if it was trained on some."""
    encoded = policy._encode(X)
    trained = max(trained_among(one.training_rows_, encoded) for one in (policy, policy.chosen))
    if trained:
        warnings.warn(
            f"{trained:,} of {len(encoded):,} rows are rows that {name} was trained on: on these "
            "it errs less than on new rows, so the comparison favours it. Use other rows.",
            TrainingRowsWarning,
            stacklevel=level_of_caller(),
        )
    result = policy.acquire(X)
    return Judged(name, result, policy.numbers_of(result.label))


def compared(
    judged: Sequence[Judged],
    true: Ints,
    matrix: Floats,
    finds: Bools | None,
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """The comparison of what policies did with rows of these classes.

    `finds` is a mask of the labels that find a positive row, see `finding`.
    """
    lengths = {len(true), *(len(one.label) for one in judged)}
    if len(lengths) > 1 or len(true) < 2:
        rule = "must have as many classes as there are rows, two at least"
        raise InvalidInputError("y", rule, sorted(lengths), "Pass the class of each row.")
    number = None if groups is None else group_numbers(groups, len(true))
    every = [_values(one, true, matrix, finds) for one in judged]
    positive = np.zeros(len(true), dtype=np.bool_) if finds is None else true == 1
    square = matrix.shape[0] == matrix.shape[1]
    found = []
    for one, own in zip(judged, every, strict=True):
        measured = {
            name: _measured(own[name], every[0][name], number, confidence) for name in MEASURES[:-2]
        }
        recall = right = None
        if square:
            right = _measured(own["right"], every[0]["right"], number, confidence)
        enough = int(positive.sum()) if number is None else len(np.unique(number[positive]))
        if enough > 1:
            within = None if number is None else number[positive]
            parts = own["answered_positive"][positive], every[0]["answered_positive"][positive]
            recall = _measured(*parts, within, confidence)
        found.append(PolicyMeasures(one.name, **measured, right=right, recall=recall))
    return Comparison(tuple(found), len(true), confidence)


def _values(one: Judged, true: Ints, matrix: Floats, finds: Bools | None) -> dict[str, Floats]:
    """Every measure of each row."""
    errors: Floats = matrix[true, one.label]
    found = np.zeros(len(true)) if finds is None else finds[one.label].astype(np.float64)
    right: Bools = one.label == true
    return {
        "total": one.result.cost + errors,
        "covariates": one.result.cost,
        "errors": errors,
        "asked": one.result.acquired.sum(axis=1).astype(np.float64),
        "right": right.astype(np.float64),
        "answered_positive": found,
    }


def _measured(own: Floats, first: Floats, groups: Ints | None, confidence: float) -> Measured:
    more = row_interval(own - first, groups, confidence=confidence)
    return Measured(float(own.mean()), standard_error(own, groups), more)


def _shown(own: Measured, percent: bool, differs: bool) -> str:
    """A mean, and the interval of its difference to the first."""
    many = ".1%" if percent else ",.2f"
    if not differs:
        return f"{own.mean:{many}}"
    factor = 100 if percent else 1
    low, high = factor * own.more.low, factor * own.more.high
    digits = ".1f" if percent else ",.2f"
    return f"{own.mean:{many}} ({low:+{digits}} to {high:+{digits}})"

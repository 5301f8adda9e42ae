"""`audit`: who is asked more, and who is missed? What a policy does to groups of rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.engine import AcquisitionResult
from adacos.exceptions import TableWarning
from adacos.kernels.binomial import lower_bound, trials_needed
from adacos.kernels.groups import one_of_each
from adacos.kernels.simultaneous import (
    from_whole,
    mean_of,
    mean_of_known,
    on_both_sides,
    share_of,
    sum_of,
    wider,
)
from adacos.kernels.threads import one_blas_thread
from adacos.metrics.evaluation import held_out_rows
from adacos.policies.audit_groups import labelled_groups
from adacos.policies.audited import Audit, AuditedGroup, GroupCertificate, Grouping, GroupMeasure
from adacos.policies.base import BasePolicy
from adacos.policies.certificate import ClassRecallCertificate
from adacos.policies.comparing import finding
from adacos.policies.estimates import charged
from adacos.policies.fitted import fitted_policy
from adacos.policies.many_classes import resolved_target_recall
from adacos.policies.recall import Targets, protecting_of, recall_target, targets_of
from adacos.typing import Bools, Floats, Ints
from adacos.validation import level_of_caller, listed, real

# Groups with fewer rows than the first number are named in a warning, at most the second.
FEW_ROWS, _MOST_NAMED = 30, 8
# Up to this number of different amounts the mean has the interval of a sum of shares as well.
_FEW_AMOUNTS = 6
# Intervals count as many times: of the group, and of its difference from all rows.
_OF_EACH = 2


class _Values(NamedTuple):
    """One measure of each row.

    `counted` are the rows it is a mean over. It lies between `least` and `most`. It takes the
    values `possible`, if these are few: no others at all if that is `exact`. `parts` are two
    measures of which it is the sum.
    """

    values: NDArray[Any]
    counted: Bools
    least: float = 0.0
    most: float = 1.0
    possible: tuple[float, ...] = ()
    exact: bool = False
    parts: tuple[str, str] | None = None

    @property
    def is_share(self) -> bool:
        return self.values.dtype == np.bool_

    def distance(self, value: float) -> float:
        """How far a value is from the mean of all rows."""
        return float(abs(self.values.mean() - value))


class _Promise(NamedTuple):
    """Recalls that were promised: which classes and labels, and the confidence of all bounds."""

    targets: Targets
    finds: Bools
    confidence: float


@one_blas_thread
def audit(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    by: Any,
    *,
    cross: bool = False,
    recall: float | Mapping[Any, float] | None = None,
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Audit:
    """Compare what a policy asks, costs and misses between groups of rows.

    Parameters
    ----------
    policy : policy
        A fitted policy.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that it was not fitted on.
    y : array-like of shape (n_rows,)
        Their classes.
    by : mapping of str to array, data frame, array or list of str
        The columns whose values are the groups, such as sex. They need not be covariates. A text or
        a list of texts names columns of X.
    cross : bool, default=False
        Whether groups are those of all columns together, such as older women, in place of those of
        each column.
    recall : float or mapping of class to float, default=None
        The recall that is to be shown in each group. None takes what the policy was certified for,
        else its target recall, if it has one.
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together. Intervals are then
        those of independent groups, and a certificate counts one row of each.
    confidence : float, default=0.95
        With which all intervals hold together. Bounds of certificates share the confidence of the
        policy's own certificate, else this one.

    Returns
    -------
    Audit
        Costs, recall, specificity and burden of each group; print it to see them.

    Warns
    -----
    TrainingRowsWarning
        If rows look like those that the policy was trained on.
    TableWarning
        If groups have few rows, or a column has many numbers.

    Notes
    -----
    Intervals share the confidence by Bonferroni over groups, measures, values and differences.
    Shares have exact intervals, from which those of the cost of errors follow. Means of costs and
    counts have t intervals, and sums of exact ones where few different amounts occur.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, audit, load_heart
    >>> X, y, prices, *_ = load_heart()
    >>> costs = Costs(prices, false_positive=100, false_negative=300)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> found = audit(policy, X[1::2], y[1::2], by="sex")
    >>> sorted(found["sex"].by_group["recall"])
    ['0', '1']
    """
    confidence = real("confidence", confidence, above=0, below=1)
    fitted_policy(policy)
    if recall is not None:
        recall_target("recall", recall)
    held = held_out_rows(policy, X, y, groups, "the audit is")
    columns = labelled_groups(by, X, len(held.true), cross)
    chosen = policy.chosen
    result = policy.acquire(X)
    label = chosen.numbers_of(result.label)
    measures = _measures(chosen, result, held.true, label)
    promise = _promise(policy, recall, confidence)
    n_groups = sum(len(column.names) for column in columns)
    n_intervals = (_OF_EACH * n_groups + 1) * len(measures)
    # A stop at which no row stops is counted, since rows decide which these are, but not shown.
    measures = {name: own for name, own in measures.items() if not _is_unused_stop(name, own)}
    each = 1 - (1 - confidence) / n_intervals
    whole = {name: _level(name, measures, None, held.groups, each) for name in measures}

    def audited(name: str, inside: Bools) -> AuditedGroup:
        own = {one: _of_group(one, measures, inside, held.groups, each) for one in measures}
        proved = _certificates(promise, chosen, held, label, inside, n_groups, each)
        return AuditedGroup(name, int(inside.sum()), own, proved)

    groupings = tuple(
        Grouping(
            column.name,
            tuple(audited(name, column.number == k) for k, name in enumerate(column.names)),
            whole,
        )
        for column in columns
    )
    return Audit(
        groupings,
        len(held.true),
        confidence,
        n_intervals,
        None if promise is None else promise.confidence,
        held.trained,
        (*_few(groupings), *_method(n_intervals, confidence, held.groups is not None)),
    )


def _measures(
    policy: BasePolicy, result: AcquisitionResult, true: Ints, label: Ints
) -> dict[str, _Values]:
    """Every measure of each row, by name."""
    costs, matrix = policy.cost_table_, charged(policy)
    everyone = np.ones(len(true), dtype=np.bool_)
    errors: Floats = matrix[true, label]
    asked = result.acquired.sum(axis=1)
    possible = tuple(np.unique(matrix).tolist())
    price = float(costs.covariates.sum())
    waiting = costs.round_cost * len(costs.names)
    largest = max(price + waiting, float(result.cost.max()))
    found = {
        "total": _Values(
            result.cost + errors, everyone, parts=("covariates", "errors"),
            least=possible[0], most=largest + possible[-1],
        ),
        "covariates": _amounts(result.cost, largest),
        "errors": _Values(errors, everyone, possible=possible, exact=True),
    }  # fmt: skip
    if costs.round_cost > 0:
        paid = costs.of_order(result.order)
        found["paid"] = _amounts(paid, largest)
        found["waits"] = _amounts(result.cost - paid, largest)
    found["acquired"] = _amounts(asked.astype(np.float64), len(costs.names))
    for name, (k, finds) in _found_by(policy).items():
        found[name] = _Values(finds[label], true == k)
    labels = policy.decisions_.tolist()
    if len(policy.classes_) == 2 and costs.decisions is None:
        found["positive"] = _Values(label == 1, everyone)
    else:
        found |= {f"answered {one}": _Values(label == k, everyone) for k, one in enumerate(labels)}
    return found | {
        name: _Values((asked >= low) & (asked <= high), everyone)
        for name, low, high in _stops(len(costs.names))
    }


def _amounts(values: Floats, most: float) -> _Values:
    """What rows pay or acquire, with the amounts that occur if they are few."""
    occurring = np.unique(values)
    few = tuple(occurring.tolist()) if 1 < len(occurring) <= _FEW_AMOUNTS else ()
    return _Values(values, np.ones(len(values), dtype=np.bool_), most=most, possible=few)


def _found_by(policy: BasePolicy) -> dict[str, tuple[int, Bools]]:
    """Shares of a class that count as found: the class, and the mask of the labels that find it."""
    if len(policy.classes_) == 2:
        finds = finding(policy)
        return {} if finds is None else {"recall": (1, finds), "specificity": (0, ~finds)}
    protects = protecting_of(policy)
    finding_each = np.eye(len(policy.classes_), dtype=np.bool_) if protects is None else protects
    return {
        f"recall {one}": (k, finding_each[k])
        for k, one in enumerate(policy.classes_.tolist())
        if finding_each[k].any()
    }


def _stops(most: int) -> list[tuple[str, int, int]]:
    """Where rows stop, by covariates acquired: 0, 1, 2, 3 to 4, 5 to 8 and so on."""
    stops, low, high = [("stop_0", 0, 0)], 1, 1
    while low <= most:
        last = min(high, most)
        stops.append((f"stop_{low}" if low == last else f"stop_{low}_{last}", low, last))
        low, high = high + 1, 2 * high
    return stops


def _is_unused_stop(name: str, own: _Values) -> bool:
    return name.startswith("stop_") and not own.values.any()


def _level(
    name: str,
    measures: dict[str, _Values],
    inside: Bools | None,
    groups: Ints | None,
    confidence: float,
) -> GroupMeasure:
    """A measure of some rows, or of all, with its interval."""
    own = measures[name]
    rows = np.flatnonzero(own.counted if inside is None else own.counted & inside)
    number = None if groups is None else groups[rows]
    values, ends = own.values[rows], (own.least, own.most)
    if own.is_share:
        level = share_of(values, number, confidence)
    elif own.exact:
        level = mean_of_known(values, number, confidence, own.possible, own.possible[0])
    else:
        level = mean_of(values, number, confidence, *ends)
        if own.possible:
            base = min(own.possible[0], own.possible[-1], key=own.distance)
            level = wider(level, mean_of_known(values, number, confidence, own.possible, base))
    if own.parts is not None:
        first, second = (_level(k, measures, inside, groups, confidence) for k in own.parts)
        level = sum_of(first.level, second.level, level)
    return GroupMeasure(len(rows), level)


def _of_group(
    name: str, measures: dict[str, _Values], inside: Bools, groups: Ints | None, confidence: float
) -> GroupMeasure:
    """A measure of a group, and by how much it is more than that of all rows."""
    own = _level(name, measures, inside, groups, confidence)
    counted = measures[name].counted
    dependent = on_both_sides(groups, inside)
    # Ends that are subtracted may each be wrong.
    sure = 1 - (1 - confidence) / 2 if dependent else confidence
    part, rest = (_level(name, measures, side, groups, sure).level for side in (inside, ~inside))
    share = own.rows / counted.sum() if counted.any() else 0.0
    return replace(own, difference=from_whole(part, rest, share, dependent))


def _promise(policy: BasePolicy, recall: Any, confidence: float) -> _Promise | None:
    """The recalls that are to be shown in each group; None if there are none."""
    certificate = policy.certificate_
    if certificate is not None:
        confidence = certificate.confidence
    wanted = recall
    if isinstance(certificate, ClassRecallCertificate):
        wanted = recall or dict(zip(certificate.classes, certificate.bounds, strict=True))
    elif wanted is None:
        known = certificate is not None
        wanted = certificate.bound if known else resolved_target_recall(policy)
    if wanted is None:
        return None
    chosen = policy.chosen
    targets = targets_of(wanted, chosen.classes_, protecting_of(chosen))
    return _Promise(targets, targets.found(len(chosen.classes_)), confidence)


def _certificates(
    promise: _Promise | None,
    policy: BasePolicy,
    held: Any,
    label: Ints,
    inside: Bools,
    n_groups: int,
    each: float,
) -> tuple[GroupCertificate, ...]:
    """What the rows of a group prove of each promised recall."""
    if promise is None:
        return ()
    targets, found = promise.targets, []
    # Bounds of groups and classes hold together.
    sure = 1 - (1 - promise.confidence) / (n_groups * len(targets.classes))
    names = targets.names(policy.classes_)
    for k, recall, name in zip(targets.classes, targets.recalls.tolist(), names, strict=True):
        rows = np.flatnonzero(inside & (held.true == k))
        proving = one_of_each(rows, None if held.groups is None else held.groups, 0)
        hits = promise.finds[k][label]
        n, misses = len(proving), int((~hits[proving]).sum())
        bound = float(lower_bound(n - misses, n, sure)) if n else 0.0
        needed = trials_needed(recall, sure)
        number = None if held.groups is None else held.groups[rows]
        most = share_of(hits[rows], number, each).high
        verdict = "shown" if bound >= recall else "too few" if n < needed else "not shown"
        verdict = "missed" if most < recall else verdict
        found.append(GroupCertificate(name, recall, bound, n, misses, needed, verdict))
    return tuple(found)


def _few(groupings: tuple[Grouping, ...]) -> list[str]:
    """A warning, and a note, about groups of few rows."""
    few = [
        f"{grouping.name} {group.name} ({group.rows})"
        for grouping in groupings
        for group in grouping.groups
        if group.rows < FEW_ROWS
    ]
    if not few:
        return []
    more = f" and {len(few) - _MOST_NAMED} more" if len(few) > _MOST_NAMED else ""
    note = (
        f"Groups of fewer than {FEW_ROWS} rows: {listed(few[:_MOST_NAMED])}{more}. "
        "Hardly anything can be shown of them: join small groups, or gather more rows."
    )
    warnings.warn(note, TableWarning, stacklevel=level_of_caller())
    return [note]


def _method(n_intervals: int, confidence: float, grouped: bool) -> list[str]:
    """How the intervals were made."""
    rows = "groups of dependent rows" if grouped else "rows"
    return [
        "* The difference is shown: its interval leaves out zero. All "
        f"{n_intervals} intervals hold together with {confidence:.0%} confidence (Bonferroni over "
        f"groups, measures, values and differences), for independent {rows}.",
        "Shares have exact binomial intervals; those of the cost of errors follow from these. "
        "Other costs and counts have t intervals. Differences between shares are in percentage "
        "points.",
    ]

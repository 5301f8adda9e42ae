"""What a policy costs on unseen rows, by nested cross-validation, and where beliefs misfit.

`expected_cost_by_set_` judges each set of a sequence by models without the row, but the order of
the sets was found with every label, and the least of several noisy costs is below its true value.
`nested_cost` repeats everything in each fold: order, models, densities, threshold, stopping.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import clone

from adacos.costs import Costs, total_of
from adacos.engine import AcquisitionResult
from adacos.kernels.binomial import interval
from adacos.kernels.folds import stratified_folds
from adacos.kernels.groups import standard_error
from adacos.metrics import operation_costs, total_costs
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import fit_in_groups, inner_fits
from adacos.tables.encoder import (
    TableEncoder,
    covariate_names,
    table_rows,
    validate_table,
)
from adacos.tables.labels import check_labels, check_one_label_each
from adacos.tables.weights import check_weights, groups_of
from adacos.typing import Floats, Ints
from adacos.validation import integer, real


@dataclass(frozen=True)
class NestedCost:
    """What a policy costs on rows that its fold's fit has not seen.

    Attributes
    ----------
    mean : float
        Mean realised cost of a row: what was paid plus what the answer cost. Where a target recall
        takes the place of the cost of a miss, that is not known and not counted.
    error : float
        Standard error of the mean over the rows, or over their groups.
    realised : ndarray of shape (n_rows,)
        Realised cost of each row.
    expected : ndarray of shape (n_rows,)
        What the policy itself expected when it stopped.
    of_class : ndarray of shape (n_rows, n_classes)
        What the row would have cost as a row of each class; `realised` is one of them.
    result : AcquisitionResult
        What it did with each row.
    fold : ndarray of int of shape (n_rows,)
        Fold in which each row was held out.
    """

    mean: float
    error: float
    realised: Floats
    expected: Floats
    of_class: Floats
    result: AcquisitionResult
    fold: Ints

    def __str__(self) -> str:
        return (
            f"Cross-validated cost {self.mean:.4g} per row, standard error {self.error:.2g} "
            f"({len(self.realised)} rows in {len(np.unique(self.fold))} folds; everything is "
            "chosen from scratch without the fold)."
        )


def nested_cost(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    *,
    folds: int = 5,
    random_state: int = 0,
    groups: Any = None,
    sample_weight: Any = None,
) -> NestedCost:
    """Nested estimate of what a policy costs on new rows.

    The policy is fitted from scratch without each fold, with everything that it chooses, and runs
    on the fold's rows: this takes `folds` times as long as `fit`. Models of fewer rows are a little
    worse, so that the estimate is slightly pessimistic.

    Parameters
    ----------
    policy : policy
        Any policy, fitted or not; it is not changed.
    X, y : table and array
        Rows and their classes, as for `fit`.
    folds : int, default=5
        Number of folds, dealt within each class.
    random_state : int, default=0
        Seed of the folds.
    groups : array-like of shape (n_rows,), default=None
        The patient, site or other group of each row: rows of a group are in one fold. Without it,
        rows that look like copies of each other are.
    sample_weight : array-like of shape (n_rows,), default=None
        How often each row counts, in every fit and in the mean; positive. The policy must take it.

    Returns
    -------
    NestedCost
        Mean, standard error, and the rows behind them.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima
    >>> from adacos.policies.nested import nested_cost
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> print(nested_cost(AdaCOSClassifier(costs), X, y))
    Cross-validated cost ...
    """
    integer("folds", folds, at_least=2)
    integer("random_state", random_state, at_least=0)
    reader = clone(policy)
    table = validate_table(reader, X, reset=True)
    _, labels = check_labels(y, many=policy.takes_many_classes)
    check_one_label_each(table, labels)
    encoded = TableEncoder.fit(table, covariate_names(reader)).transform(table)
    found = groups_of(groups, encoded, labels)
    fold = stratified_folds(encoded, labels, folds, random_state, found)
    weight = None if sample_weight is None else check_weights(sample_weight, labels)
    classes = np.asarray(y).ravel()
    costs = policy.costs or Costs()
    no_recall = policy.recall_aim.target_recall is None
    counted = total_costs if no_recall or costs.false_negative_given else operation_costs
    of_class, parts, members = [], [], []
    for number in range(int(fold.max()) + 1):
        inside, outside = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        learned = table_rows(table, outside), classes[outside]
        with inner_fits():
            of_part = None if found is None else found[outside]
            weighed = None if weight is None else weight[outside]
            fitted = fit_in_groups(clone(policy), *learned, of_part, weighed)
            result = fitted.acquire(table_rows(table, inside))
        if len(fitted.classes_) > 2 or costs.decisions is not None:
            of_class.append(_as_each_class(fitted, result))
        else:
            # As numbers: where all rows are answered alike, text would not tell the classes.
            coded = replace(result, label=np.searchsorted(fitted.classes_, result.label))
            of_class.append([counted(coded, np.full(len(inside), c), costs) for c in (0, 1)])
        parts.append(result)
        members.append(inside)
    back = np.argsort(np.concatenate(members), kind="stable")
    either = np.concatenate(of_class, axis=1).T[back]
    total = either[np.arange(len(labels)), labels.astype(np.intp)]
    result = _joined(parts).rows(back)
    mean, error = float(np.average(total, weights=weight)), standard_error(total, found, weight)
    return NestedCost(mean, error, total, result.expected_cost, either, result, fold)


def _as_each_class(fitted: BasePolicy, result: AcquisitionResult) -> list[Floats]:
    """Total cost of rows as rows of each of three or more classes; not all need be among them."""
    label = fitted.numbers_of(result.label)
    matrix = fitted.cost_table_.matrix
    return [total_of(result.cost, np.asarray(k), label, matrix) for k in range(len(matrix))]


@dataclass(frozen=True)
class StateMisfit:
    """Expected against realised cost of the rows that stopped in one state.

    Attributes
    ----------
    acquired : tuple of str
        Covariates that these rows had acquired.
    label : object
        Answer that they were given.
    rows : int
        How many they are.
    expected, realised : float
        Mean cost by the policy's own belief at the stop, and as it turned out.
    low, high : float
        Interval of the mean difference realised - expected.
    """

    acquired: tuple[str, ...]
    label: Any
    rows: int
    expected: float
    realised: float
    low: float
    high: float

    @property
    def misfits(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def misfit_by_state(
    nested: NestedCost, *, least_rows: int = 20, confidence: float = 0.95
) -> list[StateMisfit]:
    """Where what a policy expects and what happens differ, by where rows stop and what they hear.

    Parameters
    ----------
    nested : NestedCost
        From `nested_cost`, with misclassification costs on both sides.
    least_rows : int, default=20
        States of fewer rows are not reported: nothing can be said of them.
    confidence : float, default=0.95
        Of all intervals together: each is the wider the more states there are. It is exact in the
        share of either class among the rows of the state, and so allows for errors that have not
        been seen yet.

    Returns
    -------
    list of StateMisfit
        States with most rows first.
    """
    real("confidence", confidence, above=0, below=1)
    result = nested.result
    _, answer = np.unique(result.label, return_inverse=True)
    keys = np.column_stack([result.acquired, answer])
    states, number = np.unique(keys, axis=0, return_inverse=True)
    groups = [np.flatnonzero(number.ravel() == i) for i in range(len(states))]
    groups = [rows for rows in groups if len(rows) >= least_rows]
    each = 1 - (1 - confidence) / max(len(groups), 1)
    found = []
    for rows in groups:
        low, high = _difference(nested, rows, each)
        names = np.array(result.names, dtype=object)[result.acquired[rows[0]]]
        found.append(
            StateMisfit(
                acquired=tuple(str(name) for name in names),
                label=result.label[rows[0]],
                rows=len(rows),
                expected=float(nested.expected[rows].mean()),
                realised=float(nested.realised[rows].mean()),
                low=low,
                high=high,
            )
        )
    return sorted(found, key=lambda state: -state.rows)


def _difference(nested: NestedCost, rows: Ints, confidence: float) -> tuple[float, float]:
    """Interval of realised - expected for rows of one state, by the share of the second class.

    With three or more classes by the normal distribution of the mean difference.
    """
    if nested.of_class.shape[1] > 2:
        differences = nested.realised[rows] - nested.expected[rows]
        wide = float(ndtri(0.5 + confidence / 2) * differences.std(ddof=1) / np.sqrt(len(rows)))
        return float(differences.mean() - wide), float(differences.mean() + wide)
    negative, positive = nested.of_class[rows].mean(axis=0)
    second = nested.realised[rows] == nested.of_class[rows, 1]
    bounds = np.array(interval(int(second.sum()), len(rows), confidence))
    ends = negative + (positive - negative) * bounds - nested.expected[rows].mean()
    return float(ends.min()), float(ends.max())


def _joined(parts: list[AcquisitionResult]) -> AcquisitionResult:
    names = [name for name in vars(parts[0]) if name != "names"]
    return AcquisitionResult(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
        names=parts[0].names,
    )

"""What a policy's answers cost, and how right they were.

Functions take an `AcquisitionResult`, the true labels and, where needed, the costs. `y` and the
result's labels are in the user's classes; the second class in order is the positive one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from adacos.costs import Costs, total_of
from adacos.exceptions import InvalidInputError, UnstatedCostWarning
from adacos.kernels.binomial import interval
from adacos.pipelines import policy_at_end
from adacos.typing import Floats
from adacos.validation import as_written, choices, listed

__all__ = [
    "false_discovery_rate",
    "false_discovery_rate_interval",
    "neg_total_cost_scorer",
    "operation_cost",
    "operation_costs",
    "recall",
    "recall_interval",
    "total_cost",
    "total_cost_scorer",
    "total_costs",
    "weighted_accuracy",
]

# Tables of rows of which a scorer remembers the costs.
_MOST_SCORED = 64


def total_costs(result: Any, y: ArrayLike, costs: Costs) -> Floats:
    """Total cost of each row: covariate cost paid plus C[true class, label].

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    costs : Costs
        The misclassification costs.

    Returns
    -------
    ndarray of shape (n_samples,)
        Total cost of each row.

    Raises
    ------
    InvalidInputError
        If one error has a cost and the other has none, as under a target recall.

    Warns
    -----
    UnstatedCostWarning
        If covariates have costs and neither error has one.

    See Also
    --------
    operation_costs : What can be said without the cost of a missed positive.

    Examples
    --------
    >>> from adacos import COSClassifier, Costs, load_pima
    >>> from adacos.metrics import total_costs
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = COSClassifier(costs, strengths="common").fit(X[:300], y[:300])
    >>> total_costs(policy.acquire(X[300:]), y[300:], costs).shape
    (468,)
    """
    _check_both_errors(costs)
    true, label = _as_numbers(result, y, n_classes=len(costs.matrix), decisions=costs.decisions)
    return total_of(result.cost, true, label, costs.matrix)


def total_cost(result: Any, y: ArrayLike, costs: Costs) -> float:
    """Mean total cost of a row: covariate cost paid plus cost of the answer.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    costs : Costs
        The misclassification costs.

    Returns
    -------
    float
        Mean of `total_costs`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from adacos import Costs
    >>> from adacos.metrics import total_cost
    >>> result = SimpleNamespace(label=np.array([0, 1, 1]), cost=np.array([1.0, 3.0, 2.0]))
    >>> total_cost(result, [0, 0, 1], Costs(false_positive=30, false_negative=300))
    12.0
    """
    return float(total_costs(result, y, costs).mean())


def operation_costs(result: Any, y: ArrayLike, costs: Costs) -> Floats:
    """Operation cost of each row: covariate cost paid, plus the cost of a false positive.

    It leaves out what a missed positive costs, which nobody states under a target recall.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    costs : Costs
        The misclassification costs, of which C[0, 1] is used.

    Returns
    -------
    ndarray of shape (n_samples,)
        Operation cost of each row.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from adacos import Costs
    >>> from adacos.metrics import operation_costs
    >>> result = SimpleNamespace(label=np.array([0, 1, 0]), cost=np.array([1.0, 3.0, 2.0]))
    >>> operation_costs(result, [0, 0, 1], Costs(false_positive=30))
    array([ 1., 33.,  2.])
    """
    if "false_positive" in costs.unstated and _has_prices(costs):
        _warn_of_unstated("a false alarm, so that it")
    true, label = _as_binary(result, y)
    return np.asarray(result.cost + costs.matrix[0, 1] * ((true == 0) & (label == 1)))


def operation_cost(result: Any, y: ArrayLike, costs: Costs) -> float:
    """Mean operation cost of a row: covariate cost paid plus cost of false positives.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    costs : Costs
        The misclassification costs, of which C[0, 1] is used.

    Returns
    -------
    float
        Mean of `operation_costs`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from adacos import Costs
    >>> from adacos.metrics import operation_cost
    >>> result = SimpleNamespace(label=np.array([0, 1, 0]), cost=np.array([1.0, 3.0, 2.0]))
    >>> operation_cost(result, [0, 0, 1], Costs(false_positive=30))
    12.0
    """
    return float(operation_costs(result, y, costs).mean())


def weighted_accuracy(result: Any, y: ArrayLike, positive_weight: float = 10.0) -> float:
    """Share of right answers with each positive row counted several times.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    positive_weight : float, default=10.0
        How often a row of the positive class counts.

    Returns
    -------
    float
        The weighted share, between 0 and 1.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from adacos.metrics import weighted_accuracy
    >>> weighted_accuracy(SimpleNamespace(label=[0, 0, 1]), [0, 1, 1], positive_weight=2)
    0.6
    """
    true, label = _as_binary(result, y)
    weight = np.where(true == 1, positive_weight, 1.0)
    return float(np.average(true == label, weights=weight))


def recall(result: Any, y: ArrayLike, protects: Collection[str] | None = None) -> float:
    """Share of positive rows answered positive.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    protects : collection of str, default=None
        With decisions in the costs, those that protect a positive row; see `Costs`.

    Returns
    -------
    float
        The recall; NaN without positive rows.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from adacos.metrics import recall
    >>> recall(SimpleNamespace(label=[0, 0, 1, 1]), [0, 1, 1, 1])
    0.6666666666666666
    >>> given = SimpleNamespace(label=["discharge", "refer", "treat", "treat"])
    >>> recall(given, [0, 1, 1, 1], protects=["refer", "treat"])
    1.0
    """
    true, label = _as_binary(result, y, protects)
    return float(label[true == 1].mean()) if np.any(true == 1) else float("nan")


def recall_interval(
    result: Any,
    y: ArrayLike,
    confidence: float = 0.95,
    protects: Collection[str] | None = None,
) -> tuple[float, float]:
    """Exact two-sided interval of the recall.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    confidence : float, default=0.95
        Probability with which the interval holds the recall on new rows like these.
    protects : collection of str, default=None
        With decisions in the costs, those that protect a positive row; see `Costs`.

    Returns
    -------
    tuple of (float, float)
        The interval by Clopper and Pearson; (0, 1) without positive rows.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from adacos.metrics import recall_interval
    >>> low, high = recall_interval(SimpleNamespace(label=[0, 1, 1, 1]), [1, 1, 1, 1])
    >>> print(f"{low:.3f} to {high:.3f}")
    0.194 to 0.994
    """
    true, label = _as_binary(result, y, protects)
    return _interval(label[true == 1] == 1, confidence)


def false_discovery_rate(result: Any, y: ArrayLike) -> float:
    """Share of negative rows among those answered positive.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.

    Returns
    -------
    float
        The rate; NaN if no row is answered positive.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from adacos.metrics import false_discovery_rate
    >>> false_discovery_rate(SimpleNamespace(label=[0, 1, 1, 1, 1]), [0, 0, 1, 1, 1])
    0.25
    """
    true, label = _as_binary(result, y)
    return float((true[label == 1] == 0).mean()) if np.any(label == 1) else float("nan")


def false_discovery_rate_interval(
    result: Any, y: ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """Exact two-sided interval of the false discovery rate.

    Parameters
    ----------
    result : AcquisitionResult
        What a policy did with the rows.
    y : array-like of shape (n_samples,)
        Their true classes.
    confidence : float, default=0.95
        Probability with which the interval holds the rate on new rows like these.

    Returns
    -------
    tuple of (float, float)
        The interval by Clopper and Pearson; (0, 1) if no row is answered positive.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from adacos.metrics import false_discovery_rate_interval
    >>> false_discovery_rate_interval(SimpleNamespace(label=[0, 0]), [0, 1])
    (0.0, 1.0)
    """
    true, label = _as_binary(result, y)
    return _interval(true[label == 1] == 0, confidence)


def total_cost_scorer(costs: Costs) -> Callable[[Any, Any, ArrayLike], float]:
    """Make a scorer of negative mean total cost by these costs, whatever those of the policy.

    Pass it as `scoring=` to `GridSearchCV` or `cross_val_score`: policies that were fitted with
    different costs, or with a target recall in place of one, are compared by the same ones.

    Parameters
    ----------
    costs : Costs
        Costs of covariates and of errors. A cost of waiting must be that of the policies.

    Returns
    -------
    callable
        A scorer: from an estimator, rows and their classes to a number; greater is better.

    Raises
    ------
    InvalidInputError
        If one error has a cost and the other has none.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from adacos import COSClassifier, Costs, load_pima
    >>> from adacos.metrics import total_cost_scorer
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=400)
    >>> bold = Costs(prices, false_positive=100, false_negative=100)
    >>> policy = COSClassifier(costs, strengths="common")
    >>> search = GridSearchCV(
    ...     policy, {"costs": [costs, bold]}, scoring=total_cost_scorer(costs), cv=2
    ... ).fit(X[:300], y[:300])
    >>> search.best_params_["costs"] == costs
    True
    """
    _check_both_errors(costs)
    return partial(_neg_total_cost, costs)


class _ScorerByOwnCosts:
    """Score a fitted policy by its negative mean total cost, by its own costs.

    Pass it as `scoring=` to `GridSearchCV` or `cross_val_score`. Where the candidates differ in
    their costs each would be scored by its own: `total_cost_scorer` has one measure for all.

    Parameters
    ----------
    estimator : classifier
        A fitted policy, or a `Pipeline` that ends in one; the costs are then those of the columns
        that reach it.
    X : table of shape (n_samples, n_features)
        Rows to run the policy on.
    y : array-like of shape (n_samples,)
        Their true classes.

    Returns
    -------
    float
        Minus the mean total cost: greater is better.

    Raises
    ------
    InvalidInputError
        If a target recall takes the place of the cost of a missed positive.

    Warns
    -----
    UserWarning
        If a policy with other costs was scored on these classes before.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from adacos import COSClassifier, Costs, load_pima
    >>> from adacos.metrics import neg_total_cost_scorer
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=400)
    >>> policy = COSClassifier(costs, strengths="common")
    >>> scores = cross_val_score(policy, X[:300], y[:300], cv=2, scoring=neg_total_cost_scorer)
    >>> bool((scores < 0).all())
    True
    """

    def __init__(self) -> None:
        # By which costs some rows were last scored, by a digest of their classes, so that a search
        # over costs is noticed; the oldest are forgotten.
        self._scored_by: dict[int, Costs] = {}

    def __call__(self, estimator: BaseEstimator, X: Any, y: ArrayLike) -> float:
        """Score a fitted policy on rows and their classes."""
        policy, _ = policy_at_end(estimator, X)
        costs = policy.costs or Costs()
        if policy.false_negative_cost_ is not None:
            raise InvalidInputError(
                "estimator",
                "must have a cost for each error, to be scored by total cost",
                "a target recall in place of the false-negative cost",
                "Use total_cost_scorer(Costs(..., false_positive=..., false_negative=...)).",
            )
        self._warn_of_other_costs(costs, y)
        return _neg_total_cost(costs, estimator, X, y)

    def _warn_of_other_costs(self, costs: Costs, y: ArrayLike) -> None:
        """Warn where the same classes were scored by other costs, as a search over costs does."""
        rows = hash(np.asarray(y).tobytes())
        earlier = self._scored_by.pop(rows, costs)
        self._scored_by[rows] = costs
        for oldest in list(self._scored_by)[:-_MOST_SCORED]:
            self._scored_by.pop(oldest, None)
        if earlier != costs:
            warnings.warn(
                "neg_total_cost_scorer scores each policy by its own costs, and these rows were "
                "scored by other costs before: the scores cannot be compared. Use "
                "scoring=total_cost_scorer(costs), which scores all by the same costs.",
                stacklevel=3,
            )


neg_total_cost_scorer = _ScorerByOwnCosts()


def _neg_total_cost(costs: Costs, estimator: BaseEstimator, X: Any, y: ArrayLike) -> float:
    policy, rows = policy_at_end(estimator, X)
    result = policy.acquire(rows)
    own, table = policy.cost_table_, costs.bind(policy.cost_table_.names, len(policy.classes_))
    waits = [(float(one.round_cost), np.asarray(one.immediate).tolist()) for one in (own, table)]
    if waits[0] != waits[1]:
        rule = "the cost of waiting must be that of the policy, which orders by it"
        remedy = "Use the same round_cost and immediate."
        raise InvalidInputError("costs", rule, f"round_cost={table.round_cost:g}", remedy)
    waited = result.cost - own.of_order(result.order)
    true, label = _as_numbers(result, y, policy.classes_, decisions=table.decisions)
    paid = table.of_order(result.order) + waited
    return -float(total_of(paid, true, label, table.matrix).mean())


def _check_both_errors(costs: Any) -> None:
    """Refuse costs of which one error has one and the other has none: its cost is no 1."""
    if not isinstance(costs, Costs):
        rule, remedy = "must be a Costs object", "The order is total_cost(result, y, costs)."
        raise InvalidInputError("costs", rule, type(costs).__name__, remedy)
    if len(costs.unstated) == 1:
        raise InvalidInputError(
            "costs",
            "both errors must have a cost for a total cost",
            f"no {costs.unstated[0]}",
            "Pass Costs(..., false_positive=..., false_negative=...); operation_cost leaves missed "
            "positives out.",
        )
    if costs.unstated and _has_prices(costs):
        _warn_of_unstated("an error, so that each")


def _has_prices(costs: Costs) -> bool:
    """Whether some covariate has a cost, next to which an error is weighed."""
    own = costs.covariates
    return any(own.values() if isinstance(own, Mapping) else own or ())


def _warn_of_unstated(what: str) -> None:
    warnings.warn(
        f"No cost is stated for {what} counts as 1 next to the covariate costs. "
        "Pass Costs(..., false_positive=..., false_negative=...).",
        UnstatedCostWarning,
        stacklevel=4,
    )


def _interval(successes: NDArray[np.bool_], confidence: float) -> tuple[float, float]:
    low, high = interval(int(successes.sum()), len(successes), confidence)
    return float(low), float(high)


def _as_binary(
    result: Any, y: ArrayLike, protects: Collection[str] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """True classes and labels as 0 and 1; of decisions those that protect a class are 1."""
    if protects is None:
        return _as_numbers(result, y, n_classes=2)
    counted = [protects] if isinstance(protects, str) else list(protects)
    protected = np.isin(np.asarray(result.label), counted)
    answered = SimpleNamespace(label=np.where(protected, "yes", "no"))
    return _as_numbers(answered, y, n_classes=2, decisions=("no", "yes"))


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The values that occur in order, all of them words or all of them numbers."""
    try:
        return np.unique(values)
    except TypeError:
        own: list[Any] = sorted({as_written(value) for value in values.tolist()}, key=str)
        raise InvalidInputError(
            "y",
            "y and the labels of the result must be words or numbers, not both",
            listed(own),
            "Pass the classes as the policy was fitted with them.",
        ) from None


def _as_numbers(
    result: Any,
    y: ArrayLike,
    classes: NDArray[Any] | None = None,
    *,
    n_classes: int = 2,
    decisions: tuple[str, ...] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """True classes and labels as 0, 1, …; without `classes` these are those that occur.

    With `decisions` labels are the places of these.
    """
    if not hasattr(result, "label"):
        raise InvalidInputError(
            "result",
            "must be the AcquisitionResult that acquire gives",
            type(result).__name__,
            "It comes first and the true classes second: total_cost(result, y, costs).",
        )
    y = np.asarray(y)
    if len(y) != len(result.label):
        raise InvalidInputError(
            "y",
            "needs one label per row of the result",
            f"{len(y)} labels for {len(result.label)} rows",
            "Pass the labels of the rows that were acquired.",
        )
    labels = np.asarray(result.label)
    present = _distinct(np.concatenate([y, labels]) if decisions is None else y)
    if classes is None:
        # Where only some of 0, 1, … occur, they are still those they are.
        numbers = np.arange(n_classes)
        classes = numbers if np.all(np.isin(present, numbers)) else present
    else:
        n_classes = len(classes)
    if len(classes) != n_classes or not np.all(np.isin(present, classes)):
        number = "two" if n_classes == 2 else str(n_classes)
        coded = "0 and 1" if n_classes == 2 else f"0 … {n_classes - 1}"
        raise InvalidInputError(
            "y",
            f"y and the labels must be of {number} classes",
            present.tolist(),
            f"Pass labels of the classes the policy was fitted with, or code them as {coded}. If "
            "the labels are decisions, pass the costs that name them, or protects=.",
        )
    true = np.searchsorted(classes, y)
    if decisions is None:
        return true, np.searchsorted(classes, labels)
    place = {name: d for d, name in enumerate(decisions)}
    unknown = [str(name) for name in np.unique(labels).tolist() if name not in place]
    if unknown:
        rule = "the decisions of the result must be those of the costs"
        raise InvalidInputError("costs", rule, unknown, choices(unknown, decisions, "They are"))
    return true, np.array([place[name] for name in labels.tolist()], dtype=np.intp)

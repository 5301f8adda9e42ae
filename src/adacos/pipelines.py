"""A policy at the end of a scikit-learn pipeline: reached with the rows as it sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from adacos.exceptions import InvalidInputError

if TYPE_CHECKING:
    from adacos.engine import AcquisitionResult
    from adacos.policies.base import BasePolicy


def acquire(estimator: BaseEstimator, X: Any, known: ArrayLike | None = None) -> AcquisitionResult:
    """Run a fitted policy, or a pipeline that ends in one, on every row of a table.

    Parameters
    ----------
    estimator : policy or Pipeline
        A fitted policy, or a fitted `Pipeline` whose last step is one.
    X : array-like or data frame of shape (n_rows, n_columns)
        The rows as the estimator takes them; the earlier steps of a pipeline transform them first.
    known : array-like of bool, default=None
        Mask of what is known from the start, over the columns that reach the policy.

    Returns
    -------
    AcquisitionResult
        What was done with each row. Covariates and costs are those of the columns that reach the
        policy.

    Raises
    ------
    InvalidInputError
        If the last step is no policy.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from adacos import COSClassifier, Costs, acquire, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(list(prices.values()), false_positive=100, false_negative=1000)
    >>> pipeline = make_pipeline(StandardScaler(), COSClassifier(costs)).fit(X, y)
    >>> result = acquire(pipeline, X)
    >>> bool((result.label == pipeline.predict(X)).all())
    True
    """
    policy, rows = policy_at_end(estimator, X)
    return policy.acquire(rows, known=known)


def policy_at_end(estimator: BaseEstimator, X: Any) -> tuple[BasePolicy, Any]:
    """The policy that a pipeline ends in, and the rows as they reach it."""
    last: Any = estimator
    while hasattr(last, "steps"):
        if len(last.steps) > 1:
            X = last[:-1].transform(X)
        last = last.steps[-1][1]
    if not hasattr(last, "acquire"):
        raise InvalidInputError(
            "estimator",
            "must be a policy, or a pipeline that ends in one",
            type(last).__name__,
            "For example make_pipeline(StandardScaler(), AdaCOSClassifier(costs)).",
        )
    return last, X

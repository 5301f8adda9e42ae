"""Answers to the rows of a Dask collection, given by the workers that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from adacos.engine import ROWS_AT_ONCE, AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.models.dask_stream import is_dask
from adacos.policies.base import BasePolicy
from adacos.validation import choices

# Rows answered at a time: what that takes is several times the rows themselves. A multiple of what
# the engine walks together, so that complete rows walk with the same others as in memory.
PIECE_ROWS = 2 * ROWS_AT_ONCE


def score_partitions(policy: BasePolicy, X: Any) -> Any:
    """Answer the rows of a Dask collection where they are.

    Each partition is answered by the worker that has it, a bounded number of rows at a time, with
    the decisions of `policy.acquire`. Nothing is computed before the result is. Its `compute` joins
    all partitions on one worker; `to_parquet` and `to_delayed` do not.

    Parameters
    ----------
    policy : policy
        A fitted policy.
    X : dask.dataframe.DataFrame or dask.array.Array
        The rows. Of a data frame the columns of the policy are read, and no others.

    Returns
    -------
    dask.dataframe.DataFrame
        A line for each row, in the partitions of X: label (a category where classes are words),
        probability (of more than two classes probability_0, probability_1, …), cost, expected_cost
        and stage, see `AcquisitionResult`.

    Raises
    ------
    InvalidInputError
        If X is no Dask collection, or lacks a column of the policy.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from adacos import COSClassifier, Costs, load_pima, score_partitions
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = COSClassifier(costs).fit(X, y)
    >>> answers = score_partitions(policy, dd.from_pandas(X, npartitions=2))
    >>> float(answers["cost"].mean().compute(scheduler="synchronous"))
    2.0
    """
    check_is_fitted(policy)
    if not is_dask(X):
        raise InvalidInputError(
            "X", "must be a Dask collection", type(X).__name__, "Call policy.acquire(X)."
        )
    import dask
    import dask.dataframe as dd

    # As one object of the graph the policy travels to a worker once, not with every partition.
    # A worker short of memory spills it and reads it back: without training rows that is nothing.
    own = dask.delayed(policy._for_answering(), pure=False, traverse=False)
    columns = _empty_columns(policy, 0)
    if hasattr(X, "columns"):
        rows = X[_columns_of(policy, X)]
        return rows.map_partitions(_answers, own, meta=_table(policy, columns, None))
    blocks = X.rechunk({1: -1}).to_delayed().ravel()
    parts = [dask.delayed(_answers)(block, own) for block in blocks]
    return dd.from_delayed(parts, meta=_table(policy, columns, None), verify_meta=False)


def _columns_of(policy: BasePolicy, X: Any) -> list[Any]:
    """The columns of a collection that the policy was fitted on."""
    wanted = list(getattr(policy, "feature_names_in_", policy.encoder_.names))
    absent = [name for name in wanted if name not in X.columns]
    if absent:
        known = [str(name) for name in X.columns]
        raise InvalidInputError(
            "X", "must have the columns of the policy", absent, choices(absent, known, "It has")
        )
    return wanted


def _answers(rows: Any, policy: BasePolicy) -> Any:
    """The answers to one partition."""
    at = getattr(rows, "iloc", rows)
    columns = _empty_columns(policy, len(rows))
    for first in range(0, len(rows), PIECE_ROWS):
        piece = slice(first, first + PIECE_ROWS)
        for name, values in _columns(policy.acquire(at[piece]), policy).items():
            columns[name][piece] = values
    return _table(policy, columns, getattr(rows, "index", None))


def _columns(result: AcquisitionResult, policy: BasePolicy) -> dict[str, NDArray[Any]]:
    """What is kept of a result: the order of acquisition is as large as the rows themselves."""
    return {
        "label": np.searchsorted(policy.classes_, result.label),
        **result.probability_columns(),
        "cost": result.cost,
        "expected_cost": result.expected_cost,
        "stage": result.stage,
    }


def _empty_columns(policy: BasePolicy, n: int) -> dict[str, NDArray[Any]]:
    """Columns to be filled, labels as the numbers of their classes."""
    k = len(policy.classes_)
    probability = ["probability"] if k == 2 else [f"probability_{i}" for i in range(k)]
    types: dict[str, Any] = {
        "label": np.min_scalar_type(-k),
        **dict.fromkeys(probability, np.float64),
        "cost": np.float64,
        "expected_cost": np.float64,
        "stage": np.min_scalar_type(-len(policy.encoder_.names) - 1),
    }
    return {name: np.empty(n, dtype=dtype) for name, dtype in types.items()}


def _table(policy: BasePolicy, columns: dict[str, NDArray[Any]], index: Any) -> Any:
    """Columns as a data frame, with labels in place of numbers of classes."""
    import pandas

    classes, number = policy.classes_, columns["label"]
    label: Any
    if classes.dtype.kind == "i":
        # With a sign, so that labels can be subtracted.
        least = min(int(classes.min()), -int(classes.max()) - 1)
        label = classes.astype(np.min_scalar_type(least))[number]
    elif classes.dtype.kind in "buf":
        label = classes[number]
    else:
        label = pandas.Categorical.from_codes(number, categories=classes.tolist())
    return pandas.DataFrame({**columns, "label": label}, index=index, copy=False)

"""Answers to the rows of a Dask collection, given by the workers that have them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from adacos.consultation.next_steps import NextSteps
from adacos.engine import ROWS_AT_ONCE, AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.models.dask_stream import is_dask
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import inner_fits
from adacos.tables.description import description_of
from adacos.tables.encoder import validate_table
from adacos.tables.unusual import KINDS, unusual
from adacos.validation import choices

# Rows answered at a time: what that takes is several times the rows themselves. A multiple of what
# the engine walks together, so that complete rows walk with the same others as in memory.
PIECE_ROWS = 2 * ROWS_AT_ONCE
# Columns with the number of values of each kind that are unlike those of the training rows.
UNUSUAL = {kind: f"unusual_{kind}" for kind in KINDS[1:]}


class _Asked(NamedTuple):
    """What is asked for in addition to the answers: see `score_partitions`."""

    known: NDArray[np.bool_] | None = None
    keep: tuple[Any, ...] = ()
    acquired: bool = False
    unusual: bool = False


def score_partitions(
    policy: BasePolicy,
    X: Any,
    *,
    known: Sequence[str] = (),
    keep: Sequence[Hashable] = (),
    acquired: bool = False,
    unusual: bool = False,
) -> Any:
    """Answer the rows of a Dask collection where they are.

    Each partition is answered by the worker that has it, a bounded number of rows at a time, with
    the decisions of `policy.acquire`. Nothing is computed before the result is. Its `compute` joins
    all partitions on one worker; `to_parquet` and `to_delayed` do not.

    Parameters
    ----------
    policy : policy
        A fitted policy.
    X : dask.dataframe.DataFrame or dask.array.Array
        The rows. Of a data frame the columns of the policy and of `keep` are read, and no others.
    known : sequence of str, default=()
        Covariates known from the start in every row that has a value.
    keep : sequence, default=()
        Columns of a data frame to copy, such as an identifier.
    acquired : bool, default=False
        Whether to list what was acquired.
    unusual : bool, default=False
        Whether to count values that were acquired or known and are unlike those of the training
        rows.

    Returns
    -------
    dask.dataframe.DataFrame
        A line for each row, in the partitions of X: the columns of `keep`, label (a category where
        classes are words), probability (with three or more classes probability_0, probability_1,
        …), cost, expected_cost and stage, see `AcquisitionResult`; if asked for, acquired: a
        category, the names of the covariates in order, separated by semicolons; and
        unusual_outside_range, unusual_implausible, unusual_unknown_category, unusual_unknown_value:
        how many values.

    Raises
    ------
    InvalidInputError
        If X is no Dask collection, or has no column of the policy or of `keep`.

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

    asked = _checked(policy, X, known, _Asked(None, tuple(keep), acquired, unusual))
    # As one object of the graph the policy travels to a worker once, not with every partition.
    # A worker short of memory spills it and reads it back: with few training rows that is little.
    own = dask.delayed(for_answering(policy), pure=False, traverse=False)
    if hasattr(X, "columns"):
        rows = X[list(dict.fromkeys([*_covariates(policy), *asked.keep]))]
        meta = _lazy(_answers(rows._meta, policy, asked))
        return rows.map_partitions(_answers, own, asked, meta=meta)
    blocks = X.rechunk({1: -1}).to_delayed().ravel()
    parts = [dask.delayed(_answers)(block, own, asked) for block in blocks]
    meta = _lazy(_answers(np.empty((0, X.shape[1])), policy, asked))
    return dd.from_delayed(parts, meta=meta, verify_meta=False)


def for_answering(policy: BasePolicy) -> BasePolicy:
    """The policy that decides, without what it keeps of training rows and no decision reads."""
    policy = policy.chosen
    model = policy.sequence_model
    # Branches keep more than this; of more than two classes, decisions read rows left out.
    if not policy.streams or model is None or model.many_classes:
        return policy
    lean: Any = copy(policy)
    lean.training_rows_ = replace(lean.training_rows_, digests=lean.training_rows_.digests[:0])
    lean.model_ = replace(
        model,
        y=model.y[:0],
        weight=model.weight[:0],
        out_of_fold_log_odds=model.out_of_fold_log_odds[:0],
    )
    lean.decider_ = replace(lean.decider_, model=lean.model_)
    return lean  # type: ignore[no-any-return]


def acquired_texts(result: AcquisitionResult | NextSteps) -> list[str]:
    """Names of what each row acquired, or is to acquire, in order, separated by semicolons."""
    listed: dict[bytes, str] = {}
    texts = []
    for row, order in enumerate(result.order):
        pattern = order.tobytes()
        if pattern not in listed:
            listed[pattern] = ";".join(result.covariates(row))
        texts.append(listed[pattern])
    return texts


def _checked(policy: BasePolicy, X: Any, known: Sequence[str], asked: _Asked) -> _Asked:
    """What is asked for, with these covariates known, if these rows allow it."""
    names = policy.encoder_.names
    _refuse_absent("known", "must name covariates of the policy", known, names)
    has = list(getattr(X, "columns", []))
    if hasattr(X, "columns"):
        _refuse_absent("X", "must have the columns of the policy", _covariates(policy), has)
    _refuse_absent("keep", "must name columns of X", asked.keep, has)
    clash = [name for name in asked.keep if name in _empty_columns(policy, 0, asked)]
    if clash:
        raise InvalidInputError(
            "keep", "must not name a column of the answers", clash, "Rename it in the input."
        )
    return asked._replace(known=np.isin(names, list(known)) if known else None)


def _refuse_absent(parameter: str, rule: str, given: Sequence[Any], has: Sequence[Any]) -> None:
    absent = [name for name in given if name not in has]
    if absent:
        remedy = choices(map(str, absent), [str(name) for name in has], "There are")
        raise InvalidInputError(parameter, rule, absent, remedy)


def _covariates(policy: BasePolicy) -> list[Any]:
    """The columns that the policy was fitted on."""
    return list(getattr(policy, "feature_names_in_", policy.encoder_.names))


def _lazy(meta: Any) -> Any:
    """What the answers will look like; which covariates they list is known in the end only."""
    from dask.dataframe.utils import clear_known_categories

    return clear_known_categories(meta, cols=["acquired"]) if "acquired" in meta else meta


def _answers(rows: Any, policy: BasePolicy, asked: _Asked) -> Any:
    """The answers to one partition."""
    import pandas

    at = getattr(rows, "iloc", rows)
    columns = _empty_columns(policy, len(rows), asked)
    texts: dict[str, int] = {}
    for first in range(0, len(rows), PIECE_ROWS):
        piece = slice(first, first + PIECE_ROWS)
        own = at[piece][_covariates(policy)] if asked.keep else at[piece]
        with inner_fits():
            result = policy.acquire(own, known=asked.known)
        for name, values in _columns(result, policy).items():
            columns[name][piece] = values
        if asked.acquired:
            numbers = [texts.setdefault(text, len(texts)) for text in acquired_texts(result)]
            columns["acquired"][piece] = numbers
        if asked.unusual:
            for name, counts in _unusual_counts(policy, own, result, asked.known).items():
                columns[name][piece] = counts
    table: dict[Any, Any] = {name: rows[name].array for name in asked.keep}
    table |= columns | {"label": _labels(policy, columns["label"])}
    if asked.acquired:
        # The same few texts over and over: their numbers take much less memory.
        table["acquired"] = pandas.Categorical.from_codes(columns["acquired"], list(texts))
    return pandas.DataFrame(table, index=getattr(rows, "index", None), copy=False)


def _unusual_counts(
    policy: BasePolicy, rows: Any, result: AcquisitionResult, known: NDArray[np.bool_] | None
) -> dict[str, NDArray[Any]]:
    """How many values behind each answer are unlike those of the training rows, by kind."""
    behind = result.acquired if known is None else result.acquired | known
    table = validate_table(policy, rows, reset=False)
    kinds = np.where(behind, unusual(policy.encoder_, table, description_of(policy)), 0)
    return {
        name: np.sum(kinds == number, axis=1) for number, name in enumerate(UNUSUAL.values(), 1)
    }


def _columns(result: AcquisitionResult, policy: BasePolicy) -> dict[str, NDArray[Any]]:
    """What is kept of a result: the order of acquisition is as large as the rows themselves."""
    return {
        "label": policy.numbers_of(result.label),
        **result.probability_columns(),
        "cost": result.cost,
        "expected_cost": result.expected_cost,
        "stage": result.stage,
    }


def _empty_columns(policy: BasePolicy, n: int, asked: _Asked) -> dict[str, NDArray[Any]]:
    """Columns to be filled; labels and what was acquired are numbers of their texts."""
    k = len(policy.classes_)
    covariates = np.min_scalar_type(-len(policy.encoder_.names) - 1)
    probability = ["probability"] if k == 2 else [f"probability_{i}" for i in range(k)]
    types: dict[str, Any] = {
        "label": np.min_scalar_type(-len(policy.decisions_)),
        **dict.fromkeys(probability, np.float64),
        "cost": np.float64,
        "expected_cost": np.float64,
        "stage": covariates,
        **({"acquired": np.int32} if asked.acquired else {}),
        **dict.fromkeys(UNUSUAL.values() if asked.unusual else (), covariates),
    }
    return {name: np.empty(n, dtype=dtype) for name, dtype in types.items()}


def _labels(policy: BasePolicy, number: NDArray[Any]) -> Any:
    """Labels by the numbers of their classes."""
    import pandas

    classes = policy.decisions_
    if classes.dtype.kind == "i":
        # With a sign, so that labels can be subtracted.
        least = min(int(classes.min()), -int(classes.max()) - 1)
        return classes.astype(np.min_scalar_type(least))[number]
    if classes.dtype.kind in "buf":
        return classes[number]
    return pandas.Categorical.from_codes(number, categories=classes.tolist())

"""Fits of policies over a set sequence on tables that are never all in memory."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from adacos.deciders.weighing import FREE
from adacos.exceptions import InvalidInputError
from adacos.models import large_fits
from adacos.models.additive import FAMILIES
from adacos.models.dask_stream import DaskStream, in_memory, is_dask
from adacos.models.dask_wait import computed
from adacos.models.streamed_fits import PieceStream, Stream, prepare_streamed, scan_stream
from adacos.policies.many_classes import check_with_classes
from adacos.tables.labels import check_labels
from adacos.tables.parquet_table import ParquetTable, joined

Policy = TypeVar("Policy", bound=Any)


def is_streamed(X: Any) -> bool:
    """Whether X is a table that need not be in memory."""
    return isinstance(X, ParquetTable) or is_dask(X)


def fit_pieces(
    policy: Policy, X: Any, y: Any, X_unlabeled: Any, sample_weight: Any, groups: Any
) -> Policy:
    """Fit a policy on Parquet files or a Dask collection: in pieces if its rows are very many.

    `y` names the column that holds the class, or holds the classes.
    """
    X, y = _split(X, y)
    if policy.streams and len(y) >= large_fits.LARGE_ROWS:
        stream = DaskStream(X) if is_dask(X) else PieceStream(X, policy.n_jobs)
        return _fit_streamed(policy, stream, y, X_unlabeled, sample_weight, groups)
    table = computed([X])[0] if is_dask(X) else joined(list(X.pieces()))
    fitted: Policy = policy._learn(table, y, X_unlabeled, sample_weight, groups)
    return fitted


def _split(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Covariates and classes; the classes are few bytes a row, and come into memory."""
    if isinstance(y, str) and is_dask(X):
        if y not in getattr(X, "columns", ()):
            raise InvalidInputError("y", "must name a column", y, "Name the column of the class.")
        X, y = X.drop(columns=[y]), X[y]
    elif isinstance(y, str):
        y, X = X.only([y]).values(y), X.only([name for name in X.columns if name != y])
    return X, in_memory(y) if is_dask(y) else np.asarray(y)


def _fit_streamed(
    policy: Policy,
    stream: Stream,
    y: NDArray[Any],
    X_unlabeled: Any,
    sample_weight: Any,
    groups: Any,
) -> Policy:
    """Fit a policy on rows that come in pieces and are held as codes."""
    classes, labels = check_labels(y, many=True)
    _refuse(policy, len(classes), X_unlabeled, sample_weight, groups)
    scanned = scan_stream(stream)
    if len(labels) != sum(scanned.sizes):
        raise InvalidInputError(
            "y",
            "must hold a class for each row",
            f"{len(labels):,} classes, {sum(scanned.sizes):,} rows",
            "Name the column that holds it.",
        )
    # Names and costs are checked with two rows; what is learned comes from all of them.
    one_of_each = [int(np.argmax(labels == label)) for label in (0.0, 1.0)]
    policy.begin_fit(stream.head(), y[one_of_each])
    check_with_classes(policy)
    policy.encoder_ = scanned.encoder
    fits, policy.training_rows_ = prepare_streamed(
        stream,
        scanned,
        labels,
        n_splines=policy.n_splines,
        families=FAMILIES[policy.strengths],
        n_folds=policy.cv,
        seed=policy.random_state,
        n_jobs=policy.n_jobs,
    )
    policy._set_fits = None
    # Complete rows are decided by their log-odds alone, so that none of the values is read.
    policy._rows = np.broadcast_to(0.0, (len(fits.y), len(policy.encoder_.source)))
    policy._finish_fit(policy._build(fits))
    return policy


def _refuse(policy: Any, n_classes: int, X_unlabeled: Any, sample_weight: Any, groups: Any) -> None:
    """What needs the rows themselves, or another fit."""
    # What the values say of later sets, and what a row has paid, is read off the rows.
    waits = policy.costs is not None and policy.costs.round_cost > 0
    reads = waits or policy.budget is not None or policy.resolved_lookahead not in (None, *FREE)
    aim = policy.recall_aim
    at_stop = aim.target_recall is not None and aim.recall_at == "stop"
    wrong = [
        (
            "recall_at",
            "must be 'every_set' with a budget, a round cost or this lookahead",
            at_stop and reads,
        ),
        ("sequence", "must be 'group_lasso' or 'forward'", policy.sequence == "both"),
        ("mean_budget", "must be None", policy.mean_budget is not None),
        ("recall_confidence", "must be None", aim.recall_confidence is not None),
        ("cv", "must be a number of folds", not isinstance(policy.cv, Integral)),
        ("X_unlabeled", "must be None", X_unlabeled is not None),
        ("sample_weight", "must be None", sample_weight is not None),
        ("groups", "must be None", groups is not None),
        ("y", "must hold two classes", n_classes != 2),
    ]
    for name, rule, broken in wrong:
        if broken:
            given = f"{n_classes} classes" if name == "y" else "given"
            raise InvalidInputError(
                name,
                f"{rule} for a table that is read a piece at a time",
                getattr(aim if hasattr(aim, name) else policy, name, given),
                "Read the rows into memory, or fewer of them.",
            )

"""Fits of policies over a set sequence on tables that are never all in memory."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.models import large_fits
from adacos.models.additive import FAMILIES
from adacos.models.dask_stream import DaskStream, in_memory, is_dask
from adacos.models.dask_wait import computed
from adacos.models.streamed_fits import (
    Labelled,
    PieceStream,
    Stream,
    prepare_streamed,
    scan_stream,
)
from adacos.policies.many_classes import check_with_classes
from adacos.tables.labels import check_labels
from adacos.tables.parquet_table import ParquetTable, joined
from adacos.tables.weights import check_weights, groups_of
from adacos.typing import Floats

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy

Policy = TypeVar("Policy", bound="SequencePolicy")


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
    classes, labels = check_labels(y, many=policy.takes_many_classes)
    _refuse(policy)
    weight = _weights(sample_weight, labels)
    scanned = scan_stream(stream)
    if len(labels) != sum(scanned.sizes):
        raise InvalidInputError(
            "y",
            "must hold a class for each row",
            f"{len(labels):,} classes, {sum(scanned.sizes):,} rows",
            "Name the column that holds it.",
        )
    # Names and costs are checked with a few rows; what is learned comes from all of them.
    one_of_each = np.unique(labels, return_index=True)[1]
    policy.begin_fit(stream.head(len(classes)), y[one_of_each])
    check_with_classes(policy)
    policy.encoder_ = scanned.encoder
    # Copies of rows are looked for in memory only.
    number = None if groups is None else groups_of(groups, np.empty((0, 0)), labels)
    unlabeled = None if X_unlabeled is None else policy._encode(X_unlabeled)
    rows = prepare_streamed(
        stream,
        scanned,
        Labelled(labels, weight, number),
        n_splines=policy.n_splines,
        families=FAMILIES[policy.strengths],
        n_folds=policy.cv,
        seed=policy.random_state,
        n_jobs=policy.n_jobs,
        n_classes=len(classes),
        unlabeled=unlabeled,
    )
    policy.training_rows_, policy._rows, policy._set_fits = rows.digests, rows.kept, None
    kept = slice(None) if rows.fits.kept is None else rows.fits.kept
    fits = replace(rows.fits, table=(None, None, None if number is None else number[kept]))
    policy._finish_fit(policy._build(fits))
    policy._complete_fit(fits, unlabeled)
    return policy


def _weights(sample_weight: Any, labels: Floats) -> Floats:
    """How often each row counts; the files say which rows there are, so that each must."""
    if sample_weight is None:
        return np.ones(len(labels))
    weight = check_weights(sample_weight, labels)
    if not weight.all():
        raise InvalidInputError(
            "sample_weight",
            "must be above 0 for a table that is read a piece at a time",
            f"0 for {int(np.sum(weight == 0)):,} rows",
            "Leave these rows out of the table.",
        )
    return weight


def _refuse(policy: SequencePolicy) -> None:
    """What needs the rows themselves, or another fit."""
    aim = policy.recall_aim
    wrong = [
        ("recall_confidence", "must be None", aim.recall_confidence is not None),
        ("monotonic_cst", "must be None", policy.monotonic_cst is not None),
        ("cv", "must be a number of folds", not isinstance(policy.cv, Integral)),
    ]
    for name, rule, broken in wrong:
        if broken:
            certifies = "Call calibrate with rows that were not learned from."
            raise InvalidInputError(
                name,
                f"{rule} for a table that is read a piece at a time",
                getattr(aim if hasattr(aim, name) else policy, name),
                certifies
                if name == "recall_confidence"
                else "Read the rows into memory, or fewer of them.",
            )

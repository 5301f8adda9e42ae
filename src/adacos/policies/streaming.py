"""Fits of policies over a set sequence on tables that are never all in memory."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import drawn_rows
from adacos.models import large_fits
from adacos.models.gam import FAMILIES
from adacos.models.sequence_model import SequenceModel
from adacos.models.streamed_fits import PieceStream, prepare_streamed, scan_stream
from adacos.tables.encoder import check_labels
from adacos.tables.parquet_table import ParquetTable, joined

Policy = TypeVar("Policy", bound=Any)

# Rows whose leave-out log-odds are kept.
KEPT_ROWS = 200_000


def fit_pieces(
    policy: Policy, X: ParquetTable, y: Any, X_unlabeled: Any, sample_weight: Any
) -> Policy:
    """Fit a policy on a table in files: a piece at a time if its rows are very many.

    `y` names the column that holds the class, or holds the classes.
    """
    if isinstance(y, str):
        y, X = X.only([y]).values(y), X.only([name for name in X.columns if name != y])
    if policy.streams and len(X) >= large_fits.LARGE_ROWS:
        return _fit_streamed(policy, X, np.asarray(y), X_unlabeled, sample_weight)
    fitted: Policy = policy.fit(joined(list(X.pieces())), y, X_unlabeled, sample_weight)
    return fitted


def _fit_streamed(
    policy: Policy, X: ParquetTable, y: NDArray[Any], X_unlabeled: Any, sample_weight: Any
) -> Policy:
    """Fit a policy on rows that are read a piece at a time and held as codes."""
    stream = PieceStream(X, policy.n_jobs)
    classes, labels = check_labels(y, many=True)
    _refuse(policy, len(classes), X_unlabeled, sample_weight)
    scanned = scan_stream(stream)
    if len(labels) != sum(scanned.sizes):
        raise InvalidInputError(
            "y",
            "must hold a class for each row",
            f"{len(labels):,} classes, {sum(scanned.sizes):,} rows",
            "Name the column that holds it.",
        )
    # Everything that is checked is checked on two rows; what is learned comes from all of them.
    ends = np.sort([int(np.argmax(labels == label)) for label in (0.0, 1.0)])
    policy._begin_fit(X.rows(ends), y[ends])
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
    policy._finish_fit(thinned(policy._build(fits), policy.random_state))
    return policy


def thinned(model: SequenceModel, seed: int) -> SequenceModel:
    """The model with the leave-out log-odds of `KEPT_ROWS` rows, weighed to stand for all."""
    rows = drawn_rows(model.y, KEPT_ROWS, seed)
    if len(rows) == len(model.y):
        return model
    y = model.y[rows]
    share = np.bincount(model.y.astype(np.intp), model.weight) / np.bincount(
        y.astype(np.intp), model.weight[rows]
    )
    weight = model.weight[rows] * share[y.astype(np.intp)]
    return replace(model, y=y, weight=weight, leave_out_log_odds=model.leave_out_log_odds[rows])


def _refuse(policy: Any, n_classes: int, X_unlabeled: Any, sample_weight: Any) -> None:
    """What needs the rows themselves, or another fit."""
    wrong = [
        ("sequence", "must be 'group_lasso' or 'forward'", policy.sequence == "both"),
        ("mean_budget", "must be None", policy.mean_budget is not None),
        ("recall_confidence", "must be None", policy.recall_confidence is not None),
        ("cv", "must be a number of folds", not isinstance(policy.cv, Integral)),
        ("X_unlabeled", "must be None", X_unlabeled is not None),
        ("sample_weight", "must be None", sample_weight is not None),
        ("y", "must hold two classes", n_classes != 2),
    ]
    for name, rule, broken in wrong:
        if broken:
            raise InvalidInputError(
                name,
                f"{rule} for a table that is read a piece at a time",
                getattr(policy, name, f"{n_classes} classes" if name == "y" else "given"),
                "Read the rows into memory, or fewer of them.",
            )

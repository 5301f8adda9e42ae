"""The five folds of the paper's cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.exceptions import InvalidInputError
from adacos.registry import DATASETS
from adacos.validation import did_you_mean

N_FOLDS = 5


def paper_folds(X: Any, y: ArrayLike | None = None, *, seed: int = 564343) -> NDArray[np.int64]:
    """Fold in which each row is tested in the paper's cross-validation.

    Within each class separately the rows are shuffled and cut in five; fold k is the union of the
    k-th parts. Only complete rows are cut up: a row with a missing value always trains.

    Parameters
    ----------
    X : table of shape (n_samples, n_features), or {"pima", "wisconsin", "heart"}
        Numbers, or the name of a bundled table.
    y : array-like of shape (n_samples,) or None, default=None
        The class of each row; leave it out with a name.
    seed : int, default=564343
        Seed of the shuffle; the default gives the folds of the paper.

    Returns
    -------
    ndarray of shape (n_samples,)
        Number of the fold, 0 to 4, or -1 for a row that is never tested.

    Raises
    ------
    InvalidInputError
        If the name is unknown, `y` does not fit `X`, or a class has fewer than five complete rows.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import paper_folds
    >>> np.unique(paper_folds("heart"), return_counts=True)[1].tolist()
    [6, 60, 60, 59, 59, 59]
    """
    # Here, so that loading a table does not wait for scikit-learn.
    from sklearn.model_selection import KFold

    if isinstance(X, str):
        bundled = [name for name, source in DATASETS.items() if source.bundled]
        if X not in bundled:
            raise InvalidInputError(
                "X",
                f"a name must be one of {sorted(bundled)}",
                X,
                f"{did_you_mean([X], bundled)}Pass the table itself: paper_folds(X, y).",
            )
        X, y, *_ = DATASETS[X].load()
    values, classes = _values(X), np.asarray(y)
    if classes.shape != values.shape[:1]:
        raise InvalidInputError(
            "y",
            f"must hold one class for each of the {len(values)} rows of X",
            f"shape {classes.shape}",
            "Pass the y that belongs to X.",
        )
    complete = ~np.isnan(values).any(axis=1)
    folds = np.full(len(values), -1, dtype=np.int64)
    for label in np.unique(classes):
        rows = np.flatnonzero(complete & (classes == label))
        if len(rows) < N_FOLDS:
            raise InvalidInputError(
                "X",
                f"each class needs at least {N_FOLDS} rows without a missing value",
                f"{len(rows)} for class {label}",
                "Add rows, or use another cross-validation.",
            )
        split = KFold(N_FOLDS, shuffle=True, random_state=seed).split(rows)
        for fold, (_, tested) in enumerate(split):
            folds[rows[tested]] = fold
    return folds


def _values(X: Any) -> NDArray[np.float64]:
    import narwhals

    frame = narwhals.from_native(X, eager_only=True, pass_through=True)
    raw = frame.to_numpy() if isinstance(frame, narwhals.DataFrame) else X
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2:
        raise InvalidInputError(
            "X", "must be a table of numbers", type(X).__name__, "Encode other columns as numbers."
        )
    return values

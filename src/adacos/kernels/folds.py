"""Which fold each row is held out in, for choices made on training rows.

Classes are dealt one after the other, so that every fold has its share of each. The paper's five
folds are another matter: they are scikit-learn's, see `adacos.datasets.paper_folds`.
"""

from __future__ import annotations

import numpy as np

from adacos.typing import Floats, Ints

# Rows that are copied at once.
ROWS_AT_ONCE = 65_536


def stratified_folds(
    X: Floats, y: Floats, n_folds: int, seed: int, groups: Ints | None = None
) -> Ints:
    """Fold number of each row: within each class a shuffled deal, continued from class to class.

    The folds do not depend on the order of the rows. Rows of a group are dealt together, as one row
    of the rarest class among them. Equal rows without a group are dealt like others: where
    covariates have few values, different cases agree, and holding them out together would take
    whole cells (x, y) from the training part and turn the held-out answers around. The smaller of
    two classes limits the number of folds, which is at least two. Of more classes a rare one does
    not: its rows go to different folds, so that two of them are enough to learn of it.
    """
    return folds_of_keys(row_keys(X, seed), y, n_folds, seed, X.shape[1], groups)


def classes_of_groups(groups: Ints, y: Floats) -> tuple[Ints, Floats]:
    """Number of each row's group, 0, 1, …, and the rarest class among the rows of each group."""
    _, number = np.unique(groups, return_inverse=True)
    classes, label, count = np.unique(y, return_inverse=True, return_counts=True)
    by_rarity = np.argsort(-count, kind="stable")
    rank = np.zeros(int(number.max()) + 1, dtype=np.intp)
    np.maximum.at(rank, number, np.argsort(by_rarity)[label])
    return number, classes[by_rarity[rank]]


def row_keys(X: Floats, seed: int) -> Floats:
    """One random projection of each row, by which rows are sorted before they are dealt.

    NaN (unknown) takes part as a value of its own.
    """
    direction = np.random.default_rng(seed).standard_normal(X.shape[1])
    keys = np.empty(len(X))
    for first in range(0, len(X), ROWS_AT_ONCE):
        rows = X[first : first + ROWS_AT_ONCE]
        filled = np.where(np.isnan(rows), 0.5772, rows)
        keys[first : first + ROWS_AT_ONCE] = (filled * direction).sum(axis=1)
    return keys


def folds_of_keys(
    key: Floats, y: Floats, n_folds: int, seed: int, n_columns: int, groups: Ints | None = None
) -> Ints:
    """`stratified_folds` of rows of which only the keys are at hand, made of `n_columns`."""
    if groups is not None:
        number, label = classes_of_groups(groups, y)
        least = np.full(len(label), np.inf)
        np.minimum.at(least, number, key)
        return folds_of_keys(least, label, n_folds, seed, n_columns)[number]
    rng = np.random.default_rng(seed)
    rng.standard_normal(n_columns)  # what `row_keys` drew
    classes = np.unique(y)
    order = []
    for own in classes if len(classes) > 2 else (0.0, 1.0):
        rows = np.flatnonzero(y == own)
        rows = rows[np.argsort(key[rows], kind="stable")]
        order.append(rows[np.argsort(rng.permutation(len(rows)))])
    if len(classes) > 2:
        return _deal(np.concatenate(order), max(min(n_folds, len(y)), 2))
    positive = int(np.sum(y == 1.0))
    return _deal(np.concatenate(order), max(min(n_folds, positive, len(y) - positive), 2))


def shuffled_folds(y: Floats, n_folds: int, seed: int, groups: Ints | None = None) -> Ints:
    """The same where the order of the rows may matter: as many folds as asked for, by y alone."""
    if groups is not None:
        number, label = classes_of_groups(groups, y)
        return shuffled_folds(label, n_folds, seed)[number]
    return _deal(np.lexsort((np.random.default_rng(seed).random(len(y)), y)), n_folds)


def _deal(order: Ints, n_folds: int) -> Ints:
    """Rows dealt in turn, in this order."""
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def drawn_rows(y: Floats, most: int, seed: int) -> Ints:
    """About `most` rows, drawn within each class; all of them if they are fewer."""
    if len(y) <= most:
        return np.arange(len(y))
    rng = np.random.default_rng(seed)
    parts = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        # A rare class keeps enough rows to be dealt to folds.
        size = max(round(most * len(rows) / len(y)), min(len(rows), 50))
        parts.append(rng.choice(rows, size=size, replace=False))
    return np.sort(np.concatenate(parts))

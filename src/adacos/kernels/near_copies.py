"""Rows that agree in all but one or two columns and in the class, as visits of one patient do.

Different cases hardly share a value of a column with many values. So rows are sorted by one such
column, or by two of them together, and neighbours with the same values are compared in all other
columns. Columns in which they hardly differ, measured by how often any two rows do, are still. Rows
belong together if the class and all columns but one or two are still. What follows from the value
that neighbours share says nothing: a still column counts only if no column of the key puts its
values in order.

A key takes one sort, and one comparison of neighbours in each column.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from adacos.kernels.groups import LEAST_DIFFERING, LEAST_ROWS, LEAST_SHARE, MANY_VALUES, hash_values
from adacos.typing import Bools, Floats, Ints

# Number of the value of each column, in order.
Codes = NDArray[np.int32]

# Columns that may change, and values of a still one that it takes to say something.
_MOST_CHANGING, _LEAST_VALUES = 2, 10
# Columns of many values that rows are sorted by, and neighbours by which a key is judged.
_MOST_KEYS, _MOST_PAIRS = 20, 2_000
# How often classes of different cases would agree so.
_LEVEL = 1e-3


class NearCopies(NamedTuple):
    """How many rows agree with another one, and the positions of the columns that change."""

    rows: int
    changing: tuple[int, ...]


def near_copies(encoded: Floats, y: Floats) -> NearCopies | None:
    """What looks like rows of one case, see above; None where nothing does."""
    number = [np.unique(column, return_inverse=True)[1] for column in (*encoded.T, y)]
    codes = np.column_stack(number).astype(np.int32)
    n, p = encoded.shape
    known = ~np.isnan(encoded)
    count = known.sum(axis=0)
    # Missing values share one code.
    values = codes[:, :p].max(axis=0) + (count == n)
    # How often any two rows differ; the class is the last column.
    differ = 1 - np.array([(np.bincount(code).astype(float) ** 2).sum() for code in number]) / n**2
    found: list[NearCopies] = []
    for key in _keys(np.where(count - values < LEAST_ROWS / 2, 0, values)):
        pairs = _neighbours(codes, known, key)
        if len(pairs) < LEAST_ROWS / 2:
            continue
        same = _same(codes, pairs[:: -(-len(pairs) // _MOST_PAIRS)])
        apart = 1 - same.mean(axis=0)
        changing = np.flatnonzero(apart > LEAST_DIFFERING * differ)
        by_chance = binom.cdf(int((~same[:, p]).sum()), len(same), differ[p])
        if p in changing or by_chance > _LEVEL or not 1 <= len(changing) <= _MOST_CHANGING:
            continue
        still = np.setdiff1d(np.arange(p), [*key, *changing])
        if any(values[k] >= _LEAST_VALUES and not _ordered(codes, key, k) for k in still):
            found.append(_count(codes, changing))
    most = max(found, default=NearCopies(0, ()))
    return most if most.rows >= max(LEAST_ROWS, LEAST_SHARE * n) else None


def _count(codes: Codes, changing: Ints) -> NearCopies:
    """Rows that are equal to another one but for the columns that change."""
    same = hash_values(np.delete(codes, changing, axis=1), 0).sum(axis=1)
    size = np.unique(same, return_counts=True)[1]
    return NearCopies(int(size[size > 1].sum()), tuple(changing.tolist()))


def _keys(values: Ints) -> Iterator[tuple[int, ...]]:
    """Columns that rows are sorted by: those of the most values, alone and two at a time.

    A column in which hardly any rows agree has 0 values here.
    """
    order = np.argsort(-values, kind="stable")[:_MOST_KEYS]
    many = [int(k) for k in np.sort(order) if values[k] >= MANY_VALUES]
    yield from ((k,) for k in many)
    yield from pairwise(many)
    if len(many) > 2:
        yield many[-1], many[0]


def _neighbours(codes: Codes, known: Bools, key: tuple[int, ...]) -> Ints:
    """Pairs of rows with the same known values in the columns of a key, (pairs, 2)."""
    rows = np.flatnonzero(known[:, key].all(axis=1))
    number = np.zeros(len(rows), dtype=np.int64)
    for k in key:
        number = number * (int(codes[:, k].max()) + 1) + codes[rows, k]
    order = np.argsort(number, kind="stable")
    equal = np.flatnonzero(np.diff(number[order]) == 0)
    return np.column_stack([rows[order[equal]], rows[order[equal + 1]]])


def _same(codes: Codes, pairs: Ints) -> Bools:
    """Where the rows of each pair agree, (pairs, columns)."""
    return np.asarray(codes[pairs[:, 0]] == codes[pairs[:, 1]])


def _ordered(codes: Codes, key: tuple[int, ...], k: int) -> bool:
    """Whether a column never falls, or never rises, along a column of the key."""
    for one in key:
        steps = np.diff(codes[np.argsort(codes[:, one], kind="stable"), k])
        if np.all(steps >= 0) or np.all(steps <= 0):
            return True
    return False

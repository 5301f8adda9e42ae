"""Covariates in levels: what a row is when there are too many rows to hold their basis columns.

A categorical covariate has its categories as levels, a numeric one of at most `MOST_LEVELS` values
these values, so that nothing is lost. Any other numeric covariate is cut at half as many quantiles
and half as many places that are equally spaced once mapped (`adacos.models.maps`), those where the
map bends among them. A level is at the mean of its rows, which is also the mean of the mapped
values, since the map is straight on a level. No level spans more than a share h of the range once
mapped, 1/h being MOST_LEVELS / 2 less the bends. Of a function f of the mapped value with
|f''| <= M the sum over the rows of a level is wrong by at most M h² / 8 for each row, since the
deviations from the mean sum to zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.namespace import counted, host, is_tensor, like, namespace
from adacos.models.basis import AdditiveBasis
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Floats, Ints

Codes = NDArray[np.unsignedinteger[Any]]

MOST_LEVELS = 1024


class Cuts(NamedTuple):
    """How a covariate is cut into levels.

    Attributes
    ----------
    at : where one level ends and the next begins, in ascending order; empty if categorical.
    categories : number of categories, 0 if numeric.
    """

    at: Floats
    categories: int = 0

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.categories or len(self.at) + 1

    def codes(self, encoded: Floats) -> Codes:
        """Level of each row from the encoded columns of the covariate; for tensors as int32.

        A value that is missing has the number of levels; in tensors none may be.
        """
        xp = namespace(encoded)
        if self.categories:
            level = encoded.argmax(axis=1)
        else:
            level = xp.searchsorted(like(encoded, self.at), encoded[:, 0])
        if is_tensor(level):
            codes: Codes = level.int()
            return codes
        missing = np.isnan(encoded[:, 0])
        few = self.n_levels + missing.any() <= 256
        found: Codes = np.array(level, dtype=np.uint8 if few else np.uint16)
        found[missing] = self.n_levels
        return found


class LevelSums(NamedTuple):
    """Weight of the rows at each level, and the sum of their values with it."""

    weight: Floats
    value: Floats

    def plus(self, other: LevelSums) -> LevelSums:
        """Sums over the rows of both."""
        return LevelSums(self.weight + other.weight, self.value + other.value)


def cut(kind: str, values: Floats, some: Floats, basis: AdditiveBasis, columns: Ints) -> Cuts:
    """Cuts of the covariate of these encoded columns.

    `values` are its distinct values where they are few and empty where they are not, `some` are
    values of some rows, and `basis` has its range and map.
    """
    if kind == CATEGORICAL:
        return Cuts(np.empty(0), len(columns))
    values, some = values[~np.isnan(values)], some[~np.isnan(some)]
    if 0 < len(values) <= MOST_LEVELS:
        return Cuts((values[:-1] + values[1:]) / 2)
    half, j = MOST_LEVELS // 2, int(columns[0])
    quantiles = np.quantile(some, np.linspace(0, 1, half + 1)[1:-1]) if len(some) else some
    bends = basis.maps.bends(j)
    spaced = basis.grid(j, half - len(bends) + 1)[1:-1]
    return Cuts(np.unique(np.concatenate([quantiles, bends, spaced])))


def level_sums(cuts: Cuts, codes: Codes, encoded: Floats, weight: Floats) -> LevelSums:
    """Sums over some rows at each level of a covariate; missing values have none."""
    n = cuts.n_levels
    own = 0.0 * weight if cuts.categories else weight * encoded[:, 0]
    counts, total = host(counted(codes, weight, n))[:n], host(counted(codes, own, n))[:n]
    return LevelSums(np.asarray(counts, dtype=np.float64), np.asarray(total, dtype=np.float64))


def level_values(cuts: Cuts, sums: LevelSums, low: float, high: float) -> Floats:
    """Encoded values of each level, (levels, encoded columns): the mean of its rows.

    A level without rows is between its ends.
    """
    if cuts.categories:
        return np.eye(cuts.categories)
    ends = np.concatenate([[low], cuts.at, [high]])
    middle = (ends[:-1] + ends[1:]) / 2
    there = sums.weight > 0
    values = np.where(there, sums.value / np.where(there, sums.weight, 1.0), middle)
    # The mean of equal values is rounded.
    return np.asarray(np.clip(values, ends[:-1], ends[1:]))[:, None]

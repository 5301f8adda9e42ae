"""Digests of rows, by which it is noticed that rows have been learned from.

A digest is the 64-bit hash of an encoded row after a salt. No value can be read off it, but whoever
holds the model holds the salt too and can try rows: a digest hides a row as well as there are many
rows that it might be. The salt follows from the seed and the rows, so that fits are reproducible
and the digests of two models do not reveal that they share a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from adacos.typing import Floats

# Rows that were not learned from are taken for such that were about this often.
FALSE_ALARMS = 1e-3
# Rows that are copied at once.
ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, eq=False)
class RowDigests:
    """Digests of the rows of a table, in ascending order.

    Attributes
    ----------
    salt : what every row is hashed after.
    digests : one for each row.
    """

    salt: str
    digests: NDArray[np.uint64]

    @classmethod
    def of(cls, encoded: Floats, seed: int) -> Self:
        """Digests of encoded rows, in which NaN is a value like others."""
        salt = salt_of(hashed(encoded, ""), seed)
        return cls(salt, np.sort(hashed(encoded, salt)))

    def found(self, encoded: Floats) -> tuple[int, bool]:
        """How many of these rows are in the table, and whether that is more than chance.

        If neither sample knew of the other, equal rows of both together are dealt to them at
        random. A value that occurs g times then lies in both samples with the probability
        1 - q^g - (1 - q)^g, q being the share of the table's rows among all. The number of such
        values is held against a binomial of the same mean, whose tail is the heavier one
        (Hoeffding 1956). So equal rows count as a sign as far as they lie in both samples more
        often than within one of them.
        """
        other = hashed(encoded, self.salt)
        n, m = len(self.digests), len(other)
        values, size = np.unique(np.concatenate([self.digests, other]), return_counts=True)
        repeated = size > 1
        values, size = values[repeated], size[repeated]
        in_table, in_other = np.isin(values, self.digests), np.isin(values, other)
        both = int(np.sum(in_table & in_other))
        count = int(np.sum(np.isin(other, self.digests)))
        if both == 0:
            return count, False
        share = n / (n + m)
        chance = float(np.mean(1 - share**size - (1 - share) ** size))
        return count, bool(binom.sf(both - 1, len(size), chance) < FALSE_ALARMS)


def trained_among(digests: RowDigests | None, encoded: Floats) -> int:
    """How many of these encoded rows are training rows; 0 if no more than by chance.

    Without digests of training rows that cannot be known, and none counts as one.
    """
    if digests is None:
        return 0
    count, beyond_chance = digests.found(encoded)
    return count if beyond_chance else 0


def salt_of(plain: NDArray[np.uint64], seed: int) -> str:
    """The salt of a table, from the digests of its rows without one."""
    return blake2b(f"{seed}:".encode() + np.sort(plain).tobytes(), digest_size=16).hexdigest()


def hashed(encoded: Floats, salt: str) -> NDArray[np.uint64]:
    """Digest of each encoded row after a salt."""
    # Zero has two signs and NaN many bit patterns; adding 0.0 leaves one zero.
    start = blake2b(salt.encode(), digest_size=8)
    result = np.empty(len(encoded), dtype="<u8")
    for first in range(0, len(encoded), ROWS_AT_ONCE):
        some = encoded[first : first + ROWS_AT_ONCE]
        rows = np.ascontiguousarray(np.where(np.isnan(some), np.nan, some) + 0.0, dtype="<f8")
        for i, row in enumerate(rows, start=first):
            state = start.copy()
            state.update(row.tobytes())
            result[i] = int.from_bytes(state.digest(), "little")
    return result.astype(np.uint64)

"""What a table holds, learned piece by piece: the encoder of rows that are never all in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.tables.categories import kept_categories
from adacos.tables.column_values import column_values
from adacos.tables.encoder import TableEncoder, check_extremes, refuse_empty
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC


class ColumnScan(NamedTuple):
    """What some rows show of a column.

    Attributes
    ----------
    rows, missing : how many rows there are, and how many of them have no value.
    text : whether it holds text.
    values, counts : its distinct values in order and how often each occurs; None where there are
        more numbers than were asked for.
    low, high : range of the numbers.
    """

    rows: int
    missing: int
    text: bool
    values: NDArray[Any] | None
    counts: Any
    low: float
    high: float

    def plus(self, other: ColumnScan, most: int) -> ColumnScan:
        """What the rows of both show, with at most that many distinct numbers."""
        values, counts = None, None
        levels, more = (self.values, self.counts), (other.values, other.counts)
        if levels[0] is not None and more[0] is not None:
            values, place = np.unique(np.append(levels[0], more[0]), return_inverse=True)
            counts = np.bincount(place, np.append(levels[1], more[1]))
        if not self.text and values is not None and len(values) > most:
            values, counts = None, None
        return ColumnScan(
            self.rows + other.rows,
            self.missing + other.missing,
            self.text or other.text,
            values,
            counts,
            min(self.low, other.low),
            max(self.high, other.high),
        )


def scan(table: Any, names: tuple[str, ...], most: int) -> list[ColumnScan]:
    """What the rows of a validated table show of each column."""
    found = []
    for position, name in enumerate(names):
        values = column_values(table, position, name)
        text = values.dtype.kind == "U"
        known = values[values != "" if text else ~np.isnan(values)]
        n_missing = len(values) - len(known)
        distinct, counts = np.unique(known, return_counts=True)
        many = not text and len(distinct) > most
        low, high = np.inf, -np.inf
        if not text and len(known):
            low, high = float(known.min()), float(known.max())
        found.append(
            ColumnScan(
                len(values),
                n_missing,
                text,
                None if many else distinct,
                None if many else counts,
                low,
                high,
            )
        )
    return found


def encoder_of(scans: list[ColumnScan], names: tuple[str, ...]) -> TableEncoder:
    """The encoder that `TableEncoder.fit` makes of the rows that were scanned."""
    kinds, categories, frequencies, grouped = [], [], [], []
    low, high = [], []
    for own, name in zip(scans, names, strict=True):
        refuse_empty(np.empty(own.rows - own.missing), name)
        if own.text:
            assert own.values is not None
            levels, shares, rare = kept_categories(own.values, own.counts, name)
            kinds.append(CATEGORICAL if len(levels) > 1 else CONSTANT)
            categories.append(levels)
            frequencies.append(shares)
            grouped.append(rare)
            ends = np.nan, np.nan
        else:
            ends = own.low, own.high
            check_extremes(*ends, name)
            distinct = 3 if own.values is None else len(own.values)
            kinds.append((CONSTANT, BINARY, NUMERIC)[min(distinct, 3) - 1])
            categories.append(())
            frequencies.append(np.empty(0))
            grouped.append(())
        low.append(ends[0])
        high.append(ends[1])
    width = [max(len(levels), 1) for levels in categories]
    return TableEncoder(
        names=names,
        kinds=tuple(kinds),
        categories=tuple(categories),
        frequencies=tuple(frequencies),
        low=np.array(low),
        high=np.array(high),
        source=np.repeat(np.arange(len(names)), width),
        grouped=tuple(grouped) if any(grouped) else (),
    )

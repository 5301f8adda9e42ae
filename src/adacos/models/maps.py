"""Monotone maps that give crowded values of a covariate their share of the knots.

Splines have equally spaced knots over the range of a covariate. Where a tail is heavy, or one value
is a typing error, most of the range holds hardly a row, and nearly all rows share one interval.
Such a covariate is mapped first: u = t(x) is monotone, piecewise linear, and takes the range onto
itself, so that knots and ranges are the same before and after.

With x = Q(z) the value at normal score z, the slope of t follows from

    du/dz = (dQ/dz)^(1 - w):    w = 0 leaves the values as they are, w = 1 makes normal scores.

The weight w grows with the excess share of rows in one interval. Of `PARTS` equal parts of the
range, a is the largest share of rows in one, and b that for the normal scores; a single value that
is frequent is not counted. The excess (a - b) / (most - b) is zero for a normal covariate of any
number of rows, negative for a uniform one, and one where a single value is far from all others.
Up to an excess of `LIGHT` the covariate is left exactly as it is, and w rises to `MOST` at `HEAVY`:
scores that keep a little of the values lose half as much where an effect is linear in the values.
Labels play no part, so that out-of-fold rows stay unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from adacos.kernels.namespace import interpolate, namespace
from adacos.tables.kinds import NUMERIC
from adacos.typing import Floats, Ints

# Points of a map, equally spaced in normal scores: between them it is straight.
POINTS = 33
# Equal parts of the range, and how often they are laid out anew to find the fullest of all.
PARTS, LAYOUTS = 7, 4
# Excess share up to which values are left as they are and from which on w is highest, and that w.
LIGHT, HEAVY, MOST = 0.35, 0.6, 0.9


@dataclass(frozen=True)
class MonotoneMaps:
    """Maps of some encoded columns onto their own ranges; the other columns stay as they are.

    Attributes
    ----------
    columns : (maps,) encoded columns that are mapped, in ascending order.
    values : (maps, POINTS) ascending values of each, the last repeated where they are fewer.
    mapped : (maps, POINTS) what they become. Beyond the ends it is constant.
    """

    columns: Ints
    values: Floats
    mapped: Floats

    @classmethod
    def none(cls) -> Self:
        """No column is mapped."""
        return cls(np.empty(0, dtype=np.intp), np.empty((0, POINTS)), np.empty((0, POINTS)))

    def check(self) -> None:
        """Refuse maps whose parts do not fit each other, as a foreign file may hold them."""
        points = self.values, self.mapped
        if not (
            self.columns.ndim == 1
            and (np.diff(self.columns, prepend=-1) > 0).all()
            and all(part.shape == (len(self.columns), POINTS) for part in points)
            and all(np.isfinite(part).all() and (np.diff(part) >= 0).all() for part in points)
        ):
            raise ValueError("the parts of the maps do not fit each other")

    def _of(self, column: int) -> int | None:
        place = int(np.searchsorted(self.columns, column))
        found = place < len(self.columns) and int(self.columns[place]) == column
        return place if found else None

    def column(self, values: Floats, column: int) -> Floats:
        """Values of one encoded column, mapped."""
        place = self._of(column)
        if place is None:
            return values
        mapped: Floats = interpolate(values, self.values[place], self.mapped[place])
        return mapped

    def rows(self, encoded: Floats, columns: Ints) -> Floats:
        """Rows of these encoded columns, mapped; as they are where none is."""
        places = np.flatnonzero(np.isin(columns, self.columns))
        if len(places) == 0:
            return encoded
        encoded = namespace(encoded).asarray(encoded, copy=True)
        for place in places.tolist():
            encoded[:, place] = self.column(encoded[:, place], int(columns[place]))
        return encoded

    def back(self, mapped: Floats, column: int) -> Floats:
        """Values of one encoded column that become these."""
        place = self._of(column)
        if place is None:
            return mapped
        return np.asarray(np.interp(mapped, self.mapped[place], self.values[place]))

    def bends(self, column: int) -> Floats:
        """Values inside the range where the slope of a column's map changes."""
        place = self._of(column)
        return np.empty(0) if place is None else np.unique(self.values[place])[1:-1]


def fit_maps(
    encoded: Floats,
    weight: Floats,
    source: Ints,
    kinds: tuple[str, ...],
    low: Floats,
    high: Floats,
) -> MonotoneMaps:
    """Maps of the numeric columns that need one, from the observed values of some rows.

    `low` and `high` are the ends of the encoded columns, which other rows may reach.
    """
    columns, values, mapped = [], [], []
    for j, covariate in enumerate(source.tolist()):
        if kinds[covariate] != NUMERIC:
            continue
        observed = ~np.isnan(encoded[:, j]) & (weight > 0)
        points = _map(encoded[observed, j], weight[observed], float(low[j]), float(high[j]))
        if points is not None:
            columns.append(j)
            values.append(points[0])
            mapped.append(points[1])
    if not columns:
        return MonotoneMaps.none()
    return MonotoneMaps(np.array(columns, dtype=np.intp), np.array(values), np.array(mapped))


def _map(column: Floats, rows: Floats, low: float, high: float) -> tuple[Floats, Floats] | None:
    """Points of the map of one column, or None where its values are to stay as they are."""
    places, number = np.unique(np.append(column, [low, high]), return_inverse=True)
    inside = (places >= low) & (places <= high)
    counts = np.bincount(number, np.append(rows, [0.0, 0.0]))[inside].astype(np.float64)
    places = places[inside]
    if len(column) == 0 or len(places) < 3:
        return None
    scores = _scores(counts)
    excess = excess_share(places, scores, counts)
    if excess <= LIGHT:
        return None
    weight = MOST * min((excess - LIGHT) / (HEAVY - LIGHT), 1.0)
    grid = np.linspace(scores[0], scores[-1], POINTS)
    some = np.unique(np.searchsorted(scores, grid).clip(max=len(scores) - 1))
    some[-1] = len(scores) - 1
    value, score = places[some], scores[some]
    slope = np.diff(value) / np.diff(score)
    mapped = np.append(0.0, np.cumsum((slope / slope.max()) ** (1.0 - weight) * np.diff(score)))
    mapped = low + mapped * ((high - low) / mapped[-1])
    mapped[-1] = high
    fill = (0, POINTS - len(value))
    return np.pad(value, fill, mode="edge"), np.pad(mapped, fill, mode="edge")


def _scores(counts: Floats) -> Floats:
    """Normal score of each value in ascending order, at the middle of its rows.

    An end that no row has lies as far out as half a row would.
    """
    total = float(counts.sum())
    end = 0.25 / max(total, len(counts))
    return np.asarray(ndtri(np.clip((np.cumsum(counts) - 0.5 * counts) / total, end, 1.0 - end)))


def excess_share(values: Floats, scores: Floats, counts: Floats) -> float:
    """Excess share of rows in the fullest part of the range, over that for the normal scores.

    Parameters
    ----------
    values : different values, in ascending order.
    scores : normal score of each.
    counts : weight of the rows that have each.

    Returns
    -------
    float
        At most one; see the head of the module.
    """
    fullest, expected = _fullest(values, counts), _fullest(scores, counts)
    slack = 1.0 - counts.max() / counts.sum() - expected
    return (fullest - expected) / slack if slack > 1e-9 else 0.0


def _fullest(places: Floats, counts: Floats) -> float:
    """Largest share of rows in one of the equal parts of a range, but its most frequent value."""
    share, most = (places - places[0]) / (places[-1] - places[0]) * PARTS, 0.0
    for layout in range(LAYOUTS):
        part = (share + layout / LAYOUTS).astype(np.intp)
        alone = np.zeros(PARTS + 1)
        np.maximum.at(alone, part, counts)
        rows = np.bincount(part, counts, minlength=PARTS + 1) - alone
        most = max(most, float(rows.max()))
    return most / float(counts.sum())

"""Training rows on their way along a sequence, each as far as it has values.

Rows that have the values of a set are others than the rows of the table: values may be missing more
often in one class, or where other values make the answer clear. So each row that has the values of
S_i+1 represents the rows of S_i that are like it: its weight is divided by the share of these that
have them too,

    w_r,i+1 = w_ri / P( has S_i+1 | has S_i, class, log-odds at S_i ).

The shares are counted, within each class, in groups of rows of similar log-odds. A group of which
hardly any row has the values is represented by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adacos.kernels.class_risk import log_loss
from adacos.models.sequences import SetSequence
from adacos.typing import Bools, Floats, Ints

# Rows with the values in one group on average, and groups of a class at most.
_ROWS_IN_GROUP, _MOST_GROUPS = 30, 8
# Rows of a group that must have the values, and their least share of the group.
_LEAST_ROWS, _LEAST_SHARE = 5, 0.05


@dataclass(frozen=True, eq=False)
class FollowedRows:
    """Training rows, each followed along a sequence as far as it has values.

    Attributes
    ----------
    log_odds : (rows, sets) by models that did not see the row; (rows, sets, K - 1) for K > 2.
    y, weight : their classes, and how often each counts.
    first : number of the first set whose own model the log-odds are of.
    there : (rows, covariates) which values a row has; None where all rows are complete.
    """

    log_odds: Floats
    y: Floats
    weight: Floats
    first: int = 0
    there: Bools | None = None

    def weights_along(self, sequence: SetSequence, last: int) -> Floats:
        """How often each row counts at the sets up to the last, (rows, sets).

        0 where a value of the set is missing, and at all sets from one on at which nobody
        represents a class. Sets before the first of `first` are as that one.
        """
        if self.there is None:
            return np.repeat(self.weight[:, None], last + 1, axis=1)
        entry = np.maximum(sequence.rank - sequence.n_free + 1, 0)
        n_sets = np.where(self.there, last + 1, entry).min(axis=1)
        weights, first = np.zeros((len(self.y), last + 1)), min(self.first, last)
        none = np.zeros(len(self.y))
        weights[:, : first + 1] = self._passed_on(self.weight, n_sets > first, none)[:, None]
        for i in range(first, last):
            place = log_loss(self.log_odds[:, i], self.y)
            weights[:, i + 1] = self._passed_on(weights[:, i], n_sets > i + 1, place)
        return weights

    def _passed_on(self, weight: Floats, has: Bools, place: Floats) -> Floats:
        """Weights where the rows that have a set stand for those like them that do not."""
        counted = weight > 0
        if has[counted].all():
            return weight
        group, number = np.zeros(len(weight), dtype=np.intp), 0
        classes = []
        for label in np.unique(self.y[counted]):
            rows = np.flatnonzero(counted & (self.y == label))
            n_groups = int(np.clip(has[rows].sum() // _ROWS_IN_GROUP, 1, _MOST_GROUPS))
            group[rows] = number + _nearby(place[rows], n_groups)
            classes.append(slice(number, number + n_groups))
            number += n_groups
        every, kept = np.bincount(group, weight, number), np.bincount(group, weight * has, number)
        rows_kept, rows_gone = (np.bincount(group, counted & rows, number) for rows in (has, ~has))
        enough = (rows_kept >= _LEAST_ROWS) & (kept >= _LEAST_SHARE * every)
        factor = np.divide(every, kept, out=np.zeros_like(every), where=enough & (kept > 0))
        factor[(rows_kept > 0) & (rows_gone == 0)] = 1.0
        if not all(factor[own].any() for own in classes):
            return np.zeros_like(weight)
        return np.asarray(np.where(has, weight * factor[group], 0.0))


def _nearby(place: Floats, n_groups: int) -> Ints:
    """Number of the group of each row, by rank of its place; rows of one place are together."""
    _, level, count = np.unique(place, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - count / 2) / len(place)
    return np.asarray((rank * n_groups).astype(np.intp)[level])


def estimated_after(now: Floats, following: Floats, after: Floats, expected: Floats) -> Floats:
    """Cost of rows after a step, such that its mean is that of all rows that take the step.

    Where a row is followed, what it cost counts for the rows that it represents too, against what
    was expected of them; for a row without the value the expectation is used:

        expected + f (after - expected),   f = following / now, 0 where the row is not followed.

    The mean is right where the weights are, and also where the expectation is.
    """
    share = np.divide(following, now, out=np.zeros_like(now), where=now > 0)
    return np.asarray(share * after + (1.0 - share) * expected)

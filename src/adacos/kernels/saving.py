"""What an acquisition is expected to save when the probability is kept, and whether that pays.

A row at log-odds u that is about to learn a normal amount of standard deviation σ, its probability
kept (`adacos.kernels.martingale`), expects to save V(u, σ) = r(u) - E[r(u')] of Bayes risk, with
u' ~ N(coherent_mean(u, σ), σ²). Two facts spare most of the integrals, whatever the costs:

- V grows with σ. The distribution functions of two such u' cross once, and their probabilities have
  the same mean, so that those of the larger σ are larger in convex order; r is concave in the
  probability.
- V falls with the distance of u from the threshold u*, on either side. A larger mean at the same σ
  moves every u' up, so that E[r], as a function of the probability, has a slope between C11 - C01
  and C10 - C00; r has the second left of u* and the first right of it.

So the values of V at two corners of a cell of a grid bound V inside it. `Savings` decides by
these bounds, and evaluates the integrals for what they leave open. With more decisions than two
there are several thresholds, and the integrals are evaluated.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk
from adacos.kernels.decisions import Pieces, pieces
from adacos.kernels.martingale import coherent_mean
from adacos.typing import Bools, Floats, Ints

# The grid: log-odds at equal steps from the threshold, standard deviations at equal ratios.
_STEP, _STEPS = 1 / 24, 240
_SMALLEST, _RATIO, _LEVELS = 1e-3, 2 ** (1 / 48), 720
# E[r] is computed to 2e-6 of the cheaper error and the probability kept to 4e-6 of the smaller one;
# that is allowed for twice, at the corner and at the row.
_ACCURACY = 1e-5
# With fewer cells bounds take longer than integrals.
_FEW = 512
# Rows whose cells are held in memory at once.
_ROWS_AT_ONCE = 2048


def kept_risk(log_odds: npt.ArrayLike, sigma: npt.ArrayLike, matrix: npt.ArrayLike) -> Floats:
    """Expected Bayes risk after an acquisition that keeps the probability; arrays broadcast."""
    return kept_moments(log_odds, sigma, matrix)[1]


def kept_moments(
    log_odds: npt.ArrayLike, sigma: npt.ArrayLike, matrix: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Mean of the log-odds after such an acquisition, and the Bayes risk expected there."""
    now = np.asarray(log_odds, dtype=float)
    mean = coherent_mean(now, sigma)
    expected = expected_bayes_risk(mean, sigma, matrix, positive=expit(now))
    # Jensen holds to the accuracy of the two kernels; where nothing is to be learned they would
    # otherwise make a difference of 1e-6 of the costs.
    return mean, np.minimum(expected, bayes_risk(now, matrix))


def _is_worthwhile(log_odds: Floats, sigma: Floats, cost: Floats, matrix: npt.ArrayLike) -> Bools:
    future = cost + kept_risk(log_odds, sigma, matrix)
    return np.asarray(future < bayes_risk(log_odds, matrix))


class _Grid:
    """Savings at the points of the grid for one matrix, by level of σ and step of the log-odds.

    A level is computed once it was asked for as often as it has points. Until then the next known
    levels below and above it are as good bounds, though wider ones.
    """

    def __init__(self, matrix: Floats, threshold: float) -> None:
        self.matrix, self.threshold = matrix, threshold
        slopes = abs(matrix[1, 0] - matrix[0, 0]), abs(matrix[1, 1] - matrix[0, 1])
        self.margin = _ACCURACY * max(slopes)
        # The first and the last level stand for σ = 0 and ∞, the outer steps for infinite log-odds.
        self.saving = np.zeros((_LEVELS + 2, 2 * _STEPS + 3))
        self.saving[-1] = np.inf
        self.asked = np.zeros(_LEVELS + 2, dtype=np.intp)
        self.known = np.isin(np.arange(_LEVELS + 2), [0, _LEVELS + 1])
        self._point_to_known()

    def steps(self, log_odds: Floats) -> tuple[Ints, Ints]:
        """The steps around log-odds: the one nearer to the threshold and the farther one."""
        distance = (log_odds - self.threshold) / _STEP
        side = np.where(distance < 0, -1, 1)
        near = side * np.minimum(np.abs(distance), _STEPS).astype(np.intp) + (_STEPS + 1)
        return near, near + side

    def settle_rows(self, near: Ints, far: Ints, sigma: Floats, cost: Floats) -> tuple[Bools, Ints]:
        """Rows for which some acquisition pays for certain, and those for which it is open.

        Standard deviations of an acquisition hardly differ between rows: the least and the largest
        stand for all.
        """
        low, high = self._level(sigma.min(axis=0)), self._level(sigma.max(axis=0)) + 1
        self._learn(np.append(low, high), len(near))
        certain = self.saving[self.below[low]] - self.margin > cost[:, None]
        possible = self.saving[self.above[high]] + self.margin > cost[:, None]
        gain = certain.any(axis=0)[far]
        return gain, np.flatnonzero(possible.any(axis=0)[near] & ~gain)

    def settle_cells(
        self, near: Ints, far: Ints, sigma: Floats, cost: Floats
    ) -> tuple[Bools, Bools]:
        """Cells (rows, acquisitions) that pay for certain, and those that possibly do."""
        level = self._level(sigma)
        count = np.bincount(level.ravel(), minlength=_LEVELS + 1)
        self._learn(np.arange(_LEVELS + 2), np.append(count, 0) + np.append(0, count))
        flat, width = self.saving.ravel(), self.saving.shape[1]
        low, high = self.below[level] * width, self.above[level + 1] * width
        certain = flat.take(low + far[:, None]) - self.margin > cost
        possible = flat.take(high + near[:, None]) + self.margin > cost
        return certain, possible

    def _level(self, sigma: Floats) -> Ints:
        """The level at or below each standard deviation."""
        scale = 1 / np.log(_RATIO)
        level = np.log(np.maximum(sigma, 1e-300)) * scale + (1 - np.log(_SMALLEST) * scale)
        return np.asarray(np.clip(level, 0, _LEVELS), dtype=np.intp)

    def _learn(self, levels: Ints, times: Ints | int) -> None:
        """Compute levels that were asked for often enough, counting these."""
        np.add.at(self.asked, levels, times)
        new = np.flatnonzero(~self.known & (self.asked >= self.saving.shape[1]))
        if len(new):
            nodes = self.threshold + _STEP * np.arange(-_STEPS, _STEPS + 1)
            sigma = _SMALLEST * _RATIO ** (new[:, None] - 1.0)
            risk = bayes_risk(nodes, self.matrix)
            self.saving[new, 1:-1] = risk - kept_risk(nodes, sigma, self.matrix)
            self.known[new] = True
            self._point_to_known()

    def _point_to_known(self) -> None:
        """For each level, the next known one at or below it, and at or above it."""
        number = np.arange(len(self.known))
        self.below = np.maximum.accumulate(np.where(self.known, number, 0))
        above = np.where(self.known, number, len(number) - 1)
        self.above = np.minimum.accumulate(above[::-1])[::-1]


class Savings:
    """What acquisitions save at fixed misclassification costs C[y, label].

    Whoever decides by these costs keeps one: it learns bounds from what it is asked. Threads may
    share it, because bounds change no answer.
    """

    def __init__(self, matrix: npt.ArrayLike) -> None:
        self.matrix = np.asarray(matrix, dtype=float)

    @cached_property
    def _pieces(self) -> Pieces:
        return pieces(self.matrix)

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid(self.matrix[:, self._pieces.columns], self._pieces.cuts[0])

    def any_worthwhile(self, log_odds: Floats, sigma: Floats, cost: Floats) -> Bools:
        """Whether some acquisition has cost + kept_risk < risk now, for each row.

        The answer is that of the integrals, in every case: bounds decide only where they leave more
        room than the integrals err.

        Parameters
        ----------
        log_odds : (rows,) now.
        sigma : (rows, acquisitions) standard deviation of what is learned.
        cost : (rows, acquisitions), or (1, acquisitions) where it is the same for all rows.
        """
        matrix = self.matrix
        if sigma.size < _FEW:
            return np.asarray(_is_worthwhile(log_odds[:, None], sigma, cost, matrix).any(axis=1))
        if len(self._pieces.cuts) != 1:
            return self._by_integrals(log_odds, sigma, cost)
        grid = self._grid
        near, far = grid.steps(log_odds)
        gain, unsettled = np.zeros(len(log_odds), dtype=np.bool_), np.arange(len(log_odds))
        if len(cost) == 1:
            gain, unsettled = grid.settle_rows(near, far, sigma, cost[0])
        for first in range(0, len(unsettled), _ROWS_AT_ONCE):
            rows = unsettled[first : first + _ROWS_AT_ONCE]
            own = cost if len(cost) == 1 else cost[rows]
            certain, possible = grid.settle_cells(near[rows], far[rows], sigma[rows], own)
            gain[rows] = certain.any(axis=1)
            row, acquisition = np.nonzero(possible & ~gain[rows, None])
            price = own[0, acquisition] if len(cost) == 1 else own[row, acquisition]
            yes = _is_worthwhile(log_odds[rows[row]], sigma[rows[row], acquisition], price, matrix)
            gain[rows[row[yes]]] = True
        return gain

    def _by_integrals(self, log_odds: Floats, sigma: Floats, cost: Floats) -> Bools:
        """The same without bounds, in turn for the acquisitions of rows that are still open."""
        gain, price = np.zeros(len(log_odds), dtype=np.bool_), np.broadcast_to(cost, sigma.shape)
        for j in range(sigma.shape[1]):
            rows = np.flatnonzero(~gain)
            gain[rows] = _is_worthwhile(log_odds[rows], sigma[rows, j], price[rows, j], self.matrix)
        return gain

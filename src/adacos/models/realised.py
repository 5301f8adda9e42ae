"""What continuing did for out-of-fold rows, compared with what it was expected to do.

`adacos.models.dynamic` believes its forecast: a normal one, of log-odds that say all that matters.
The training rows show what came instead. Row r has log-odds u_ri at every set, by models that did
not see it, and a class y_r. From the last set back, with label_i the best label at u_ri,

    G_ri = c_i,i+1 + ( G_r,i+1 if the row continues from S_i+1, else C[y_r, label_i+1] )

is what continuing from S_i cost it, so that C[y_r, label_i] - G_ri is what it saved. The saving
that was expected at u_ri is corrected by the mean difference among rows of similar log-odds: first
among many of them, then among fewer what is left. Of n rows a mean m with standard error s counts

    m max(0, 1 - e² / m²),   e² = (LIMIT s)² + (D / n)²,

with D the most expensive error, which a standard error does not see before it happens: nothing
within e counts, and all of it where rows are many. Rows decide from S_i+1 on by expectations that
are corrected already. Rows with missing values are followed as far as they have them, see
`adacos.models.followed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from adacos.costs import CostTable
from adacos.kernels.class_risk import best_label
from adacos.models.followed import estimated_after
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Floats

# Rows of similar log-odds: standard deviations of their distance, in shares of all rows.
WIDTHS = (np.inf, 0.5, 0.2, 0.1)
# Standard errors that a difference must exceed.
LIMIT = 2.0
# Rows of similar log-odds are grouped into at most this number of cells.
_CELLS = 200


@dataclass(frozen=True, eq=False)
class Similar:
    """What of a correction does not depend on costs: how often rows count, and which are alike.

    Attributes
    ----------
    weight : how often each row counts at each set, (rows, sets).
    near : which rows are alike, by number of the set.
    """

    weight: Floats
    near: dict[int, Nearness] = field(default_factory=dict)


class Nearness:
    """Rows of similar log-odds, in cells, and how near cells are to each other and to a grid.

    Nearness is counted in ranks. Precision is that of the rows, however many each represents.
    """

    def __init__(self, place: Floats, weight: Floats) -> None:
        self.weight = weight
        self.levels, number = np.unique(place, return_inverse=True)
        count = np.bincount(number, weight)
        self.rank = (np.cumsum(count) - count / 2) / count.sum()
        _, self.cell = np.unique((self.rank * _CELLS).astype(np.intp)[number], return_inverse=True)
        self.count = np.bincount(self.cell, weight)
        self.squared = np.bincount(self.cell, weight**2)
        self.center = np.bincount(self.cell, weight * self.rank[number]) / self.count
        self._grid: Floats | None = None
        self._near: tuple[tuple[Floats, Floats, Floats], ...] = ()
        own = [self._kernel(self.center, width) for width in WIDTHS]
        self._own = tuple((near, near**2) for near in own)

    def to(self, grid: Floats) -> tuple[tuple[Floats, Floats, Floats], ...]:
        """How near each cell is to every cell and then to every log-odds of a grid, by width.

        With it the sums of what is near, and the number of rows that these are worth.
        """
        if self._grid is None or not np.array_equal(grid, self._grid):
            points, found = np.interp(grid, self.levels, self.rank), []
            for (own, square), width in zip(self._own, WIDTHS, strict=True):
                new = self._kernel(points, width)
                near = np.concatenate([own, new])
                size = np.asarray(near @ self.count, dtype=np.float64)
                n_rows = size**2 / (np.concatenate([square, new**2]) @ self.squared)
                found.append((near, size, n_rows))
            self._near, self._grid = tuple(found), grid
        return self._near

    def _kernel(self, points: Floats, width: float) -> Floats:
        if width == np.inf:
            return np.ones((len(points), len(self.center)))
        return np.exp(-0.5 * ((points[:, None] - self.center) / width) ** 2)


def realised_correction(
    model: SequenceModel,
    costs: CostTable,
    matrix: Floats,
    grid: Floats,
    gain: Floats,
    similar: Similar | None = None,
) -> Floats:
    """By how much continuing from each set saves more than expected, (sets, grid).

    Parameters
    ----------
    model : sets, and the rows that are followed along them. Sets of which these have no log-odds
        are not corrected.
    costs, matrix : of covariates, and C[y, label].
    grid, gain : log-odds, and the saving expected of continuing at them, (sets, grid).
        The last set is the one that walks end at.
    similar : what was found at other costs, which is added to.
    """
    correction, last = np.zeros_like(gain), len(gain) - 1
    if model.followed is None or len(model.followed.y) == 0:
        return correction
    rows = model.followed
    log_odds, y = rows.log_odds[:, : last + 1], rows.y.astype(np.intp)
    wrong = matrix[y[:, None], best_label(log_odds, matrix)]
    # Nobody can save more than knowing the class would.
    p, beyond_best = expit(grid), matrix - matrix.min(axis=1, keepdims=True)
    most = np.min([(1 - p) * first + p * second for first, second in beyond_best.T], axis=0)
    masks, rank = model.sequence.masks(), model.sequence.rank
    if similar is None:
        similar = similar_rows(model, last)
    weight, after = similar.weight, wrong[:, last]
    for i in range(last - 1, rows.first - 1, -1):
        price = float(costs.of_batch(masks[i + 1 : i + 2], given=masks[i], rank=rank)[0])
        now, following = expit(log_odds[:, i]), weight[:, i + 1]
        left, on = wrong[:, i] - price - after - np.interp(now, p, gain[i]), following > 0
        if on.any():
            if i not in similar.near:
                similar.near[i] = Nearness(log_odds[on, i], following[on])
            found = beyond_noise(similar.near[i], left[on], grid, float(beyond_best.max()))
            correction[i] = np.where(
                found > 0, np.minimum(found, np.maximum(most - price - gain[i], 0)), found
            )
        saving = np.interp(now, p, gain[i] + correction[i])
        after = estimated_after(weight[:, i], following, after, wrong[:, i] - price - saving)
        after = np.where(saving > 0, price + after, wrong[:, i])
    return correction


def similar_rows(model: SequenceModel, last: int) -> Similar:
    """How often the rows of a model count at the sets up to the last; which are alike is open."""
    rows = model.followed
    if rows is None:
        return Similar(np.empty((0, last + 1)))
    return Similar(rows.weights_along(model.sequence, last))


def beyond_noise(near: Nearness, values: Floats, at: Floats, max_error: float) -> Floats:
    """Smooth mean of the values of rows at some log-odds, as far as it is more than noise.

    `max_error` is what one more row may add.
    """
    weight, cell, count = near.weight, near.cell, near.count
    total = np.bincount(cell, weight * values)
    squares = np.bincount(cell, weight * values**2)
    found = np.zeros(len(count) + len(at))
    for kernel, size, n_rows in near.to(at):
        mean = kernel @ total / size
        spread = np.maximum(kernel @ squares / size - mean**2, 0.0)
        noise = LIMIT**2 * spread / np.maximum(n_rows - 1, 1e-9) + (max_error / n_rows) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(mean**2 > noise, mean * (1 - noise / mean**2), 0.0)
        found += part
        own = part[: len(count)]
        squares = squares - 2 * own * total + count * own**2
        total = total - count * own
    return found[len(count) :]

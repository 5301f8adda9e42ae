"""What acquiring one or two covariates would cost, without a model.

A covariate is cut into cells, and each row is answered by the shares of the classes in its cell
among rows of other folds. Two covariates together have a cell for each pair of theirs. It takes no
fit, so that it shows quickly whether a policy asks in an order that costs too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isqrt
from typing import NamedTuple

import numpy as np

from adacos.costs import ROUNDING, CostTable
from adacos.typing import Bools, Floats, Ints

# Cells of a number at most, and rows of each cell at least.
_CELLS, _ROWS = 20, 20
# Covariates that are paired, those of least cost alone.
_PAIRED = 20


class ShortPlan(NamedTuple):
    """One or two covariates for every row.

    Attributes
    ----------
    covariates : which.
    cost, mean : total cost of each row, and its mean.
    compared : how many plans it is the cheapest of.
    """

    covariates: tuple[int, ...]
    cost: Floats
    mean: float
    compared: int


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows whose short plans are compared.

    Attributes
    ----------
    encoded : encoded values, (rows, columns).
    source : the covariate of each column.
    y : numbers of the classes.
    weight : how often each row counts.
    fold : in which each row is held out.
    costs : what covariates and answers cost.
    budget : what a row may pay at most, None for any amount.
    """

    encoded: Floats
    source: Ints
    y: Ints
    weight: Floats
    fold: Ints
    costs: CostTable
    budget: float | None = None

    def cheapest(self, most: int = 2) -> ShortPlan | None:
        """The plan of least mean cost, of one covariate or two; None where none can be paid."""
        alone = {k: self.mean(self.cost((k,))) for k in self.candidates}
        every: dict[tuple[int, ...], float] = {(k,): mean for k, mean in alone.items()}
        kept = sorted(sorted(alone, key=lambda k: alone[k])[: _PAIRED if most > 1 else 0])
        pairs = [pair for pair in combinations(kept, 2) if self._payable(pair)]
        every |= {pair: self.mean(self.cost(pair)) for pair in pairs}
        if not every:
            return None
        best = min(every, key=lambda chosen: every[chosen])
        return ShortPlan(best, self.cost(best), every[best], len(every))

    @property
    def candidates(self) -> list[int]:
        """Covariates that cost something and can be paid: what is free every policy has."""
        return [k for k in range(self._p) if self.costs.covariates[k] > 0 and self._payable((k,))]

    def cost(self, covariates: tuple[int, ...]) -> Floats:
        """Total cost of each row that acquires these and is answered by its cell."""
        cell, known = np.zeros(len(self.y), dtype=np.intp), np.zeros((len(self.y), self._p), bool)
        most = _CELLS if len(covariates) == 1 else isqrt(len(self.y) // _ROWS)
        for k in covariates:
            columns = self.encoded[:, self.source == k]
            own = _cells(columns, most)
            cell = cell * (int(own.max()) + 1) + own
            known[:, k] = ~np.isnan(columns[:, 0])
        return self.costs.of_batch(known) + self._wrong(cell)

    @property
    def _p(self) -> int:
        return len(self.costs.names)

    def mean(self, cost: Floats) -> float:
        """The mean over rows, by their weights."""
        return float(np.average(cost, weights=self.weight))

    def _payable(self, covariates: tuple[int, ...]) -> bool:
        if self.budget is None:
            return True
        wanted: Bools = np.isin(np.arange(self._p), covariates)
        return float(self.costs.of(wanted)) <= self.budget * (1 + ROUNDING)

    def _wrong(self, cell: Ints) -> Floats:
        """Cost of each row's answer by the shares of classes in its cell, in other folds."""
        matrix = self.costs.matrix
        size = int(self.fold.max()) + 1, int(cell.max()) + 1, len(matrix)
        place = np.ravel_multi_index((self.fold, cell, self.y), size)
        count = np.bincount(place, self.weight, int(np.prod(size))).reshape(size)
        # In an empty cell the shares of all rows decide.
        share = np.bincount(self.y, self.weight, len(matrix)) / self.weight.sum()
        label = ((count.sum(axis=0) - count + share) @ matrix).argmin(axis=2)
        return np.asarray(matrix[self.y, label[self.fold, cell]])


def _cells(columns: Floats, most: int) -> Ints:
    """Number of each row's cell: a category, or a share of rows; the last where none is known.

    A number is one column, a category one for each level.
    """
    missing = np.isnan(columns[:, 0])
    if columns.shape[1] > 1:
        cell, n_cells = np.where(missing[:, None], 0, columns).argmax(axis=1), columns.shape[1]
    else:
        n_cells = int(np.clip(len(columns) // _ROWS, 2, max(most, 2)))
        known = columns[~missing, 0]
        cuts = np.quantile(known, np.arange(1, n_cells) / n_cells) if len(known) else known
        # A value of many rows is a cell of its own.
        often = cuts[np.isin(cuts, known.min(initial=np.inf)) | (np.diff(cuts, append=np.inf) == 0)]
        edges = np.unique(np.concatenate([cuts, np.nextafter(often, np.inf)]))
        cell, n_cells = np.searchsorted(edges, columns[:, 0], side="right"), len(edges) + 1
    return np.asarray(np.where(missing, n_cells, cell))

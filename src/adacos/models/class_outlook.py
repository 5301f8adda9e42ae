"""What the later sets hold in store for rows of more than two classes.

As `adacos.models.outlook`, with log-odds that are vectors: after a later set they are normal with a
covariance by the regression of what is still to come, the same for all rows that lack nothing
(that of an average row). What cannot be acquired stays unknown and draws the log-odds together, by
the factor that it has for two classes of the mean variance between two classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.kernels.class_risk import (
    class_bayes_risk,
    pair_variance,
    pairwise_shrink,
    probabilities,
    roots,
)
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.missing import unpolarised
from adacos.models.outlook import WalkState, in_money, log_odds_now, payable
from adacos.models.unavailable import learnable

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


class ClassOutlook(NamedTuple):
    """Log-odds now; per later set, what the regression says of those after it, and its cost.

    Attributes
    ----------
    log_odds : (rows, K - 1) at the set.
    mean : (rows, later sets, K - 1) of the log-odds after each later set by the regression.
    root : `adacos.kernels.class_risk.roots` of their covariance, (later sets, K, K - 1) where it is
        the same for all rows, else with the rows first.
    cost : (rows, later sets) or one row when it is the same for all.
    forecast : what is made of the regression.
    future : (rows, later sets) cost of each plus the Bayes risk expected after it, once evaluated.
    """

    log_odds: Floats
    mean: Floats
    root: Floats
    cost: Floats
    forecast: Forecast
    future: Floats | None = None

    def expected_risk(self, rows: Ints, j: int, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after the j-th later set."""
        root = self.root[j] if self.root.ndim == 3 else self.root[rows, j]
        return self.forecast.class_risk(self.log_odds[rows], self.mean[rows, j], root, matrix)

    def weighed(self, matrix: Floats) -> ClassOutlook:
        """The outlook with all future costs evaluated."""
        rows = np.arange(len(self.log_odds))
        risks = [self.expected_risk(rows, j, matrix) for j in range(self.mean.shape[1])]
        risk = np.stack(risks, axis=1) if risks else np.empty((len(rows), 0))
        return self._replace(future=np.asarray(self.cost + risk))

    def in_money(self, times: float) -> ClassOutlook:
        """The same at the costs as they are, where they were counted so many times."""
        cost, future = in_money(self.cost, self.future, times)
        return self._replace(cost=cost, future=future)

    def some_pays(self, matrix: Floats) -> Bools:
        """Whether some later set is expected to save more than it costs, for each row.

        No set can save more than knowing the class would.
        """
        risk = class_bayes_risk(self.log_odds, matrix)
        most = risk - probabilities(self.log_odds) @ np.diag(matrix)
        cost = np.broadcast_to(self.cost, self.mean.shape[:2])
        gain = np.zeros(len(risk), dtype=np.bool_)
        for j in range(self.mean.shape[1]):
            rows = np.flatnonzero(~gain & (cost[:, j] < most))
            if len(rows):
                gain[rows] = cost[rows, j] + self.expected_risk(rows, j, matrix) < risk[rows]
        return gain


def look_ahead_classes(
    state: WalkState, costs: CostTable, forecast: Forecast = FORECASTS["coherent"]
) -> ClassOutlook:
    """What the rows know at their set and expect of the later ones."""
    i, model = state.stage, state.model
    sequence, basis, size = model.sequence, model.basis, model.intercepts.shape[1]
    log_odds = log_odds_now(state)
    later = len(sequence) - 1 - i
    if later == 0:
        nothing = np.empty((len(log_odds), 0))
        roots_of_none = np.empty((0, size + 1, size))
        return ClassOutlook(log_odds, nothing[..., None], roots_of_none, nothing, forecast)
    masks, rank = sequence.masks(), sequence.rank
    part = state.part.reshape(-1, len(sequence), size)
    fixed = model.intercepts[i + 1 :] + part[:, i + 1 :]
    if state.available is None:
        density = model.densities[i]
        known = density.regressors
        r = (state.encoded[:, known] - basis.mean[known]) / basis.scale[known]
        cost = costs.of(masks[i + 1 :], given=masks[i], rank=rank)
        cost = payable(cost[None, :], state.left)
        mean, root = density.means(r) + fixed, roots(density.variance)
        return ClassOutlook(log_odds, mean, root, cost, forecast)
    found = learnable(model, state.encoded, state.available, i)
    n_functions = found.mean.shape[1] // later
    learned, unknown = (
        unpolarised(variance.reshape(-1, later, n_functions), size)
        for variance in (found.learned, found.unknown)
    )
    mean = found.mean.reshape(-1, later, n_functions)[..., :size]
    shrink = pairwise_shrink(pair_variance(unknown))[..., None]
    reachable = state.available[:, None, :]
    cost = costs.of(masks[i + 1 :] & reachable, given=masks[i] & reachable, rank=rank)
    cost = payable(cost, state.left)
    root = shrink[..., None] * roots(learned)
    return ClassOutlook(log_odds, shrink * (mean + fixed), root, cost, forecast)

"""What going on is worth when one may stop at any set: dynamic programming along the sequence.

AdaCOS weighs "acquire all of S_j, then decide" for each later set j. Who goes on may stop earlier
or later than planned, as the values turn out; that freedom is worth something too. With u the
log-odds at S_i, and those at a later S_j normal with the standard deviation s_ij of the regression
and the mean that keeps the probability (`adacos.kernels.martingale`),

    V_i(u) = min( Bayes risk of u,  min over j > i of  c_ij + E[V_j(u_j) | u] ),

from the last set back. V_i is at most what AdaCOS expects, so that a row that AdaCOS would ask is
asked. Assumed: the log-odds say all that matters of the values behind them, and s_ij is that of an
average row. What the freedom adds, V_j less the Bayes risk, is kept on a grid of log-odds with a
point at the threshold of decision, and its expectation taken by a fixed Gauss-Hermite rule; the
expected Bayes risk itself is that of AdaCOS, in closed form.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.kernels.bayes_risk import bayes_risk, decision_threshold
from adacos.kernels.martingale import coherent_mean
from adacos.models.forecasts import FORECASTS
from adacos.models.sequence_model import SequenceModel

Floats = NDArray[np.float64]

# Log-odds around the threshold of decision; beyond them the values of the end hold.
_AROUND = np.linspace(-14.0, 14.0, 141)
_STEP = float(_AROUND[1] - _AROUND[0])
_POINTS, _MASSES = np.polynomial.hermite_e.hermegauss(15)
_MASSES = _MASSES / _MASSES.sum()
_COHERENT = FORECASTS["coherent"]


class Values(NamedTuple):
    """What each set of a sequence is worth, for given costs.

    Attributes
    ----------
    grid : log-odds.
    freedom : (sets, grid) V_i less the Bayes risk, at most zero.
    gain : (sets, grid) Bayes risk less the value of going on; negative where it does not pay.
    sd : for each set but the last, standard deviation of the log-odds after each later set.
    """

    grid: Floats
    freedom: Floats
    gain: Floats
    sd: tuple[Floats, ...]

    def gain_at(self, stage: int, log_odds: Floats) -> Floats:
        """What going on from a set saves, for each row that lacks nothing."""
        return np.asarray(np.interp(log_odds, self.grid, self.gain[stage]))

    def after(self, now: Floats, sd: Floats, stage: int, matrix: Floats) -> Floats:
        """E[V_j] for the sets after a stage: `now` (rows, 1), `sd` (rows, sets) or one row."""
        expected = _COHERENT.expected_risk(now, now, sd, matrix)
        return expected + _expected(now, sd, self.freedom[stage + 1 :], self.grid)


# Values by model, for the latest costs only.
_FOUND: WeakKeyDictionary[SequenceModel, tuple[bytes, Values]] = WeakKeyDictionary()
_LOCK = Lock()


def stage_values(model: SequenceModel, costs: CostTable, matrix: Floats) -> Values:
    """What each set of a sequence is worth; found once for a model and costs."""
    key = costs.of(model.sequence.masks()).tobytes() + matrix.tobytes()
    with _LOCK:
        found = _FOUND.get(model)
    if found is None or found[0] != key:
        found = (key, _solve(model, costs, matrix))
        with _LOCK:
            _FOUND[model] = found
    return found[1]


def _solve(model: SequenceModel, costs: CostTable, matrix: Floats) -> Values:
    """From the last set back."""
    masks = model.sequence.masks()
    grid = decision_threshold(matrix) + _AROUND
    risk = bayes_risk(grid, matrix)
    freedom = np.zeros((len(masks), len(grid)))
    gain = np.full((len(masks), len(grid)), -np.inf)
    spread = tuple(_typical_sd(model, i) for i in range(len(masks) - 1))
    for i in range(len(masks) - 2, -1, -1):
        cost = costs.of(masks[i + 1 :], given=masks[i])
        # A set that costs as much as could be saved at best is for nobody.
        open_sets = np.flatnonzero(cost < risk.max() - matrix.min())
        if len(open_sets):
            sd = spread[i][None, open_sets]
            after = _COHERENT.expected_risk(grid[:, None], grid[:, None], sd, matrix)
            after = after + _expected(grid[:, None], sd, freedom[i + 1 :][open_sets], grid)
            gain[i] = risk - (cost[open_sets] + after).min(axis=1)
            freedom[i] = np.minimum(-gain[i], 0.0)
    return Values(grid, freedom, gain, spread)


def _expected(now: Floats, sd: Floats, freedom: Floats, grid: Floats) -> Floats:
    """Expectation of what the freedom adds after each set, (rows, sets)."""
    now, sd = np.broadcast_arrays(now, sd)
    after = coherent_mean(now, sd)[..., None] + sd[..., None] * _POINTS
    place = np.clip((after - grid[0]) / _STEP, 0.0, len(grid) - 1.000001)
    left = place.astype(np.intp)
    share = place - left
    sets = np.arange(len(freedom))[:, None]
    low, high = freedom[sets, left], freedom[sets, left + 1]
    return np.asarray((low + share * (high - low)) @ _MASSES)


def _typical_sd(model: SequenceModel, i: int) -> Floats:
    """Standard deviation of the log-odds after each later set, for an average row at S_i."""
    density, gram = model.densities[i], model.moments
    inside = np.append(0, 1 + density.regressors)
    uncertain = float(np.sum(density.inverse * gram[np.ix_(inside, inside)]) / gram[0, 0])
    return np.sqrt(np.maximum(density.variance * (1.0 + uncertain), 0.0))

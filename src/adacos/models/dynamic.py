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
expected Bayes risk itself is that of AdaCOS, in closed form. What going on then saves can be
corrected by what it saved rows left out, see `adacos.models.realised`.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.kernels.bayes_risk import bayes_risk, decision_threshold
from adacos.kernels.namespace import expit, interpolate
from adacos.kernels.saving import kept_moments
from adacos.models.realised import realised_correction
from adacos.models.sequence_model import SequenceModel

Floats = NDArray[np.float64]

# The grid lies around the threshold of decision, where values bend, closer together the nearer to
# it; beyond its ends their values hold.
_CLOSE, _FARTHEST = 0.3, 10.0
_END = float(np.arcsinh(_FARTHEST / _CLOSE))


class Accuracy(NamedTuple):
    """How finely values are computed.

    Attributes
    ----------
    around : grid of log-odds, from the threshold; an odd number, so that it is among them.
    points, masses : Gauss-Hermite rule for a standard normal.
    """

    around: Floats
    points: Floats
    masses: Floats


def _accuracy(n_grid: int, n_rule: int) -> Accuracy:
    points, masses = np.polynomial.hermite_e.hermegauss(n_rule)
    around = _CLOSE * np.sinh(np.linspace(-_END, _END, n_grid))
    return Accuracy(around, points, masses / masses.sum())


FINE = _accuracy(97, 31)
# For models that are only compared with each other.
ROUGH = _accuracy(33, 11)


class Values(NamedTuple):
    """What each set of a sequence is worth, for given costs.

    Attributes
    ----------
    grid : log-odds.
    freedom : (sets, grid) V_i less the Bayes risk, at most zero; as expected, not corrected.
    gain : (sets, grid) Bayes risk less the value of going on; negative where it does not pay.
    correction : (sets, grid) what of the gain rows left out showed, beyond what is expected.
    sd : for each set but the last, standard deviation of the log-odds after each later set.
    accuracy : how finely they were computed.
    """

    grid: Floats
    freedom: Floats
    gain: Floats
    correction: Floats
    sd: tuple[Floats, ...]
    accuracy: Accuracy = FINE

    def gain_at(self, stage: int, log_odds: Floats) -> Floats:
        """What going on from a set saves, for each row that lacks nothing.

        Interpolated in the probability, in which the Bayes risk is piecewise linear.
        """
        gain: Floats = interpolate(expit(log_odds), expit(self.grid), self.gain[stage])
        return gain

    def after(self, now: Floats, sd: Floats, stage: int, matrix: Floats) -> Floats:
        """E[V_j] for the sets after a stage: `now` (rows, 1), `sd` (rows, sets) or one row."""
        mean, risk = kept_moments(now, sd, matrix)
        return risk + _freed(mean, sd, self.freedom[stage + 1 :], self.grid, self.accuracy)

    def shown_at(self, stage: int, log_odds: Floats) -> Floats:
        """What rows left out showed that going on from a set saves beyond that, for each row."""
        return np.asarray(np.interp(expit(log_odds), expit(self.grid), self.correction[stage]))


# Values by model and last set, for the latest costs only.
_FOUND: WeakKeyDictionary[SequenceModel, dict[int, tuple[bytes, Values]]] = WeakKeyDictionary()
_SHOWN: WeakKeyDictionary[SequenceModel, dict[int, tuple[bytes, Floats]]] = WeakKeyDictionary()
_LOCK = Lock()


def stage_values(
    model: SequenceModel,
    costs: CostTable,
    matrix: Floats,
    last: int | None = None,
    accuracy: Accuracy = FINE,
    *,
    realised: CostTable | None = None,
) -> Values:
    """What each set of a sequence up to the last that can be paid is worth.

    `realised` corrects it by what rows left out showed at these costs: where `costs` count
    covariates more than once, the correction stays the same, so that the more they count the less
    it pays to go on. Found once for a model, costs and accuracy.
    """
    last = len(model.sequence) - 1 if last is None else last
    key = model.sequence.costs(costs).tobytes() + matrix.tobytes() + repr(costs.round_cost).encode()
    key += accuracy.around.tobytes()
    if realised is not None:
        key += model.sequence.costs(realised).tobytes()
    with _LOCK:
        found = _FOUND.get(model, {}).get(last)
    if found is None or found[0] != key:
        values = _solve(model, costs, matrix, last, accuracy)
        if realised is not None and last > 0:
            more = _correction(model, realised, matrix, last, accuracy)
            values = values._replace(gain=values.gain + more, correction=more)
        found = (key, values)
        with _LOCK:
            _FOUND.setdefault(model, {})[last] = found
    return found[1]


def _correction(
    model: SequenceModel, costs: CostTable, matrix: Floats, last: int, accuracy: Accuracy
) -> Floats:
    """What rows left out showed beyond the gain expected at these costs, found once for them."""
    key = model.sequence.costs(costs).tobytes() + matrix.tobytes() + accuracy.around.tobytes()
    with _LOCK:
        found = _SHOWN.get(model, {}).get(last)
    if found is None or found[0] != key:
        expected = _solve(model, costs, matrix, last, accuracy)
        found = (key, realised_correction(model, costs, matrix, expected.grid, expected.gain))
        with _LOCK:
            _SHOWN.setdefault(model, {})[last] = found
    return found[1]


def _solve(
    model: SequenceModel, costs: CostTable, matrix: Floats, last: int, accuracy: Accuracy
) -> Values:
    """From the last set back."""
    masks, rank = model.sequence.masks()[: last + 1], model.sequence.rank
    grid = decision_threshold(matrix) + accuracy.around
    risk = bayes_risk(grid, matrix)
    freedom = np.zeros((len(masks), len(grid)))
    gain = np.full((len(masks), len(grid)), -np.inf)
    spread = tuple(_typical_sd(model, i)[: last - i] for i in range(last))
    if last == 0:
        return Values(grid, freedom, gain, np.zeros_like(gain), spread, accuracy)
    # What does not depend on later values, for all pairs of sets at once.
    mean, expected = kept_moments(grid[:, None], np.concatenate(spread)[None, :], matrix)
    end = len(mean[0])
    for i in range(last - 1, -1, -1):
        own = slice(end - (last - i), end)
        end = own.start
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)
        freed = _freed(mean[:, own], spread[i][None, :], freedom[i + 1 :], grid, accuracy)
        after = expected[:, own] + freed
        gain[i] = risk - (cost + after).min(axis=1)
        freedom[i] = np.minimum(-gain[i], 0.0)
    return Values(grid, freedom, gain, np.zeros_like(gain), spread, accuracy)


def _freed(mean: Floats, sd: Floats, freedom: Floats, grid: Floats, accuracy: Accuracy) -> Floats:
    """Expectation of what the freedom adds after each set, (rows, sets)."""
    middle = len(grid) // 2
    away = mean[..., None] + sd[..., None] * accuracy.points - grid[middle]
    place = (np.arcsinh(away / _CLOSE) / _END + 1.0) * middle
    place = np.clip(place, 0.0, len(grid) - 1.000001)
    left = place.astype(np.intp)
    share = place - left
    sets = np.arange(len(freedom))[:, None]
    low, high = freedom[sets, left], freedom[sets, left + 1]
    return np.asarray((low + share * (high - low)) @ accuracy.masses)


def _typical_sd(model: SequenceModel, i: int) -> Floats:
    """Standard deviation of the log-odds after each later set, for an average row at S_i."""
    density, gram = model.densities[i], model.moments
    inside = np.append(0, 1 + density.regressors)
    uncertain = float(np.sum(density.inverse * gram[np.ix_(inside, inside)]) / gram[0, 0])
    return np.sqrt(np.maximum(density.variance * (1.0 + uncertain), 0.0))

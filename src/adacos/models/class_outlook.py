"""What the later sets hold in store for rows of more than two classes.

As `adacos.models.outlook`, with log-odds that are vectors: after a later set they are normal with a
covariance by the regression of what is still to come, the same for all rows that lack nothing
(that of an average row). What cannot be acquired stays unknown and draws the log-odds together, by
the factor that it has for two classes of the mean variance between two classes.

A normal vector promises too much where categories rule a class out: its log-odds there fall by far
more than they can rise elsewhere. So of the saving that is expected that share counts which rows
left out of the models do save, on average over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.kernels.class_risk import (
    class_bayes_risk,
    class_label,
    kept_class_risk,
    pair_variance,
    pairwise_shrink,
    probabilities,
    roots,
)
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.missing import unpolarised
from adacos.models.outlook import WalkState, in_money, log_odds_now, payable
from adacos.models.sequence_model import SequenceModel
from adacos.models.unavailable import learnable

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Rows by which the share of the saving that counts is judged, about.
SHARE_ROWS = 500


class _Places(NamedTuple):
    """The first of each distinct row, and which of these each row is."""

    first: Ints
    of: Ints


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
    shares : by misclassification costs, share of the expected saving that counts, (later sets,);
        None for all of it.
    future : (rows, later sets) cost of each plus the Bayes risk expected after it, once evaluated.
    """

    log_odds: Floats
    mean: Floats
    root: Floats
    cost: Floats
    forecast: Forecast
    shares: Callable[[Floats], Floats] | None = None
    future: Floats | None = None

    def expected_risk(self, rows: Ints, j: int, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after the j-th later set."""
        root = self.root[j] if self.root.ndim == 3 else self.root[rows, j]
        now = self.log_odds[rows]
        after = self.forecast.class_risk(now, self.mean[rows, j], root, matrix)
        if self.shares is None:
            return after
        risk = class_bayes_risk(now, matrix)
        return np.asarray(risk - self.shares(matrix)[j] * (risk - after))

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

    def _repeated(self) -> _Places | None:
        """Where each distinct row stands and which one each row is; None if few are repeated."""
        if self.root.ndim > 3 or len(self.cost) > 1 or len(self.log_odds) < 2:
            return None
        rows = np.hstack([self.log_odds, self.mean.reshape(len(self.mean), -1)])
        # One number for each row sorts faster than the row.
        mixed = rows @ np.sqrt(np.arange(2.0, rows.shape[1] + 2))
        _, first, place = np.unique(mixed, return_index=True, return_inverse=True)
        if 2 * len(first) > len(rows) or not np.array_equal(rows[first[place]], rows):
            return None
        return _Places(first, place)

    def _rows(self, rows: Ints) -> ClassOutlook:
        """The outlook of some rows, where covariance and cost are the same for all."""
        return self._replace(log_odds=self.log_odds[rows], mean=self.mean[rows])

    def some_pays(self, matrix: Floats) -> Bools:
        """Whether some later set is expected to save more than it costs, for each row.

        No set can save more than knowing the class would. Rows that have seen the same categories
        are decided once.
        """
        place = self._repeated()
        if place is not None:
            return self._rows(place.first).some_pays(matrix)[place.of]
        risk = class_bayes_risk(self.log_odds, matrix)
        most = risk - probabilities(self.log_odds) @ np.diag(matrix)
        cost = np.broadcast_to(self.cost, self.mean.shape[:2])
        gain = np.zeros(len(risk), dtype=np.bool_)
        for j in range(self.mean.shape[1]):
            rows = np.flatnonzero(~gain & (cost[:, j] < most))
            if len(rows):
                gain[rows] = cost[rows, j] + self.expected_risk(rows, j, matrix) < risk[rows]
        return gain


# By model, for the latest costs only.
_FOUND: WeakKeyDictionary[SequenceModel, tuple[bytes, SavedShares | None]] = WeakKeyDictionary()
_LOCK = Lock()


def counted_share(model: SequenceModel, costs: CostTable, i: int, matrix: Floats) -> Floats:
    """Share of the saving expected at S_i of each later set that counts, (later sets,).

    All of it, or that which rows left out do save: whichever costs them less in the end. What is
    promised too much also stands for the freedom to stop later, which the expectation leaves out.
    Found once for a model and costs.
    """
    key = model.sequence.costs(costs).tobytes() + matrix.tobytes()
    with _LOCK:
        solved = _FOUND.get(model)
    if solved is None or solved[0] != key:
        solved = (key, _better_shares(model, costs, matrix))
        with _LOCK:
            _FOUND[model] = solved
    return np.ones(len(model.sequence) - 1 - i) if solved[1] is None else solved[1].at(i)


def _better_shares(model: SequenceModel, costs: CostTable, matrix: Floats) -> SavedShares | None:
    rows = np.flatnonzero(~np.isnan(model.leave_out_log_odds).any(axis=(1, 2)))
    if len(rows) == 0:
        return None
    shares = SavedShares(model, costs, matrix, rows[:: max(len(rows) // SHARE_ROWS, 1)])
    return shares if shares.total_cost(counted=True) < shares.total_cost(counted=False) else None


class SavedShares:
    """What later sets save rows left out of the models, as a share of what they are expected to.

    Parameters
    ----------
    model : sets, models and leave-out log-odds.
    costs, matrix : of covariates, and C[y, label].
    rows : training rows that it is judged by.
    """

    def __init__(self, model: SequenceModel, costs: CostTable, matrix: Floats, rows: Ints) -> None:
        self.roots = [roots(density.variance) for density in model.densities]
        self.log_odds, self.y = model.leave_out_log_odds[rows], model.y[rows].astype(np.intp)
        self.weight, self.matrix = model.weight[rows], matrix
        masks, rank = model.sequence.masks(), model.sequence.rank
        self.paid = costs.of(masks, rank=rank)
        self.price = [
            costs.of(masks[i + 1 :], given=masks[i], rank=rank) for i in range(len(self.roots))
        ]
        self._found: dict[int, Floats] = {}

    def at(self, i: int) -> Floats:
        """The shares at S_i, at most 1: means over the rows.

        Expected is what the coherent forecast says, found by how much the Bayes risk is lower. Of a
        set that costs more than any row can save all counts.
        """
        if i not in self._found:
            now, place = np.unique(self.log_odds[:, i], axis=0, return_inverse=True)
            count = np.bincount(place.ravel(), self.weight)
            risk = class_bayes_risk(now, self.matrix)
            shares = np.ones(len(self.price[i]))
            for j in np.flatnonzero(self.price[i] < risk.max()).tolist():
                after = kept_class_risk(now, self.roots[i][j], self.matrix)
                left = class_bayes_risk(self.log_odds[:, i + 1 + j], self.matrix)
                expected, saved = count @ (risk - after), count @ risk - self.weight @ left
                shares[j] = np.clip(saved / expected, 0.0, 1.0) if expected > 0 else 1.0
            self._found[i] = shares
        return self._found[i]

    def total_cost(self, *, counted: bool) -> float:
        """Mean total cost of the rows along the sequence, the shares counted or not."""
        going, total = np.arange(len(self.y)), np.empty(len(self.y))
        for i, paid in enumerate(self.paid):
            log_odds = self.log_odds[going, i]
            go_on = np.zeros(len(going), dtype=np.bool_)
            if i < len(self.roots) and len(going):
                # The coherent forecast needs no mean.
                mean = np.zeros((len(going), len(self.price[i]), log_odds.shape[1]))
                shares = (lambda _, i=i: self.at(i)) if counted else None
                price, coherent = self.price[i][None, :], FORECASTS["coherent"]
                ahead = ClassOutlook(log_odds, mean, self.roots[i], price, coherent, shares)
                go_on = ahead.some_pays(self.matrix)
            stop = going[~go_on]
            label = class_label(log_odds[~go_on], self.matrix)
            total[stop] = paid + self.matrix[self.y[stop], label]
            going = going[go_on]
        return float(np.average(total, weights=self.weight))


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
    shares = None if forecast is FORECASTS["paper"] else partial(counted_share, model, costs, i)
    masks, rank = sequence.masks(), sequence.rank
    part = state.part.reshape(-1, len(sequence), size)
    fixed = model.intercepts[i + 1 :] + part[:, i + 1 :]
    if state.available is None:
        density = model.densities[i]
        known = density.regressors
        r = (state.encoded[:, known] - basis.mean[known]) / basis.scale[known]
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)
        cost = payable(cost[None, :], state.left)
        mean, root = density.means(r) + fixed, roots(density.variance)
        return ClassOutlook(log_odds, mean, root, cost, forecast, shares)
    moments = learnable(model, state.encoded, state.available, i)
    n_functions = moments.mean.shape[1] // later
    learned, unknown = (
        unpolarised(variance.reshape(-1, later, n_functions), size)
        for variance in (moments.learned, moments.unknown)
    )
    mean = moments.mean.reshape(-1, later, n_functions)[..., :size]
    shrink = pairwise_shrink(pair_variance(unknown))[..., None]
    reachable = state.available[:, None, :]
    cost = costs.of_batch(masks[i + 1 :] & reachable, given=masks[i] & reachable, rank=rank)
    cost = payable(cost, state.left)
    root = shrink[..., None] * roots(learned)
    return ClassOutlook(log_odds, shrink * (mean + fixed), root, cost, forecast, shares)

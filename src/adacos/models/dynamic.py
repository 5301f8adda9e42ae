"""What continuing is worth when one may stop at any set: dynamic programming along the sequence.

AdaCOS weighs "acquire all of S_j, then decide" for each later set j. A row that continues may stop
earlier or later than planned, as the values turn out; that freedom is worth something too. With u
the log-odds at S_i, and those at a later S_j normal with the standard deviation s_ij of the
regression and the mean that keeps the probability (`adacos.kernels.martingale`),

    V_i(u) = min( Bayes risk of u,  min over j > i of  c_ij + E[V_j(u_j) | u] ),

from the last set back. V_i is at most what AdaCOS expects, so that a row that AdaCOS would ask is
asked. Assumed: the log-odds say all that matters of the values behind them, and s_ij is that of an
average row. What the freedom adds, V_j less the Bayes risk, is kept on a grid of log-odds with a
point at the threshold of decision, and its expectation taken by a fixed Gauss-Hermite rule; the
expected Bayes risk itself is that of AdaCOS, in closed form. What continuing then saves can be
corrected by what it saved out-of-fold rows, see `adacos.models.realised`.
"""

from __future__ import annotations

from threading import Lock
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.decisions import pieces
from adacos.kernels.namespace import expit, interpolate
from adacos.kernels.saving import Savings, kept_moments
from adacos.models.accuracy import CLOSE, END, FINE, Accuracy
from adacos.models.class_values import ClassValues, ShownGain, class_values, shown_gain
from adacos.models.realised import Similar, realised_correction, similar_rows
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Floats

Table = TypeVar("Table")


class Values(NamedTuple):
    """What each set of a sequence is worth, for given costs.

    Attributes
    ----------
    grid : log-odds.
    freedom : (sets, grid) V_i less the Bayes risk, at most zero; as expected, not corrected.
    gain : (sets, grid) Bayes risk less the value of continuing; negative where it does not pay.
    correction : (sets, grid) what of the gain out-of-fold rows showed, beyond what is expected.
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
        """What continuing from a set saves, for each complete row.

        Interpolated in the probability, in which the Bayes risk is piecewise linear.
        """
        gain: Floats = interpolate(expit(log_odds), expit(self.grid), self.gain[stage])
        return gain

    def after(self, now: Floats, sd: Floats, stage: int, matrix: Floats) -> Floats:
        """E[V_j] for the sets after a stage: `now` (rows, 1), `sd` (rows, sets) or one row."""
        mean, risk = kept_moments(now, sd, matrix)
        return risk + _freed(mean, sd, self.freedom[stage + 1 :], self.grid, self.accuracy)

    def shown_at(self, stage: int, log_odds: Floats) -> Floats:
        """What continuing from a set saves beyond that, for each row, by out-of-fold rows."""
        return np.asarray(np.interp(expit(log_odds), expit(self.grid), self.correction[stage]))


class Expected(NamedTuple):
    """What is expected after each set whatever covariates cost.

    Attributes
    ----------
    grid, risk : log-odds, and the Bayes risk there.
    spread : for each set but the last, standard deviation of the log-odds after each later set.
    mean, after : (grid, pairs of sets) mean of the log-odds, and Bayes risk expected there.
    """

    grid: Floats
    risk: Floats
    spread: tuple[Floats, ...]
    mean: Floats
    after: Floats


class ValueTables:
    """What the sets of sequences are worth at fixed costs, each table computed once.

    Parameters
    ----------
    costs : by which acquisitions are weighed.
    matrix : C[y, label].
    accuracy : how finely values are computed.
    realised : the costs at which tables are corrected by what out-of-fold rows showed; None for no
        correction. Where `costs` count covariates more than once, the correction stays the same, so
        that the more they count the less it pays to continue.
    """

    def __init__(
        self,
        costs: CostTable,
        matrix: Floats,
        accuracy: Accuracy = FINE,
        realised: CostTable | None = None,
    ) -> None:
        self.costs, self.matrix = costs, matrix
        self.accuracy, self.realised = accuracy, realised
        self.savings = Savings(matrix)
        self._values: Tables[Values] = Tables()
        self._expected: Tables[Expected] = Tables()
        self._corrections: Tables[Floats] = Tables()
        self._classes: Tables[ClassValues] = Tables()
        self._gains: Tables[ShownGain] = Tables()
        # Which rows are alike is kept where tables are made at many costs only: it is large.
        self._similar: Tables[Similar] | None = None

    def reweighed(self, costs: CostTable) -> ValueTables:
        """The tables where acquisitions are weighed by other costs; corrections are shared."""
        tables = ValueTables(costs, self.matrix, self.accuracy, self.realised)
        tables._corrections, tables._gains = self._corrections, self._gains
        tables.savings, tables._expected = self.savings, self._expected
        return tables

    def recosted(self, costs: CostTable, matrix: Floats, realised: CostTable | None) -> ValueTables:
        """The tables at other costs; what does not depend on these is shared."""
        tables = ValueTables(costs, matrix, self.accuracy, realised)
        tables._similar = Tables() if self._similar is None else self._similar
        if np.array_equal(matrix, self.matrix):
            tables.savings, tables._expected = self.savings, self._expected
        return tables

    def of_sets(self, model: SequenceModel, last: int | None = None) -> Values:
        """What each set of a sequence up to the last that can be paid is worth."""
        end = len(model.sequence) - 1 if last is None else last
        values = self._values.find(model, end)
        if values is None:
            values = self._solved(model, self.costs, end)
            if self.realised is not None and end > 0:
                more = self._correction(model, end, values)
                values = values._replace(gain=values.gain + more, correction=more)
            self._values.keep(model, end, values)
        return values

    def _solved(self, model: SequenceModel, costs: CostTable, last: int) -> Values:
        """What the sets are expected to be worth at some costs."""
        expected = self._expected.find(model, last)
        if expected is None:
            expected = _expected(model, self.matrix, last, self.accuracy)
            self._expected.keep(model, last, expected)
        return _solve(model, costs, expected, last, self.accuracy)

    def of_classes(self, model: SequenceModel, last: int | None = None) -> ClassValues:
        """The same with three or more classes."""
        end = len(model.sequence) - 1 if last is None else last
        values = self._classes.find(model, end)
        if values is None:
            values = class_values(model, self.costs, self.matrix, end, self.accuracy)
            if self.realised is not None and self.costs.immediate is None and end > 0:
                values = values._replace(shown=self._shown(model, end, values))
            self._classes.keep(model, end, values)
        return values

    def _shown(self, model: SequenceModel, last: int, values: ClassValues) -> ShownGain:
        """What rows showed beyond the gain expected at the costs as they are; `values` at these."""
        costs = self.realised
        assert costs is not None
        found = self._gains.find(model, last)
        if found is None:
            if costs is not self.costs:
                values = class_values(model, costs, self.matrix, last, self.accuracy)
            found = shown_gain(model, costs, values, last)
            self._gains.keep(model, last, found)
        return found

    def _correction(self, model: SequenceModel, last: int, values: Values) -> Floats:
        """What rows showed beyond the gain expected at the costs as they are; `values` at these."""
        assert self.realised is not None
        found = self._corrections.find(model, last)
        if found is None:
            costs, matrix = self.realised, self.matrix
            expected = values
            if costs is not self.costs:
                expected = self._solved(model, costs, last)
            own = expected.grid, expected.gain, self._rows_alike(model, last)
            found = realised_correction(model, costs, matrix, *own)
            self._corrections.keep(model, last, found)
        return found

    def _rows_alike(self, model: SequenceModel, last: int) -> Similar | None:
        """Which rows were found alike at other costs; None where that is not kept."""
        if self._similar is None:
            return None
        found = self._similar.find(model, last)
        if found is None:
            found = similar_rows(model, last)
            self._similar.keep(model, last, found)
        return found


class Tables(Generic[Table]):
    """Tables by model and number of a set, kept as long as the model is; threads may share them."""

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[SequenceModel, dict[int, Table]] = WeakKeyDictionary()
        self._lock = Lock()

    def find(self, model: SequenceModel, number: int) -> Table | None:
        """The table of a set; None where there is none yet."""
        with self._lock:
            return self._tables.get(model, {}).get(number)

    def keep(self, model: SequenceModel, number: int, table: Table) -> None:
        """Keep the table of a set."""
        with self._lock:
            self._tables.setdefault(model, {})[number] = table


def _expected(model: SequenceModel, matrix: Floats, last: int, accuracy: Accuracy) -> Expected:
    """What does not depend on covariate costs, for all pairs of sets at once."""
    # Around each cut between two decisions; around zero where one is always the cheapest.
    grid = np.unique(np.add.outer(pieces(matrix).cuts or (0.0,), accuracy.around))
    spread = tuple(_typical_sd(model, i)[: last - i] for i in range(last))
    nothing = np.empty((len(grid), 0))
    every = np.concatenate([*spread, np.empty(0)])
    mean, after = kept_moments(grid[:, None], every[None, :], matrix) if last else (nothing,) * 2
    return Expected(grid, bayes_risk(grid, matrix), spread, mean, after)


def _solve(
    model: SequenceModel, costs: CostTable, expected: Expected, last: int, accuracy: Accuracy
) -> Values:
    """From the last set back."""
    masks, rank = model.sequence.masks()[: last + 1], model.sequence.rank
    grid, risk, spread, mean, after = expected
    freedom = np.zeros((len(masks), len(grid)))
    gain = np.full((len(masks), len(grid)), -np.inf)
    end = len(mean[0])
    for i in range(last - 1, -1, -1):
        own = slice(end - (last - i), end)
        end = own.start
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)
        freed = _freed(mean[:, own], spread[i][None, :], freedom[i + 1 :], grid, accuracy)
        gain[i] = risk - (cost + (after[:, own] + freed)).min(axis=1)
        freedom[i] = np.minimum(-gain[i], 0.0)
    return Values(grid, freedom, gain, np.zeros_like(gain), spread, accuracy)


def _freed(mean: Floats, sd: Floats, freedom: Floats, grid: Floats, accuracy: Accuracy) -> Floats:
    """Expectation of what the freedom adds after each set, (rows, sets)."""
    log_odds = mean[..., None] + sd[..., None] * accuracy.points
    if len(grid) == len(accuracy.around):
        middle = len(grid) // 2
        place = (np.arcsinh((log_odds - grid[middle]) / CLOSE) / END + 1.0) * middle
    else:
        place = np.interp(log_odds, grid, np.arange(len(grid)))
    place = np.clip(place, 0.0, len(grid) - 1.000001)
    left = place.astype(np.intp)
    share = place - left
    left += len(grid) * np.arange(len(freedom))[:, None]
    every = freedom.ravel()
    low, between = every.take(left), every.take(left + 1)
    # In place: with many sets these are the largest arrays of all.
    between -= low
    between *= share
    between += low
    return np.asarray(between @ accuracy.masses)


def _typical_sd(model: SequenceModel, i: int) -> Floats:
    """Standard deviation of the log-odds after each later set, for an average row at S_i."""
    density, gram = model.densities[i], model.moments
    inside = np.append(0, 1 + density.regressors)
    uncertain = float(np.sum(density.inverse * gram[np.ix_(inside, inside)]) / gram[0, 0])
    return np.sqrt(np.maximum(density.variance * (1.0 + uncertain), 0.0))

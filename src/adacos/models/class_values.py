"""What continuing is worth with three or more classes: dynamic programming over plans.

As in `adacos.models.dynamic`, from the last set back, with p the class probabilities at S_i:

    V_i(p) = min( Bayes risk of p,  min over j > i of  c_ij + E[V_j(p_j) | p] ).

p_j is p after the evidence of `adacos.models.evidence`. V_i is concave and piecewise linear in p: a
least value over plans, each with an expected cost for each true class. Plans are found at the
beliefs of some training rows. Each is charged what it costs these rows by their true class, so that
their value is one that can be reached and not a promise of the log-odds. Where waiting costs
nothing, S_i+1 comes before S_j and leaves every choice open; else all S_j are weighed.

`realised` corrects the gain of continuing, as in `adacos.models.realised`, among rows of similar
gain. What is left of the difference between what rows that continue saved and what was expected
scales the gains that are stated, the less the noisier it is; it changes no decision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.belief_plans import cost_by_class, least_cost
from adacos.kernels.class_risk import label_at, probabilities
from adacos.models.accuracy import Accuracy
from adacos.models.evidence import Evidence, followed_rows
from adacos.models.followed import estimated_after
from adacos.models.realised import Nearness, beyond_noise
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Floats, Ints

# Gains below this share of the dearest error are rounding.
_ROUNDING = 1e-10
# By how much of what is to be saved the expectation is taken to err: its standard deviation.
_EXPECTED_TO_ERR = 0.2
# Places of the correction: quantiles of the gains of the rows.
_PLACES = 64


class ClassValues(NamedTuple):
    """What each set of a sequence is worth, for given costs.

    Attributes
    ----------
    matrix : C[y, label].
    evidence : what acquiring says.
    plans : for each set, (plans, K) cost by true class of continuing.
    move : for each set, the set that each of these plans goes to first.
    best : for each set, (plans, K) of the labels and those plans that are best somewhere.
    shown : what out-of-fold rows showed beyond that; None if it does not count.
    """

    matrix: Floats
    evidence: Evidence
    plans: tuple[Floats, ...]
    move: tuple[Ints, ...]
    best: tuple[Floats, ...]
    shown: ShownGain | None = None

    def gain_at(self, stage: int, belief: Floats) -> Floats:
        """What continuing saves at beliefs (rows, K); negative where it does not pay."""
        gain = self.expected_gain(stage, belief)
        return gain if self.shown is None else gain + self.shown.more_at(stage, belief)

    def expected_gain(self, stage: int, belief: Floats) -> Floats:
        """The same without what out-of-fold rows showed."""
        gain = least_cost(belief, self.matrix.T) - least_cost(belief, self.plans[stage])
        return np.asarray(gain - self.rounding)

    def stated_gain(self, stage: int, belief: Floats) -> Floats:
        """The gain, scaled where it is positive to what continuing saved out-of-fold rows."""
        gain = self.gain_at(stage, belief)
        counted = 1.0 if self.shown is None else self.shown.counted[stage]
        return np.where(gain > 0, counted * gain, gain)

    def by_move(self, stage: int, belief: Floats, last: int) -> Floats:
        """Expected cost of going to each later set first, (rows, later sets); the price included.

        Infinite where no plan goes there first.
        """
        result = np.full((len(belief), last - stage), np.inf)
        for j in np.unique(self.move[stage]).tolist():
            own = self.plans[stage][self.move[stage] == j]
            result[:, j - stage - 1] = least_cost(belief, own)
        return result

    @property
    def rounding(self) -> float:
        """Gains up to this are rounding."""
        return _ROUNDING * float(np.ptp(self.matrix))


class ShownGain(NamedTuple):
    """What out-of-fold rows showed of the gain of continuing.

    Attributes
    ----------
    values : by which the gain was expected.
    place, more : for each set, gains and by how much they are to be raised there.
    counted : for each set, share of the gain that rows which continue did save.
    """

    values: ClassValues
    place: tuple[Floats, ...]
    more: tuple[Floats, ...]
    counted: Floats

    def more_at(self, stage: int, belief: Floats) -> Floats:
        """By how much the gain at beliefs (rows, K) is to be raised."""
        gain = self.values.expected_gain(stage, belief)
        return np.asarray(np.interp(gain, self.place[stage], self.more[stage]))


def class_values(
    model: SequenceModel, costs: CostTable, matrix: Floats, last: int, accuracy: Accuracy
) -> ClassValues:
    """What each set of a sequence up to the last that can be paid is worth, from that back."""
    masks, rank = model.sequence.masks(), model.sequence.rank
    evidence = Evidence.of(model, accuracy.n_rows)
    nodes = Evidence.of(model, accuracy.n_nodes).scores
    labels, n_labels = matrix.T, matrix.shape[1]
    plans, move, best = [np.empty((0, len(matrix)))], [np.empty(0, dtype=np.intp)], [labels]
    for i in range(last - 1, -1, -1):
        belief = np.unique(probabilities(nodes[:, i, 1:]), axis=0)
        price = costs.of_batch(masks[i + 1 : last + 1], given=masks[i], rank=rank)
        # Nothing can save more than knowing the class would.
        most = least_cost(belief, labels) - belief @ matrix.min(axis=1)
        every, goes_to = [], []
        for j in range(i + 1, last + 1 if costs.immediate is not None else i + 2):
            own = price[j - i - 1]
            found = cost_by_class(belief[most > own], *evidence.between(i, j), best[j - i - 1])
            # One may also pay and keep to a label, whatever is seen.
            every.append(own + np.concatenate([labels, found]))
            goes_to.append(np.full(len(every[-1]), j))
        plans.insert(0, np.concatenate(every))
        move.insert(0, np.concatenate(goes_to))
        together = np.concatenate([labels, plans[0]])
        used = np.union1d(np.arange(n_labels), (belief @ together.T).argmin(axis=1))
        best.insert(0, together[used])
        if costs.immediate is None:
            # Only which plan is best matters, not where each goes.
            gone = plans[0]
            kept = np.union1d(np.arange(n_labels), (belief @ gone.T).argmin(axis=1))
            plans[0], move[0] = gone[kept], move[0][kept]
    return ClassValues(matrix, evidence, tuple(plans), tuple(move), tuple(best))


def _counted(gain: Floats, saved: Floats, weight: Floats, price: float) -> float:
    """Share of the gains that counts, from what rows saved: the mean of both, as each errs."""
    stated = float(np.average(gain, weights=weight))
    missed = np.average(saved - gain, weights=weight)
    spread = np.average((saved - gain - missed) ** 2, weights=weight)
    noise = spread * float(weight @ weight) / float(weight.sum()) ** 2
    error = (_EXPECTED_TO_ERR * (stated + price)) ** 2
    return max(1.0 + float(missed) * error / (error + noise) / stated, 0.0)


def shown_gain(model: SequenceModel, costs: CostTable, values: ClassValues, last: int) -> ShownGain:
    """Gains of rows against those expected of them, from the last set back.

    `values` are those of the sets at these costs.
    """
    matrix, rows = values.matrix, followed_rows(model)
    belief, y = probabilities(rows.log_odds[:, : last + 1]), rows.y.astype(np.intp)
    weight = rows.weights_along(model.sequence, last)
    place = [np.zeros(1)] * (last + 1)
    more, counted = list(place), np.ones(last + 1)
    if len(y) == 0:
        return ShownGain(values, tuple(place), tuple(more), counted)
    wrong = matrix[y[:, None], label_at(belief, matrix)]
    max_error = float(np.ptp(matrix, axis=1).max())
    masks, rank = model.sequence.masks(), model.sequence.rank
    after = wrong[:, last]
    for i in range(last - 1, rows.first - 1, -1):
        price = float(costs.of_batch(masks[i + 1 : i + 2], given=masks[i], rank=rank)[0])
        expected, saved = values.expected_gain(i, belief[:, i]), wrong[:, i] - price - after
        following, left = weight[:, i + 1], saved - expected
        on = following > 0
        if on.any():
            place[i] = np.unique(np.quantile(expected[on], np.linspace(0, 1, _PLACES)))
            near = Nearness(expected[on], following[on])
            more[i] = beyond_noise(near, left[on], place[i], max_error)
        gain = expected + np.interp(expected, place[i], more[i])
        going = on & (gain > 0)
        if going.any():
            counted[i] = _counted(gain[going], saved[going], following[going], price)
        after = estimated_after(weight[:, i], following, after, wrong[:, i] - price - gain)
        after = np.where(gain > 0, price + after, wrong[:, i])
    return ShownGain(values, tuple(place), tuple(more), counted)

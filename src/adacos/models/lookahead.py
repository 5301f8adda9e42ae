"""Where rows stand at one set of a sequence, and the lookahead to the later sets.

`begin` places rows that have some covariates at a set, `look_ahead` gives their log-odds there and,
for each later set, mean and standard deviation of the log-odds after acquiring it and its cost;
`advance` takes rows to a later set. Covariates that are unavailable for a row are integrated out:
what they contribute has a mean and a variance given what was acquired, and the variance draws the
log-odds towards zero. So are categories never seen in training, once they were acquired.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.class_risk import pair_variance, pairwise_shrink
from adacos.kernels.namespace import host, is_tensor, like, namespace
from adacos.kernels.saving import Savings
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.known import given_known, original_stages
from adacos.models.missing import MissingContribution, unpolarised
from adacos.models.sequence_model import SequenceModel
from adacos.models.sequences import SetSequence
from adacos.models.unavailable import Learnable, learnable
from adacos.typing import Bools, Floats, Ints

# Rows × sets up to which all future costs are evaluated together.
_FEW_CELLS = 256


class WalkState(NamedTuple):
    """Rows that have acquired what is available of S_stage.

    Attributes
    ----------
    model : the model of rows that know what these know.
    origin : for each set of its sequence, the number of the original sequence's largest set inside.
    stage : number of the set.
    encoded : their encoded values, of which only those of S_stage have been read; NaN where what
        was acquired is a category never seen in training.
    available : mask (rows, covariates) of what can be acquired or is there, None when everything is
        and all that was acquired says something.
    part : (rows, functions) contribution of the acquired covariates to the log-odds of each model,
        see `SequenceModel.functions`.
    missing_part : what the unavailable covariates of S_stage contribute to them; None when
        everything is available.
    left : (rows,) what they can still pay; None for any amount.
    ahead : what they expect of the later sets by the default forecast, if it was computed before;
        its costs do not count.
    """

    model: SequenceModel
    origin: Ints
    stage: int
    encoded: Floats
    available: Bools | None
    part: Floats
    missing_part: MissingContribution | None
    left: Floats | None = None
    ahead: NormalLookahead | None = None

    @property
    def informative(self) -> Bools | None:
        """`available` without what was acquired and says nothing."""
        if self.available is None:
            return None
        acquired = self.model.sequence.set(self.stage)
        first = np.searchsorted(self.model.basis.source, acquired)
        informative = self.available.copy()
        informative[:, acquired] &= ~np.isnan(self.encoded[:, first])
        return informative

    @property
    def upcoming(self) -> Ints:
        """The covariates after S_stage, in order."""
        sequence = self.model.sequence
        return sequence.order[sequence.sizes[self.stage] :]

    @property
    def original_stage(self) -> int:
        """Number of the original sequence's largest set that the rows have."""
        return int(self.origin[self.stage])


@dataclass(frozen=True, eq=False)
class Lookahead(ABC):
    """Log-odds now, and what each later set costs and leaves at risk.

    Attributes
    ----------
    log_odds : (rows,) or (rows, K - 1) at the set.
    cost : (rows, later sets) or one row when it is the same for all; infinite where it cannot be
        paid.
    future : (rows, later sets) cost of each plus the Bayes risk expected after it, once evaluated.
    shown : (rows,) by how much all of it is less because out-of-fold rows fared better; None if
        that does not count.
    """

    log_odds: Floats
    cost: Floats
    future: Floats | None = field(default=None, kw_only=True)
    shown: Floats | None = field(default=None, kw_only=True)

    @abstractmethod
    def expected_risk(self, rows: Ints, sets: slice, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after some of the later sets, (rows, sets)."""

    @abstractmethod
    def weighed_against(self, savings: Savings) -> tuple[Bools, Lookahead]:
        """Whether some later set saves each row more than it costs, if one stops there.

        Of few rows all future costs are evaluated, and come back with the lookahead.
        """

    def weighed(self, matrix: Floats) -> Self:
        """The lookahead with all future costs evaluated, if one stops after each set."""
        if self.future is not None:
            return self
        every = slice(0, self.cost.shape[1])
        risk = self.expected_risk(np.arange(len(self.log_odds)), every, matrix)
        return replace(self, future=self.cost + risk)

    def unweighted(self, times: float) -> Self:
        """The same at the costs as they are, where they were counted `times` times."""
        if times == 1.0:
            return self
        future = self.future
        if future is not None:
            future = future - (1 - 1 / times) * np.where(np.isfinite(self.cost), self.cost, 0.0)
        return replace(self, cost=self.cost / times, future=future)


@dataclass(frozen=True, eq=False)
class NormalLookahead(Lookahead):
    """The lookahead of two classes, by what the regression says of the log-odds.

    Attributes
    ----------
    mean, sd : (rows, later sets) of the log-odds after each later set by the regression.
    forecast : what is made of the regression.
    """

    mean: Floats
    sd: Floats
    forecast: Forecast

    def expected_risk(self, rows: Ints, sets: slice, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after some of the later sets, (rows, sets)."""
        return self.forecast.expected_risk(
            self.log_odds[rows, None], self.mean[rows, sets], self.sd[rows, sets], matrix
        )

    def weighed_against(self, savings: Savings) -> tuple[Bools, NormalLookahead]:
        """Whether some later set saves each row more than it costs, if one stops there."""
        if self.mean.size > _FEW_CELLS:
            own = self.log_odds, self.mean, self.sd, self.cost
            return self.forecast.any_worthwhile(*own, savings), self
        ahead = self.weighed(savings.matrix)
        assert ahead.future is not None
        risk = bayes_risk(ahead.log_odds, savings.matrix)
        return np.asarray((ahead.future < risk[:, None]).any(axis=1)), ahead


def begin(
    model: SequenceModel, encoded: Floats, available: Bools, have: Bools, known: Bools
) -> WalkState:
    """Rows that have the covariates in the mask `have`, of which some were known from the start.

    They stand at the last set that they have, as far as it is available. A value beyond that set
    counts as known; a covariate of S_1 that they do not have yet counts as unavailable.
    """
    last, ahead = _place(model.sequence, have, known, ~host(available.any(axis=0)))
    unread = model.sequence.set(0)[~have[model.sequence.set(0)]]
    if len(unread):
        available = available.copy()
        available[:, unread] = False
    derived = given_known(model, ahead)
    origin = np.arange(len(model.sequence))
    if derived is not model:
        origin = original_stages(model.sequence, derived.sequence)
    stage = 0
    if last >= 0:
        rank = int(np.flatnonzero(derived.sequence.order == model.sequence.order[last])[0])
        stage = max(rank + 1 - derived.sequence.n_free, 0)
    read = _read(derived, encoded, derived.sequence.set(stage))
    some = None if read is encoded and available.all() else available
    encoded = read
    if len(encoded) == 1 and not is_tensor(encoded):
        part = _part_of_one(derived, encoded, available, stage)
    else:
        xp, shape = namespace(encoded), (len(encoded), len(derived.functions))
        part = xp.zeros(shape, dtype=xp.float64, device=encoded.device)
        for covariate in derived.sequence.set(stage):
            part += contribution(derived, encoded, some, covariate)
    missing_part = None if some is None else derived.unavailable(encoded, stage)
    return WalkState(derived, origin, stage, encoded, some, part, missing_part)


def _place(
    sequence: SetSequence, have: Bools, known: Bools, unavailable: Bools
) -> tuple[int, Bools]:
    """Rank of the last covariate acquired in order, or -1, and the covariates that act as known."""
    last, in_order = -1, True
    ahead = known.copy()
    for rank, covariate in enumerate(sequence.order):
        if known[covariate] or unavailable[covariate]:
            continue
        if not have[covariate]:
            in_order = False
        elif in_order:
            last = rank
        else:
            ahead[covariate] = True
    return last, ahead


def advance(state: WalkState, going: Bools, n_sets: int = 1) -> WalkState:
    """The rows in `going`, `n_sets` further."""
    stage, rows = state.stage + n_sets, namespace(going).nonzero(going)[0]
    own, acquired = state.encoded[rows], state.upcoming[:n_sets]
    available = None if state.available is None else state.available[rows]
    encoded = _read(state.model, own, acquired)
    if available is None and encoded is not own:
        available = np.ones((len(own), len(state.model.basis.kinds)), dtype=np.bool_)
    part = state.part[rows]
    for covariate in acquired:
        part += contribution(state.model, encoded, available, covariate)
    missing_part = None if available is None else state.model.unavailable(encoded, stage)
    return state._replace(
        stage=stage,
        encoded=encoded,
        available=available,
        part=part,
        missing_part=missing_part,
        ahead=None,
    )


def _read(model: SequenceModel, encoded: Floats, covariates: Ints) -> Floats:
    """Rows that read the values of some covariates: a category never seen is then NaN.

    Only numbers are kept as tensors.
    """
    return encoded if is_tensor(encoded) else model.without_unseen(encoded, covariates)


def log_odds_now(state: WalkState) -> Floats:
    """Log-odds of the rows at their set, with what is unavailable integrated out."""
    i, missing_part = state.stage, state.missing_part
    part = state.part.reshape(-1, *state.model.intercepts.shape)[:, i]
    log_odds: Floats = part + like(part, state.model.intercepts[i])
    if missing_part is None:
        return log_odds
    return state.model.family.integrated(log_odds, missing_part.mean, missing_part.variance)


def stage_with(state: WalkState, covariate: int) -> int:
    """Number of the first set after a state's that holds a covariate."""
    return state.stage + 1 + int(np.argmax(state.upcoming == covariate))


def log_odds_with(state: WalkState, covariate: int, values: Floats, stage: int) -> Floats:
    """Log-odds of one row at a set for several values of a covariate that it does not have yet."""
    n = len(values)
    encoded = np.repeat(state.encoded, n, axis=0)
    encoded[:, state.model.basis.source == covariate] = values
    available, missing_part = None, None
    if state.available is not None:
        available = np.repeat(state.available, n, axis=0)
        available[:, covariate] = True
        missing_part = state.model.unavailable(encoded, stage)
    coefs = state.model.functions[:, state.model.basis.group == covariate].T
    part = state.part + state.model.basis.block(values, covariate) @ coefs
    return log_odds_now(
        WalkState(state.model, state.origin, stage, encoded, available, part, missing_part)
    )


def look_ahead(
    state: WalkState, costs: CostTable, forecast: Forecast = FORECASTS["coherent"]
) -> NormalLookahead:
    """What the rows know at their set and expect of the later ones, where classes are two."""
    i, model = state.stage, state.model
    if state.ahead is not None and state.ahead.forecast is forecast:
        return replace(state.ahead, cost=costs_of_later(state, costs))
    log_odds, cost = log_odds_now(state), costs_of_later(state, costs)
    if i + 1 == len(model.sequence):
        return NormalLookahead(log_odds, cost, cost, cost, forecast)
    informative = state.informative
    if informative is None:
        density = model.densities[i]
        known = density.regressors
        mean, sd = density.moments(model.basis.standardise(state.encoded[:, known], known))
        fixed = model.intercepts[i + 1 :] + state.part[:, i + 1 :]
        return NormalLookahead(log_odds, cost, mean + fixed, sd, forecast)
    moments = learnable(model, state.encoded, informative, i)
    means, covariance = to_be_learned(state, moments)
    sd = np.sqrt(covariance[..., 0, 0])
    return NormalLookahead(log_odds, cost, means[..., 0], sd, forecast)


def costs_of_later(state: WalkState, costs: CostTable) -> Floats:
    """Cost of each later set, (rows, sets) or one row where it is the same for all."""
    sequence, i = state.model.sequence, state.stage
    if i + 1 == len(sequence):
        return np.empty((len(state.encoded), 0))
    masks, rank = sequence.masks(), sequence.rank
    if state.available is None:
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)[None, :]
        return payable(cost, state.left)
    reachable = state.available[:, None, :]
    cost = costs.of_batch(masks[i + 1 :] & reachable, given=masks[i] & reachable, rank=rank)
    return payable(cost, state.left)


def to_be_learned(state: WalkState, moments: Learnable) -> tuple[Floats, Floats]:
    """What rows of which something is unavailable may learn: moments of the log-odds at later sets.

    Means (rows, later sets, L) and covariances (rows, later sets, L, L). What stays unknown draws
    the log-odds together, by the factor that it has for two classes of the mean variance between
    two classes.
    """
    i, model = state.stage, state.model
    size, later = model.vector_shape[0], len(model.sequence) - 1 - i
    mean, learned, unknown = (each.reshape(len(each), later, -1) for each in moments)
    shrink = pairwise_shrink(pair_variance(unpolarised(unknown, size)))[..., None]
    part = state.part.reshape(-1, len(model.sequence), size)[:, i + 1 :]
    fixed = model.intercepts[i + 1 :].reshape(later, size) + part
    covariance = shrink[..., None] ** 2 * unpolarised(learned, size)
    return shrink * (mean[..., :size] + fixed), covariance


def out_of_fold_state(state: WalkState, rows: Ints) -> WalkState:
    """A state of training rows whose log-odds are those of models that did not see them.

    Without any covariate all rows are alike, but a share of the classes that leaves the row out
    would give away which class it is of: there they have the log-odds of new rows.
    """
    if len(state.model.sequence.set(state.stage)) == 0:
        return state
    return moved_to(state, state.model.out_of_fold_log_odds[rows, state.stage])


def moved_to(state: WalkState, log_odds: Floats) -> WalkState:
    """The state in which rows have these log-odds now, and those of later sets are moved as far.

    With three or more classes `part` has the classes of each set side by side.
    """
    shift = (log_odds - log_odds_now(state)).reshape(len(log_odds), -1)
    part = state.part + np.tile(shift, len(state.model.sequence))
    return state._replace(part=part, ahead=None)


def payable(cost: Floats, left: Floats | None) -> Floats:
    """Costs of the later sets, infinite for those that a row cannot pay."""
    if left is None:
        return cost
    # Complete rows have paid the same: one row represents all.
    some = left[:1] if np.all(left == left[0]) else left
    return np.where(cost > some[:, None], np.inf, cost)


def payable_sets(state: WalkState, costs: CostTable) -> int:
    """How many sets after a state's its first row can pay."""
    i, sequence = state.stage, state.model.sequence
    masks = sequence.masks()
    cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=sequence.rank)
    return int(np.isfinite(payable(cost[None, :], state.left)).sum())


def contribution(
    model: SequenceModel, values: Floats, where: Bools | None, covariate: int
) -> Floats:
    """f_jk(x_k) of one covariate under every function j, zero for rows outside `where`."""
    columns = values[:, like(values, model.basis.source == covariate)]
    coefs = like(values, model.functions[:, model.basis.group == covariate].T)
    if where is None:
        every: Floats = model.basis.block(columns, covariate) @ coefs
        return every
    rows = where[:, covariate] & ~np.isnan(columns[:, 0])
    result = np.zeros((len(values), coefs.shape[1]))
    result[rows] = model.basis.block(columns[rows], covariate) @ coefs
    return result


def _part_of_one(model: SequenceModel, encoded: Floats, available: Bools, stage: int) -> Floats:
    """`WalkState.part` of a single row, all its covariates at once."""
    covariates = model.sequence.set(stage)
    values = encoded[0, np.searchsorted(model.basis.source, covariates)]
    covariates = covariates[available[0, covariates] & ~np.isnan(values)]
    contributions = model.basis.contributions(encoded, covariates, model.functions)
    return np.asarray(contributions.sum(axis=0, keepdims=True))

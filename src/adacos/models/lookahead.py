"""Where rows stand at one set of a sequence, and the lookahead to the later sets.

`begin` places rows that have some covariates at a set, `look_ahead` gives their log-odds there and,
for each later set, mean and standard deviation of the log-odds after acquiring it and its cost;
`advance` takes rows to a later set. Covariates that are unavailable for a row are integrated out:
what they contribute has a mean and a variance given what was acquired, and the variance draws the
log-odds towards zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable
from adacos.kernels.class_risk import integrated_class_log_odds, roots
from adacos.kernels.martingale import integrated_log_odds
from adacos.kernels.namespace import host, is_tensor, like, namespace
from adacos.kernels.saving import Savings
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.known import given_known, original_stages
from adacos.models.missing import MissingContribution
from adacos.models.sequence_model import SequenceModel
from adacos.models.sequences import SetSequence
from adacos.models.unavailable import learnable
from adacos.typing import Bools, Floats, Ints


class WalkState(NamedTuple):
    """Rows that have acquired what is available of S_stage.

    Attributes
    ----------
    model : the model of rows that know what these know.
    origin : for each set of its sequence, the number of the original sequence's largest set inside.
    stage : number of the set.
    encoded : their encoded values, of which only those of S_stage have been read.
    available : mask (rows, covariates), None when everything is available.
    part : (rows, functions) contribution of the acquired covariates to the log-odds of each model,
        see `SequenceModel.functions`.
    lacking : what the unavailable covariates of S_stage contribute to them; None when everything is
        available.
    left : (rows,) what they can still pay; None for any amount.
    """

    model: SequenceModel
    origin: Ints
    stage: int
    encoded: Floats
    available: Bools | None
    part: Floats
    lacking: MissingContribution | None
    left: Floats | None = None

    @property
    def upcoming(self) -> Ints:
        """The covariates after S_stage, in order."""
        sequence = self.model.sequence
        return sequence.order[sequence.sizes[self.stage] :]

    @property
    def original_stage(self) -> int:
        """Number of the original sequence's largest set that the rows have."""
        return int(self.origin[self.stage])


class Lookahead(NamedTuple):
    """Log-odds now; per later set, what the regression says of those after it, and its cost.

    Attributes
    ----------
    log_odds : (rows,) at the set.
    mean, sd : (rows, later sets) of the log-odds after each later set by the regression.
    cost : (rows, later sets) or one row when it is the same for all; infinite where it cannot be
        paid.
    forecast : what is made of the regression.
    future : (rows, later sets) cost of each plus the Bayes risk expected after it, once evaluated.
    shown : (rows,) by how much all of it is less because out-of-fold rows fared better.
    """

    log_odds: Floats
    mean: Floats
    sd: Floats
    cost: Floats
    forecast: Forecast
    future: Floats | None = None
    shown: Floats | None = None

    def expected_risk(self, rows: Ints, sets: slice, matrix: Floats) -> Floats:
        """Expected Bayes risk of some rows after some of the later sets, (rows, sets)."""
        return self.forecast.expected_risk(
            self.log_odds[rows, None], self.mean[rows, sets], self.sd[rows, sets], matrix
        )

    def weighed(self, matrix: Floats) -> Lookahead:
        """The lookahead with all future costs evaluated, if one stops after each set."""
        if self.future is not None:
            return self
        every = slice(0, self.mean.shape[1])
        risk = self.expected_risk(np.arange(len(self.log_odds)), every, matrix)
        return self._replace(future=self.cost + risk)

    def unweighted(self, times: float) -> Lookahead:
        """The same at the costs as they are, where they were counted `times` times."""
        cost, future = unweighted(self.cost, self.future, times)
        return self._replace(cost=cost, future=future)

    def any_worthwhile(self, savings: Savings) -> Bools:
        """Whether some later set is expected to save more than it costs, for each row."""
        return self.forecast.any_worthwhile(self.log_odds, self.mean, self.sd, self.cost, savings)


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
    some = None if available.all() else available
    if len(encoded) == 1 and not is_tensor(encoded):
        part = _part_of_one(derived, encoded, available, stage)
    else:
        xp, shape = namespace(encoded), (len(encoded), len(derived.functions))
        part = xp.zeros(shape, dtype=xp.float64, device=encoded.device)
        for covariate in derived.sequence.set(stage):
            part += contribution(derived, encoded, some, covariate)
    lacking = None if some is None else derived.unavailable(encoded, stage)
    return WalkState(derived, origin, stage, encoded, some, part, lacking)


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
    encoded = state.encoded[rows]
    available = None if state.available is None else state.available[rows]
    part = state.part[rows]
    for covariate in state.upcoming[:n_sets]:
        part += contribution(state.model, encoded, available, covariate)
    lacking = None if available is None else state.model.unavailable(encoded, stage)
    return state._replace(
        stage=stage, encoded=encoded, available=available, part=part, lacking=lacking
    )


def log_odds_now(state: WalkState) -> Floats:
    """Log-odds of the rows at their set, with what is unavailable integrated out."""
    i, lacking = state.stage, state.lacking
    if state.model.many_classes:
        part = state.part.reshape(-1, *state.model.intercepts.shape)[:, i]
        vectors = np.asarray(state.model.intercepts[i] + part)
        if lacking is None:
            return vectors
        return integrated_class_log_odds(vectors + lacking.mean, roots(lacking.variance))
    log_odds = state.part[:, i] + float(state.model.intercepts[i])
    if lacking is None:
        return log_odds
    return integrated_log_odds(log_odds + lacking.mean[:, i], np.sqrt(lacking.variance[:, i]))


def stage_with(state: WalkState, covariate: int) -> int:
    """Number of the first set after a state's that holds a covariate."""
    return state.stage + 1 + int(np.argmax(state.upcoming == covariate))


def log_odds_with(state: WalkState, covariate: int, values: Floats, stage: int) -> Floats:
    """Log-odds of one row at a set for several values of a covariate that it does not have yet."""
    n = len(values)
    encoded = np.repeat(state.encoded, n, axis=0)
    encoded[:, state.model.basis.source == covariate] = values
    available, lacking = None, None
    if state.available is not None:
        available = np.repeat(state.available, n, axis=0)
        available[:, covariate] = True
        lacking = state.model.unavailable(encoded, stage)
    coefs = state.model.functions[:, state.model.basis.group == covariate].T
    part = state.part + state.model.basis.block(values, covariate) @ coefs
    return log_odds_now(
        WalkState(state.model, state.origin, stage, encoded, available, part, lacking)
    )


def look_ahead(
    state: WalkState, costs: CostTable, forecast: Forecast = FORECASTS["coherent"]
) -> Lookahead:
    """What the rows know at their set and expect of the later ones, where classes are two."""
    i, model = state.stage, state.model
    sequence, basis = model.sequence, model.basis
    log_odds = log_odds_now(state)
    if i + 1 == len(sequence):
        nothing = np.empty((len(log_odds), 0))
        return Lookahead(log_odds, nothing, nothing, nothing, forecast)
    masks, rank = sequence.masks(), sequence.rank
    fixed = model.intercepts[i + 1 :] + state.part[:, i + 1 :]
    if state.available is None:
        density = model.densities[i]
        known = density.regressors
        r = basis.standardise(state.encoded[:, known], known)
        mean, sd = density.moments(r)
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)
        cost = payable(cost[None, :], state.left)
        return Lookahead(log_odds, mean + fixed, sd, cost, forecast)
    mean, learned, unknown = learnable(model, state.encoded, state.available, i)
    shrink = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * unknown)
    reachable = state.available[:, None, :]
    cost = costs.of_batch(masks[i + 1 :] & reachable, given=masks[i] & reachable, rank=rank)
    cost = payable(cost, state.left)
    sd = shrink * np.sqrt(learned)
    return Lookahead(log_odds, shrink * (mean + fixed), sd, cost, forecast)


def left_out(state: WalkState, rows: Ints) -> WalkState:
    """A state of training rows whose log-odds are those of models that did not see them.

    Without any covariate all rows are alike, but a share of the classes that leaves the row out
    would tell which class it is of: there they have the log-odds of new rows.
    """
    if len(state.model.sequence.set(state.stage)) == 0:
        return state
    return moved_to(state, state.model.leave_out_log_odds[rows, state.stage])


def moved_to(state: WalkState, log_odds: Floats) -> WalkState:
    """The state in which rows have these log-odds now, and those of later sets are moved as far.

    With three or more classes `part` has the classes of each set side by side.
    """
    shift = (log_odds - log_odds_now(state)).reshape(len(log_odds), -1)
    return state._replace(part=state.part + np.tile(shift, len(state.model.sequence)))


def unweighted(cost: Floats, future: Floats | None, times: float) -> tuple[Floats, Floats | None]:
    """Costs of later sets, and future costs, as they are where they were counted `times` times."""
    if times == 1.0:
        return cost, future
    if future is not None:
        future = future - (1 - 1 / times) * np.where(np.isfinite(cost), cost, 0.0)
    return cost / times, future


def payable(cost: Floats, left: Floats | None) -> Floats:
    """Costs of the later sets, infinite for those that a row cannot pay."""
    if left is None:
        return cost
    # Rows that lack nothing have paid the same: one row stands for all.
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
    rows = where[:, covariate]
    result = np.zeros((len(values), coefs.shape[1]))
    result[rows] = model.basis.block(columns[rows], covariate) @ coefs
    return result


def _part_of_one(model: SequenceModel, encoded: Floats, available: Bools, stage: int) -> Floats:
    """`WalkState.part` of a single row, all its covariates at once."""
    covariates = model.sequence.set(stage)
    covariates = covariates[available[0, covariates]]
    contributions = model.basis.contributions(encoded, covariates, model.functions)
    return np.asarray(contributions.sum(axis=0, keepdims=True))

"""Rows collected by another policy or protocol: how far a policy can be followed, and how likely.

A row holds what was recorded of it, NaN elsewhere. The other policy decided on the covariates in
one order for all rows, each by what it had recorded before and perhaps by the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adacos.consultation.next_steps import steps
from adacos.deciders.mixing import mixed
from adacos.decision import AnyDecider
from adacos.engine import acquired_in
from adacos.kernels.folds import shuffled_folds
from adacos.models.gam import LogisticGAM
from adacos.typing import Bools, Floats, Ints

# Rows recorded, and rows not, below which their share is the propensity: no model can be learned.
_FEWEST = 10
_FOLDS = 5
# Strength of the ridge on standardised columns, in rows.
_RIDGE = 1.0


@dataclass(frozen=True)
class Stage:
    """Rows that could be followed up to the same number of steps of a policy.

    Attributes
    ----------
    rows : their places.
    acquired : mask (rows, covariates) of what the policy has of them.
    asks : mask of what it acquires next; empty where it stops.
    expected : expected total cost of stopping now, by the policy.
    cost : total cost if it stops now.
    """

    rows: Ints
    acquired: Bools
    asks: Bools
    expected: Floats
    cost: Floats

    @property
    def stops(self) -> Bools:
        """Mask of the rows at which the policy stops."""
        return np.asarray(~self.asks.any(axis=1))


def walk_recorded(
    decider: AnyDecider, encoded: Floats, true: Ints, recorded: Bools
) -> tuple[Stage, ...]:
    """Follow a policy through each row until it stops, or asks for what is not recorded.

    Every covariate counts as available, so that the policy does not pass over what is missing.
    """
    n_rows, n_covariates = recorded.shape
    source, matrix = decider.encoder.source, decider.costs.matrix
    rows, acquired = np.arange(n_rows), np.zeros((n_rows, n_covariates), dtype=np.bool_)
    paid, stages = np.zeros(n_rows), []
    while len(rows):
        so_far = np.where(acquired[:, source], encoded[rows], np.nan)
        nothing = np.zeros_like(acquired)
        own = mixed(decider, len(rows), rows.tolist())
        found = steps(own, so_far, nothing, nothing, paid)
        asks = acquired_in(found.order)
        cost = paid + matrix[true[rows], found.label]
        stages.append(Stage(rows, acquired, asks, found.expected_cost, cost))
        going = asks.any(axis=1) & (recorded[rows] | ~asks).all(axis=1)
        rows, acquired = rows[going], (acquired | asks)[going]
        paid = (paid + found.cost)[going]
    return tuple(stages)


def always_recorded(recorded: Bools) -> Bools:
    """Mask of the covariates that every row has."""
    return np.asarray(recorded.all(axis=0))


def prerequisites(recorded: Bools, order: Ints) -> Bools:
    """Mask (covariates, covariates): row k has those that k is never recorded without.

    They come before k in the order of the records, and are not always recorded.
    """
    needed = np.zeros((recorded.shape[1],) * 2, dtype=np.bool_)
    sometimes = ~always_recorded(recorded)
    for place, k in enumerate(order.tolist()):
        if recorded[:, k].any():
            for j in order[:place][sometimes[order[:place]]].tolist():
                needed[k, j] = not (recorded[:, k] & ~recorded[:, j]).any()
    return needed


def estimated_propensities(
    encoded: Floats,
    true: Ints,
    recorded: Bools,
    order: Ints,
    source: Ints,
    wanted: Bools,
) -> Floats:
    """P(recorded | what was recorded before, class), by an additive model for each covariate.

    It is learned among the rows that have all that the covariate is never recorded without, and
    0 elsewhere. For a covariate that is always recorded, or not wanted, it is 1.
    """
    needed = prerequisites(recorded, order)
    propensities = np.ones(recorded.shape)
    classes = (true[:, None] == np.unique(true)[1:]).astype(np.float64)
    for place, k in enumerate(order.tolist()):
        if not wanted[k] or recorded[:, k].all():
            continue
        among = recorded[:, needed[k]].all(axis=1)
        taken = recorded[among, k]
        propensities[~among, k] = 0.0
        if min(taken.sum(), (~taken).sum()) < _FEWEST:
            propensities[among, k] = taken.mean()
            continue
        before = np.isin(source, order[:place])
        seen = recorded[among][:, source[before]]
        history = np.where(seen, encoded[among][:, before], np.nan)
        columns = np.column_stack([_filled(history), seen, classes[among]])
        columns = columns[:, np.ptp(columns, axis=0) > 0]
        if not columns.shape[1]:
            propensities[among, k] = taken.mean()
            continue
        model = LogisticGAM(strengths="common", cv=_FOLDS).fit(columns, taken)
        propensities[among, k] = model.out_of_fold_proba_
    return propensities


def _filled(values: Floats) -> Floats:
    """Standardised values, 0 where there is none; what is no number is none."""
    there = np.isfinite(values)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, values, 0.0).sum(axis=0) / count
    centred: Floats = np.where(there, values - mean, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / count)
    return np.asarray(centred / np.where(scale > 0, scale, 1.0))


class Followed(NamedTuple):
    """Weights along the walks.

    Attributes
    ----------
    weights : for each stage the weights of its rows; 0 once a row was at an unsupported question.
    unsupported : mask of the rows that were.
    blame : (covariates,) how many rows were for which covariate.
    """

    weights: tuple[Floats, ...]
    unsupported: Bools
    blame: Ints


def weights_along(
    stages: tuple[Stage, ...],
    recorded: Bools,
    propensities: Floats,
    order: Ints,
    least: float,
) -> Followed:
    """One over the probability that all was recorded which the policy had to be followed up to.

    With k the next covariate of a policy, k and its prerequisites must be recorded; each counts
    once. Where the first of them that is not recorded, or one before it, has a propensity below
    `least`, the question has no support.
    """
    n_rows, n_covariates = recorded.shape
    needed = prerequisites(recorded, order)
    weight, unsupported = np.ones(n_rows), np.zeros(n_rows, dtype=np.bool_)
    blame = np.zeros(n_covariates, dtype=np.intp)
    demanded = np.zeros((n_rows, n_covariates), dtype=np.bool_)
    found = []
    for stage in stages:
        rows = stage.rows
        found.append(weight[rows])
        asked = stage.asks | (stage.asks.astype(np.intp) @ needed.astype(np.intp) > 0)
        new = asked & ~demanded[rows]
        demanded[rows] |= asked
        missing = (new & ~recorded[rows])[:, order]
        reached: Bools = np.asarray(np.cumsum(missing, axis=1) - missing == 0)
        e = propensities[rows]
        bad = (new & (e < least))[:, order] & reached & (weight[rows] > 0)[:, None]
        lost = bad.any(axis=1)
        np.add.at(blame, order[bad.argmax(axis=1)[lost]], 1)
        unsupported[rows[lost]] = True
        factor = np.where(new & recorded[rows] & (e >= least), e, 1.0).prod(axis=1)
        weight[rows] = np.where(lost, 0.0, weight[rows] / factor)
    return Followed(tuple(found), unsupported, blame)


def expected_along(
    stages: tuple[Stage, ...],
    encoded: Floats,
    true: Ints,
    recorded: Bools,
    source: Ints,
    groups: Ints | None,
    seed: int,
) -> tuple[Floats, ...]:
    """What a row will have cost at its stop, expected at each stage, by models that did not see it.

    From the last stage back, what is expected after the next question is regressed on the class,
    the values that are always recorded and those that the policy has acquired. Where the policy
    stops, the cost is known. A stage without any row to learn from has what the policy expects.
    """
    fold = shuffled_folds(true.astype(np.float64), _FOLDS, seed, groups)
    always = always_recorded(recorded)
    tables = [_columns(stage, encoded, true, always, source) for stage in stages]
    expected = [stage.cost.copy() for stage in stages]
    for held_out in range(_FOLDS):
        later: Floats | None = None
        for t in range(len(stages) - 1, -1, -1):
            stage = stages[t]
            target = np.where(stage.stops, stage.cost, np.nan)
            if later is not None:
                target[np.isin(stage.rows, stages[t + 1].rows)] = later
            learned = np.isfinite(target) & (fold[stage.rows] != held_out) & ~stage.stops
            fitted = stage.expected.copy()
            if learned.any():
                fitted = _ridge(tables[t], target, learned)
            later = np.where(stage.stops, stage.cost, fitted)
            here = fold[stage.rows] == held_out
            expected[t][here] = later[here]
    return tuple(expected)


def _columns(stage: Stage, encoded: Floats, true: Ints, always: Bools, source: Ints) -> Floats:
    """What is known of a row at a stage, as columns of a linear model."""
    seen = (stage.acquired | always)[:, source]
    values = _filled(np.where(seen, encoded[stage.rows], np.nan))
    classes = (true[stage.rows][:, None] == np.unique(true)).astype(np.float64)
    own = _filled(stage.expected[:, None])
    both = np.column_stack([own, own**2, values, values**2])
    of_class = (classes[:, :, None] * both[:, None, :]).reshape(len(both), -1)
    return np.column_stack([classes, of_class, stage.acquired, stage.asks])


def _ridge(columns: Floats, target: Floats, learned: Bools) -> Floats:
    """Predictions for all rows of a ridge regression on those in `learned`."""
    mean = float(target[learned].mean())
    own = columns[learned]
    gram = own.T @ own + _RIDGE * np.eye(own.shape[1])
    solution: Any = np.linalg.solve(gram, own.T @ (target[learned] - mean))
    return np.asarray(columns @ solution + mean)

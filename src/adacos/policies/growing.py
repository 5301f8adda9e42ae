"""Growing a tree of questions: a split is made where it pays on out-of-fold rows.

The tree begins as a single leaf, which is AdaCOS. At each leaf, every affordable covariate is tried
as the next question for all its rows, each side continuing as AdaCOS with quick models of its own
(`adacos.models.quick`). What that costs is not what the models expect but what happens on rows that
they were not fitted to: paid plus cost of the answer, cross-fitted over folds. The best split is
made if it lowers that cost by more than `STANDARD_ERRORS` standard errors of the difference.

A side has few rows. Its models are fitted to all rows, those of the other side with the weight
`SIBLING_WEIGHT`, those beyond with a power of it. By this power prior the side's models are drawn
towards those of the node above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable, remaining_budget
from adacos.deciders.weighing import weigh
from adacos.decision import STOP, Decision
from adacos.engine import Budget, walk
from adacos.families import family
from adacos.kernels.class_risk import best_label
from adacos.kernels.folds import drawn_rows, stratified_folds
from adacos.kernels.strengths import central_strengths
from adacos.models.accuracy import ROUGH
from adacos.models.branches import LEFT, RIGHT, Node, Split
from adacos.models.density import moment_matrix
from adacos.models.dynamic import ValueTables
from adacos.models.lookahead import WalkState, advance, begin
from adacos.models.pairs import out_of_fold_probabilities
from adacos.models.progress import report_progress
from adacos.models.quick import central_fit, quick_model
from adacos.models.sequence_model import SequenceModel
from adacos.models.sequences import order_among
from adacos.models.set_fits import SetFits, prepare
from adacos.policies.many_classes import max_error_cost
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, CATEGORICAL, NUMERIC
from adacos.typing import Bools, Floats, Ints

FOLDS = 5
# Folds after which only the most promising splits are tried on the others, and how many are.
FIRST_FOLDS, N_PROMISING = 2, 3
# Standard errors by which a split must lower the cost.
STANDARD_ERRORS = 0.25
# Most expensive errors that it must outweigh too: rare losses hide from standard errors.
EXPENSIVE_ERRORS = 1.0
# Weight of the probability, next to the class as it turned out, in judging a split.
PROBABILITY_WEIGHT = 0.8
# Weight of the rows of the other side in the models of one side.
SIBLING_WEIGHT = 0.03
# A side of fewer rows is not made, and a leaf of fewer not tried: five folds of it say nothing.
LEAST_ROWS, LEAST_TO_SPLIT = 15, 60
# More rows are drawn from, and further covariates left to the leaves.
MOST_ROWS, MOST_COVARIATES = 5000, 12
# Quantiles at which a number is cut, the first one tried first.
QUANTILES = (0.5, 0.25, 0.75)


@dataclass(frozen=True)
class GrowingData:
    """What a tree grows on: some training rows and the covariates that may be asked early.

    Attributes
    ----------
    fits : the rows prepared.
    encoded : their encoded values, NaN where there is none.
    encoder : what was learned about these columns.
    costs : covariate costs, and the misclassification costs in force.
    kept : the covariates, by their position in the whole table.
    lookahead : by which the leaves decide, see `AdaCOSClassifier`.
    fold : fold of each row.
    missing_moments : what missing values add to the moment matrix, for one unit of row weight.
    probability : cross-validated probability of class 1 of each row; with three or more classes
        that of each, (rows, K).
    budget : what a row may pay at most; None for any amount.
    """

    fits: SetFits
    encoded: Floats
    encoder: TableEncoder
    costs: CostTable
    kept: Ints
    lookahead: str
    fold: Ints
    missing_moments: Floats
    probability: Floats
    budget: float | None = None

    @property
    def y(self) -> Floats:
        """Their labels."""
        return self.fits.y

    @property
    def no_outcome(self) -> Floats:
        """An outcome of every row that is not found yet."""
        return np.full((len(self.y), len(self.costs.matrix)), np.nan)


class SplitTrial(NamedTuple):
    """A split that is being tried on the rows of a leaf.

    Attributes
    ----------
    split : the split.
    side : (rows,) LEFT, RIGHT or -1 of every training row.
    outcome : cross-fitted outcome of the rows of the leaf, see `_outcome`; NaN where it is not
        found yet.
    """

    split: Split
    side: Ints
    outcome: Floats


def growing_data(
    encoded: Floats,
    y: Floats,
    weight: Floats,
    encoder: TableEncoder,
    costs: CostTable,
    *,
    order: Ints,
    lookahead: str,
    n_splines: int,
    seed: int,
    budget: float | None = None,
    groups: Ints | None = None,
) -> GrowingData:
    """Rows ready for growing.

    Where there are many, `MOST_ROWS` of them are drawn; of the covariates those are kept that are
    free or among the first `MOST_COVARIATES` of the order in which AdaCOS asks.
    """
    rows = drawn_rows(y, MOST_ROWS, seed)
    kept = (costs.covariates == 0) | np.isin(np.arange(len(order)), order[:MOST_COVARIATES])
    encoded, weight = encoded[np.ix_(rows, kept[encoder.source])], weight[rows]
    encoder, costs = encoder.only(kept), costs.only(kept)
    fold = stratified_folds(encoded, y[rows], FOLDS, seed, None if groups is None else groups[rows])
    fits = prepare(
        encoded,
        y[rows],
        encoder,
        n_splines=n_splines,
        families=("common",),
        fold=fold,
        weight=weight,
        n_classes=len(costs.matrix),
    )
    missing_moments = np.zeros_like(fits.moments)
    if fits.missing is not None:
        plain = moment_matrix(fits.standardised, fits.columns, weight)
        missing_moments = (fits.moments - plain) / plain[0, 0]
    probability = out_of_fold_probabilities(fits, fold, order_among(order, kept))
    kept = np.flatnonzero(kept)
    return GrowingData(
        fits, encoded, encoder, costs, kept, lookahead, fold, missing_moments, probability, budget
    )


def grow(data: GrowingData, deepest: int) -> list[Node]:
    """The tree, its leaves still without models; a single leaf where no split pays."""
    nodes = [Node(np.empty(0, dtype=np.intp))]
    all_rows = np.ones(len(data.y), dtype=np.bool_)
    outcome = _cross_fitted(data, all_rows, data.fits.weight, nodes[0].path, range(FOLDS))
    waiting = [(0, 0, all_rows, data.fits.weight, outcome)]
    while waiting:
        number, depth, rows, weight, outcome = waiting.pop(0)
        if depth >= deepest or data.fits.weight[rows].sum() < LEAST_TO_SPLIT:
            continue
        node = nodes[number]
        best = _best_split(data, rows, weight, node.path, outcome)
        if best is None:
            continue
        path = _longer(node.path, best.split.covariate)
        gain, error = _gain(data, best.outcome, outcome, rows, 0.0)
        nodes[number] = replace(
            node, split=best.split, below=(len(nodes), len(nodes) + 1), gain=gain, error=error
        )
        price = _price(data, node.path, best.split.covariate)
        for side in (LEFT, RIGHT):
            on_side = best.side == side
            after = best.outcome - price
            waiting.append(
                (len(nodes), depth + 1, rows & on_side, _side_weight(weight, on_side), after)
            )
            nodes.append(Node(path))
        report_progress("branch", len(nodes) // 2, 2**deepest - 1)
    return [_in_table(node, data.kept) for node in nodes]


def _in_table(node: Node, kept: Ints) -> Node:
    """A node with its covariates by their position in the whole table."""
    split = node.split
    if split is not None:
        split = replace(split, covariate=int(kept[split.covariate]))
    return replace(node, path=kept[node.path], split=split)


def leaf_weights(
    nodes: list[Node], encoded: Floats, encoder: TableEncoder, weight: Floats
) -> dict[int, Floats]:
    """For each leaf, how much each training row counts in its models."""
    weights = {0: weight}
    for number, node in enumerate(nodes):
        if node.split is not None:
            side = node.split.side(encoded, encoder)
            for way, below in zip((LEFT, RIGHT), node.below, strict=True):
                weights[below] = _side_weight(weights[number], side == way)
    return {number: weights[number] for number, node in enumerate(nodes) if node.split is None}


def _side_weight(weight: Floats, on_side: Bools) -> Floats:
    return np.where(on_side, weight, SIBLING_WEIGHT * weight)


def _best_split(
    data: GrowingData, rows: Bools, weight: Floats, path: Ints, outcome: Floats
) -> SplitTrial | None:
    """The split of a leaf that lowers the cross-fitted cost most surely, or None.

    Every covariate is tried at its middle cut on some folds, the best of them at their other cuts,
    and the best splits then on the folds that are left.
    """
    trials = _trials(data, rows, weight, path, outcome)

    def tried(some: list[SplitTrial], folds: range) -> list[SplitTrial]:
        """The best of some trials, after these folds besides."""
        for trial in some:
            _try(data, trial, rows, weight, path, folds, outcome)
        return sorted(some, key=lambda trial: -_surplus(data, trial, outcome, rows))[:N_PROMISING]

    best = tried([cuts[0] for cuts in trials], range(FIRST_FOLDS))
    taken = {trial.split.covariate for trial in best}
    others = [t for cuts in trials for t in cuts[1:] if t.split.covariate in taken]
    best += tried(others, range(FIRST_FOLDS))
    best = sorted(best, key=lambda trial: -_surplus(data, trial, outcome, rows))[:N_PROMISING]
    best = [
        trial
        for trial in best
        if _gain(data, trial.outcome, outcome, rows, PROBABILITY_WEIGHT)[0] > 0
    ]
    best = tried(best, range(FIRST_FOLDS, FOLDS))
    return best[0] if best and _surplus(data, best[0], outcome, rows) > 0 else None


def _surplus(data: GrowingData, trial: SplitTrial, outcome: Floats, rows: Bools) -> float:
    """Gain less its allowances for noise and for an error not yet seen."""
    gain, error = _gain(data, trial.outcome, outcome, rows, PROBABILITY_WEIGHT)
    tried = rows & ~np.isnan(trial.outcome[:, 0])
    weight = data.fits.weight[tried]
    error_cost = max_error_cost(data.costs.matrix, data.y[tried], weight) / float(weight.sum())
    return gain - STANDARD_ERRORS * error - EXPENSIVE_ERRORS * error_cost


def _gain(
    data: GrowingData, after: Floats, before: Floats, rows: Bools, trust: float
) -> tuple[float, float]:
    """Mean by which the cost falls over the rows tried so far, and its standard error.

    What a row costs depends on its class. The class as it turned out is an unbiased but noisy
    judge; its probability given all covariates, by a model that did not see the row, is a steady
    one that may be wrong. The two are mixed.
    """
    tried = rows & ~np.isnan(after[:, 0])
    fall, weight = (before - after)[tried], data.fits.weight[tried]
    if data.probability.ndim == 1:
        judge = (1 - trust) * data.y[tried] + trust * data.probability[tried]
        gain = (1 - judge) * fall[:, 0] + judge * fall[:, 1]
    else:
        turned_out = np.eye(fall.shape[1])[data.y[tried].astype(np.intp)]
        gain = (((1 - trust) * turned_out + trust * data.probability[tried]) * fall).sum(axis=1)
    mean = float(np.average(gain, weights=weight))
    spread = float(np.average((gain - mean) ** 2, weights=weight))
    return mean, float(np.sqrt(spread / max(float(weight.sum()) - 1, 1.0)))


def _trials(
    data: GrowingData, rows: Bools, weight: Floats, path: Ints, outcome: Floats
) -> list[list[SplitTrial]]:
    """For each affordable covariate the splits with enough rows on both sides, middle one first."""
    realised = outcome[np.arange(len(rows)), data.y.astype(np.intp)]
    affordable = np.average(realised[rows], weights=data.fits.weight[rows])
    trials = []
    for k in range(len(data.costs.names)):
        price = _price(data, path, k)
        if price >= affordable or price > _left(data, path):
            continue
        own = []
        for split in _cuts(data, k, rows, weight):
            side = split.side(data.encoded, data.encoder)
            count = [data.fits.weight[rows & (side == way)].sum() for way in (LEFT, RIGHT)]
            if min(count) >= LEAST_ROWS:
                own.append(SplitTrial(split, side, data.no_outcome))
        if own:
            trials.append(own)
    return trials


def _cuts(data: GrowingData, k: int, rows: Bools, weight: Floats) -> list[Split]:
    """Splits by one covariate."""
    kind = data.encoder.kinds[k]
    own = data.encoded[np.ix_(rows, data.encoder.source == k)]
    count = data.fits.weight[rows]
    known = ~np.isnan(own).any(axis=1) & (count > 0)
    if not known.any():
        return []
    if kind == CATEGORICAL:
        return _category_cuts(data, k, rows, weight)
    if kind == BINARY:
        return [Split(k, np.ones(1), float(data.encoder.low[k] + data.encoder.high[k]) / 2)]
    if kind != NUMERIC:
        return []
    values = np.unique(own[known, 0])
    between = (values[1:] + values[:-1]) / 2
    if len(between) == 0:
        return []
    # Halfway between two values, as near as can be to the quantile.
    quantiles = np.quantile(own[known, 0], QUANTILES, weights=count[known], method="inverted_cdf")
    nearest = np.abs(between[:, None] - quantiles).argmin(axis=0)
    return [
        Split(k, np.ones(1), float(cut)) for cut in between[list(dict.fromkeys(nearest.tolist()))]
    ]


def _category_cuts(data: GrowingData, k: int, rows: Bools, weight: Floats) -> list[Split]:
    """Two groups of categories each, that differ most in what the other covariates say.

    The interactions of the categories with the columns of the other covariates have a score under
    the additive model of the leaf; its first principal component puts the categories in an order,
    which is cut near the quantiles of the rows. It looks at the labels of all rows, of the fold
    that a model does not see too: among few categories there is little to choose from.
    """
    indicators = np.where(rows[:, None], data.encoded[:, data.encoder.source == k], 0.0)
    indicators = np.nan_to_num(indicators)
    count = data.fits.weight @ indicators
    basis, columns = data.fits.basis, data.fits.columns
    penalty = np.append(0.0, central_strengths(basis.linear)[basis.term])
    design = np.hstack([np.ones((len(rows), 1)), columns])
    start = np.zeros((*family(data.fits.n_classes).later, design.shape[1]))
    _, residual = central_fit(design, data.y, weight, penalty, start)
    others = columns[:, basis.group != k]
    if others.shape[1] == 0:
        return []  # nothing else acts differently in some of its categories
    mean = np.average(others, axis=0, weights=data.fits.weight)
    spread = np.sqrt(np.average((others - mean) ** 2, axis=0, weights=data.fits.weight))
    spread = np.maximum(spread, 1e-9)
    scores = [indicators.T @ (own[:, None] * others / spread) for own in np.atleast_2d(residual)]
    score = np.hstack(scores)
    score /= np.sqrt(np.maximum(count, 1.0))[:, None]
    left, *_ = np.linalg.svd(score, full_matrices=False)
    order = np.argsort(left[:, 0] / np.sqrt(np.maximum(count, 1.0)), kind="stable")
    below = np.cumsum(count[order]) / count.sum()
    wanted = np.abs(below[:-1, None] - np.array(QUANTILES)).argmin(axis=0)
    splits = []
    for last in dict.fromkeys(wanted.tolist()):
        weights = np.zeros(len(order))
        weights[order[last + 1 :]] = 1.0
        splits.append(Split(k, weights, 0.5))
    return splits


def _try(
    data: GrowingData,
    trial: SplitTrial,
    rows: Bools,
    weight: Floats,
    path: Ints,
    folds: range,
    outcome: Floats,
) -> None:
    """Fill in the outcome of the rows of these folds with the split."""
    longer = _longer(path, trial.split.covariate)
    price = _price(data, path, trial.split.covariate)
    for side in (LEFT, RIGHT):
        on_side = trial.side == side
        found = _cross_fitted(data, rows & on_side, _side_weight(weight, on_side), longer, folds)
        done = ~np.isnan(found[:, 0])
        trial.outcome[done] = found[done] + price
    # Where the covariate is unavailable, nothing changes.
    same = rows & (trial.side < 0) & np.isin(data.fold, folds)
    trial.outcome[same] = outcome[same]


def _cross_fitted(
    data: GrowingData, rows: Bools, weight: Floats, path: Ints, folds: range
) -> Floats:
    """Outcome of these rows beyond the path, by models without their fold; NaN elsewhere."""
    found = data.no_outcome
    first = data.costs.covariates == 0
    first[path] = True
    reached = np.isin(np.arange(len(first)), path)
    prices = np.maximum(data.costs.of_next(reached), 1e-12)
    for f in folds:
        held_out = np.flatnonzero(rows & (data.fold == f))
        if len(held_out):
            kept = np.where(data.fold == f, 0.0, weight)
            model = quick_model(data.fits, kept, prices, first, data.missing_moments)
            found[held_out] = _outcome(data, model, held_out, reached, _left(data, path))
    return found


def _outcome(
    data: GrowingData, model: SequenceModel, rows: Ints, reached: Bools, left: float = np.inf
) -> Floats:
    """What becomes of rows with AdaCOS and this model that have a budget left, (rows, classes).

    What they pay beyond the path plus the cost of their answer, if they are of each class.
    """
    costs, values = data.costs, ValueTables(data.costs, data.costs.matrix, ROUGH)
    found = np.empty((len(rows), len(costs.matrix)))
    available = ~np.isnan(data.encoded[np.ix_(rows, data.encoder.first)])
    have = np.zeros(len(reached), dtype=np.bool_)
    have[model.sequence.set(0)] = True

    def decide(state: WalkState) -> Decision:
        continues, ahead = weigh(state, values, data.lookahead)
        following = state.upcoming[0] if len(state.upcoming) else STOP
        return Decision(np.where(continues, following, STOP), ahead.log_odds, state.stage)

    # As in the engine, complete rows are followed separately.
    complete = available.all(axis=1)
    for part in (np.flatnonzero(complete), np.flatnonzero(~complete)):
        if len(part) == 0:
            continue
        there = available[part]
        budget = None
        if np.isfinite(left):
            budget = Budget(left, costs, reached & there, lambda s, left: s._replace(left=left))
        trail = walk(
            begin(model, data.encoded[rows[part]], there, have, np.zeros_like(have)),
            decide,
            lambda state, going, covariates: advance(state, going, covariates.shape[1]),
            there,
            np.full(there.shape, STOP),
            budget,
        )
        paid = costs.of_order(trail.order, given=reached & there)
        label = best_label(trail.log_odds, costs.matrix)
        found[part] = paid[:, None] + costs.matrix[:, label].T
    return found


def _longer(path: Ints, k: int) -> Ints:
    """The path after a covariate, which may be on it already."""
    return path if k in path else np.append(path, k)


def _left(data: GrowingData, path: Ints) -> float:
    """What rows can still pay after a path."""
    if data.budget is None:
        return np.inf
    return float(remaining_budget(data.budget, data.costs.of_order(path)))


def _price(data: GrowingData, path: Ints, k: int) -> float:
    """Cost of a covariate after those of a path; nothing if it is one of them."""
    reached = np.isin(np.arange(len(data.costs.names)), path)
    return 0.0 if reached[k] else float(data.costs.of_next(reached)[k])

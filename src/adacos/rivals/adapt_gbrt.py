"""AdaptGbrt (Nan & Saligrama 2017): a gate between a cheap boosted classifier and the full model.

Rows with gate score g(x) > 0 go to the full model f0, which acquires everything; the others are
classified by f1. Gate and f1 are boosted trees that share the covariates they pay for, learned by
alternating, with s = ±1 the class and q the share of a row that the full model answers for,

    q = σ(log γ + log σ(s f0) + log σ(g) - log σ(s f1) - log σ(-g)),   γ such that mean q = P_full,

with boosting steps of g towards q and of f1 towards s, the latter weighted by 1 - q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import expit, log_expit, logit

from adacos.costs import Costs, CostTable, total_of
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.engine import compact_left
from adacos.kernels.bayes_risk import decision_threshold, label_of
from adacos.kernels.folds import shuffled_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.gam import LogisticGAM
from adacos.models.progress import prints_progress, report_progress
from adacos.policies.base import BasePolicy, TrainingTable
from adacos.rivals.calibration import class_weights, fit_calibration
from adacos.rivals.greedy_miser import RIDGE, first_score, gradient_of, lambda_grid
from adacos.rivals.trees import Bins, Forest, HeapTree, cut, grow_tree, plant
from adacos.tables.imputer import GaussianImputer
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, amount, each, finite, whole

# Pairs of trees between two updates of q, which are also the numbers of trees tried.
PAIRS_PER_ROUND = 5
# Bisection for log γ: the first interval, and halvings that leave 1e-9 of it.
_LARGEST_LOG_GAMMA, _HALVINGS = 40.0, 36


class GridPoint(NamedTuple):
    """A point of the grid that cross-validation searches."""

    lam: float
    learning_rate: float
    full_fraction: float


class Pair(NamedTuple):
    """Gate and cheap classifier: constants and trees of their scores."""

    gate_constant: float
    gate: Forest
    cheap_constant: float
    cheap: Forest


class AdaptGbrtClassifier(BasePolicy):
    """Boosted gate that sends a row to a cheap classifier or to the full model.

    The full model is the logistic GAM on all covariates, unavailable ones at their conditional
    mean. While gate and cheap classifier are learned it is represented by its out-of-fold
    probabilities, so it is not judged on rows it was fitted to. A row that the gate keeps pays for
    the covariates on its paths through gate and cheap classifier; a row sent to the full model pays
    for every available covariate.

    Misclassification costs: rows weigh in gate and cheap classifier as much as answering them
    wrongly costs, the cheap label is the sign of its score, and the full model's log-odds are
    moved by the same weights, which makes its label the Bayes decision. The original gives labels
    only; `probability` here is the full model's where it answers, and elsewhere the cheap score
    through a logistic curve fitted to held-out scores of rows that the gate kept.

    Settings are those with the least total cost in cross-validation. Of the original's grid (16 λ,
    6 learning rates, 15 fractions, 100 trees evaluated every 10) the default searches 8 λ, 2
    learning rates, 4 fractions and 40 pairs of trees evaluated every 5, in full; λ is per training
    row, on a grid that ends beyond where a first split pays. Instead of growing both ensembles
    again in each of up to 50 rounds, a round updates q and adds five pairs of trees;
    cross-validation chooses the number of rounds. Learning rates are lower than the original's
    because trees take Newton steps.

    Parameters
    ----------
    depth : int, default=4
        Most splits on a path of a tree.
    n_trees : int, default=40
        Most pairs of trees.
    n_lambdas : int, default=8
        Number of values of λ tried, 0 among them.
    learning_rates : sequence of float, default=(0.1, 0.3)
        Factors on each tree to try.
    full_fractions : sequence of float, default=(0.2, 0.4, 0.6, 0.8)
        Values of P_full to try, between 0 and 1.
    max_bins : int, default=64
        Most bins a column is cut into.
    verbose : int, default=0
        Whether `fit` prints where it is: which candidate of the cross-validation.

    Attributes
    ----------
    full_ : LogisticGAM
        The full model, and what fills in unavailable values for it.
    imputer_ : GaussianImputer
        Likewise.
    gate_ : Forest
        Trees of the two scores, with `gate_constant_` and `cheap_constant_`.
    cheap_ : Forest
        Likewise.
    slope_ : float
        From the cheap score to log-odds.
    lambda_ : float
        What was chosen.
    learning_rate_ : float
        Likewise.
    full_fraction_ : float
        Likewise.
    n_trees_ : int
        Likewise.
    cv_cost_ : ndarray
        Mean total cost in cross-validation, (candidates, numbers of trees).

    References
    ----------
    F. Nan and V. Saligrama, "Adaptive classification for prediction under a budget", NIPS 2017.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import AdaptGbrtClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaptGbrtClassifier(costs, n_trees=5, n_lambdas=2, cv=2).fit(X[:300], y[:300])
    >>> policy.acquire(X[300:]).acquired.shape
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "imputer_": GaussianImputer,
        "full_": LogisticGAM,
        "cv_cost_": Floats,
        "lambda_": float,
        "learning_rate_": float,
        "full_fraction_": float,
        "n_trees_": int,
        "slope_": float,
        "gate_constant_": float,
        "gate_": Forest,
        "cheap_constant_": float,
        "cheap_": Forest,
    }

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "depth": whole(1),
        "n_trees": whole(1),
        "n_lambdas": whole(1),
        "max_bins": whole(2),
        "cv": whole(2),
        "random_state": whole(0),
        "verbose": whole(0),
        "learning_rates": each(finite(above=0)),
        "full_fractions": each(finite(above=0, below=1)),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        depth: int = 4,
        n_trees: int = 40,
        n_lambdas: int = 8,
        learning_rates: Sequence[float] = (0.1, 0.3),
        full_fractions: Sequence[float] = (0.2, 0.4, 0.6, 0.8),
        max_bins: int = 64,
        cv: int = 5,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.depth = depth
        self.n_trees = n_trees
        self.n_lambdas = n_lambdas
        self.learning_rates = learning_rates
        self.full_fractions = full_fractions
        self.max_bins = max_bins
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    @one_blas_thread
    @prints_progress
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the full model, choose the settings by cross-validated total cost, fit all rows."""
        training = self.begin_fit(X, y)
        matrix = training.costs.matrix
        self.imputer_ = GaussianImputer().fit(training.encoded)
        complete = self.imputer_.transform(training.encoded)
        bins = cut(training.encoded, self.max_bins)
        source = self.encoder_.source
        candidates = [
            GridPoint(float(lam), rate, fraction)
            for lam, rate, fraction in product(
                lambda_grid(bins, training.y, source, training.costs, "logistic", self.n_lambdas),
                self.learning_rates,
                self.full_fractions,
            )
        ]
        rounds = np.arange(PAIRS_PER_ROUND, self.n_trees + PAIRS_PER_ROUND, PAIRS_PER_ROUND)
        checkpoints = np.minimum(rounds, self.n_trees)
        fold = shuffled_folds(training.y, self.cv, self.random_state, training.groups)
        held_out = _held_out(
            training, complete, bins, source, fold, candidates, checkpoints, self.depth
        )
        label = np.where(
            held_out.to_full, label_of(held_out.full, matrix)[:, None, None], held_out.cheap >= 0
        )
        truth = training.y[:, None, None]
        self.cv_cost_ = total_of(held_out.paid, truth, label, matrix).mean(axis=0)
        at, number = np.unravel_index(self.cv_cost_.argmin(), self.cv_cost_.shape)
        chosen = candidates[at]
        self.lambda_, self.learning_rate_, self.full_fraction_ = chosen
        self.n_trees_ = int(checkpoints[number])
        kept = ~held_out.to_full[:, at, number]
        self.slope_ = 1.0
        if kept.any():
            self.slope_, _ = fit_calibration(
                held_out.cheap[kept, at, number], training.y[kept], matrix, weighted=True
            )
        self.full_ = LogisticGAM(random_state=self.random_state).fit(complete, training.y)
        self.gate_constant_, self.gate_, self.cheap_constant_, self.cheap_ = adapt(
            bins,
            training.y,
            logit(self.full_.out_of_fold_proba_),
            source,
            training.costs,
            chosen,
            self.n_trees_,
            self.depth,
        )
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> GatedDecider:
        """Give the decider that decides by what was learned."""
        gate = Score(self.gate_constant_, self.gate_)
        cheap = Score(self.cheap_constant_, self.cheap_)
        return GatedDecider(terms, gate, cheap, self.slope_, self.full_, self.imputer_)


class Score(NamedTuple):
    """A constant and the trees that add to it."""

    constant: float
    forest: Forest


@dataclass(frozen=True, eq=False)
class GatedDecider(ObservedDecider):
    """A decider that sends each row to a cheap model or to the full one, by a gate.

    Attributes
    ----------
    gate, cheap : scores of the gate and the cheap model.
    slope : by which the score of the cheap model is multiplied.
    full : the full model.
    imputer : fills in the values that the full model has not.
    """

    gate: Score
    cheap: Score
    slope: float
    full: LogisticGAM
    imputer: GaussianImputer

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        gate, for_gate = self.gate.forest.ask(state)
        cheap, for_cheap = self.cheap.forest.ask(state)
        to_full = self.gate.constant + gate.sum(axis=1) > 0
        log_odds = self.slope * (self.cheap.constant + cheap.sum(axis=1))
        log_odds += decision_threshold(self.rule.matrix)
        if to_full.any():
            seen = np.where(state.acquired[:, self.encoder.source], state.values, np.nan)
            log_odds[to_full] = self.full.decision_function(self.imputer.transform(seen[to_full]))
        # The gate's covariates come first, then the rest of the full model's or the cheap one's.
        rest = state.available & ~state.acquired
        wanted = np.full(rest.shape, STOP)
        wanted[:, 0] = for_cheap
        wanted[to_full] = compact_left(np.where(rest[to_full], np.arange(rest.shape[1]), STOP))
        by_gate = for_gate != STOP
        wanted[by_gate] = STOP
        wanted[by_gate, 0] = for_gate[by_gate]
        return Decision(wanted, log_odds)


def adapt(
    bins: Bins,
    y: Floats,
    full_log_odds: Floats,
    source: Ints,
    costs: CostTable,
    candidate: GridPoint,
    n_trees: int,
    depth: int,
) -> Pair:
    """Alternate between q and pairs of trees; `full_log_odds` did not see the row's label."""
    weight = class_weights(y, costs.matrix)
    sign = 2 * y - 1
    full_likelihood = log_expit(sign * (full_log_odds - decision_threshold(costs.matrix)))
    gate_constant = float(logit(candidate.full_fraction))
    cheap_constant = first_score("logistic", y, weight)
    gate, cheap = np.full(len(y), gate_constant), np.full(len(y), cheap_constant)
    gate_trees: list[HeapTree] = []
    cheap_trees: list[HeapTree] = []
    used = np.zeros(len(costs.names), dtype=np.bool_)
    charge = candidate.lam * len(y)
    for number in range(n_trees):
        if number % PAIRS_PER_ROUND == 0:
            ratio = full_likelihood + log_expit(gate)
            ratio -= log_expit(sign * cheap) + log_expit(-gate)
            share = full_share(ratio, candidate.full_fraction)
        for score, target, own_weight, trees in (
            (gate, share, weight, gate_trees),
            (cheap, y, weight * (1 - share), cheap_trees),
        ):
            tree, leaf = grow_tree(
                bins,
                *gradient_of("logistic", score, target, own_weight),
                depth=depth,
                source=source,
                costs=costs,
                charge=charge,
                used=used,
                ridge=RIDGE,
            )
            tree = tree._replace(value=candidate.learning_rate * tree.value)
            score += tree.value[leaf]
            trees.append(tree)
    return Pair(
        gate_constant,
        plant(gate_trees, depth, source),
        cheap_constant,
        plant(cheap_trees, depth, source),
    )


def full_share(ratio: Floats, fraction: float) -> Floats:
    """q = σ(log γ + ratio) with γ such that the mean of q is `fraction`."""
    low = -_LARGEST_LOG_GAMMA - ratio.max()
    high = _LARGEST_LOG_GAMMA - ratio.min()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if expit(middle + ratio).mean() < fraction:
            low = middle
        else:
            high = middle
    return np.asarray(expit((low + high) / 2 + ratio))


class _HeldOut(NamedTuple):
    """Outcome for each row by models that did not see it.

    `full` is (rows,), the others (rows, candidates, checkpoints).
    """

    full: Floats
    cheap: Floats
    to_full: Bools
    paid: Floats


def _held_out(
    training: TrainingTable,
    complete: Floats,
    bins: Bins,
    source: Ints,
    fold: Ints,
    candidates: Sequence[GridPoint],
    checkpoints: Ints,
    depth: int,
) -> _HeldOut:
    shape = (len(training.y), len(candidates), len(checkpoints))
    full, cheap, paid = np.empty(shape[0]), np.empty(shape), np.empty(shape)
    to_full = np.empty(shape, dtype=np.bool_)
    column = np.searchsorted(source, np.arange(len(training.costs.names)))
    available = ~np.isnan(training.encoded[:, column])
    until = (checkpoints * depth)[:, None]
    for k in range(int(fold.max()) + 1):
        inside, outside = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        own = bins.rows(outside)
        gam = LogisticGAM().fit(complete[outside], training.y[outside])
        full[inside] = gam.decision_function(complete[inside])
        out_of_fold = logit(gam.out_of_fold_proba_)
        for i, candidate in enumerate(candidates):
            pair = adapt(
                own,
                training.y[outside],
                out_of_fold,
                source,
                training.costs,
                candidate,
                int(checkpoints[-1]),
                depth,
            )
            gate_values, gate_use = pair.gate.walk(training.encoded[inside])
            cheap_values, cheap_use = pair.cheap.walk(training.encoded[inside])
            gate = pair.gate_constant + np.cumsum(gate_values, axis=1)[:, checkpoints - 1]
            cheap[inside, i] = pair.cheap_constant
            cheap[inside, i] += np.cumsum(cheap_values, axis=1)[:, checkpoints - 1]
            to_full[inside, i] = gate > 0
            report_progress(
                "candidate", k * len(candidates) + i + 1, (int(fold.max()) + 1) * len(candidates)
            )
            # The gate's covariates come first, then the cheap trees' or all the others.
            by_gate = gate_use[:, None, :] < until
            sent, last = gate[..., None] > 0, until.max()
            by_cheap = np.minimum(cheap_use, last)[:, None, :]
            used = by_gate | np.where(sent, available[inside, None], by_cheap < until)
            later = last + np.where(sent, np.arange(len(column)), by_cheap)
            rank = np.where(by_gate, gate_use[:, None, :], later)
            paid[inside, i] = training.costs.of(used, rank=rank)
    return _HeldOut(full, cheap, to_full, paid)

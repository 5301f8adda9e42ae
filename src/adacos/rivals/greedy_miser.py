"""GreedyMiser (Xu, Weinberger, Chapelle 2012): boosted trees that pay for new covariates.

Tree t is grown on the gradient of the loss at the score so far, with λ c_f added to the impurity
of a split on a covariate that no earlier split uses. A row acquires the covariates on the paths it
takes through all trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from adacos.costs import Costs, CostTable
from adacos.decision import Terms
from adacos.kernels.folds import shuffled_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.progress import prints_progress, report_progress
from adacos.policies.base import BasePolicy, TrainingTable
from adacos.rivals.calibration import (
    class_weights,
    fit_calibration,
    held_out_log_odds,
    mean_total_cost,
)
from adacos.rivals.trees import Bins, Forest, ForestDecider, best_stumps, cut, grow_tree, plant
from adacos.typing import Fields, Floats, Ints
from adacos.validation import Constraints, amount, finite, one_of, whole

LOSSES = ("logistic", "squared")
DECISIONS = ("weights", "calibration")

# λ runs over 0 and this range around the value above which the first split does not pay; the
# margin leaves room for folds in which it gains more.
_LAMBDA_RANGE = (1e-3, 2.0)
_N_CHECKPOINTS = 10
# Pseudo-row in each leaf that keeps Newton steps finite.
RIDGE = 1.0


@dataclass(frozen=True)
class Boosting:
    """How trees are added, apart from what cross-validation chooses."""

    loss: str
    depth: int
    learning_rate: float


class GreedyMiserClassifier(BasePolicy):
    """Boosted regression trees whose impurity carries the covariate cost not yet paid.

    λ, the number of trees and the way misclassification costs enter are those with the least
    total cost in cross-validation.

    Misclassification costs enter in one of two ways. "weights": rows weigh in training as much as
    answering them wrongly costs, and the label is the sign of the score. "calibration": training
    is unweighted, a logistic curve through held-out scores turns the score into log-odds, and the
    label is the Bayes decision. The probability is calibrated on held-out scores in both.

    The original charges λ c_f for a covariate's first use in the ensemble, as here; a panel already
    opened is charged what is left of the member's cost. Where it leaves the choice open: trees take
    Newton steps, and λ is per training row, on a grid that ends beyond where a first split pays.

    Parameters
    ----------
    loss : {"squared", "logistic"}, default="squared"
        "squared" or "logistic".
    depth : int, default=4
        Most splits on a path of a tree.
    learning_rate : float, default=0.1
        Factor on each tree.
    n_trees : int, default=100
        Most trees; ten numbers of trees up to this one are tried.
    n_lambdas : int, default=16
        Number of values of λ tried, 0 among them.
    max_bins : int, default=64
        Most bins a column is cut into.

    Attributes
    ----------
    forest_ : Forest
        The trees; their values add up to the score, with `constant_`.
    calibration_ : tuple of (float, float)
        Slope and intercept from the score to log-odds.
    decision_ : str
        What was chosen.
    lambda_ : float
        Likewise.
    n_trees_ : int
        Likewise.
    cv_cost_ : ndarray
        Mean total cost in cross-validation, (decisions, λ, numbers of trees).

    References
    ----------
    Z. Xu, K. Q. Weinberger and O. Chapelle, "The greedy miser: learning under test-time
    budgets", ICML 2012.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import GreedyMiserClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = GreedyMiserClassifier(costs, n_trees=10, n_lambdas=3, cv=2).fit(X[:300], y[:300])
    >>> policy.acquire(X[300:]).acquired.shape
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "cv_cost_": Floats,
        "decision_": str,
        "lambda_": float,
        "n_trees_": int,
        "calibration_": Floats,
        "constant_": float,
        "forest_": Forest,
    }

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "loss": one_of(*LOSSES),
        "depth": whole(1),
        "learning_rate": finite(above=0),
        "n_trees": whole(1),
        "n_lambdas": whole(1),
        "max_bins": whole(2),
        "cv": whole(2),
        "random_state": whole(0),
        "verbose": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        loss: str = "squared",
        depth: int = 4,
        learning_rate: float = 0.1,
        n_trees: int = 100,
        n_lambdas: int = 16,
        max_bins: int = 64,
        cv: int = 5,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.loss = loss
        self.depth = depth
        self.learning_rate = learning_rate
        self.n_trees = n_trees
        self.n_lambdas = n_lambdas
        self.max_bins = max_bins
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    @one_blas_thread
    @prints_progress
    def fit(self, X: Any, y: Any) -> Self:
        """Choose λ and the number of trees by cross-validated total cost, then fit all rows."""
        training = self.begin_fit(X, y)
        settings = Boosting(self.loss, self.depth, self.learning_rate)
        checkpoints = numbers_of_trees(self.n_trees)
        source, labels, matrix = self.encoder_.source, training.y, training.costs.matrix
        bins = cut(training.encoded, self.max_bins)
        lambdas = lambda_grid(bins, labels, source, training.costs, self.loss, self.n_lambdas)
        fold = shuffled_folds(labels, self.cv, self.random_state, training.groups)
        weights = {"weights": class_weights(labels, matrix), "calibration": np.ones(len(labels))}
        scores: dict[str, Floats] = {}
        cost = []
        for decision in DECISIONS:
            if decision == "calibration" and np.ptp(weights["weights"]) == 0:
                scores[decision] = scores["weights"]
            else:
                scores[decision], paid = _held_out(
                    training, bins, weights[decision], source, fold, lambdas, checkpoints, settings
                )
            log_odds = held_out_log_odds(
                scores[decision], labels, fold, matrix, decision == "weights"
            )
            cost.append(mean_total_cost(log_odds, paid, labels, matrix))
        self.cv_cost_ = np.stack(cost)
        which, at, number = np.unravel_index(self.cv_cost_.argmin(), self.cv_cost_.shape)
        self.decision_ = DECISIONS[which]
        self.lambda_, self.n_trees_ = float(lambdas[at]), int(checkpoints[number])
        self.calibration_ = fit_calibration(
            scores[self.decision_][:, at, number], labels, matrix, self.decision_ == "weights"
        )
        self.constant_, self.forest_ = boost(
            bins,
            labels,
            weights[self.decision_],
            source,
            training.costs,
            self.lambda_,
            self.n_trees_,
            settings,
        )
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> ForestDecider:
        """Give the decider that decides by what was learned."""
        slope, intercept = self.calibration_
        return ForestDecider(terms, self.forest_, self.constant_, slope, intercept)


def numbers_of_trees(most: int) -> Ints:
    """Ten numbers of trees up to `most`, in equal ratios."""
    return np.unique(np.geomspace(1, most, _N_CHECKPOINTS).round().astype(np.intp))


def gradient_of(loss: str, score: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Negative gradient and curvature of the weighted loss of each row; y is 0 or 1."""
    if loss == "squared":
        return weight * (2 * y - 1 - score), weight
    p = expit(score)
    return weight * (y - p), weight * np.maximum(p * (1 - p), 1e-6)


def first_score(loss: str, y: Floats, weight: Floats) -> float:
    """Constant of least loss, with half a pseudo-row of each class."""
    share = (weight @ y + 0.5) / (weight.sum() + 1)
    return float(2 * share - 1 if loss == "squared" else np.log(share / (1 - share)))


def boost(
    bins: Bins,
    y: Floats,
    weight: Floats,
    source: Ints,
    costs: CostTable,
    lam: float,
    n_trees: int,
    settings: Boosting,
) -> tuple[float, Forest]:
    """Constant and trees of the score; `lam` is the price of covariate cost per row."""
    constant = first_score(settings.loss, y, weight)
    score = np.full(len(y), constant)
    used = np.zeros(len(costs.names), dtype=np.bool_)
    trees = []
    for _ in range(n_trees):
        gradient, curvature = gradient_of(settings.loss, score, y, weight)
        tree, leaf = grow_tree(
            bins,
            gradient,
            curvature,
            depth=settings.depth,
            source=source,
            costs=costs,
            charge=lam * len(y),
            used=used,
            ridge=RIDGE,
        )
        tree = tree._replace(value=settings.learning_rate * tree.value)
        score += tree.value[leaf]
        trees.append(tree)
    return constant, plant(trees, settings.depth, source)


def lambda_grid(
    bins: Bins, y: Floats, source: Ints, costs: CostTable, loss: str, number: int
) -> Floats:
    """0 and values in equal ratios to beyond where the first split of the first tree pays."""
    weight = np.ones(len(y))
    score = np.full(len(y), first_score(loss, y, weight))
    gain = best_stumps(bins, *gradient_of(loss, score, y, weight), ridge=RIDGE)
    cost = costs.covariates[source]
    worth = (gain[cost > 0] / cost[cost > 0]).max(initial=0.0) / len(y)
    if number == 1 or worth <= 0:
        return np.zeros(1)
    return np.append(0.0, worth * np.geomspace(*_LAMBDA_RANGE, number - 1))


def _held_out(
    training: TrainingTable,
    bins: Bins,
    weight: Floats,
    source: Ints,
    fold: Ints,
    lambdas: Floats,
    checkpoints: Ints,
    settings: Boosting,
) -> tuple[Floats, Floats]:
    """Score and covariate cost of each row by models that did not see it.

    Shape (rows, λ, checkpoints).
    """
    scores = np.empty((len(training.y), len(lambdas), len(checkpoints)))
    paid = np.empty_like(scores)
    for k in range(int(fold.max()) + 1):
        inside, outside = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        own = bins.rows(outside)
        for i, lam in enumerate(lambdas):
            constant, forest = boost(
                own,
                training.y[outside],
                weight[outside],
                source,
                training.costs,
                lam,
                int(checkpoints[-1]),
                settings,
            )
            values, first_use = forest.walk(training.encoded[inside])
            scores[inside, i] = constant + np.cumsum(values, axis=1)[:, checkpoints - 1]
            until = (checkpoints * settings.depth)[:, None]
            used = first_use[:, None, :]
            paid[inside, i] = training.costs.of(used < until, rank=used)
        report_progress("fold", k + 1, int(fold.max()) + 1)
    return scores, paid

"""STreeD (van der Linden, de Weerdt, Demirović 2023): optimal trees with test costs.

Among all binary trees of bounded depth the solver of `pystreed` finds one of least mean total cost
on the training rows: a covariate is paid the first time that a path uses one of its columns, less
where another member of its panel was paid before, and C[y, label] in the leaf. The tree is copied
into a `Forest`; acquiring, predicting and loading a model need no pystreed.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs, CostTable, total_of
from adacos.decision import Terms
from adacos.exceptions import MissingExtraError
from adacos.families import family
from adacos.kernels.bayes_risk import decision_threshold, label_of
from adacos.kernels.class_risk import best_label, class_label, log_odds_of
from adacos.kernels.folds import shuffled_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.progress import report_progress
from adacos.policies.base import BasePolicy
from adacos.rivals.trees import NEVER, Forest, ForestDecider
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, amount, finite, whole

# Least numbers of rows in a leaf that are tried; the largest first, so that it wins a tie.
LEAF_SIZES = (20, 5, 1)
# Rows with the training share of the second class that smooth the probability of a leaf.
_PSEUDO_ROWS = 1.0
# A leaf keeps the label of the solver where smoothing would turn it: so far from the threshold.
_MARGIN = 1e-6
# Of more than two classes a leaf is smoothed by half as much, and so on, until its label stays.
_HALVINGS = 20


class STreeDClassifier(BasePolicy):
    """Optimal cost-sensitive trees by pystreed (extra `rivals`), depth and leaf size tuned.

    The depth, from 0 (a single answer) to `max_depth`, and the least number of rows in a leaf (1, 5
    or 20) are those with the least total cost in cross-validation. Columns of the solver are 0 or
    1: a category gives one for each level, a number one for each of `n_thresholds` quantiles of the
    training rows. A row acquires the covariates on its path. Panels are charged exactly, discounts
    of their members included.

    Misclassification costs: in the objective; a leaf has the label that is cheapest on its training
    rows. Its probabilities are the shares of the classes, smoothed by one row of the training
    shares as far as the label stays.

    The original takes complete binary tables. A value that is unknown counts as the more frequent
    side of each split, in training and after; the solver charges it, `acquire` does not.

    Parameters
    ----------
    max_depth : int, default=4
        Most splits on a path. Each further one takes about as many times longer as there are binary
        columns.
    n_thresholds : int, default=5
        Most thresholds of a number.
    time_limit : float, default=10.0
        Seconds for one tree. One that took them is the best found so far, and deeper ones are not
        tried; a fit takes at most 12 × `cv` + 1 times as long.

    Attributes
    ----------
    forest_ : Forest
        The tree; its value is the log-odds.
    depth_ : int
        What was chosen.
    min_rows_ : int
        Likewise.
    optimal_ : bool
        Whether the tree was proved optimal for these.
    cv_cost_ : dict of (int, int) to float
        Mean total cost in cross-validation by depth and least number of rows in a leaf.

    References
    ----------
    J. G. M. van der Linden, M. M. de Weerdt and E. Demirović, "Necessary and sufficient conditions
    for optimal decision trees using dynamic programming", NeurIPS 2023.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import STreeDClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = STreeDClassifier(costs, max_depth=2).fit(X[:300], y[:300])  # doctest: +SKIP
    >>> policy.acquire(X[300:]).acquired.shape  # doctest: +SKIP
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "cv_cost_": dict[tuple[int, int], float],
        "depth_": int,
        "min_rows_": int,
        "forest_": Forest,
        "optimal_": bool,
    }
    takes_many_classes = True

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "max_depth": whole(0),
        "n_thresholds": whole(1),
        "time_limit": finite(above=0),
        "cv": whole(2),
        "random_state": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        max_depth: int = 4,
        n_thresholds: int = 5,
        time_limit: float = 10.0,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.max_depth = max_depth
        self.n_thresholds = n_thresholds
        self.time_limit = time_limit
        self.cv = cv
        self.random_state = random_state

    @one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Choose depth and leaf size by cross-validated total cost, then fit all rows."""
        training = self.begin_fit(X, y)
        encoded, labels, costs = training.encoded, training.y, training.costs
        fold = shuffled_folds(labels, self.cv, self.random_state, training.groups)
        n_folds = int(fold.max()) + 1
        folds = [self._questions(encoded[fold != k]) for k in range(n_folds)]
        sizes = [size for size in LEAF_SIZES if 4 * size <= len(labels)] or [1]
        self.cv_cost_: dict[tuple[int, int], float] = {}
        # Depth 0 is a single leaf, whatever its size.
        candidates = [(0, sizes[0]), *product(range(1, self.max_depth + 1), sizes)]
        deepest = self.max_depth
        for number, (depth, size) in enumerate(candidates):
            if depth > deepest:
                break
            later = family(len(self.classes_)).later
            log_odds, paid = np.empty((len(labels), *later)), np.empty(len(labels))
            for k, questions in enumerate(folds):
                inside, outside = fold == k, fold != k
                tree = self._tree(questions, encoded[outside], labels[outside], depth, size)
                log_odds[inside], paid[inside] = answers(tree.forest, encoded[inside], costs)
                deepest = min(deepest, depth) if not tree.optimal else deepest
            label = best_label(log_odds, costs.matrix)
            total = total_of(paid, labels.astype(np.intp), label, costs.matrix)
            self.cv_cost_[depth, size] = float(total.mean())
            report_progress("candidate", number + 1, len(candidates))
        self.depth_, self.min_rows_ = min(self.cv_cost_, key=lambda c: self.cv_cost_[c])
        chosen = self._tree(self._questions(encoded), encoded, labels, self.depth_, self.min_rows_)
        self.forest_, self.optimal_ = chosen
        return self.finish_fit()

    def _questions(self, encoded: Floats) -> BinaryColumns:
        return ask_about(encoded, self.encoder_.source, self.n_thresholds)

    def _tree(
        self, questions: BinaryColumns, encoded: Floats, y: Floats, depth: int, size: int
    ) -> Found:
        return grow(
            questions,
            encoded,
            y,
            self.encoder_.source,
            self.cost_table_,
            depth,
            size,
            self.time_limit,
        )

    def make_decider(self, terms: Terms) -> ForestDecider:
        """Give the decider that decides by what was learned."""
        return ForestDecider(terms, self.forest_)


class BinaryColumns(NamedTuple):
    """Binary columns: encoded column and threshold that its values are compared with.

    `missing_left`: whether an unknown value counts as at most the threshold.
    """

    column: Ints
    threshold: Floats
    missing_left: Bools

    def answered(self, encoded: Floats) -> NDArray[np.intc]:
        """1 where a value is above the threshold."""
        values = encoded[:, self.column]
        above = np.where(np.isnan(values), ~self.missing_left, values > self.threshold)
        return above.astype(np.intc)


class Found(NamedTuple):
    """A tree as a forest of one, and whether it was proved optimal."""

    forest: Forest
    optimal: bool


def ask_about(encoded: Floats, source: Ints, n_thresholds: int) -> BinaryColumns:
    """At most `n_thresholds` thresholds of each encoded column, at quantiles of its known values.

    A column without two values gives none, the second of a category's two indicators neither.
    """
    column: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    for k in range(encoded.shape[1]):
        known = np.sort(encoded[~np.isnan(encoded[:, k]), k])
        distinct = np.unique(known)
        between = (distinct[1:] + distinct[:-1]) / 2
        if len(between) > n_thresholds:
            share = np.arange(1, n_thresholds + 1) / (n_thresholds + 1)
            below = np.minimum(np.searchsorted(distinct, np.quantile(known, share)), len(between))
            between = np.unique(between[np.maximum(below - 1, 0)])
        if (source == source[k]).sum() == 2 and k > 0 and source[k - 1] == source[k]:
            continue
        for edge in between.tolist():
            column.append(k)
            threshold.append(edge)
            missing_left.append(bool((known <= edge).mean() >= 0.5))
    return BinaryColumns(
        np.array(column, dtype=np.intp), np.array(threshold), np.array(missing_left, dtype=np.bool_)
    )


def grow(
    questions: BinaryColumns,
    encoded: Floats,
    y: Floats,
    source: Ints,
    costs: CostTable,
    depth: int,
    min_rows: int,
    time_limit: float,
) -> Found:
    """The tree of least mean total cost on these rows, or the best that was found in time."""
    root, optimal = None, True
    if depth > 0 and len(questions.column) and len(np.unique(y)) > 1:
        root, optimal = solve(
            questions.answered(encoded),
            y,
            source[questions.column],
            costs,
            depth,
            min_rows,
            time_limit,
        )
    return Found(_forest(root, questions, encoded, y, source, costs.matrix), optimal)


def solve(
    X: NDArray[np.intc],
    y: Floats,
    covariate: Ints,
    costs: CostTable,
    depth: int,
    min_rows: int,
    time_limit: float,
) -> tuple[Any, bool]:
    """Root of pystreed's tree (None if it found none), and whether it was proved optimal.

    `covariate` is that of each binary column; columns of one covariate stand side by side.
    """
    try:
        from pystreed import STreeDCostSensitiveClassifier
        from pystreed.data import CostSpecifier, FeatureCostSpecifier
    except ImportError as error:
        raise MissingExtraError("pystreed", "rivals") from error
    later = costs.covariates - costs.discount
    tests = []
    # A test covers the columns from the first to the last, both included.
    for k in np.unique(covariate):
        own = np.flatnonzero(covariate == k)
        group = f"panel {costs.panel[k]}" if costs.panel[k] >= 0 else f"covariate {k}"
        price, after = float(costs.covariates[k]), float(later[k])
        tests.append(FeatureCostSpecifier(price, after, group, int(own[0]), int(own[-1])))
    # What a wrong answer costs beyond the right one: the solver takes no negative costs.
    regret = costs.matrix - np.diag(costs.matrix)[:, None]
    solver = STreeDCostSensitiveClassifier(
        max_depth=depth, min_leaf_node_size=min_rows, time_limit=time_limit
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver.fit(X, y.astype(np.intc), CostSpecifier(regret.tolist(), tests))
    if not hasattr(solver, "tree_"):
        return None, False
    return solver.tree_, bool(solver.fit_result.is_optimal())


def answers(forest: Forest, encoded: Floats, costs: CostTable) -> tuple[Floats, Floats]:
    """Log-odds of rows, and the covariate cost of their paths."""
    values, first_use = forest.walk(encoded)
    return values[:, 0], costs.of(first_use < NEVER, rank=first_use)


def _forest(
    root: Any,
    questions: BinaryColumns,
    encoded: Floats,
    y: Floats,
    source: Ints,
    matrix: Floats,
) -> Forest:
    """The solver's tree with its leaves filled from the training rows; one leaf for no tree."""
    column: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    value: list[Any] = []
    children: list[list[int]] = []
    answered, deepest = questions.answered(encoded), 1
    n_classes = len(matrix)
    nothing: Any = np.zeros(family(n_classes).later)
    share = np.bincount(y.astype(np.intp), minlength=n_classes) / len(y)
    waiting = [(root, np.arange(len(y)), 0, -1, 0)]
    while waiting:
        node, rows, level, parent, side = waiting.pop()
        number = len(column)
        if parent >= 0:
            children[parent][side] = number
        children.append([number, number])
        inner = node is not None and node.is_branching_node()
        at = node.feature if inner else -1
        column.append(int(questions.column[at]) if inner else -1)
        threshold.append(float(questions.threshold[at]) if inner else 0.0)
        missing_left.append(bool(questions.missing_left[at]) if inner else False)
        if inner:
            value.append(nothing)
        elif n_classes == 2:
            value.append(_log_odds(y[rows], float(y.mean()), matrix))
        else:
            value.append(_class_log_odds(y[rows], share, matrix))
        deepest = max(deepest, level)
        if inner:
            right = answered[rows, at] == 1
            waiting.append((node.left_child, rows[~right], level + 1, number, 0))
            waiting.append((node.right_child, rows[right], level + 1, number, 1))
    return Forest(
        column=np.array(column, dtype=np.intp),
        threshold=np.array(threshold),
        missing_left=np.array(missing_left, dtype=np.bool_),
        value=np.array(value),
        children=np.array(children, dtype=np.intp),
        roots=np.zeros(1, dtype=np.intp),
        depth=deepest,
        source=source,
    )


def _log_odds(y: Floats, share: float, matrix: Floats) -> float:
    """Smoothed log-odds of a leaf's rows, on the side of the label that is cheapest for them."""
    count = np.array([len(y) - y.sum(), y.sum()])
    p = (count[1] + _PSEUDO_ROWS * share) / (len(y) + _PSEUDO_ROWS)
    p = np.clip(p, 1e-9, 1 - 1e-9)
    log_odds = float(np.log(p / (1 - p)))
    label = int(np.argmin(count @ matrix)) if len(y) else int(label_of(np.array(log_odds), matrix))
    edge = float(decision_threshold(matrix))
    return max(log_odds, edge + _MARGIN) if label == 1 else min(log_odds, edge - _MARGIN)


def _class_log_odds(y: Floats, share: Floats, matrix: Floats) -> Floats:
    """The same with three or more classes, smoothed by less where that would turn the label."""
    count = np.bincount(y.astype(np.intp), minlength=len(share))
    if not len(y):
        return log_odds_of(share)
    label = class_label(log_odds_of(count / len(y)), matrix)
    for pseudo in _PSEUDO_ROWS * 0.5 ** np.arange(_HALVINGS):
        log_odds = log_odds_of((count + pseudo * share) / (len(y) + pseudo))
        if class_label(log_odds, matrix) == label:
            return log_odds
    return log_odds_of(count / len(y))

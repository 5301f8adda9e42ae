"""CEGB (Peter, Diego, Hamprecht, Nadler 2017): LightGBM with penalties on covariate costs.

LightGBM takes from the gain of a split a trade-off times the cost of the covariate: lazily, for
each row that has not used it yet, or coupled, once for the ensemble. Its trees are copied into a
`Forest`; acquiring, predicting and loading a model need no LightGBM.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from adacos.costs import Costs
from adacos.decision import Terms
from adacos.exceptions import MissingExtraError
from adacos.kernels.folds import shuffled_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.progress import prints_progress, report_progress
from adacos.policies.base import BasePolicy
from adacos.rivals.calibration import mean_total_cost
from adacos.rivals.greedy_miser import lambda_grid, numbers_of_trees
from adacos.rivals.trees import Forest, ForestDecider, cut
from adacos.typing import Fields, Floats, Ints
from adacos.validation import Constraints, amount, finite, whole

PENALTIES = ("lazy", "coupled")
# LightGBM's gain is twice the fall of the loss by which the grid of λ is laid out.
_GAIN_SCALE = 2.0


class CEGBClassifier(BasePolicy):
    """Cost-efficient gradient boosting by LightGBM (extra `rivals`), tuned by total cost.

    The kind of penalty, the trade-off and the number of trees are those with the least total cost
    in cross-validation. A row acquires the covariates on the paths it takes. LightGBM charges every
    column its full cost while growing: it knows no panels and takes the indicators of a category
    for covariates of their own. What a row pays is counted properly.

    Misclassification costs: training minimises the logistic loss of unweighted rows, and the label
    is the Bayes decision at LightGBM's probability.

    Parameters
    ----------
    depth : int, default=4
        Most splits on a path of a tree.
    learning_rate : float, default=0.1
        Factor on each tree.
    n_trees : int, default=100
        Most trees; ten numbers of trees up to this one are tried.
    n_tradeoffs : int, default=16
        Number of trade-offs tried for each penalty, 0 among them.
    min_rows : int, default=5
        Least number of rows in a leaf.
    random_state : int, default=0
        Seed of the folds and of LightGBM.

    Attributes
    ----------
    forest_ : Forest
        The trees; their values add up to the log-odds.
    penalty_ : str
        What was chosen.
    tradeoff_ : float
        Likewise.
    n_trees_ : int
        Likewise.
    cv_cost_ : ndarray
        Mean total cost in cross-validation, (penalties × trade-offs, numbers of trees).

    References
    ----------
    S. Peter, F. Diego, F. A. Hamprecht and B. Nadler, "Cost efficient gradient boosting",
    NIPS 2017.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import CEGBClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = CEGBClassifier(costs).fit(X[:300], y[:300])  # doctest: +SKIP
    >>> policy.acquire(X[300:]).acquired.shape  # doctest: +SKIP
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "cv_cost_": Floats,
        "penalty_": str,
        "tradeoff_": float,
        "n_trees_": int,
        "forest_": Forest,
    }

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "depth": whole(1),
        "learning_rate": finite(above=0),
        "n_trees": whole(1),
        "n_tradeoffs": whole(1),
        "min_rows": whole(1),
        "cv": whole(2),
        "random_state": whole(0),
        "verbose": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        depth: int = 4,
        learning_rate: float = 0.1,
        n_trees: int = 100,
        n_tradeoffs: int = 16,
        min_rows: int = 5,
        cv: int = 5,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.depth = depth
        self.learning_rate = learning_rate
        self.n_trees = n_trees
        self.n_tradeoffs = n_tradeoffs
        self.min_rows = min_rows
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    @one_blas_thread
    @prints_progress
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the penalty by cross-validated total cost, then fit all rows."""
        training = self.begin_fit(X, y)
        checkpoints = numbers_of_trees(self.n_trees)
        encoded, labels, costs = training.encoded, training.y, training.costs
        fold = shuffled_folds(labels, self.cv, self.random_state, training.groups)
        tradeoffs = _GAIN_SCALE * lambda_grid(
            cut(encoded), labels, self.encoder_.source, costs, "logistic", self.n_tradeoffs
        )
        candidates = list(product(PENALTIES, tradeoffs.tolist()))
        log_odds = np.empty((len(labels), len(candidates), len(checkpoints)))
        paid = np.empty_like(log_odds)
        for k in range(int(fold.max()) + 1):
            inside, outside = fold == k, fold != k
            for i, (penalty, tradeoff) in enumerate(candidates):
                forest = self._boost(
                    encoded[outside], labels[outside], penalty, tradeoff, self.n_trees
                )
                values, first_use = forest.walk(encoded[inside])
                # LightGBM stops early where no further split pays.
                last = np.minimum(checkpoints, values.shape[1]) - 1
                log_odds[inside, i] = np.cumsum(values, axis=1)[:, last]
                until = (checkpoints * forest.depth)[:, None]
                used = first_use[:, None, :]
                paid[inside, i] = costs.of(used < until, rank=used)
            report_progress("fold", k + 1, int(fold.max()) + 1)
        self.cv_cost_ = mean_total_cost(log_odds, paid, labels, costs.matrix)
        at, number = np.unravel_index(self.cv_cost_.argmin(), self.cv_cost_.shape)
        self.penalty_, self.tradeoff_ = candidates[at]
        self.n_trees_ = int(checkpoints[number])
        self.forest_ = self._boost(encoded, labels, self.penalty_, self.tradeoff_, self.n_trees_)
        return self.finish_fit()

    def _boost(
        self, encoded: Floats, y: Floats, penalty: str, tradeoff: float, n_trees: int
    ) -> Forest:
        source = self.encoder_.source
        scale = 1 if penalty == "lazy" else len(y)
        parameters = {
            "objective": "binary",
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "num_leaves": 2**self.depth,
            "min_data_in_leaf": self.min_rows,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "cegb_tradeoff": tradeoff,
            f"cegb_penalty_feature_{penalty}": (
                scale * self.cost_table_.covariates[source]
            ).tolist(),
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }
        return forest_of(train_lightgbm(encoded, y, parameters, n_trees), source)

    def make_decider(self, terms: Terms) -> ForestDecider:
        """Give the decider that decides by what was learned."""
        return ForestDecider(terms, self.forest_)


def train_lightgbm(encoded: Floats, y: Floats, parameters: dict[str, Any], n_trees: int) -> Any:
    """A LightGBM booster, or a clear error if LightGBM is absent."""
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtraError("lightgbm", "rivals") from error
    data = lightgbm.Dataset(encoded, y, params={"verbose": -1})
    return lightgbm.train(parameters, data, num_boost_round=n_trees)


def forest_of(booster: Any, source: Ints) -> Forest:
    """The trees of a LightGBM booster.

    A value goes left if it is at most the threshold, in LightGBM as here. An unknown value follows
    `default_left` in a column that had unknown values in training; in any other LightGBM reads it
    as zero. (`zero_as_missing` is a setting this library does not use.)
    """
    column: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    value: list[float] = []
    children: list[list[int]] = []
    roots: list[int] = []
    deepest = 1
    for tree in booster.dump_model()["tree_info"]:
        roots.append(len(column))
        open_nodes = [(tree["tree_structure"], 0, -1, 0)]
        while open_nodes:
            node, depth, parent, side = open_nodes.pop()
            number = len(column)
            if parent >= 0:
                children[parent][side] = number
            inner = "split_feature" in node
            column.append(node["split_feature"] if inner else -1)
            threshold.append(node["threshold"] if inner else 0.0)
            as_zero = inner and node["missing_type"] == "None"
            missing_left.append(
                inner and (node["threshold"] >= 0 if as_zero else node["default_left"])
            )
            value.append(0.0 if inner else node["leaf_value"])
            children.append([number, number])
            deepest = max(deepest, depth)
            if inner:
                open_nodes.append((node["left_child"], depth + 1, number, 0))
                open_nodes.append((node["right_child"], depth + 1, number, 1))
    return Forest(
        column=np.array(column, dtype=np.intp),
        threshold=np.array(threshold),
        missing_left=np.array(missing_left, dtype=np.bool_),
        value=np.array(value),
        children=np.array(children, dtype=np.intp),
        roots=np.array(roots, dtype=np.intp),
        depth=deepest,
        source=source,
    )

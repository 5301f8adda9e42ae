"""Branching: the next question depends on what the values so far were.

A shallow tree of questions whose leaves continue as AdaCOS, each with its own order and models. It
is grown by realised cost on out-of-fold rows (`adacos.policies.growing`); where no split pays, the
policy is AdaCOS.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np

from adacos.costs import Costs, CostTable
from adacos.deciders.mixing import run_mixed
from adacos.deciders.out_of_fold import AnyFoldedDecider
from adacos.deciders.tree import TreeDecider
from adacos.decision import Terms
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.kernels.prior_shift import LogOddsChange
from adacos.models.additive import FAMILIES
from adacos.models.branches import Node, route
from adacos.models.large_fits import PreparedRows
from adacos.models.monotone import directions_of
from adacos.models.sequence_model import SequenceModel, build_sequence_model
from adacos.models.set_fits import prepare
from adacos.models.shifted import shifted_model
from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.base import BasePolicy
from adacos.policies.budgets import out_of_fold_total
from adacos.policies.growing import grow, growing_data, leaf_weights
from adacos.policies.recall import Reached
from adacos.policies.rounds import refuse_rounds
from adacos.policies.tree import Tree, described_tree, no_rows, tree_of
from adacos.reasons import Reasons
from adacos.typing import Fields, Floats, Ints
from adacos.validation import DEPRECATED, Constraints, whole

# Strengths of the leaves' models to choose from: with few rows one for all covariates does as well.
_LEAF_FAMILIES = FAMILIES["common"]


class BranchingClassifier(AdaCOSClassifier):
    """AdaCOS with branches: what is acquired next depends on the values seen.

    The first questions form a tree. Each leaf continues as AdaCOS, with an order and models of its
    own, which are fitted to the rows of the leaf and, with less weight, to the others. A branch is
    made only where the cross-validated total cost falls by more than one error of the most
    expensive kind and an allowance for noise; where none is, the policy is AdaCOS.

    Parameters
    ----------
    max_depth : int, default=4
        Most branches one after the other; 0 is AdaCOS.
    lookahead : {"realised", "dynamic", "coherent", "paper"}, default="realised"
        Model of the log-odds after an acquisition, see `AdaCOSClassifier`. While branches
        are looked for, "realised" is "dynamic".
    sequence : {"group_lasso", "forward", "auto"}, default="group_lasso"
        How the sets of the leaves are found, see `AdaCOSClassifier`; "auto" chooses for the policy
        without branches, and its choice holds for all leaves.
    strengths : {"auto", "common", "per_covariate"}, default="auto"
        Penalties of `model_` to choose from, see `LogisticGAM`; leaves have the common ones.

    Attributes
    ----------
    tree_ : Tree
        The questions, with the share of rows, costs and answers at each; print it to see it.
    nodes_ : tuple of Node
        The same with the models of the leaves.
    leaf_ : ndarray of int of shape (n_rows,)
        Node at which each training row ends up.
    model_ : SequenceModel
        Sets, additive models and densities without branches, for rows without the covariate that
        a branch asks for.
    sets_ : list of tuple of str
        Sets of `model_`.
    expected_cost_by_set_ : ndarray of shape (n_sets,)
        Mean total cost of always stopping at each set of `model_`, see `AdaCOSClassifier`.

    See Also
    --------
    AdaCOSClassifier : One order for every row.
    AutoPolicyClassifier : Chooses among the policies.

    Notes
    -----
    A row for which the covariate of a branch is unavailable continues as AdaCOS would, with what
    it has. `fit` tries every affordable covariate at up to three cuts and takes several times as
    long as that of AdaCOS. The page about theory says what is guaranteed.

    Examples
    --------
    >>> from adacos import BranchingClassifier, Costs
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> X, y = problem.sample(500, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    >>> policy = BranchingClassifier(costs).fit(X, y)
    >>> result = policy.acquire([[0, 1, 1], [1, 1, 1]])
    >>> result.covariates(0), result.covariates(1)
    (('x0', 'x1'), ('x0', 'x2'))
    """

    constraints: ClassVar[Constraints] = {**AdaCOSClassifier.constraints, "max_depth": whole(0)}

    saved_fields: ClassVar[Fields] = {
        "nodes_": tuple[Node, ...],
        "leaf_": Ints,
        "tree_": Tree,
    }

    # A tree is grown from the training rows.
    shares_fits: ClassVar[bool] = False

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        max_depth: int = 4,
        lookahead: str = "realised",
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        budget: float | None = None,
        mean_budget: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        monotonic_cst: Any = None,
        outlook: str = DEPRECATED,
        target_recall: Any = DEPRECATED,
        recall_at: str = DEPRECATED,
        recall_confidence: Any = DEPRECATED,
        calibration_fraction: Any = DEPRECATED,
        on_uncertifiable: str = DEPRECATED,
    ) -> None:
        super().__init__(
            costs,
            lookahead=lookahead,
            sequence=sequence,
            n_splines=n_splines,
            strengths=strengths,
            cv=cv,
            random_state=random_state,
            budget=budget,
            mean_budget=mean_budget,
            n_jobs=n_jobs,
            verbose=verbose,
            monotonic_cst=monotonic_cst,
            outlook=outlook,
            target_recall=target_recall,
            recall_at=recall_at,
            recall_confidence=recall_confidence,
            calibration_fraction=calibration_fraction,
            on_uncertifiable=on_uncertifiable,
        )
        self.max_depth = max_depth

    def from_model(self, fitted: Any) -> Self:
        """Refuse: a tree needs the training rows.

        Parameters
        ----------
        fitted : policy
            Not used.

        Raises
        ------
        InvalidInputError
            Always.
        """
        raise InvalidInputError(
            "fitted",
            "cannot be shared with a policy that branches, which is grown from the training rows",
            type(fitted).__name__,
            "Call fit(X, y).",
        )

    def _grow_from(self, fitted: AdaCOSClassifier) -> Self:
        """Grow a tree from AdaCOS, fitted with the same parameters, that has kept its fits."""
        assert fitted._set_fits is not None
        self._check_combinations()
        self._share(fitted)
        self._complete_fit(fitted._set_fits, None)
        return self

    def _check_combinations(self) -> None:
        super()._check_combinations()
        refuse_rounds(self, why="branches ask one covariate after the other")

    @property
    def in_one_order(self) -> bool:
        """Whether there is no branch: the policy is AdaCOS."""
        return len(self.nodes_) == 1

    @property
    def has_tree(self) -> bool:
        """Whether there is a branch."""
        return not self.in_one_order

    def _finish_fit(self, model: SequenceModel) -> None:
        self.nodes_: tuple[Node, ...] = (Node(np.empty(0, dtype=np.intp), model=model),)
        self.leaf_ = np.zeros(len(model.y), dtype=np.intp)
        super()._finish_fit(model)

    # Growing a tree needs the rows themselves.
    streams: ClassVar[bool] = False

    def _complete_fit(self, fits: PreparedRows, unlabeled: Floats | None) -> None:
        """Grow the tree and fit the models of its leaves."""
        assert fits.table is not None
        encoded = self._encode(fits.table[0])
        self._keep_mean_budget()
        plain = np.inf
        if self.multiplier_ > 0:
            plain = out_of_fold_total(self.decider_, self._kept_rows())
        costs = replace(self.decider_.weighed_costs, matrix=self.rule_.matrix)
        if self.max_depth and not self.rule_.always_positive:
            data = growing_data(
                encoded,
                fits.y,
                fits.weight,
                self.encoder_,
                costs,
                order=self.model_.sequence.order,
                lookahead=self.resolved_lookahead,
                n_splines=self.n_splines,
                seed=self.random_state,
                budget=None if self.budget is None else (1 + self.multiplier_) * self.budget,
                groups=fits.table[2],
            )
            nodes = grow(data, self.max_depth)
            if len(nodes) > 1:
                self.nodes_ = self._with_models(nodes, fits, encoded, unlabeled, costs)
                self.leaf_ = route(self.nodes_, encoded, self.encoder_)
                self.finish_fit(self.rule_, self.multiplier_, self.mixture_)
        if not self.in_one_order:
            self._reach_recall()
        if self.mean_budget is not None and not self.in_one_order:
            self._keep_branches_that_pay(plain)
        self.tree_ = self._tree_of_rows(encoded, run_mixed(self.decider_, encoded))

    def _keep_branches_that_pay(self, plain: float) -> None:
        """Keep the mean budget with the branches, or without them if that costs no more.

        `plain` is what out-of-fold rows cost without branches. Their questions are asked of
        everyone who comes to them, however expensive the mean budget makes them.
        """
        self._keep_mean_budget()
        kept = self._kept_rows()
        if np.isinf(self.multiplier_) or out_of_fold_total(self.decider_, kept) >= plain:
            self._finish_fit(self.model_)
            self._keep_mean_budget()

    def _change(self, change: LogOddsChange) -> None:
        """As for AdaCOS, in every leaf; what became of training rows is not known then."""
        self.nodes_ = tuple(
            node if node.model is None else replace(node, model=shifted_model(node.model, change))
            for node in self.nodes_
        )
        super()._change(change)
        self.tree_ = self._tree_of_rows(*no_rows(self.decider_))

    def _tree_of_rows(self, encoded: Floats, result: AcquisitionResult) -> Tree:
        """What became of rows; the labels of the result are 0, 1, …."""
        return tree_of(self.nodes_, self.encoder_, encoded, result, self.decisions_.tolist())

    def _certify(self, reached: Reached, X: Any) -> None:
        """As for AdaCOS; `tree_` then describes these rows."""
        super()._certify(reached, X)
        if not self.always_positive_:
            encoded = self._encode(X)
            self.tree_ = self._tree_of_rows(encoded, run_mixed(self.decider_, encoded))

    def _with_models(
        self,
        nodes: list[Node],
        fits: PreparedRows,
        encoded: Floats,
        unlabeled: Floats | None,
        costs: CostTable,
    ) -> tuple[Node, ...]:
        """The nodes with a model in every leaf, fitted to its rows and, weighed less, to others."""
        finished = list(nodes)
        for number, weight in leaf_weights(nodes, encoded, self.encoder_, fits.weight).items():
            node = nodes[number]
            more = None
            if unlabeled is not None:
                more = unlabeled[route(nodes, unlabeled, self.encoder_) == number]
            leaf = prepare(
                encoded,
                fits.y,
                self.encoder_,
                n_splines=self.n_splines,
                families=_LEAF_FAMILIES,
                fold=fits.fold,
                weight=weight,
                n_jobs=self.n_jobs,
                unlabeled=more if more is not None and len(more) else None,
                n_classes=len(self.classes_),
                directions=directions_of(self),
            )
            # What was paid on the way is free from here on.
            prices = costs.covariates.copy()
            prices[node.path] = 0.0
            left = None
            if self.budget is not None:
                left = self.budget - float(self.cost_table_.of_order(node.path))
                left *= 1 + self.multiplier_
            model = build_sequence_model(
                leaf, replace(costs, covariates=prices), self.sequence_, left
            )
            finished[number] = replace(node, model=model)
        return tuple(finished)

    def _out_of_fold_of_positives(self) -> Floats:
        """As for AdaCOS, at the sets of each row's leaf; a shorter sequence repeats its last."""
        out_of_fold = super()._out_of_fold_of_positives()
        if self.in_one_order:
            return out_of_fold
        positive = np.flatnonzero(self.model_.y == 1)
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(self.leaf_[positive] == number)
            if node.model is not None:
                out_of_fold[rows] = _widened(
                    node.model.out_of_fold_log_odds[positive[rows]], out_of_fold.shape[1]
                )
        return out_of_fold

    def _out_of_fold_at_stop(self, encoded: Floats, result: AcquisitionResult) -> Floats:
        """As for AdaCOS, by the models of the leaf of each row.

        A row without the covariate of a branch is judged without what it acquired before.
        """
        if self.in_one_order:
            return super()._out_of_fold_at_stop(encoded, result)
        can_be_acquired = ~np.isnan(encoded[:, self.encoder_.first]) & ~result.acquired
        log_odds = np.empty((len(result), *self.model_.intercepts.shape[1:]))
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(self.leaf_ == number)
            model = node.model or self.model_
            # The largest set of which the row has every available covariate.
            within = can_be_acquired[rows] @ model.sequence.masks().T.astype(np.intp) == 0
            stage = np.maximum(within.sum(axis=1) - 1, 0)
            log_odds[rows] = model.out_of_fold_log_odds[rows, stage]
        return log_odds

    def _out_of_fold_with_all(self) -> Floats:
        """As for AdaCOS, by the models of the leaf of each row."""
        log_odds = super()._out_of_fold_with_all().copy()
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(self.leaf_ == number)
            if node.model is not None:
                log_odds[rows] = node.model.out_of_fold_log_odds[rows, -1]
        return log_odds

    def _log_odds_with_all(self, encoded: Floats) -> Floats:
        """As for AdaCOS, by the models of the leaf of each row."""
        log_odds = super()._log_odds_with_all(encoded)
        place = route(self.nodes_, encoded, self.encoder_)
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(place == number)
            if node.model is not None and len(rows):
                log_odds[rows] = node.model.log_odds_by_set(encoded[rows])[:, -1]
        return log_odds

    def _log_odds_anywhere(self, encoded: Floats) -> Floats:
        """As for AdaCOS, by the models of the leaf of each row."""
        log_odds = super()._log_odds_anywhere(encoded)
        if self.in_one_order:
            return log_odds
        place = route(self.nodes_, encoded, self.encoder_)
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(place == number)
            if node.model is not None and len(rows):
                log_odds[rows] = _widened(
                    node.model.log_odds_by_set(encoded[rows]), log_odds.shape[1]
                )
        return log_odds

    def make_decider(self, terms: Terms) -> AnyFoldedDecider:
        """Give the decider that decides by what was learned."""
        if self.in_one_order:
            return super().make_decider(terms)
        return TreeDecider(terms, self.model_, self.resolved_lookahead, self.nodes_)

    def add_words(self, reasons: Reasons) -> Reasons:
        """Say why a branch is there."""
        if reasons.node is None:
            return reasons
        return replace(reasons, because=described_tree(self).because(reasons.node))


def branches(policy: BasePolicy) -> TypeGuard[BranchingClassifier]:
    """Whether what a policy asks next depends on the values, by branches of a tree."""
    return policy.has_tree and policy.resolved_lookahead is not None


def _widened(log_odds: Floats, n_sets: int) -> Floats:
    """Log-odds at the sets of a shorter sequence, the last repeated."""
    return log_odds[:, np.minimum(np.arange(n_sets), log_odds.shape[1] - 1)]

"""Branching: the next question depends on what the values so far were.

A shallow tree of questions whose leaves go on as AdaCOS, each with an order and models of its own.
It is grown by realised cost on rows left out (`adacos.policies.growing`); where no split pays, the
policy is AdaCOS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from adacos.consultation.reasons import sequence_reasons
from adacos.consultation.steps import Reasons
from adacos.costs import ROUNDING, Costs, CostTable
from adacos.engine import STOP, AcquisitionResult, Decision, Rows
from adacos.exceptions import InvalidInputError
from adacos.models.additive import FAMILIES
from adacos.models.large_fits import PreparedRows
from adacos.models.outlook import WalkState, advance, begin, log_odds_now, look_ahead
from adacos.models.sequence_model import SequenceModel, build_sequence_model
from adacos.models.set_fits import prepare
from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.base import BasePolicy
from adacos.policies.budgets import leave_out_total
from adacos.policies.growing import ground, grow, leaf_weights
from adacos.policies.rounds import refuse_rounds
from adacos.policies.tree import Node, Place, Split, Tree, route, told_tree, tree_of
from adacos.validation import Constraints, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Strengths of the leaves' models to choose from: with few rows one for all covariates does as well.
_LEAF_FAMILIES = FAMILIES["common"]
# In place of a node: the row goes along a set sequence.
_SETTLED = -1


class BranchState(NamedTuple):
    """Rows at different places of the tree.

    Attributes
    ----------
    encoded : their encoded values, of which only those acquired have been read.
    available : mask (rows, covariates) of what can be had or is there.
    have : mask (rows, covariates) of what they have, as far as it is available.
    known : mask (covariates) of what was known from the start.
    node : node at whose question each row stands; -1 for rows along a set sequence.
    walks : rows along a set sequence: their positions, and their state there.
    """

    encoded: Floats
    available: Bools
    have: Bools
    known: Bools
    node: Ints
    walks: tuple[tuple[Ints, WalkState], ...]


class BranchingClassifier(AdaCOSClassifier):
    """AdaCOS with branches: what is acquired next depends on the values seen.

    The first questions form a tree. Each leaf goes on as AdaCOS, with an order and models of its
    own, which are fitted to the rows of the leaf and, with less weight, to the others. A branch is
    made only where the total cost of rows left out falls by more than one error of the dearest kind
    and an allowance for noise; where none is, the policy is AdaCOS.

    Parameters
    ----------
    costs : Costs, default=None
        Covariate and misclassification costs. None makes every covariate free and both errors
        cost 1.
    max_depth : int, default=4
        Most branches one after the other; 0 is AdaCOS.
    outlook : {"realised", "dynamic", "coherent", "paper"}, default="realised"
        How the log-odds after an acquisition are foreseen, see `AdaCOSClassifier`. While branches
        are looked for, "realised" is "dynamic".
    sequence : {"group_lasso", "forward", "both"}, default="group_lasso"
        How the sets of the leaves are found, see `AdaCOSClassifier`; "both" chooses for the policy
        without branches, and its choice holds for all leaves.
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate.
    strengths : {"auto", "common", "per_covariate"}, default="auto"
        Penalties of `model_` to choose from, see `LogisticGAM`; leaves have the common ones.
    cv : int, splitter or iterable of (train, test), default=10
        Folds behind the leave-out probabilities: their number, or splits that hold out every row
        once.
    random_state : int, default=0
        Seed of the folds and of the calibration split.
    budget : float, default=None
        What a row may pay for covariates at most; None for any amount. Panels count, and sets
        beyond it are not weighed. Covariates that can be paid together are asked first.
    mean_budget : float, default=None
        What rows may pay for covariates on average. Covariate costs then count 1 + `multiplier_`
        times, so that training rows left out of the models keep it.
    target_recall : float or mapping of class to float, default=None
        Least share of positive rows to be answered positive, in place of a false-negative cost.
        It may name the positive class, {"sick": 0.95}, and means the same.
        With more than two classes a recall for each of those that are to be protected, by name:
        the costs stay, and errors about these classes are surcharged as far as it takes.
    recall_confidence : float, default=None
        Confidence with which the target recall is to hold for new rows, see `AdaCOSClassifier`.
    calibration_fraction : float, default=0.5
        Share of the rows set aside for that.
    on_uncertifiable : {"error", "largest", "always_positive"}, default="error"
        What to do when the calibration rows do not prove the target recall, see
        `AdaCOSClassifier`.
    n_jobs : int, default=None
        Fits of one step of forward selection that run at the same time.
    verbose : int, default=0
        Whether `fit` prints where it is.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in order; of two the second is the positive one.
    tree_ : Tree
        The questions, with the share of rows, costs and answers at each; print it to see it.
    nodes_ : tuple of Node
        The same with the models of the leaves.
    leaf_ : ndarray of int of shape (n_rows,)
        Node at which each training row ends up.
    model_ : SequenceModel
        Sets, additive models and densities without branches, for rows that lack the covariate that
        a branch asks for.
    sequence_ : str
        How the sets were found, "group_lasso" or "forward".
    sets_ : list of tuple of str
        Sets of `model_`.
    expected_cost_ : ndarray of shape (n_sets,)
        Mean total cost of always stopping at each set of `model_`, see `AdaCOSClassifier`.
    cost_table_ : CostTable
        The costs as given, bound to the columns.
    rule_ : DecisionRule
        How log-odds become a label, and the costs by which acquisitions are weighed.
    multiplier_ : float
        By how much more than once covariate costs count, for a mean budget; 0 where it does not
        bind.
    mean_spent_ : float
        With a mean budget, what training rows left out of the models pay on average.
    threshold_ : float
        With a target recall, the probability from which on a row is answered positive.
    false_negative_cost_ : float
        The cost of a false negative that the threshold stands for.
    surcharges_ : dict of class to float
        With target recalls of more than two classes, by how much more than was stated an error
        about each costs.
    recall_estimate_ : float or dict of class to float
        Share of positive training rows whose leave-out probability reaches the threshold at every
        set at which the policy may stop, and by class the share that is answered with it; after
        `calibrate`, the recall on the calibration rows.
    training_rows_ : RowDigests
        Salted digests of the training rows, by which `calibrate` knows them again.
    certificate_ : RecallCertificate or ClassRecallCertificate
        What was proved, after `calibrate`.
    always_positive_ : bool
        Whether every row is answered positive for want of a certificate.

    See Also
    --------
    AdaCOSClassifier : One order for every row.
    AutoPolicyClassifier : Chooses among the policies.

    Notes
    -----
    A row for which the covariate of a branch is not available goes on as AdaCOS would, with what
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

    stores: ClassVar[tuple[type, ...]] = (Node, Place, Split, Tree)

    # A tree is grown from the training rows.
    shares_fits: ClassVar[bool] = False

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        max_depth: int = 4,
        outlook: str = "realised",
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        budget: float | None = None,
        mean_budget: float | None = None,
        target_recall: float | Mapping[Any, float] | None = None,
        recall_confidence: float | None = None,
        calibration_fraction: float = 0.5,
        on_uncertifiable: str = "error",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            costs,
            outlook=outlook,
            sequence=sequence,
            n_splines=n_splines,
            strengths=strengths,
            cv=cv,
            random_state=random_state,
            budget=budget,
            mean_budget=mean_budget,
            target_recall=target_recall,
            recall_confidence=recall_confidence,
            calibration_fraction=calibration_fraction,
            on_uncertifiable=on_uncertifiable,
            n_jobs=n_jobs,
            verbose=verbose,
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

    def _check_combinations(self) -> None:
        super()._check_combinations()
        refuse_rounds(self, why="branches ask one covariate after the other")

    @property
    def in_one_order(self) -> bool:
        """Whether there is no branch: the policy is AdaCOS."""
        return len(self.nodes_) == 1

    def _finish_fit(self, model: SequenceModel) -> None:
        self.nodes_: tuple[Node, ...] = (Node(np.empty(0, dtype=np.intp), model=model),)
        self.leaf_ = np.zeros(len(model.y), dtype=np.intp)
        super()._finish_fit(model)

    # Growing a tree needs the rows themselves.
    streams = False

    def _complete_fit(self, fits: PreparedRows, unlabeled: Floats | None) -> None:
        """Grow the tree and fit the models of its leaves."""
        assert fits.table is not None
        encoded = self._encode(fits.table[0])
        self._keep_mean_budget(fits.table[0])
        plain = leave_out_total(self, encoded) if self.multiplier_ > 0 else np.inf
        costs = replace(self.weighed_costs, matrix=self.rule_.matrix)
        if self.max_depth and not self.rule_.always_positive:
            land = ground(
                encoded,
                fits.y,
                fits.weight,
                self.encoder_,
                costs,
                order=self.model_.sequence.order,
                outlook=self.outlook,
                n_splines=self.n_splines,
                seed=self.random_state,
                budget=None if self.budget is None else (1 + self.multiplier_) * self.budget,
            )
            nodes = grow(land, self.max_depth)
            if len(nodes) > 1:
                self.nodes_ = self._with_models(nodes, fits, encoded, unlabeled, costs)
                self.leaf_ = route(self.nodes_, encoded, self.encoder_)
        if self.target_recall is not None and not self.in_one_order:
            self._use_target_recall()
        if self.mean_budget is not None and not self.in_one_order:
            self._keep_branches_that_pay(fits.table[0], plain)
        self.tree_ = self._tree_of_rows(encoded, self._run(encoded))

    def _keep_branches_that_pay(self, X: Any, plain: float) -> None:
        """Keep the mean budget with the branches, or without them if that costs no more.

        `plain` is what rows left out cost without branches. Their questions are asked of everyone
        who comes to them, however dear the mean budget makes them.
        """
        self._keep_mean_budget(X)
        if np.isinf(self.multiplier_) or leave_out_total(self, self._encode(X)) >= plain:
            self._finish_fit(self.model_)
            self._keep_mean_budget(X)

    def _tree_of_rows(self, encoded: Floats, result: AcquisitionResult) -> Tree:
        """What became of rows; the labels of the result are 0, 1, …."""
        return tree_of(self.nodes_, self.encoder_, encoded, result, self.classes_.tolist())

    def calibrate(self, X: Any, y: Any, **options: Any) -> Self:
        """As for `AdaCOSClassifier`; `tree_` then tells of these rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Calibration rows.
        y : array-like of shape (n_rows,)
            Their classes.
        **options
            See `AdaCOSClassifier.calibrate`.

        Returns
        -------
        self
            The policy, which answers by the certified threshold from now on.
        """
        super().calibrate(X, y, **options)
        if not self.always_positive_:
            encoded = self._encode(X)
            self.tree_ = self._tree_of_rows(encoded, self._run(encoded))
        return self

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

    def _leave_out_of_positives(self) -> Floats:
        """As for AdaCOS, at the sets of each row's leaf; a shorter sequence repeats its last."""
        leave_out = super()._leave_out_of_positives()
        if self.in_one_order:
            return leave_out
        positive = np.flatnonzero(self.model_.y == 1)
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(self.leaf_[positive] == number)
            if node.model is not None:
                leave_out[rows] = _widened(
                    node.model.leave_out_log_odds[positive[rows]], leave_out.shape[1]
                )
        return leave_out

    def _leave_out_at_stop(self, encoded: Floats, result: AcquisitionResult) -> Floats:
        """As for AdaCOS, by the models of the leaf of each row.

        A row that lacks the covariate of a branch is judged without what it acquired before.
        """
        if self.in_one_order:
            return super()._leave_out_at_stop(encoded, result)
        to_be_had = ~np.isnan(encoded[:, self.encoder_.first]) & ~result.acquired
        log_odds = np.empty((len(result), *self.model_.intercepts.shape[1:]))
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(self.leaf_ == number)
            model = node.model or self.model_
            # The largest set of which the row has all that is to be had.
            within = to_be_had[rows] @ model.sequence.masks().T.astype(np.intp) == 0
            stage = np.maximum(within.sum(axis=1) - 1, 0)
            log_odds[rows] = model.leave_out_log_odds[rows, stage]
        return log_odds

    def _leave_out_with_all(self) -> Floats:
        """As for AdaCOS, by the models of the leaf of each row."""
        log_odds = super()._leave_out_with_all().copy()
        for number, node in enumerate(self.nodes_):
            rows = np.flatnonzero(self.leaf_ == number)
            if node.model is not None:
                log_odds[rows] = node.model.leave_out_log_odds[rows, -1]
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

    def _begin(self, rows: Rows) -> Any:
        if self.in_one_order or self.rule_.always_positive:
            return super()._begin(rows)
        n_rows = len(rows.encoded)
        state = BranchState(
            rows.encoded,
            rows.available,
            rows.have & rows.available,
            rows.known,
            np.zeros(n_rows, dtype=np.intp),
            (),
        )
        return self._placed(state)

    def _placed(self, state: BranchState) -> BranchState:
        """Rows moved down the tree as far as what they have takes them."""
        node, walks = state.node.copy(), list(state.walks)

        def settle(rows: Ints, model: SequenceModel, known: Bools) -> None:
            if len(rows):
                have = np.asarray(state.have[rows].any(axis=0))
                walk = begin(model, state.encoded[rows], state.available[rows], have, known)
                walks.append((rows, walk))
                node[rows] = _SETTLED

        for number, place in enumerate(self.nodes_):
            here = np.flatnonzero(node == number)
            if len(here) == 0:
                continue
            if place.split is None:
                assert place.model is not None
                settle(here, place.model, state.known)
                continue
            k = place.split.covariate
            # Off the branches what was acquired on them counts as known.
            lacking = here[~state.available[here, k]]
            settle(lacking, self.model_, state.known | self._on_path(number))
            ready = here[state.have[here, k]]
            side = place.split.side(state.encoded[ready], self.encoder_)
            node[ready] = np.array(place.below)[side]
        return state._replace(node=node, walks=tuple(walks))

    def _within(self, state: Any, left: Floats) -> Any:
        limit = super()._within
        if not isinstance(state, BranchState):
            return limit(state, left)
        assert self.budget is not None
        available, price = state.available.copy(), self.cost_table_.of_next(state.have)
        for number, node in enumerate(self.nodes_):
            here = np.flatnonzero(state.node == number)
            if node.split is not None and len(here):
                k = node.split.covariate
                way = np.array([*node.path, k], dtype=np.intp)
                whole = self.cost_table_.of_order(way, given=state.known)
                # By what the way costs: what is acquired off it later does not lead back to it.
                dear = (price[here, k] > left[here]) | (whole > self.budget * (1 + ROUNDING))
                available[here[dear & ~state.have[here, k]], k] = False
        state = self._placed(state._replace(available=available))
        walks = tuple((rows, limit(walk, left[rows])) for rows, walk in state.walks)
        return state._replace(walks=walks)

    def _left_out(self, state: Any, rows: Ints) -> Any:
        judge = super()._left_out
        if not isinstance(state, BranchState):
            return judge(state, rows)
        walks = tuple((own, judge(walk, rows[own])) for own, walk in state.walks)
        return state._replace(walks=walks)

    def _decide(self, state: Any) -> Decision:
        if not isinstance(state, BranchState):
            return super()._decide(state)
        covariates = np.full(len(state.node), STOP)
        log_odds = np.full((len(state.node), *self.model_.intercepts.shape[1:]), np.nan)
        weighed = None
        for number, node in enumerate(self.nodes_):
            if node.split is not None:
                covariates[state.node == number] = node.split.covariate
        for rows, walk in state.walks:
            decision = super()._decide(walk)
            covariates[rows], log_odds[rows] = decision.covariates, decision.log_odds
            weighed = decision
        if len(state.node) == 1 and state.node[0] != _SETTLED:
            # A row that goes on needs no log-odds; of a single one they are shown.
            log_odds = log_odds_now(self._unbranched(state))
        return Decision(covariates, log_odds, weighed=weighed)

    def _unbranched(self, state: BranchState) -> WalkState:
        """One row as it would stand without branches."""
        known = state.known | self._on_path(int(state.node[0]))
        return begin(self.model_, state.encoded, state.available, state.have[0], known)

    def _on_path(self, number: int) -> Bools:
        """Mask of the covariates acquired on the way to a node."""
        return np.isin(np.arange(len(self.encoder_.names)), self.nodes_[number].path)

    def _advance(self, state: Any, going: Bools, covariates: Ints) -> Any:
        if not isinstance(state, BranchState):
            return super()._advance(state, going, covariates)
        number = np.cumsum(going) - 1
        walks = tuple(
            (number[rows[going[rows]]], advance(walk, going[rows]))
            for rows, walk in state.walks
            if going[rows].any()
        )
        have, available = state.have[going], state.available[going]
        each = np.arange(len(have))
        have[each, covariates[:, 0]] = available[each, covariates[:, 0]]
        return self._placed(
            state._replace(
                encoded=state.encoded[going],
                available=available,
                have=have,
                node=state.node[going],
                walks=walks,
            )
        )

    def _reasons(self, state: Any, decision: Decision) -> Reasons:
        if not isinstance(state, BranchState):
            return super()._reasons(state, decision)
        if state.walks:
            return super()._reasons(state.walks[0][1], decision.weighed)
        walk = self._unbranched(state)
        if walk.model.many_classes:
            reasons = super()._reasons(walk, Decision(np.array([STOP]), decision.log_odds))
        else:
            ahead, classes = look_ahead(walk, self.cost_table_), self.classes_.tolist()
            reasons = sequence_reasons(walk, ahead, self.rule_, self.encoder_, classes, None)
        return replace(reasons, plans=(), because=told_tree(self).because(int(state.node[0])))


def branches(policy: BasePolicy) -> TypeGuard[BranchingClassifier]:
    """Whether what a policy asks next depends on the values, by branches of a tree."""
    return isinstance(policy, BranchingClassifier) and not policy.in_one_order


def _widened(log_odds: Floats, n_sets: int) -> Floats:
    """Log-odds at the sets of a shorter sequence, the last repeated."""
    return log_odds[:, np.minimum(np.arange(n_sets), log_odds.shape[1] - 1)]

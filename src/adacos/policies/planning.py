"""Planning: all orders of questions are weighed, by dynamic programming on a model of the table.

A mixture of products is the joint distribution of class and covariates
(`adacos.models.table_mixture`); what it says of the class is pooled with a model in which
covariates act in pairs (`adacos.models.cells`). Numbers are cut into codes, and the policy is the
one of least expected total cost, the optimum of the paper's Theorem 1 (`adacos.kernels.planning`).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from adacos.costs import Costs, CostTable, total_of
from adacos.deciders.plan import PlanningDecider
from adacos.decision import Terms
from adacos.engine import AcquisitionResult, run
from adacos.kernels.folds import drawn_rows, stratified_folds
from adacos.kernels.groups import standard_error
from adacos.kernels.prior_shift import LogOddsChange
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES
from adacos.models.basis import MOST_SPLINES
from adacos.models.cells import (
    WithinCodes,
    log_shares_of,
    mixture_weight,
    pair_shares,
    pooled_joint,
)
from adacos.models.pairs import PairedFit, paired_fit
from adacos.models.plans import PlanTable, tabulate, tabulate_each
from adacos.models.set_fits import SetFits, prepare
from adacos.models.shifted import shifted_joint, shifted_within
from adacos.models.table_mixture import (
    REPEATS,
    Member,
    Reading,
    TableMixture,
    fit_members,
    held_out_joint,
    log_shares,
    pooled,
)
from adacos.policies.base import BasePolicy
from adacos.policies.plan_size import (
    LEAST_CODES,
    MOST_ROWS,
    MOST_STATES,
    ROUGH_STATES,
    affordable,
    among_these,
    codes_within,
    even_codes,
    modellable,
    order_by_value,
    refuse_many_classes,
    sizes_to_compare,
)
from adacos.policies.plan_tree import PlanNode, plan_nodes, plan_tree
from adacos.policies.rounds import refuse_rounds
from adacos.policies.tree import Tree, no_rows
from adacos.tables.codes import Codes
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, whole

# How many times covariate costs may count; the last acquires what is free only.
CAUTIONS = (1.0, 1.5, 2.5, 5.0, 1e6)
# Standard errors by which more caution must lower the cost of rows left out.
ERRORS = 1.0
# Codes of a number by default.
N_CODES = 14


class FoldedRows(NamedTuple):
    """Rows that models are fitted to.

    Attributes
    ----------
    encoded, labels, groups : the rows, their classes as numbers, their groups if there are any.
    fold : the fold in which each row is held out.
    """

    encoded: Floats
    labels: Ints
    groups: Ints | None
    fold: Ints


class Learned(NamedTuple):
    """What is learned of a table.

    Attributes
    ----------
    mixture : the joint model.
    weight : its weight in P(y | x).
    pairs : the model in which the planned covariates act in pairs, and what it was fitted to; None
        where it has no weight.
    """

    mixture: TableMixture
    weight: float = 1.0
    pairs: tuple[SetFits, PairedFit] | None = None


class PlanningClassifier(BasePolicy):
    """Plan which covariate comes next among all orders, on a joint model of the table.

    A mixture of products says how likely covariates are together, and it and a model in which
    covariates act in pairs say how likely the classes are then. Numbers are cut into codes, and the
    policy is the cheapest there is for that estimate, by dynamic programming with covariate costs
    counted with some caution. What a number says beyond its code counts at the stop, and where it
    is decided whether to continue. `AutoPolicyClassifier` compares the policies on your table.

    Parameters
    ----------
    n_codes : int, default=14
        Most codes that a number is cut into; one with fewer values keeps them. Many covariates
        leave fewer codes for each.
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate.
    cv : int, default=5
        Folds behind the probabilities of training rows by models that did not see them.

    Attributes
    ----------
    planned_ : ndarray of int
        Covariates that the plan asks for; the others are never acquired. All that vary, unless the
        combinations of codes would be too many: then those that are worth most in a plan, as many
        as make held-out rows cheapest.
    codes_ : Codes
        How values become codes.
    joint_ : ndarray of shape (n_classes, codes of the first planned covariate, ...)
        Estimated probability of every class and combination of codes.
    table_ : PlanTable
        What to acquire next, log-odds and expected cost in every state.
    within_codes_ : WithinCodes or None
        The mixture and its weight in the probabilities of the classes; None where that is 0.
    caution_ : float
        How many times covariate costs count in what is chosen, by cross-validated cost.
    expected_cost_ : float
        Mean total cost of the training rows under plans made without them. The plan's own estimate
        of its cost, `table_.expected_cost`, is of the cheapest of many plans, and too low; it is
        all there is of a policy that was recalibrated.
    tree_ : Tree
        The first questions of the plan and what becomes of the training rows that are complete in
        it; `print(policy.tree_)` draws them.

    See Also
    --------
    AdaCOSClassifier : One order for every row.
    AutoPolicyClassifier : Chooses among the policies.

    Notes
    -----
    A row without some covariates follows the best plan with the others: one more dynamic
    programme for each pattern of missing values. For a target recall, wrap the policy into
    `TargetRecallClassifier`; budgets and a cost of waiting are for AdaCOS.

    References
    ----------
    D. Andrade and Y. Okajima, Adaptive Covariate Acquisition for Minimizing Total Cost of
    Classification, Theorem 1.

    Examples
    --------
    >>> from adacos import Costs, PlanningClassifier
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> X, y = problem.sample(500, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    >>> policy = PlanningClassifier(costs).fit(X, y)
    >>> result = policy.acquire([[0, 1, 1], [1, 1, 1]])
    >>> result.covariates(0), result.covariates(1)
    (('x0', 'x1'), ('x0', 'x2'))
    >>> print(policy.tree_)
    500 rows: every row is asked x0
    ├─ x0 = 0 (50%): asked x1
    │  ├─ x1 = 0 (22%): nothing more; paid 6.00, answered 1: 0%
    │  └─ x1 = 1 (27%): nothing more; paid 6.00, answered 1: 100%
    └─ x0 = 1 (50%): asked x2
       ├─ x2 = 0 (22%): nothing more; paid 6.00, answered 1: 0%
       └─ x2 = 1 (28%): nothing more; paid 6.00, answered 1: 100%
    """

    takes_many_classes = True
    # A slope has no joint model.
    _takes_slope = False
    # Model files in which it is not named were written when it was not kept.
    cross_validated_cost_: float | None = None

    saved_fields: ClassVar[Fields] = {
        "codes_": Codes,
        "planned_": Ints,
        "joint_": Floats,
        "table_": PlanTable,
        "caution_": float,
        "cross_validated_cost_": float | None,
        "within_codes_": WithinCodes | None,
        "tree_": Tree,
    }

    constraints: ClassVar[Constraints] = {
        "n_codes": whole(2),
        "n_splines": whole(4, MOST_SPLINES),
        "cv": whole(2),
        "random_state": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        n_codes: int = N_CODES,
        n_splines: int = 10,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.n_codes = n_codes
        self.n_splines = n_splines
        self.cv = cv
        self.random_state = random_state

    @one_blas_thread
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the joint model, and plan.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row, see `AdaCOSClassifier.fit`.
        """
        refuse_rounds(self, why="a plan asks one covariate after the other")
        training = self.begin_fit(X, y, groups)
        drawn = drawn_rows(training.y, MOST_ROWS, self.random_state)
        groups = None if training.groups is None else training.groups[drawn]
        rows = self._rows(training.encoded[drawn], training.y[drawn].astype(np.intp), groups)
        about = rows.encoded, self.encoder_
        refuse_many_classes(*about, self.n_codes, self.n_splines, len(self.classes_))
        members, n_folds = self._members(rows), int(rows.fold.max()) + 1
        mixture, without = pooled(members), members[:n_folds]
        planned = self._best_size(mixture, without, rows)
        learned = self._pooled(mixture, members, rows, planned)
        self.caution_, cost = self._least_costly(learned.weight, planned, without, rows)
        self.cross_validated_cost_ = None if np.isnan(cost).all() else float(np.nanmean(cost))
        every = np.full(len(training.y), np.nan)
        every[drawn] = cost
        self._out_of_fold = every, training.y
        self.planned_ = np.sort(planned)
        self.codes_ = codes_within(*about, planned, self.n_codes, MOST_STATES)
        decider = self._deciders(learned, self.codes_, self.planned_, (self.caution_,))[0]
        self.joint_, self.table_ = decider.joint, decider.table
        self.within_codes_ = decider.within
        self.finish_fit()
        self.tree_ = self._tree_of_rows(rows.encoded, run(self.decider_, rows.encoded))
        return self

    def make_decider(self, terms: Terms) -> PlanningDecider:
        """Give the decider that decides by what was learned."""
        learned = self.codes_, self.planned_, self.joint_, self.table_, self.caution_, self._within
        return PlanningDecider(terms, *learned)

    def _check_recalibrates(self) -> None:
        """A plan follows from its joint model alone."""

    def _training_shares(self) -> Floats:
        """Share of each class in the joint model."""
        return np.asarray(self.joint_.reshape(len(self.joint_), -1).sum(axis=1))

    def _change(self, change: LogOddsChange) -> None:
        """Follow the plan of the joint model after a change from now on."""
        self.joint_ = shifted_joint(self.joint_, change)
        self.table_ = tabulate(self.joint_, self._costs_of(self.planned_), self.caution_)
        if self._within is not None:
            self.within_codes_ = shifted_within(self._within, change)
        self.cross_validated_cost_ = None
        self.finish_fit()
        self.tree_ = self._tree_of_rows(*no_rows(self.decider_))

    @property
    def _within(self) -> WithinCodes | None:
        """What values say beyond their codes, of which older files know nothing."""
        return getattr(self, "within_codes_", None)

    @property
    def expected_cost_(self) -> float:
        """What a row costs under plans made without it."""
        if self.cross_validated_cost_ is None:
            return self.table_.expected_cost
        return self.cross_validated_cost_

    @property
    def held_fixed(self) -> str:
        """What was learned by costs and stays where the policy decides at others, in a sentence."""
        return (
            "The joint model does not depend on costs, and the plan is made again. Held fixed: the "
            f"caution, which counts covariate costs {self.caution_:g} times, and the planned "
            "covariates; cross-validation chose both by the costs of the fit."
        )

    @property
    def has_tree(self) -> bool:
        """Whether the plan asks anything."""
        return bool(self.tree_.places[0].question)

    @property
    def nodes_(self) -> tuple[PlanNode, ...]:
        """The first questions of the plan, the root first."""
        return self._nodes()

    def _nodes(self, *, written: bool = False) -> tuple[PlanNode, ...]:
        """Questions of the plan: those that are drawn, or more, with an answer at each end."""
        plan = self.table_, self.planned_, self.codes_, self.cost_table_.matrix
        return plan_nodes(*plan, self._within, written=written)

    def _tree_of_rows(self, encoded: Floats, result: AcquisitionResult) -> Tree:
        """What became of rows; the labels of the result are 0, 1, …."""
        return plan_tree(
            self.nodes_, self.encoder_, self.planned_, encoded, result, self.decisions_.tolist()
        )

    def _rows(
        self, encoded: Floats, labels: Ints, groups: Ints | None, more: int = 0
    ) -> FoldedRows:
        """Rows with their folds; `more` is added to the seed."""
        seed = self.random_state + more
        fold = stratified_folds(encoded, labels.astype(float), self.cv, seed, groups)
        return FoldedRows(encoded, labels, groups, fold)

    def _members(self, rows: FoldedRows) -> list[Member]:
        """Mixtures without each fold, and without each of other folds."""
        reading = Reading.fit(rows.encoded, self.encoder_)
        folds = [rows.fold]
        folds += [self._rows(*rows[:3], more).fold for more in range(1, REPEATS)]
        return fit_members(
            reading,
            reading.statistics(rows.encoded),
            rows.labels,
            np.ones(len(rows.labels)),
            folds,
            len(self.classes_),
            self.random_state,
        )[0]

    def _best_size(self, mixture: TableMixture, without: list[Member], rows: FoldedRows) -> Ints:
        """The covariates with which held-out rows cost least, in order, by the mixture alone."""
        about = rows.encoded, self.encoder_
        sizes = even_codes(*about, self.n_codes).sizes
        order = np.flatnonzero(sizes > 1)
        if len(affordable(order, sizes, MOST_STATES)) < len(order):
            order = order_by_value(mixture, *about, order, self._costs_of)
        order = order[modellable(order, self.encoder_.source, len(rows.labels))[order]]
        every = sizes_to_compare(order, *about, self.n_codes)
        if len(every) == 1:
            return every[0]
        costs = []
        for planned in every:
            codes = codes_within(*about, planned, self.n_codes, ROUGH_STATES)
            each = [
                self._deciders(Learned(one.mixture), codes, np.sort(planned)) for one in without
            ]
            held_out = self._realised([same[0] for same in each], without, rows)
            costs.append(0.0 if np.isnan(held_out).all() else float(np.nanmean(held_out)))
        return every[int(np.argmin(costs))]

    def _pooled(
        self, mixture: TableMixture, members: list[Member], rows: FoldedRows, planned: Ints
    ) -> Learned:
        """The mixture, and what it is pooled with: the weights that predict held-out rows best."""
        if not len(planned):
            return Learned(mixture)
        fits, model = self._paired(rows, planned)
        statistics = mixture.reading.statistics(rows.encoded)
        acquired = np.tile(self._mask(planned), (len(rows.labels), 1))
        by_mixture = log_shares(held_out_joint(members, statistics, acquired))
        weight = mixture_weight(by_mixture, log_shares_of(model.out_of_fold), rows.labels)
        return Learned(mixture, weight, None if weight == 1 else (fits, model))

    def _least_costly(
        self, weight: float, planned: Ints, without: list[Member], rows: FoldedRows
    ) -> tuple[float, Floats]:
        """The caution with which held-out rows cost least, and the cost of each row then.

        The plans are made without the fold of the row. A row that is never held out has no cost.
        """
        about = rows.encoded, self.encoder_
        planned = np.sort(affordable(planned, even_codes(*about, LEAST_CODES).sizes, ROUGH_STATES))
        codes = codes_within(*about, planned, self.n_codes, ROUGH_STATES)
        each = []
        for member in without:
            learned = Learned(member.mixture, weight)
            if weight < 1 and len(member.held_out):
                kept = np.setdiff1d(np.arange(len(rows.labels)), member.held_out)
                own = None if rows.groups is None else rows.groups[kept]
                inner = self._rows(rows.encoded[kept], rows.labels[kept], own)
                learned = learned._replace(pairs=self._paired(inner, planned))
            each.append(self._deciders(learned, codes, planned, CAUTIONS))
        columns = [self._realised(list(same), without, rows) for same in zip(*each, strict=True)]
        cost = np.column_stack(columns)
        known = ~np.isnan(cost[:, 0])
        if known.sum() < 2:
            return CAUTIONS[0], cost[:, 0]
        more = (cost - cost[:, :1])[known]
        own = None if rows.groups is None else rows.groups[known]
        error = np.array([standard_error(column, own) for column in more.T])
        best = int(np.argmin(more.mean(axis=0) + ERRORS * error))
        return CAUTIONS[best], cost[:, best]

    def _realised(
        self, deciders: list[PlanningDecider], without: list[Member], rows: FoldedRows
    ) -> Floats:
        """Cost of rows under the decider without their fold.

        A row that is alone in its class is in every fit: it has none.
        """
        cost = np.full(len(rows.labels), np.nan)
        for decider, member in zip(deciders, without, strict=True):
            inside = member.held_out
            if len(inside):
                result, true = run(decider, rows.encoded[inside]), rows.labels[inside]
                matrix = self.cost_table_.matrix
                cost[inside] = total_of(result.cost, true, result.label, matrix)
        return cost

    def _deciders(
        self,
        learned: Learned,
        codes: Codes,
        planned: Ints,
        cautions: tuple[float, ...] = CAUTIONS[:1],
    ) -> list[PlanningDecider]:
        """Plans with each caution, made by what was learned."""
        joint = learned.mixture.joint_of_codes(codes, planned)
        if learned.pairs is not None:
            fits, model = learned.pairs
            own = codes.only(planned)
            coded = own.transform(fits.complete[: len(fits.y)])
            share = np.bincount(fits.y.astype(np.intp), minlength=len(joint)) / len(fits.y)
            by_pairs = pair_shares(fits, model, coded, own.sizes)
            joint = pooled_joint(joint, by_pairs, learned.weight, share)
        within = WithinCodes(learned.mixture, learned.weight) if learned.weight else None
        tables = tabulate_each(joint, self._costs_of(planned), cautions)
        return [
            PlanningDecider(self._terms(), codes, planned, joint, table, caution, within)
            for table, caution in zip(tables, cautions, strict=True)
        ]

    def _mask(self, covariates: Ints) -> Bools:
        return np.isin(np.arange(len(self.encoder_.names)), covariates)

    def _costs_of(self, covariates: Ints) -> CostTable:
        """Costs of some covariates only."""
        return self.cost_table_.only(self._mask(covariates))

    def _paired(self, rows: FoldedRows, planned: Ints) -> tuple[SetFits, PairedFit]:
        """The model in which some covariates act in pairs."""
        kept = self._mask(planned)
        encoded = rows.encoded[:, kept[self.encoder_.source]]
        encoder, encoded = among_these(self.encoder_.only(kept), encoded)
        fits = prepare(
            encoded,
            rows.labels.astype(float),
            encoder,
            n_splines=self.n_splines,
            families=FAMILIES["common"],
            fold=rows.fold,
            n_classes=len(self.classes_),
        )
        return fits, paired_fit(fits, np.arange(len(planned)))

"""Planning: all orders of questions are weighed, by dynamic programming on a model of the table.

Numbers are cut into a few codes; a joint distribution of class and codes is estimated
(`adacos.models.cells`), and the policy is the one of least expected total cost for it, the optimum
of the paper's Theorem 1 (`adacos.kernels.planning`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from adacos.costs import Costs, CostTable, total_of
from adacos.deciders.plan import PlanningDecider
from adacos.decision import Terms
from adacos.engine import AcquisitionResult, run
from adacos.kernels.folds import drawn_rows, stratified_folds
from adacos.kernels.groups import standard_error
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES
from adacos.models.basis import MOST_SPLINES
from adacos.models.cells import effect_codes, joint_of_cells
from adacos.models.pairs import paired_fit
from adacos.models.plans import PlanTable, tabulate, tabulate_each
from adacos.models.sequences import group_lasso_sequence, order_among
from adacos.models.set_fits import SetFits, prepare
from adacos.policies.base import BasePolicy
from adacos.policies.plan_tree import PlanNode, plan_nodes, plan_tree
from adacos.policies.rounds import refuse_rounds
from adacos.policies.tree import Tree
from adacos.tables.codes import Codes
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, whole

# States that are planned at most, and covariates: there are 2^p sets of them to work off.
MOST_STATES, MOST_COVARIATES = 1_000_000, 14
# Covariates that are modelled at most, and products of their columns over all rows.
MOST_MODELLED, MOST_PRODUCTS = 30, 20_000_000
# States in plans that are only compared with each other.
ROUGH_STATES = 100_000
# How many times covariate costs may count; the last acquires what is free only.
CAUTIONS = (1.0, 1.5, 2.5, 5.0, 1e6)
# Standard errors by which more caution must lower the cost of rows left out.
ERRORS = 1.0
# Codes of a number by default.
N_CODES = 4
# Training rows that the model is fitted to, drawn where there are more.
MOST_ROWS = 20_000


class Learned(NamedTuple):
    """What is learned of a table.

    Attributes
    ----------
    codes : how values become codes.
    planned : covariates that are planned.
    joint : probability of every class and combination of their codes.
    """

    codes: Codes
    planned: Ints
    joint: Floats


class PlanningClassifier(BasePolicy):
    """All orders of questions weighed at once, on a model of the table in a few codes.

    Each covariate has a few codes: its categories, or a number cut where the log-odds change most.
    How likely the classes are in every combination of codes is estimated by a model in which
    covariates act in pairs, and the policy is the cheapest there is for that estimate, by dynamic
    programming with covariate costs counted with some caution. Where covariates are categories or
    have few values this is the policy to take; where most are measurements, cutting them loses
    something, and AdaCOS or Branching may do better. `AutoPolicyClassifier` finds out.

    Parameters
    ----------
    n_codes : int, default=4
        Most codes that a number is cut into; one with fewer values keeps them.
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate.
    cv : int, default=5
        Folds behind the probabilities of training rows by models that did not see them.

    Attributes
    ----------
    planned_ : ndarray of int
        Covariates that the plan asks for; the others are never acquired. All that vary, unless the
        combinations of codes or the pairs of columns would be too many: then those that come first
        in AdaCOS's order.
    codes_ : Codes
        How values become codes.
    joint_ : ndarray of shape (n_classes, codes of the first planned covariate, ...)
        Estimated probability of every class and combination of codes.
    table_ : PlanTable
        What to acquire next, log-odds and expected cost in every state.
    caution_ : float
        How many times covariate costs count in what is chosen, by cross-validated cost.
    expected_cost_ : float
        Mean total cost of the training rows under plans made without them. The plan's own estimate
        of its cost, `table_.expected_cost`, is of the cheapest of many plans, and too low.
    tree_ : Tree
        The first questions of the plan and what becomes of the training rows that lack nothing of
        it; `print(policy.tree_)` draws them.

    See Also
    --------
    AdaCOSClassifier : One order for every row, and numbers as they are.
    AutoPolicyClassifier : Chooses among the policies.

    Notes
    -----
    A row that lacks some covariates follows the best plan with the others: one more dynamic
    programme for each pattern of missing values. Missing values of training rows stand at their
    conditional mean. For a target recall, wrap the policy into `TargetRecallClassifier`; budgets
    and a cost of waiting are for AdaCOS.

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
    # Model files in which it is not named were written when it was not kept.
    cross_validated_cost_: float | None = None

    saved_fields: ClassVar[Fields] = {
        "codes_": Codes,
        "planned_": Ints,
        "joint_": Floats,
        "table_": PlanTable,
        "caution_": float,
        "cross_validated_cost_": float | None,
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
        """Estimate how likely classes and codes are, and plan.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row, see `AdaCOSClassifier.fit`.
        """
        refuse_rounds(self, why="a plan asks one covariate after the other")
        training = self.begin_fit(X, y, groups)
        rows = drawn_rows(training.y, MOST_ROWS, self.random_state)
        encoded, labels = training.encoded[rows], training.y[rows]
        own = None if training.groups is None else training.groups[rows]
        self.caution_, cost = self._least_costly(encoded, labels, own)
        self.cross_validated_cost_ = None if np.isnan(cost).all() else float(np.nanmean(cost))
        every = np.full(len(training.y), np.nan)
        every[rows] = cost
        self._out_of_fold = every, training.y
        learned = self._learn(encoded, labels, own, MOST_STATES)
        self.codes_, self.planned_, self.joint_ = learned
        self.table_ = tabulate(learned.joint, self._costs_of(learned.planned), self.caution_)
        self.finish_fit()
        self.tree_ = self._tree_of_rows(encoded, run(self.decider_, encoded))
        return self

    def make_decider(self, terms: Terms) -> PlanningDecider:
        """Give the decider that decides by what was learned."""
        return PlanningDecider(
            terms, self.codes_, self.planned_, self.joint_, self.table_, self.caution_
        )

    @property
    def expected_cost_(self) -> float:
        """What a row costs under plans made without it."""
        if self.cross_validated_cost_ is None:
            return self.table_.expected_cost
        return self.cross_validated_cost_

    @property
    def has_tree(self) -> bool:
        """Whether the plan asks anything."""
        return bool(self.tree_.places[0].question)

    @property
    def nodes_(self) -> tuple[PlanNode, ...]:
        """The first questions of the plan, the root first."""
        return plan_nodes(self.table_, self.planned_, self.codes_, self.cost_table_.matrix)

    def _tree_of_rows(self, encoded: Floats, result: AcquisitionResult) -> Tree:
        """What became of rows; the labels of the result are 0, 1, …."""
        return plan_tree(
            self.nodes_, self.encoder_, self.planned_, encoded, result, self.classes_.tolist()
        )

    def _least_costly(
        self, encoded: Floats, labels: Floats, groups: Ints | None
    ) -> tuple[float, Floats]:
        """The caution with which rows cost least under plans made without their fold, and the cost.

        A row that is alone in its class, of more than two, is in every plan and not among them.
        """
        fold = stratified_folds(encoded, labels, self.cv, self.random_state, groups)
        number = labels.astype(np.intp)
        fold[np.bincount(number)[number] == 1] = -1
        cost = np.full((len(labels), len(CAUTIONS)), np.nan)
        for part in range(int(fold.max()) + 1):
            inside, outside = fold == part, fold != part
            own = None if groups is None else groups[outside]
            learned = self._learn(encoded[outside], labels[outside], own, ROUGH_STATES)
            plans = tabulate_each(learned.joint, self._costs_of(learned.planned), CAUTIONS)
            for place, (caution, table) in enumerate(zip(CAUTIONS, plans, strict=True)):
                decider = PlanningDecider(self._terms(), *learned, table, caution)
                result = run(decider, encoded[inside])
                cost[inside, place] = total_of(
                    result.cost, number[inside], result.label, decider.rule.matrix
                )
        more = (cost - cost[:, :1])[fold >= 0]
        if len(more) < 2:
            return CAUTIONS[0], cost[:, 0]
        own = None if groups is None else groups[fold >= 0]
        error = np.array([standard_error(column, own) for column in more.T])
        best = int(np.argmin(more.mean(axis=0) + ERRORS * error))
        return CAUTIONS[best], cost[:, best]

    def _costs_of(self, covariates: Ints) -> CostTable:
        """Costs of some covariates only."""
        return self.cost_table_.only(np.isin(np.arange(len(self.encoder_.names)), covariates))

    def _learn(
        self, encoded: Floats, labels: Floats, groups: Ints | None, most_states: int
    ) -> Learned:
        """Codes, and how likely they are with each class."""
        fold = stratified_folds(encoded, labels, self.cv, self.random_state, groups)
        encoder, encoded = among_these(self.encoder_, encoded)
        fits = self._prepared(encoded, labels, encoder, fold)
        order = group_lasso_sequence(
            fits.basis,
            fits.complete,
            labels,
            fits.weight,
            self.cost_table_.covariates,
            fits.n_classes,
        ).order
        modelled = modellable(order, encoder.source, len(labels))
        if not modelled.all():
            encoded = encoded[:, modelled[encoder.source]]
            encoder = encoder.only(modelled)
            fits = self._prepared(encoded, labels, encoder, fold)
        model = paired_fit(fits, order_among(order, modelled))
        codes = effect_codes(fits, model, encoder, self.n_codes)
        every = codes.among(np.flatnonzero(modelled), self.encoder_.source)
        planned = affordable(order[modelled[order]], every.sizes, most_states)
        # Where the planned covariates are among those modelled.
        places = np.flatnonzero(np.isin(np.flatnonzero(modelled), planned))
        coded = codes.transform(fits.complete)
        return Learned(every, planned, joint_of_cells(fits, model, coded, codes.sizes, places))

    def _prepared(
        self, encoded: Floats, labels: Floats, encoder: TableEncoder, fold: Ints
    ) -> SetFits:
        return prepare(
            encoded,
            labels,
            encoder,
            n_splines=self.n_splines,
            families=FAMILIES["common"],
            fold=fold,
            n_classes=len(self.classes_),
        )


def among_these(encoder: TableEncoder, encoded: Floats) -> tuple[TableEncoder, Floats]:
    """Encoder and encoded values of some of the rows.

    A number that does not vary among them, or a covariate of which they have no value, is constant.
    """
    unknown, first = np.isnan(encoded), encoder.first
    low = np.where(unknown, np.inf, encoded).min(axis=0)[first]
    high = np.where(unknown, -np.inf, encoded).max(axis=0)[first]
    number = np.array(encoder.kinds) != CATEGORICAL
    constant = (low > high) | (number & (low == high))
    kinds = tuple(np.where(constant, CONSTANT, encoder.kinds).tolist())
    return replace(encoder, kinds=kinds), np.where(constant[encoder.source], 0.0, encoded)


def loses_nothing(encoder: TableEncoder, encoded: Floats) -> bool:
    """Whether a plan by default has a code for every value of every covariate, and asks for all."""
    sizes = np.bincount(encoder.source, minlength=len(encoder.kinds))
    for k, kind in enumerate(encoder.kinds):
        if kind == NUMERIC:
            values = encoded[:, encoder.first[k]]
            sizes[k] = len(np.unique(values[~np.isnan(values)]))
            if sizes[k] > N_CODES:
                return False
        elif kind == BINARY:
            sizes[k] = 2
    varying, n_rows = np.flatnonzero(sizes > 1), min(len(encoded), MOST_ROWS)
    if len(affordable(varying, sizes, MOST_STATES)) < len(varying):
        return False
    return bool(modellable(np.arange(len(sizes)), encoder.source, n_rows).all())


def modellable(order: Ints, source: Ints, n_rows: int) -> Bools:
    """Mask of the first covariates of an order whose model is small enough.

    Products of all pairs of encoded columns are looked at, for every row.
    """
    width = np.bincount(source, minlength=len(order))
    columns = np.cumsum(width[order])
    fits_in = n_rows * columns**2 <= 2 * MOST_PRODUCTS
    # At least the first, and no more than so many.
    n_modelled = min(max(int(fits_in.sum()), 1), MOST_MODELLED)
    return np.isin(np.arange(len(order)), order[:n_modelled])


def affordable(order: Ints, sizes: Ints, most_states: int) -> Ints:
    """The covariates of an order whose states are not too many together, as sorted columns.

    One that would make too many is passed over; what comes after it may still be affordable.
    """
    planned: list[int] = []
    n_states = 1
    for k in order.tolist():
        more = n_states * (int(sizes[k]) + 1)
        if sizes[k] > 1 and more <= most_states and len(planned) < MOST_COVARIATES:
            planned.append(k)
            n_states = more
    return np.array(sorted(planned), dtype=np.intp)

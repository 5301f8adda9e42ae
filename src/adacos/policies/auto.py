"""The policy that pays on the table at hand, chosen by nested cross-validation.

Every candidate is fitted from scratch without each fold, with everything that it chooses, and runs
on its rows. Only Branching is looked at first on all rows: where they ask for no branch it is
AdaCOS.

One of them is kept unless another is shown to be better: it must cost less by more than the
standard error of the paired difference and one error of the most expensive kind among the rows
(which standard errors do not see before it happens). COS, though simpler, has to show as much:
otherwise it is taken by chance. Planning is kept where it need not cut any covariate, and leaves
no order for Branching to find; AdaCOS is kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs, total_of
from adacos.decision import AnyDecider, Terms
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import drawn_rows, stratified_folds
from adacos.kernels.groups import standard_error
from adacos.kernels.prior_shift import LogOddsChange
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES
from adacos.models.basis import MOST_SPLINES
from adacos.models.progress import listening, print_progress, report_progress
from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.base import BasePolicy
from adacos.policies.branching import BranchingClassifier
from adacos.policies.budgets import BUDGET_CONSTRAINTS
from adacos.policies.cos import COSClassifier
from adacos.policies.fitting import fit_in_groups
from adacos.policies.many_classes import max_error_cost
from adacos.policies.plan_size import loses_nothing
from adacos.policies.planning import PlanningClassifier
from adacos.policies.rounds import refuse_rounds
from adacos.reasons import Reasons
from adacos.tables.encoder import table_rows, validate_table
from adacos.typing import Fields, Floats, Ints
from adacos.validation import Constraints, folds, jobs, one_of, whole

FOLDS = 5
# Rows that are compared on, drawn where there are more.
MOST_ROWS = 10_000
COMPARISON = "comparison, fold"
# Rougher fits for the comparison: all are judged alike.
_COARSE_FIT: dict[str, Any] = {"strengths": "common", "cv": 3, "verbose": 0}


class Candidate(NamedTuple):
    """A policy to choose from.

    Attributes
    ----------
    title : its name in tables.
    kind : its class.
    parameters : what sets it apart.
    """

    title: str
    kind: type[BasePolicy]
    parameters: dict[str, Any]


ADACOS = Candidate("AdaCOS", AdaCOSClassifier, {})
BRANCHING = Candidate("Branching", BranchingClassifier, {})
PLANNING = Candidate("Planning", PlanningClassifier, {})
CANDIDATES = (
    ADACOS,
    Candidate("COS", COSClassifier, {}),
    Candidate("AdaCOS, forward", AdaCOSClassifier, {"sequence": "forward"}),
    BRANCHING,
    PLANNING,
)


@dataclass(frozen=True)
class Compared:
    """One candidate on the training rows, each answered by a fit without it.

    Parameters
    ----------
    title : str
        The candidate.
    cost : float
        Mean total cost of a row.
    error : float
        Its standard error.
    more : float
        How much more it costs than the first, which is kept, compared row by row.
    more_error : float
        Standard error of that.
    """

    title: str
    cost: float
    error: float
    more: float
    more_error: float


class AutoPolicyClassifier(BasePolicy):
    """The policy that costs least in cross-validation: AdaCOS, Branching, Planning or COS.

    One is kept unless another is shown to be better on the training rows by nested
    cross-validation: Planning where every covariate has few values, AdaCOS elsewhere. `compared_`
    says what was seen. Use it where nothing is known about the table; `fit` takes 10 to 70 times as
    long as that of AdaCOS, and more where branches pay. Planning is not among the candidates with a
    budget, nor where values are missing; Branching not where Planning is kept.

    Parameters
    ----------
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate.
    strengths : {"auto", "common", "per_covariate"}, default="auto"
        Penalties of the chosen policy to choose from, see `LogisticGAM`.
    cv : int, splitter or iterable of (train, test), default=10
        Folds behind the out-of-fold probabilities of the chosen policy; Planning takes a number
        only.
    random_state : int, default=0
        Seed of all folds.
    mean_budget : float, default=None
        What rows may pay for covariates on average.
    n_jobs : int, default=None
        Fits of one step of forward selection that run at the same time.

    Attributes
    ----------
    choice_ : str
        Name of the chosen candidate.
    compared_ : tuple of Compared
        Every candidate with its cost in nested cross-validation, the one that is kept first.
    expected_cost_ : float
        The cost of the choice among them.
    policy_ : policy
        The chosen policy, fitted on all rows.

    See Also
    --------
    AdaCOSClassifier : One order for every row.
    BranchingClassifier : The order depends on the values.
    PlanningClassifier : All orders are weighed.
    TargetRecallClassifier : A target recall for any policy, this one included.

    Examples
    --------
    >>> from adacos import AutoPolicyClassifier, Costs
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> X, y = problem.sample(300, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    >>> AutoPolicyClassifier(costs).fit(X, y).choice_
    'Planning'
    """

    saved_fields: ClassVar[Fields] = {
        "policy_": BasePolicy,
        "choice_": str,
        "compared_": tuple[Compared, ...],
    }
    takes_many_classes = True
    chooses = True

    needs_nested_fits: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = {
        "n_splines": whole(4, MOST_SPLINES),
        "strengths": one_of(*FAMILIES),
        "cv": folds,
        "random_state": whole(0),
        **BUDGET_CONSTRAINTS,
        "n_jobs": jobs,
        "verbose": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        n_splines: int = 10,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        budget: float | None = None,
        mean_budget: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.n_splines = n_splines
        self.strengths = strengths
        self.cv = cv
        self.random_state = random_state
        self.budget = budget
        self.mean_budget = mean_budget
        self.n_jobs = n_jobs
        self.verbose = verbose

    @one_blas_thread
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Compare the candidates, then fit the chosen one on all rows.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row, see `AdaCOSClassifier.fit`.
        """
        refuse_rounds(self, why="the policies compared ask one covariate after the other")
        training = self.begin_fit(X, y, groups)
        table, classes = validate_table(self, X, reset=False), np.asarray(y).ravel()
        rows = drawn_rows(training.y, MOST_ROWS, self.random_state)
        own = None if training.groups is None else training.groups[rows]
        candidates = self._candidates(training.encoded)
        with listening(self._print_progress) if self.verbose else nullcontext():
            cost = self._nested(table, training.encoded, training.y, classes, rows, own, candidates)
        # A row that is alone in its class has no cost.
        known = ~np.isnan(cost[candidates[0].title])
        own = None if own is None else own[known]
        cost = {title: values[known] for title, values in cost.items()}
        self.compared_ = tuple(_compared(cost, own))
        max_error = max_error_cost(training.costs.matrix, training.y)
        chosen = choose(candidates, cost, max_error, own)
        self.choice_ = chosen.title
        every = np.full(len(training.y), np.nan)
        every[rows[known]] = cost[chosen.title]
        self._out_of_fold = every, training.y
        self.policy_: BasePolicy = fit_in_groups(self._make(chosen), X, y, training.groups)
        return self.finish_fit()

    def _candidates(self, encoded: Floats) -> tuple[Candidate, ...]:
        """The candidates for the training rows, the one that is kept first."""
        budgeted = self.budget is not None or self.mean_budget is not None
        if budgeted or np.isnan(encoded).any():
            return tuple(candidate for candidate in CANDIDATES if candidate is not PLANNING)
        if not loses_nothing(self.encoder_, encoded):
            return CANDIDATES
        return (PLANNING, *(one for one in CANDIDATES if one not in (PLANNING, BRANCHING)))

    def reason(self, money: Callable[[float], str] = "{:.2f}".format) -> str:
        """Say why the policy was chosen.

        Parameters
        ----------
        money : function, default="{:.2f}".format
            Puts an amount into words.

        Returns
        -------
        str
            One sentence or two.
        """
        incumbent = self.compared_[0]
        chosen = self._choice
        if self.recalibration_ is not None:
            return f"{chosen.title} was chosen for the classes as they occurred in training."
        if chosen is incumbent:
            return (
                f"{incumbent.title} was kept: nothing else was clearly cheaper in cross-validation."
            )
        apart = f"{money(abs(chosen.more))} ± {chosen.more_error:.2f}"
        return (
            f"{chosen.title} costs {apart} less per row than {incumbent.title} in "
            "cross-validation, which is more than chance and one more error of the most "
            "expensive kind would explain."
        )

    def _print_progress(self, what: str, done: int, whole: int) -> None:
        # The candidates tell of every set that they fit.
        if what == COMPARISON:
            print_progress(self, what, done, whole)

    def _make(self, candidate: Candidate, **parameters: Any) -> Any:
        """A candidate with the parameters of this policy that it has too, unfitted."""
        has = candidate.kind().get_params(deep=False)
        given = {**self.get_params(deep=False), **candidate.parameters, **parameters}
        if candidate is PLANNING and not isinstance(given["cv"], Integral):
            # It has folds within folds, of which splits of all rows say nothing.
            del given["cv"]
        return candidate.kind(**{name: value for name, value in given.items() if name in has})

    def _nested(
        self,
        table: Any,
        encoded: Floats,
        y: Floats,
        classes: NDArray[Any],
        rows: Ints,
        groups: Ints | None,
        candidates: tuple[Candidate, ...],
    ) -> dict[str, Floats]:
        """Total cost of each row under each candidate, by fits without its fold.

        A row that is alone in its class, of more than two, is in every fit and not among them.
        """
        fold = stratified_folds(encoded[rows], y[rows], FOLDS, self.random_state, groups)
        number = y[rows].astype(np.intp)
        if len(self.classes_) > 2:
            fold[np.bincount(number)[number] == 1] = -1
        if fold.max() < 0:
            raise InvalidInputError(
                "y",
                "needs a class with two rows: policies are compared by cross-validation",
                f"{len(rows)} rows, each alone in its class",
                "Add rows, or take AdaCOSClassifier.",
            )
        tried, whole = list(candidates), (table_rows(table, rows), classes[rows])
        branching = self._make(BRANCHING, **_COARSE_FIT)
        if BRANCHING in tried and fit_in_groups(branching, *whole, groups).in_one_order:
            tried.remove(BRANCHING)
        cost = {candidate.title: np.full(len(rows), np.nan) for candidate in candidates}
        matrix = self.cost_table_.matrix
        n_folds = int(fold.max()) + 1
        for part in range(n_folds):
            inside, outside = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
            held_out = table_rows(table, rows[inside])
            learned = table_rows(table, rows[outside]), classes[rows[outside]]
            own = None if groups is None else groups[outside]
            for candidate, policy in self._fitted(*learned, own, tried):
                result = policy.acquire(held_out)
                label = policy.numbers_of(result.label)
                total = total_of(result.cost, number[inside], label, matrix)
                cost[candidate.title][inside] = total
            report_progress(COMPARISON, part + 1, n_folds)
        if BRANCHING in candidates and BRANCHING not in tried:
            cost[BRANCHING.title] = cost[ADACOS.title].copy()
        return cost

    def _fitted(
        self, X: Any, y: Any, groups: Ints | None, candidates: list[Candidate]
    ) -> Iterator[tuple[Candidate, BasePolicy]]:
        """Some candidates, fitted; COS shares the fit of AdaCOS."""
        adacos = fit_in_groups(self._make(ADACOS, **_COARSE_FIT), X, y, groups)
        for candidate in candidates:
            policy = self._make(candidate, **_COARSE_FIT)
            if candidate is ADACOS:
                policy = adacos
            elif candidate.kind is COSClassifier:
                policy.from_model(adacos)
            else:
                fit_in_groups(policy, X, y, groups)
            yield candidate, policy

    def _change(self, change: LogOddsChange) -> None:
        """Decide by the chosen policy after a change from now on."""
        self.policy_ = self.policy_._changed(change)
        self.finish_fit()

    def make_decider(self, terms: Terms) -> AnyDecider:
        """Give the decider of the chosen policy.

        Parameters
        ----------
        terms : Terms
            Not used: the chosen policy has its own.

        Returns
        -------
        Decider
            The decider.
        """
        return self.policy_.decider_

    @property
    def _choice(self) -> Compared:
        return next(item for item in self.compared_ if item.title == self.choice_)

    @property
    def expected_cost_(self) -> float | None:
        """What a row costs under the chosen candidate, by the comparison's fits without it.

        Recalibrated or restricted, by the chosen policy's own models.
        """
        if self.recalibration_ is not None or self.restriction_ is not None:
            return self.policy_.expected_cost_
        return self._choice.cost

    @property
    def chosen(self) -> BasePolicy:
        """The chosen policy, in the words given to this one."""
        return self.policy_.described_as(self)

    def add_words(self, reasons: Reasons) -> Reasons:
        """Add what the chosen policy can say of one row."""
        return self.chosen.add_words(reasons)


def choose(
    candidates: tuple[Candidate, ...],
    cost: dict[str, Floats],
    max_error: float,
    groups: Ints | None = None,
) -> Candidate:
    """The candidate to take, from the total cost of each row under each of them.

    The first is kept. `max_error` is what the most expensive error costs more than the cheapest
    answer.
    """
    incumbent, *others = candidates
    taken, least = incumbent, 0.0
    for candidate in others:
        more = cost[candidate.title] - cost[incumbent.title]
        mean, error = float(more.mean()), standard_error(more, groups)
        if mean + error + max_error / len(more) <= 0 and mean < least:
            taken, least = candidate, mean
    return taken


def _compared(cost: dict[str, Floats], groups: Ints | None) -> Iterator[Compared]:
    incumbent = next(iter(cost.values()))
    for title, own in cost.items():
        more = own - incumbent
        yield Compared(
            title,
            float(own.mean()),
            standard_error(own, groups),
            float(more.mean()),
            standard_error(more, groups),
        )

"""The policy that pays on the table at hand, chosen by what each costs rows that it did not see.

Every candidate is fitted once, on all rows, and is judged by rows that walk it by models fitted
without their fold. AdaCOS and COS have one sequence model. Branching is grown only where Planning
is not clearly cheaper than AdaCOS.

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

from adacos.costs import Costs
from adacos.deciders.out_of_fold import AnyFoldedDecider
from adacos.decision import AnyDecider, Terms
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import drawn_rows
from adacos.kernels.groups import standard_error
from adacos.kernels.prior_shift import LogOddsChange
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES
from adacos.models.basis import MOST_SPLINES
from adacos.models.progress import listening, print_progress, report_progress
from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.base import BasePolicy, TrainingTable
from adacos.policies.branching import BranchingClassifier
from adacos.policies.budgets import BUDGET_CONSTRAINTS, KeptRows, out_of_fold_totals
from adacos.policies.cos import COSClassifier
from adacos.policies.fitting import fit_in_groups
from adacos.policies.many_classes import max_error_cost
from adacos.policies.plan_size import MOST_ROWS, loses_nothing
from adacos.policies.planning import PlanningClassifier
from adacos.policies.rounds import refuse_rounds
from adacos.policies.sequence_policy import SequencePolicy
from adacos.reasons import Reasons
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, folds, jobs, one_of, whole

COMPARISON = "comparison, policy"


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


ADACOS = Candidate("AdaCOS", AdaCOSClassifier, {"sequence": "auto"})
COS = Candidate("COS", COSClassifier, {})
BRANCHING = Candidate("Branching", BranchingClassifier, {})
PLANNING = Candidate("Planning", PlanningClassifier, {})
# Branching is last: it is not grown where Planning is clearly cheaper.
CANDIDATES = (ADACOS, COS, PLANNING, BRANCHING)


@dataclass(frozen=True)
class Compared:
    """One candidate on the training rows, each answered by models without it.

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

    One is kept unless another is shown to be better on training rows by models that did not see
    them: Planning where every covariate has few values, AdaCOS elsewhere. `compared_` says what was
    seen. Use it where nothing is known about the table; `fit` takes about ten times as long as that
    of AdaCOS, and more where branches pay. Planning is not among the candidates with a budget, nor
    where values are missing; Branching not where Planning is kept or clearly cheaper than AdaCOS.

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
        Every candidate with its cross-validated cost, the one that is kept first.
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
        """Fit the candidates and choose one.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row, see `AdaCOSClassifier.fit`.
        """
        refuse_rounds(self, why="the policies compared ask one covariate after the other")
        training = self.begin_fit(X, y, groups)
        cost: dict[str, Floats] = {}
        with listening(self._print_progress) if self.verbose else nullcontext():
            fitted = self._fit_each(X, y, training, cost)
        known = _judged(cost)
        own = None if training.groups is None else training.groups[known]
        among = {title: values[known] for title, values in cost.items()}
        self.compared_ = tuple(_compared(among, own))
        self.choice_ = self._cheapest(cost, training)
        self._out_of_fold = cost[self.choice_], training.y
        self.policy_: BasePolicy = fitted[self.choice_]
        return self.finish_fit()

    def _candidates(self, encoded: Floats) -> tuple[Candidate, ...]:
        """The candidates for the training rows, the one that is kept first."""
        budgeted = self.budget is not None or self.mean_budget is not None
        if budgeted or np.isnan(encoded).any():
            return tuple(candidate for candidate in CANDIDATES if candidate is not PLANNING)
        if not loses_nothing(self.encoder_, encoded):
            return CANDIDATES
        return (PLANNING, *(one for one in CANDIDATES if one not in (PLANNING, BRANCHING)))

    def _fit_each(
        self, X: Any, y: Any, training: TrainingTable, cost: dict[str, Floats]
    ) -> dict[str, BasePolicy]:
        """The candidates, fitted; `cost` has what rows cost by models that did not see them.

        A row has NaN where there is no such model.
        """
        candidates = self._candidates(training.encoded)
        fitted: dict[str, BasePolicy] = {}
        adacos = self._make(ADACOS, verbose=0)
        # A tree grows from them.
        adacos._keeps_fits = True
        for number, candidate in enumerate(candidates):
            if candidate is BRANCHING and self._cheapest(cost, training) == PLANNING.title:
                continue
            policy = adacos if candidate is ADACOS else self._make(candidate, verbose=0)
            if candidate is COS:
                policy.from_model(adacos)
            elif candidate is BRANCHING:
                policy._grow_from(adacos)
            else:
                fit_in_groups(policy, X, y, training.groups)
            fitted[candidate.title] = policy
            cost[candidate.title] = self._cost_of(policy, training)
            report_progress(COMPARISON, number + 1, len(candidates))
        adacos._set_fits = None
        return fitted

    def _cost_of(self, policy: BasePolicy, training: TrainingTable) -> Floats:
        """Total cost of the training rows under a policy, by models that did not see them."""
        if policy._out_of_fold is not None:
            return policy._out_of_fold[0]
        assert isinstance(policy, SequencePolicy)
        decider: AnyFoldedDecider = policy.decider_
        rows = drawn_rows(training.y, MOST_ROWS, self.random_state)
        kept = KeptRows(training.encoded[rows], rows, training.y[rows], np.ones(len(rows)))
        cost = np.full(len(training.y), np.nan)
        mixture = decider.terms.mixture
        shares = (1.0,) if mixture is None else (1 - mixture.share, mixture.share)
        arms = [out_of_fold_totals(arm, kept) for arm in decider.arms[: len(shares)]]
        cost[rows] = np.average(arms, axis=0, weights=shares)
        return cost

    def _cheapest(self, cost: dict[str, Floats], training: TrainingTable) -> str:
        """Title of the candidate to take, from the costs of the training rows."""
        known = _judged(cost)
        own = None if training.groups is None else training.groups[known]
        largest = max_error_cost(self.cost_table_.matrix, training.y[known])
        return choose({title: each[known] for title, each in cost.items()}, largest, own)

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


def _judged(cost: dict[str, Floats]) -> Bools:
    """Mask of the rows that have a cost under every candidate."""
    known = np.asarray(~np.isnan(np.sum(list(cost.values()), axis=0)))
    if not known.any():
        raise InvalidInputError(
            "y",
            "needs a class with two rows: policies are compared by cross-validation",
            f"{len(known)} rows, each alone in its class",
            "Add rows, or take AdaCOSClassifier.",
        )
    return known


def choose(cost: dict[str, Floats], max_error: float, groups: Ints | None = None) -> str:
    """Title of the candidate to take, from the total cost of each row under each of them.

    The first is kept. `max_error` is what the most expensive error costs more than the cheapest
    answer.
    """
    incumbent, *others = cost
    taken, least = incumbent, 0.0
    for title in others:
        more = cost[title] - cost[incumbent]
        mean, error = float(more.mean()), standard_error(more, groups)
        if mean + error + max_error / len(more) <= 0 and mean < least:
            taken, least = title, mean
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

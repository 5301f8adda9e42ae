"""What every policy shares: validation, consultations, scikit-learn's face.

A policy validates, learns, and makes a decider of what it learned (`adacos.decision.Decider`),
which maps what was acquired of a row to "acquire this covariate" or "classify". A new policy stores
its parameters (among them `costs`); its `fit` begins with `begin_fit` and ends with `finish_fit`,
and `make_decider` gives the decider.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from adacos.consultation import Consultation
from adacos.consultation.next_steps import NextSteps, steps
from adacos.costs import Costs, CostTable
from adacos.deciders.mixing import mixed
from adacos.decision import AnyDecider, DecisionRule, Mixture, Terms, probability_at
from adacos.engine import AcquisitionResult, log_odds_given, run
from adacos.exceptions import (
    InvalidInputError,
    PositiveClassWarning,
    UnstatedCostWarning,
)
from adacos.families import family_of
from adacos.kernels.namespace import host, is_tensor, like
from adacos.kernels.threads import one_blas_thread
from adacos.policies.face import PolicyFace
from adacos.policies.fitting import TAKEN_BY, check_decisions, checked, refusing, warn_of_empty_rows
from adacos.policies.inherited_docs import inherit_entries
from adacos.policies.parameters import ParametersOfFit
from adacos.policies.recalibration import Recalibration, recalibrated
from adacos.policies.restriction import Restriction, held_to_lists, restricted_policy
from adacos.providers import ProvidedResult
from adacos.providers.running import Cache, Desk, check_providers, provide
from adacos.reasons import Reasons
from adacos.restricted import restricted
from adacos.tables.description import Description
from adacos.tables.encoder import (
    TableEncoder,
    covariate_names,
    validate_table,
    with_empty_columns,
)
from adacos.tables.known import asked_of, known_mask, refuse_lists, unavailable_mask
from adacos.tables.labels import check_labels, check_one_label_each
from adacos.tables.suspicions import Suspicion
from adacos.tables.tensors import encode_tensor
from adacos.tables.weights import groups_of
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, check_parameters, level_of_caller, listed


@dataclass(frozen=True)
class TrainingTable:
    """Validated training rows.

    Attributes
    ----------
    encoded : encoded values, NaN where there is none.
    y : labels 0, 1, ….
    costs : the costs, bound to the columns.
    groups : number of the group of each row, given or of rows that look like copies; else None.
    """

    encoded: Floats
    y: Floats
    costs: CostTable
    groups: Ints | None = None


class BasePolicy(ParametersOfFit, PolicyFace, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of every policy.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; of two the second is the positive one.
    decisions_ : ndarray of shape (n_decisions,)
        What `predict` may give: the classes, or the decisions of `Costs` that can be the cheapest,
        with two classes from the least probable second class to the most probable.
    encoder_ : TableEncoder
        What was learned about the columns.
    cost_table_ : CostTable
        The costs as given, bound to the columns.
    decider_ : Decider
        Everything that decisions depend on; `acquire` and consultations run it.
    rule_ : DecisionRule
        How log-odds become a label, and the misclassification costs in force.
    expected_cost_ : float or None
        What a row is expected to cost of which nothing is known, covariates and errors together, by
        the models; None for a policy that does not weigh.
    recalibration_ : Recalibration or None
        How the policy was changed after it was fitted, see `recalibrate`.
    restriction_ : Restriction or None
        What is asked of every row first, and of none, see `restrict`.

    See Also
    --------
    ObservedDecider : What most policies make of what they learned.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import STOP, BasePolicy, Costs, Decision, ObservedDecider, load_pima
    >>> class NothingDecider(ObservedDecider):
    ...     def decide(self, state):
    ...         n_rows = len(state.values)
    ...         return Decision(np.full(n_rows, STOP), np.zeros(n_rows))
    >>> class AcquireNothing(BasePolicy):
    ...     def __init__(self, costs=None):
    ...         self.costs = costs
    ...     def fit(self, X, y):
    ...         self.begin_fit(X, y)
    ...         return self.finish_fit()
    ...     def make_decider(self, terms):
    ...         return NothingDecider(terms)
    >>> X, y, prices, *_ = load_pima()
    >>> AcquireNothing(Costs(prices)).fit(X, y).acquire(X)
    AcquisitionResult(768 rows, 0.00 of 8 covariates and 0.00 paid per row)
    """

    # What a model file holds besides plain parameters, by type; a subclass adds its own. A field
    # whose type admits None may be absent.
    saved_fields: ClassVar[Fields] = {
        "costs": Costs | None,
        "n_features_in_": int,
        "feature_names_in_": NDArray[Any] | None,
        "classes_": NDArray[Any],
        "encoder_": TableEncoder,
        "cost_table_": CostTable,
        "rule_": DecisionRule,
        "multiplier_": float,
        "mixture_": Mixture | None,
        "description_": Description | None,
        "cost_estimates_": tuple[tuple[Any, ...], ...] | None,
        "misfit_": tuple[tuple[Any, ...], ...] | None,
        "misfit_states_": tuple[Any, ...] | None,
        "recalibration_": Recalibration | None,
        "restriction_": Restriction | None,
    }

    # What a fit keeps of the training rows, in this process only.
    in_process: ClassVar[tuple[str, ...]] = ("_out_of_fold",)

    # What the parameters must satisfy, checked when fitting begins.
    constraints: ClassVar[Constraints] = {}

    costs: Costs | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_entries(cls)
        for name in TAKEN_BY:
            if "fit" in vars(cls) and not has_fit_parameter(cls, name):
                cls.fit = refusing(cls.fit, name)  # type: ignore[method-assign]
        if "fit" in vars(cls):
            cls.fit = checked(cls.fit)  # type: ignore[method-assign]

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Training rows; NaN marks what is unknown.
        y : array-like of shape (n_rows,)
            Their classes: two, or more for a policy that takes them.

        Returns
        -------
        self
            The fitted policy.
        """

    def begin_fit(self, X: Any, y: Any, groups: Any = None) -> TrainingTable:
        """Validate parameters and data, and forget what an earlier fit learned.

        Sets `classes_`, `encoder_` and `cost_table_`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Training rows.
        y : array-like of shape (n_rows,)
            Their classes.
        groups : array-like of shape (n_rows,), default=None
            The patient, site or the like of each row.

        Returns
        -------
        TrainingTable
            The rows as they are learned from.
        """
        check_parameters(self)
        if self.costs is not None and not isinstance(self.costs, Costs):
            raise InvalidInputError(
                "costs",
                "must be a Costs object or None",
                type(self.costs).__name__,
                "For example costs=Costs({'age': 1.0}, false_positive=100, false_negative=1000).",
            )
        self._forget()
        table = validate_table(self, X, reset=True)
        self.classes_, labels = check_labels(y, many=self.takes_many_classes)
        check_one_label_each(table, labels)
        names = covariate_names(self)
        self._bind_costs(names)
        self._report_positive_class()
        self.encoder_ = TableEncoder.fit(table, names)
        encoded = self.encoder_.transform(table)
        found = groups_of(groups, encoded, labels)
        return TrainingTable(encoded, labels, self.cost_table_, found)

    def _streams_from(self, X: Any) -> bool:
        """Whether X is read a piece at a time, and never all in memory."""
        return False

    def check(self, X: Any, y: Any = None, *, groups: Any = None) -> list[Suspicion]:
        """List what looks like a mistake in rows, with what to do about it.

        Before `fit` these are the suspicions that the table alone raises: covariates that identify
        the row or the class, dates and numbers read as words, numbers far beyond all others,
        few rows, copies of rows. A fitted policy adds values that it has not seen in training and,
        with classes, where a sum over covariates does not fit. `fit` warns of the same once.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Training rows or new ones; at most 50,000 are used, drawn at random.
        y : array-like of shape (n_rows,), default=None
            Their classes, if they are known.
        groups : array-like of shape (n_rows,), default=None
            Group of each row, as for `fit`; copies are then not looked for.

        Returns
        -------
        list of Suspicion
            What was seen, by kind, with the covariates concerned and a message.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, load_wisconsin
        >>> X, y, *_ = load_wisconsin(sample_code=True)
        >>> for suspicion in AdaCOSClassifier().check(X, y):
        ...     print(suspicion)  # doctest: +NORMALIZE_WHITESPACE
        sample_code: a different whole number in nearly every row. If it is an identifier,
        leave it out.
        """
        from adacos.policies.checking import alarms

        return alarms(self, X, y, groups)

    def _bind_costs(self, names: tuple[str, ...]) -> None:
        """Set `cost_table_`; no error is given a cost that follows from the other's by a guess."""
        costs = self.costs or Costs()
        if costs.decisions is not None:
            check_decisions(self, costs, costs.decisions)
        self.cost_table_ = costs.bind(names, len(self.classes_))
        recall = self.recall_aim.target_recall
        needed = [name for name in costs.unstated if recall is None or name == "false_positive"]
        if len(costs.unstated) == 1 and needed:
            raise InvalidInputError(
                "costs",
                "both errors must have a cost, in the unit of the covariate costs",
                f"no {needed[0]}",
                f"Pass Costs(..., {needed[0]}=...)"
                + (
                    ", or a target recall in its place: TargetRecallClassifier(AdaCOSClassifier("
                    "costs), target_recall=...)."
                    if needed == ["false_negative"]
                    else "."
                ),
            )
        if needed and self.cost_table_.covariates.any():
            warnings.warn(
                f"No cost is stated for an error ({listed(needed)}), so that each counts as 1 "
                "next to the covariate costs. Pass Costs(..., false_positive=..., "
                "false_negative=...).",
                UnstatedCostWarning,
                stacklevel=level_of_caller(),
            )

    def _report_positive_class(self) -> None:
        """Say which of two words is the positive class, where the errors do not cost the same."""
        if len(self.classes_) > 2 or self.cost_table_.decisions is not None:
            return
        (_, false_alarm), (miss, _) = (
            self.cost_table_.matrix - np.diag(self.cost_table_.matrix)[:, None]
        )
        recall = self.recall_aim.target_recall
        if self.classes_.dtype.kind in "OSU" and (false_alarm != miss or recall is not None):
            negative, positive = self.classes_.tolist()
            warnings.warn(
                f"The positive class is {positive!r}, the second in alphabetical order: a false "
                f"negative is a row of it that is answered {negative!r}. If {negative!r} is the "
                f"positive class, or to silence this warning, pass y as 1 for the positive class "
                "and 0 for the other.",
                PositiveClassWarning,
                stacklevel=level_of_caller(),
            )

    def _forget(self) -> None:
        """Remove everything that a fit sets: none of it describes the next one."""
        for name in [name for name in vars(self) if name.endswith("_") or name in self.in_process]:
            delattr(self, name)

    def __getstate__(self) -> dict[str, Any]:
        """What goes into a pickle or a copy: everything but the training rows."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self.in_process}

    @abstractmethod
    def make_decider(self, terms: Terms) -> AnyDecider:
        """Give the decider that decides by what was learned.

        Parameters
        ----------
        terms : Terms
            What every decider is made of.

        Returns
        -------
        Decider
            The decider.
        """

    def finish_fit(
        self,
        rule: DecisionRule | None = None,
        multiplier: float = 0.0,
        mixture: Mixture | None = None,
    ) -> Self:
        """Decide by what was learned from now on.

        Parameters
        ----------
        rule : DecisionRule, default=None
            How log-odds become a label; None for the label of least expected cost.
        multiplier : float, default=0.0
            How many times more covariate costs count when acquisitions are weighed.
        mixture : Mixture, default=None
            Which rows walk with a lower multiplier, for a mean budget.

        Returns
        -------
        self
            The policy.
        """
        self.decide_by(self._terms(rule, multiplier, mixture))
        self._keep_parameters()
        return self

    def decide_by(self, terms: Terms) -> None:
        """Decide on these terms from now on, by what was learned.

        Parameters
        ----------
        terms : Terms
            What every decider is made of.
        """
        self.decider_ = held_to_lists(self, self.make_decider(terms))

    def _terms(
        self,
        rule: DecisionRule | None = None,
        multiplier: float = 0.0,
        mixture: Mixture | None = None,
    ) -> Terms:
        """What every decider of this policy is made of."""
        return Terms(
            self.classes_,
            self.encoder_,
            self.cost_table_,
            rule or DecisionRule(self.cost_table_.matrix),
            multiplier,
            self.budget,
            self.mean_budget,
            mixture,
        )

    @one_blas_thread
    def recalibrate(
        self,
        X: Any = None,
        y: Any = None,
        *,
        prevalence: float | Mapping[Any, float] | None = None,
    ) -> Self:
        """Adapt the fitted policy to another prevalence, or to outcomes of another place.

        Probabilities, stored savings and stated costs change, and with them what is acquired;
        nothing is fitted again. That is right where rows of a class are as they were in training
        (label shift). A recall certificate was earned by the policy as it was, and is dropped:
        `calibrate` earns another. The policy itself stays as it is.

        AdaCOS, COS, Full Model, Branching and Planning can be recalibrated, what
        `AutoPolicyClassifier` chose of them, and `TargetRecallClassifier` where rows stop by the
        recall: its threshold is then one that is reached at every set. With a mean budget none can.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates), default=None
            Local rows with known outcomes, in place of `prevalence`. They are followed to where the
            policy stops, and their log-odds there are shifted and multiplied by a slope, both
            shrunk towards no change; Planning takes the shift only.
        y : array-like of shape (n_rows,), default=None
            Their classes.
        prevalence : float or mapping of class to float, default=None
            Share of the positive class, the second in order; with three or more classes the share
            of each.

        Returns
        -------
        policy
            Another fitted policy, with `recalibration_`.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000)
        >>> policy = AdaCOSClassifier(costs).fit(X, y)
        >>> print(policy.recalibrate(prevalence=0.1).recalibration_)
        Recalibrated from a prevalence of 34.9% to 10.0%.
        """
        moved: Self = recalibrated(self, X, y, prevalence)
        return moved

    def restrict(self, *, must: Collection[str] = (), never: Collection[str] = ()) -> Self:
        """Give the policy that asks some covariates of every row first, and others of none.

        It holds for `acquire`, `next`, `consultation` and whatever uses them, and is saved. What
        must be asked is paid and counts in what follows; what is never asked is unavailable to the
        policy, and a value that is known is used all the same. A recall certificate and estimates
        were of the policy as it was and are dropped. The policy itself stays as it is.

        Parameters
        ----------
        must, never : collection of str, default=()
            Covariates by name, in place of those of an earlier `restrict`.

        Returns
        -------
        policy
            Another fitted policy, with `restriction_`.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000)
        >>> policy = AdaCOSClassifier(costs).fit(X, y).restrict(must=["BMI"], never=["Age"])
        >>> print(policy.consultation().next())
        Acquire BMI for 1.00.
        """
        found: Self = restricted_policy(self, must, never)
        return found

    @property
    def unwrapped(self) -> BasePolicy:
        """The policy that acquires: another where this one changes its answers only."""
        return self

    def described_as(self, policy: BasePolicy) -> Self:
        """Give a copy of the fitted policy in the words given to another.

        Parameters
        ----------
        policy : policy
            The other.

        Returns
        -------
        self
            The copy.
        """
        described = copy(self)
        if policy.description_ is not None:
            described.description_ = policy.description_
        return described

    @property
    def wrapped(self) -> BasePolicy:
        """The policy that this one was put around; itself where there is none."""
        return self

    @property
    def chosen(self) -> BasePolicy:
        """The policy that decides: another where this one chose among several."""
        return self

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the policy of which a model file holds the state.

        Parameters
        ----------
        state : mapping
            Parameters and fields by name, see `saved_fields`.
        """
        of_decider = ("rule_", "multiplier_", "mixture_")
        self.__dict__.update({k: value for k, value in state.items() if k not in of_decider})
        if "rule_" in state:
            self.finish_fit(state["rule_"], state["multiplier_"], state.get("mixture_"))

    def add_words(self, reasons: Reasons) -> Reasons:
        """Add to the reasons of the decider what only the policy can say of one row.

        Parameters
        ----------
        reasons : Reasons
            Why the decider decides so.

        Returns
        -------
        Reasons
            The same with more words, if there are any.
        """
        return reasons

    def consultation(
        self,
        known: Mapping[str, Any] | None = None,
        *,
        key: Hashable = 0,
        must: Collection[str] = (),
        never: Collection[str] = (),
    ) -> Consultation:
        """Begin a consultation about one row, of which some values may be known.

        Parameters
        ----------
        known : mapping of str to value, default=None
            Values by covariate name; they cost nothing.
        key : str or int, default=0
            What the row is known by. Where a mean budget is kept by a mixture of two policies, it
            decides which of them the row has, as `keys` of `acquire` do.
        must, never : collection of str, default=()
            Covariates that are asked first in any case, and that are not asked; see `acquire`.

        Returns
        -------
        Consultation
            The consultation, at its first step.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000)
        >>> consultation = AdaCOSClassifier(costs).fit(X, y).consultation(known={"Age": 24})
        >>> print(consultation.next())
        Acquire BMI for 1.00.
        """
        return Consultation(self, known, key, must, never)

    @one_blas_thread
    def next(
        self,
        X: Any,
        *,
        known: ArrayLike | None = None,
        unavailable: ArrayLike | None = None,
        paid: ArrayLike | None = None,
        keys: Sequence[Hashable] | None = None,
        must: Collection[str] = (),
        never: Collection[str] = (),
    ) -> NextSteps:
        """Say what to acquire next for every row of X, by what there is of it so far.

        This is `consultation` for many rows at once. Order what it says, fill in the results, and
        call it again: rows that have stopped stay as they are.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows so far. NaN means that the value has not been acquired yet, other than in
            `acquire`. A data frame may be without columns that nobody has a value of.
        known : sequence of str or array-like of bool, default=None
            Which of the values were known from the start and cost nothing: covariates by name, or
            a mask of the shape of X or with one entry per covariate. The others were acquired.
        unavailable : sequence of str or array-like of bool, default=None
            What cannot be acquired, likewise; by name for all rows that have no value of it.
        paid : array-like of shape (n_rows,), default=None
            What each row has paid so far. By default the covariate costs of what was acquired;
            where the order matters, of the cheapest one, and without waiting for results.
        keys : sequence, default=None
            A key for each row, see `acquire`.
        must, never : collection of str, default=()
            Covariates that are asked first in any case, and that are not asked; see `acquire`.

        Returns
        -------
        NextSteps
            What to acquire next for each row, or its label where it stops.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000)
        >>> policy = AdaCOSClassifier(costs).fit(X, y)
        >>> so_far = X[["Age", "BMI", "Glucose"]].copy()
        >>> so_far.loc[1:, "Glucose"] = float("nan")
        >>> steps = policy.next(so_far.head(4), unavailable=["Insulin"])
        >>> [steps.covariates(row) for row in range(4)]
        [(), (), ('DiabetesPedigreeFunction',), ('DiabetesPedigreeFunction',)]
        """
        check_is_fitted(self)
        X = with_empty_columns(host(X), getattr(self, "feature_names_in_", ()))
        encoded = self._encode(X)
        n_rows, n_covariates = len(encoded), len(self.encoder_.names)
        mask = np.broadcast_to(self._known_mask(known, X, encoded), (n_rows, n_covariates))
        gone = unavailable_mask(self, self.encoder_, unavailable, X, encoded)
        lists = asked_of(self.encoder_, must, never, self.decider_.lists)
        decider = restricted(mixed(self.decider_, n_rows, keys), *lists)
        found = steps(decider, encoded, mask, gone, paid)
        return replace(found, label=self.decisions_[found.label])

    @one_blas_thread
    def acquire(
        self,
        X: Any,
        *,
        known: ArrayLike | None = None,
        providers: Mapping[str, Any] | None = None,
        cache: Cache | None = None,
        keys: Sequence[Hashable] | None = None,
        must: Collection[str] = (),
        never: Collection[str] = (),
    ) -> AcquisitionResult:
        """Run the policy on every row of X: acquire step by step, stop, classify.

        Parameters
        ----------
        X : array-like, data frame or torch tensor of shape (n_rows, n_covariates)
            The rows. NaN means that the value is not available for that row and cannot be
            acquired. The result of a tensor is tensors on its device, where AdaCOS, COS and Full
            Model also do the work.
        known : sequence of str or array-like of bool, default=None
            The values that are known from the start: covariates by name, for all rows that have a
            value of them, or a mask of the shape of X or with one entry per covariate. They cost
            nothing, are used, and do not count as acquired. A recall certificate was earned without
            them and does not extend to such rows.
        providers : mapping of str to callable or Provider, default=None
            Functions that fetch or compute covariates, for the rows that need them only. A value
            that is in X is taken from there; a data frame may be without these columns.
        cache : mutable mapping, default=None
            What providers delivered, by covariate and key of the row; filled, and used in place of
            calls.
        keys : sequence, default=None
            A key for each row, by which the cache knows it again; rows with the same key are
            fetched once. Where a mean budget is kept by a mixture of two policies, the key of a row
            decides which of them it has; without keys that is its place in X.
        must : collection of str, default=()
            Covariates that every row acquires first, as far as they are available.
        never : collection of str, default=()
            Covariates that no row acquires: the policy decides as if they were unavailable. Values
            that are `known` are used.

        Returns
        -------
        AcquisitionResult
            What was done with each row; with providers a `ProvidedResult`, which also has their
            calls.

        Warns
        -----
        ProviderWarning
            If a provider failed for good: the covariate then counts as not available.
        TableWarning
            If rows have no value at all.
        """
        check_is_fitted(self)
        lists = asked_of(self.encoder_, must, never, self.decider_.lists)
        if providers is not None or is_tensor(X):
            refuse_lists(*lists)
            if providers is None:
                return self._acquire_tensor(X, known, keys)
            return self._acquire_from(providers, X, known, cache, keys)
        encoded = self._encode(X)
        warn_of_empty_rows(encoded)
        mask = self._known_mask(known, X, encoded)
        decider = restricted(mixed(self.decider_, len(encoded), keys), *lists)
        result = run(decider, encoded, mask)
        return replace(result, label=self.decisions_[result.label])

    def _acquire_tensor(
        self, X: Any, known: ArrayLike | None, keys: Sequence[Hashable] | None
    ) -> AcquisitionResult:
        """`acquire` with a tensor: the result is tensors on its device, but for labels of words."""
        encoded = encode_tensor(self.encoder_, X)
        encoded = encoded if self.decider_.takes_tensors and not self.mixture_ else host(encoded)
        decider = mixed(self.decider_, len(encoded), keys)
        result = run(decider, encoded, self._known_mask(host(known), X, encoded))
        numbers = self.decisions_.dtype.kind in "biuf"
        classes = like(result.label, self.decisions_) if numbers else self.decisions_
        label = classes[result.label if numbers else host(result.label)]
        return AcquisitionResult(
            **{
                f.name: like(X, getattr(result, f.name))
                for f in fields(AcquisitionResult)
                if f.name not in ("label", "names")
            },
            label=like(X, label) if numbers else label,
            names=result.names,
        )

    def _acquire_from(
        self,
        providers: Mapping[str, Any],
        X: Any,
        known: ArrayLike | None,
        cache: Cache | None,
        keys: Sequence[Hashable] | None,
    ) -> ProvidedResult:
        """`acquire` with values that are fetched on the way."""
        check_providers(self.encoder_.names, providers, cache, keys)
        X = with_empty_columns(X, providers)
        table = validate_table(self, X, reset=False)
        encoded = self.encoder_.transform(table)
        desk = Desk(self.encoder_, providers, table, cache, keys)
        decider = mixed(self.decider_, len(encoded), keys)
        result = provide(decider, encoded, self._known_mask(known, X, encoded), desk)
        desk.warn()
        return replace(result, label=self.decisions_[result.label])

    def _encode(self, X: Any) -> Floats:
        """Encoded values of rows like those of the training table."""
        return self.encoder_.transform(validate_table(self, X, reset=False))

    def _known_mask(self, known: ArrayLike | None, X: Any, encoded: Floats) -> Bools:
        """`known` as a mask for all rows, or one per row."""
        return known_mask(self, self.encoder_, known, X, host(encoded))

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row after acquiring what the policy asks for.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows, see `acquire`.

        Returns
        -------
        ndarray or tensor of shape (n_rows,)
            The labels; with decisions in `costs`, these.
        """
        return self.acquire(X).label

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose label is their class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows, see `acquire`.
        y : array-like of shape (n_rows,)
            Their classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row.

        Returns
        -------
        float
            The share.
        """
        if self.costs is not None and self.costs.decisions is not None:
            raise InvalidInputError(
                "costs",
                "must have no decisions for an accuracy: a decision is no class",
                listed(self.costs.decisions),
                "Use scoring=neg_total_cost_scorer, or total_cost(policy.acquire(X), y, costs).",
            )
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: Any, *, known: ArrayLike | None = None) -> Floats:
        """Class probabilities at the stop, or given exactly the known values.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows, see `acquire`.
        known : sequence of str or array-like of bool, default=None
            What is known of the rows: covariates by name, or a mask of the shape of X or with one
            entry per covariate. The probabilities are then given these values and no others, and
            nothing is acquired: as of a consultation that knows them and is stopped.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probability of each class.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> policy = AdaCOSClassifier(Costs(prices, false_positive=5, false_negative=9)).fit(X, y)
        >>> policy.predict_proba(X[:1], known=["Age", "BMI"]).round(2)
        array([[0.36, 0.64]])
        """
        if known is None:
            p = self.acquire(X).probability
        else:
            check_is_fitted(self)
            encoded = self._encode(X)
            mask = np.broadcast_to(
                self._known_mask(known, X, encoded), (len(encoded), len(self.encoder_.names))
            )
            p = probability_at(log_odds_given(self.decider_, encoded, mask))
        return family_of(p).of_each(p)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.takes_many_classes
        tags.input_tags.allow_nan = True
        return tags

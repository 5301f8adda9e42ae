"""Any policy with a target recall.

A policy that stops by the rule of its answers is given the recall itself: its rows then stop by the
recall too. Any other acquires as ever, and its answers at the stop are changed: with two classes by
a threshold on its probability, with more by surcharges on errors about the classes that have a
target, see `adacos.policies.surcharges`. Both are found on calibration rows, which the policy was
not fitted on. Surcharges that are to be certified must be fixed before the rows that prove them are
looked at: by training rows, each answered by a fit without its fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from adacos.costs import Costs
from adacos.deciders.mixing import run_mixed
from adacos.deciders.recall import RecallDecider
from adacos.decision import AnyDecider, DecisionRule, Terms
from adacos.exceptions import InvalidInputError, UnusedCostWarning
from adacos.kernels.namespace import host
from adacos.kernels.prior_shift import LogOddsChange
from adacos.kernels.threads import one_blas_thread
from adacos.policies.around import PolicyAround
from adacos.policies.base import BasePolicy
from adacos.policies.calibration import certified
from adacos.policies.certificate import (
    ClassRecallCertificate,
    RecallCertificate,
    from_first_discriminating,
    prove,
)
from adacos.policies.fitting import fit_in_groups
from adacos.policies.many_classes import check_many_classes, recalls_by_class
from adacos.policies.nested import nested_cost
from adacos.policies.orders import BY_ALL_COSTS
from adacos.policies.recall import (
    RECALL_CONSTRAINTS,
    Part,
    Reached,
    RecallAim,
    Targets,
    check_aim,
    check_members,
    class_numbers,
    counting_note,
    hold_out,
    protecting_of,
    proving_rows,
    recall_target,
    recall_threshold,
    refuse_training_rows,
    stated_confidence,
    states_false_negative,
    targets_of,
)
from adacos.policies.sequence_policy import SequencePolicy
from adacos.policies.streaming import is_streamed
from adacos.policies.surcharges import (
    RecallAt,
    StoppedRows,
    check_two_of_each,
    least_reaching,
    probability_of_each,
    reached_by,
    surcharges_to_try,
)
from adacos.reasons import Reasons
from adacos.tables.row_digests import RowDigests
from adacos.typing import Fields, Floats
from adacos.validation import Constraints, check_parameters, level_of_caller, whole

# Log-odds tried as thresholds, cautious first; fixed, so that no row has a say in them.
_THRESHOLDS = np.linspace(-12.0, 12.0, 481)
# Folds of the training rows that fix which surcharges are tried, where others prove recalls.
_FOLDS = 3
# What a policy that has the recall found, and this one has too.
_TAKEN_OVER = (
    "n_features_in_",
    "feature_names_in_",
    "classes_",
    "encoder_",
    "cost_table_",
    "training_rows_",
    "threshold_",
    "false_negative_cost_",
    "surcharges_",
    "recall_estimate_",
    "certificate_",
    "recalibration_",
)
# What else helps where surcharges do not reach their targets.
_CLASS_REMEDY = (
    " The policy acquires by the costs as stated: where errors cost more, it acquires more and "
    "discriminates better."
)


class TargetRecallClassifier(PolicyAround):
    """A policy whose answers meet a target recall on rows it was not fitted on.

    With two classes a row is answered positive if its probability at the stop reaches a threshold.
    With three or more classes several may have a target: errors about them then cost a surcharge,
    as much as the recalls take and no more.

    AdaCOS, Branching, COS and Full Model stop by this rule too. With two classes the recall takes
    the place of a false-negative cost. One that is stated is not used, with a warning: the cost
    follows from training rows answered by models that did not see them, and is the least one that
    was found to reach the target. Any other policy acquires and stops by its costs, of which it
    needs both, and the recall decides the answers alone. So it is where forward selection is given
    both costs, and where a mean budget meets a certificate or recalls by class.

    Parameters
    ----------
    policy : policy
        An unfitted policy; for three or more classes one that takes them.
    target_recall : float or mapping of class to float, default=0.95
        Least share of positive rows to be answered positive. It may name the positive class,
        {"sick": 0.95}, and means the same. With three or more classes the least share of the rows
        of each named class to be answered with it: the costs stay, and errors about these classes
        are surcharged as far as it takes.
    recall_at : {"stop", "every_set"}, default="stop"
        Which positive rows count as found where rows stop by a threshold: those that are answered
        positive where they stop, or those that reach the threshold at every set at which they may
        stop. "every_set" is the rule of the paper, a lower bound: new rows then have a higher
        recall than was asked for, at a higher cost.
    recall_confidence : float, default=None
        Confidence with which that is to hold for new rows, for all named classes together. None for
        the share among the calibration rows or, where rows stop by the recall, among training rows
        answered by models that did not see them.
    calibration_fraction : float, default=0.5
        Share of each class that `fit` keeps as calibration rows, to choose the threshold or the
        surcharges on. Where rows stop by the recall, only a certificate needs them.
    on_uncertifiable : {"error", "largest", "always_positive"}, default="error"
        What to do when those rows do not prove the target recall: raise; certify the
        largest recall that they do prove, in the same attempt; or, of two classes, answer positive
        for every row and acquire nothing.
    random_state : int, default=0
        Seed of the split; where rows stop by the recall, that of the wrapped policy is taken.

    Attributes
    ----------
    policy_ : policy
        The fitted policy.
    threshold_ : float
        Of two classes, probability from which on a row is answered positive.
    false_negative_cost_ : float
        Where rows stop by a threshold, the cost of a false negative that it implies.
    surcharges_ : dict of class to float
        Of more than two, what every error about the class costs beyond what was stated.
    recall_estimate_ : float or dict of class to float
        Recall on the rows that the threshold or the surcharges were chosen on.
    stopped_ : StoppedRows
        With three or more classes, the rows by which surcharges are found, where they stopped:
        calibration rows, or with a confidence the training rows, each by a fit without its fold.
    training_rows_ : RowDigests
        Salted digests of the training rows, by which `calibrate` knows them again.
    certificate_ : RecallCertificate or ClassRecallCertificate
        With a confidence, what was proved.
    always_positive_ : bool
        Whether every row is answered positive for want of a certificate.
    prior_ : float or None
        Where the answers alone change, share of rows of the second class in training.

    See Also
    --------
    AdaCOSClassifier : Stops row by row, here by the recall.
    nested_cost : What that costs, by nested cross-validation.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> adacos = AdaCOSClassifier(Costs(prices, false_positive=100))
    >>> policy = TargetRecallClassifier(adacos, target_recall=0.95, recall_confidence=0.9)
    >>> policy.fit(X, y).certificate_.bound >= 0.95
    True

    A policy that stops by its costs, which the answers alone then follow:

    >>> import numpy as np
    >>> from adacos import load_heart
    >>> from adacos.rivals import GreedyMiserClassifier
    >>> X, y, prices, *_ = load_heart()
    >>> costs = Costs(prices, false_positive=100, false_negative=100)
    >>> miser = GreedyMiserClassifier(costs, n_trees=5)
    >>> policy = TargetRecallClassifier(miser, target_recall=0.9).fit(X, y)
    >>> policy.recall_estimate_ >= 0.9
    True

    With three or more classes:

    >>> from sklearn.datasets import load_iris
    >>> from adacos import PlanningClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> planning = PlanningClassifier(Costs([1, 2, 4, 5], misclassification=30 * (1 - np.eye(3))))
    >>> policy = TargetRecallClassifier(planning, target_recall={2: 0.95}).fit(X, y)
    >>> policy.recall_estimate_[2] >= 0.95
    True
    """

    training_rows_: RowDigests
    prior_: float | None = None
    # Older files do not name it.
    recall_at: str = "stop"
    saved_fields: ClassVar[Fields] = {
        "policy_": BasePolicy,
        "prior_": float | None,
        "training_rows_": RowDigests,
        "threshold_": float | None,
        "false_negative_cost_": float | None,
        "surcharges_": dict[Any, float] | None,
        "recall_estimate_": float | dict[Any, float] | None,
        "stopped_": StoppedRows | None,
        "certificate_": RecallCertificate | ClassRecallCertificate | None,
    }

    needs_nested_fits: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = {
        "random_state": whole(0),
        **RECALL_CONSTRAINTS,
        "target_recall": recall_target,
    }

    def __init__(
        self,
        policy: BasePolicy,
        *,
        target_recall: float | Mapping[Any, float] = 0.95,
        recall_at: str = "stop",
        recall_confidence: float | None = None,
        calibration_fraction: float = 0.5,
        on_uncertifiable: str = "error",
        random_state: int = 0,
    ) -> None:
        self.policy = policy
        self.target_recall = target_recall
        self.recall_at = recall_at
        self.recall_confidence = recall_confidence
        self.calibration_fraction = calibration_fraction
        self.on_uncertifiable = on_uncertifiable
        self.random_state = random_state

    @property
    def costs(self) -> Costs | None:  # type: ignore[override]
        """Costs of the wrapped policy; without that of a false negative, where it is not used."""
        costs = self.policy.costs
        if self._drops_false_negative:
            assert costs is not None
            return costs.without_false_negative()
        return costs

    @property
    def _drops_false_negative(self) -> bool:
        """Whether a false-negative cost is stated of which the recall takes the place."""
        if not states_false_negative(self.policy.costs):
            return False
        if hasattr(self, "policy_"):
            return self._decides_inside
        both = self.policy.mean_budget is not None and self.recall_confidence is not None
        return self.policy.stops_by_rule and not both and not self._selects_by_both

    @property
    def _selects_by_both(self) -> bool:
        """Whether both errors have a cost, and forward selection weighs them."""
        return states_false_negative(self.policy.costs) and self.policy.sequence in BY_ALL_COSTS

    @property
    def recall_aim(self) -> RecallAim:
        """What is asked of the recall."""
        return RecallAim(**{field.name: getattr(self, field.name) for field in fields(RecallAim)})

    @one_blas_thread
    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        X_unlabeled: Any = None,
    ) -> Self:
        """Fit the policy and choose the threshold or the surcharges.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row, see `AdaCOSClassifier.fit`. One row of
            each class of each group counts in a certificate.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, where rows stop by the recall, see `AdaCOSClassifier.fit`. It
            cannot be combined with `recall_confidence`, whose exact tests count rows.
        X_unlabeled : array-like or data frame, default=None
            Further rows without labels, where rows stop by the recall.

        Raises
        ------
        NotCertifiableError
            If the calibration rows do not prove the recall and `on_uncertifiable` is "error".
        """
        self._check()
        if self._replaces_cost(y):
            self._forget()
            self.policy_ = self._stopping().fit(X, y, X_unlabeled, sample_weight, groups)
            return self._decide_as_inside()
        self._check_answers_only(sample_weight=sample_weight, X_unlabeled=X_unlabeled)
        if is_streamed(X):
            raise InvalidInputError(
                "X",
                "must be in memory where the recall decides the answers only",
                type(X).__name__,
                "Pass AdaCOS, Branching, COS or Full Model, or fit on a part of the rows.",
            )
        learned, aside = hold_out(self, X, y, groups, self.calibration_fraction, self.random_state)
        training = self.begin_fit(*learned)
        self.training_rows_ = RowDigests.of(training.encoded, self.random_state)
        check_many_classes(self)
        self.policy_ = fit_in_groups(clone(self.policy), *learned)
        self.prior_ = float(np.mean(learned.y == self.classes_[1]))
        self.finish_fit()
        if self.recall_confidence is None:
            reached = self._reach(aside)
        else:
            if recalls_by_class(self):
                self._walk_training_rows(learned)
            reached = self._certified(
                aside.X, aside.y, self.recall_aim, allow_training_rows=True, groups=aside.groups
            )
        reached.give(self)
        return self

    def from_model(self, fitted: BasePolicy) -> Self:
        """Become fitted with the sequence model of another fitted policy.

        Parameters
        ----------
        fitted : policy
            A fitted policy over a set sequence with the same covariate costs, or one around it.

        Returns
        -------
        self
            The fitted policy.

        Raises
        ------
        InvalidInputError
            If a parameter asks for something that only another fit could give.
        """
        self._check()
        if not (self.shares_fits and self._replaces_cost(getattr(fitted, "classes_", ()))):
            raise InvalidInputError(
                "policy",
                "must stop by the recall and share its fits: AdaCOS, COS or Full Model",
                type(self.policy).__name__,
                "Call fit(X, y).",
            )
        self._forget()
        self.policy_ = self._stopping().from_model(fitted)
        return self._decide_as_inside()

    @property
    def shares_fits(self) -> bool:
        """Whether `from_model` can be called."""
        return getattr(self.policy, "shares_fits", False)

    def _check(self) -> None:
        """Refuse parameters that say nothing."""
        check_parameters(self)
        check_aim(self.recall_aim)
        if not isinstance(self.policy, BasePolicy):
            raise InvalidInputError(
                "policy",
                "must be a policy",
                f"the class {self.policy.__name__}"
                if isinstance(self.policy, type)
                else type(self.policy).__name__,
                "For example TargetRecallClassifier(AdaCOSClassifier(costs), target_recall=0.95).",
            )
        own = self.policy.recall_aim.target_recall
        if own is not None:
            raise InvalidInputError(
                "policy",
                "must have no target recall of its own",
                own,
                "Leave it out there: it is given to TargetRecallClassifier.",
            )

    def _check_answers_only(self, **given: Any) -> None:
        """Refuse what goes with policies alone that stop by the recall."""
        remedy = "It goes with AdaCOS, Branching, COS and Full Model."
        rule = "where the recall decides the answers only"
        if self.recall_at != "stop":
            name = "recall_at"
            raise InvalidInputError(name, f"must be 'stop' {rule}", self.recall_at, remedy)
        for name, value in given.items():
            if value is not None:
                raise InvalidInputError(name, f"must be None {rule}", "", remedy)

    def _replaces_cost(self, y: Any) -> bool:
        """Whether the recall takes the place of a cost, so that rows stop by it too.

        It does not where forward selection weighs that cost, nor where what is found with a mean
        budget would no longer hold.
        """
        if not self.policy.stops_by_rule or self._selects_by_both:
            return False
        if self.policy.mean_budget is None:
            return True
        costs = self.policy.costs
        if costs is not None and costs.decisions is not None:
            return False
        # Where y names the column, there are two classes.
        return self.recall_confidence is None and len(np.unique(host(y))) <= 2

    def _stopping(self) -> SequencePolicy:
        """The wrapped policy, unfitted, with the recall in the place of a false-negative cost."""
        stopping = self._with_aim(clone(self.policy))
        if self._drops_false_negative:
            assert stopping.costs is not None
            stated = stopping.costs.matrix[1, 0]
            stopping.costs = stopping.costs.without_false_negative()
            warnings.warn(
                f"The false-negative cost of {stated:g} is not used: the target recall takes its "
                "place, and which cost that amounts to is found (false_negative_cost_). Leave "
                "false_negative out of Costs, or leave out the target recall.",
                UnusedCostWarning,
                stacklevel=level_of_caller(),
            )
        return stopping

    def _with_aim(self, policy: BasePolicy) -> SequencePolicy:
        """A policy that stops by the recall that is asked of this one."""
        assert isinstance(policy, SequencePolicy)
        policy._recall = self.recall_aim
        return policy

    def _decide_as_inside(self) -> Self:
        """Take over what the policy inside has found."""
        found = vars(self.policy_)
        self.__dict__.update({name: found[name] for name in _TAKEN_OVER if name in found})
        return self.finish_fit()

    @one_blas_thread
    def calibrate(
        self,
        X: Any,
        y: Any,
        *,
        target_recall: float | Mapping[Any, float] | None = None,
        confidence: float | None = None,
        allow_training_rows: bool = False,
        groups: Any = None,
    ) -> Self:
        """Choose the highest cut-off, or the lowest surcharges, that these rows certify.

        The rows must not have been used for fitting, and be of the kind the policy will meet. What
        is certified is the whole policy as it will run: where it stops, and its answer there. The
        confidence counts attempts: each call is one, a refused one included. After a refusal do
        not ask the same rows for a lower recall; `on_uncertifiable="largest"` gives the largest
        that they certify in one attempt. See `adacos.policies.certificate` for the method.

        Rows that the policy was trained on are refused. It keeps a salted digest of each training
        row, and compares: values that occur more than once among training and calibration rows
        together would be dealt to the two at random if the calibration rows were new, and lie in
        both too often if they were not (level 0.001). Tables with few distinct rows, in which most
        values are in both anyway, are therefore let pass. See `adacos.tables.row_digests`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Calibration rows, which the policy was not fitted on.
        y : array-like of shape (n_rows,)
            Their classes.
        target_recall : float or mapping of class to float, default=None
            Instead of the parameter `target_recall`.
        confidence : float, default=None
            Instead of the parameter `recall_confidence`.
        allow_training_rows : bool, default=False
            Whether to continue where the rows look like those that were trained on.
        groups : array-like of shape (n_rows,), default=None
            The group of each row; one row of each, drawn at random, counts. None of them may have
            rows that the policy was trained on.

        Returns
        -------
        self
            The policy, which answers as certified from now on.

        Raises
        ------
        InvalidInputError
            If the rows were trained on, as far as that can be recognised.
        NotCertifiableError
            If these rows do not prove the recall and `on_uncertifiable` is "error".
        """
        check_is_fitted(self)
        check_parameters(self)
        aim, fitted_with = self.recall_aim.asking(target_recall, confidence), self._fitted_with
        reached = self._certified(X, y, aim, allow_training_rows=allow_training_rows, groups=groups)
        if self._decides_inside:
            stopping: Any = copy(self.policy_)
            # A copy is without the training rows.
            stopping.__dict__.update(vars(self.policy_))
            stopping._recall = aim
            self.policy_ = stopping
            stopping._certify(reached, X)
            self._decide_as_inside()
        else:
            reached.give(self)
        self._keep_aim(aim, fitted_with)
        return self

    def _certified(
        self,
        X: Any,
        y: Any,
        aim: RecallAim,
        *,
        allow_training_rows: bool = False,
        groups: Any = None,
    ) -> Reached:
        """The recalls that these rows certify."""
        if self._decides_inside:
            how: dict[str, Any] = {"allow_training_rows": allow_training_rows, "groups": groups}
            return certified(self.policy_, X, y, aim, **how)  # type: ignore[arg-type]
        encoded = self._encode(X)
        if not allow_training_rows:
            refuse_training_rows(self.training_rows_, encoded)
        confidence = stated_confidence(aim)
        check_many_classes(self, certifies=True)
        targets = targets_of(aim.target_recall, self.classes_, protecting_of(self))
        proving = proving_rows(encoded, y, self.classes_, targets, groups, self.random_state)
        proving = proving._replace(note=proving.note + counting_note(self, targets))
        stopped = [self._stopped(encoded[rows]) for rows in proving.members]
        own = self.classes_, aim.on_uncertifiable, targets
        if targets.by_class:
            number = np.repeat(targets.classes, [len(p) for p in stopped])
            rows = StoppedRows(np.concatenate(stopped), number)
            misses_at = partial(rows.misses, self.cost_table_.matrix, targets)
            tried = surcharges_to_try(self, targets, self._recalls_of, _CLASS_REMEDY)
            found = prove(*own, tried, misses_at, proving, confidence)
            return reached_by(self, targets, found.rule, found.estimate, found.certificate)
        (p,), others = stopped, self._stopped(encoded[proving.others])
        thresholds = from_first_discriminating(
            _THRESHOLDS, lambda t: bool(np.any(others < expit(t)))
        )
        if np.all(others < expit(thresholds[0])):
            # No threshold is known to divide rows: the first of all answers positive for everyone.
            thresholds = _THRESHOLDS
        proved = prove(
            *own,
            thresholds.tolist(),
            lambda t: int(np.sum(p < expit(t))),
            proving,
            confidence,
            positive=-np.inf,
        )
        threshold = float(expit(proved.rule))
        rule = DecisionRule(self.cost_table_.matrix, threshold)
        return Reached(rule, proved.estimate, threshold, certificate=proved.certificate)

    def _stopped(self, encoded: Floats) -> Floats:
        """Probabilities of rows where the policy stops with them."""
        p = run_mixed(self.policy_.decider_, encoded).probability
        return probability_of_each(p) if recalls_by_class(self) else p

    def _reach(self, aside: Part) -> Reached:
        """The rule by which the recalls of calibration rows reach their targets."""
        encoded, targets = (
            self._encode(aside.X),
            targets_of(self.target_recall, self.classes_, protecting_of(self)),
        )
        number = class_numbers(aside.y, self.classes_, len(encoded))
        if targets.by_class:
            self.stopped_ = StoppedRows(self._stopped(encoded), number)
            return least_reaching(self, targets, self._recalls_of, _CLASS_REMEDY)
        check_members(number, targets, self.classes_)
        p = self._stopped(encoded[number == 1])
        threshold = recall_threshold(p, float(targets.recalls[0]))
        rule = DecisionRule(self.cost_table_.matrix, threshold)
        return Reached(rule, float(np.mean(p >= threshold)), threshold)

    def _walk_training_rows(self, learned: Part) -> None:
        """Find where training rows stop, by which surcharges are fixed that others are to prove."""
        number = class_numbers(learned.y, self.classes_, len(learned.y))
        check_two_of_each(number, self.classes_)
        nested = nested_cost(
            self.policy,
            *learned[:2],
            folds=_FOLDS,
            random_state=self.random_state,
            groups=learned.groups,
        )
        self.stopped_ = StoppedRows(probability_of_each(nested.result.probability), number)

    def _recalls_of(self, targets: Targets) -> RecallAt:
        """Recalls on the rows by which surcharges are found."""
        check_members(self.stopped_.number, targets, self.classes_)
        return self.stopped_.recalls(self.cost_table_.matrix, targets)

    def _change(self, change: LogOddsChange) -> None:
        """Decide by the policy after a change; its threshold is reached at every set.

        Where rows stop is another matter now, and the training rows that would show it are gone.
        """
        self.recall_at = "every_set"
        self.policy_ = self._with_aim(copy(self.policy_))._changed(change)
        self._decide_as_inside()

    def make_decider(self, terms: Terms) -> AnyDecider:
        """Give the decider that decides by what was learned."""
        inner = self.policy_.decider_
        if self._decides_inside:
            return inner
        terms = inner.terms._replace(rule=terms.rule)
        assert self.prior_ is not None
        return RecallDecider(terms, inner, self.prior_ if len(self.classes_) == 2 else 0.5)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the policy of which a model file holds the state.

        Parameters
        ----------
        state : mapping
            Parameters and fields by name, see `saved_fields`.
        """
        super().restore(state)
        if "policy_" in state and self._decides_inside:
            self._with_aim(self.policy_)

    @property
    def _decides_inside(self) -> bool:
        """Whether the wrapped policy stops by the recall too."""
        return self.prior_ is None

    @property
    def unwrapped(self) -> BasePolicy:
        """The wrapped policy, where it acquires and this one changes its answers only."""
        return self if self._decides_inside else self.policy_

    @property
    def wrapped(self) -> BasePolicy:
        """The wrapped policy, fitted if this one is."""
        return self.policy_ if hasattr(self, "policy_") else self.policy

    @property
    def chosen(self) -> BasePolicy:
        """The wrapped policy, in the words given to this one, where it has the recall."""
        return self.policy_.described_as(self) if self._decides_inside else self

    def add_words(self, reasons: Reasons) -> Reasons:
        """Add what the policy that has the recall can say of one row."""
        return self.chosen.add_words(reasons) if self._decides_inside else reasons

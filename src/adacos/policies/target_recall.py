"""Any policy with a target recall.

A policy that stops by the rule of its answers is given the recall itself: its rows then stop by the
recall too. Any other acquires as ever, and its answers at the stop are changed: with two classes by
a threshold on its probability, with more by surcharges on errors about the classes that have a
target, see `adacos.policies.surcharges`. Both are found on calibration rows, which the policy was
not fitted on. Surcharges that are to be certified must be fixed before the rows that prove them are
looked at: by training rows, each answered by a fit without its fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
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
from adacos.exceptions import InvalidInputError
from adacos.kernels.namespace import host
from adacos.kernels.threads import one_blas_thread
from adacos.policies.base import BasePolicy, fit_in_groups
from adacos.policies.certificate import (
    ClassRecallCertificate,
    RecallCertificate,
    from_first_discriminating,
    prove,
)
from adacos.policies.leave_out import leave_out_cost
from adacos.policies.many_classes import check_many_classes
from adacos.policies.recall import (
    RECALL_CONSTRAINTS,
    Part,
    Targets,
    check_members,
    check_recall_parameters,
    class_numbers,
    proving_rows,
    recall_target,
    recall_threshold,
    refuse_training_rows,
    set_aside,
    states_false_negative,
    targets_of,
    value_or_default,
)
from adacos.policies.surcharges import (
    RecallAt,
    StoppedRows,
    reach_recalls,
    surcharges_to_try,
    use_surcharges,
)
from adacos.reasons import Reasons
from adacos.tables.row_digests import RowDigests
from adacos.typing import Fields, Floats
from adacos.validation import Constraints, check_parameters, whole

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
)
# What else helps where surcharges do not reach their targets.
_CLASS_REMEDY = (
    " The policy acquires by the costs as stated: where errors cost more, it acquires more and "
    "discriminates better."
)


class TargetRecallClassifier(BasePolicy):
    """A policy whose answers meet a target recall on rows it was not fitted on.

    With two classes a row is answered positive if its probability at the stop reaches a threshold.
    With three or more classes several may have a target: errors about them then cost a surcharge,
    as much as the recalls take and no more.

    AdaCOS, Branching, COS and Full Model stop by this rule too. With two classes the recall takes
    the place of a false-negative cost, which must not be stated; the wrapped policy decides as with
    a `target_recall` of its own. Any other policy acquires and stops by its costs, and the recall
    decides the answers alone. So it is where a false-negative cost is stated, and where a mean
    budget meets a certificate or recalls by class.

    Parameters
    ----------
    policy : policy
        An unfitted policy; for three or more classes one that takes them.
    target_recall : float or mapping of class to float, default=0.95
        Least share of positive rows to be answered positive. With three or more classes the least
        share of the rows of each named class to be answered with it.
    recall_at : {"stop", "every_set"}, default="stop"
        Which positive rows count as found where rows stop by the recall, see `AdaCOSClassifier`.
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
        Where rows stop by a threshold, the cost of a false negative that it stands for.
    surcharges_ : dict of class to float
        Of more than two, what every error about the class costs beyond what was stated.
    recall_estimate_ : float or dict of class to float
        Recall on the rows that the threshold or the surcharges were chosen on.
    stopped_ : StoppedRows
        Of more than two, the rows by which surcharges are found, where they stopped: those set
        aside, or with a confidence the training rows, each by a fit without its fold.
    training_rows_ : RowDigests
        Salted digests of the training rows, by which `calibrate` knows them again.
    certificate_ : RecallCertificate or ClassRecallCertificate
        With a confidence, what was proved.
    always_positive_ : bool
        Whether every row is answered positive for want of a certificate.
    prior_ : float
        Where the answers alone change, with two classes, share of positive rows in training.

    See Also
    --------
    AdaCOSClassifier : Takes a target recall itself.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import Costs, TargetRecallClassifier, load_heart
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

    policy_: BasePolicy
    training_rows_: RowDigests
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
        """Costs of the wrapped policy."""
        return self.policy.costs

    @property
    def takes_many_classes(self) -> bool:  # type: ignore[override]
        """Whether there may be three or more classes: if the wrapped policy takes them."""
        return getattr(self.policy, "takes_many_classes", False)

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether fitting compares several policies: if the wrapped policy does."""
        return self.policy.chooses

    def _streams_from(self, X: Any) -> bool:
        streamed: bool = self.policy._streams_from(X)
        return streamed

    @one_blas_thread
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the policy and choose the threshold or the surcharges.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row, see `AdaCOSClassifier.fit`.

        Raises
        ------
        NotCertifiableError
            If the calibration rows do not prove the recall and `on_uncertifiable` is "error".
        """
        check_parameters(self)
        check_recall_parameters(self)
        if not isinstance(self.policy, BasePolicy):
            raise InvalidInputError(
                "policy",
                "must be a policy",
                type(self.policy).__name__,
                "For example TargetRecallClassifier(GreedyMiserClassifier(costs)).",
            )
        if self.policy.target_recall is not None:
            raise InvalidInputError(
                "policy",
                "must have no target recall of its own",
                self.policy.target_recall,
                "Leave it out there: it is given to TargetRecallClassifier.",
            )
        if self._replaces_cost(y):
            self._forget()
            self.policy_ = fit_in_groups(self._with_recall(clone(self.policy)), X, y, groups)
            return self._decide_as_inside()
        if self.recall_at != "stop":
            raise InvalidInputError(
                "recall_at",
                "must be 'stop' where the recall decides the answers only",
                self.recall_at,
                "It goes with AdaCOS, Branching, COS and Full Model without a false-negative cost.",
            )
        learned, aside = set_aside(self, X, y, groups, self.calibration_fraction, self.random_state)
        training = self.begin_fit(*learned)
        self.training_rows_ = RowDigests.of(training.encoded, self.random_state)
        check_many_classes(self)
        self.policy_ = fit_in_groups(clone(self.policy), *learned)
        self.prior_ = float(np.mean(learned.y == self.classes_[1]))
        self.finish_fit()
        encoded, targets = self._encode(aside.X), targets_of(self.target_recall, self.classes_)
        if self.recall_confidence is None:
            self._reach(encoded, aside.y, targets)
            return self
        if targets.by_class:
            self._walk_training_rows(learned)
        self._certify(encoded, aside.y, aside.groups, targets, self.recall_confidence)
        return self

    def _replaces_cost(self, y: Any) -> bool:
        """Whether the recall takes the place of a cost, so that rows stop by it too.

        It does not where a false-negative cost is stated, nor where what is found with a mean
        budget would no longer hold.
        """
        if not self.policy.stops_by_rule or states_false_negative(self.costs):
            return False
        if self.policy.mean_budget is None:
            return True
        # Where y names the column, there are two classes.
        return self.recall_confidence is None and len(np.unique(host(y))) <= 2

    def _with_recall(self, policy: BasePolicy) -> BasePolicy:
        """A policy with the recalls that are asked of this one."""
        recalls = {name: getattr(self, name) for name in RECALL_CONSTRAINTS}
        given: BasePolicy = policy.set_params(**recalls)
        return given

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
        """Choose the boldest threshold, or surcharges, certified by these rows for new ones.

        Rows that the policy was trained on are refused, see `AdaCOSClassifier.calibrate`.

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
            If the rows were trained on, as far as that can be told.
        NotCertifiableError
            If these rows do not prove the recall and `on_uncertifiable` is "error".
        """
        check_is_fitted(self)
        if self._decides_inside:
            inside = copy(self.policy_)
            # A copy is without the training rows.
            inside.__dict__.update(vars(self.policy_))
            self.policy_ = self._with_recall(inside).calibrate(
                X,
                y,
                target_recall=target_recall,
                confidence=confidence,
                allow_training_rows=allow_training_rows,
                groups=groups,
            )
            return self._decide_as_inside()
        encoded = self._encode(X)
        if not allow_training_rows:
            refuse_training_rows(self.training_rows_, encoded)
        confidence = value_or_default("confidence", confidence, self.recall_confidence)
        check_many_classes(self, certifies=True)
        wanted = self.target_recall if target_recall is None else target_recall
        self._certify(encoded, y, groups, targets_of(wanted, self.classes_), confidence)
        return self

    def _stopped(self, encoded: Floats) -> Floats:
        """Probabilities of rows where the policy stops with them."""
        return run_mixed(self.policy_.decider_, encoded).probability

    def _reach(self, encoded: Floats, y: Any, targets: Targets) -> None:
        """Answer so that the recalls of calibration rows reach their targets."""
        number = class_numbers(y, self.classes_, len(encoded))
        if targets.by_class:
            self.stopped_ = StoppedRows(self._stopped(encoded), number)
            reach_recalls(self, targets, self._recalls_of, _CLASS_REMEDY)
            return
        check_members(number, targets, self.classes_)
        p = self._stopped(encoded[number == 1])
        threshold = recall_threshold(p, float(targets.recalls[0]))
        self.recall_estimate_ = float(np.mean(p >= threshold))
        self._use_threshold(threshold)

    def _walk_training_rows(self, learned: Part) -> None:
        """Find where training rows stop, by which surcharges are fixed that others are to prove."""
        number = class_numbers(learned.y, self.classes_, len(learned.y))
        rarest = int(np.argmin(np.bincount(number)))
        if np.sum(number == rarest) < 2:
            raise InvalidInputError(
                "y",
                "two training rows of every class are needed to certify recalls by class",
                f"one of class {self.classes_.tolist()[rarest]!r}",
                "Add some, or leave recall_confidence out.",
            )
        left_out = leave_out_cost(
            self.policy,
            learned.X,
            learned.y,
            folds=_FOLDS,
            random_state=self.random_state,
            groups=learned.groups,
        )
        self.stopped_ = StoppedRows(left_out.result.probability, number)

    def _recalls_of(self, targets: Targets) -> RecallAt:
        """Recalls on the rows by which surcharges are found."""
        check_members(self.stopped_.number, targets, self.classes_)
        return self.stopped_.recalls(self.cost_table_.matrix, targets)

    def _certify(
        self, encoded: Floats, y: Any, groups: Any, targets: Targets, confidence: float
    ) -> None:
        """Answer by the boldest threshold, or surcharges, that these rows certify."""
        proving = proving_rows(encoded, y, self.classes_, targets, groups, self.random_state)
        stopped = [self._stopped(encoded[rows]) for rows in proving.members]
        if targets.by_class:
            number = np.repeat(targets.classes, [len(p) for p in stopped])
            rows = StoppedRows(np.concatenate(stopped), number)
            misses_at = partial(rows.misses, self.cost_table_.matrix, targets)
            tried = surcharges_to_try(self, targets, self._recalls_of, _CLASS_REMEDY)
            found = prove(self, targets, tried, misses_at, proving, confidence)
            use_surcharges(self, targets, found)
            return
        (p,), others = stopped, self._stopped(encoded[proving.others])
        thresholds = from_first_discriminating(
            _THRESHOLDS, lambda t: bool(np.any(others < expit(t)))
        )
        threshold = prove(
            self,
            targets,
            thresholds.tolist(),
            lambda t: int(np.sum(p < expit(t))),
            proving,
            confidence,
            positive=-np.inf,
        )
        self._use_threshold(float(expit(threshold)))

    def _use_threshold(self, threshold: float) -> None:
        self.threshold_ = threshold
        self.finish_fit(DecisionRule(self.cost_table_.matrix, threshold))

    def make_decider(self, terms: Terms) -> AnyDecider:
        """Give the decider that decides by what was learned."""
        inner = self.policy_.decider_
        if self._decides_inside:
            return inner
        terms = inner.terms._replace(rule=terms.rule)
        return RecallDecider(terms, inner, self.prior_ if len(self.classes_) == 2 else 0.5)

    @property
    def _decides_inside(self) -> bool:
        """Whether the wrapped policy has the recall, and stops by it too."""
        return self.policy_.stops_by_rule and self.policy_.target_recall is not None

    @property
    def unwrapped(self) -> BasePolicy:
        """The wrapped policy, where it acquires and this one changes its answers only."""
        return self if self._decides_inside else self.policy_

    @property
    def chosen(self) -> BasePolicy:
        """The wrapped policy, in the words given to this one, where it has the recall."""
        return self.policy_.described_as(self) if self._decides_inside else self

    def add_words(self, reasons: Reasons) -> Reasons:
        """Add what the policy that has the recall can say of one row."""
        return self.chosen.add_words(reasons) if self._decides_inside else reasons

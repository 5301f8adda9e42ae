"""Any policy with a target recall: it acquires as ever, a threshold on its probability answers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from adacos.costs import Costs
from adacos.engine import STOP, Decision, DecisionRule, Rows
from adacos.exceptions import InvalidInputError, NotCertifiableError
from adacos.kernels.threads import one_blas_thread
from adacos.policies.base import BasePolicy
from adacos.policies.recall import (
    RECALL_CONSTRAINTS,
    RecallCertificate,
    always_positive,
    certify,
    check_recall_parameters,
    from_first_telling,
    given,
    positive_rows,
    recall_threshold,
    refuse_training_rows,
    set_aside,
)
from adacos.tables.row_digests import RowDigests
from adacos.validation import Constraints, check_parameters, finite, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Log-odds tried as thresholds, cautious first; fixed, so that no row has a say in them.
_THRESHOLDS = np.linspace(-12.0, 12.0, 481)


class TargetRecallClassifier(BasePolicy):
    """A policy whose answers meet a target recall on rows it was not fitted on.

    The policies of the paper take a target recall themselves, and then stop earlier or later for
    it. This class is for all others: the wrapped policy acquires and stops by the costs it was
    given, and a row is answered positive if its probability at the stop reaches a threshold.

    Parameters
    ----------
    policy : policy
        An unfitted policy.
    target_recall : float, default=0.95
        Least share of positive rows to be answered positive.
    recall_confidence : float, default=None
        Confidence with which that is to hold for new rows; None for the share among the rows set
        aside.
    calibration_fraction : float, default=0.5
        Share of each class that `fit` sets aside to choose the threshold on.
    on_uncertifiable : {"error", "largest", "always_positive"}, default="error"
        What to do when those rows do not prove the target recall: raise; certify the
        largest recall that they do prove, in the same attempt; or answer positive for every row
        and acquire nothing.
    random_state : int, default=0
        Seed of the split.

    Attributes
    ----------
    policy_ : policy
        The fitted policy.
    threshold_ : float
        Probability from which on a row is answered positive.
    recall_estimate_ : float
        Recall on the rows set aside.
    training_rows_ : RowDigests
        Salted digests of the training rows, by which `calibrate` knows them again.
    certificate_ : RecallCertificate
        With a confidence, what was proved.
    always_positive_ : bool
        Whether every row is answered positive for want of a certificate.
    prior_ : float
        Share of positive rows in training.

    See Also
    --------
    AdaCOSClassifier : Takes a target recall itself.

    Examples
    --------
    >>> from adacos import Costs, TargetRecallClassifier, load_heart
    >>> from adacos.rivals import GreedyMiserClassifier
    >>> X, y, prices, *_ = load_heart()
    >>> costs = Costs(prices, false_positive=100, false_negative=100)
    >>> rival = GreedyMiserClassifier(costs, n_trees=5)
    >>> policy = TargetRecallClassifier(rival, target_recall=0.9).fit(X, y)
    >>> policy.recall_estimate_ >= 0.9
    True
    """

    stores = (RecallCertificate, RowDigests)

    constraints: ClassVar[Constraints] = {
        "random_state": whole(0),
        **RECALL_CONSTRAINTS,
        "target_recall": finite(above=0, below=1),
    }

    def __init__(
        self,
        policy: BasePolicy,
        *,
        target_recall: float = 0.95,
        recall_confidence: float | None = None,
        calibration_fraction: float = 0.5,
        on_uncertifiable: str = "error",
        random_state: int = 0,
    ) -> None:
        self.policy = policy
        self.target_recall = target_recall
        self.recall_confidence = recall_confidence
        self.calibration_fraction = calibration_fraction
        self.on_uncertifiable = on_uncertifiable
        self.random_state = random_state

    @property
    def costs(self) -> Costs | None:  # type: ignore[override]
        """Costs of the wrapped policy."""
        return self.policy.costs

    @one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the policy on part of the rows and choose the threshold on the others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows; NaN marks what is unknown.
        y : array-like of shape (n_rows,)
            Their classes, two in all.

        Returns
        -------
        self
            The fitted policy.

        Raises
        ------
        NotCertifiableError
            If the rows set aside do not prove the recall and `on_uncertifiable` is "error".
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
        X, y, *held_out = set_aside(self, X, y, self.calibration_fraction, self.random_state)
        training = self._begin_fit(X, y)
        self.training_rows_ = RowDigests.of(training.encoded, self.random_state)
        self.policy_ = clone(self.policy).fit(X, y)
        self.prior_ = float(np.mean(np.asarray(y) == self.classes_[1]))
        self.always_positive_ = False
        encoded = self._encode(held_out[0])
        self._choose_threshold(encoded, held_out[1], self.target_recall, self.recall_confidence)
        return self

    @one_blas_thread
    def calibrate(
        self,
        X: Any,
        y: Any,
        *,
        target_recall: float | None = None,
        confidence: float | None = None,
        allow_training_rows: bool = False,
    ) -> Self:
        """Choose the boldest threshold whose recall on new rows is certified by these rows.

        Rows that the policy was trained on are refused, see `AdaCOSClassifier.calibrate`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Calibration rows, which the policy was not fitted on.
        y : array-like of shape (n_rows,)
            Their classes.
        target_recall : float, default=None
            Instead of the parameter `target_recall`.
        confidence : float, default=None
            Instead of the parameter `recall_confidence`.
        allow_training_rows : bool, default=False
            Whether to go on where the rows look like those that were trained on.

        Returns
        -------
        self
            The policy, which answers by the certified threshold from now on.

        Raises
        ------
        InvalidInputError
            If the rows were trained on, as far as that can be told.
        NotCertifiableError
            If these rows do not prove the recall and `on_uncertifiable` is "error".
        """
        check_is_fitted(self)
        encoded = self._encode(X)
        if not allow_training_rows:
            refuse_training_rows(self.training_rows_, encoded)
        recall = given("target_recall", target_recall, self.target_recall)
        confidence = given("confidence", confidence, self.recall_confidence)
        self._choose_threshold(encoded, y, recall, confidence)
        return self

    def _choose_threshold(
        self, encoded: Floats, y: Any, recall: float, confidence: float | None
    ) -> None:
        positive = positive_rows(y, self.classes_, len(encoded))
        p = self.policy_._run(encoded[positive]).probability
        if confidence is None:
            threshold = recall_threshold(p, recall)
        else:
            others = self.policy_._run(encoded[~positive]).probability
            thresholds = from_first_telling(_THRESHOLDS, lambda t: bool(np.any(others < expit(t))))
            try:
                self.certificate_, _ = certify(
                    lambda t: int(np.sum(p < expit(t))), thresholds, len(p), recall, confidence
                )
            except NotCertifiableError as refusal:
                if self.on_uncertifiable == "error":
                    raise
                self.certificate_ = (
                    refusal.certificate
                    if self.on_uncertifiable == "largest"
                    else always_positive(recall, confidence, len(p))
                )
            threshold = self.certificate_.threshold
        self.threshold_ = threshold
        self.recall_estimate_ = float(np.mean(p >= threshold))
        self.always_positive_ = threshold == 0
        self.rule_ = DecisionRule(self.cost_table_.matrix, threshold)

    @property
    def ceiling(self) -> float | None:
        """What a row may pay at most; None for any amount."""
        ceiling: float | None = self.policy_.ceiling
        return ceiling

    def _within(self, state: Any, left: Floats) -> Any:
        return self.policy_._within(state, left)

    def _opening(self) -> Ints:
        return np.empty(0, dtype=np.intp) if self.always_positive_ else self.policy_._opening()

    def _begin(self, rows: Rows) -> Any:
        return self.policy_._begin(rows)

    def _decide(self, state: Any) -> Decision:
        decision: Decision = self.policy_._decide(state)
        if not self.always_positive_:
            return decision
        n_rows = len(decision.log_odds)
        return Decision(np.full(n_rows, STOP), np.full(n_rows, logit(self.prior_)))

    def _advance(self, state: Any, going: Bools, covariates: Ints) -> Any:
        return self.policy_._advance(state, going, covariates)

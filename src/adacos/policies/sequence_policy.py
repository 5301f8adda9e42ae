"""Base of the policies that ask along a set sequence."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from adacos.consultation.reasons import sequence_reasons
from adacos.consultation.steps import Reasons
from adacos.costs import Costs
from adacos.engine import STOP, Decision, DecisionRule, Rows
from adacos.exceptions import InvalidInputError, NotCertifiableError
from adacos.models.basis import AdditiveBasis
from adacos.models.density import ConditionalDensity
from adacos.models.gam import FAMILIES
from adacos.models.missing import JointModel
from adacos.models.outlook import Outlook, WalkState, advance, begin, log_odds_now, look_ahead
from adacos.models.sequence_model import SequenceModel, build_sequence_model
from adacos.models.sequences import SetSequence
from adacos.models.set_fits import SetFits, prepare
from adacos.policies.base import BasePolicy
from adacos.policies.leave_out import better_sequence
from adacos.policies.recall import (
    RecallCertificate,
    always_positive,
    certify,
    check_recall_parameters,
    false_negative_cost,
    from_first_telling,
    given,
    positive_rows,
    recall_threshold,
    set_aside,
    threshold_sequence,
)
from adacos.validation import choice, integer

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Calibration rows on which it is checked that a certified policy tells rows apart at all.
_ROWS_LOOKED_AT = 2048


class SequencePolicy(BasePolicy):
    """A policy over S_1 ⊂ … ⊂ S_q with one logistic GAM per set.

    Parameters
    ----------
    costs : covariate and misclassification costs; None makes every covariate free and both
        errors cost 1.
    sequence : how the sets are found: "group_lasso" (order of entry into a cost-weighted group
        lasso), "forward" (greedy by leave-out total cost; needs both misclassification costs) or
        "both": the one with which this policy has the lower nested leave-out cost (see
        `adacos.policies.leave_out`), at two to four times the time of `fit`.
    n_splines : B-splines per numeric covariate.
    strengths : penalties to choose from, see `LogisticGAM`.
    cv : number of folds behind the leave-out probabilities.
    random_state : seed of the folds and of the calibration split.
    target_recall : least share of positive rows to be answered positive, in place of a
        false-negative cost. That cost then follows from the leave-out probabilities: it is the
        least one for which the target is met wherever the policy stops.
    recall_confidence : confidence with which the target recall is to hold for new rows. `fit` then
        sets `calibration_fraction` of each class aside, learns from the rest and calls `calibrate`.
    calibration_fraction : share of the rows set aside for that.
    n_jobs : fits of one step of forward selection that run at the same time.
    on_uncertifiable : what to do when the calibration rows do not prove the target recall:
        "error"; "largest" to certify the largest recall that they do prove, in the same attempt;
        or "always_positive" to answer positive for every row and acquire nothing.

    Attributes
    ----------
    model_ : the `SequenceModel`, shared by policies built with `from_model`.
    sequence_ : how the sets were found, "group_lasso" or "forward".
    expected_cost_ : leave-out total cost of always stopping at each set. The order of the sets was
        found with the same rows, and the least of these numbers is below what that set costs on
        new rows (by 1 to 12 %, see the theory page): `adacos.policies.leave_out.leave_out_cost`
        is the honest estimate of what this policy costs.
    sets_ : covariate names of each set, in order of acquisition.
    threshold_, false_negative_cost_ : probability from which on a row is answered positive and
        the cost it stands for. Like the next one only with a target recall.
    recall_estimate_ : share of positive training rows whose leave-out probability reaches the
        threshold at every set at which the policy may stop; after `calibrate`, the recall on the
        calibration rows.
    certificate_ : the `RecallCertificate`, after `calibrate`.
    always_positive_ : whether every row is answered positive for want of a certificate.
    """

    stores = (
        AdditiveBasis,
        ConditionalDensity,
        JointModel,
        RecallCertificate,
        SequenceModel,
        SetSequence,
    )

    # Training rows, kept where the sequence depends on the costs; never saved.
    _set_fits: SetFits | None = None

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: int = 10,
        random_state: int = 0,
        target_recall: float | None = None,
        recall_confidence: float | None = None,
        calibration_fraction: float = 0.5,
        on_uncertifiable: str = "error",
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.sequence = sequence
        self.n_splines = n_splines
        self.strengths = strengths
        self.cv = cv
        self.random_state = random_state
        self.target_recall = target_recall
        self.recall_confidence = recall_confidence
        self.calibration_fraction = calibration_fraction
        self.on_uncertifiable = on_uncertifiable
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> Self:
        """Learn the set sequence, the models and the conditional densities.

        `X_unlabeled` may hold further rows without labels; they sharpen the covariance used for
        missing values and the conditional densities.
        """
        integer("n_splines", self.n_splines, at_least=4)
        integer("cv", self.cv, at_least=2)
        integer("random_state", self.random_state, at_least=0)
        choice("strengths", self.strengths, tuple(FAMILIES))
        self._check_sequence()
        self._check_recall_parameters()
        held_out: list[Any] = []
        if self.recall_confidence is not None:
            X, y, *held_out = set_aside(self, X, y, self.calibration_fraction, self.random_state)
        training = self._begin_fit(X, y)
        unlabeled = None
        if X_unlabeled is not None:
            unlabeled = self._encode(X_unlabeled)
        fits = prepare(
            training.encoded,
            training.y,
            self.encoder_,
            n_splines=self.n_splines,
            families=FAMILIES[self.strengths],
            cv=self.cv,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            unlabeled=unlabeled,
        )
        fits = replace(fits, table=(X, y))
        self._set_fits = None if self.sequence == "group_lasso" else fits
        self._finish_fit(self._build(fits))
        return self.calibrate(*held_out) if held_out else self

    def from_model(self, fitted: SequencePolicy) -> Self:
        """Become fitted with the sequence model of another fitted policy.

        Policies that differ only in misclassification costs, in target recall, or in kind, share
        one fit this way. With a forward sequence, which depends on the misclassification costs, it
        is the models of the sets that are shared: the sequence is found anew for these costs.
        """
        self._check_sequence()
        self._check_recall_parameters()
        if self.recall_confidence is not None:
            raise InvalidInputError(
                "recall_confidence",
                "must be None: a model that is fitted already has no rows set aside",
                self.recall_confidence,
                "Call calibrate(X, y, confidence=...) afterwards with rows the model has not seen.",
            )
        self.classes_, self.encoder_ = fitted.classes_, fitted.encoder_
        self.n_features_in_ = fitted.n_features_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        self.cost_table_ = (self.costs or Costs()).bind(fitted.encoder_.names)
        model = fitted.model_
        self._set_fits, self.sequence_ = None, fitted.sequence_
        if self.sequence != "group_lasso":
            self._set_fits = fitted._set_fits
            if self._set_fits is None:
                raise InvalidInputError(
                    "fitted",
                    f"must be fitted in this process with sequence={self.sequence!r}",
                    "a policy without its training rows",
                    "Fit this policy, or share with one fitted by forward selection.",
                )
            model = self._build(self._set_fits)
        self._finish_fit(model)
        return self

    def _build(self, fits: SetFits) -> SequenceModel:
        """Sequence model for the costs in use; of two sequences the one that costs less."""
        self.sequence_ = self.sequence
        if self.sequence == "both":
            assert fits.table is not None
            self.sequence_ = better_sequence(self, *fits.table)
        return build_sequence_model(fits, self.cost_table_, self.sequence_)

    def _check_sequence(self) -> None:
        choice("sequence", self.sequence, ("group_lasso", "forward", "both"))
        if self.sequence != "group_lasso" and self.target_recall is not None:
            raise InvalidInputError(
                "sequence",
                "must be 'group_lasso' with a target recall",
                self.sequence,
                "Forward selection needs the false-negative cost, which a target recall replaces.",
            )

    def calibrate(
        self, X: Any, y: Any, *, target_recall: float | None = None, confidence: float | None = None
    ) -> Self:
        """Choose the boldest threshold whose recall on new rows is certified, see
        `adacos.policies.recall`.

        The rows must not have been used for fitting, and be of the kind the policy will meet. What
        is certified is the whole policy as it will run: where it stops, and its answer there. The
        confidence counts attempts: each call is one, a refused one included. After a refusal do
        not ask the same rows for a lower recall; `on_uncertifiable="largest"` gives the largest
        that they certify in one attempt.

        Parameters
        ----------
        X, y : calibration rows and their classes.
        target_recall, confidence : instead of the parameters `target_recall` and
            `recall_confidence`.
        """
        check_is_fitted(self)
        check_recall_parameters(self)
        recall = given("target_recall", target_recall, self.target_recall)
        confidence = given("confidence", confidence, self.recall_confidence)
        self._refuse_false_negative_cost()
        encoded = self._encode(X)
        positive = positive_rows(y, self.classes_, len(encoded))
        try:
            certificate, threshold = self._certify(encoded, positive, recall, confidence)
        except NotCertifiableError:
            if self.on_uncertifiable == "error":
                raise
            certificate = always_positive(recall, confidence, int(positive.sum()))
            threshold = -np.inf
        self.certificate_ = certificate
        self.recall_estimate_ = 1 - certificate.misses / certificate.n_positives
        return self._use_threshold(threshold)

    def _certify(
        self, encoded: Floats, positive: Bools, recall: float, confidence: float
    ) -> tuple[RecallCertificate, float]:
        """Certificate and its threshold as log-odds."""
        held_out, others = encoded[positive], encoded[~positive]
        # A row that reaches the threshold at every set is not missed wherever the policy stops.
        least = self.model_.log_odds_by_set(held_out)[:, self._may_stop_at()].min(axis=1)
        trial = copy.copy(self)

        def in_danger(threshold: float) -> Bools:
            return np.asarray(least < threshold + 1e-6)

        def misses_at(threshold: float) -> int:
            rows = held_out[in_danger(threshold)]
            return int(np.sum(~trial._use_threshold(threshold)._says_positive(rows)))

        def tells_apart(threshold: float) -> bool:
            every = max(-(-len(others) // _ROWS_LOOKED_AT), 1)
            return not trial._use_threshold(threshold)._says_positive(others[::every]).all()

        thresholds = threshold_sequence(self._leave_out_of_positives())
        # Where the estimate answers positive for all, the costs ask for just that.
        if tells_apart(self._estimate_threshold(recall)):
            thresholds = from_first_telling(thresholds, tells_apart)
        try:
            certificate, threshold = certify(
                misses_at,
                thresholds,
                len(held_out),
                recall,
                confidence,
                at_most=lambda threshold: int(np.sum(in_danger(threshold))),
            )
        except NotCertifiableError as refusal:
            if self.on_uncertifiable != "largest":
                raise
            certificate, threshold = refusal.certificate, float(thresholds[0])
        if not tells_apart(threshold):
            note = "; at these costs every calibration row is answered positive"
            certificate = replace(certificate, method=certificate.method + note)
        return certificate, threshold

    def _says_positive(self, encoded: Floats) -> Bools:
        if len(encoded) == 0:
            return np.empty(0, dtype=np.bool_)
        return np.asarray(self._run(encoded).label == 1)

    def _finish_fit(self, model: SequenceModel) -> None:
        self.model_ = model
        names = self.encoder_.names
        self.sets_ = [
            tuple(names[k] for k in model.sequence.set(i)) for i in range(len(model.sequence))
        ]
        if self.target_recall is None:
            self._use_rule(DecisionRule(self.cost_table_.matrix))
        else:
            threshold = self._estimate_threshold(self.target_recall)
            reached = np.all(self._leave_out_of_positives() >= threshold, axis=1)
            self.recall_estimate_ = float(reached.mean())
            self._use_threshold(threshold)

    def _leave_out_of_positives(self) -> Floats:
        """Leave-out log-odds of the positive training rows at the sets where a row may stop."""
        positive: Floats = self.model_.leave_out_log_odds[self.model_.y == 1]
        return positive[:, self._may_stop_at()]

    def _estimate_threshold(self, recall: float) -> float:
        """The paper's threshold for a target recall, as log-odds."""
        threshold = recall_threshold(self._leave_out_of_positives().min(axis=1), recall)
        if 0 in self._may_stop_at() and self.model_.sequence.n_free == 0:
            # At the empty set all rows are alike: a threshold just above would miss every one.
            threshold = min(threshold, float(self.model_.intercepts[0]) - 1e-9)
        return threshold

    def _may_stop_at(self) -> Ints:
        """Numbers of the sets at which the policy may stop, whatever the costs."""
        return np.arange(len(self.model_.sequence))

    def _use_threshold(self, log_odds: float) -> Self:
        """Answer positive from these log-odds on, by the false-negative cost they stand for."""
        false_positive = float(self.cost_table_.matrix[0, 1])
        cost = false_negative_cost(log_odds, false_positive)
        self.threshold_, self.false_negative_cost_ = float(expit(log_odds)), cost
        matrix = np.array([[0.0, false_positive], [cost, 0.0]])
        return self._use_rule(DecisionRule(matrix, 0.0 if np.isneginf(log_odds) else None))

    def _use_rule(self, rule: DecisionRule) -> Self:
        """Decide by this rule from now on."""
        self.rule_ = rule
        self.always_positive_ = rule.always_positive
        self.expected_cost_ = self.model_.expected_costs(
            replace(self.cost_table_, matrix=rule.matrix)
        )
        return self

    def _check_recall_parameters(self) -> None:
        check_recall_parameters(self)
        if self.target_recall is not None:
            self._refuse_false_negative_cost()

    def _refuse_false_negative_cost(self) -> None:
        if isinstance(self.costs, Costs) and self.costs.false_negative_given:
            raise InvalidInputError(
                "target_recall",
                "cannot be combined with a false-negative cost: either follows from the other",
                self.costs,
                "Give Costs(..., false_positive=...) alone, or leave the target recall out.",
            )

    def _opening(self) -> Ints:
        return np.asarray(self.model_.sequence.set(0))

    def _begin(self, rows: Rows) -> WalkState:
        return begin(self.model_, rows.encoded, rows.available, rows.have, rows.known)

    def _decide(self, state: WalkState) -> Decision:
        stage = int(state.origin[state.stage])
        if self.rule_.always_positive:
            stop = np.full(len(state.part), STOP)
            return Decision(stop, log_odds_now(state), stage)
        return self._next(state)._replace(stage=stage)

    @abstractmethod
    def _next(self, state: WalkState) -> Decision:
        """What comes next for rows that stand at one set."""

    def _advance(self, state: WalkState, going: Bools, covariates: Ints) -> WalkState:
        return advance(state, going, covariates.shape[1])

    def _reasons(self, state: WalkState, decision: Decision) -> Reasons:
        outlook: Outlook = decision.weighed or look_ahead(state, self.cost_table_)
        upcoming = int(decision.covariates.flat[0])
        return sequence_reasons(
            state,
            outlook,
            self.rule_,
            self.encoder_,
            self.classes_.tolist(),
            None if upcoming == STOP else upcoming,
        )


def go_on_to(state: WalkState, stage: int) -> Decision:
    """Acquire up to one set, then stop."""
    log_odds = log_odds_now(state)
    upcoming = state.upcoming[: max(stage - state.stage, 0)]
    planned = upcoming if len(upcoming) else np.array([STOP])
    return Decision(np.tile(planned, (len(log_odds), 1)), log_odds)

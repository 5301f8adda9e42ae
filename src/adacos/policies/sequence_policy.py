"""Base of the policies that ask along a set sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from numbers import Integral
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from sklearn.base import _clone_parametrized
from sklearn.utils.validation import check_is_fitted

from adacos.costs import Costs
from adacos.deciders.out_of_fold import AnyFoldedDecider
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import stratified_folds
from adacos.kernels.namespace import host
from adacos.kernels.prior_shift import LogOddsChange
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES
from adacos.models.basis import MOST_SPLINES
from adacos.models.large_fits import PreparedRows, prepare_rows
from adacos.models.monotone import directions, directions_of
from adacos.models.progress import listening, print_progress
from adacos.models.sequence_model import SequenceModel
from adacos.models.shifted import shifted_model
from adacos.policies.base import BasePolicy
from adacos.policies.budgets import (
    BUDGET_CONSTRAINTS,
    KeptRows,
    check_budgets,
    shared_rows,
    spend_mean_budget,
    warn_of_unspent,
)
from adacos.policies.calibration import certified
from adacos.policies.certificate import ClassRecallCertificate, RecallCertificate
from adacos.policies.deprecated_recall import (
    own_aim,
    warn_of_calibrate,
    warn_of_recall,
    with_aim_as_given,
)
from adacos.policies.many_classes import check_in_place_of_cost, check_with_classes
from adacos.policies.orders import BY_ALL_COSTS, SEQUENCES, cheapest_sequence, warn_of_both
from adacos.policies.recall import RECALL_CONSTRAINTS, Reached, RecallAim, check_aim, hold_out
from adacos.policies.recall_estimate import estimated
from adacos.policies.sharing import check_shareable
from adacos.policies.streaming import fit_pieces, is_streamed
from adacos.tables.row_digests import RowDigests
from adacos.tables.weights import weighed_rows
from adacos.typing import Fields, Floats, Ints
from adacos.validation import (
    DEPRECATED,
    Constraints,
    check_parameters,
    folds,
    if_given,
    jobs,
    one_of,
    whole,
)


class SequencePolicy(BasePolicy):
    """Base of the policies over S_1 ⊂ … ⊂ S_q with one logistic GAM per set.

    `fit` learns the sets, the models and the densities, as `model_`. A subclass makes the decider.

    Parameters
    ----------
    sequence : {"group_lasso", "forward", "auto"}, default="group_lasso"
        How the sets are found: by order of entry into a cost-weighted group lasso, or greedily by
        cross-validated total cost (which needs both misclassification costs). "auto" takes the
        group lasso unless forward selection makes this policy cheaper, out of fold and beyond a
        standard error. It tries that only where other one or two covariates for every row cost less
        than those with which the group lasso begins, and never with a target recall.
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate; fewer, but four at least, where there
        would be more than 256 columns and more columns than rows, or with more than 40 numeric
        covariates fewer than four rows to a column.
    strengths : {"auto", "common", "per_covariate"}, default="auto"
        Penalties to choose from, see `LogisticGAM`.
    cv : int, splitter or iterable of (train, test), default=10
        Folds behind the out-of-fold probabilities: their number, or splits that hold out every row
        once.
    random_state : int, default=0
        Seed of the folds and of the calibration split.
    budget : float, default=None
        What a row may pay for covariates at most; None for any amount. Panels count, and sets
        beyond it are not weighed. Covariates that can be paid together are asked first.
    mean_budget : float, default=None
        What rows may pay for covariates on average; None for any amount. Meant are rows like those
        of training: where values are missing there, complete ones pay `mean_spent_complete_`.
    n_jobs : int, default=None
        Fits of one step of forward selection that run at the same time.
    verbose : int, default=0
        Whether `fit` prints where it is: which step of forward selection, which set.
    monotonic_cst : mapping of str to int, or array-like of int, default=None
        Covariates whose contribution only rises (1) or only falls (-1) with their value, by name or
        in the order of the columns, 0 for any; see `LogisticGAM`. For two classes, and fewer than
        100,000 complete rows.
    target_recall, recall_at, recall_confidence, calibration_fraction, on_uncertifiable : deprecated
        Parameters of `TargetRecallClassifier` now; here they hold for one release.

    Attributes
    ----------
    model_ : SequenceModel
        Sets, additive models and densities, shared by policies built with `from_model`.
    sequence_ : str
        How the sets were found, "group_lasso" or "forward".
    sets_ : list of tuple of str
        Covariate names of each set, in order of acquisition.
    expected_cost_by_set_ : ndarray of shape (n_sets,)
        Mean total cost of always stopping at each set, by out-of-fold probabilities. Its least
        value flatters: the order was found with the same labels. See `nested_cost`.
    threshold_ : float
        With a target recall, the probability from which on a row is answered positive.
    false_negative_cost_ : float
        The cost of a false negative that the threshold implies.
    surcharges_ : dict of class to float
        With target recalls of three or more classes, by how much more than was stated an error
        about each costs.
    recall_estimate_ : float or dict of class to float
        Share of positive training rows, or by class of its rows, that are found by models that did
        not see them, counted as `recall_at` says; with a certificate, the recall on the calibration
        rows.
    training_rows_ : RowDigests
        Salted digests of the training rows, by which they are known again.
    certificate_ : RecallCertificate or ClassRecallCertificate
        What was proved.
    always_positive_ : bool
        Whether every row is answered positive for want of a certificate.

    See Also
    --------
    SequenceDecider : What a subclass makes of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import STOP, Costs, Decision, SequenceDecider, SequencePolicy, load_pima
    >>> class DoubtDecider(SequenceDecider):
    ...     def decide(self, state):
    ...         log_odds = self.log_odds(state)
    ...         upcoming = state.upcoming[0] if len(state.upcoming) else STOP
    ...         covariates = np.where(np.abs(log_odds) < 1, upcoming, STOP)
    ...         return Decision(covariates, log_odds, state.original_stage)
    >>> class DoubtClassifier(SequencePolicy):
    ...     def make_decider(self, terms):
    ...         return DoubtDecider(terms, self.model_)
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> DoubtClassifier(costs, cv=2, strengths="common").fit(X, y).acquire(X)
    AcquisitionResult(768 rows, 4.04 of 8 covariates and 15.96 paid per row)
    """

    constraints: ClassVar[Constraints] = {
        "sequence": one_of("auto", *SEQUENCES, "both"),
        "n_splines": whole(4, MOST_SPLINES),
        "strengths": one_of(*FAMILIES),
        "cv": folds,
        "random_state": whole(0),
        "n_jobs": jobs,
        "verbose": whole(0),
        "monotonic_cst": directions,
        **BUDGET_CONSTRAINTS,
        **{name: if_given(rule) for name, rule in RECALL_CONSTRAINTS.items()},
    }

    saved_fields: ClassVar[Fields] = {
        "model_": SequenceModel,
        "sequence_": str,
        "sets_": list[tuple[str, ...]],
        "training_rows_": RowDigests,
        "mean_spent_": float | None,
        "mean_spent_complete_": float | None,
        "threshold_": float | None,
        "false_negative_cost_": float | None,
        "surcharges_": dict[Any, float] | None,
        "recall_estimate_": float | dict[Any, float] | None,
        "certificate_": RecallCertificate | ClassRecallCertificate | None,
    }

    # Whether a table in files is read a piece at a time.
    streams: ClassVar[bool] = True
    needs_nested_fits: ClassVar[bool] = False
    stops_by_rule: ClassVar[bool] = True
    # Whether `from_model` can be called.
    shares_fits: ClassVar[bool] = True
    # Training rows as they were prepared, kept where the sequence depends on them, and encoded,
    # for what is found by walking them; never saved.
    in_process: ClassVar[tuple[str, ...]] = (*BasePolicy.in_process, "_set_fits", "_rows")
    _set_fits: PreparedRows | None = None
    _rows: Floats | None = None
    # Values of parameters in older files that do not name them: they could not be chosen.
    in_older_files: ClassVar[Mapping[str, Any]] = {"recall_at": "every_set"}
    sequence: str
    sequence_: str
    monotonic_cst: Any = None  # not in older model files
    target_recall: Any = DEPRECATED
    recall_at: str = DEPRECATED
    recall_confidence: Any = DEPRECATED
    calibration_fraction: Any = DEPRECATED
    on_uncertifiable: str = DEPRECATED
    model_: SequenceModel
    training_rows_: RowDigests
    decider_: AnyFoldedDecider

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        budget: float | None = None,
        mean_budget: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        monotonic_cst: Any = None,
        target_recall: Any = DEPRECATED,
        recall_at: str = DEPRECATED,
        recall_confidence: Any = DEPRECATED,
        calibration_fraction: Any = DEPRECATED,
        on_uncertifiable: str = DEPRECATED,
    ) -> None:
        self.costs = costs
        self.sequence = sequence
        self.n_splines = n_splines
        self.strengths = strengths
        self.cv = cv
        self.random_state = random_state
        self.budget = budget
        self.mean_budget = mean_budget
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.monotonic_cst = monotonic_cst
        self.target_recall = target_recall
        self.recall_at = recall_at
        self.recall_confidence = recall_confidence
        self.calibration_fraction = calibration_fraction
        self.on_uncertifiable = on_uncertifiable

    @property
    def recall_aim(self) -> RecallAim:
        """What is asked of the recall: by a policy around this one, or by deprecated parameters."""
        return self._recall or own_aim(self)

    def __sklearn_clone__(self) -> Self:
        cloned: Self = _clone_parametrized(self)
        if self._recall is not None:
            cloned._recall = self._recall
        return cloned

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the policy of which a model file holds the state.

        Parameters
        ----------
        state : mapping
            Parameters and fields by name, see `saved_fields`.
        """
        super().restore(with_aim_as_given(state))

    @one_blas_thread
    def fit(
        self,
        X: Any,
        y: Any,
        X_unlabeled: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn the set sequence, the models and the conditional densities.

        Parameters
        ----------
        X : array-like, data frame, ParquetTable, Dask collection or torch tensor
            Training rows; NaN marks what is unknown. From 100,000 rows on they are held as
            codes; a `ParquetTable` is then read a piece at a time, those of a Dask collection stay
            with its workers, and complete ones of two classes in a tensor are held on its device.
        y : array-like of shape (n_rows,), or str
            Their classes, two or more; of a `ParquetTable` or collection also the name of the
            column.
        X_unlabeled : array-like or data frame, default=None
            Further rows without labels; they sharpen the covariance used for missing values and
            the conditional densities.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, in the models and in the cross-validated costs: weight 2 is
            the row twice, 0 ignores it.
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row. Rows of a group are on one side of every
            split. Without it, rows that look like copies of each other are groups, with a warning.

        Returns
        -------
        self
            The fitted policy.
        """
        self._check_combinations()
        return self._learn(X, y, X_unlabeled, sample_weight, groups)

    def _learn(
        self, X: Any, y: Any, X_unlabeled: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """`fit` with checked parameters."""
        if is_streamed(X):
            return fit_pieces(self, X, y, X_unlabeled, sample_weight, groups)
        held_out, fold, aim = None, None, self.recall_aim
        placed_like, X, y, X_unlabeled = X, host(X), host(y), host(X_unlabeled)
        if aim.recall_confidence is not None:
            (X, y, groups), held_out = hold_out(
                self, X, y, groups, aim.calibration_fraction, self.random_state
            )
        if sample_weight is not None or not isinstance(self.cv, Integral):
            X, y, sample_weight, fold, groups = self._weighed(X, y, sample_weight, groups)
        training = self.begin_fit(X, y, groups)
        check_with_classes(self)
        rows = training.encoded, training.y
        if fold is None:
            fold = stratified_folds(*rows, self.cv, self.random_state, training.groups)
        self.training_rows_ = RowDigests.of(training.encoded, self.random_state)
        unlabeled = None if X_unlabeled is None else self._encode(X_unlabeled)
        fits = prepare_rows(
            *rows,
            self.encoder_,
            n_splines=self.n_splines,
            families=FAMILIES[self.strengths],
            fold=fold,
            seed=self.random_state,
            weight=sample_weight,
            n_jobs=self.n_jobs,
            unlabeled=unlabeled,
            n_classes=len(self.classes_),
            placed_like=placed_like,
            directions=directions_of(self),
        )
        fits = replace(fits, table=(X, y, training.groups))
        self._rows = training.encoded
        self._set_fits = fits if self.sequence in BY_ALL_COSTS else None
        self._finish_fit(self._build(fits))
        warn_of_unspent(self, "budget")
        self._complete_fit(fits, unlabeled)
        if held_out is not None:
            X, y, groups = held_out
            self._certify(certified(self, X, y, aim, allow_training_rows=True, groups=groups), X)
        return self

    def _streams_from(self, X: Any) -> bool:
        return is_streamed(X)

    def _complete_fit(self, fits: PreparedRows, unlabeled: Floats | None) -> None:
        """What a policy learns beyond the sequence model."""
        self._keep_mean_budget()

    @property
    def in_one_order(self) -> bool:
        """Whether every row is asked along the sets of `model_`."""
        return True

    @property
    def sequence_model(self) -> SequenceModel:
        """Sets, models and densities."""
        return self.model_

    def keep_rows(self, most: int) -> None:
        """Keep the out-of-fold log-odds of about this many training rows, for a small file.

        A policy that branches keeps what its leaves refer to.

        Parameters
        ----------
        most : int
            How many, drawn by class.
        """
        if self.streams:
            self.model_ = self.model_.with_some_rows(most, self.random_state)

    def _weighed(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, Floats, Ints, Ints | None]:
        """Rows of positive weight with their classes, weights, folds and groups."""
        confidence = self.recall_aim.recall_confidence
        if confidence is not None:
            raise InvalidInputError(
                "recall_confidence",
                "cannot be combined with sample_weight or given splits",
                confidence,
                "Leave one of them out; calibrate(X, y, confidence=...) certifies afterwards.",
            )
        return weighed_rows(self, X, y, sample_weight, groups, self.cv, self.random_state)

    def from_model(self, fitted: BasePolicy) -> Self:
        """Become fitted with the sequence model of another fitted policy.

        Policies that differ only in misclassification costs, or in kind, share one fit this way.
        The order of the sets is taken over, by "auto" too. With `sequence="forward"`, which depends
        on the misclassification costs, it is the models of the sets that are shared: the sequence
        is found again for these costs.

        Parameters
        ----------
        fitted : policy over a set sequence
            A fitted policy with the same covariate costs.

        Returns
        -------
        self
            The fitted policy.

        Raises
        ------
        InvalidInputError
            If a parameter asks for something that only another fit could give.
        """
        other: Any = getattr(fitted, "wrapped", fitted)
        self._check_combinations()
        check_shareable(self, other)
        return self._share(other)

    def _share(self, fitted: SequencePolicy) -> Self:
        """Take over what another policy has learned."""
        self._forget()
        self.classes_, self.encoder_ = fitted.classes_, fitted.encoder_
        self.n_features_in_, self.training_rows_ = fitted.n_features_in_, fitted.training_rows_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        self._bind_costs(fitted.encoder_.names)
        check_with_classes(self)
        model = fitted.model_
        self._set_fits, self._rows, self.sequence_ = None, fitted._rows, fitted.sequence_
        if self.sequence in BY_ALL_COSTS:
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
        self._keep_mean_budget()
        if fitted.recalibration_ is not None:
            self.recalibration_ = fitted.recalibration_
        return self

    def _change(self, change: LogOddsChange) -> None:
        """Decide by the models after a change from now on."""
        self.model_: SequenceModel = shifted_model(self.model_, change)
        self.finish_fit()
        self._reach_recall()

    def _keep_mean_budget(self) -> None:
        """Count covariate costs so often that out-of-fold training rows keep the mean budget."""
        if self.mean_budget is not None and not self.rule_.always_positive:
            spend_mean_budget(self, self._kept_rows())

    def _kept_rows(self) -> KeptRows:
        """Training rows on which budgets and costs are found, drawn where there are many."""
        return KeptRows.drawn(shared_rows(self._rows), self.model_, self.random_state)

    def _build(self, fits: PreparedRows) -> SequenceModel:
        """Sequence model for the costs in use; of two sequences the one that costs less."""
        self.sequence_ = self.sequence
        listener = listening(partial(print_progress, self)) if self.verbose else nullcontext()
        with listener:
            self.sequence_, model = cheapest_sequence(self, fits)
        return model

    def _check_combinations(self) -> None:
        """Parameters that exclude each other."""
        check_parameters(self)
        aim = self.recall_aim
        check_aim(aim)
        check_budgets(self)
        warn_of_both(self.sequence)
        # What a recall by name excludes depends on how many classes there are.
        if aim.target_recall is not None and not isinstance(aim.target_recall, Mapping):
            check_in_place_of_cost(self)
        if self._recall is None and aim != RecallAim():
            warn_of_recall(self, aim)

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
        """Deprecated: `TargetRecallClassifier.calibrate` does the same.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            Calibration rows.
        y : array-like of shape (n_rows,)
            Their classes.
        target_recall : float or mapping of class to float, default=None
            Instead of the parameter `target_recall`.
        confidence : float, default=None
            Instead of the parameter `recall_confidence`.
        allow_training_rows : bool, default=False
            Whether to continue where the rows look like those that were trained on.
        groups : array-like of shape (n_rows,), default=None
            The group of each row.

        Returns
        -------
        self
            The policy, which answers as certified from now on.
        """
        check_is_fitted(self)
        check_parameters(self)
        aim = self.recall_aim
        check_aim(aim)
        warn_of_calibrate(self)
        aim = aim.asking(target_recall, confidence)
        reached = self._certified(X, y, aim, allow_training_rows=allow_training_rows, groups=groups)
        self._certify(reached, X)
        self._keep_aim(aim, self._fitted_with)
        return self

    def _certified(self, X: Any, y: Any, aim: RecallAim, **options: Any) -> Reached:
        """The recalls that these rows certify, see `adacos.policies.calibration`."""
        return certified(self, X, y, aim, **options)

    def _certify(self, reached: Reached, X: Any) -> None:
        """Answer as these rows have certified."""
        reached.give(self)

    def _finish_fit(self, model: SequenceModel) -> None:
        self.model_ = model
        names = self.encoder_.names
        self.sets_ = [
            tuple(names[k] for k in model.sequence.set(i)) for i in range(len(model.sequence))
        ]
        self.finish_fit()
        self._reach_recall()

    def _reach_recall(self) -> None:
        """Decide by the rule that training rows ask for, where there is a target recall."""
        if self.recall_aim.target_recall is not None:
            estimated(self, self.recall_aim).give(self)

    def _log_odds_anywhere(self, encoded: Floats) -> Floats:
        """Log-odds of rows at every set at which the policy may stop."""
        return self.model_.log_odds_by_set(encoded)[:, self._may_stop_at()]

    def _out_of_fold_of_positives(self) -> Floats:
        """Out-of-fold log-odds of the positive training rows at the sets where a row may stop."""
        positive: Floats = self.model_.out_of_fold_log_odds[self.model_.y == 1]
        return positive[:, self._may_stop_at()]

    def _out_of_fold_at_stop(self, encoded: Floats, result: AcquisitionResult) -> Floats:
        """Out-of-fold log-odds of the training rows where they stopped."""
        return np.asarray(self.model_.out_of_fold_log_odds[np.arange(len(result)), result.stage])

    def _answers_out_of_fold(self, rows: Ints) -> Callable[[AnyFoldedDecider], Ints]:
        """Gives the answers of a decider to training rows, by models that did not see them."""
        encoded = cache(lambda: shared_rows(self._rows, "a target recall")[rows])
        return lambda decider: decider.answers(rows, encoded)

    def _out_of_fold_with_all(self) -> Floats:
        """Out-of-fold log-odds of the training rows with every covariate."""
        return np.asarray(self.model_.out_of_fold_log_odds[:, -1])

    def _log_odds_with_all(self, encoded: Floats) -> Floats:
        """Log-odds of rows with every covariate."""
        return np.asarray(self.model_.log_odds_by_set(encoded)[:, -1])

    def _may_stop_at(self) -> Ints:
        """Numbers of the sets at which the policy may stop, whatever the costs."""
        return np.arange(len(self.model_.sequence))

    @property
    def expected_cost_by_set_(self) -> Floats:
        """Mean total cost of always stopping at each set, by out-of-fold probabilities."""
        # Surcharges for recalls by class decide about answers, and nobody pays them.
        priced = self.rule_ if self.false_negative_cost_ is not None else self.cost_table_
        costs = replace(self.cost_table_, matrix=priced.matrix)
        return self.model_.expected_costs(costs, self.rule_.matrix)


def has_sets(policy: BasePolicy) -> TypeGuard[SequencePolicy]:
    """Whether a policy has a set sequence, whatever else decides what is asked."""
    return policy.sequence_model is not None


def asked_in_order(policy: BasePolicy) -> TypeGuard[SequencePolicy]:
    """Whether a policy asks every row in one order: its stage is then the number of a set."""
    return policy.in_one_order

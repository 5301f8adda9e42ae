"""Base of the policies that ask along a set sequence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs
from adacos.gam import FAMILIES
from adacos.kernels.bayes_risk import label_of
from adacos.policy import AcquisitionResult, BasePolicy, finish
from adacos.preprocessing import validate_table
from adacos.sequence_model import SequenceModel, fit_sequence_model
from adacos.validation import choice, integer

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class SequencePolicy(BasePolicy):
    """A policy over S_1 ⊂ … ⊂ S_q with one logistic GAM per set.

    Parameters
    ----------
    costs : covariate and misclassification costs; None makes every covariate free and both
        errors cost 1.
    n_splines : B-splines per numeric covariate.
    strengths : penalties to choose from, see `LogisticGAM`.
    cv : number of folds behind the leave-out probabilities.
    random_state : seed of the folds.

    Attributes
    ----------
    model_ : the `SequenceModel`, shared by policies built with `from_model`.
    expected_cost_ : expected total cost of always stopping at each set.
    sets_ : covariate names of each set, in order of acquisition.
    """

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        n_splines: int = 10,
        strengths: str = "auto",
        cv: int = 10,
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.n_splines = n_splines
        self.strengths = strengths
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> Self:
        """Learn the set sequence, the models and the conditional densities.

        `X_unlabeled` may hold further rows without labels; they sharpen the covariance used for
        missing values and the conditional densities.
        """
        integer("n_splines", self.n_splines, at_least=4)
        integer("cv", self.cv, at_least=2)
        integer("random_state", self.random_state, at_least=0)
        choice("strengths", self.strengths, tuple(FAMILIES))
        training = self._begin_fit(X, y)
        unlabeled = None
        if X_unlabeled is not None:
            unlabeled = self.encoder_.transform(validate_table(self, X_unlabeled, reset=False))
        self._finish_fit(
            fit_sequence_model(
                training,
                self.encoder_,
                n_splines=self.n_splines,
                strengths=self.strengths,
                cv=self.cv,
                random_state=self.random_state,
                unlabeled=unlabeled,
            )
        )
        return self

    def from_model(self, fitted: SequencePolicy) -> Self:
        """Become fitted with the sequence model of another fitted policy.

        Policies that differ only in misclassification costs, or in kind, share one fit this way.
        """
        self.classes_, self.encoder_ = fitted.classes_, fitted.encoder_
        self.n_features_in_ = fitted.n_features_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        self.cost_table_ = (self.costs or Costs()).bind(fitted.encoder_.names)
        self._finish_fit(fitted.model_)
        return self

    def _finish_fit(self, model: SequenceModel) -> None:
        self.model_ = model
        self.expected_cost_ = model.expected_costs(self.cost_table_)
        names = self.encoder_.names
        self.sets_ = [
            tuple(names[k] for k in model.sequence.set(i)) for i in range(len(model.sequence))
        ]

    def _stop(self, encoded: Floats, stage: Ints, log_odds: Floats) -> AcquisitionResult:
        """Result of rows that acquired what is available of their set and then stopped."""
        sequence = self.model_.sequence
        first = np.searchsorted(self.model_.basis.source, np.arange(len(sequence.order)))
        known = ~np.isnan(encoded[:, first])
        in_order = (np.arange(len(sequence.order)) < sequence.sizes[stage][:, None]) & known[
            :, sequence.order
        ]
        acquired = np.zeros_like(known)
        acquired[:, sequence.order] = in_order
        # Acquired covariates move to the front, the others become -1, the order is kept.
        listed = np.argsort(~in_order, axis=1, kind="stable")
        order = np.where(np.take_along_axis(in_order, listed, axis=1), sequence.order[listed], -1)
        label = label_of(log_odds, self.cost_table_.matrix)
        return finish(log_odds, label, acquired, order, stage, self.cost_table_)

    def _stop_at(self, encoded: Floats, stage: int) -> AcquisitionResult:
        """Every row stops at one set."""
        log_odds = self.model_.log_odds(encoded, stage)
        return self._stop(encoded, np.full(len(encoded), stage, dtype=np.intp), log_odds)

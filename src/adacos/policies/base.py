"""What every policy shares: validation, the result of acquiring, scikit-learn's face.

A policy maps what has been acquired of a row to "acquire this covariate" or "classify". Policies
act on all rows at once; `BasePolicy` turns a table into encoded values and the result into labels.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from adacos.consultation.steps import Advice
from adacos.costs import Costs, CostTable
from adacos.exceptions import InvalidInputError
from adacos.kernels.bayes_risk import bayes_risk
from adacos.tables.encoder import TableEncoder, check_labels, covariate_names, validate_table

if TYPE_CHECKING:
    from adacos.consultation import Consultation

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class AcquisitionResult:
    """What a policy did with each row.

    Attributes
    ----------
    label : class given to the row.
    probability : P(second class) when the row was classified.
    acquired : mask (rows, covariates) of what was acquired.
    order : (rows, covariates) acquired covariates by position in order of acquisition, then -1.
    cost : covariate cost paid.
    stage : number of the set at which the row stopped (counted from 0), or the number of
        acquisitions for a policy without a set sequence.
    expected_cost : covariate cost paid plus the Bayes risk at the stop.
    names : covariate names.
    """

    label: NDArray[Any]
    probability: Floats
    acquired: Bools
    order: Ints
    cost: Floats
    stage: Ints
    expected_cost: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.label)

    def covariates(self, row: int) -> tuple[str, ...]:
        """Names acquired for one row, in order."""
        return tuple(self.names[i] for i in self.order[row] if i >= 0)

    def rows(self, selection: Any) -> AcquisitionResult:
        """The same result for some of the rows."""
        return AcquisitionResult(
            **{f.name: getattr(self, f.name)[selection] for f in fields(self) if f.name != "names"},
            names=self.names,
        )


@dataclass(frozen=True)
class TrainingTable:
    """Validated training rows: encoded values (NaN = unknown), 0/1 labels, bound costs."""

    encoded: Floats
    y: Floats
    costs: CostTable


class BasePolicy(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of every policy.

    A subclass stores its parameters (among them `costs`), calls `_begin_fit` first in `fit` and
    implements `_acquire`.
    """

    # Classes of the values that fitted objects hold, for model files; a subclass adds its own.
    stores: ClassVar[tuple[type, ...]] = (Costs, CostTable, TableEncoder)

    costs: Costs | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def _begin_fit(self, X: Any, y: Any) -> TrainingTable:
        """Validate the training data; sets `classes_`, `encoder_` and `cost_table_`."""
        if self.costs is not None and not isinstance(self.costs, Costs):
            raise InvalidInputError(
                "costs",
                "must be a Costs object or None",
                type(self.costs).__name__,
                "For example costs=Costs({'age': 1.0}, false_positive=100, false_negative=1000).",
            )
        table = validate_table(self, X, reset=True)
        self.classes_, labels = check_labels(y)
        check_consistent_length(X, labels)
        names = covariate_names(self)
        self.cost_table_ = (self.costs or Costs()).bind(names)
        self.encoder_ = TableEncoder.fit(table, names)
        return TrainingTable(self.encoder_.transform(table), labels, self.cost_table_)

    @abstractmethod
    def _acquire(self, encoded: Floats) -> AcquisitionResult:
        """Run the policy on encoded rows; NaN means that the covariate cannot be acquired.

        Labels are returned as 0 and 1.
        """

    def _acquire_given(self, encoded: Floats, known: Bools) -> AcquisitionResult:
        """Run the policy on encoded rows of which the covariates in the mask are known.

        Here they are only free of charge; a policy that can learn from them before it would ask
        for them does so in its own version.
        """
        return free_of_charge(self._acquire(encoded), known, self.cost_table_)

    def _advise(self, encoded: Floats, have: Bools, known: Bools, unavailable: Bools) -> Advice:
        """What to do with one encoded row of which the values in `have` are there.

        A policy does not look at what it has not acquired. So it is run with any value in place
        of those to come, and the first that it asks for is next; and it is run with none of them
        to see what it would answer now.
        """
        absent = np.isnan(encoded) & ~unavailable[self.encoder_.source]
        trial = self._acquire_given(np.where(absent, 0.0, encoded), known)
        pending = [int(k) for k in trial.order[0] if k >= 0 and not have[k]]
        if pending:
            trial = self._acquire_given(encoded, known)
        return Advice(
            covariates=tuple(pending[:1]),
            label=int(trial.label[0]),
            probability=float(trial.probability[0]),
            bayes_risk=float(trial.expected_cost[0] - trial.cost[0]),
        )

    def consultation(self, known: Mapping[str, Any] | None = None) -> Consultation:
        """Begin a consultation about one row, of which some values may be known.

        Parameters
        ----------
        known : values by covariate name; they cost nothing.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000)
        >>> consultation = AdaCOSClassifier(costs).fit(X, y).consultation(known={"Age": 24})
        >>> print(consultation.next())
        Acquire BMI for 1.00.
        """
        from adacos.consultation import Consultation

        return Consultation(self, known)

    def acquire(self, X: Any, *, known: ArrayLike | None = None) -> AcquisitionResult:
        """Run the policy on every row of X: acquire step by step, stop, classify.

        Parameters
        ----------
        X : the rows. NaN means that the value is not available for that row and cannot be
            acquired.
        known : mask of the values that are known from the start, of the shape of X or one entry
            per covariate for all rows. They cost nothing, are used, and do not count as acquired.
            A recall certificate was earned without them and does not extend to such rows.
        """
        check_is_fitted(self)
        table = validate_table(self, X, reset=False)
        encoded = self.encoder_.transform(table)
        if known is None:
            result = self._acquire(encoded)
        else:
            result = self._by_pattern(encoded, self._known_mask(known, encoded))
        return AcquisitionResult(
            **{**result.__dict__, "label": self.classes_[result.label.astype(np.intp)]}
        )

    def _by_pattern(self, encoded: Floats, known: Bools) -> AcquisitionResult:
        """Run the policy on the rows of each pattern of known covariates in turn."""
        patterns, number = np.unique(known, axis=0, return_inverse=True)
        members = [np.flatnonzero(number.ravel() == i) for i in range(len(patterns))]
        parts = [
            self._acquire_given(encoded[rows], pattern)
            for rows, pattern in zip(members, patterns, strict=True)
        ]
        back = np.argsort(np.concatenate(members), kind="stable")
        names = {f.name for f in fields(AcquisitionResult)} - {"names"}
        return AcquisitionResult(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
            names=parts[0].names,
        ).rows(back)

    def _known_mask(self, known: ArrayLike, encoded: Floats) -> Bools:
        """`known` as one mask per row; a value that is known cannot be missing."""
        mask = np.asarray(known)
        names = self.encoder_.names
        shape = (len(encoded), len(names))
        if mask.dtype != np.bool_ or mask.shape not in (shape, shape[1:]):
            raise InvalidInputError(
                "known",
                f"must be a mask of shape {shape} or ({len(names)},)",
                f"{mask.dtype} of shape {mask.shape}",
                "Pass True where a value is known from the start.",
            )
        mask = np.broadcast_to(mask, shape)
        first = np.searchsorted(self.encoder_.source, np.arange(len(names)))
        contradiction = np.argwhere(mask & np.isnan(encoded[:, first]))
        if len(contradiction):
            row, covariate = contradiction[0]
            raise InvalidInputError(
                "known",
                "a value that is known must be in X",
                f"row {row}, column {names[covariate]!r} is missing"
                + (f" (and {len(contradiction) - 1} more)" if len(contradiction) > 1 else ""),
                "Fill in the value, or set the mask to False there.",
            )
        return mask

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row after acquiring what the policy asks for."""
        return self.acquire(X).label

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities at the stop, shape (rows, 2)."""
        p = self.acquire(X).probability
        return np.column_stack([1.0 - p, p])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


def free_of_charge(result: AcquisitionResult, known: Bools, costs: CostTable) -> AcquisitionResult:
    """The result without the covariates in the mask `known`, which were not paid for."""
    acquired = result.acquired & ~known
    skipped = (result.order < 0) | known[result.order]
    listed = np.argsort(skipped, axis=1, kind="stable")
    order = np.take_along_axis(np.where(skipped, -1, result.order), listed, axis=1)
    cost = costs.of(acquired, given=known)
    expected = result.expected_cost - result.cost + cost
    return replace(result, acquired=acquired, order=order, cost=cost, expected_cost=expected)


def finish(
    log_odds: Floats, label: Ints, acquired: Bools, order: Ints, stage: Ints, costs: CostTable
) -> AcquisitionResult:
    """Result of rows that stopped with these log-odds and labels (0 or 1)."""
    from scipy.special import expit

    paid = costs.of(acquired)
    return AcquisitionResult(
        label=label,
        probability=expit(log_odds),
        acquired=acquired,
        order=order,
        cost=paid,
        stage=stage,
        expected_cost=paid + bayes_risk(log_odds, costs.matrix),
        names=costs.names,
    )

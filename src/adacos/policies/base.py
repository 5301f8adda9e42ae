"""What every policy shares: validation, the default state, scikit-learn's face.

A policy maps what has been acquired of a row to "acquire this covariate" or "classify", see
`adacos.engine`. A new policy stores its parameters (among them `costs`), calls `_begin_fit` first
in `fit`, and implements `_decide`.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from adacos.consultation import Consultation
from adacos.consultation.steps import Reasons
from adacos.costs import Costs, CostTable
from adacos.engine import AcquisitionResult, Decision, DecisionRule, Rows, Seen, run
from adacos.exceptions import InvalidInputError, PositiveClassWarning
from adacos.kernels.namespace import host, is_tensor, like, namespace
from adacos.kernels.threads import one_blas_thread
from adacos.providers import ProvidedResult
from adacos.providers.running import Cache, Desk, check_providers, provide
from adacos.tables.description import CovariateDescription, Description
from adacos.tables.encoder import (
    TableEncoder,
    covariate_names,
    in_fitted_order,
    validate_table,
    with_empty_columns,
)
from adacos.tables.labels import check_labels
from adacos.tables.tensors import encode_tensor
from adacos.validation import Constraints, check_parameters

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class TrainingTable:
    """Validated training rows: encoded values (NaN = unknown), labels 0, 1, …, bound costs."""

    encoded: Floats
    y: Floats
    costs: CostTable


def _without_weights(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Name those that take weights where `fit` does not; its signature stays."""

    @wraps(fit)
    def refusing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "sample_weight" in kwargs:
            raise TypeError(
                f"{type(self).__name__}.fit() does not support sample_weight. AdaCOSClassifier, "
                "BranchingClassifier, COSClassifier and FullModelClassifier do."
            )
        return fit(self, *args, **kwargs)

    return refusing


class BasePolicy(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of every policy.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; of two the second is the positive one.
    encoder_ : TableEncoder
        What was learned about the columns.
    cost_table_ : CostTable
        The costs as given, bound to the columns.
    rule_ : DecisionRule
        How log-odds become a label, and the costs by which acquisitions are weighed.
    """

    # Classes of the values that fitted objects hold, for model files; a subclass adds its own.
    stores: ClassVar[tuple[type, ...]] = (
        Costs,
        CostTable,
        CovariateDescription,
        DecisionRule,
        Description,
        TableEncoder,
    )

    # Whether there may be more than two classes.
    takes_many_classes: ClassVar[bool] = False

    # What the parameters must satisfy, checked when fitting begins.
    constraints: ClassVar[Constraints] = {}

    costs: Costs | None
    # What a row may pay at most; a policy that has the parameter stores it.
    budget: float | None = None
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls) and not has_fit_parameter(cls, "sample_weight"):
            cls.fit = _without_weights(cls.fit)

    def _begin_fit(self, X: Any, y: Any) -> TrainingTable:
        """Validate parameters and data; sets `classes_`, `encoder_`, `cost_table_`, `rule_`."""
        check_parameters(self)
        if self.costs is not None and not isinstance(self.costs, Costs):
            raise InvalidInputError(
                "costs",
                "must be a Costs object or None",
                type(self.costs).__name__,
                "For example costs=Costs({'age': 1.0}, false_positive=100, false_negative=1000).",
            )
        table = validate_table(self, X, reset=True)
        self.classes_, labels = check_labels(y, many=self.takes_many_classes)
        check_consistent_length(X, labels)
        names = covariate_names(self)
        self.cost_table_ = (self.costs or Costs()).bind(names, len(self.classes_))
        self.rule_ = DecisionRule(self.cost_table_.matrix)
        self._tell_positive_class()
        self.encoder_ = TableEncoder.fit(table, names)
        return TrainingTable(self.encoder_.transform(table), labels, self.cost_table_)

    def _tell_positive_class(self) -> None:
        """Say which of two words is the positive class, where the errors do not cost the same."""
        if len(self.classes_) > 2:
            return
        (_, false_alarm), (miss, _) = (
            self.cost_table_.matrix - np.diag(self.cost_table_.matrix)[:, None]
        )
        recall = getattr(self, "target_recall", None)
        if self.classes_.dtype.kind in "OSU" and (false_alarm != miss or recall is not None):
            negative, positive = self.classes_.tolist()
            warnings.warn(
                f"The positive class is {positive!r}, the second in alphabetical order: a false "
                f"negative is a row of it that is answered {negative!r}. Pass y as 1 for the "
                "positive class and 0 for the other to choose, or to say so.",
                PositiveClassWarning,
                stacklevel=5,
            )

    @abstractmethod
    def _decide(self, state: Any) -> Decision:
        """What comes next for each row of a state, and the log-odds if it stopped now.

        The state is a `Seen` unless the policy keeps another. Only what was acquired may be looked
        at; what is not available cannot be acquired.
        """

    @property
    def ceiling(self) -> float | None:
        """What a row may pay at most; None for any amount."""
        return self.budget

    def _within(self, state: Any, left: Floats) -> Any:
        """A state of rows that can pay so much more: what costs more is not to be had."""
        payable = self.cost_table_.of_next(state.acquired) <= left[:, None]
        available = state.available & (state.acquired | payable)
        return replace(state, available=available, at_any_price=state.available)

    def _opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        return np.empty(0, dtype=np.intp)

    def _begin(self, rows: Rows) -> Any:
        """State of rows that have some covariates."""
        acquired = np.tile(rows.have, (len(rows.encoded), 1)) & rows.available
        return Seen(self._read(rows.encoded), rows.available, acquired)

    def _read(self, encoded: Floats) -> NDArray[Any]:
        """What the policy reads of encoded rows, one row each."""
        return encoded

    def _advance(self, state: Any, going: Bools, covariates: Ints) -> Any:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        return state.after(going, covariates)

    def _reasons(self, state: Any, decision: Decision) -> Reasons:
        """Why the policy decides so about one row; nothing where it does not weigh."""
        return Reasons()

    def consultation(self, known: Mapping[str, Any] | None = None) -> Consultation:
        """Begin a consultation about one row, of which some values may be known.

        Parameters
        ----------
        known : mapping of str to value, default=None
            Values by covariate name; they cost nothing.

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
        return Consultation(self, known)

    @one_blas_thread
    def acquire(
        self,
        X: Any,
        *,
        known: ArrayLike | None = None,
        providers: Mapping[str, Any] | None = None,
        cache: Cache | None = None,
        keys: Sequence[Hashable] | None = None,
    ) -> AcquisitionResult:
        """Run the policy on every row of X: acquire step by step, stop, classify.

        Parameters
        ----------
        X : array-like, data frame or torch tensor of shape (n_rows, n_covariates)
            The rows. NaN means that the value is not available for that row and cannot be
            acquired. The result of a tensor is tensors on its device, where AdaCOS, COS and Full
            Model also do the work.
        known : array-like of bool, default=None
            Mask of the values that are known from the start, of the shape of X, or one entry per
            covariate for all rows that have a value of it. They cost nothing, are used, and do not
            count as acquired. A recall certificate was earned without them and does not extend to
            such rows.
        providers : mapping of str to callable or Provider, default=None
            Functions that fetch or compute covariates, for the rows that need them only. A value
            that is in X is taken from there; a data frame may lack these columns.
        cache : mutable mapping, default=None
            What providers delivered, by covariate and key of the row; filled, and used in place of
            calls.
        keys : sequence, default=None
            A key for each row, by which the cache knows it again; rows with the same key are
            fetched once.

        Returns
        -------
        AcquisitionResult
            What was done with each row; with providers a `ProvidedResult`, which also has their
            calls.

        Warns
        -----
        ProviderWarning
            If a provider failed for good: the covariate then counts as not available.
        """
        check_is_fitted(self)
        if providers is not None:
            return self._acquire_from(providers, X, known, cache, keys)
        if is_tensor(X):
            return self._acquire_tensor(X, known)
        encoded = self._encode(X)
        result = run(self, encoded, self._known_mask(known, X, encoded))
        return replace(result, label=self.classes_[result.label])

    @property
    def _walks_tensors(self) -> bool:
        """Whether rows that lack nothing walk on the device of a tensor; others do in numpy."""
        return False

    def _acquire_tensor(self, X: Any, known: ArrayLike | None) -> AcquisitionResult:
        """`acquire` with a tensor: the result is tensors beside it, but for labels of words."""
        encoded = encode_tensor(self.encoder_, X)
        encoded = encoded if self._walks_tensors else host(encoded)
        result = run(self, encoded, self._known_mask(host(known), X, encoded))
        numbers = self.classes_.dtype.kind in "biuf"
        classes = like(result.label, self.classes_) if numbers else self.classes_
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
        result = provide(self, encoded, self._known_mask(known, X, encoded), desk)
        desk.warn()
        return replace(result, label=self.classes_[result.label])

    def _encode(self, X: Any) -> Floats:
        """Encoded values of rows like those of the training table."""
        return self.encoder_.transform(validate_table(self, X, reset=False))

    def _run(self, encoded: Floats) -> AcquisitionResult:
        """Encoded rows, of which nothing is known, walked to their stop; labels are 0, 1, …"""
        return run(self, encoded, np.zeros(len(self.encoder_.names), dtype=np.bool_))

    def _known_mask(self, known: ArrayLike | None, X: Any, encoded: Floats) -> Bools:
        """`known` as a mask for all rows, or one per row; a value that is known is not missing."""
        names = self.encoder_.names
        if known is None:
            return np.zeros(len(names), dtype=np.bool_)
        mask = np.asarray(known)
        shape = (len(encoded), len(names))
        if mask.dtype != np.bool_ or mask.shape not in (shape, shape[1:]):
            raise InvalidInputError(
                "known",
                f"must be a mask of shape {shape} or ({len(names)},)",
                f"{mask.dtype} of shape {mask.shape}",
                "Pass True where a value is known from the start.",
            )
        mask = np.asarray(in_fitted_order(self, X, mask))
        missing = np.isnan(host(encoded)[:, self.encoder_.first])
        if mask.ndim == 1:
            return np.asarray(mask & ~missing) if missing[:, mask].any() else mask
        contradiction = np.argwhere(mask & missing)
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
        """Label of each row after acquiring what the policy asks for.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows, see `acquire`.

        Returns
        -------
        ndarray or tensor of shape (n_rows,)
            The labels.
        """
        return self.acquire(X).label

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities at the stop.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_covariates)
            The rows, see `acquire`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probability of each class.
        """
        p = self.acquire(X).probability
        if p.ndim == 2:
            return p
        both: Floats = namespace(p).stack([1.0 - p, p], axis=1)
        return both

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.takes_many_classes
        tags.input_tags.allow_nan = True
        return tags

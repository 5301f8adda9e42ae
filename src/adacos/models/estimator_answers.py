"""What an estimator of scikit-learn or a rule says of encoded rows, as class probabilities."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from adacos.exceptions import InvalidInputError
from adacos.typing import Floats, Ints
from adacos.validation import listed

# What answers rows: a classifier, an object with `predict`, or a function of rows.
Answering: TypeAlias = BaseEstimator | Callable[[Floats], Any]


class EstimatorAnswers:
    """A fitted estimator or a rule, of which probabilities of the classes are asked.

    Attributes
    ----------
    estimator : has `predict_proba` or `predict`, or is a function of rows.
    classes : the classes.
    shares : (classes answered, classes) share of each class among the rows that are given an
        answer, where there is no `predict_proba`; else None.
    names : the covariates that it reads.
    digest : the same for equal estimators, also in another process.
    """

    # Without a __dict__ the digest of a decider takes it by its `repr`.
    __slots__ = ("classes", "digest", "estimator", "names", "shares")

    def __init__(
        self,
        estimator: Answering,
        classes: NDArray[Any],
        names: tuple[str, ...],
        shares: Floats | None = None,
    ) -> None:
        self.estimator: Any = estimator
        self.classes, self.names = classes, names
        self.shares = shares
        self.digest = _digest(estimator)

    def __repr__(self) -> str:
        return f"EstimatorAnswers({self.digest}, {None if self.shares is None else self.shares!r})"

    def probabilities(self, values: Floats) -> Floats:
        """Probability of every class for rows of encoded values, (rows, classes)."""
        if self.shares is not None:
            return np.asarray(self.shares[self.answers(values)])
        with self._informed_by_missing(values):
            given = np.asarray(self.estimator.predict_proba(values), dtype=np.float64)
        result = np.zeros((len(values), len(self.classes)))
        # A class that no training row of a fold has is absent.
        result[:, self._numbers(self.estimator.classes_)] = given
        if not np.isfinite(given).all() or (given < 0).any():
            raise InvalidInputError(
                "estimator",
                "must give probabilities between 0 and 1",
                f"{given.min():g} to {given.max():g}",
                "Correct its predict_proba.",
            )
        return result

    def answers(self, values: Floats) -> Ints:
        """Number of the class that it answers for each row."""
        predict = getattr(self.estimator, "predict", self.estimator)
        with self._informed_by_missing(values):
            given = np.asarray(predict(values))
        if given.shape != (len(values),):
            raise InvalidInputError(
                "estimator",
                "must answer each row with one class",
                f"an answer of shape {given.shape} for {len(values)} rows",
                "Let it take an array of rows and return an array of as many classes.",
            )
        if given.dtype == np.bool_ and self.classes.dtype != np.bool_ and len(self.classes) == 2:
            return given.astype(np.intp)
        return self._numbers(given)

    def _numbers(self, given: NDArray[Any]) -> Ints:
        strange = np.setdiff1d(given, self.classes)
        if len(strange):
            raise InvalidInputError(
                "estimator",
                f"must answer with the classes {listed(self.classes.tolist())}",
                listed(strange.tolist()[:5]),
                "Take a classifier, or let the rule return these.",
            )
        return np.searchsorted(self.classes, given)

    @contextmanager
    def _informed_by_missing(self, values: Floats) -> Iterator[None]:
        """Say in words that an estimator takes no missing values."""
        try:
            yield
        except ValueError as error:
            refuse_missing(self.estimator, values, self.names, error)
            raise


def learned(
    estimator: Answering,
    values: Floats,
    labels: Ints,
    classes: NDArray[Any],
    names: tuple[str, ...],
) -> Any:
    """A copy of the estimator fitted to rows of encoded values; a rule as it is."""
    if not hasattr(estimator, "fit"):
        return estimator
    copy = clone(estimator)
    try:
        return copy.fit(values, classes[labels])
    except ValueError as error:
        refuse_missing(estimator, values, names, error)
        raise


def refuse_missing(
    estimator: Answering, values: Floats, names: tuple[str, ...], error: ValueError
) -> None:
    """Raise a clear error where an estimator failed because values are missing."""
    missing = np.isnan(values)
    if not missing.any() or "nan" not in str(error).lower():
        return
    kind = type(estimator).__name__
    raise InvalidInputError(
        "X",
        f"must have a value of each of {listed(names)}: {kind} takes no missing values",
        f"{int(missing.any(axis=1).sum()):,} of {len(values):,} rows without one",
        f"Put an imputer before it, make_pipeline(SimpleImputer(), {kind}()), or take "
        "HistGradientBoostingClassifier.",
    ) from error


def _digest(estimator: object) -> str:
    """Sixteen hexadecimal digits of what an estimator is made of."""
    try:
        content = pickle.dumps(estimator, protocol=5)
    except Exception:
        # A function inside another one cannot be pickled.
        code = getattr(estimator, "__code__", None)
        text = repr(type(estimator)) if code is None else f"{code.co_code!r}{code.co_consts!r}"
        content = text.encode()
    return hashlib.sha256(content).hexdigest()[:16]

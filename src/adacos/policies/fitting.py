"""What surrounds every `fit`: warnings once, and a refusal of what a policy does not take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import numpy as np

from adacos.exceptions import TableWarning
from adacos.typing import Floats

# What `fit` may take of each row, and who takes it.
_WEIGHED = "AdaCOSClassifier, BranchingClassifier, COSClassifier and FullModelClassifier do."
TAKEN_BY = {
    "sample_weight": _WEIGHED,
    "groups": "AutoPolicyClassifier, PlanningClassifier and TargetRecallClassifier, around any "
    f"other policy, do, and {_WEIGHED}",
}
# Whether a fit is under way, inside which others are made: they are not checked each by itself.
_FITTING: ContextVar[bool] = ContextVar("fitting", default=False)


@contextmanager
def inner_fits() -> Iterator[None]:
    """Fits and answers in here are parts of something larger: of their rows nothing is said."""
    token = _FITTING.set(True)
    try:
        yield
    finally:
        _FITTING.reset(token)


def warn_of_empty_rows(encoded: Floats) -> None:
    """Warn of rows without a single value, about which a policy can only answer blindly."""
    empty = 0 if _FITTING.get() else int(np.isnan(encoded).all(axis=1).sum())
    if empty:
        warnings.warn(
            f"{empty:,} of {len(encoded):,} rows have no value of any covariate. NaN means that a "
            "value is unavailable, so that nothing is acquired for them and all have one answer. "
            "Where values may still be acquired, policy.next(X) says which to acquire.",
            TableWarning,
            stacklevel=4,
        )


def checked(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Warn once of what looks wrong about the rows that were learned from.

    An estimator whose fit fails remains as it was before: fitted or not.
    """

    @wraps(fit)
    def fitting(self: Any, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        if _FITTING.get():
            return fit(self, X, y, *args, **kwargs)
        before = dict(vars(self))
        try:
            with inner_fits():
                result = fit(self, X, y, *args, **kwargs)
        except BaseException:
            # Nothing half-fitted is left behind.
            vars(self).clear()
            vars(self).update(before)
            raise
        # A table that is read in pieces has the name of its column in the place of the classes.
        groups = kwargs.get("groups")
        found = [] if self._streams_from(X) else self.check(X, y, groups=groups)
        # Of copies the fit has warned itself, where it found groups for its splits.
        told = {"copies"}
        if kwargs.get("sample_weight") is not None:
            # Weights answer the one, and the other compares with rows that are not weighed.
            told |= {"class_shares", "misfit", "no_better"}
        text = "\n".join(f"- {suspicion}" for suspicion in found if suspicion.kind not in told)
        if text:
            warnings.warn(f"The training rows:\n{text}", TableWarning, stacklevel=2)
        return result

    return fitting


def refusing(fit: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Name those that take weights or groups where `fit` does not; its signature stays."""

    @wraps(fit)
    def refusing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name in kwargs:
            raise TypeError(
                f"{type(self).__name__}.fit() does not support {name}. {TAKEN_BY[name]}"
            )
        return fit(self, *args, **kwargs)

    return refusing

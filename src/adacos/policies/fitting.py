"""What surrounds every `fit`: warnings once, and a refusal of what a policy does not take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from adacos.costs import Costs
from adacos.error_costs import check_named_as_classes
from adacos.exceptions import InvalidInputError, TableWarning
from adacos.typing import Floats, Ints
from adacos.validation import choices, listed

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

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
        named = {"copies"}
        if kwargs.get("sample_weight") is not None:
            # Weights answer the one, and the other compares with rows that are not weighed.
            named |= {"class_shares", "misfit", "no_better"}
        text = "\n".join(f"- {suspicion}" for suspicion in found if suspicion.kind not in named)
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


def check_decisions(policy: BasePolicy, costs: Costs, decisions: tuple[str, ...]) -> None:
    """Refuse decisions in place of labels where they cannot be taken, or are named amiss."""
    if not policy.takes_decisions:
        raise InvalidInputError(
            "costs",
            f"must be of labels: {type(policy).__name__} knows no other decisions",
            listed(decisions),
            "Leave decisions out, or take AdaCOSClassifier, BranchingClassifier, "
            "COSClassifier, FullModelClassifier, PlanningClassifier or AutoPolicyClassifier.",
        )
    classes = policy.classes_.tolist()
    unknown = [label for label in costs.protects if str(label) not in map(str, classes)]
    if unknown:
        raise InvalidInputError(
            "protects",
            "must name classes of y",
            unknown,
            choices(map(str, unknown), [*map(str, classes)], "The classes are"),
        )
    check_named_as_classes(decisions, costs.matrix_for(len(policy.classes_)), policy.classes_)


def fit_in_groups(
    policy: BasePolicy, X: Any, y: Any, groups: Ints | None, sample_weight: Floats | None = None
) -> Any:
    """Fit a policy, with the groups of the rows if it takes them, and with weights if there are."""
    given: dict[str, Any] = {}
    if groups is not None and has_fit_parameter(policy, "groups"):
        given["groups"] = groups
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    return policy.fit(X, y, **given)

"""What one policy may take over from the fit of another."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from adacos.costs import Costs
from adacos.exceptions import InvalidInputError
from adacos.policies.orders import BY_ALL_COSTS

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy


def check_shareable(policy: SequencePolicy, fitted: Any) -> None:
    """Refuse parameters and costs that the fit of another policy cannot honour, by name."""
    if getattr(fitted, "sequence_model", None) is None:
        raise InvalidInputError(
            "fitted",
            "must be a fitted policy over a set sequence",
            type(fitted).__name__,
            "For example COSClassifier(costs).from_model(AdaCOSClassifier(costs).fit(X, y)).",
        )
    confidence = policy.recall_aim.recall_confidence
    if confidence is not None:
        raise InvalidInputError(
            "recall_confidence",
            "must be None: a model that is fitted already has no calibration rows",
            confidence,
            "Call calibrate(X, y, confidence=...) afterwards with rows the model has not seen.",
        )
    defaults = {name: p.default for name, p in signature(type(policy)).parameters.items()}
    kept = ("sequence", "n_splines", "strengths", "cv", "random_state", "budget", "monotonic_cst")
    for name in kept:
        own, other = getattr(policy, name), getattr(fitted, name)
        if name == "sequence" and own == fitted.sequence_:
            continue
        if not (_same(own, defaults[name]) or _same(own, other)):
            raise InvalidInputError(
                name,
                "must be that of the fitted policy, or not given: from_model learns nothing",
                own,
                f"It was fitted with {name}={other!r}; to change it, call fit.",
            )
    costs = (policy.costs or Costs()).bind(fitted.encoder_.names, len(fitted.classes_))
    covariates = costs.covariates
    fitted_with = fitted.cost_table_.covariates
    if policy.sequence not in BY_ALL_COSTS and not np.array_equal(covariates, fitted_with):
        k = int(np.flatnonzero(covariates != fitted_with)[0])
        raise InvalidInputError(
            "costs",
            "must have the covariate costs of the fitted policy, whose order follows from them",
            f"{fitted.encoder_.names[k]} at {covariates[k]:g} instead of {fitted_with[k]:g}",
            "Call fit: other covariate costs may want another order.",
        )


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters are equal; splits are, part by part, whatever holds their rows."""
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(_same, one, other))
    if hasattr(one, "split") and type(one) is type(other) and not isinstance(one, str):
        # A copy of a splitter deals the rows out alike.
        return _same(sorted(vars(one)), sorted(vars(other))) and all(
            _same(value, getattr(other, name)) for name, value in vars(one).items()
        )
    return bool(np.array_equal(one, other))

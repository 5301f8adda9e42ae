"""What one policy may take over from the fit of another."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from adacos.costs import Costs
from adacos.exceptions import InvalidInputError


def check_shareable(policy: Any, fitted: Any) -> None:
    """Refuse parameters and costs that the fit of another policy cannot honour, by name."""
    if policy.recall_confidence is not None:
        raise InvalidInputError(
            "recall_confidence",
            "must be None: a model that is fitted already has no rows set aside",
            policy.recall_confidence,
            "Call calibrate(X, y, confidence=...) afterwards with rows the model has not seen.",
        )
    defaults = {name: p.default for name, p in signature(type(policy)).parameters.items()}
    for name in ("sequence", "n_splines", "strengths", "cv", "random_state"):
        own = getattr(policy, name)
        if own not in (defaults[name], getattr(fitted, name)):
            raise InvalidInputError(
                name,
                "must be that of the fitted policy, or left out: from_model learns nothing",
                own,
                f"It was fitted with {name}={getattr(fitted, name)!r}; to change it, call fit.",
            )
    costs = (policy.costs or Costs()).bind(fitted.encoder_.names).covariates
    other = fitted.cost_table_.covariates
    if policy.sequence == "group_lasso" and not np.array_equal(costs, other):
        k = int(np.flatnonzero(costs != other)[0])
        raise InvalidInputError(
            "costs",
            "must have the covariate costs of the fitted policy, whose order follows from them",
            f"{fitted.encoder_.names[k]} at {costs[k]:g} instead of {other[k]:g}",
            "Call fit: other covariate costs may want another order.",
        )

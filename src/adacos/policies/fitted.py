"""Whether what a function was given is a fitted policy."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy


def fitted_policy(policy: object, parameter: str = "policy") -> BasePolicy:
    """The policy, refused by name where it is something else, or not fitted."""
    if not isinstance(policy, BasePolicy):
        remedy = "Fit a policy first; load(path) reads one from a model file."
        rule = "must be a fitted policy"
        raise InvalidInputError(parameter, rule, type(policy).__name__, remedy)
    check_is_fitted(policy)
    return policy

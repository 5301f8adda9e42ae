"""The parameters with which a policy was fitted, whatever `set_params` makes of them afterwards.

What is stated of a fitted policy is stated by these, and no file takes others.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from adacos.decision import digest_of
from adacos.policies.recall import RecallAim

_ASKED = ("target_recall", "recall_confidence")


class ParametersOfFit(BaseEstimator):
    """An estimator that keeps the parameters of its fit."""

    # An unfitted one with the parameters, and what `calibrate` was asked for in place of some.
    _fitted_with: Any
    _certified_aim: dict[str, Any]

    def _keep_parameters(self) -> None:
        """Keep the parameters as they are now."""
        self._certified_aim = {}
        self._fitted_with = clone(self)

    @property
    def as_fitted(self) -> Self:
        """The policy with the parameters of its fit, whatever `set_params` made of them since."""
        if "_fitted_with" not in vars(self):
            return self
        policy = copy(self)
        # A copy is without the training rows.
        parameters = {**self._fitted_with.get_params(deep=False), **self._certified_aim}
        policy.__dict__.update({**vars(self), **parameters})
        return policy

    @property
    def changed_parameters(self) -> list[str]:
        """Names of the parameters that are no longer those of the fit."""
        now, then = _leaves(self), _leaves(vars(self).get("_fitted_with", self))
        return [k for k in sorted({*now, *then}) if now.get(k) != then.get(k)]

    def _keep_aim(self, aim: RecallAim, fitted_with: Self) -> None:
        """Keep what was certified, and the parameters of the fit but for those about recalls."""
        own = self.get_params(deep=False)
        # What `calibrate` can be asked for; how the recall is meant stays as it was.
        asked = {k: v for k, v in asdict(aim).items() if k in own and k in _ASKED}
        self._fitted_with = fitted_with.set_params(**{name: own[name] for name in asked})
        self._certified_aim = asked


def _leaves(policy: BaseEstimator) -> dict[str, str]:
    """Digest of each parameter, of those inside estimators too."""
    return {
        name: type(value).__name__ if hasattr(value, "get_params") else digest_of(value)
        for name, value in policy.get_params(deep=True).items()
        if name.rpartition("__")[2] != "verbose"
    }

"""The refusal of a cost of rounds, by policies that ask one covariate after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adacos.exceptions import InvalidInputError

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy


def refuse_rounds(policy: BasePolicy, *, why: str) -> None:
    """Refuse a cost of rounds."""
    if policy.costs is not None and policy.costs.round_cost > 0:
        raise InvalidInputError(
            "costs",
            f"cannot have a round cost: {why}",
            f"round_cost={policy.costs.round_cost:g}",
            "AdaCOSClassifier and COSClassifier order covariates together.",
        )

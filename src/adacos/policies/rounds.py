"""The refusal of a cost of rounds, by policies that ask one covariate after the other."""

from __future__ import annotations

from typing import Any

from adacos.exceptions import InvalidInputError


def refuse_rounds(policy: Any, *, why: str) -> None:
    """Refuse a cost of rounds."""
    if policy.costs is not None and policy.costs.round_cost > 0:
        raise InvalidInputError(
            "costs",
            f"cannot have a round cost: {why}",
            f"round_cost={policy.costs.round_cost:g}",
            "AdaCOSClassifier and COSClassifier order covariates together.",
        )

"""The model card: what the policy may ask for, what it costs, and what is promised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from adacos import __version__
from adacos.consultation import fingerprint
from adacos.policies.base import BasePolicy
from adacos.service.settings import Description

NOTICE = "Research use only: not a medical device, and no substitute for clinical judgement."


def model_card(policy: BasePolicy, descriptions: Mapping[str, Description]) -> dict[str, Any]:
    """The card as plain JSON values."""
    costs = policy.cost_table_
    titles = panel_titles(policy)
    sets = getattr(policy, "sets_", None)
    expected = getattr(policy, "expected_cost_", None)
    return {
        "model": fingerprint(policy),
        "policy": type(policy).__name__,
        "version": __version__,
        "classes": policy.classes_.tolist(),
        "covariates": [
            _covariate(policy, k, titles, descriptions.get(name, Description()))
            for k, name in enumerate(policy.encoder_.names)
        ],
        "panels": [
            {
                "name": title,
                "shared_cost": float(costs.shared[number]),
                "covariates": [
                    name
                    for name, own in zip(costs.names, costs.panel.tolist(), strict=True)
                    if own == number
                ],
            }
            for number, title in enumerate(titles)
        ],
        "misclassification": policy.rule_.matrix.tolist(),
        "sets": None if sets is None else [list(names) for names in sets],
        "expected_cost": None if expected is None else [float(amount) for amount in expected],
        "target_recall": getattr(policy, "target_recall", None),
        "recall_estimate": getattr(policy, "recall_estimate_", None),
        "certificate": certificate_of(policy),
        "notice": NOTICE,
    }


def panel_titles(policy: BasePolicy) -> list[str]:
    """Names of the panels in the order of their numbers in the cost table."""
    return [] if policy.costs is None else list(policy.costs.panels)


def certificate_of(policy: BasePolicy) -> dict[str, Any] | None:
    """The recall certificate of a calibrated policy, and its text."""
    certificate = getattr(policy, "certificate_", None)
    if certificate is None:
        return None
    return {**asdict(certificate), "text": str(certificate)}


def _covariate(
    policy: BasePolicy, k: int, panels: list[str], description: Description
) -> dict[str, Any]:
    encoder, costs = policy.encoder_, policy.cost_table_
    low, high = float(encoder.low[k]), float(encoder.high[k])
    return {
        "name": encoder.names[k],
        "title": description.title or encoder.names[k],
        "unit": description.unit,
        "help": description.help,
        "kind": encoder.kinds[k],
        "low": None if math.isnan(low) else low,
        "high": None if math.isnan(high) else high,
        "categories": list(encoder.categories[k]),
        "cost": float(costs.covariates[k]),
        "panel": panels[costs.panel[k]] if costs.panel[k] >= 0 else None,
    }

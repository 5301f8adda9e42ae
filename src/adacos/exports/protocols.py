"""A protocol as plain values: its tests with what follows each, its answers, and prices.

Every value may be unavailable, because a protocol says what it does then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adacos.costs import CostTable
from adacos.deciders.protocol import ProtocolDecider
from adacos.decision import probability_at
from adacos.protocols.graph import ProtocolTest


def protocol_parts(decider: ProtocolDecider, cards: list[dict[str, Any]]) -> dict[str, Any]:
    """What `policy.json` holds of a protocol; `cards` describe all covariates."""
    graph, encoder = decider.graph, decider.encoder
    used = sorted({test.covariate for test in graph.tests})
    n = len(graph.tests)
    log_odds = decider.log_odds_at[n:]
    _, risk = decider.rule.answer(log_odds, graph.labels)
    answers = [
        {"label": label, "probability": probability, "error_cost": error}
        for label, probability, error in zip(
            graph.labels.tolist(), probability_at(log_odds).tolist(), risk.tolist(), strict=True
        )
    ]
    return {
        "covariates": [cards[k] | _price(decider.costs, k) for k in used],
        "protocol": {
            "start": graph.start,
            "tests": [
                _test(test, used.index(test.covariate), encoder.categories[test.covariate])
                for test in graph.tests
            ],
            "answers": answers,
        },
    }


def _price(costs: CostTable, k: int) -> dict[str, Any]:
    """What a covariate costs, and how much less once another member of its panel is paid."""
    panel = int(costs.panel[k])
    discount = 0.0 if panel < 0 else float(np.ravel(costs.discount)[k])
    return {"cost": float(costs.covariates[k]), "panel": panel, "discount": discount}


def _test(test: ProtocolTest, covariate: int, categories: tuple[str, ...]) -> dict[str, Any]:
    values: list[Any] = test.values.tolist()
    if len(test.levels):
        values = [name for name, own in zip(categories, test.levels, strict=True) if own]
    return {
        "covariate": covariate,
        "operator": test.operator,
        "values": values,
        "yes": test.yes,
        "no": test.no,
        "unavailable": test.unknown,
    }

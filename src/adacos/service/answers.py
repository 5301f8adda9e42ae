"""Answers of a policy to requests: consultations replayed from their values, rows scored at once.

The policy is only read, so one object serves all threads. A step is a function of the request
alone, and those asked for most recently are kept ready.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from adacos.columns import ColumnTable
from adacos.consultation import Consultation, check_value
from adacos.exceptions import InvalidInputError
from adacos.policy import BasePolicy
from adacos.service.schemas import ScoreRequest, StepRequest
from adacos.steps import Value

STEPS_KEPT = 2048

Items = tuple[tuple[str, Value], ...]


class Answers:
    """What a fitted policy answers."""

    def __init__(self, policy: BasePolicy) -> None:
        self.policy = policy
        self._step = lru_cache(maxsize=STEPS_KEPT)(self._compute_step)

    def step(self, request: StepRequest) -> bytes:
        """The next step as JSON."""
        return self._step(
            tuple(request.known.items()),
            tuple(request.acquired.items()),
            tuple(request.unavailable),
        )

    def consultation(self, request: StepRequest) -> Consultation:
        """The consultation that the request describes."""
        return self._replay(request.known, request.acquired, request.unavailable)

    def score(self, request: ScoreRequest) -> dict[str, Any]:
        """Every row acquired and classified."""
        encoder = self.policy.encoder_
        columns = {}
        warnings = []
        for k, name in enumerate(encoder.names):
            cells = [row.get(name) for row in request.rows]
            for number, cell in enumerate(cells):
                if cell is not None:
                    cells[number], warning = check_value(encoder, k, cell)
                    if warning is not None:
                        warnings.append({"row": number, **vars(warning)})
            if encoder.categories[k]:
                columns[name] = np.array(["" if c is None else c for c in cells], dtype=np.str_)
            else:
                columns[name] = np.array([np.nan if c is None else c for c in cells])
        known = np.isin(encoder.names, request.known) if request.known else None
        table: Any = ColumnTable(columns)
        if not hasattr(self.policy, "feature_names_in_"):
            # The policy was fitted on an array, which has no names.
            table = np.column_stack(list(columns.values()))
        result = self.policy.acquire(table, known=known)
        labels = result.label.tolist()
        return {
            "results": [
                {
                    "label": labels[row],
                    "probability": float(result.probability[row]),
                    "acquired": list(result.covariates(row)),
                    "cost": float(result.cost[row]),
                    "expected_cost": float(result.expected_cost[row]),
                }
                for row in range(len(result))
            ],
            "warnings": sorted(warnings, key=lambda warning: int(warning["row"])),
        }

    def _compute_step(self, known: Items, acquired: Items, unavailable: tuple[str, ...]) -> bytes:
        step = self._replay(dict(known), dict(acquired), list(unavailable)).next()
        return as_json(step.to_dict())

    def _replay(
        self, known: dict[str, Value], acquired: dict[str, Value], unavailable: list[str]
    ) -> Consultation:
        for name in acquired:
            if name in known:
                raise InvalidInputError(
                    f"acquired.{name}", "was known from the start", "", "Leave it out."
                )
        for position, name in enumerate(unavailable):
            if name in known or name in acquired:
                raise InvalidInputError(
                    f"unavailable.{position}", "has a value", "", "Leave it out of one of them."
                )
        consultation = self.policy.consultation(known)
        if acquired:
            consultation.observe(acquired)
        if unavailable:
            consultation.unavailable(*unavailable)
        return consultation


def as_json(content: Any) -> bytes:
    """Compact JSON, in ASCII so that any text survives."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")

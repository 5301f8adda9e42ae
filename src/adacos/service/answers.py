"""Answers of a policy to requests: consultations replayed from their values, rows scored at once.

The policy is only read, so one object serves all threads. A step is a function of the request
alone, and those asked for most recently are kept ready.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from adacos.card import panel_titles
from adacos.consultation import Consultation, check_value, fingerprint
from adacos.consultation.coverage import not_covered
from adacos.consultation.steps import Acquire
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import inner_fits
from adacos.reasons import Value
from adacos.service.encoding import as_json
from adacos.service.schemas import Course, Items, Lowered, ScoreRequest, StepRequest
from adacos.tables.columns import ColumnTable
from adacos.tables.description import description_of

STEPS_KEPT = 2048
_ROWS_AT_A_TIME = 1000


class Answers:
    """What a fitted policy answers."""

    def __init__(self, policy: BasePolicy) -> None:
        self.policy, self.model = policy, fingerprint(policy)
        self._computed = lru_cache(maxsize=STEPS_KEPT)(self._compute_step)

    def step(self, request: StepRequest) -> bytes:
        """The next step as JSON."""
        return self._computed(
            tuple(request.known.items()),
            tuple(request.acquired.items()),
            tuple(request.ordered),
            tuple(request.unavailable),
            request.stop,
            self.key(request),
            (tuple(request.must), tuple(request.never)),
        )

    def key(self, request: StepRequest) -> Hashable:
        """What decides which of two policies the row has; the same for all rows if there is one."""
        return 0 if request.key is None or self.policy.mixture_ is None else request.key

    def consultation(self, request: StepRequest) -> Consultation:
        """The consultation that the request describes."""
        consultation = self._replay(
            request.known,
            request.acquired,
            request.ordered,
            request.unavailable,
            self.key(request),
            (request.must, request.never),
        )
        # One that has come to its end is not stopped early, whatever was asked for.
        if request.stop and isinstance(consultation.next(), Acquire):
            consultation.stop()
        return consultation

    def course(self, consultation: Consultation) -> Course:
        """How a finished consultation went; see `CaseAnswer`."""
        if consultation.stopped:
            return "stopped"
        return "departed" if consultation.departures else "followed"

    def score(self, request: ScoreRequest) -> dict[str, Any]:
        """Every row acquired and classified, some at a time to bound the memory."""
        results, warnings = [], []
        for first in range(0, len(request.rows), _ROWS_AT_A_TIME):
            rows = request.rows[first : first + _ROWS_AT_A_TIME]
            keys = request.keys or range(len(request.rows))
            answers, odd = self._score_piece(rows, request.known, keys[first:][: len(rows)])
            results += answers
            warnings += [{**warning, "row": first + warning["row"]} for warning in odd]
        return {"model": self.model, "results": results, "warnings": warnings}

    def _score_piece(
        self, rows: list[dict[str, Any]], names_known: list[str], keys: Sequence[Hashable]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Answers for some rows, and warnings with the number of the row among them."""
        encoder, said = self.policy.encoder_, description_of(self.policy)
        columns = {}
        warnings = []
        for k, name in enumerate(encoder.names):
            cells = [row.get(name) for row in rows]
            for number, cell in enumerate(cells):
                if cell is not None:
                    cells[number], warning = check_value(encoder, k, cell, said)
                    if warning is not None:
                        warnings.append({"row": number, **vars(warning)})
            if encoder.categories[k]:
                columns[name] = np.array(["" if c is None else c for c in cells], dtype=np.str_)
            else:
                columns[name] = np.array([np.nan if c is None else c for c in cells])
        known = None
        if names_known:
            known = np.tile(np.isin(encoder.names, names_known), (len(rows), 1))
        table: Any = ColumnTable(columns)
        if not hasattr(self.policy, "feature_names_in_"):
            # The policy was fitted on an array, which has no names.
            table = np.column_stack(list(columns.values()))
        with inner_fits():
            result = self.policy.acquire(table, known=known, keys=keys)
        labels, chances = result.label.tolist(), self._probabilities(result)
        answers = [
            {
                "label": labels[row],
                **chances[row],
                "acquired": list(result.covariates(row)),
                "cost": float(result.cost[row]),
                "expected_cost": float(result.expected_cost[row]),
            }
            for row in range(len(result))
        ]
        return answers, sorted(warnings, key=lambda warning: int(warning["row"]))

    def _probabilities(self, result: AcquisitionResult) -> list[dict[str, Any]]:
        """How probable each row's answer is: the fields of `RowAnswer` that say so."""
        if result.probability.ndim == 1:
            return [{"probability": p} for p in result.probability.tolist()]
        names = list(map(str, self.policy.classes_.tolist()))
        label = result.probability.argmax(axis=1)
        if self.policy.cost_table_.decisions is None:
            label = self.policy.numbers_of(result.label)
        own = result.probability[np.arange(len(label)), label].tolist()
        return [
            {"probability": p, "probabilities": dict(zip(names, each, strict=True))}
            for p, each in zip(own, result.probability.tolist(), strict=True)
        ]

    def _compute_step(
        self,
        known: Items,
        acquired: Items,
        ordered: tuple[str, ...],
        unavailable: tuple[str, ...],
        stop: bool,
        key: Hashable,
        chosen: tuple[Sequence[str], Sequence[str]],
    ) -> bytes:
        consultation = self._replay(
            dict(known), dict(acquired), list(ordered), list(unavailable), key, chosen
        )
        step = consultation.next()
        if stop and isinstance(step, Acquire):
            step = consultation.stop().next()
        more: dict[str, Any] = (
            {
                "lowered": [
                    asdict(item) for item in self._lowered(step.covariates, consultation.values)
                ],
                "alternatives": [asdict(item) for item in consultation.alternatives()],
            }
            if isinstance(step, Acquire)
            else {
                "stopped_early": consultation.stopped,
                "not_covered": not_covered(consultation.departures),
            }
        )
        more |= {"model": self.model, "order": [name for name, _ in acquired]}
        return as_json({**step.to_dict(), **more})

    def _lowered(self, covariates: tuple[str, ...], had: Collection[str]) -> list[Lowered]:
        """What each panel takes off the cost of these covariates."""
        costs = self.policy.cost_table_
        answers = []
        for number, title in enumerate(panel_titles(self.policy)):
            members = [costs.names[k] for k in np.flatnonzero(costs.panel == number)]
            asked = [name for name in covariates if name in members]
            there = [name for name in members if name in had]
            # The first member of all pays its full cost, every other one its discounted cost.
            spared = [costs.names.index(name) for name in (asked if there else asked[1:])]
            amount = float(costs.shared[number]) * len(spared)
            amount += 0.0 if costs.excess is None else float(costs.excess[spared].sum())
            if asked and amount > 0:
                answers.append(Lowered(title, tuple(asked), tuple(there), amount))
        return answers

    def _replay(
        self,
        known: dict[str, Value],
        acquired: dict[str, Value],
        ordered: list[str],
        unavailable: list[str],
        key: Hashable,
        chosen: tuple[Sequence[str], Sequence[str]],
    ) -> Consultation:
        for name in acquired:
            if name in known:
                raise InvalidInputError(
                    f"acquired.{name}", "was known from the start", "", "Leave it out."
                )
        for field, names in (("unavailable", unavailable), ("ordered", ordered)):
            for position, name in enumerate(names):
                if name in known or name in acquired:
                    raise InvalidInputError(
                        f"{field}.{position}", "has a value", "", "Leave it out of one of them."
                    )
        for position, name in enumerate(ordered):
            if name in unavailable or name in ordered[:position]:
                raise InvalidInputError(
                    f"ordered.{position}", "is listed twice", "", "Leave it out of one of them."
                )
        must, never = chosen
        consultation = self.policy.consultation(known, key=key, must=must, never=never)
        if self.policy.cost_table_.immediate is not None:
            acquired, ordered, unavailable = _in_rounds(
                consultation, acquired, ordered, unavailable
            )
        if acquired:
            consultation.observe(acquired)
        if ordered:
            consultation.order(*ordered)
        if unavailable:
            consultation.unavailable(*unavailable)
        return consultation


def _in_rounds(
    consultation: Consultation,
    acquired: dict[str, Value],
    ordered: list[str],
    unavailable: list[str],
) -> tuple[dict[str, Value], list[str], list[str]]:
    """Observe values in the batches in which they were asked for; returns those that were not.

    What is ordered and not back is ordered together with the values of its batch; what is
    unavailable is reported when it is asked for, after the values of its batch.
    """
    left, due, gone = dict(acquired), list(ordered), list(unavailable)
    while (left or due) and isinstance(step := consultation.next(), Acquire):
        batch = {name: left.pop(name) for name in step.covariates if name in left}
        waiting = [name for name in step.covariates if name in due]
        absent = [name for name in step.covariates if name in gone]
        if waiting:
            consultation.order(*(n for n in step.covariates if n in batch or n in waiting))
            due = [name for name in due if name not in waiting]
        if batch:
            consultation.observe(batch)
        if absent:
            consultation.unavailable(*absent)
            gone = [name for name in gone if name not in absent]
        if len(batch) + len(absent) < len(step.covariates):
            break
    return left, due, gone

"""The routes of the case log: record a case, record its outcome, look at it, read the summary.

A case is of a version, which its ETag holds: how many outcomes were recorded for it. Whoever
corrects an outcome names the version that is to be corrected, so that nobody overwrites what they
have not seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from adacos.consultation.steps import Acquire
from adacos.policies.base import BasePolicy
from adacos.service.access import Threads
from adacos.service.answers import Answers
from adacos.service.case_chain import Author
from adacos.service.case_log import Case, CaseLog, UnseenError
from adacos.service.database import CONNECTIONS
from adacos.service.encoding import as_json
from adacos.service.errors import REFUSALS, Refusals
from adacos.service.logs import REQUEST_ID
from adacos.service.promises import Promises, promises_of
from adacos.service.routing import NAMES_MODEL, json_answer, takes
from adacos.service.schemas import (
    CASE_ID,
    CaseAnswer,
    CaseRequest,
    OutcomeRequest,
    Problem,
    requests_for,
)
from adacos.service.settings import Settings
from adacos.service.summary import Summary, summary

# Longer than any timeout of the database, which tells more than ours.
_PATIENCE = 4.0
_MISSING: Refusals = {404: {"model": Problem, "description": "No such case"}}
_CONFLICT: Refusals = {409: {"model": Problem, "description": "Not finished, or in conflict"}}
_UNSEEN: Refusals = {
    412: {"model": Problem, "description": "The case is not of the version that If-Match names"},
    428: {"model": Problem, "description": "There is an outcome, and no If-Match names it"},
}
CaseId = Annotated[str, Path(pattern=CASE_ID)]
IfMatch = Annotated[
    str | None,
    Header(description="The ETag of the case whose outcome is corrected; not for its first."),
]


class PolicyCases:
    """One policy and the log of its cases; all methods but `threads` wait for the database."""

    def __init__(self, policy: BasePolicy, log: CaseLog) -> None:
        self.log = log
        self.threads = Threads(CONNECTIONS, _PATIENCE, waiting=2 * CONNECTIONS)
        self._policy, self._answers = policy, Answers(policy)
        self._classes, self._decisions = policy.classes_.tolist(), policy.decisions_.tolist()
        self._promises = promises_of(policy)
        self._model = self._promises.model

    def record(self, body: CaseRequest, author: Author) -> tuple[dict[str, Any], bool]:
        """Record a case; how it is shown, and whether it is new."""
        consultation = self._answers.consultation(body)
        step = consultation.next()
        if isinstance(step, Acquire):
            raise HTTPException(
                409,
                f"The consultation is not finished: {', '.join(step.covariates)} comes next. "
                'If it was decided early, send "stop": true.',
            )
        more: dict[str, Any] = {"stop": True} if consultation.stopped else {}
        if self._answers.key(body) != 0:
            more["key"] = body.key
        chosen = {"must": body.must, "never": body.never, "reason": body.reason.strip()}
        more |= {name: value for name, value in chosen.items() if value}
        case = Case(
            id=body.id,
            model=self._model,
            course=self._answers.course(consultation),
            consultation={
                "known": body.known,
                "acquired": body.acquired,
                "unavailable": sorted(body.unavailable),
                **more,
            },
            label=self._decisions.index(step.label),
            probability=step.probability,
            cost=step.cost,
            expected_cost=step.expected_cost,
        )
        recorded, new = self.log.record(case, author)
        if (recorded.model, recorded.consultation) != (case.model, case.consultation):
            raise HTTPException(409, "A case with this id was recorded already, with other values.")
        return self._shown(recorded), new

    def record_outcome(
        self, case_id: str, outcome: Any, author: Author, if_match: str | None
    ) -> dict[str, Any]:
        """Record an outcome; how its case is shown."""
        self._find(case_id)
        label, seen = self._classes.index(outcome), _versions(if_match)
        try:
            return self._shown(self.log.set_outcome(case_id, label, author, seen))
        except UnseenError as error:
            tag = {"etag": _tag(error.case.version)}
            if error.seen is None:
                detail = "There is an outcome already. To correct it, name its ETag in If-Match."
                raise HTTPException(428, detail, tag) from None
            detail = "Somebody else has recorded an outcome meanwhile: look at it first."
            raise HTTPException(412, detail, tag) from None

    def look(self, case_id: str, author: Author) -> dict[str, Any]:
        """How a case is shown; that it was looked at is noted."""
        case = self._find(case_id)
        self.log.note_look(case_id, author)
        return self._shown(case)

    def _find(self, case_id: str) -> Case:
        case = self.log.find(case_id)
        if case is None:
            raise HTTPException(404, "There is no case with this id.")
        names = self._promises.names
        if case.model != self._model and self.log.classes_of(case.model) != names:
            raise HTTPException(409, "The case is of another model, with other classes.")
        return case

    def summary(self, author: Author | None = None, model: str | None = None) -> Summary:
        """What was observed, compared with what was promised; of a model that the log knows."""
        promises: Promises | None = self._promises
        if model not in (None, self._model):
            promises = self.log.promises_of(str(model))
        if promises is None:
            raise HTTPException(410, "The log does not know what this model promises.")
        return summary(promises, *self.log.tallies(promises.model, author))

    def _shown(self, case: Case) -> dict[str, Any]:
        return {
            "id": case.id,
            "recorded": case.recorded,
            "model": case.model,
            "course": case.course,
            "label": self._decisions[case.label],
            "probability": case.probability,
            "cost": case.cost,
            "expected_cost": case.expected_cost,
            "outcome": None if case.outcome is None else self._classes[case.outcome],
            "version": case.version,
        }


def add_case_routes(app: APIRouter, cases: PolicyCases, settings: Settings) -> None:
    """Let cases and outcomes be recorded, and the summary be read."""
    requests = requests_for(cases._policy, settings)
    app.post(
        "/v1/cases",
        status_code=201,
        response_model=CaseAnswer,
        dependencies=[NAMES_MODEL],
        responses={
            200: {"model": CaseAnswer, "description": "Recorded before"},
            **_CONFLICT,
            **REFUSALS,
        },
    )(takes(requests.case)(_record(cases)))
    app.post(
        "/v1/cases/{case_id}/outcome",
        response_model=CaseAnswer,
        responses={**_MISSING, **_CONFLICT, **_UNSEEN, **REFUSALS},
    )(takes(requests.outcome)(_outcome(cases)))
    app.get(
        "/v1/cases/summary",
        response_model=Summary,
        dependencies=[NAMES_MODEL],
        responses=REFUSALS,
    )(_summary(cases))
    app.get(
        "/v1/cases/{case_id}",
        response_model=CaseAnswer,
        responses={**_MISSING, **_CONFLICT, **REFUSALS},
    )(_look(cases))


def _record(cases: PolicyCases) -> Callable[..., Any]:
    async def record(body: CaseRequest, request: Request) -> Response:
        """Record a finished consultation, or with `stop` one that was decided early.

        A repeated request with the same id changes nothing.
        """
        shown, new = await cases.threads.run(cases.record, body, _author(request))
        return _case_answer(shown, 201 if new else 200)

    return record


def _outcome(cases: PolicyCases) -> Callable[..., Any]:
    async def outcome(
        body: OutcomeRequest, case_id: CaseId, request: Request, if_match: IfMatch = None
    ) -> Response:
        """Record what the class of a case turned out to be, or correct it.

        A correction names the ETag of the case in If-Match. What was recorded before stays in the
        log, with who recorded it and when; an outcome that is recorded already changes nothing.
        """
        given, author = body.outcome, _author(request)
        shown = await cases.threads.run(cases.record_outcome, case_id, given, author, if_match)
        return _case_answer(shown)

    return outcome


def _summary(cases: PolicyCases) -> Callable[..., Any]:
    async def observed(request: Request) -> Response:
        """Total cost and recall observed on the recorded cases, and what was promised.

        With Adacos-Model those of another model whose promises the log keeps, served or not.
        """
        named = request.headers.get("adacos-model")
        summary = await cases.threads.run(cases.summary, _author(request), named)
        return json_answer(as_json(summary.to_dict()))

    return observed


def _look(cases: PolicyCases) -> Callable[..., Any]:
    async def look(case_id: CaseId, request: Request) -> Response:
        """A recorded case, with the outcome that counts."""
        return _case_answer(await cases.threads.run(cases.look, case_id, _author(request)))

    return look


def _case_answer(shown: dict[str, Any], status: int = 200) -> Response:
    answer = json_answer(as_json(shown), status)
    answer.headers["etag"] = _tag(shown["version"])
    return answer


def _tag(version: int) -> str:
    return f'"{version}"'


def _versions(if_match: str | None) -> frozenset[int] | None:
    """The versions that an If-Match names; of what is no version of ours none matches."""
    if if_match is None:
        return None
    return frozenset(int(number) for number in re.findall(r'(?<!/)"([0-9]{1,9})"', if_match))


def _author(request: Request) -> Author:
    return Author(request.scope.get("adacos.key") or "anyone", REQUEST_ID.get())

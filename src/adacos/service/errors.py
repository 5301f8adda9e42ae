"""What clients read when something is wrong: fields and rules, never the values received."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from adacos.exceptions import InvalidInputError
from adacos.service.access import BusyError
from adacos.service.database import LogLostError
from adacos.service.encoding import as_json
from adacos.service.logs import LOG, error_kind
from adacos.service.routing import json_answer
from adacos.service.schemas import Problem

Refusals = dict[int | str, dict[str, Any]]

REFUSALS: Refusals = {
    status: {"model": Problem, "description": reason}
    for status, reason in (
        (400, "The body is not JSON, or ambiguous"),
        (401, "The API key is missing or wrong"),
        (403, "The key may not do this, or the request comes from another site"),
        (410, "The model that the request names is not served any more"),
        (413, "The body is too long"),
        (415, "The body is not declared as JSON"),
        (421, "The service does not answer under this Host"),
        (422, "A field is wrong"),
        (429, "Too many requests"),
        (503, "Too busy, or the case log cannot be reached"),
    )
}
# A transaction may have reached the database although its answer did not come back.
NO_LOG = "The case log did not confirm it. Send the same request again, with the same id."
_MOST_FIELDS_REPORTED = 20
_MESSAGES = {"extra_forbidden": "There is no covariate or field of this name"}


def report_errors(app: FastAPI) -> None:
    """Answer every kind of error."""
    app.exception_handler(RequestValidationError)(_wrong_fields)
    app.exception_handler(InvalidInputError)(_invalid)
    app.exception_handler(SQLAlchemyError)(_no_log)
    app.exception_handler(LogLostError)(_no_log)
    app.exception_handler(BusyError)(_busy)
    app.exception_handler(HTTPException)(_refused)


def _problem(status: int, detail: str, fields: list[dict[str, str]] | None = None) -> Response:
    return json_answer(as_json({"detail": detail, "fields": fields or []}), status)


async def _wrong_fields(request: Request, error: RequestValidationError) -> Response:
    mistakes = error.errors()
    if any(item["type"] == "json_invalid" for item in mistakes):
        return _problem(400, "The body is not valid JSON.")
    fields = [
        {"field": _field(item["loc"]), "message": _MESSAGES.get(item["type"], item["msg"])}
        for item in mistakes[:_MOST_FIELDS_REPORTED]
    ]
    named = ", ".join(dict.fromkeys(item["field"] for item in fields))
    return _problem(422, f"Wrong: {named}.", fields)


async def _invalid(request: Request, error: InvalidInputError) -> Response:
    message = f"{error.rule}. {error.remedy}"
    fields = [{"field": error.parameter, "message": message}]
    return _problem(422, f"Wrong: {error.parameter}.", fields)


async def _no_log(request: Request, error: Exception) -> Response:
    LOG.error("case log failed", extra=error_kind(error))
    return _problem(503, NO_LOG)


async def _busy(request: Request, error: BusyError) -> Response:
    LOG.error("no answer in time", extra={"path": request.scope["route"].path})
    answer = _problem(503, NO_LOG if "cases" in request.url.path else "Too busy; try again.")
    answer.headers["retry-after"] = "1"
    return answer


async def _refused(request: Request, error: HTTPException) -> Response:
    answer = _problem(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


def _field(location: tuple[str | int, ...]) -> str:
    """Where in the request: 'known.Age' rather than ('body', 'known', 'Age')."""
    parts = [str(part) for part in location if part not in ("body", "path")] or ["body"]
    text = ".".join(parts)
    return text if len(text) <= 120 else text[:119] + "…"

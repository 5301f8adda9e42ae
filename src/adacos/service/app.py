"""`create_app`: the routes of the service around one fitted policy."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from adacos import __version__
from adacos.card import NOTICE, model_card
from adacos.consultation import fingerprint
from adacos.consultation.steps import Acquire
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.service.answers import Answers, as_json
from adacos.service.case_log import Case, CaseLog
from adacos.service.guard import LOG, Guard
from adacos.service.metrics import Metrics
from adacos.service.schemas import (
    CASE_ID,
    CaseAnswer,
    CaseRequest,
    HealthAnswer,
    OutcomeRequest,
    Problem,
    ScoreAnswer,
    ScoreRequest,
    StepAnswer,
    StepRequest,
    SummaryAnswer,
    requests_for,
)
from adacos.service.settings import Settings
from adacos.service.summary import summary

Refusals = dict[int | str, dict[str, Any]]

_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    **{
        f"/{name}": (name, "text/javascript; charset=utf-8")
        for name in ("app.js", "fields.js", "show.js", "state.js")
    },
    "/style.css": ("style.css", "text/css; charset=utf-8"),
}
_MOST_FIELDS_TOLD = 20
_MESSAGES = {"extra_forbidden": "There is no covariate or field of this name"}
_REFUSALS: Refusals = {
    status: {"model": Problem, "description": reason}
    for status, reason in (
        (400, "The body is not JSON"),
        (401, "The API key is missing or wrong"),
        (413, "The body is too long"),
        (422, "A field is wrong"),
        (429, "Too many requests"),
    )
}
_OF_THE_LOG: Refusals = {
    **_REFUSALS,
    503: {"model": Problem, "description": "The case log cannot be reached"},
}
CaseId = Annotated[str, Path(pattern=CASE_ID)]


def create_app(
    policy: BasePolicy, settings: Settings | None = None, metrics: Metrics | None = None
) -> FastAPI:
    """The service as an ASGI application.

    Parameters
    ----------
    policy : a fitted policy; it is only read.
    settings : choices of the operator.
    metrics : where to count; given when several processes count together.
    """
    settings, metrics = settings or Settings(), metrics or Metrics()
    app = FastAPI(
        title="adacos",
        version=__version__,
        summary="Which covariate to acquire next, and when to stop and classify.",
        description=NOTICE,
        docs_url=None,
        redoc_url=None,
        dependencies=[] if settings.api_key is None else [Depends(HTTPBearer(auto_error=False))],
    )
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    _tell_errors(app)
    _add_policy_routes(app, policy, settings)
    if settings.case_log is not None:
        _add_case_routes(app, policy, settings, CaseLog(settings.case_log))

    @app.get("/v1/health", response_model=HealthAnswer)
    async def health() -> dict[str, str]:
        """Whether the service is up, and with which model."""
        return {"status": "ok", "model": fingerprint(policy), "version": __version__}

    @app.get("/metrics", response_class=Response, include_in_schema=False)
    async def scrape() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    for path, (name, kind) in _PAGE.items():
        content = files("adacos.service").joinpath("static", name).read_bytes()
        app.get(path, include_in_schema=False)(_static(content, kind))
    return app


def _static(content: bytes, kind: str) -> Callable[[], Any]:
    async def page() -> Response:
        return Response(content, media_type=kind)

    return page


def _add_policy_routes(app: FastAPI, policy: BasePolicy, settings: Settings) -> None:
    requests, answers = requests_for(policy, settings), Answers(policy)
    card = model_card(policy)
    card["case_log"] = settings.case_log is not None

    async def step(body: StepRequest) -> Response:
        """The next step for a row of which these values are there, and why.

        Nothing is kept between calls: send everything that there is of the row each time. With
        `stop` the answer is the classification that stands.
        """
        return _json(answers.step(body))

    def score(body: ScoreRequest) -> Response:
        """Run the policy on rows: what it acquires of each, and its label."""
        return _json(as_json(answers.score(body)))

    takes = _takes(requests.step)
    app.post("/v1/step", response_model=StepAnswer, responses=_REFUSALS)(takes(step))
    takes = _takes(requests.score)
    app.post("/v1/score", response_model=ScoreAnswer, responses=_REFUSALS)(takes(score))

    @app.get("/v1/model", responses={401: _REFUSALS[401]})
    async def model() -> dict[str, Any]:
        """The model card: covariates, costs, sets, and the certificate if there is one."""
        return card


def _add_case_routes(app: FastAPI, policy: BasePolicy, settings: Settings, log: CaseLog) -> None:
    requests, answers = requests_for(policy, settings), Answers(policy)
    classes, model = policy.classes_.tolist(), fingerprint(policy)
    missing: Refusals = {404: {"model": Problem, "description": "No such case"}}
    conflict: Refusals = {409: {"model": Problem, "description": "Not finished, or in conflict"}}

    def shown(case: Case) -> dict[str, Any]:
        return {
            "id": case.id,
            "recorded": case.recorded,
            "model": case.model,
            "course": case.course,
            "label": classes[case.label],
            "probability": case.probability,
            "cost": case.cost,
            "expected_cost": case.expected_cost,
            "outcome": None if case.outcome is None else classes[case.outcome],
        }

    def record(body: CaseRequest) -> Response:
        """Record a finished consultation, or with `stop` one that was decided early.

        A repeated request with the same id changes nothing.
        """
        consultation = answers.consultation(body)
        step = consultation.next()
        if isinstance(step, Acquire):
            raise HTTPException(
                409,
                f"The consultation is not finished: {', '.join(step.covariates)} comes next. "
                'If it was decided early, send "stop": true.',
            )
        stopped = {"stop": True} if consultation.stopped else {}
        case = Case(
            id=body.id,
            model=model,
            course=answers.course(body, consultation),
            consultation={
                "known": body.known,
                "acquired": body.acquired,
                "unavailable": sorted(body.unavailable),
                **stopped,
            },
            label=classes.index(step.label),
            probability=step.probability,
            cost=step.cost,
            expected_cost=step.expected_cost,
        )
        found, new = log.record(case)
        if (found.model, found.consultation) != (case.model, case.consultation):
            raise HTTPException(409, "Another consultation has this id.")
        return _json(as_json(shown(found)), 201 if new else 200)

    def outcome(body: OutcomeRequest, case_id: CaseId) -> dict[str, Any]:
        """Record what the class of a case turned out to be; a later call corrects it."""
        case = log.find(case_id)
        if case is None:
            raise HTTPException(404, "There is no case with this id.")
        if case.model != model:
            raise HTTPException(409, "The case is of another model.")
        log.set_outcome(case_id, classes.index(body.outcome))
        return {**shown(case), "outcome": body.outcome}

    app.post(
        "/v1/cases",
        status_code=201,
        response_model=CaseAnswer,
        responses={
            200: {"model": CaseAnswer, "description": "Recorded before"},
            **conflict,
            **_OF_THE_LOG,
        },
    )(_takes(requests.case)(record))
    app.post(
        "/v1/cases/{case_id}/outcome",
        response_model=CaseAnswer,
        responses={**missing, **conflict, **_OF_THE_LOG},
    )(_takes(requests.outcome)(outcome))

    @app.get("/v1/cases/summary", response_model=SummaryAnswer, responses=_OF_THE_LOG)
    def observed() -> dict[str, Any]:
        """Total cost and recall observed on the recorded cases, beside what was promised."""
        return summary(policy, *log.tallies(model))


def _takes(body: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a route the request type made for the model in place of its general one."""

    def with_body(route: Callable[..., Any]) -> Callable[..., Any]:
        route.__annotations__["body"] = body
        return route

    return with_body


def _json(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")


def _problem(status: int, detail: str, fields: list[dict[str, str]] | None = None) -> Response:
    return _json(as_json({"detail": detail, "fields": fields or []}), status)


def _tell_errors(app: FastAPI) -> None:
    """Name fields and rules in errors, never the values received."""

    @app.exception_handler(RequestValidationError)
    async def wrong_fields(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        if any(item["type"] == "json_invalid" for item in found):
            return _problem(400, "The body is not valid JSON.")
        if "json" not in request.headers.get("content-type", ""):
            # FastAPI leaves the body unread then, and would call it no dictionary.
            message = "Send the body as JSON, with the header 'Content-Type: application/json'"
            return _problem(422, f"{message}.", [{"field": "body", "message": message}])
        fields = [
            {"field": _field(item["loc"]), "message": _MESSAGES.get(item["type"], item["msg"])}
            for item in found[:_MOST_FIELDS_TOLD]
        ]
        named = ", ".join(dict.fromkeys(item["field"] for item in fields))
        return _problem(422, f"Wrong: {named}.", fields)

    @app.exception_handler(InvalidInputError)
    async def invalid(request: Request, error: InvalidInputError) -> Response:
        message = f"{error.rule}. {error.remedy}"
        fields = [{"field": error.parameter, "message": message}]
        return _problem(422, f"Wrong: {error.parameter}.", fields)

    @app.exception_handler(SQLAlchemyError)
    async def no_log(request: Request, error: SQLAlchemyError) -> Response:
        LOG.error("case log failed: %s", type(error).__name__)
        return _problem(503, "The case log cannot be reached; nothing was recorded.")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        answer = _problem(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer


def _field(location: tuple[str | int, ...]) -> str:
    """Where in the request: 'known.Age' rather than ('body', 'known', 'Age')."""
    parts = [str(part) for part in location if part not in ("body", "path")] or ["body"]
    text = ".".join(parts)
    return text if len(text) <= 120 else text[:119] + "…"

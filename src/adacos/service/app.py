"""`create_app`: the routes of the service around one fitted policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import Response
from fastapi.security import HTTPBearer

from adacos import __version__
from adacos.card import NOTICE, model_card
from adacos.consultation import fingerprint
from adacos.policies.base import BasePolicy
from adacos.service.access import Threads
from adacos.service.answers import Answers
from adacos.service.case_log import CaseLog
from adacos.service.case_routes import PolicyCases, add_case_routes
from adacos.service.encoding import as_json
from adacos.service.errors import REFUSALS, report_errors
from adacos.service.guard import Guard
from adacos.service.metrics import Metrics
from adacos.service.promises import promises_of
from adacos.service.readiness import Readiness
from adacos.service.routing import NAMES_MODEL, StrictRoute, json_answer, takes
from adacos.service.schemas import (
    HealthAnswer,
    ReadyAnswer,
    ScoreAnswer,
    ScoreRequest,
    StepAnswer,
    StepRequest,
    requests_for,
)
from adacos.service.settings import Settings
from adacos.tables.description import description_of

_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    **{
        f"/{name}": (name, "text/javascript; charset=utf-8")
        for name in ("app.js", "fields.js", "show.js", "state.js", "tree.js")
    },
    "/style.css": ("style.css", "text/css; charset=utf-8"),
}
# Rows are scored in few threads: they share the processor, and each holds a body and its answer.
_SCORERS, _SCORES_WAITING, _SCORING_SECONDS = 4, 32, 60.0
# A step takes a millisecond, of a model with a hundred classes seconds.
_STEPPERS, _STEPS_WAITING, _STEP_SECONDS = 4, 64, 15.0


def create_app(
    policy: BasePolicy,
    settings: Settings | None = None,
    metrics: Metrics | None = None,
    earlier: Sequence[BasePolicy] = (),
) -> FastAPI:
    """The service as an ASGI application.

    Parameters
    ----------
    policy : a fitted policy; it is only read.
    settings : choices of the operator.
    metrics : where to count; given when several processes count together.
    earlier : policies served before this one; consultations begun with them end with them.
    """
    settings, metrics = settings or Settings(), metrics or Metrics()
    log = None
    if settings.case_log is not None:
        log = CaseLog(settings.case_log)
        log.prepare([promises_of(one) for one in (policy, *earlier)])
        log.note_serving(fingerprint(policy), description_of(policy))
    app = _routes(policy, settings, metrics, log)
    app.add_middleware(
        Guard,
        settings=settings,
        metrics=metrics,
        model=fingerprint(policy),
        earlier={fingerprint(one): _routes(one, settings, metrics, log) for one in earlier},
    )
    return app


def _routes(
    policy: BasePolicy, settings: Settings, metrics: Metrics, log: CaseLog | None
) -> FastAPI:
    """All routes of one policy, open to whoever reaches them."""
    app = FastAPI(
        title="adacos",
        version=__version__,
        summary="Which covariate to acquire next, and when to stop and classify.",
        description=NOTICE,
        docs_url=None,
        redoc_url=None,
    )
    app.router.route_class = StrictRoute
    report_errors(app)
    # Health and readiness are open to everyone, and are declared so.
    with_key = APIRouter(
        route_class=StrictRoute,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if settings.all_keys else [],
    )
    _add_policy_routes(with_key, policy, settings)
    cases = None if log is None else PolicyCases(policy, log)
    if cases is not None:
        add_case_routes(with_key, cases, settings)
    app.include_router(with_key)
    _add_operator_routes(app, policy, metrics, cases)
    for path, (name, kind) in _PAGE.items():
        content = files("adacos.service").joinpath("static", name).read_bytes()
        app.get(path, include_in_schema=False)(_static(content, kind))
    return app


def _static(content: bytes, kind: str) -> Callable[[], Any]:
    async def page() -> Response:
        return Response(content, media_type=kind)

    return page


def _add_policy_routes(app: APIRouter, policy: BasePolicy, settings: Settings) -> None:
    requests, answers = requests_for(policy, settings), Answers(policy)
    scorers = Threads(_SCORERS, _SCORING_SECONDS, _SCORES_WAITING)
    steppers = Threads(_STEPPERS, _STEP_SECONDS, _STEPS_WAITING)
    card = model_card(policy)
    card["case_log"] = settings.case_log is not None

    async def step(body: StepRequest) -> Response:
        """The next step for a row of which these values are there, and why.

        Nothing is kept between calls: send everything that there is of the row each time. With
        `stop` the answer is the classification reached so far.
        """
        return json_answer(await steppers.run(answers.step, body))

    async def score(body: ScoreRequest) -> Response:
        """Run the policy on rows: what it acquires of each, and its label."""
        return json_answer(await scorers.run(lambda: as_json(answers.score(body))))

    shared: dict[str, Any] = {"responses": REFUSALS, "dependencies": [NAMES_MODEL]}
    app.post("/v1/step", response_model=StepAnswer, **shared)(takes(requests.step)(step))
    app.post("/v1/score", response_model=ScoreAnswer, **shared)(takes(requests.score)(score))

    @app.get("/v1/model", responses={status: REFUSALS[status] for status in (401, 403, 410, 421)})
    async def model() -> dict[str, Any]:
        """The model card: covariates, costs, sets, and the certificate if there is one."""
        return card


def _add_operator_routes(
    app: FastAPI, policy: BasePolicy, metrics: Metrics, cases: PolicyCases | None
) -> None:
    model, readiness = fingerprint(policy), Readiness(cases)

    @app.get("/v1/health", response_model=HealthAnswer)
    async def health() -> dict[str, str]:
        """Whether the service is up, and with which model."""
        return {"status": "ok", "model": model, "version": __version__}

    @app.get(
        "/v1/ready",
        response_model=ReadyAnswer,
        responses={503: {"model": ReadyAnswer, "description": "Not ready"}},
    )
    async def ready() -> Response:
        """Whether requests can be answered and cases recorded."""
        case_log = await readiness.of_case_log()
        up = case_log != "failing"
        state = {"status": "ready" if up else "not ready", "model": model, "case_log": case_log}
        return json_answer(as_json(state), 200 if up else 503)

    @app.get("/metrics", response_class=Response, include_in_schema=False)
    async def scrape() -> Response:
        text = metrics.text() + await readiness.metrics()
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

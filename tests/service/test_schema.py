"""Requests generated from the service's own OpenAPI document: answered as documented, no 5xx.

`pytest -m study -s tests/service/test_schema.py` sends more than 10,000 and prints how many went
to each route and what they were answered. Most of its time goes into generating them.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from adacos.service.app import create_app
from adacos.service.settings import Settings

schemathesis = pytest.importorskip("schemathesis")

from schemathesis.checks import (  # noqa: E402
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

# What the document cannot say (a covariate is not given twice) keeps valid bodies from being
# accepted always; everything else it says must hold.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
KEY = "0123456789abcdef0123456789abcdef"
SENT = {"Authorization": f"Bearer {KEY}"}


def send(operation, mode, examples: int) -> Counter[int]:
    """Generated requests of one kind, each judged; how many were answered with which status."""
    statuses: Counter[int] = Counter()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
        database=None,
        deadline=None,
    )
    def answers(case):
        # Of a model that is not there nothing is known, not even whether the body is right.
        case.headers.pop("adacos-model", None)
        response = case.call(headers=SENT)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    answers()
    return statuses


@pytest.mark.parametrize(
    "examples", [18, pytest.param(700, marks=pytest.mark.study)], ids=["some", "many"]
)
@pytest.mark.parametrize("model", ["pima", "mixed"])
def test_generated_requests(model, examples, request, tmp_path):
    policy = request.getfixturevalue(model)[-1]
    log = f"sqlite:///{tmp_path}/cases.db"
    # Bodies may be long, so that it is the schema that refuses too many rows.
    allowed = Settings(
        case_log=log,
        rate_limit=0,
        max_body_bytes=1 << 26,
        api_key=KEY,
        hosts=("testserver",),
        proxies=("127.0.0.1",),
    )
    app = create_app(policy, allowed)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=SENT)
    answered: Counter[str] = Counter()
    for operation in (found.ok() for found in schema.get_all_operations()):
        modes = [schemathesis.GenerationMode.POSITIVE]
        if operation.body:
            modes.append(schemathesis.GenerationMode.NEGATIVE)
        for mode in modes:
            statuses = send(operation, mode, examples if operation.body else 5)
            answered[operation.label] += statuses.total()
            reported = ", ".join(f"{status} x {n}" for status, n in sorted(statuses.items()))
            print(f"{model}, {operation.label}, {mode.value}: {reported}", flush=True)
            assert max(statuses) < 500
    print(f"{model}: {answered.total()} requests")
    # Four routes take a body, right and wrong ones.
    assert answered.total() >= 8 * examples

"""The service of a model with more than two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy.optimize import linprog

from adacos import AdaCOSClassifier
from adacos.kernels.anytime import confidence_sequence
from adacos.service.app import create_app
from adacos.service.case_tallies import Tally
from adacos.service.promises import Promises
from adacos.service.schemas import CaseAnswer, ScoreAnswer, StepAnswer
from adacos.service.settings import Settings
from adacos.service.summary import Summary, summary
from tests.rivals.problems import THREE_COSTS, three_table
from tests.service.conftest import TestClient, finish

CLASSES = ["healthy", "sick", "very sick"]


@pytest.fixture(scope="module")
def three() -> tuple[list[dict[str, Any]], np.ndarray, AdaCOSClassifier]:
    """Complete rows, their classes, and a policy."""
    X, y = three_table()
    policy = AdaCOSClassifier(THREE_COSTS, cv=3, strengths="common").fit(X, y)
    whole = X.notna().all(axis=1).to_numpy()
    return X[whole].to_dict("records"), y[whole], policy


@pytest.fixture
def client(three, tmp_path):
    settings = Settings(case_log=f"sqlite:///{tmp_path}/cases.db", rate_limit=0)
    return TestClient(create_app(three[2], settings))


def test_steps_scores_and_cases(three, client):
    rows, y, policy = three
    rows, y = rows[:6], y[:6]
    scored = client.post("/v1/score", json={"rows": rows}).json()
    TypeAdapter(ScoreAnswer).validate_python(scored)
    for number, (row, answer) in enumerate(zip(rows, scored["results"], strict=True)):
        body, step = finish(client, row)
        TypeAdapter(StepAnswer).validate_python(step)
        reported = policy.consultation(body["known"]).observe(body["acquired"]).next()
        assert step["label"] == reported.label == answer["label"]
        each = step["explanation"]["probabilities"]
        assert list(each) == CLASSES
        assert sum(each.values()) == pytest.approx(1.0)
        assert each == pytest.approx(answer["probabilities"])
        assert step["probability"] == each[step["label"]] == pytest.approx(answer["probability"])
        case = client.post("/v1/cases", json={**body, "id": f"case-{number}"}).json()
        CaseAnswer.model_validate(case)
        assert case["probability"] == step["probability"]
        path = f"/v1/cases/case-{number}/outcome"
        closed = client.post(path, json={"outcome": y[number]}).json()
        assert (closed["label"], closed["outcome"]) == (step["label"], y[number])
    refused = client.post("/v1/cases/case-0/outcome", json={"outcome": "well"}).json()
    assert refused["fields"][0]["message"] == "Input should be 'healthy', 'sick' or 'very sick'"

    seen = client.get("/v1/cases/summary").json()
    TypeAdapter(Summary).validate_python(seen)
    assert list(seen["by_class"]) == CLASSES
    assert "recall" not in seen
    assert "recall" not in seen["stopped_early"]
    label = np.array([answer["label"] for answer in scored["results"]])
    paid = np.array([answer["cost"] for answer in scored["results"]])
    wrong = policy.cost_table_.matrix[np.searchsorted(CLASSES, y), np.searchsorted(CLASSES, label)]
    assert seen["total_cost"]["observed"] == pytest.approx((paid + wrong).mean())
    assert seen["total_cost"]["low"] <= seen["total_cost"]["observed"] <= seen["total_cost"]["high"]
    for name in CLASSES:
        found = seen["by_class"][name]
        assert found["recall"]["cases"] == np.sum(y == name)
        assert found["false_discovery_rate"]["cases"] == np.sum(label == name)
    assert 'what="recall"' not in client.get("/metrics").text


def test_the_document_lists_the_classes(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["OutcomeRequestOfModel"]["properties"]["outcome"]["enum"] == CLASSES
    assert "probabilities" in schemas["RowAnswer"]["properties"]
    assert "by_class" in schemas["Summary"]["properties"]
    assert client.get("/v1/model").json()["classes"] == CLASSES


def test_bounds_of_the_cost_are_those_of_all_shares_together():
    """The least and the greatest mean cost over all shares within their bounds, by a solver."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = rng.integers(0, 12, size=(3, 3))
        matrix = rng.uniform(-20, 40, size=(3, 3))
        made = Promises("0" * 16, ["a", "b", "c"], None, matrix.tolist(), [], [], {})
        tallies = [
            Tally(label, true, "followed", int(n), 2.0 * n, 2.0 * n, "2026-01-05")
            for (true, label), n in np.ndenumerate(counts)
            if n
        ]
        found = summary(made, tallies, 0).total_cost
        low = high = 2.0 * counts.sum()
        for label in range(3):
            wrong, cases = np.arange(3) != label, counts[:, label].sum()
            ends = confidence_sequence(counts[wrong, label], [cases] * 2, 1 - 0.05 / 6)
            box = [(0.0, 1.0)] * 3
            for true, least, most in zip(np.flatnonzero(wrong), *ends, strict=True):
                box[true] = float(least), float(most)
            for sign in (1.0, -1.0):
                best = linprog(sign * matrix[:, label], A_eq=[[1.0] * 3], b_eq=[1.0], bounds=box)
                if sign > 0:
                    low += cases * best.fun
                else:
                    high -= cases * best.fun
        n = counts.sum()
        assert (found.low, found.high) == pytest.approx((low / n, high / n), rel=1e-7, abs=1e-7)
        assert found.observed == pytest.approx(2.0 + (counts * matrix).sum() / n)

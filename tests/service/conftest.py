"""Models and a client for the tests of the service."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from fastapi.testclient import TestClient as AnyClient

import adacos
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier
from adacos.service.app import create_app
from adacos.service.settings import Settings
from adacos.tables.columns import ColumnTable
from tests.service.databases import log_url, postgres, small_disk

__all__ = ["log_url", "postgres", "small_disk"]


class TestClient(AnyClient):
    """A client on this machine that reports what fails inside as a client would see it."""

    __test__ = False

    def __init__(self, app) -> None:
        super().__init__(app, base_url="http://localhost", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def pima():
    """The Pima rows, and a policy with a panel."""
    data = adacos.load_pima()
    costs = Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
    return data, AdaCOSClassifier(costs, strengths="common").fit(data.X, data.y)


@pytest.fixture(scope="session")
def mixed():
    """Text, two-valued and numeric covariates, text classes, and a certified policy."""
    rng = np.random.default_rng(0)
    n = 2000
    a, b = rng.normal(size=(2, n))
    group = rng.choice(["high", "low", "mid"], size=n)
    lift = np.select([group == "mid", group == "high"], [0.5, 2.5], -1.0)
    y = np.where(rng.random(n) < expit(2 * a + b + lift - 0.7), "yes", "no")
    table = ColumnTable({"a": a, "group group": group, "b": b, "flag": 1.0 * (a + b > 0)})
    costs = Costs({"a": 2.0, "group group": 1.0, "b": 3.0, "flag": 0.0}, false_positive=40)
    policy = TargetRecallClassifier(
        AdaCOSClassifier(costs, strengths="common", cv=5), target_recall=0.9, recall_confidence=0.9
    )
    return table, y, policy.fit(table, y)


@pytest.fixture
def client(pima):
    """A client of a service without a case log."""
    return TestClient(create_app(pima[1], Settings(rate_limit=0)))


@pytest.fixture
def logged(pima, tmp_path):
    """A client of a service with a case log."""
    settings = Settings(case_log=f"sqlite:///{tmp_path}/cases.db", rate_limit=0)
    return TestClient(create_app(pima[1], settings))


def finish(client: TestClient, row: dict, known: tuple[str, ...] = ()) -> tuple[dict, dict]:
    """Play a consultation over HTTP; what was sent last, and the final step."""
    body: dict = {"known": {name: row[name] for name in known}, "acquired": {}}
    while (step := client.post("/v1/step", json=body).json())["action"] == "acquire":
        body["acquired"] |= {name: row[name] for name in step["covariates"]}
    return body, step


@pytest.fixture(scope="session")
def model(pima, tmp_path_factory):
    """The file of the Pima policy."""
    path = tmp_path_factory.mktemp("model") / "pima.adacos"
    adacos.save(pima[1], path)
    return path

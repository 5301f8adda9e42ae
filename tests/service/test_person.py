"""Other questions, both lists and the reason over HTTP, and in the record of a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from adacos import COSClassifier, Costs, load_pima
from adacos.service.app import create_app
from adacos.service.case_log import CaseLog
from adacos.service.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore")


def test_lists_and_reason_are_taken_and_kept(tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    X, y, prices, *_ = load_pima(zeros="missing")
    costs = Costs(prices, false_positive=100, false_negative=500)
    policy = COSClassifier(costs, cv=2, strengths="common").fit(X, y)
    url = f"sqlite:///{tmp_path / 'cases.db'}"
    client = TestClient(create_app(policy, Settings(case_log=url)), base_url="http://127.0.0.1")
    lists = {"must": ["Pregnancies"], "never": ["BMI"]}
    step = client.post("/v1/step", json=lists).json()
    assert step["covariates"][0] == "Pregnancies" or "Pregnancies" in step["covariates"]
    ours = policy.consultation(**lists)
    reported = [one["covariate"] for one in step["alternatives"]]
    assert reported == [one.covariate for one in ours.alternatives()]
    assert "BMI" not in reported
    wrong = client.post("/v1/step", json={"never": ["BIM"]})
    assert wrong.status_code == 422
    acquired = {"Pregnancies": 2.0}
    request = {**lists, "acquired": acquired, "stop": True, "reason": "The ward wants it."}
    done = client.post("/v1/cases", json={**request, "id": "one"})
    assert done.status_code == 201, done.text
    case = CaseLog(url).find("one")
    assert case is not None
    assert case.consultation["reason"] == "The ward wants it."
    assert case.consultation["never"] == ["BMI"]
    assert client.post("/v1/cases", json={**request, "id": "one"}).status_code == 200
    assert client.post("/v1/cases", json={"id": "two", "reason": "x" * 501}).status_code == 422

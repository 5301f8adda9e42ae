"""The service keeps a ceiling: it runs the same engine."""

from __future__ import annotations

from fastapi.testclient import TestClient

from adacos import AdaCOSClassifier
from adacos.service.app import create_app
from tests.policies.budget_table import COSTS, QUICK, world


def test_steps_and_scores_keep_the_ceiling() -> None:
    X, y = world(300, 0)
    policy = AdaCOSClassifier(COSTS, budget=3.0, mean_budget=1.5, **QUICK).fit(X, y)
    client = TestClient(create_app(policy), base_url="http://127.0.0.1")
    assert client.get("/v1/model").json()["budget"] == 3.0
    result = policy.acquire(X[:20])
    for number, row in enumerate(X[:20]):
        acquired: dict[str, float] = {}
        while True:
            step = client.post("/v1/step", json={"acquired": acquired, "unavailable": []}).json()
            if step["action"] == "classify":
                break
            acquired |= {name: row[int(name[1:])] for name in step["covariates"]}
        assert tuple(acquired) == result.covariates(number)
        assert step["cost"] == result.cost[number] <= 3.0
    body = {"rows": [{f"x{k}": value for k, value in enumerate(row)} for row in X[:20].tolist()]}
    answer = client.post("/v1/score", json=body)
    assert answer.status_code == 200, answer.text
    assert max(item["cost"] for item in answer.json()["results"]) <= 3.0

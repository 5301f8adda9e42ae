"""The service keeps a ceiling: it runs the same engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from adacos import AdaCOSClassifier, Costs
from adacos.service.app import create_app
from adacos.service.settings import Settings
from tests.policies.budget_table import COSTS, QUICK, draw_rows


def test_steps_and_scores_keep_the_ceiling() -> None:
    X, y = draw_rows(300, 0)
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


def drawn(seed: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    return rng.normal(size=(n, 4)) + y[:, None] * [1.0, 0.8, 0.6, 0.5], y


@pytest.fixture(scope="module")
def mixture() -> AdaCOSClassifier:
    """The first covariate costs 2: only a share of the rows can have it within the budget."""
    costs = Costs([2.0, 3.0, 4.0, 6.0], false_positive=40.0, false_negative=60.0)
    policy = AdaCOSClassifier(costs, mean_budget=0.5, n_splines=5, **QUICK).fit(*drawn(0, 500))
    assert policy.mixture_ is not None
    assert 0.1 < policy.mixture_.share < 0.9
    return policy


def served(policy: AdaCOSClassifier, **settings: Any) -> TestClient:
    app = create_app(policy, Settings(rate_limit=0, **settings))
    return TestClient(app, base_url="http://127.0.0.1")


def rows_of(X: Any) -> list[dict[str, float]]:
    return [{f"x{k}": value for k, value in enumerate(row)} for row in X.tolist()]


def consulted(client: TestClient, row: dict[str, float], **key: Any) -> tuple[dict, dict]:
    """A consultation to its end: what was sent last, and the last step."""
    body: dict[str, Any] = {"acquired": {}, **key}
    while (step := client.post("/v1/step", json=body).json())["action"] == "acquire":
        body["acquired"] |= {name: row[name] for name in step["covariates"]}
    return body, step


def test_steps_with_keys_spend_the_mean_budget(mixture: AdaCOSClassifier) -> None:
    n, client = 40, served(mixture)
    X = drawn(7, 3 * n)[0]
    keys = [*range(n), *(f"visit {k}" for k in range(n)), *(10**15 + k for k in range(n))]
    paid = [
        consulted(client, row, key=key)[1]["cost"]
        for row, key in zip(rows_of(X), keys, strict=True)
    ]
    np.testing.assert_array_equal(paid, mixture.acquire(X, keys=keys).cost)
    assert np.mean(paid) == pytest.approx(0.5, abs=4 * np.std(paid) / np.sqrt(len(paid)))
    # Without keys all have the policy of the first row.
    without = [client.post("/v1/step", json={}).json()["action"] for _ in range(5)]
    first = client.post("/v1/step", json={"key": 0}).json()["action"]
    assert without == 5 * [first]


def test_scores_with_keys_and_of_several_pieces_spend_it(mixture: AdaCOSClassifier) -> None:
    X, client = drawn(8, 2500)[0], served(mixture)

    def scored(**more: Any) -> list[float]:
        answer = client.post("/v1/score", json={"rows": rows_of(X), **more})
        assert answer.status_code == 200, answer.text
        return [item["cost"] for item in answer.json()["results"]]

    np.testing.assert_array_equal(scored(), mixture.acquire(X).cost)
    keys = [f"p{k}" for k in range(2500)]
    np.testing.assert_array_equal(scored(keys=keys), mixture.acquire(X, keys=keys).cost)
    one = [
        client.post("/v1/score", json={"rows": [row], "keys": [key]})
        for row, key in zip(rows_of(X[:20]), keys, strict=False)
    ]
    assert [item.json()["results"][0]["cost"] for item in one] == scored(keys=keys)[:20]


def test_a_case_is_recorded_with_its_key(mixture: AdaCOSClassifier, tmp_path: Any) -> None:
    client = served(mixture, case_log=f"sqlite:///{tmp_path}/cases.db")
    arms = {mixture.mixture_.spends_more(f"v{k}"): f"v{k}" for k in range(40)}
    row = rows_of(drawn(9, 1)[0])[0]
    for key in arms.values():
        body, step = consulted(client, row, key=key)
        recorded = client.post("/v1/cases", json={**body, "id": key})
        assert recorded.status_code == 201, recorded.text
        assert recorded.json()["course"] == "followed"
        assert recorded.json()["cost"] == step["cost"]
        assert client.post("/v1/cases", json={**body, "id": key}).status_code == 200
    body, _ = consulted(client, row, key=arms[False])
    other = client.post("/v1/cases", json={**body, "id": "other", "key": arms[True]})
    assert other.status_code == 409  # the other policy goes on


@pytest.mark.parametrize("key", [True, 1.5, -1, 2**53, "", "x" * 65, ["a"], {}])
def test_keys_are_short_texts_or_whole_numbers(mixture: AdaCOSClassifier, key: Any) -> None:
    client = served(mixture)
    assert client.post("/v1/step", json={"key": key}).status_code == 422
    assert client.post("/v1/score", json={"rows": [{}], "keys": [key]}).status_code == 422


def test_there_is_one_key_a_row(mixture: AdaCOSClassifier) -> None:
    answer = served(mixture).post("/v1/score", json={"rows": [{}, {}], "keys": ["a"]})
    assert answer.status_code == 422
    assert "one for each of the 2 rows, not 1" in answer.text

"""Steps and scores agree with the library, and what is wrong with a request is told by field."""

from __future__ import annotations

import copy
import json
import logging

import numpy as np
import pytest

import adacos
from adacos import Costs, FullModelClassifier
from adacos.consultation import fingerprint
from adacos.consultation.coverage import not_covered
from adacos.service import answers
from adacos.service.app import create_app
from adacos.service.rate import Buckets
from adacos.service.settings import Settings
from adacos.tables.description import CovariateDescription, Description, describe
from tests.service.conftest import TestClient, finish

JSON = {"content-type": "application/json"}


def test_consultations_over_http_agree_with_acquire(pima, client):
    data, policy = pima
    rows = data.X.to_dict("records")[:60]
    result = policy.acquire(data.X[:60])
    for number, row in enumerate(rows):
        body, step = finish(client, row)
        assert tuple(body["acquired"]) == result.covariates(number)
        assert step["label"] == result.label[number]
        assert step["cost"] == pytest.approx(result.cost[number], abs=1e-12)
        assert step["probability"] == pytest.approx(result.probability[number], abs=1e-12)


@pytest.mark.parametrize("known", [{}, {"Age": 50.0}, {"Glucose": 190.0, "BMI": 31.0}])
def test_step_is_that_of_a_consultation(pima, client, known):
    consultation = pima[1].consultation(known)
    body = {"known": known, "acquired": {}, "unavailable": []}

    def agree() -> None:
        step = client.post("/v1/step", json=body).json()
        assert step.pop("lowered", []) == []
        assert not step.pop("stopped_early", False)
        caveat = step.pop("not_covered", None)
        assert caveat is None or caveat == not_covered(consultation.departures)
        assert step.pop("order") == list(body["acquired"])
        assert step.pop("model") == fingerprint(pima[1])
        # A step that stops shows none, although other questions could still be asked.
        asks = step["action"] == "acquire"
        names = [one.covariate for one in consultation.alternatives()] if asks else []
        assert [one["covariate"] for one in step.pop("alternatives", [])] == names
        assert step == _plain(consultation.next())

    agree()
    body["acquired"] = {"Pregnancies": 3.0}
    consultation.observe(Pregnancies=3.0)
    agree()
    body["unavailable"] = ["Insulin", "SkinThickness"]
    consultation.unavailable("Insulin", "SkinThickness")
    agree()


def test_stop_gives_the_label_that_remains(pima, client):
    body = {"acquired": {"Age": 24.0}}
    going = client.post("/v1/step", json=body).json()
    assert going["action"] == "acquire"
    step = client.post("/v1/step", json={**body, "stop": True}).json()
    assert step.pop("stopped_early")
    assert step.pop("not_covered").endswith("it was stopped early.")
    del step["model"], step["order"]
    assert step == _plain(pima[1].consultation().observe(Age=24.0).stop().next())
    assert step["label"] == going["explanation"]["label"]
    assert client.post("/v1/step", json={**body, "stop": False}).json() == going
    ended, last = finish(client, pima[0].X.to_dict("records")[0])
    assert client.post("/v1/step", json={**ended, "stop": True}).json() == last
    assert not last["stopped_early"]


def test_a_price_lowered_by_a_panel_is_reported(pima):
    data, policy = pima
    row = data.X.to_dict("records")[0]
    full = FullModelClassifier(policy.costs).from_model(policy)
    client = TestClient(create_app(full, Settings(rate_limit=0)))
    values = {name: row[name] for name in data.names if name != "Insulin"}
    for body in ({"known": values}, {"acquired": values}):
        step = client.post("/v1/step", json=body).json()
        assert step["covariates"] == ["Insulin"]
        assert step["cost"] == pytest.approx(22.78 - 2.10)
        (lowered,) = step["lowered"]
        assert lowered == {
            "panel": "blood",
            "covariates": ["Insulin"],
            "had": ["Glucose"],
            "amount": 2.10,
        }
    del values["Glucose"]
    first = client.post("/v1/step", json={"known": values}).json()
    assert first["covariates"] == ["Glucose"]
    assert first["lowered"] == []
    assert first["sharing"] == [["Insulin", pytest.approx(20.68)]]
    # A policy may ask for both at once: the second of them is spared the shared cost.
    (together,) = answers.Answers(full)._lowered(("Glucose", "Insulin"), {"Age"})
    assert (together.had, together.amount) == ((), 2.10)


def test_discounts_of_members_follow_the_order_of_the_request(pima):
    data = pima[0]
    panels = {"blood": {"Glucose": 15.51, "Insulin": 2.78}}
    costs = Costs(data.prices, false_positive=400, false_negative=400, panels=panels)
    policy = FullModelClassifier(costs, strengths="common").fit(data.X, data.y)
    client = TestClient(create_app(policy))
    had = {"Glucose": 120.0, "Insulin": 80.0}
    one = client.post("/v1/step", json={"acquired": had}).json()
    other = client.post("/v1/step", json={"acquired": dict(reversed(had.items()))}).json()
    assert one["explanation"]["paid"] == pytest.approx(17.61 + 2.78)
    assert other["explanation"]["paid"] == pytest.approx(22.78 + 15.51)
    (both,) = answers.Answers(policy)._lowered(("Insulin", "Glucose"), {"Age"})
    assert both.amount == pytest.approx(2.10)
    (both,) = answers.Answers(policy)._lowered(("Glucose", "Insulin"), {"Age"})
    assert both.amount == pytest.approx(20.0)


def test_steps_are_computed_once(pima, monkeypatch):
    client = TestClient(create_app(pima[1]))
    calls = []
    original = answers.Answers._replay
    monkeypatch.setattr(
        answers.Answers, "_replay", lambda self, *a: calls.append(a) or original(self, *a)
    )
    first = client.post("/v1/step", json={"known": {"Age": 50}}).content
    assert client.post("/v1/step", json={"known": {"Age": 50.0}}).content == first
    assert client.post("/v1/step", json={"known": {"Age": 51}}).content != first
    assert len(calls) == 2


def test_odd_values_are_flagged(client):
    step = client.post("/v1/step", json={"known": {"Age": 500}}).json()
    assert [warning["kind"] for warning in step["warnings"]] == ["implausible"]


def test_text_and_two_valued_covariates(mixed):
    client = TestClient(create_app(mixed[2]))
    body = {"known": {"group group": "high"}, "acquired": {"flag": True}}
    assert client.post("/v1/step", json=body).json()["warnings"] == []
    body["known"]["group group"] = "elsewhere"
    kinds = [w["kind"] for w in client.post("/v1/step", json=body).json()["warnings"]]
    assert kinds == ["unknown_category"]
    for wrong in (5, "", "  ", "a\u0000b", "\ud800"):
        body["known"]["group group"] = wrong
        answer = client.post("/v1/step", content=json.dumps(body), headers=JSON)
        assert answer.status_code == 422
        assert answer.json()["fields"][0]["field"] == "known.group group"


def test_score_agrees_with_acquire(pima, client):
    data, policy = pima
    rows = data.X[:50].to_dict("records")
    del rows[3]["BMI"]
    rows[4]["Age"] = None
    table = data.X[:50].copy().astype(float)
    table.loc[3, "BMI"] = np.nan
    table.loc[4, "Age"] = np.nan
    result = policy.acquire(table)
    answer = client.post("/v1/score", json={"rows": rows}).json()
    assert answer["warnings"] == []
    for number, got in enumerate(answer["results"]):
        assert got["label"] == result.label[number]
        assert tuple(got["acquired"]) == result.covariates(number)
        assert got["probability"] == pytest.approx(result.probability[number], abs=1e-12)
        assert got["expected_cost"] == pytest.approx(result.expected_cost[number], abs=1e-9)
    known = client.post("/v1/score", json={"rows": rows[:3], "known": ["Glucose"]}).json()
    mask = np.array([name == "Glucose" for name in data.names])
    expected = policy.acquire(table[:3], known=mask)
    assert [got["cost"] for got in known["results"]] == pytest.approx(expected.cost.tolist())


def test_score_of_text_classes_and_an_array_model(mixed, pima):
    *_, policy = mixed
    client = TestClient(create_app(policy))
    row = {"a": 0.5, "b": -1.0, "group group": "mid", "flag": 1}
    (got,) = client.post("/v1/score", json={"rows": [row]}).json()["results"]
    assert got["label"] in ("yes", "no")
    data = pima[0]
    from adacos import AdaCOSClassifier

    unnamed = AdaCOSClassifier(strengths="common", cv=3).fit(data.X.to_numpy(), data.y)
    client = TestClient(create_app(unnamed))
    (got,) = client.post("/v1/score", json={"rows": [{"x1": 150}]}).json()["results"]
    assert got["label"] in (0, 1)


def test_score_that_knows_what_is_not_there(client):
    answer = client.post("/v1/score", json={"rows": [{"Age": 50}], "known": ["BMI"]})
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["field"] == "known"


def test_card(mixed):
    table, _, policy = mixed
    described = copy.copy(policy)
    words = CovariateDescription(label="Alpha", unit="mg/dl")
    describe(described, Description(covariates={"a": words}))
    card = TestClient(create_app(described)).get("/v1/model").json()
    assert card["classes"] == ["no", "yes"]
    assert card["certificate"]["confidence"] == 0.9
    assert card["certificate"]["text"] == str(policy.certificate_)
    covariates = {item["name"]: item for item in card["covariates"]}
    assert covariates["a"]["label"] == "Alpha"
    assert covariates["a"]["unit"] == "mg/dl"
    assert covariates["a"]["low"] == table.column("a").min()
    assert covariates["group group"]["categories"] == ["high", "low", "mid"]
    assert covariates["group group"]["low"] is None
    assert "Research use" in card["notice"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"known": {"Age": NaN}}', "known.Age"),
        ('{"acquired": {"Age": Infinity}}', "acquired.Age"),
        ('{"known": {"Age": 1e999}}', "known.Age"),
        ('{"known": {"Age": 1e300}}', "known.Age"),
        ('{"known": {"Age": "fifty"}}', "known.Age"),
        ('{"known": {"Age": true}}', "known.Age"),
        ('{"known": {"Age": null}}', "known.Age"),
        ('{"known": {"Age": [1]}}', "known.Age"),
        ('{"known": {"Height": 1}}', "known.Height"),
        ('{"known": []}', "known"),
        ('{"unavailable": ["Height"]}', "unavailable.0"),
        ('{"unavailable": "Age"}', "unavailable"),
        ('{"unavailable": ["Age"], "known": {"Age": 5}}', "unavailable.0"),
        ('{"acquired": {"Age": 5}, "known": {"Age": 5}}', "acquired.Age"),
        ('{"other": 5}', "other"),
        ('{"stop": 1}', "stop"),
        ('{"stop": "true"}', "stop"),
        ('{"stop": null}', "stop"),
        ("5", "body"),
    ],
)
def test_wrong_fields_are_named(client, body, field):
    answer = client.post("/v1/step", content=body, headers=JSON)
    assert answer.status_code == 422
    assert [problem["field"] for problem in answer.json()["fields"]] == [field]


@pytest.mark.parametrize(
    "headers", [{}, {"content-type": "application/x-www-form-urlencoded"}], ids=["none", "form"]
)
def test_a_body_not_declared_as_json(client, headers):
    answer = client.post("/v1/step", content='{"known": {"Age": 50}}', headers=headers)
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/model", "/v1/health", "/v1/ready", "/metrics", "/"])
def test_a_post_to_what_is_only_read_is_the_wrong_method(client, path):
    for options in ({}, {"json": {}}):
        answer = client.post(path, **options)
        assert answer.status_code == 405
        assert "GET" in answer.headers["allow"]
    assert client.post("/nowhere").status_code == 404


def test_what_needs_a_key_is_declared(pima, tmp_path):
    log = f"sqlite:///{tmp_path}/cases.db"
    app = create_app(pima[1], Settings(api_key="0123456789abcdef", case_log=log))
    with TestClient(app) as client:
        for path, methods in app.openapi()["paths"].items():
            for method, declared in methods.items():
                sent = client.request(method, path.replace("{case_id}", "c"), json={})
                assert ("security" in declared) == (sent.status_code == 401), path


@pytest.mark.parametrize(
    "body", ["", "{", "[" * 100_000, '{"known": {"Age": ', b"\xff\xfe{", "1" * 9999]
)
def test_malformed_bodies(client, body):
    answer = client.post("/v1/step", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"detail", "fields"}


def test_rows_are_limited(pima):
    client = TestClient(create_app(pima[1], Settings(max_rows=2)))
    assert client.post("/v1/score", json={"rows": [{}, {}]}).status_code == 200
    answer = client.post("/v1/score", json={"rows": [{}, {}, {}]})
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["field"] == "rows"
    assert client.post("/v1/score", json={"rows": []}).status_code == 422


def test_bodies_are_limited(pima):
    client = TestClient(create_app(pima[1], Settings(max_body_bytes=100)))
    assert client.post("/v1/step", json={"known": {"Age": 5}}).status_code == 200
    assert client.post("/v1/step", content=" " * 101, headers=JSON).status_code == 413
    chunks = (b" " * 60 for _ in range(2))
    assert client.post("/v1/step", content=chunks, headers=JSON).status_code == 413


def test_key(pima):
    secret = "0123456789abcdef"
    client = TestClient(create_app(pima[1], Settings(api_key=f" {secret}\n")))
    assert client.get("/v1/health").status_code == 200
    assert client.get("/").status_code == 200
    for wrong in ({}, {"Authorization": "Bearer secret"}, {"Authorization": secret}):
        for path in ("/v1/model", "/metrics", "/v1/nothing", "/openapi.json", "/docs", "/x"):
            answer = client.get(path, headers=wrong)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.post("/v1/step", json={}, headers=wrong).status_code == 401
    right = {"Authorization": f"Bearer {secret}"}
    assert client.get("/v1/model", headers=right).status_code == 200
    assert client.post("/v1/step", json={}, headers=right).status_code == 200
    assert client.get("/openapi.json", headers=right).status_code == 200
    for wrong, reported in (
        ("", "blank one"),
        (" ", "blank one"),
        ("secret", "6 characters"),
        ("schlüssel" * 2, "other characters"),
    ):
        with pytest.raises(ValueError, match="api_key") as refused:
            Settings(api_key=wrong)
        assert reported in str(refused.value)
        assert not wrong.strip() or wrong not in str(refused.value)


def test_rate(pima):
    client = TestClient(create_app(pima[1], Settings(rate_limit=3)))
    found = [client.post("/v1/step", json={}) for _ in range(6)]
    assert [answer.status_code for answer in found[:3]] == [200] * 3
    assert found[-1].status_code == 429
    assert found[-1].headers["retry-after"] == "1"


def test_buckets_refill_and_forget():
    now = 0.0
    buckets = Buckets(2.0, clock=lambda: now)
    assert [buckets.take("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert buckets.take("10.0.0.2")
    now = 0.5
    assert [buckets.take("10.0.0.1") for _ in range(2)] == [True, False]
    for client in range(20_000):
        buckets.take(f"10.1.{client // 256}.{client % 256}")
    assert len(buckets._levels) <= 10_000


def test_neither_values_nor_traces_in_logs_and_errors(pima, monkeypatch, caplog):
    def fail(self, *_):
        raise RuntimeError("patient is 61.25")

    monkeypatch.setattr(answers.Answers, "_replay", fail)
    client = TestClient(create_app(pima[1]))
    with caplog.at_level(logging.DEBUG):
        answer = client.post("/v1/step", json={"known": {"Age": 61.25}})
        wrong = client.post("/v1/step", json={"known": {"Age": "61.25"}})
        odd = client.post("/v1/step", content='{"known": {"Age": 61.25}', headers=JSON)
    assert answer.status_code == 500
    (failed,) = [record for record in caplog.records if record.name == "adacos.service"]
    assert failed.error == "RuntimeError"
    assert failed.place.startswith("fail:")
    for text in (caplog.text, answer.text, wrong.text, odd.text):
        assert "61.25" not in text
        assert "Traceback" not in text
        assert __file__ not in text


def test_metrics_hold_no_values(client):
    client.post("/v1/step", json={"known": {"Age": 61.25}})
    client.post("/v1/step", json={"known": {"61.25": 61.25}})
    client.get("/61.25")
    text = client.get("/metrics").text
    assert 'adacos_requests_total{route="step",status="2xx"} 1\n' in text
    assert 'adacos_requests_total{route="step",status="4xx"} 1\n' in text
    assert 'adacos_request_seconds_count{route="step"} 2\n' in text
    assert "61.25" not in text


def test_page_takes_nothing_from_elsewhere(client):
    for path in ("/", "/app.js", "/fields.js", "/show.js", "/state.js", "/tree.js", "/style.css"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "http://" not in answer.text.replace("http://www.w3.org/", "")
        assert "https://" not in answer.text


def test_openapi_lists_the_covariates(client):
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/v1/step",
        "/v1/score",
        "/v1/model",
        "/v1/health",
        "/v1/ready",
    }
    assert "Glucose" in document["components"]["schemas"]["Values"]["properties"]
    assert client.get("/docs").status_code == 404


def _plain(step):
    return json.loads(json.dumps(step.to_dict()))


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/step", {"known": {f"x{number}": 1 for number in range(9)}}, "known"),
        ("/v1/step", {f"x{number}": 1 for number in range(9)}, "body"),
        ("/v1/step", {"unavailable": ["x"] * 9}, "unavailable"),
        ("/v1/score", {"rows": [{}] * 10_001}, "rows"),
        ("/v1/score", {"rows": [{"x": 1}] * 10_000}, "rows.0.x"),
    ],
)
def test_of_very_many_mistakes_one_is_looked_for(client, path, body, field):
    """Each mistake takes time in the event loop to be put into words."""
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["fields"]] == [field]


def test_scores_do_not_depend_on_how_many_are_asked_for_at_once(client, pima):
    rows = pima[0].X.to_dict("records") * 3
    rows[1500] = {"Age": 900.0}
    found = client.post("/v1/score", json={"rows": rows}).json()
    assert [one["row"] for one in found["warnings"] if one["covariate"] == "Age"] == [1500]
    result = pima[1].acquire(pima[0].X)
    labels = [one["label"] for one in found["results"]]
    assert labels[:1500] == (result.label.tolist() * 3)[:1500]
    assert labels[1501:] == (result.label.tolist() * 3)[1501:]


def test_answers_name_their_model_and_the_header_is_declared(client, pima):
    """A generated client sends what the document declares, and what it was told before."""
    document = client.get("/openapi.json").json()
    for path in ("/v1/step", "/v1/score"):
        declared = [one["name"] for one in document["paths"][path]["post"]["parameters"]]
        assert declared == ["adacos-model"]
    model = fingerprint(pima[1])
    step = client.post("/v1/step", json={}, headers={"Adacos-Model": model}).json()
    score = client.post("/v1/score", json={"rows": [{}]}).json()
    assert step["model"] == score["model"] == model
    final = client.post("/v1/step", json={"stop": True}).json()
    assert (final["model"], final["order"]) == (model, [])


def test_a_list_fixes_the_order_in_which_was_paid():
    """Members of a panel have discounts of their own, so that the first of them decides."""
    data = adacos.load_pima()
    costs = Costs(
        data.prices,
        false_positive=100,
        false_negative=1000,
        panels={"blood": {"Glucose": 1.0, "Insulin": 20.0}},
    )
    policy = FullModelClassifier(costs, strengths="common", n_splines=5, cv=3)
    client = TestClient(create_app(policy.fit(data.X, data.y), Settings(rate_limit=0)))
    paid = {}
    for names in (("Glucose", "Insulin"), ("Insulin", "Glucose")):
        values = dict.fromkeys(names, 100.0)
        for acquired in (values, [{name: 100.0} for name in names], [values]):
            body = {"acquired": acquired, "stop": True}
            answer = client.post("/v1/step", json=body).json()
            assert answer["order"] == list(names)
            paid.setdefault(names, set()).add(answer["cost"])
    assert all(len(costs) == 1 for costs in paid.values())
    assert len(set.union(*paid.values())) == 2


@pytest.mark.parametrize(
    "acquired", [[{"Age": 1.0}, {"Age": 2.0}], [["Age"]], [{"Age": 1.0}, 3], ["Age"], [{"x": 1}]]
)
def test_lists_that_are_none_of_acquisitions(client, acquired):
    answer = client.post("/v1/step", json={"acquired": acquired})
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["field"].startswith("acquired")


def test_a_recalibrated_model_says_so_and_decides_so(pima):
    data, policy = pima
    moved = policy.recalibrate(prevalence=0.05)
    client = TestClient(create_app(moved))
    card = client.get("/v1/model").json()
    assert card["recalibration"]["text"] == "Recalibrated from a prevalence of 34.9% to 5.0%."
    assert card["recalibration"]["after"][1] == pytest.approx(0.05)
    row = data.X.iloc[0].dropna().to_dict()
    step = client.post("/v1/step", json={"known": row}).json()
    assert step["probability"] == pytest.approx(
        moved.predict_proba(data.X[:1], known=list(row))[0, 1]
    )

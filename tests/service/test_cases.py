"""The case log: recorded once, found after a crash, and compared with what was promised."""

from __future__ import annotations

import copy
import json
import os
import sqlite3
import stat

import numpy as np
import pytest

import adacos
from adacos.consultation import fingerprint
from adacos.kernels.anytime import confidence_sequence
from adacos.service.app import create_app
from adacos.service.case_log import CaseLog
from adacos.service.case_versions import VERSION
from adacos.service.settings import Settings
from adacos.tables.description import CovariateDescription, Description
from tests.service.conftest import TestClient, finish
from tests.service.databases import rows_of


def test_a_case_is_recorded_once(pima, logged, tmp_path):
    row = pima[0].X.to_dict("records")[0]
    body, step = finish(logged, row)
    first = logged.post("/v1/cases", json={**body, "id": "case-1"})
    assert first.status_code == 201
    assert {k: first.json()[k] for k in ("label", "probability", "cost")} == {
        k: step[k] for k in ("label", "probability", "cost")
    }
    again = logged.post("/v1/cases", json={**body, "id": "case-1"})
    assert again.status_code == 200
    assert again.json() == first.json()
    other, _ = finish(logged, {**row, "Age": 25.0})
    assert logged.post("/v1/cases", json={**other, "id": "case-1"}).status_code == 409
    assert logged.post("/v1/cases", json=body).status_code == 201
    assert logged.get("/v1/cases/summary").json()["cases"] == 2
    assert stat.S_IMODE(os.stat(tmp_path / "cases.db").st_mode) == 0o600


def test_an_unfinished_consultation_is_not_recorded(logged):
    answer = logged.post("/v1/cases", json={})
    assert answer.status_code == 409
    assert "comes next" in answer.json()["detail"]
    assert '"stop": true' in answer.json()["detail"]
    assert logged.get("/v1/cases/summary").json()["cases"] == 0


def test_a_consultation_stopped_early_is_recorded_as_such(pima, logged, tmp_path):
    body = {"acquired": {"Age": 24.0}, "stop": True}
    step = logged.post("/v1/step", json=body).json()
    first = logged.post("/v1/cases", json={**body, "id": "c"})
    assert first.status_code == 201
    assert first.json()["course"] == "stopped"
    assert {k: first.json()[k] for k in ("label", "probability", "cost")} == {
        k: step[k] for k in ("label", "probability", "cost")
    }
    assert logged.post("/v1/cases", json={**body, "id": "c"}).status_code == 200
    with sqlite3.connect(tmp_path / "cases.db") as connection:
        ((stored_as,),) = connection.execute("select consultation from adacos_cases")
    assert json.loads(stored_as)["stop"] is True


def test_stop_at_the_end_changes_nothing(pima, logged):
    body, _ = finish(logged, pima[0].X.to_dict("records")[0])
    first = logged.post("/v1/cases", json={**body, "id": "c"})
    again = logged.post("/v1/cases", json={**body, "id": "c", "stop": True})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()


def test_the_course_of_a_case(pima, logged):
    row = pima[0].X.to_dict("records")[0]
    followed, _ = finish(logged, row)
    asked = list(followed["acquired"])
    known, _ = finish(logged, row, known=("Age",))
    skipped = {"acquired": {}, "unavailable": [asked[0]]}
    while (step := logged.post("/v1/step", json=skipped).json())["action"] == "acquire":
        skipped["acquired"] |= {name: row[name] for name in step["covariates"]}
    other = {"acquired": {**followed["acquired"], "Insulin": row["Insulin"]}}
    while (step := logged.post("/v1/step", json=other).json())["action"] == "acquire":
        other["acquired"] |= {name: row[name] for name in step["covariates"]}
    assert "Insulin" not in asked
    for body, course in (
        (followed, "followed"),
        ({**followed, "acquired": dict(reversed(followed["acquired"].items()))}, "followed"),
        (known, "departed"),
        (skipped, "departed"),
        (other, "departed"),
        ({"stop": True}, "stopped"),
        ({"known": {"Age": 24.0}, "stop": True}, "stopped"),
    ):
        assert logged.post("/v1/cases", json=body).json()["course"] == course


@pytest.mark.parametrize("value", [("Age", 900.0), ("BMI", -3.0), ("Age", 20.0)])
def test_a_case_with_a_value_unlike_those_in_training_did_not_follow(pima, logged, value):
    row = {**pima[0].X.to_dict("records")[0], value[0]: value[1]}
    body, step = finish(logged, row)
    assert value[0] in body["acquired"]
    assert logged.post("/v1/cases", json=body).json()["course"] == "departed"
    assert "a value is unlike those in training" in step["not_covered"]


def test_a_declared_range_is_heeded_by_steps_scores_and_cases(pima):
    data, policy = pima
    described = copy.copy(policy)
    own = CovariateDescription(label="Age now", unit="years", range=(30, 110))
    adacos.describe(described, Description(covariates={"Age": own}))
    with TestClient(create_app(described)) as client:
        row = {**data.X.to_dict("records")[0], "Age": 25.0}
        _, step = finish(client, row)
        (warning,) = step["warnings"]
        assert (warning["covariate"], warning["kind"]) == ("Age", "implausible")
        assert "Age now = 25 lies outside what is plausible, 30 to 110 years" in warning["message"]
        assert "unlike those in training" in step["not_covered"]
        scored = client.post("/v1/score", json={"rows": [row]}).json()
        assert [one["kind"] for one in scored["warnings"]] == ["implausible"]
    with TestClient(create_app(policy)) as client:
        assert finish(client, row)[1]["not_covered"] == ""


def test_cases_stopped_early_are_kept_apart(pima, logged):
    rows = pima[0].X.to_dict("records")[:6]
    for number, row in enumerate(rows):
        body, _ = finish(logged, row)
        if number >= 4:
            body = {"acquired": {"Age": 24.0}, "stop": True}
        logged.post("/v1/cases", json={**body, "id": f"c{number}"})
        logged.post(f"/v1/cases/c{number}/outcome", json={"outcome": 1})
        if number == 3:
            before = logged.get("/v1/cases/summary").json()
    found = logged.get("/v1/cases/summary").json()
    early, none = found.pop("stopped_early"), before.pop("stopped_early")
    assert found == before
    assert (none["cases"], none["total_cost"]["observed"]) == (0, None)
    assert (early["cases"], early["with_outcome"]) == (2, 2)
    assert early["recall"]["cases"] == 2
    assert early["total_cost"]["observed"] is not None
    assert early["total_cost"]["promised"] is None
    assert early["total_cost"]["promise"] is None


@pytest.mark.parametrize("case_id", ["", "a b", "-x", "x" * 65, 5, "é", "a/b"])
def test_wrong_ids(pima, logged, case_id):
    body, _ = finish(logged, pima[0].X.to_dict("records")[0])
    answer = logged.post("/v1/cases", json={**body, "id": case_id})
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["field"] == "id"


def test_outcomes_are_recorded_and_corrected(pima, logged):
    body, _ = finish(logged, pima[0].X.to_dict("records")[0])
    logged.post("/v1/cases", json={**body, "id": "c"})
    for outcome in (0, 1):
        seen = logged.get("/v1/cases/c").headers["etag"]
        sent = {"If-Match": seen}
        answer = logged.post("/v1/cases/c/outcome", json={"outcome": outcome}, headers=sent)
        assert answer.status_code == 200
        assert answer.json()["outcome"] == outcome
    assert logged.post("/v1/cases/d/outcome", json={"outcome": 1}).status_code == 404
    for wrong in (2, "1", True, None, 0.5):
        answer = logged.post("/v1/cases/c/outcome", json={"outcome": wrong})
        assert answer.status_code == 422
        assert answer.json()["fields"][0]["field"] == "outcome"
    assert logged.get("/v1/cases/summary").json()["recall"]["cases"] == 1


def test_summary_is_that_of_the_rows(pima, logged):
    data, policy = pima
    rows = data.X.to_dict("records")[:40]
    result = policy.acquire(data.X[:40])
    for number, row in enumerate(rows):
        body, _ = finish(logged, row)
        logged.post("/v1/cases", json={**body, "id": f"c{number}"})
        if number < 30:
            logged.post(f"/v1/cases/c{number}/outcome", json={"outcome": int(data.y[number])})
    found = logged.get("/v1/cases/summary").json()
    closed, y = result.rows(slice(0, 30)), data.y[:30]
    costs = adacos.Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
    from adacos.metrics import false_discovery_rate, recall, recall_interval, total_costs

    each = total_costs(closed, y, costs)
    assert (found["cases"], found["with_outcome"]) == (40, 30)
    assert found["covariate_cost"] == pytest.approx(result.cost.mean())
    assert found["total_cost"]["observed"] == pytest.approx(each.mean())
    assert found["total_cost"]["low"] < each.mean() < found["total_cost"]["high"]
    assert found["total_cost"]["promised"] == pytest.approx(closed.expected_cost.mean())
    assert found["recall"]["observed"] == pytest.approx(recall(closed, y))
    low, high = recall_interval(closed, y)
    assert found["recall"]["low"] < low
    assert high <= found["recall"]["high"]
    assert found["false_discovery_rate"]["observed"] == pytest.approx(
        false_discovery_rate(closed, y)
    )
    assert found["certified_recall"] is None
    # Thirty cases with hardly an error say nothing about errors that cost a thousand.
    assert each.mean() < closed.expected_cost.mean()
    assert found["total_cost"]["promise"] == "undecided"


def test_a_broken_promise_shows(mixed, tmp_path):
    table, _, policy = mixed
    settings = Settings(case_log=f"sqlite:///{tmp_path}/cases.db", rate_limit=0)
    client = TestClient(create_app(policy, settings))
    rows = [
        {name: table.column(name)[row].item() for name in table.columns}
        for row in np.flatnonzero(policy.acquire(table).label == "no")[:25]
    ]
    for number, row in enumerate(rows):
        body, _ = finish(client, row, known=("a",) if number >= 20 else ())
        client.post("/v1/cases", json={**body, "id": f"c{number}"})
        client.post(f"/v1/cases/c{number}/outcome", json={"outcome": "yes"})
    found = client.get("/v1/cases/summary").json()
    assert found["recall"]["cases"] == 25
    certified = found["certified_recall"]
    assert certified["cases"] == 20
    assert certified["promised"] == policy.certificate_.bound
    assert certified["high"] == pytest.approx(float(confidence_sequence(0, 20, 0.95)[1]))
    assert certified["promise"] == "broken"


def test_cases_of_other_models_are_kept_apart(pima, mixed, logged, tmp_path):
    body, _ = finish(logged, pima[0].X.to_dict("records")[0])
    logged.post("/v1/cases", json={**body, "id": "c"})
    settings = Settings(case_log=f"sqlite:///{tmp_path}/cases.db")
    other = TestClient(create_app(mixed[2], settings))
    found = other.get("/v1/cases/summary").json()
    assert (found["cases"], found["of_other_models"]) == (0, 1)
    assert other.post("/v1/cases/c/outcome", json={"outcome": "no"}).status_code == 409


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "nosuch://x", "sqlite:////no/x"]
)
def test_wrong_urls(url):
    with pytest.raises(ValueError, match="case_log") as refused:
        CaseLog(url).prepare([])
    assert url in str(refused.value) or "in memory" in str(refused.value)


def test_a_file_name_in_place_of_a_url():
    with pytest.raises(ValueError, match=r"received cases\.db\. .*write sqlite:///cases\.db"):
        CaseLog("cases.db").prepare([])


@pytest.mark.parametrize(
    "url",
    [
        "nosuch://me:hush@host/x",
        "me:hush@host",
        "nosuch://host/x?user=me&password=hush",
        "host?password=hush",
        "nosuch://me:hu@hush@host/x",
    ],
)
def test_no_password_in_errors(url):
    with pytest.raises(ValueError, match="host") as refused:
        CaseLog(url).prepare([])
    assert "hush" not in str(refused.value)


def test_a_log_with_other_columns_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "cases.db") as connection:
        connection.execute("create table adacos_cases (id text primary key, label integer)")
    with pytest.raises(ValueError, match="must be of version"):
        CaseLog(f"sqlite:///{tmp_path}/cases.db").prepare([])


def test_a_log_that_fails_is_reported_without_values(pima, logged, tmp_path, caplog):
    body, _ = finish(logged, pima[0].X.to_dict("records")[0])
    with sqlite3.connect(tmp_path / "cases.db") as connection:
        connection.execute("drop table adacos_cases")
    answer = logged.post("/v1/cases", json={**body, "id": "c"})
    assert answer.status_code == 503
    assert "insert" not in (answer.text + caplog.text).lower()


def test_the_log_is_in_wal_mode(logged, tmp_path):
    logged.get("/v1/cases/summary")
    with sqlite3.connect(tmp_path / "cases.db") as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


@pytest.fixture
def recorded(pima, log_url):
    """A client of a service with a log, and the body of a case recorded as "c"."""
    client = TestClient(create_app(pima[1], Settings(case_log=log_url, rate_limit=0)))
    body = {"acquired": {"Age": 24.0}, "stop": True}
    assert client.post("/v1/cases", json={**body, "id": "c"}).status_code == 201
    return client, body


def test_outcomes_are_accepted_after_a_model_change_and_kept(pima, recorded, log_url):
    data, policy = pima
    client, _ = recorded
    client.post("/v1/cases/c/outcome", json={"outcome": 0})
    new = adacos.AdaCOSClassifier(policy.costs, strengths="common").fit(data.X[:400], data.y[:400])
    key = "0123456789abcdef"
    later = TestClient(create_app(new, Settings(case_log=log_url, rate_limit=0, api_key=key)))
    sent = {"Authorization": f"Bearer {key}", "X-Request-Id": "visit-7", "If-Match": '"1"'}
    answer = later.post("/v1/cases/c/outcome", json={"outcome": 1}, headers=sent)
    assert (answer.status_code, answer.json()["outcome"]) == (200, 1)
    assert answer.json()["model"] == fingerprint(policy)
    found = rows_of(log_url, "select outcome, who from adacos_outcomes order by number")
    assert found == [(0, "anyone"), (1, "api-key")]
    noted = rows_of(log_url, "select action, who, request, case_id from adacos_audit")
    assert ("outcome", "api-key", "visit-7", "c") in noted
    assert {action for action, *_ in noted} == {"model", "serving", "case", "outcome"}


def test_a_summary_that_was_read_is_noted(recorded, log_url):
    recorded[0].get("/v1/cases/summary")
    recorded[0].get("/metrics")
    noted = rows_of(log_url, "select who from adacos_audit where action = 'summary'")
    assert noted == [("anyone",)]


def test_a_log_of_the_first_version_is_migrated(pima, log_url):
    """The tables as the first version made them, with one outcome."""
    for statement in (
        "create table adacos_cases (id varchar(64) primary key, recorded varchar(32) not null, "
        "model varchar(16) not null, consultation text not null, course varchar(16) not null, "
        "label integer not null, probability double precision not null, "
        "cost double precision not null, expected_cost double precision not null, "
        "outcome integer, outcome_recorded varchar(32))",
        "create index ix_adacos_cases_model on adacos_cases (model)",
        "insert into adacos_cases values ('old', '2026-01-01', '"
        + fingerprint(pima[1])
        + "', '{}', 'followed', 0, 0.1, 1.0, 2.0, 1, '2026-02-02')",
    ):
        rows_of(log_url, statement)
    for _ in range(2):
        client = TestClient(create_app(pima[1], Settings(case_log=log_url)))
        assert client.get("/v1/cases/summary").json()["recall"]["cases"] == 1
        assert rows_of(log_url, "select version from adacos_schema") == [(VERSION,)]
        found = rows_of(log_url, "select case_id, outcome, recorded from adacos_outcomes")
        assert found == [("old", 1, "2026-02-02")]


def test_a_log_of_a_later_version_is_left_alone(pima, recorded, log_url):
    rows_of(log_url, "update adacos_schema set version = 99")
    with pytest.raises(ValueError, match="version 99"):
        create_app(pima[1], Settings(case_log=log_url))


def damage(path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    page = 4096
    if kind == "page":
        content[2 * page : 3 * page] = bytes(page)
    elif kind == "cut":
        del content[len(content) // 2 :]
    elif kind == "bits":
        for position in range(page + 100, len(content), 997):
            content[position] ^= 0x55
    elif kind == "header":
        content[:16] = bytes(16)
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["page", "cut", "bits", "header"])
def test_a_damaged_file_is_refused(pima, tmp_path, kind):
    path = tmp_path / "cases.db"
    settings = Settings(case_log=f"sqlite:///{path}", rate_limit=0)
    client = TestClient(create_app(pima[1], settings))
    for number in range(60):
        client.post("/v1/cases", json={"stop": True, "id": f"c{number}"})
    with sqlite3.connect(path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    del client
    damage(path, kind)
    for name in ("cases.db-wal", "cases.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(ValueError, match="case_log"):
        create_app(pima[1], settings)


@pytest.mark.parametrize("what", ["deleted", "replaced", "journal"])
def test_a_log_that_was_taken_away_acknowledges_nothing(pima, logged, tmp_path, what):
    path = tmp_path / "cases.db"
    assert logged.post("/v1/cases", json={"stop": True, "id": "a"}).status_code == 201
    assert logged.get("/v1/ready").json()["case_log"] == "ready"
    if what == "journal":
        (tmp_path / "cases.db-wal").unlink()
    else:
        path.unlink()
    if what == "replaced":
        path.touch()
    answer = logged.post("/v1/cases", json={"stop": True, "id": "b"})
    assert answer.status_code == 503
    assert "Send the same request again" in answer.json()["detail"]
    assert logged.post("/v1/cases/a/outcome", json={"outcome": 1}).status_code == 503
    assert logged.post("/v1/step", json={}).status_code == 200


def test_backup_and_restore_of_a_file_in_use(pima, logged, tmp_path):
    body = {"stop": True}
    for number in range(20):
        logged.post("/v1/cases", json={**body, "id": f"c{number}"})
    source, copy = sqlite3.connect(tmp_path / "cases.db"), sqlite3.connect(tmp_path / "copy.db")
    with source, copy:
        source.backup(copy)
        (tmp_path / "copy.db").chmod(0o644)
        assert copy.execute("pragma integrity_check").fetchone() == ("ok",)
    source.close()
    copy.close()
    logged.post("/v1/cases", json={**body, "id": "after"})
    restored = Settings(case_log=f"sqlite:///{tmp_path}/copy.db", rate_limit=0)
    client = TestClient(create_app(pima[1], restored))
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert client.get("/v1/cases/summary").json()["stopped_early"]["cases"] == 20
    assert client.post("/v1/cases", json={**body, "id": "c3"}).status_code == 200


def test_backup_and_restore_of_a_server(pima, postgres):
    url = postgres.database("to_be_saved")
    client = TestClient(create_app(pima[1], Settings(case_log=url, rate_limit=0)))
    client.post("/v1/cases", json={"stop": True, "id": "c"})
    saved = postgres.client("pg_dump", "to_be_saved").stdout
    other = postgres.database("restored")
    postgres.client("psql", "-q", "-v", "ON_ERROR_STOP=1", "restored", input=saved)
    again = TestClient(create_app(pima[1], Settings(case_log=other, rate_limit=0)))
    assert again.post("/v1/cases", json={"stop": True, "id": "c"}).status_code == 200

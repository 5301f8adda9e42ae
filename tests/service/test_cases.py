"""The case log: recorded once, found after a crash, and compared with what was promised."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest

import adacos
from adacos.kernels.anytime import confidence_sequence
from adacos.service.app import create_app
from adacos.service.case_log import CaseLog
from adacos.service.settings import Settings
from tests.service.conftest import TestClient, finish


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
        answer = logged.post("/v1/cases/c/outcome", json={"outcome": outcome})
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
        CaseLog(url).prepare({})
    assert url in str(refused.value) or "in memory" in str(refused.value)


def test_a_file_name_in_place_of_a_url():
    with pytest.raises(ValueError, match=r"received cases\.db\. .*write sqlite:///cases\.db"):
        CaseLog("cases.db").prepare({})


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
        CaseLog(url).prepare({})
    assert "hush" not in str(refused.value)


def test_a_log_with_other_columns_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "cases.db") as connection:
        connection.execute("create table adacos_cases (id text primary key, label integer)")
    with pytest.raises(ValueError, match="must be of version"):
        CaseLog(f"sqlite:///{tmp_path}/cases.db").prepare({})


def test_a_log_that_fails_is_told_without_values(pima, logged, tmp_path, caplog):
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


@pytest.mark.parametrize(
    "cases", [60, pytest.param(1000, marks=pytest.mark.study)], ids=["some", "many"]
)
def test_acknowledged_cases_survive_a_kill(pima, tmp_path, cases):
    """Two writers, a kill -9 half way, and every case sent again to a new process."""
    data, policy = pima
    model, database = tmp_path / "m.adacos", tmp_path / "cases.db"
    adacos.save(policy, model)
    with TestClient(create_app(policy, Settings(rate_limit=0))) as client:
        body, _ = finish(client, data.X.to_dict("records")[0])
    acknowledged: list[str] = []
    failed = threading.Event()

    def write(numbers, url):
        with httpx.Client(base_url=url, timeout=30) as client:
            for number in numbers:
                try:
                    answer = client.post("/v1/cases", json={**body, "id": f"c{number}"})
                except httpx.HTTPError:
                    failed.set()
                    return
                assert answer.status_code in (200, 201)
                acknowledged.append(f"c{number}")

    def write_all(url, process=None):
        writers = [
            threading.Thread(target=write, args=(range(first, cases, 2), url)) for first in range(2)
        ]
        for writer in writers:
            writer.start()
        while process is not None and any(writer.is_alive() for writer in writers):
            if len(acknowledged) >= cases // 2:
                os.kill(process.pid, signal.SIGKILL)
                process = None
            time.sleep(0.001)
        for writer in writers:
            writer.join()

    process, url = start(model, database)
    write_all(url, process)
    process.wait()
    assert failed.is_set()
    survivors = stored(database)
    assert len(set(survivors)) == len(survivors)
    assert set(acknowledged) <= set(survivors)
    assert len(survivors) < cases
    process, url = start(model, database)
    try:
        write_all(url)
    finally:
        process.terminate()
        process.wait()
    assert sorted(stored(database)) == sorted(f"c{number}" for number in range(cases))


def start(model, database):
    """The service in a process of its own, and its address."""
    code = (
        "import sys; from adacos import load; from adacos.service.server import serve;"
        "from adacos.service.settings import Settings;"
        "serve(load(sys.argv[1]), Settings(case_log='sqlite:///' + sys.argv[2], rate_limit=0),"
        "port=0, ready=lambda url: print(url, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(model), str(database)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def stored(database) -> list[str]:
    with sqlite3.connect(database) as connection:
        return [case_id for (case_id,) in connection.execute("select id from adacos_cases")]

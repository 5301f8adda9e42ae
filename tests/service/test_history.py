"""Corrections by several at once, the chain of digests, deletion, and whether there is room."""

from __future__ import annotations

import contextlib
import copy
import random
import sqlite3
import threading
import time
from collections import Counter
from datetime import date

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from adacos.cli.app import app
from adacos.consultation import fingerprint
from adacos.service import case_log
from adacos.service.app import create_app
from adacos.service.case_log import CaseLog
from adacos.service.promises import Promises, promises_of
from adacos.service.settings import Settings
from adacos.tables.description import CovariateDescription, Description
from tests.service.conftest import TestClient
from tests.service.databases import rows_of
from tests.service.running import ask, running

ONE = {"acquired": {"Age": 24.0}, "stop": True}


def served(policy, url: str) -> TestClient:
    return TestClient(create_app(policy, Settings(case_log=url, rate_limit=0)))


def correct(client, outcome: int, tag: str | None = None):
    headers = {} if tag is None else {"If-Match": tag}
    return client.post("/v1/cases/c/outcome", json={"outcome": outcome}, headers=headers)


def test_nobody_overwrites_an_outcome_that_they_have_not_seen(pima, log_url):
    client = served(pima[1], log_url)
    first = client.post("/v1/cases", json={**ONE, "id": "c"})
    assert (first.headers["etag"], first.json()["version"]) == ('"0"', 0)
    assert correct(client, 0).headers["etag"] == '"1"'
    # What is recorded already may be sent again, whatever was seen.
    assert [correct(client, 0, tag).status_code for tag in (None, '"0"', '"7"')] == [200] * 3
    unnamed, stale = correct(client, 1), correct(client, 1, '"0"')
    assert (unnamed.status_code, stale.status_code) == (428, 412)
    assert unnamed.headers["etag"] == stale.headers["etag"] == '"1"'
    for odd in ("1", "*", 'W/"1"', "", '"x"', '"99999999999999999999"'):
        assert correct(client, 1, odd).status_code == 412
    assert correct(client, 1, '"7", "1"').status_code == 200
    assert client.get("/v1/cases/c").json()["outcome"] == 1
    assert client.get("/v1/cases/d").status_code == 404
    looks = rows_of(log_url, "select case_id from adacos_audit where action = 'look'")
    assert looks == [("c",)]


def test_the_audit_says_which_model_was_served_with_which_description(pima, log_url):
    """Each start is a row, and another unit is another digest though the model decides alike."""
    policy = copy.deepcopy(pima[1])
    for unit in ("years", "months", "months"):
        policy.description_ = Description(covariates={"Age": CovariateDescription(unit=unit)})
        served(policy, log_url)
    rows = rows_of(
        log_url,
        "select case_id, content from adacos_audit where action = 'serving' order by number",
    )
    (one, years), (two, months), (three, again) = rows
    assert one == two == three == fingerprint(policy)
    assert years != months == again


def test_corrections_by_several_at_once(model, log_url):
    """Two processes, eight clients, two hundred corrections; somebody reads the summary."""
    cases, looks, answers, over = [f"c{k}" for k in range(25)], Counter(), Counter(), []
    with running(model, case_log=log_url, workers=2) as service:
        for case_id in cases:
            assert ask(service.url, "/v1/cases", {**ONE, "id": case_id})[0] == 201

        def look() -> None:
            while not over:
                looks[ask(service.url, "/v1/cases/summary")[0]] += 1

        def client(seed: int) -> None:
            chance = random.Random(seed)
            for number in range(25):
                version, outcome = chance.randrange(3), chance.randrange(2)
                headers = {"If-Match": f'"{version}"'} if version else {}
                path = f"/v1/cases/{cases[number]}/outcome"
                answers[ask(service.url, path, {"outcome": outcome}, headers)[0]] += 1

        clients = [threading.Thread(target=client, args=(seed,)) for seed in range(8)]
        reader = threading.Thread(target=look)
        for one in (*clients, reader):
            one.start()
        for one in clients:
            one.join()
        over.append(True)
        reader.join()
    print(f"200 corrections on {log_url.partition(':')[0]}: {dict(answers)}; looks: {dict(looks)}")
    assert set(answers) <= {200, 412, 428}
    assert sum(answers.values()) == 200
    assert set(looks) == {200}
    current = dict(rows_of(log_url, "select id, outcome from adacos_cases"))
    history = rows_of(
        log_url, "select case_id, outcome, recorded from adacos_outcomes order by number"
    )
    assert {case_id: outcome for case_id, outcome, _ in history} == {
        case_id: outcome for case_id, outcome in current.items() if outcome is not None
    }
    for case_id in cases:
        times = [moment for one, _, moment in history if one == case_id]
        assert times == sorted(times)
    verdict = CaseLog(log_url, create=False).verify()
    assert (verdict.changed, verdict.missing, verdict.cases) == ((), (), 25)


TAMPERED = {
    "update adacos_cases set probability = 0.5 where id = 'c1'": "case c1",
    "update adacos_cases set outcome = 0 where id = 'c0'": "outcomes of case c0",
    "update adacos_cases set version = 1 where id = 'c0'": "outcomes of case c0",
    "update adacos_outcomes set outcome = 1 where number = 1": "outcomes of case c0",
    "update adacos_outcomes set who = 'x' where number = 1": "outcomes of case c0",
    "delete from adacos_outcomes where number = 2": "outcomes of case c0",
    "update adacos_audit set who = 'x' where number = 3": "row 3 of the audit",
    "delete from adacos_audit where number = 3": "row 4 of the audit",
    "delete from adacos_audit where number = 7": "the end of the audit",
    "update adacos_tallies set cases = 9": "the counts of cases",
    "update adacos_models set classes = '[1, 0]'": "model",
    "insert into adacos_cases select 'x', recorded, model, consultation, course, label, "
    "probability, cost, expected_cost, outcome, outcome_recorded, version, salt from adacos_cases "
    "where id = 'c1'": "case x",
}


@pytest.fixture
def history(pima, tmp_path):
    """A log of three cases, one of them corrected."""
    url = f"sqlite:///{tmp_path}/cases.db"
    client = served(pima[1], url)
    for number in range(3):
        client.post("/v1/cases", json={**ONE, "id": f"c{number}"})
    client.post("/v1/cases/c0/outcome", json={"outcome": 0})
    client.post("/v1/cases/c0/outcome", json={"outcome": 1}, headers={"If-Match": '"1"'})
    return url


@pytest.mark.parametrize("statement", TAMPERED)
def test_what_was_changed_is_named_and_refused(pima, history, statement):
    rows_of(history, statement)
    found = CliRunner().invoke(app, ["cases", "verify", history])
    assert found.exit_code == 1
    assert f"changed: {TAMPERED[statement]}" in found.output
    with pytest.raises(ValueError, match="must hold what was recorded"):
        served(pima[1], history)


def test_a_log_that_is_not_checked_at_the_start_says_so_once(pima, log_url, monkeypatch, caplog):
    """A file beyond a length, and any other database; the command that checks it is named."""

    def reported():
        return [r for r in caplog.records if "not checked for changes" in r.getMessage()]

    served(pima[1], log_url).post("/v1/cases", json={**ONE, "id": "c"})
    file = log_url.startswith("sqlite")
    assert len(reported()) == (0 if file else 1)
    caplog.clear()
    monkeypatch.setattr(case_log, "_CHECKED_AT_START", 1)
    assert served(pima[1], log_url).get("/v1/health").status_code == 200
    (record,) = reported()
    assert (record.levelname, record.remedy, record.rows) == ("WARNING", "adacos cases verify", 3)


def test_a_case_that_was_taken_out_is_missing(pima, history):
    """It is told; the service goes on, because owners of a database may have deleted it so far."""
    rows_of(history, "delete from adacos_cases where id = 'c1'")
    found = CliRunner().invoke(app, ["cases", "verify", history])
    assert (found.exit_code, "missing: case c1" in found.output) == (1, True)
    assert served(pima[1], history).get("/v1/health").status_code == 200


def test_the_summary_reads_counts_and_not_the_cases(pima, log_url):
    """However many cases there are; the counts follow records, corrections and deletions."""
    client = served(pima[1], log_url)
    for number in range(6):
        client.post("/v1/cases", json={**ONE, "id": f"c{number}"})
    for number, outcome in ((0, 1), (1, 0), (2, 1)):
        client.post(f"/v1/cases/c{number}/outcome", json={"outcome": outcome})
    client.post("/v1/cases/c2/outcome", json={"outcome": 0}, headers={"If-Match": '"1"'})
    rows_of(log_url, "update adacos_cases set recorded = '2026-01-01' where id in ('c4', 'c5')")
    log, read = CaseLog(log_url), []
    sa.event.listen(log._engine, "before_cursor_execute", lambda *given: read.append(given[2]))
    counted, _ = log.tallies(fingerprint(pima[1]))
    assert read
    assert all("adacos_cases" not in statement for statement in read)
    assert {(one.outcome, one.cases) for one in counted} == {(None, 3), (0, 2), (1, 1)}
    assert log.tallies("another model")[1] == 6
    CliRunner().invoke(app, ["cases", "delete", log_url, "--before", "2026-02-01"])
    counted, _ = log.tallies(fingerprint(pima[1]))
    assert {(one.outcome, one.cases) for one in counted} == {(None, 1), (0, 2), (1, 1)}
    expected = rows_of(log_url, "select sum(cost), sum(expected_cost) from adacos_cases")
    sums = sum(one.cost for one in counted), sum(one.expected_cost for one in counted)
    assert sums == pytest.approx(expected[0])


def test_counts_are_by_the_week_of_the_case(pima, log_url):
    served(pima[1], log_url).post("/v1/cases", json={**ONE, "id": "c"})
    (week,) = {one.week for one in CaseLog(log_url).tallies(fingerprint(pima[1]))[0]}
    (recorded,) = rows_of(log_url, "select recorded from adacos_cases")
    monday, day = date.fromisoformat(week), date.fromisoformat(recorded[0][:10])
    assert monday.weekday() == 0
    assert 0 <= (day - monday).days < 7


def test_a_whole_chain_made_again_is_noticed_by_the_head_that_was_kept(history):
    log = CaseLog(history, create=False)
    kept = log.verify().head
    number = kept.partition(":")[0]
    assert log.verify(kept).changed == ()
    assert CliRunner().invoke(app, ["cases", "verify", history, "--head", kept]).exit_code == 0
    rows_of(history, f"delete from adacos_audit where number = {number}")
    rows_of(
        history,
        "update adacos_head set (number, digest) = "
        "(select number, digest from adacos_audit order by number desc limit 1)",
    )
    rows_of(
        history,
        "update adacos_cases set version = 1, outcome = 0, outcome_recorded = "
        "(select recorded from adacos_outcomes where number = 1) where id = 'c0'",
    )
    rows_of(history, "delete from adacos_outcomes where number = 2")
    rows_of(history, "delete from adacos_tallies where cases = 0")
    rows_of(history, "update adacos_tallies set outcome = 0 where outcome = 1")
    assert log.verify().changed == ()
    assert log.verify(kept).changed == ("the audit before the head that was kept",)


def test_flipped_bits_are_noticed(pima, history, tmp_path):
    """Each of 200 flips in what is in use is noticed, or changes nothing of what was recorded."""
    path, chance = tmp_path / "cases.db", random.Random(0)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    whole, recorded = path.read_bytes(), contents(history)
    noticed = Counter()
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        for name in ("cases.db-wal", "cases.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        try:
            CaseLog(history).prepare([promises_of(pima[1])])
        except ValueError:
            noticed["refused"] += 1
            continue
        noticed["as recorded"] += contents(history) == recorded
        noticed["otherwise"] += contents(history) != recorded
    assert noticed["otherwise"] == 0
    assert noticed["refused"] > 10


def contents(url: str) -> list[list[tuple]]:
    """Everything that was recorded."""
    tables = "adacos_cases", "adacos_outcomes", "adacos_audit", "adacos_models"
    return [sorted(rows_of(url, f"select * from {table}"), key=repr) for table in tables]


def test_old_cases_are_deleted_with_a_trace(pima, log_url, tmp_path):
    client = served(pima[1], log_url)
    for number in range(3):
        body = {"acquired": {"Age": 61.25}, "stop": True, "id": f"c{number}"}
        client.post("/v1/cases", json=body)
    client.post("/v1/cases/c0/outcome", json={"outcome": 1})
    run = CliRunner()
    reported = run.invoke(app, ["cases", "delete", log_url, "--before", "2020-01-01"])
    assert (reported.exit_code, reported.stdout) == (0, "0 cases deleted\n")
    reported = run.invoke(app, ["cases", "delete", log_url, "--before", "2999-01-01"])
    assert reported.stdout == "3 cases deleted\n"
    assert rows_of(log_url, "select * from adacos_outcomes") == []
    noted = rows_of(log_url, "select case_id from adacos_audit where action = 'deleted'")
    assert sorted(noted) == [("c0",), ("c1",), ("c2",)]
    verdict = CaseLog(log_url, create=False).verify()
    assert (verdict.changed, verdict.missing, verdict.deleted) == ((), (), 3)
    for file in tmp_path.glob("cases.db*"):
        assert b"61.25" not in file.read_bytes()


def test_a_log_that_is_not_there_is_not_made(tmp_path):
    path = tmp_path / "cases.db"
    assert CliRunner().invoke(app, ["cases", "verify", f"sqlite:///{path}"]).exit_code != 0
    assert not path.exists()
    sqlite3.connect(path).close()
    path.touch()
    with pytest.raises(ValueError, match="which is none"):
        CaseLog(f"sqlite:///{path}", create=False)


def test_a_log_of_the_second_version_is_chained(pima, log_url):
    """The tables as the second version made them, with a case, a correction and their audit."""
    model = fingerprint(pima[1])
    for statement in (
        "create table adacos_cases (id varchar(64) primary key, recorded varchar(32) not null, "
        "model varchar(16) not null, consultation text not null, course varchar(16) not null, "
        "label integer not null, probability double precision not null, "
        "cost double precision not null, expected_cost double precision not null, "
        "outcome integer, outcome_recorded varchar(32))",
        "create table adacos_outcomes (number integer primary key, case_id varchar(64) not null, "
        "outcome integer not null, recorded varchar(32) not null, who varchar(64) not null)",
        "create table adacos_models (model varchar(16) primary key, classes text not null, "
        "recorded varchar(32) not null)",
        "create table adacos_audit (number integer primary key, recorded varchar(32) not null, "
        "who varchar(64) not null, request varchar(64) not null, action varchar(16) not null, "
        "case_id varchar(64))",
        "create table adacos_schema (version integer primary key)",
        "insert into adacos_schema values (2)",
        f"insert into adacos_models values ('{model}', '[0, 1]', '2026-01-01')",
        f"insert into adacos_cases values ('old', '2026-01-01', '{model}', '{{}}', "
        "'followed', 0, 0.1, 1.0, 2.0, 1, '2026-02-03')",
        "insert into adacos_outcomes values (4, 'old', 0, '2026-02-02', 'a')",
        "insert into adacos_outcomes values (5, 'old', 1, '2026-02-03', 'b')",
        "insert into adacos_audit values (7, '2026-01-01', 'a', 'r', 'case', 'old')",
    ):
        rows_of(log_url, statement)
    client = served(pima[1], log_url)
    assert client.get("/v1/cases/old").headers["etag"] == '"2"'
    assert client.get("/v1/cases/summary").json()["stopped_early"]["cases"] == 0
    assert client.get("/v1/cases/summary").json()["recall"]["cases"] == 1
    verdict = CaseLog(log_url, create=False).verify()
    assert (verdict.changed, verdict.missing) == ((), ())
    assert rows_of(log_url, "select number from adacos_audit order by number")[0] == (7,)
    rows_of(log_url, "update adacos_cases set cost = 2.0")
    assert CaseLog(log_url, create=False).verify().changed == ("case old",)


def test_not_ready_where_no_case_could_be_recorded(model, small_disk):
    url = f"sqlite:///{small_disk.folder}/cases.db"
    with running(model, case_log=url) as service:
        assert ask(service.url, "/v1/ready")[0] == 200
        small_disk.fill()
        time.sleep(1.1)
        ready = ask(service.url, "/v1/ready")[0]
        case = ask(service.url, "/v1/cases", {**ONE, "id": "c"})[0]
        assert (ready, case) == (503, 503)
        small_disk.empty()
        time.sleep(1.1)
        assert ask(service.url, "/v1/ready")[0] == 200
        assert ask(service.url, "/v1/cases", {**ONE, "id": "c"})[0] == 201
    assert rows_of(url, "select * from adacos_probe") == []


def test_a_replaced_model_is_summed_up_without_its_file(pima, mixed, log_url):
    """What it promises is kept in the log, chained, and not put right where it was changed."""
    first = served(mixed[2], log_url)
    body = {"acquired": {"a": 1.0}, "stop": True, "id": "c"}
    assert first.post("/v1/cases", json=body).status_code == 201
    old = fingerprint(mixed[2])
    reported = first.get("/v1/cases/summary").json()
    later = served(pima[1], log_url)
    named = {"Adacos-Model": old}
    assert later.get("/v1/cases/summary", headers=named).json() == reported
    assert later.get("/v1/cases/summary").json()["of_other_models"] == 1
    assert later.post("/v1/step", json={}, headers=named).status_code == 410
    unknown = {"Adacos-Model": "0" * 16}
    assert later.get("/v1/cases/summary", headers=unknown).status_code == 410
    log = CaseLog(log_url, create=False)
    assert log.promises_of(old) == promises_of(mixed[2])
    assert log.verify().changed == ()
    kept = f"where model = '{old}'"
    rows_of(log_url, f"update adacos_models set promises = '{{}}' {kept}")
    log.close()
    again = CaseLog(log_url)
    with contextlib.suppress(ValueError):
        again.prepare([promises_of(mixed[2])])
    assert again.verify().changed == (f"model {old}",)


def test_a_log_of_the_fourth_version_keeps_promises_from_the_next_start_on(
    pima, log_url, monkeypatch
):
    with monkeypatch.context() as before:
        before.setattr(Promises, "to_json", lambda _: None)
        served(pima[1], log_url)
    rows_of(log_url, "alter table adacos_models drop column promises")
    rows_of(log_url, "update adacos_schema set version = 4")
    for _ in range(2):
        assert served(pima[1], log_url).get("/v1/cases/summary").status_code == 200
        log = CaseLog(log_url, create=False)
        assert log.promises_of(fingerprint(pima[1])) == promises_of(pima[1])
        assert log.verify().changed == ()
    assert len(rows_of(log_url, "select 1 from adacos_audit where action = 'model'")) == 2

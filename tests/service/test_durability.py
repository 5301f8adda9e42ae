"""Cases survive kills, a full disk and a frozen database, and scoring goes on meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from tests.service.running import ask, running

BODY = {"acquired": {"Age": 24.0}, "stop": True}
CASES = [60, pytest.param(1000, marks=pytest.mark.study)]


def stored(url: str) -> list[str]:
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return list(connection.execute(sa.text("select id from adacos_cases")).scalars())
    finally:
        engine.dispose()


def record(url: str, case_id: str) -> bool:
    """Whether the case was acknowledged."""
    try:
        status, _ = ask(url, "/v1/cases", {**BODY, "id": case_id})
    except (OSError, http.client.HTTPException):
        return False
    assert status in (200, 201, 503)
    return status != 503


def record_all(url: str, ids: list[str], writers: int = 4) -> set[str]:
    with ThreadPoolExecutor(writers) as pool:
        return {
            one
            for one, done in zip(ids, pool.map(lambda i: record(url, i), ids), strict=True)
            if done
        }


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("victim", ["worker", "supervisor"])
def test_a_killed_process(model, log_url, cases, victim):
    ids = [f"c{number}" for number in range(cases)]
    with running(model, case_log=log_url, workers=2) as service:
        killed = threading.Timer(
            cases * 0.003,
            lambda: os.kill(
                service.workers()[0] if victim == "worker" else service.process.pid, signal.SIGKILL
            ),
        )
        killed.start()
        acknowledged = record_all(service.url, ids)
        killed.join()
        assert acknowledged <= set(stored(log_url))
        if victim == "supervisor":
            service.process.wait()
    with running(model, case_log=log_url) as again:
        assert record_all(again.url, ids) == set(ids)
    assert sorted(stored(log_url)) == sorted(ids)


def freeze(url: str, server, *, thaw: bool = False, held: list = []):  # noqa: B006
    """Stop the server, or hold the only write lock of the file; and the reverse."""
    if server is not None:
        server.freeze(thaw=thaw)
    elif thaw:
        connection = held.pop()
        connection.execute("rollback")
        connection.close()
    else:
        held.append(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None))
        held[-1].execute("begin exclusive")


@pytest.mark.parametrize("seconds", [6, pytest.param(30, marks=pytest.mark.study)])
def test_a_frozen_log(model, log_url, seconds, request):
    """Scores take less than a second meanwhile, cases are refused and not lost afterwards."""
    server = request.getfixturevalue("postgres") if log_url.startswith("postgres") else None
    ids = [f"c{number}" for number in range(60)]
    slowest = 0.0
    with running(model, case_log=log_url, workers=1) as service:
        assert record_all(service.url, ids[:10]) == set(ids[:10])
        freeze(log_url, server)
        try:
            writing = ThreadPoolExecutor(1)
            acknowledged = writing.submit(record_all, service.url, ids, 40)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                began = time.monotonic()
                assert ask(service.url, "/v1/score", {"rows": [{"Age": 50}]})[0] == 200
                assert ask(service.url, "/v1/step", {})[0] == 200
                slowest = max(slowest, time.monotonic() - began)
                time.sleep(0.05)
            if server is not None:
                status, told = ask(service.url, "/v1/ready")
                assert (status, json.loads(told)["case_log"]) == (503, "failing")
                assert "adacos_case_log_up 0" in ask(service.url, "/metrics")[1]
        finally:
            freeze(log_url, server, thaw=True)
        assert slowest < 1.0
        assert acknowledged.result(60) <= set(stored(log_url))
        time.sleep(1)
        assert record_all(service.url, ids) == set(ids)
        time.sleep(1.1)
        assert ask(service.url, "/v1/ready")[0] == 200
    assert sorted(stored(log_url)) == sorted(ids)


def test_a_frozen_log_does_not_hold_up_the_end(model, log_url, request):
    server = request.getfixturevalue("postgres") if log_url.startswith("postgres") else None
    with running(model, case_log=log_url, workers=2) as service:
        record(service.url, "c0")
        freeze(log_url, server)
        try:
            with ThreadPoolExecutor(8) as pool:
                waiting = [pool.submit(record, service.url, f"d{number}") for number in range(8)]
                time.sleep(0.5)
                began = time.monotonic()
                assert service.stop() == 0
                assert time.monotonic() - began < 11
                assert not any(one.result() for one in waiting)
        finally:
            freeze(log_url, server, thaw=True)


def test_a_full_disk(model, tmp_path):
    """What is acknowledged is there, the rest is refused, and steps are answered all the time."""
    url = f"sqlite:///{tmp_path}/cases.db"
    with running(model, case_log=url, largest_file=150_000) as service:
        ids = [f"c{number}" for number in range(250)]
        acknowledged = record_all(service.url, ids)
        assert 0 < len(acknowledged) < len(ids)
        assert ask(service.url, "/v1/step", {})[0] == 200
        failed = [event for event in service.events() if event["event"] == "case log failed"]
        assert failed[0]["code"].startswith(("SQLITE_FULL", "SQLITE_IOERR"))
    assert acknowledged <= set(stored(url))
    with running(model, case_log=url) as again:
        assert record_all(again.url, ids) == set(ids)

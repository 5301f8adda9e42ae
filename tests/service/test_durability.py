"""Cases survive kills, a full disk and a frozen database, and scoring goes on meanwhile.

Each disaster strikes in the middle of the cases. Clients send a case again until it is
acknowledged; at the end every case is there, recorded once.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from tests.service.running import Service, ask, running, until
from tests.service.traffic import Seen, attempt, record

# How often each case was recorded, in one look at the database.
_TIMES = """select id, (select count(*) from adacos_audit where action = 'case' and case_id = id)
from adacos_cases"""
CASES = [60, pytest.param(1000, marks=pytest.mark.study)]


def stored(url: str) -> set[str]:
    """The cases that are there; each was recorded once."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            found = dict(connection.execute(sa.text(_TIMES)).all())
    finally:
        engine.dispose()
    assert set(found.values()) <= {1}
    return set(found)


def survived(model, log_url, cases, disaster, *, workers=2) -> Seen:
    """Record cases through a disaster of a running service; every one is there afterwards."""
    ids = [f"c{number}" for number in range(cases)]
    with running(model, case_log=log_url, workers=workers) as service:
        seen = record(service.url, ids, lambda seen: disaster(service, seen))
        assert ask(service.url, "/v1/ready")[0] == 200 or until(
            lambda: ask(service.url, "/v1/ready")[0] == 200
        )
        assert seen.wrong == []
        assert seen.slowest() < 1.0
        assert seen.acknowledged == stored(log_url) == set(ids)
    print(
        f"{len(ids)} cases acknowledged, each there once; {seen.refused} attempts refused; "
        f"{len(seen.answers)} scores and steps meanwhile, the slowest {seen.slowest():.2f} s"
    )
    return seen


@pytest.mark.parametrize("cases", CASES)
def test_a_killed_worker(model, log_url, cases):
    def kill(service: Service, seen: Seen) -> None:
        before = set(seen.acknowledged)
        os.kill(service.workers()[0], signal.SIGKILL)
        assert before <= stored(log_url)

    survived(model, log_url, cases, kill)


@pytest.mark.parametrize("cases", CASES)
def test_a_killed_supervisor(model, log_url, cases):
    """Its workers end with it, and with them all answers; another one takes over."""
    ids = [f"c{number}" for number in range(cases)]
    with running(model, case_log=log_url, workers=2) as service:
        again, ready = [], []

        def kill(seen: Seen) -> None:
            before = set(seen.acknowledged)
            service.process.kill()
            service.process.wait()
            again.append(Service(model, case_log=log_url, workers=2, port=service.port))
            again[0].wait_ready()
            assert before <= stored(log_url)
            # What was asked for before found nothing that would answer.
            seen.wrong = []
            ready.append(time.monotonic())
            time.sleep(1)

        try:
            seen = record(service.url, ids, kill)
        finally:
            again[0].stop()
    assert seen.wrong == []
    assert seen.slowest(since=ready[0]) < 1.0
    assert seen.acknowledged == stored(log_url) == set(ids)
    print(f"{len(ids)} cases acknowledged, each there once; {seen.refused} attempts refused")


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("victims", ["one connection", "the server"])
def test_a_killed_database(model, postgres, cases, victims):
    url = postgres.database(f"cases_{time.monotonic_ns()}")

    def kill(service: Service, seen: Seen) -> None:
        if victims == "the server":
            postgres.kill()
        else:
            postgres.kill_connection()

    seen = survived(model, url, cases, kill)
    assert seen.refused > 0 or cases < 1000


@contextmanager
def locked(path: str):
    """The only write lock of a SQLite file, held."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("begin exclusive")
    try:
        yield
    finally:
        connection.execute("rollback")
        connection.close()


@contextmanager
def frozen(log_url, request):
    """The database of a log, standing still."""
    if log_url.startswith("sqlite"):
        with locked(log_url.removeprefix("sqlite:///")):
            yield
        return
    server = request.getfixturevalue("postgres")
    server.freeze()
    try:
        yield
    finally:
        server.freeze(thaw=True)


@pytest.mark.parametrize(
    ("cases", "seconds"), [(60, 6), pytest.param(1000, 30, marks=pytest.mark.study)]
)
def test_a_frozen_log(model, log_url, cases, seconds, request):
    """Scores take less than a second meanwhile, cases are refused and not lost afterwards."""

    def freeze(service: Service, seen: Seen) -> None:
        with frozen(log_url, request):
            seen.struck.set()
            time.sleep(seconds)
            if log_url.startswith("postgres"):
                status, reported = ask(service.url, "/v1/ready")
                assert (status, json.loads(reported)["case_log"]) == (503, "failing")
                assert "adacos_case_log_up 0" in ask(service.url, "/metrics")[1]

    assert survived(model, log_url, cases, freeze, workers=1).refused > 0


def test_a_frozen_log_does_not_hold_up_the_end(model, log_url, request):
    with running(model, case_log=log_url, workers=2) as service:
        body = {"acquired": {"Age": 24.0}, "stop": True}
        assert attempt(service.url, "/v1/cases", {**body, "id": "c0"}) == 201
        with frozen(log_url, request), ThreadPoolExecutor(8) as pool:
            waiting = [
                pool.submit(attempt, service.url, "/v1/cases", {**body, "id": f"d{number}"})
                for number in range(8)
            ]
            time.sleep(0.5)
            began = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - began < 11
            assert {one.result() for one in waiting} <= {None, 503}


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_full_disk(model, small_disk, cases, kind, request):
    """What is acknowledged is there, the rest is refused until there is room again."""
    url, name = f"sqlite:///{small_disk.folder}/cases.db", f"cases_{time.monotonic_ns()}"
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        url = server.database(name, small_disk.folder)

    def fill(service: Service, seen: Seen) -> None:
        small_disk.fill()
        seen.struck.set()
        # Pages that are there already take some more cases.
        full = until(lambda: seen.refused >= 20, 20)
        before = set(seen.acknowledged)
        assert before <= stored(url)
        small_disk.empty()
        if full:
            codes = {event.get("code", "") for event in service.events()}
            assert any(code.startswith(("SQLITE_FULL", "SQLITE_IOERR", "53100")) for code in codes)

    try:
        seen = survived(model, url, cases, fill)
        assert seen.refused > 0 or (kind, cases) == ("postgresql", 60)
    finally:
        if kind == "postgresql":
            server.drop(name)


def test_a_file_that_may_not_grow(model, tmp_path):
    """The same by a limit on the size of files, which needs no rights."""
    url = f"sqlite:///{tmp_path}/cases.db"
    ids, body = [f"c{number}" for number in range(250)], {"acquired": {"Age": 24.0}, "stop": True}
    with running(model, case_log=url, largest_file=150_000) as service:
        done = {one: attempt(service.url, "/v1/cases", {**body, "id": one}) for one in ids}
        acknowledged = {one for one, status in done.items() if status == 201}
        assert 0 < len(acknowledged) < len(ids)
        assert set(done.values()) == {201, 503}
        assert ask(service.url, "/v1/step", {})[0] == 200
        failed = [event for event in service.events() if event["event"] == "case log failed"]
        assert failed[0]["code"].startswith(("SQLITE_FULL", "SQLITE_IOERR"))
    assert acknowledged <= stored(url)
    with running(model, case_log=url) as again:
        assert record(again.url, ids).acknowledged == set(ids)
    assert stored(url) == set(ids)

"""The command `serve` and its processes: one socket, deaths, signals, reload, refusals to start."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

import adacos
from adacos import AdaCOSClassifier
from adacos.cli import app as cli
from adacos.consultation import fingerprint
from adacos.service.server import is_loopback, serve
from adacos.service.settings import Settings
from tests.service.databases import rows_of
from tests.service.running import running, until
from tests.service.starting import start


def test_workers_share_port_metrics_and_case_log(model, tmp_path):
    log = f"sqlite:///{tmp_path}/cases.db"
    process, reported = start(model, "--workers", "2", "--case-log", log)
    try:
        answered = 0
        for _ in range(30):
            # A new connection each time, so that both workers get some.
            answer = httpx.post(f"{reported['url']}v1/step", json={}, timeout=30)
            assert answer.status_code == 200
            answered += 1
        text = httpx.get(f"{reported['url']}metrics", timeout=30).text
        assert f'adacos_requests_total{{route="step",status="2xx"}} {answered}\n' in text
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert process.stderr.read() == ""
    for child in children:
        assert not Path(f"/proc/{child}").exists()


def test_no_second_service_on_the_port(model):
    with running(model, workers=2) as first, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", first.port))


def test_connections_are_shared_out(model):
    """Kept connections that come at once go to both workers."""
    with running(model, workers=2) as service:

        def held() -> list[int]:
            return [len(os.listdir(f"/proc/{worker}/fd")) for worker in service.workers()]

        def settled() -> bool:
            then = held()
            time.sleep(0.5)
            return len(then) == 2 and then == held()

        # What the workers open as they start, and the question whether they answer, come first.
        assert until(settled, 20)
        before = held()
        connections = [service.connect() for _ in range(16)]
        try:
            assert until(lambda: sum(held()) - sum(before) >= 16)
            taken = [now - then for now, then in zip(held(), before, strict=True)]
            assert min(taken) >= 4
        finally:
            for connection in connections:
                connection.close()


def test_workers_end_with_their_supervisor(model):
    with running(model, workers=2) as service:
        workers = service.workers()
        os.kill(service.process.pid, signal.SIGKILL)
        service.process.wait()
        assert until(lambda: not any(alive(worker) for worker in workers), 5)
        with running(model, port=service.port):
            pass


def test_dead_workers_are_replaced_and_reported(model):
    """Two deaths within seconds of the start: the service goes on, and its log names them."""
    with running(model, workers=2) as service:
        first = service.workers()
        for worker in first:
            os.kill(worker, signal.SIGKILL)
        assert until(lambda: len(set(service.workers()) - set(first)) == 2)
        service.wait_ready()
        died = [event for event in service.events() if event["event"].startswith("worker died")]
        assert {event["worker"] for event in died} == set(first)
        assert {event["how"] for event in died} == {"SIGKILL"}


def test_requests_in_hand_are_finished(model, pima):
    """24 clients wait for their scores when the service is told to end: all of them get them."""
    rows = pima[0].X.to_dict("records")[:200]
    body = json.dumps({"rows": rows}).encode()
    sent = (
        b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    answers: list[bytes] = []
    asked = threading.Semaphore(0)
    with running(model, workers=2) as service:

        def ask() -> None:
            with service.connect(30) as connection:
                connection.sendall(sent)
                asked.release()
                answers.append(connection.recv(12))

        clients = [threading.Thread(target=ask) for _ in range(24)]
        for client in clients:
            client.start()
        for _ in clients:
            assert asked.acquire(timeout=30)
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 12
        for client in clients:
            client.join(30)
    assert answers == [b"HTTP/1.1 200"] * 24


def test_a_reload_changes_the_model_but_not_under_a_consultation(model, pima, tmp_path):
    data, old = pima
    served = tmp_path / "served.adacos"
    served.write_bytes(model.read_bytes())
    new = AdaCOSClassifier(old.costs, strengths="common").fit(data.X[:500], data.y[:500])
    failed: list[object] = []
    ended = threading.Event()
    with running(served, workers=2) as service:

        def keep_asking() -> None:
            while not ended.is_set():
                answer = httpx.post(f"{service.url}/v1/step", json={}, timeout=10)
                if answer.status_code != 200:
                    failed.append(answer.status_code)

        asking = threading.Thread(target=keep_asking)
        asking.start()
        body = {"known": {"Age": 50}}
        before = httpx.post(f"{service.url}/v1/step", json=body).json()
        adacos.save(new, served)
        service.process.send_signal(signal.SIGHUP)
        assert until(lambda: model_of(service.url) == fingerprint(new))
        ended.set()
        asking.join()
        assert failed == []
        after = httpx.post(f"{service.url}/v1/step", json=body).json()
        named = {"Adacos-Model": fingerprint(old)}
        continued = httpx.post(f"{service.url}/v1/step", json=body, headers=named).json()
        assert continued == before != after
        gone = httpx.post(f"{service.url}/v1/step", json=body, headers={"Adacos-Model": "0" * 16})
        assert gone.status_code == 410
        # A file that is no model leaves things as they are.
        served.write_bytes(b"no model")
        service.process.send_signal(signal.SIGHUP)
        assert until(lambda: "reload failed" in service.log())
        assert model_of(service.url) == fingerprint(new)


def test_earlier_models_are_there_after_a_restart(model, pima, tmp_path):
    """Their consultations go on, their summaries are readable, and starts are noted."""
    data, old = pima
    new = AdaCOSClassifier(old.costs, strengths="common").fit(data.X[:500], data.y[:500])
    adacos.save(new, tmp_path / "new.adacos")
    log = f"sqlite:///{tmp_path}/cases.db"
    for _ in range(2):
        process, reported = start(
            tmp_path / "new.adacos", "--earlier", str(model), "--case-log", log
        )
        try:
            url, named = reported["url"].rstrip("/"), {"Adacos-Model": fingerprint(old)}
            assert model_of(url) == fingerprint(new)
            body = {"known": {"Age": 50}}
            step = httpx.post(f"{url}/v1/step", json=body, headers=named).json()
            assert step["model"] == fingerprint(old)
            assert httpx.get(f"{url}/v1/cases/summary", headers=named).status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    audit = "select case_id from adacos_audit where action = 'serving'"
    assert rows_of(log, audit) == [(fingerprint(new),)] * 2


# Where the process is hung up: as its libraries are imported, and as it reads its files.
HUNG_UP = {
    "importing": (
        "class HangUp:\n"
        "    def find_spec(self, name, *given):\n"
        "        if name == 'numpy':\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGHUP)\n"
        "sys.meta_path.insert(0, HangUp())\n"
    ),
    "reading": (
        "from adacos.cli import serve\n"
        "load = serve.load_policy\n"
        "def hung_up(*given):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    serve.load_policy = load\n"
        "    return load(*given)\n"
        "serve.load_policy = hung_up\n"
    ),
}


@pytest.mark.parametrize("when", HUNG_UP)
def test_a_hangup_before_the_service_is_ready_reloads_it(model, when):
    """As soon as the command runs: it reads its files, and again after the signal."""
    code = (
        "import os, signal, sys\n"
        f"{HUNG_UP[when]}"
        "sys.argv[:] = ['adacos', 'serve', sys.argv[1], '--port', '0', '--json']\n"
        "from adacos.cli import start\n"
        "start.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    reported = json.loads(process.stdout.readline())
    assert '"reloaded"' in process.stderr.readline()
    assert until(lambda: answers(reported["url"]))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}v1/health", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


def model_of(url: str) -> str:
    return httpx.get(f"{url}/v1/health", timeout=10).json()["model"]


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_nothing_of_requests_is_logged(model):
    process, reported = start(model)
    httpx.post(f"{reported['url']}v1/step", json={"known": {"Age": 61.25}}, timeout=30)
    httpx.post(f"{reported['url']}v1/step", json={"known": {"Age": "61.25"}}, timeout=30)
    httpx.get(f"{reported['url']}61.25", timeout=30)
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert "61.25" not in process.stderr.read() + process.stdout.read()


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_twice_with_a_request_in_hand(model, workers):
    """The first Ctrl-C waits for a body that does not come, the second one does not."""
    process, reported = start(model, "--workers", str(workers))
    port = int(reported["url"].rstrip("/").rpartition(":")[2])
    assert httpx.get(f"{reported['url']}v1/health", timeout=30).status_code == 200
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(
            b"POST /v1/step HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    assert "Traceback" not in process.stderr.read()


def test_other_machines_need_a_key(model, monkeypatch, capsys):
    monkeypatch.delenv("ADACOS_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["adacos", "serve", str(model), "--host", "0.0.0.0"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "ADACOS_API_KEY" in capsys.readouterr().err
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")


@pytest.mark.parametrize(
    ("options", "environment", "reported"),
    [
        ([], {"ADACOS_API_KEY": ""}, "empty or blank"),
        ([], {"ADACOS_API_KEY": "  \n"}, "empty or blank"),
        ([], {"ADACOS_API_KEY": "short"}, "at least 16"),
        (["--case-log", "postgresql+psycopg://me:hush@127.0.0.1/x"], {}, "ADACOS_CASE_LOG"),
        (["--case-log", "nosuch://127.0.0.1/x?password=hush"], {}, "ADACOS_CASE_LOG"),
        ([], {"ADACOS_CASE_LOG": "nosuch://me:hush@127.0.0.1/x"}, "nosuch://me:***@127.0.0.1/x"),
    ],
)
def test_refusals_to_start(model, options, environment, reported):
    process, _ = start(model, *options, **environment)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 2
    assert reported in " ".join(error.split())
    assert "hush" not in error


def test_a_port_that_is_taken(pima):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match="free address"):
            serve(pima[1], Settings(), port=taken.getsockname()[1])


def test_help_has_an_example(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["adacos", "serve", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    assert re.search(r"adacos serve model\.adacos", capsys.readouterr().out)

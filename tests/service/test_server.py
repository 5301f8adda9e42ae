"""The command `serve`: one or more processes, signals, and refusals to start."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

import adacos
from adacos.cli import app as cli
from adacos.service.server import is_loopback, serve
from adacos.service.settings import Settings


@pytest.fixture(scope="module")
def model(pima, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "pima.adacos"
    adacos.save(pima[1], path)
    return path


def start(model: Path, *options: str):
    command = [sys.executable, "-m", "adacos.cli.app", "serve", str(model), "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return process, json.loads(process.stdout.readline())


def test_workers_share_port_metrics_and_case_log(model, tmp_path):
    log = f"sqlite:///{tmp_path}/cases.db"
    process, told = start(model, "--workers", "2", "--case-log", log)
    try:
        answered = 0
        for _ in range(30):
            # A new connection each time, so that both workers get some.
            answer = httpx.post(f"{told['url']}v1/step", json={}, timeout=30)
            assert answer.status_code == 200
            answered += 1
        text = httpx.get(f"{told['url']}metrics", timeout=30).text
        assert f'adacos_requests_total{{route="step",status="2xx"}} {answered}\n' in text
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert process.stderr.read() == ""
    for child in children:
        assert not Path(f"/proc/{child}").exists()


def test_a_worker_that_dies_is_replaced(model):
    process, told = start(model, "--workers", "2")
    try:
        # One that dies at once would be taken for one that cannot start.
        time.sleep(6)
        listing = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first = listing.read_text().split()
        os.kill(int(first[0]), signal.SIGKILL)
        until = time.monotonic() + 20
        while len(now := listing.read_text().split()) < 2 or first[0] in now:
            assert time.monotonic() < until
            time.sleep(0.1)
        for _ in range(10):
            assert httpx.get(f"{told['url']}v1/health", timeout=30).status_code == 200
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_nothing_of_requests_is_logged(model):
    process, told = start(model)
    httpx.post(f"{told['url']}v1/step", json={"known": {"Age": 61.25}}, timeout=30)
    httpx.post(f"{told['url']}v1/step", json={"known": {"Age": "61.25"}}, timeout=30)
    httpx.get(f"{told['url']}61.25", timeout=30)
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert "61.25" not in process.stderr.read() + process.stdout.read()


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

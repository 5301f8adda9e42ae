"""The service in processes of its own, for tests that kill it or speak to it byte by byte."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CODE = """
import json, sys
from adacos import load
from adacos.service.limits import Limits
from adacos.service.server import serve
from adacos.service.settings import Settings
options = json.loads(sys.argv[2])
limits = Limits(**options.pop("limits", {}))
workers = options.pop("workers", 1)
port = options.pop("port", 0)
descriptors = options.pop("descriptors", None)
largest_file = options.pop("largest_file", None)
import resource
if descriptors:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
if largest_file:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
options = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
settings = Settings(limits=limits, **{"rate_limit": 0, **options})
def again():
    return load(sys.argv[1]), settings
sys.exit(serve(load(sys.argv[1]), settings, port=port, workers=workers, reload=again,
               ready=lambda url: print(url, flush=True)))
"""


def delay_of(schedstat: Path) -> float:
    """For how long a thread was ready to run without a processor (seconds)."""
    return int(schedstat.read_text().split()[1]) / 1e9


class Service:
    """A running service: its processes, where it is, and what it said."""

    def __init__(self, model: Path, **options) -> None:
        # A file and not a pipe: nothing waits for the log to be read.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(model), json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.url = self.process.stdout.readline().strip().rstrip("/")
        self.port = int(self.url.rpartition(":")[2] or 0)

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.log().splitlines()]

    def connect(self, timeout: float = 10.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def memory(self) -> float:
        """Resident memory of the workers in MiB."""
        page = os.sysconf("SC_PAGE_SIZE") / 2**20
        return sum(
            int(Path(f"/proc/{worker}/statm").read_text().split()[1]) * page
            for worker in self.workers()
        )

    def delayed(self) -> float:
        """For how long workers were ready to run, but the machine was busy (seconds)."""
        return sum(delay_of(Path(f"/proc/{worker}/schedstat")) for worker in self.workers())

    def wait_ready(self, seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if ask(self.url, "/v1/health", timeout=2)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise TimeoutError(self.log())

    def stop(self, seconds: float = 15.0) -> int:
        """End it by SIGTERM; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def ask(
    url: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
    timeout: float = 20.0,
) -> tuple[int, str]:
    """Status and text of an answer over a new connection, without a client's own overhead."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    try:
        sent = None if body is None else json.dumps(body)
        own = {} if body is None else {"Content-Type": "application/json"}
        method = "GET" if body is None else "POST"
        connection.request(method, path, sent, {**own, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@contextmanager
def running(model: Path, **options) -> Iterator[Service]:
    """A service that answers, ended afterwards whatever happened."""
    service = Service(model, **options)
    try:
        service.wait_ready()
        yield service
    finally:
        try:
            service.stop()
        except subprocess.TimeoutExpired:
            service.process.kill()
            service.process.wait()
            raise


def until(condition, seconds: float = 10.0) -> bool:
    """Whether a condition came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False

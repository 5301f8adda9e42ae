"""Load on the step route from a second process.

Run: python -m benchmarks.service_load [seconds [workers]]

Many consultations at once over kept connections, each with the values of a random row of the Pima
table, slightly moved so that requests repeat only where consultations begin alike. All guards are
on: a key, a case log, a limit on requests a second above what this client sends, allowed hosts.
Prints steps per second, latencies, errors, memory of the service, and CPU time per step on both
sides: on a machine that others use as well, the last tells what it would do alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import adacos
from adacos import AdaCOSClassifier, Costs

CONNECTIONS = 16
KEY = "0123456789abcdef0123456789abcdef"
HEAD = (
    b"POST /v1/step HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer " + KEY.encode() + b"\r\n"
)


class Load:
    """Consultations until a moment, and what was seen."""

    def __init__(self, rows: list[dict[str, float]], port: int, end: float) -> None:
        self.rows, self.port, self.end = rows, port, end
        self.seconds: list[float] = []
        self.errors = 0

    async def run(self) -> None:
        await asyncio.gather(*(self._client(random.Random(seed)) for seed in range(CONNECTIONS)))

    async def _client(self, chance: random.Random) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        acquired: dict[str, float] = {}
        row = self._row(chance)
        while time.monotonic() < self.end:
            body = json.dumps({"acquired": acquired}).encode()
            began = time.perf_counter()
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            content = await reader.readexactly(length)
            self.seconds.append(time.perf_counter() - began)
            if not answer.startswith(b"HTTP/1.1 200"):
                self.errors += 1
                continue
            # The beginning of the answer holds what is next; reading all of it would cost the
            # client as much as the service.
            if content.startswith(b'{"action":"acquire","covariates":["'):
                name = content[35 : content.index(b'"', 35)].decode()
                acquired[name] = row[name]
            else:
                acquired, row = {}, self._row(chance)
        writer.close()

    def _row(self, chance: random.Random) -> dict[str, float]:
        row = chance.choice(self.rows)
        return {name: value * (1 + 1e-3 * chance.random()) for name, value in row.items()}


def main(seconds: float = 60.0, workers: int = 2) -> None:
    data = adacos.load_pima()
    costs = Costs(data.prices, false_positive=100, false_negative=1000)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "pima.adacos"
        adacos.save(AdaCOSClassifier(costs).fit(data.X, data.y), model)
        command = [sys.executable, "-m", "adacos.cli.app", "serve", str(model), "--port", "0"]
        command += ["--workers", str(workers), "--rate-limit", "100000", "--json"]
        command += ["--case-log", f"sqlite:///{folder}/cases.db"]
        keyed = {**os.environ, "ADACOS_API_KEY": KEY}
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=keyed)
        try:
            assert service.stdout is not None
            port = int(json.loads(service.stdout.readline())["url"].split(":")[-1].strip("/"))
            rows = data.X.to_dict("records")
            asyncio.run(Load(rows, port, time.monotonic() + 5).run())
            _measure(rows, port, seconds, _processes(service.pid))
        finally:
            service.terminate()
            service.wait()


def _measure(rows: list[dict[str, float]], port: int, seconds: float, processes: list[int]) -> None:
    before, own, memory = _cpu(processes), time.process_time(), _memory(processes)
    load = Load(rows, port, time.monotonic() + seconds)
    began = time.monotonic()
    asyncio.run(load.run())
    took, n = time.monotonic() - began, len(load.seconds)
    server, client = (_cpu(processes) - before) / n, (time.process_time() - own) / n
    ordered = sorted(load.seconds)
    print(f"{n} steps in {took:.1f} s: {n / took:.0f} per second, {load.errors} errors")
    quantiles = {q: 1e3 * ordered[min(int(q * n), n - 1)] for q in (0.5, 0.9, 0.99, 1.0)}
    print("latency (ms):", ", ".join(f"{q:.0%} {ms:.1f}" for q, ms in quantiles.items()))
    print(f"memory (MiB): {memory:.1f} before, {_memory(processes):.1f} after")
    print(f"CPU per step (ms): service {1e3 * server:.2f}, client {1e3 * client:.2f};")
    print(f"  two cores of their own would carry {2 / (server + client):.0f} steps per second")
    print(f"load average: {os.getloadavg()[0]:.1f}")


def _processes(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children] or [parent]


def _cpu(processes: list[int]) -> float:
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _memory(processes: list[int]) -> float:
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    return sum(
        int(Path(f"/proc/{process}/statm").read_text().split()[1]) * page for process in processes
    )


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((float, int), sys.argv[1:], strict=False)))

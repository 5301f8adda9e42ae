"""Runs attacks that are described in data against services on this machine, and judges them."""

from __future__ import annotations

import ast
import re
import socket
import time
import tomllib
from pathlib import Path
from typing import Any

from tests.service.running import Service, ask

KEY = "0123456789abcdef"
SERVICES: dict[str, dict[str, Any]] = {
    "open": {"rate_limit": 0},
    "keyed": {"api_key": KEY},
    "hasty": {
        "descriptors": 300,
        "limits": {"head_seconds": 1.0, "body_seconds": 1.0, "write_seconds": 1.0},
    },
    "slow": {"rate_limit": 5},
}
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def attacks() -> dict[str, dict[str, Any]]:
    """All attacks by name."""
    path = Path(__file__).with_name("requests.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


class Outcome:
    """What came of an attack."""

    def __init__(self, statuses: list[int | str], seconds: float, grown: float) -> None:
        self.statuses, self.seconds, self.grown = statuses, seconds, grown


def attack(service: Service, described: dict[str, Any]) -> Outcome:
    """Send what is described; statuses by connection, time, and growth of memory (MiB)."""
    before, began = service.memory(), time.monotonic()
    within = described.get("within", 5)
    connections = [service.connect(within) for _ in range(described.get("copies", 1))]
    statuses: list[int | str] = []
    try:
        for connection in connections:
            _send(connection, described)
        for connection in connections:
            connection.settimeout(max(began + within - time.monotonic(), 0.5))
            statuses += _read(connection, every="last" in described)
    finally:
        for connection in connections:
            connection.close()
    return Outcome(statuses, time.monotonic() - began, service.memory() - before)


def judge(service: Service, described: dict[str, Any], outcome: Outcome) -> list[str]:
    """What is wrong with the outcome, in words."""
    wrong = []
    if "last" in described:
        if outcome.statuses[-1] != described["last"]:
            wrong.append(f"answered {outcome.statuses[-1]} at last")
    elif unexpected := set(outcome.statuses) - set(described["expect"]):
        wrong.append(f"answered {sorted(map(str, unexpected))}")
    if outcome.grown > described.get("grows", 20):
        wrong.append(f"memory grew by {outcome.grown:.0f} MiB")
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {KEY}"}
    status, _ = ask(service.url, "/v1/model", headers=headers, timeout=5)
    if status not in (200, 429) or time.monotonic() - began > 1.0:
        wrong.append(f"afterwards {status} in {time.monotonic() - began:.1f} s")
    return wrong


def _bytes(text: str) -> bytes:
    quoted = text.replace('"', '\\"')
    return bytes(ast.literal_eval(f'b"{quoted}"'))


def _send(connection: socket.socket, described: dict[str, Any]) -> None:
    pause = described.get("pause", 0.0)
    until = time.monotonic() + 10
    try:
        for piece in described["send"]:
            if isinstance(piece, str):
                connection.sendall(_bytes(piece))
            elif "post" in piece:
                head = f"POST {piece['post']} HTTP/1.1\r\nHost: localhost\r\n"
                kind = f"Content-Type: application/json\r\nContent-Length: {len(piece['body'])}"
                connection.sendall(f"{head}{kind}\r\n\r\n{piece['body']}".encode())
            elif "numbered" in piece:
                for number in range(piece["times"]):
                    connection.sendall(_bytes(piece["numbered"].replace("{number}", str(number))))
            elif pause:
                for _ in range(piece["times"]):
                    connection.sendall(_bytes(piece["repeat"]))
                    time.sleep(pause)
            else:
                _flood(connection, _bytes(piece["repeat"]), piece["times"], until)
    except OSError:
        # The service has ended the connection; what it said before can still be read.
        pass


def _flood(connection: socket.socket, piece: bytes, times: int, until: float) -> None:
    together = piece * max(65536 // len(piece), 1)
    left = len(piece) * times
    while left > 0 and time.monotonic() < until:
        connection.sendall(together[:left])
        left -= len(together)


def _read(connection: socket.socket, *, every: bool) -> list[int | str]:
    """The status that is answered first, or all of them; "closed" if there is none."""
    received = b""
    try:
        while not (found := _STATUS.findall(received)) or every:
            more = connection.recv(65536)
            if not more:
                break
            received += more
            connection.settimeout(1.0 if every else connection.gettimeout())
    except TimeoutError:
        if not received:
            return ["silent"]
    except OSError:
        pass
    found = _STATUS.findall(received)
    if not found:
        return ["closed"]
    return [int(status) for status in found] if every else [int(found[0])]

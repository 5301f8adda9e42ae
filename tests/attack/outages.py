"""Attacks by many connections at once, and what others notice of them meanwhile.

Each is a function of the service and a moment: it attacks until then. Loopback only; the attacker
comes from 127.0.0.1, another client from 127.0.0.2.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.service.running import Service, delay_of

HEAD = b"POST /v1/step HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
# No answer for longer than this (seconds) is an outage; so much memory (MiB) may be taken.
LONGEST_GAP, MOST_MEMORY = 5.0, 600.0


@dataclass
class Noticed:
    """The longest time without a good answer, answers that were not, and the most memory.

    That others keep the machine busy is not counted: time in which the service or the other client
    was ready to run, but had no processor.
    """

    gaps: dict[str, float]
    good: int = 0
    refused: int = 0
    memory: float = 0.0

    def wrong(self) -> list[str]:
        """What is not as it must be, in words."""
        gaps = self.gaps.items()
        wrong = [f"{path} silent {gap:.1f} s" for path, gap in gaps if gap > LONGEST_GAP]
        if self.memory > MOST_MEMORY:
            wrong.append(f"memory {self.memory:.0f} MiB")
        return wrong


def _flood(service: Service, copies: int, sent: bytes, until: float, *, read: bool = False) -> None:
    """Open connections that send the same, do not read and come again when they are ended."""
    connections: dict[socket.socket, int] = {}
    while time.monotonic() < until:
        while len(connections) < copies:
            one = service.connect()
            one.setblocking(False)
            connections[one] = 0
        idle = True
        for one, done in list(connections.items()):
            try:
                if done < len(sent):
                    connections[one] += one.send(sent[done : done + (1 << 20)])
                    idle = False
                if read and not one.recv(1 << 16):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                one.close()
                del connections[one]
                idle = False
        if idle:
            time.sleep(0.01)
    for one in connections:
        one.close()


def unread_answers(service: Service, until: float) -> None:
    """Requests whose answers are never read keep all places."""
    _flood(service, 130, b"GET /show.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000, until)


def endless_pipelines(service: Service, until: float) -> None:
    """Requests sent ahead fill the memory."""
    _flood(service, 8, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 280_000, until)


def unread_scores(service: Service, until: float) -> None:
    """Long answers that are never read fill the memory."""
    body = json.dumps({"rows": [{}] * 10_000}).encode()
    head = HEAD.replace(b"step", b"score") + b"Content-Length: %d\r\n\r\n" % len(body)
    _flood(service, 130, (head + body) * 4, until)


def slow_bodies(service: Service, until: float) -> None:
    """Bodies of which the end never comes keep all places."""
    _flood(service, 140, HEAD + b'Content-Length: 100\r\n\r\n{"kn', until, read=True)


def long_slow_bodies(service: Service, until: float) -> None:
    """Long bodies of which the end never comes fill the memory."""
    body = b"Content-Length: 1000000\r\n\r\n" + b" " * 999_999
    _flood(service, 600, HEAD + body, until, read=True)


def many_mistakes(service: Service, until: float) -> None:
    """A hundred thousand mistakes in one request hold up the event loop."""
    body = json.dumps({"known": {f"x{number}": 1 for number in range(75_000)}}).encode()
    sent = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    _flood(service, 8, sent * 1000, until, read=True)


def deep_bodies(service: Service, until: float) -> None:
    """So do a hundred thousand lists, which the garbage collector looks through."""
    body = json.dumps({"known": [[[]]] * 150_000}).encode()
    sent = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    _flood(service, 8, sent * 1000, until, read=True)


OUTAGES: tuple[Callable[[Service, float], None], ...] = (
    unread_answers,
    endless_pipelines,
    unread_scores,
    slow_bodies,
    long_slow_bodies,
    many_mistakes,
    deep_bodies,
)


def suffer(service: Service, attack: Callable[[Service, float], None], seconds: float) -> Noticed:
    """Attack for some time, and ask as another client all the while."""
    noticed = Noticed(gaps={"/v1/health": 0.0, "/v1/step": 0.0})
    over = threading.Event()

    def ask(path: str) -> None:
        own = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")

        def moment() -> float:
            """Now, without the time for which service or client waited for a processor."""
            return time.monotonic() - service.delayed() - delay_of(own)

        last = moment()
        while not over.wait(0.05):
            good = _answers(service, path)
            now = moment()
            noticed.gaps[path] = max(noticed.gaps[path], now - last)
            if good:
                noticed.good += 1
                last = now
            else:
                noticed.refused += 1

    end = time.monotonic() + seconds
    threads = [threading.Thread(target=ask, args=(path,)) for path in noticed.gaps]
    threads.append(threading.Thread(target=attack, args=(service, end)))
    for one in threads:
        one.start()
    while threads[-1].is_alive():
        noticed.memory = max(noticed.memory, service.memory())
        time.sleep(0.05)
    over.set()
    for one in threads:
        one.join()
    return noticed


def _answers(service: Service, path: str) -> bool:
    connection = http.client.HTTPConnection(
        "127.0.0.1", service.port, timeout=LONGEST_GAP, source_address=("127.0.0.2", 0)
    )
    try:
        if path == "/v1/step":
            connection.request("POST", path, "{}", {"Content-Type": "application/json"})
        else:
            connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()

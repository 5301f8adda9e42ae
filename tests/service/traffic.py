"""Clients of a service that goes through a disaster: some record cases, one scores all the time."""

from __future__ import annotations

import http.client
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.service.running import ask

CASE = {"acquired": {"Age": 24.0}, "stop": True}
WRITERS = 8
# What a client waits before it asks again (seconds), and how long a disaster may last in all.
PAUSE, LONGEST = 0.05, 180.0


@dataclass
class Seen:
    """What the clients saw. The last quarter of the cases waits until the disaster has `struck`."""

    struck: threading.Event = field(default_factory=threading.Event)
    acknowledged: set[str] = field(default_factory=set)
    refused: int = 0
    answers: list[tuple[float, float]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def slowest(self, since: float = 0.0) -> float:
        """How long the slowest score or step took of those asked for since a moment."""
        return max(took for began, took in self.answers if began >= since)


def attempt(url: str, path: str, body: object) -> int | None:
    """The status, or None if the connection was refused or broken off."""
    try:
        return ask(url, path, body)[0]
    except (OSError, http.client.HTTPException):
        return None


def record(url: str, ids: list[str], disaster: Callable[[Seen], None] = lambda seen: None) -> Seen:
    """Record cases, each again until it is acknowledged; halfway there is a disaster.

    The last quarter is sent when the disaster says that it has struck, or is over: however
    quick the clients, some cases meet it.
    """
    seen, left, halfway = Seen(), queue.SimpleQueue[str](), threading.Event()
    for one in ids:
        left.put(one)
    later = set(ids[3 * len(ids) // 4 :])
    end = time.monotonic() + LONGEST

    def writer() -> None:
        while time.monotonic() < end:
            try:
                case_id = left.get_nowait()
            except queue.Empty:
                return
            if case_id in later:
                seen.struck.wait(LONGEST)
            while (status := attempt(url, "/v1/cases", {**CASE, "id": case_id})) in (None, 503):
                seen.refused += 1
                time.sleep(PAUSE)
                if time.monotonic() > end:
                    return
            if status not in (200, 201):
                seen.wrong.append(f"case {case_id}: {status}")
            seen.acknowledged.add(case_id)
            if len(seen.acknowledged) >= len(ids) // 2:
                halfway.set()

    writers = [threading.Thread(target=writer) for _ in range(WRITERS)]
    for one in writers:
        one.start()
    assert halfway.wait(LONGEST)
    with scoring(url, seen):
        try:
            disaster(seen)
        finally:
            seen.struck.set()
        for one in writers:
            one.join()
    return seen


@contextmanager
def scoring(url: str, seen: Seen) -> Iterator[None]:
    """Score and step all the time; how long each took until there was an answer."""
    over = threading.Event()

    def client() -> None:
        while not over.is_set():
            for path, body in (("/v1/score", {"rows": [{"Age": 50}]}), ("/v1/step", {})):
                began = time.monotonic()
                status = attempt(url, path, body)
                if status is None:
                    # Broken off with the process that was to answer: another one does.
                    status = attempt(url, path, body)
                seen.answers.append((began, time.monotonic() - began))
                if status != 200:
                    seen.wrong.append(f"{path}: {status}")
            time.sleep(0.02)

    thread = threading.Thread(target=client)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

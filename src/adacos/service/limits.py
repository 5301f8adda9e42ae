"""How much of the service one client may take before its request is understood."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one worker grants its clients.

    Attributes
    ----------
    head_bytes : most bytes of a request that are not body: request line, headers, chunk sizes.
    head_seconds, body_seconds : time for the headers to arrive, and then for the body.
    write_seconds : time for an answer to be taken; also the longest pause between requests.
    connections : most connections; the one that has waited longest makes room for a new one.
    pipelined : most requests that one connection may send ahead of the answers.
    body_bytes, write_bytes : most bytes of all bodies that are arriving, and of all answers that
        wait to be taken; the connection that holds most of them makes room.
    """

    head_bytes: int = 32 << 10
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    connections: int = 1000
    pipelined: int = 16
    body_bytes: int = 32 << 20
    write_bytes: int = 32 << 20


@dataclass
class WorkerUsage:
    """What the connections of one worker hold together."""

    body_bytes: int = 0

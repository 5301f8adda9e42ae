"""Limits on what a client may take before its request is understood: bytes, time, connections.

uvicorn on httptools limits none of them (its header limit belongs to h11, which costs three times
the processor time per request), so its protocol is extended here. Nothing is paid per request but
a few assignments: deadlines are looked at once a second by the server's own tick.

uvicorn reads on while earlier requests of a connection wait for their answers, and keeps what it
has read. Here it reads on when all of them are answered. A client that has sent too many ahead, or
sends more while it does not take an answer, gets what is due and must connect again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
from collections.abc import Callable, Iterator, MutableSequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from adacos.service.accepting import Acceptor
from adacos.service.encoding import as_json
from adacos.service.limits import Limits, WorkerUsage

# Requests on their way when the service ends may still arrive within this time (seconds).
GRACE = 0.3


class LimitedProtocol(HttpToolsProtocol):
    """One connection, within the limits.

    `deadline` is the moment by which the client must have sent what it is to send; None while it is
    the service that is busy. `write_deadline` is the moment by which it must have taken what waits
    for it; None while little waits. `held` is shared by the connections of a worker.
    """

    def __init__(self, *arguments: Any, limits: Limits, held: WorkerUsage, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limits, self.held = limits, held
        self.deadline: float | None = None
        self.write_deadline: float | None = None
        self.body_bytes = 0
        self._outside_body = 0
        self._refusal = 400, "The request is not valid HTTP."
        self._draining = False
        self._full = False

    @property
    def due(self) -> float:
        """The moment by which the client must have done something; infinity if there is none."""
        times = (self.deadline, self.write_deadline)
        return min((one for one in times if one is not None), default=math.inf)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for the connection, or refuse it if all others are being served."""
        super().connection_made(transport)
        self.deadline = self.loop.time() + self.limits.head_seconds
        if len(self.connections) > self.limits.connections:
            waiting = [one for one in self._all() if one is not self and one.due < math.inf]
            if waiting:
                oldest = min(waiting, key=lambda one: one.due)
                self.connections.discard(oldest)
                oldest.transport.abort()
            else:
                self._refuse(503, "Too many connections; try again.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what the connection holds."""
        super().connection_lost(exc)
        self._let_go()

    def data_received(self, data: bytes) -> None:
        """Count what is not body, and let uvicorn parse."""
        if self._full:
            return
        self._outside_body += len(data)
        super().data_received(data)
        if self._outside_body > self.limits.head_bytes and not self.transport.is_closing():
            self._refuse(431, f"The headers are longer than {self.limits.head_bytes} bytes.")

    def on_message_begin(self) -> None:
        """The clock of the headers starts with their first byte."""
        if self._full:
            # The parser turns this into its own error and reads no further.
            raise ValueError("too many requests ahead of their answers")
        super().on_message_begin()
        self.deadline = self.loop.time() + self.limits.head_seconds

    def on_headers_complete(self) -> None:
        """The headers are there: the clock of the body starts."""
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.head_bytes:
            self._refusal = 431, f"The headers are longer than {self.limits.head_bytes} bytes."
            # The parser turns this into its own error, which uvicorn answers and ends.
            raise ValueError("headers too long")
        super().on_headers_complete()
        self.deadline = self.loop.time() + self.limits.body_seconds
        self._full = len(self.pipeline) >= self.limits.pipelined
        if self._draining or self._full:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Count what is kept of bodies; whoever holds most makes room if all hold too much."""
        self._outside_body = max(self._outside_body - len(body), 0)
        super().on_body(body)
        if not self.cycle.response_complete:
            self.body_bytes += len(body)
            self.held.body_bytes += len(body)
            if self.held.body_bytes > self.limits.body_bytes:
                greatest = max(self._all(), key=lambda one: one.body_bytes)
                greatest._let_go()
                greatest._refuse(503, "Too many long bodies at a time; try again.")

    def on_message_complete(self) -> None:
        """The client has done its part."""
        self._outside_body = 0
        super().on_message_complete()
        if not self.pipeline:
            self._let_go()
        if not self.cycle.response_complete:
            self.deadline = None

    def on_response_complete(self) -> None:
        """It is the client's turn again, unless it has sent the next request already."""
        more = bool(self.pipeline)
        if more and self.flow.write_paused:
            # What was answered waits to be taken: nothing else is computed for this client.
            self.pipeline.clear()
            self.transport.close()
        super().on_response_complete()
        if not more:
            self.deadline = self.loop.time() + self.limits.write_seconds
        elif not self.cycle.more_body:
            self.deadline = None
        if not self.pipeline:
            self._let_go()
        elif not self.transport.is_closing():
            self.flow.pause_reading()

    def pause_writing(self) -> None:
        """The clock starts for the client to take what waits; its size counts for all clients."""
        super().pause_writing()
        self.write_deadline = self.loop.time() + self.limits.write_seconds
        waiting = {one: one.transport.get_write_buffer_size() for one in self._all()}
        if sum(waiting.values()) > self.limits.write_bytes:
            max(waiting, key=waiting.__getitem__).transport.abort()

    def resume_writing(self) -> None:
        """It was taken."""
        super().resume_writing()
        self.write_deadline = None

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be parsed."""
        if not self._full:
            self._refuse(*self._refusal)

    def drain(self) -> None:
        """Finish what is being served and take one request more that is on its way."""
        self._draining = True
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def expire(self, now: float) -> None:
        """End the connection if its client is too late."""
        if now < self.due:
            return
        answering = self.cycle is not None and (
            self.cycle.response_started and not self.cycle.response_complete
        )
        late = self.write_deadline is not None and now >= self.write_deadline
        if self.transport.is_closing() or answering or late or not self._outside_body:
            self.transport.abort()
        else:
            self._refuse(408, "The request took too long to arrive.")
            # If the client does not even take this, the next look ends the connection.
            self.deadline = now

    def _all(self) -> list[LimitedProtocol]:
        return [one for one in self.connections if isinstance(one, LimitedProtocol)]

    def _let_go(self) -> None:
        self.held.body_bytes -= self.body_bytes
        self.body_bytes = 0

    def _refuse(self, status: int, detail: str) -> None:
        if self.transport.is_closing():
            return
        body = as_json({"detail": detail, "fields": []})
        self.transport.write(
            STATUS_LINE[status] + b"content-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % len(body) + body
        )
        self.transport.close()


class LimitedServer(uvicorn.Server):
    """A worker's server: keeps the deadlines, and ends when asked to or when it is orphaned.

    `counts` and `number` are those of the `Acceptor`.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        orphaned: Callable[[], bool],
        counts: MutableSequence[int],
        number: int,
    ) -> None:
        super().__init__(config)
        self._orphaned, self._counts, self._number = orphaned, counts, number
        self._acceptor: Acceptor | None = None

    async def startup(self, sockets: Any = None) -> None:
        """Accept in turn with the other workers, on systems that have them."""
        if not hasattr(os, "fork"):
            await super().startup(sockets)
            return
        await self.lifespan.startup()
        self.servers: list[Any] = []
        self._acceptor = Acceptor(
            sockets[0], self._protocol, self._counts, self._number, self.server_state.connections
        )
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        state = self.lifespan.state
        made: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=state
        )
        return made

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if self._acceptor is not None:
            self._acceptor.count()
        if self._orphaned():
            self.should_exit = True
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, LimitedProtocol):
                    connection.expire(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: Any = None) -> None:
        """Stop listening, let requests on their way arrive, and finish all that are here."""
        if self._acceptor is not None:
            self._acceptor.close()
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            if isinstance(connection, LimitedProtocol):
                connection.drain()
        await asyncio.sleep(GRACE)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM; what is typed at a terminal is the supervisor's business."""
        signal.signal(signal.SIGTERM, self.handle_exit)
        for other in ("SIGINT", "SIGHUP"):
            if hasattr(signal, other):
                signal.signal(getattr(signal, other), signal.SIG_IGN)
        yield

"""Workers take connections from one socket in turn: the one that has fewest comes first.

Left to the kernel, one of them takes all: sixteen connections went to one of two workers, time and
again. A worker with more than another waits a moment before it accepts, and then does so in any
case, because the other may hang.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, MutableSequence, Sized
from typing import Any

from adacos.service.logs import LOG

# How long (seconds) others are given to come first.
_COURTESY = 0.005
# How long (seconds) to wait when there are no descriptors left.
_EXHAUSTED = 0.1


class Acceptor:
    """Accepts for one worker.

    `counts` is shared memory: how many connections each worker has; `number` is this worker's
    place in it, `connections` are its own.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], Any],
        counts: MutableSequence[int],
        number: int,
        connections: Sized,
    ) -> None:
        self._listening, self._protocol = listening, protocol
        self._counts, self._number, self._connections = counts, number, connections
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[Any]] = set()
        self._closed = False
        listening.setblocking(False)
        self.count()
        self._listen()

    def count(self) -> None:
        """Inform the others how many connections there are."""
        if not self._closed:
            self._counts[self._number] = len(self._connections) + len(self._beginning)

    def close(self) -> None:
        """Accept what waits already, and nothing more."""
        self._loop.remove_reader(self._listening)
        while self._accept():
            pass
        self._closed = True

    def _listen(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listening, self._offered)

    def _offered(self) -> None:
        self.count()
        if self._counts[self._number] > min(self._counts):
            self._loop.remove_reader(self._listening)
            self._loop.call_later(_COURTESY, self._accept_and_listen)
        else:
            self._accept()

    def _accept_and_listen(self) -> None:
        if not self._closed:
            self._accept()
            self._listen()

    def _accept(self) -> bool:
        """Take a connection if there is one."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            # Another worker was quicker, or the client has gone.
            return False
        except OSError as error:
            LOG.error("no connection can be accepted", extra={"error": error.strerror})
            self._loop.remove_reader(self._listening)
            self._loop.call_later(_EXHAUSTED, self._listen)
            return False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(
            self._loop.connect_accepted_socket(self._protocol, connection)
        )
        self._beginning.add(task)
        task.add_done_callback(self._begun)
        return True

    def _begun(self, task: asyncio.Task[Any]) -> None:
        self._beginning.discard(task)
        if not task.cancelled() and task.exception() is not None:
            LOG.error("a connection failed", extra={"error": type(task.exception()).__name__})
        self.count()

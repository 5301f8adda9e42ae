"""Work in threads of its own, so that a stalled case log holds up nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread

Answer = TypeVar("Answer")


class BusyError(Exception):
    """There was no answer in time, or too many wait for one already."""


class Threads:
    """At most `threads` calls at a time, each given up after `seconds`.

    A call that is given up may still come to its end later; until then it holds its thread. When
    `waiting` others wait for a thread, further calls are turned away at once.
    """

    def __init__(self, threads: int, seconds: float, waiting: int) -> None:
        self._threads, self._seconds, self._waiting = threads, seconds, waiting
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """The function's result; raises BusyError if there is none in time."""
        if self._limiter is None:
            # Made where its event loop runs, after the process was forked.
            self._limiter = anyio.CapacityLimiter(self._threads)
        if self._limiter.statistics().tasks_waiting >= self._waiting:
            raise BusyError
        try:
            with anyio.fail_after(self._seconds):
                return await anyio.to_thread.run_sync(
                    partial(function, *arguments), abandon_on_cancel=True, limiter=self._limiter
                )
        except TimeoutError:
            raise BusyError from None

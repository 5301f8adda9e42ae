"""Waiting for the workers of a Dask scheduler, and saying so when none of them answers.

A worker reports to its scheduler twice a second or so. Where none has for `SILENCE` seconds,
because all have ended or are frozen, a warning says so, and again after twice that time. Dask's own
settings say when to give up: `dask.config.set({"adacos.timeout": 600})`, or the environment
variable `DASK_ADACOS__TIMEOUT`. Without it there is no limit.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

from adacos.exceptions import InvalidInputError, WorkerWarning

# Seconds without a report of any worker after which a warning says so.
SILENCE = 30.0
# Seconds between two looks at what workers reported.
LOOK = 2.0


def computed(collections: Sequence[Any]) -> tuple[Any, ...]:
    """Values of Dask collections, by the client there is, else in this process."""
    import dask
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    if client is None:
        return tuple(dask.compute(*collections))
    return tuple(gathered(client, client.compute(list(collections))))


def gathered(client: Any, futures: Any) -> Any:
    """Values of futures, or a clear error where workers or the scheduler are lost."""
    from dask.distributed import KilledWorker

    try:
        return waited(client, client.gather(futures, asynchronous=True))
    except (KilledWorker, CancelledError, ImportError, RuntimeError) as error:
        raise InvalidInputError(
            "workers",
            "and their scheduler must live and have adacos installed, with the extra dask",
            f"{type(error).__name__}: {error}",
            "A worker that dies is mostly out of memory: each of its threads holds a partition, "
            "such as a row group of a Parquet file. Give it more, or make partitions smaller.",
        ) from error


def waited(client: Any, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a client's coroutine, while workers are watched."""
    answer = _started(client, work)
    try:
        limit, watch = _timeout(), _Watch(client)
        while not _is_done(answer, LOOK if limit is None else min(LOOK, limit)):
            watch.look()
            if limit is not None and watch.silence > limit:
                raise InvalidInputError(
                    "workers",
                    f"must answer within the {limit:g} s of adacos.timeout (--dask-timeout)",
                    watch.state,
                    "Look at the scheduler's page and the logs of the workers, and start them "
                    "again.",
                )
        return answer.result()
    finally:
        answer.cancel()


class _Watch:
    """How long no worker has reported to the scheduler."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asked: Future[Any] | None = None
        self._reports: dict[str, float] | None = None
        self._heard, self._warned = time.monotonic(), SILENCE

    @property
    def silence(self) -> float:
        """Seconds since a worker was heard of."""
        return time.monotonic() - self._heard

    @property
    def state(self) -> str:
        """What was heard, in words."""
        if self._reports is None:
            return f"no answer of the scheduler for {self.silence:.0f} s"
        if not self._reports:
            return f"no worker for {self.silence:.0f} s"
        return f"no report of any of the workers ({len(self._reports)}) for {self.silence:.0f} s"

    def look(self) -> None:
        """Take what the scheduler says of its workers, and warn of a silence."""
        if self._asked is None:
            self._asked = _started(self._client, self._client.scheduler.identity())
        if _is_done(self._asked, LOOK):
            if not (self._asked.cancelled() or self._asked.exception()):
                self._note(self._asked.result()["workers"])
            self._asked = None
        if self.silence > self._warned:
            warnings.warn(
                f"Dask: {self.state}. Waiting for one; adacos.timeout (--dask-timeout) sets a "
                "limit.",
                WorkerWarning,
                stacklevel=2,
            )
            self._warned = 2 * self.silence

    def _note(self, workers: dict[str, Any]) -> None:
        before, self._reports = (
            self._reports or {},
            {address: float(known["last_seen"]) for address, known in workers.items()},
        )
        if any(before.get(address) != last for address, last in self._reports.items()):
            self._heard, self._warned = time.monotonic(), SILENCE


def _started(client: Any, work: Coroutine[Any, Any, Any]) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work, client.loop.asyncio_loop)


def _is_done(answer: Future[Any], seconds: float) -> bool:
    try:
        answer.exception(seconds)
    except (TimeoutError, CancelledError):
        return answer.done()
    return True


def _timeout() -> float | None:
    """Seconds without a report after which to give up; None for no limit."""
    import dask
    from dask.utils import parse_timedelta

    stated = dask.config.get("adacos.timeout", None)
    try:
        seconds: float | None = parse_timedelta(stated)
    except (AttributeError, LookupError, TypeError, ValueError):
        seconds = -1.0
    if seconds is None or seconds > 0:
        return seconds
    raise InvalidInputError(
        "adacos.timeout", "must be a time above 0", stated, "Such as 600, or '10 minutes'."
    )

"""Keep worker processes running, replace those that die, and renew them all on request.

uvicorn's own supervisor was looked at and not taken: it starts workers by spawning, so that each
would load the model again instead of sharing its memory, and its workers live on when the
supervisor is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from adacos.service.logs import LOG

# How often the supervisor looks (seconds).
_TICK = 0.05
# A worker that ends sooner than this (seconds) is replaced after a pause, which doubles each time.
_SHORT_LIFE = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
# Old workers stop listening well within this time of being told to (seconds).
_HANDOVER = 0.25

Work = Callable[[int], None]


@dataclass
class _Worker:
    number: int
    began: float


class Supervisor:
    """Processes that each run `work(number)`.

    `renew` gives the work of new processes when SIGHUP asks for it; whatever it raises is logged,
    and the old ones continue. `patience` is how long (seconds) a process may take to end.
    """

    def __init__(
        self, work: Work, workers: int, *, renew: Callable[[], Work] | None, patience: float
    ) -> None:
        self._work, self._renew, self._patience = work, renew, patience
        self._running: dict[int, _Worker] = {}
        self._retired: dict[int, float] = {}
        self._due = dict.fromkeys(range(workers), 0.0)
        self._pause = dict.fromkeys(range(workers), _FIRST_PAUSE)
        self._signals: list[int] = []

    def run(self, begun: Callable[[], None]) -> int:
        """Until a signal ends it; the exit code. `begun` is called once signals are heeded."""
        watched = [signal.SIGTERM, signal.SIGINT]
        if self._renew is not None:
            watched.append(signal.SIGHUP)
        for one in watched:
            signal.signal(one, lambda received, _: self._signals.append(received))
        if self._renew is not None:
            # The one that came while the service was being prepared comes now.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        begun()
        while True:
            while self._signals:
                if self._signals.pop(0) != signal.SIGHUP:
                    return self._end()
                self._renew_all()
            now = time.monotonic()
            for number in [number for number, due in self._due.items() if due <= now]:
                del self._due[number]
                self._start(number)
            self._reap()
            time.sleep(_TICK)

    def _start(self, number: int) -> None:
        process = os.fork()
        if process == 0:
            code = 1
            try:
                for handled in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(handled, signal.SIG_DFL)
                self._work(number)
                code = 0
            except BaseException as error:
                LOG.error("worker failed", extra={"error": type(error).__name__})
            finally:
                # No handler, buffer or thread of the supervisor may run here.
                os._exit(code)
        self._running[process] = _Worker(number, time.monotonic())

    def _reap(self) -> None:
        """Take note of processes that ended, and end retired ones that take too long."""
        for process in [*self._running, *self._retired]:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended == 0:
                if self._retired.get(process, time.monotonic()) + self._patience < time.monotonic():
                    os.kill(process, signal.SIGKILL)
                continue
            if self._retired.pop(process, None) is None:
                self._replace(process, self._running.pop(process), status)

    def _replace(self, process: int, worker: _Worker, status: int) -> None:
        lived = time.monotonic() - worker.began
        pause = 0.0
        if lived < _SHORT_LIFE:
            pause = self._pause[worker.number]
            self._pause[worker.number] = min(2 * pause, _LONGEST_PAUSE)
        else:
            self._pause[worker.number] = _FIRST_PAUSE
        code = os.waitstatus_to_exitcode(status)
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        LOG.error(
            "worker died; it is replaced",
            extra={"worker": process, "how": how, "lived": round(lived, 1), "pause": pause},
        )
        self._due[worker.number] = time.monotonic() + pause

    def _renew_all(self) -> None:
        assert self._renew is not None
        try:
            self._work = self._renew()
        except Exception as error:
            LOG.error(
                "reload failed; the service continues as before",
                extra={"error": type(error).__name__, "detail": str(error)},
            )
            return
        numbers = [worker.number for worker in self._running.values()] + list(self._due)
        self._retire()
        # New workers listen once the old ones have stopped, so that no two models answer at once;
        # connections wait in the queue of the socket meanwhile.
        self._due = dict.fromkeys(numbers, time.monotonic() + _HANDOVER)
        LOG.warning("reloaded")

    def _retire(self) -> None:
        for process in self._running:
            os.kill(process, signal.SIGTERM)
            self._retired[process] = time.monotonic()
        self._running = {}

    def _end(self) -> int:
        self._due = {}
        self._retire()
        while self._retired:
            if self._signals:
                # Asked a second time: at once.
                self._signals.clear()
                self._retired = dict.fromkeys(self._retired, -self._patience)
            self._reap()
            time.sleep(_TICK)
        return 0

"""Run the service: one process, or several that share a port and their metrics."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import time
from collections.abc import Callable

import uvicorn
from threadpoolctl import threadpool_limits

from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.service.app import create_app
from adacos.service.case_log import CaseLog
from adacos.service.guard import LOG
from adacos.service.metrics import Metrics
from adacos.service.settings import Settings
from adacos.validation import integer

# A worker that ends sooner than this (seconds) would only end again.
_SHORT_LIFE = 5.0
_BACKLOG = 2048


def serve(
    policy: BasePolicy,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    ready: Callable[[str], None] = lambda url: None,
) -> int:
    """Answer requests until interrupted; the exit code.

    `ready` is called with the address once the port is bound.
    """
    integer("workers", workers, at_least=1)
    if workers > 1 and not hasattr(os, "fork"):
        raise InvalidInputError("workers", "must be 1 on this system", workers, "Leave it out.")
    if settings.case_log is not None:
        # The table is created once, and a wrong URL is told before the service is up.
        CaseLog(settings.case_log).close()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    metrics = Metrics(workers)
    sockets = _bind(host, port, workers)
    ready(_url(host, sockets[0].getsockname()[1]))

    def work(number: int) -> None:
        metrics.worker = number
        with threadpool_limits(1):
            app = create_app(policy, settings, metrics)
            config = uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, lifespan="off"
            )
            uvicorn.Server(config).run(sockets=[sockets[number]])

    if workers == 1:
        work(0)
        return 0
    return _supervise(work, workers)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bind(host: str, port: int, workers: int) -> list[socket.socket]:
    """One listening socket per worker on the same port; the kernel spreads connections."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets: list[socket.socket] = []
    try:
        for _ in range(workers):
            one = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if workers > 1:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind((host, port))
            one.listen(_BACKLOG)
            port = one.getsockname()[1]
    except OSError as error:
        for one in sockets:
            one.close()
        raise InvalidInputError(
            "host, port",
            "must be a free address of this machine",
            f"{host}:{port} ({error.strerror or error})",
            "Choose another with --port.",
        ) from error
    return sockets


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _supervise(work: Callable[[int], None], workers: int) -> int:
    """Keep that many worker processes running until a signal ends them; the exit code."""
    running: dict[int, tuple[int, float]] = {}
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        for process in running:
            os.kill(process, signal.SIGTERM)

    def start(number: int) -> None:
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            code = 0
            try:
                work(number)
            except Exception as error:
                LOG.error("worker failed: %s", type(error).__name__)
                code = 1
            finally:
                os._exit(code)
        running[process] = number, time.monotonic()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for number in range(workers):
        start(number)
    code = 0
    while running:
        process, _ = os.wait()
        number, began = running.pop(process)
        if stopping:
            continue
        if time.monotonic() - began < _SHORT_LIFE:
            code = 1
            stop()
        else:
            start(number)
    return code

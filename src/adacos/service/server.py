"""Run the service: worker processes that share one listening socket, a model and their metrics."""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.sharedctypes import RawArray

import uvicorn
from threadpoolctl import threadpool_limits

from adacos.consultation import fingerprint
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.service.app import create_app
from adacos.service.limits import Limits, WorkerUsage
from adacos.service.logs import set_up
from adacos.service.metrics import Metrics
from adacos.service.protocol import LimitedProtocol, LimitedServer
from adacos.service.settings import Settings
from adacos.service.supervisor import Supervisor, Work
from adacos.validation import integer

_BACKLOG = 2048
# Requests in hand are finished within this time (seconds) when the service ends.
_GRACEFUL = 8
# Earlier models that are kept for consultations begun with them.
_MODELS_KEPT = 3
# Descriptors that connections may not take: files, the database, standard streams.
_RESERVED = 100

Reload = Callable[[], tuple[BasePolicy, Settings]]


def serve(
    policy: BasePolicy,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    ready: Callable[[str], None] = lambda url: None,
    reload: Reload | None = None,
    earlier: Sequence[BasePolicy] = (),
) -> int:
    """Answer requests until interrupted; the exit code.

    `ready` is called with the address once the port is bound. `reload` gives the policy and the
    settings to continue with when SIGHUP asks for it. Policies that it replaces are kept for those
    who name them, as are the `earlier` ones, which were served before this start.
    """
    integer("workers", workers, at_least=1)
    forks = hasattr(os, "fork")
    if workers > 1 and not forks:
        raise InvalidInputError("workers", "must be 1 on this system", workers, "Leave it out.")
    set_up()
    metrics, counts = Metrics(workers), RawArray("i", workers)
    served = _distinct([policy, *earlier])
    # Built before the port is bound: what is wrong with the case log is told at once.
    work = _work(served, settings, metrics)
    listening = _bind(host, port)
    url = _url(host, listening.getsockname()[1])
    if not forks:
        ready(url)
        work(listening, counts, lambda: False, 0)
        return 0
    parent = os.getpid()

    def in_worker(work: _OnSocket) -> Work:
        return partial(work, listening, counts, lambda: os.getppid() != parent)

    def renew() -> Work:
        assert reload is not None
        new, chosen = reload()
        replaced = _distinct([new, *served])[: 1 + _MODELS_KEPT]
        again = _distinct([*replaced, *earlier])
        made = _work(again, chosen, metrics)
        served[:] = again
        return in_worker(made)

    return Supervisor(
        in_worker(work), workers, renew=None if reload is None else renew, patience=_GRACEFUL + 2
    ).run(lambda: ready(url))


def _distinct(policies: Sequence[BasePolicy]) -> list[BasePolicy]:
    """The policies without those that decide as one before them does."""
    return [*{fingerprint(one): one for one in reversed(policies)}.values()][::-1]


_OnSocket = Callable[[socket.socket, MutableSequence[int], Callable[[], bool], int], None]


def _work(served: list[BasePolicy], settings: Settings, metrics: Metrics) -> _OnSocket:
    """What a worker does with the socket, the counts of all, `is it orphaned` and its number."""
    app = create_app(served[0], settings, metrics, earlier=served[1:])
    _spare_the_collector()
    limits = replace(settings.limits, connections=_most_connections(settings.limits))
    config = uvicorn.Config(
        app,
        http=partial(LimitedProtocol, limits=limits, held=WorkerUsage()),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        # Nobody's X-Forwarded-For is believed but that of the operator's own proxies.
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=_GRACEFUL,
    )

    def work(
        listening: socket.socket,
        counts: MutableSequence[int],
        orphaned: Callable[[], bool],
        number: int,
    ) -> None:
        metrics.worker = number
        with threadpool_limits(1):
            LimitedServer(config, orphaned, counts, number).run(sockets=[listening])

    return work


def _spare_the_collector() -> None:
    """Take what is loaded now out of garbage collection.

    A long body makes many objects, and a collector that looks at the model and all modules again
    and again meanwhile makes parsing it ten times as long. Memory shared with workers stays shared.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _most_connections(limits: Limits) -> int:
    try:
        import resource
    except ImportError:
        return limits.connections
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(limits.connections, descriptors - _RESERVED), 1)


def _bind(host: str, port: int) -> socket.socket:
    """The one listening socket; a port that another process listens on is refused."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        # Lets a service be restarted while connections of the last one linger; nobody else can
        # listen on the port meanwhile.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise InvalidInputError(
            "host, port",
            "must be a free address of this machine",
            f"{host}:{port} ({error.strerror or error})",
            "Choose another with --port.",
        ) from error
    return listening


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

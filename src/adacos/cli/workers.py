"""The Dask scheduler that `--dask` names."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from adacos import __version__
from adacos.cli.common import say
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.models.dask_wait import waited

DaskTimeout = Annotated[
    str | None,
    typer.Option(
        help="Give up when no Dask worker answers for this time, such as 600 (seconds) or 10m. "
        "Without it there is no limit."
    ),
]


def refuse_timeout_alone(dask: str | None, timeout: str | None) -> None:
    """`--dask-timeout` is about the workers that `--dask` names."""
    if timeout is not None and dask is None:
        raise InvalidInputError(
            "--dask-timeout", "goes with --dask", timeout, "Name a scheduler, or leave it out."
        )


def connect(address: str, timeout: str | None = None) -> Any:
    """A client of the scheduler; the newest one is that which computes."""
    try:
        import dask
        from dask.distributed import Client
    except ImportError as error:
        raise MissingExtraError("dask.distributed", "dask") from error
    if timeout is not None:
        dask.config.set({"adacos.timeout": timeout})
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            "--dask",
            "must be the address of a scheduler that answers",
            address,
            "Such as tcp://host:8786, as `dask scheduler` prints it when it starts; its page for "
            "browsers has another port.",
        ) from error
    if not client.nthreads():
        say(f"no worker at {address} yet: waiting for one", err=True)
    _check_versions(client, address)
    return client


def _check_versions(client: Any, address: str) -> None:
    """Refuse a scheduler or a worker without this version of adacos.

    What they cannot unpack they may wait for without end.
    """
    workers = client.scheduler_info()["workers"]
    try:
        found = {client.run_on_scheduler(_version)}
        asked = [client.submit(_version, workers=[one], pure=False) for one in workers]
        found |= set(waited(client, client.gather(asked, asynchronous=True)))
    except InvalidInputError:  # no worker answers
        client.close()
        raise
    except Exception as error:  # of whatever kind: it happened elsewhere
        found = {str(error)}
    if found != {__version__}:
        client.close()
        raise InvalidInputError(
            "--dask",
            f"the scheduler and all workers must have adacos {__version__}",
            f"{address}: {', '.join(sorted(found - {__version__}))}",
            "Install the same there, with the extra dask.",
        )


def _version() -> str:
    return __version__

"""The Dask scheduler that `--dask` names."""

from __future__ import annotations

from typing import Any

from adacos import __version__
from adacos.cli.common import say
from adacos.exceptions import InvalidInputError, MissingExtraError


def connect(address: str) -> Any:
    """A client of the scheduler; the newest one is that which computes."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise MissingExtraError("dask.distributed", "dask") from error
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
    """Refuse a scheduler or a worker that lacks this version of adacos.

    What they cannot unpack they may wait for without end.
    """
    try:
        found = {client.run_on_scheduler(_version), *client.run(_version).values()}
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

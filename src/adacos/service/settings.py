"""What the operator of the service chooses."""

from __future__ import annotations

from dataclasses import dataclass, field

from adacos.service.keys import Key, sole_key
from adacos.service.limits import Limits
from adacos.validation import integer, real


@dataclass(frozen=True)
class Settings:
    """Choices of the operator.

    Attributes
    ----------
    case_log : SQLAlchemy URL of the log of finished consultations; None keeps none.
    api_key : what clients must send as bearer token, good for everything.
    keys : further keys, with their roles. Without any key everyone is let in.
    hosts : names under which clients reach the service, in addition to its addresses and localhost.
    proxies : addresses of proxies whose X-Forwarded-For is believed.
    max_body_bytes : longest request body that is read.
    max_rows : most rows in one call of score.
    max_requests, max_requests_per_client : most requests that one worker works on at a time, in
        all and for one client: a key at an address.
    rate_limit : requests per second and client, in each worker; 0 for no limit.
    limits : what a connection may take; see there.
    """

    case_log: str | None = None
    api_key: str | None = None
    keys: tuple[Key, ...] = ()
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    max_body_bytes: int = 1 << 20
    max_rows: int = 10_000
    max_requests: int = 128
    max_requests_per_client: int = 32
    rate_limit: float = 2000.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        integer("max_body_bytes", self.max_body_bytes, at_least=1)
        integer("max_rows", self.max_rows, at_least=1)
        integer("max_requests", self.max_requests, at_least=1)
        integer("max_requests_per_client", self.max_requests_per_client, at_least=1)
        real("rate_limit", self.rate_limit, at_least=0)
        if self.api_key is not None:
            sole_key(self.api_key)

    @property
    def all_keys(self) -> tuple[Key, ...]:
        """The keys that are let in."""
        return self.keys if self.api_key is None else (sole_key(self.api_key), *self.keys)

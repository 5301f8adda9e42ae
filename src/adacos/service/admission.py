"""Whether a request is let in, judged by its headers: where it was sent to, from where, by whom.

Everything needs a key that is not on the short list of open routes. A browser's page of another
site can send requests to this machine too: its Origin and Sec-Fetch-Site give it away, and where
it has made its own name point here (DNS rebinding), the Host does. Starlette's middleware for
trusted hosts knows only Host, and answers in plain text.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from adacos.service.keys import Key, find_key
from adacos.service.rate import Buckets
from adacos.service.settings import Settings

OPEN = frozenset({"page", "health", "ready"})
ROLE_OF = {
    "step": "ask",
    "score": "ask",
    "model": "ask",
    "openapi": "ask",
    "cases": "record",
    "outcome": "record",
    "case": "record",
    "summary": "read",
    "metrics": "metrics",
}
# Routes that take a body; a POST to another one is told that it is the wrong method.
_WITH_BODY = frozenset({"step", "score", "cases", "outcome"})
# A second one of these could be read differently by a proxy in front.
_SINGLE = frozenset({b"host", b"origin", b"authorization", b"content-type", b"content-length"})


@dataclass(frozen=True)
class Refusal:
    """Status and reason."""

    status: int
    detail: str


class Admission:
    """The rules for one service."""

    def __init__(self, settings: Settings) -> None:
        self._keys = settings.all_keys
        self._hosts = frozenset(host.lower() for host in settings.hosts)
        self._most = settings.max_body_bytes
        self._buckets = Buckets(settings.rate_limit) if settings.rate_limit > 0 else None

    def judge(
        self, method: str, route: str, headers: list[tuple[bytes, bytes]], address: str
    ) -> Key | Refusal | None:
        """Why the request is refused, or the key it came with if there are keys."""
        if self._buckets is not None and not self._buckets.take(address):
            return Refusal(429, "Too many requests: slow down.")
        given: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in given and name in _SINGLE:
                return Refusal(400, "A header is there twice.")
            given[name] = value
        key = find_key(self._keys, given.get(b"authorization", b"")) if self._keys else None
        return (
            self._misdirected(given)
            or (None if route == "page" else _foreign(given))
            or self._unknown(route, key)
            or self._wrong_body(method, route, given)
            or key
        )

    def _misdirected(self, headers: Mapping[bytes, bytes]) -> Refusal | None:
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        if name == "localhost" or name in self._hosts or is_address(name):
            return None
        return Refusal(421, "The service does not answer under this Host; see --allow-host.")

    def _unknown(self, route: str, key: Key | None) -> Refusal | None:
        if not self._keys or route in OPEN:
            return None
        if key is None:
            return Refusal(401, "Send the API key as header 'Authorization: Bearer KEY'.")
        role = ROLE_OF.get(route)
        if role is not None and role not in key.roles:
            return Refusal(403, f"This key is not allowed to {role}.")
        return None

    def _wrong_body(
        self, method: str, route: str, headers: Mapping[bytes, bytes]
    ) -> Refusal | None:
        if method == "POST" and route in _WITH_BODY:
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                return Refusal(
                    415, "Send the body as JSON, with the header 'Content-Type: application/json'."
                )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._most:
            return Refusal(413, too_long(self._most))
        return None


def too_long(most: int) -> str:
    """What is said about a body that is too long."""
    return f"The body is longer than {most} bytes."


def host_name(host: str) -> str:
    """A Host header without its port, in lower case; "[::1]:80" gives "::1"."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_address(name: str) -> bool:
    """Whether it is an IP address, which no name server can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _foreign(headers: Mapping[bytes, bytes]) -> Refusal | None:
    """Refuse what a browser says comes from a page of another site."""
    origin = headers.get(b"origin")
    own = origin is None or origin.partition(b"://")[2].lower() == headers[b"host"].lower()
    if own and headers.get(b"sec-fetch-site", b"none") in (b"none", b"same-origin"):
        return None
    return Refusal(403, "The request comes from a page of another site.")

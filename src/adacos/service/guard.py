"""The gate in front of every route: key, rate, size; headers, counts, and errors told sparingly.

What goes wrong inside is logged by its type and place only: messages and stack traces may hold
values of a patient.
"""

from __future__ import annotations

import hmac
import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from adacos.service.answers import as_json
from adacos.service.metrics import Metrics, route_of
from adacos.service.settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("adacos.service")

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_CLIENTS_REMEMBERED = 10_000


class Guard:
    """ASGI middleware; see the module."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._most = settings.max_body_bytes
        self._expected = None
        if settings.api_key is not None:
            self._expected = b"Bearer " + settings.api_key.encode("ascii")
        self._buckets = Buckets(settings.rate_limit) if settings.rate_limit > 0 else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, route, status = time.perf_counter(), route_of(scope["path"]), 0

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        refused = self._refuse(scope)
        try:
            if refused is not None:
                await _answer(told, *refused)
            else:
                await self._app(scope, self._limited(receive), told)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            LOG.error(
                "%s failed: %s at %s:%s", route, type(error).__name__, place.name, place.lineno
            )
            if status == 0:
                await _answer(told, 500, "The service failed; its log names the place.")
        finally:
            self._metrics.count(route, status or 500, time.perf_counter() - began)

    def _refuse(self, scope: Message) -> tuple[int, str] | None:
        """Status and reason if the request is not let in."""
        headers = dict(scope["headers"])
        path = scope["path"]
        if self._buckets is not None and not self._buckets.take(_address(scope)):
            return 429, "Too many requests: slow down."
        behind_key = path == "/metrics" or (path.startswith("/v1/") and path != "/v1/health")
        if self._expected is not None and behind_key:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                return 401, "Send the API key as header 'Authorization: Bearer KEY'."
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._most:
            return 413, self._too_long()
        return None

    def _limited(self, receive: Receive) -> Receive:
        """`receive`, but no more than the longest body."""
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self._most:
                raise HTTPException(413, self._too_long())
            return message

        return counted

    def _too_long(self) -> str:
        return f"The body is longer than {self._most} bytes."


class Buckets:
    """One token bucket per client address: `rate` tokens a second, at most a second's worth."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(rate, 1.0)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> bool:
        """Take a token if there is one."""
        now = self._clock()
        level, then = self._levels.pop(client, (self._most, now))
        level = min(level + (now - then) * self._rate, self._most)
        allowed = level >= 1.0
        self._levels[client] = (level - 1.0 if allowed else level), now
        if len(self._levels) > _CLIENTS_REMEMBERED:
            self._levels.popitem(last=False)
        return allowed


def _address(scope: Message) -> str:
    client = scope.get("client")
    return client[0] if client else ""


async def _answer(send: Send, status: int, detail: str) -> None:
    body = as_json({"detail": detail, "fields": []})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

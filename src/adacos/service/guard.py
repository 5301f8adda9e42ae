"""The gate in front of every route: admission, size, number at a time; headers, counts, ids.

The body is read here, before the request takes a place among those that are worked on. Probes and
the page take none: they are answered however busy the service is.

What goes wrong inside is logged by its type and place only: messages and stack traces may hold
values of a patient.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from adacos.service.admission import OPEN, Admission, Refusal, too_long
from adacos.service.encoding import as_json
from adacos.service.logs import LOG, REQUEST_ID, error_kind
from adacos.service.metrics import Metrics, route_of
from adacos.service.places import Places
from adacos.service.rate import network_of
from adacos.service.settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_GONE = "This model is no longer served. Begin the consultation again."
# What the case log answers, also of a model that is not served any more.
_OF_ANY_MODEL = ("summary", "case", "outcome")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# What the status is of a request whose client went away; as nginx counts it.
_CLIENT_GONE = 499


class Guard:
    """ASGI middleware; see the module.

    `model` is the fingerprint of the model that the wrapped application answers with; `earlier`
    holds the applications of models that were served before it. A request that names its model in
    the header Adacos-Model is answered by that one.
    """

    def __init__(
        self,
        app: App,
        settings: Settings,
        metrics: Metrics,
        model: str,
        earlier: Mapping[str, App],
    ) -> None:
        self._app, self._metrics = app, metrics
        self._admission = Admission(settings)
        self._most_bytes = settings.max_body_bytes
        self._places = Places(settings.max_requests, settings.max_requests_per_client)
        self._apps = {**earlier, model: app}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, route, status = time.perf_counter(), route_of(scope["path"]), 0
        request_id = _request_id(scope["headers"])
        REQUEST_ID.set(request_id.decode("ascii"))
        own = [*HEADERS, (b"x-request-id", request_id)]
        head = scope["method"] == "HEAD"

        async def counted_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *own]
            elif head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._let_in(scope, route, receive, counted_send)
        except ClientDisconnect:
            status = status or _CLIENT_GONE
        except Exception as error:
            LOG.error("request failed", extra={"route": route, **error_kind(error)})
            if status == 0:
                await _answer(
                    counted_send, Refusal(500, "The service failed; its log names the place.")
                )
        finally:
            self._metrics.count(route, status or 500, time.perf_counter() - began)

    async def _let_in(self, scope: Message, route: str, receive: Receive, send: Send) -> None:
        address = (scope.get("client") or ("",))[0]
        judged = self._admission.judge(scope["method"], route, scope["headers"], address)
        app: App | None = self._app
        for name, value in scope["headers"]:
            if name == b"adacos-model":
                own = self._app if route in _OF_ANY_MODEL else None
                app = self._apps.get(value.decode("latin-1"), own)
        if isinstance(judged, Refusal):
            await _answer(send, judged)
            return
        if app is None:
            await _answer(send, Refusal(410, _GONE))
            return
        key = "" if judged is None else judged.name
        inner = {**scope, "adacos.key": key}
        if scope["method"] == "HEAD":
            inner["method"] = "GET"
        if route in OPEN:
            await app(inner, receive, send)
            return
        body = await self._body(receive)
        client = key, network_of(address)
        if body is None:
            await _answer(send, Refusal(413, too_long(self._most_bytes)))
        elif not self._places.take(client):
            await _answer(send, Refusal(503, "Too many requests at a time; try again."))
        else:
            with contextlib.ExitStack() as place:
                place.callback(self._places.give_back, client)
                await app(inner, _given(body, receive), _when_begun(place.close, send))

    async def _body(self, receive: Receive) -> bytes | None:
        """The body when all of it is there; None if it is longer than allowed."""
        pieces, total, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            pieces.append(message.get("body", b""))
            total += len(pieces[-1])
            if total > self._most_bytes:
                return None
            more = message.get("more_body", False)
        return b"".join(pieces)


def _given(body: bytes, receive: Receive) -> Receive:
    """`receive` once the body was read: the body, and then what else comes."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message


def _when_begun(do: Callable[[], None], send: Send) -> Send:
    """`send` that does something as an answer begins."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            do()
        await send(message)

    return sent


def _request_id(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The identifier that a proxy gave the request, or a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value
    return uuid.uuid4().hex.encode("ascii")


async def _answer(send: Send, refusal: Refusal) -> None:
    body = as_json({"detail": refusal.detail, "fields": []})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

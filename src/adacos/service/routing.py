"""How routes take bodies and give answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from adacos.service.encoding import StrictRequest


class StrictRoute(APIRoute):
    """A route that reads bodies strictly; see `StrictRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, given a strict request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


def takes(body: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a route the request type made for the model in place of its general one."""

    def with_body(route: Callable[..., Any]) -> Callable[..., Any]:
        route.__annotations__["body"] = body
        return route

    return with_body


def json_answer(content: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(content, status, media_type="application/json")

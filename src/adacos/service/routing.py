"""How routes take bodies and give answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Header, Request
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


async def _named(
    adacos_model: Annotated[
        str | None,
        Header(
            description="The model that the consultation began with, as each answer names it: "
            "that one answers; 410 if it is not served any more."
        ),
    ] = None,
) -> None:
    """Declare the header; the guard has handed the request to the model that it names."""


NAMES_MODEL = Depends(_named)


def takes(body: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a route the request type made for the model in place of its general one."""

    def with_body(route: Callable[..., Any]) -> Callable[..., Any]:
        route.__annotations__["body"] = body
        return route

    return with_body


def json_answer(content: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(content, status, media_type="application/json")

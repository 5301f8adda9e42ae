"""JSON in and out, stricter than the standard library's default."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from adacos.service.access import Threads

# Shorter bodies (bytes) are parsed at once, longer ones in a thread, one at a time.
_SHORT = 1 << 14
_PARSER = Threads(1, 10.0, waiting=64)


def as_json(content: Any) -> bytes:
    """Compact JSON, in ASCII so that any text survives."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class StrictRequest(Request):
    """A request in whose JSON no name appears twice in one object."""

    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            body = await self.body()
            parse = partial(json.loads, body, object_pairs_hook=_once)
            self._json = parse() if len(body) <= _SHORT else await _PARSER.run(parse)
        return self._json


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        # Which of the two was meant nobody knows, and a proxy may have read the other.
        raise HTTPException(400, "A name is there twice in one object of the body.")
    return members

"""JSON in and out, stricter than the standard library's default."""

from __future__ import annotations

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request


def as_json(content: Any) -> bytes:
    """Compact JSON, in ASCII so that any text survives."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class StrictRequest(Request):
    """A request in whose JSON no name stands twice in one object."""

    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            self._json = json.loads(await self.body(), object_pairs_hook=_once)
        return self._json


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        # Which of the two was meant nobody knows, and a proxy may have read the other.
        raise HTTPException(400, "A name stands twice in one object of the body.")
    return members

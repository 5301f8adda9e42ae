"""Providers that count their calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

NAMES = ["age", "blood", "sugar", "kind", "noise"]


class Source:
    """A provider that answers from a table, counts its calls, and remembers the rows delivered."""

    def __init__(self, column: Any, fails: Any = lambda call: False) -> None:
        self.column, self.fails = list(column), fails
        self.calls, self.delivered = 0, Counter()
        self.keys: list[str] = []

    def __call__(self, request: Any) -> list[Any]:
        self.calls += 1
        self.keys.append(request.key)
        if self.fails(self.calls):
            raise ConnectionError("the line is busy")
        self.delivered.update(request.index.tolist())
        assert len(request.rows) == len(request)
        return [self.column[row] for row in request.index]


def sources(X: Any, names: Any = NAMES, **options: Any) -> dict[str, Source]:
    return {name: Source(X[name], **options) for name in names}


def emptied(X: Any) -> Any:
    """The rows without any value."""
    return X.assign(**dict.fromkeys(NAMES, np.nan))

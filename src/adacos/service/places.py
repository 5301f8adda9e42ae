"""How many requests are worked on at a time, in all and for one client.

A request takes its place when all of it has arrived and gives it back when its answer begins, so
that neither a body that comes slowly nor an answer that is not taken keeps a place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class Places:
    """At most `most` requests at a time, and at most `each` of them of one client."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._taken: Counter[Hashable] = Counter()
        self._total = 0

    def take(self, client: Hashable) -> bool:
        """Take a place if there is one for this client."""
        if self._total >= self._most or self._taken[client] >= self._each:
            return False
        self._taken[client] += 1
        self._total += 1
        return True

    def give_back(self, client: Hashable) -> None:
        """Give a place back."""
        self._total -= 1
        self._taken[client] -= 1
        if not self._taken[client]:
            del self._taken[client]

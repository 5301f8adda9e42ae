"""The values computed last, by key: an object keeps what it would otherwise compute again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """At most a given number of values by key, the least recently used ones dropped.

    Threads may share it. Copies and pickles begin empty.
    """

    def __init__(self, most: int) -> None:
        self._most, self._values, self._lock = most, OrderedDict[Key, Value](), Lock()

    def find(self, key: Key) -> Value | None:
        """The value of a key; None where it is not there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def keep(self, key: Key, value: Value) -> Value:
        """Keep the value of a key, and give it back."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def __reduce__(self) -> tuple[type[Recent[Key, Value]], tuple[int]]:
        return Recent, (self._most,)

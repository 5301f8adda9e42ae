"""Where a fit is: told by the loops that take long, heard by whoever asked for it.

A loop calls `tell`; it does nothing unless somebody listens. `listening` is a context, so that
neither the fits nor the estimators carry a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with what is being done, how many parts of it are done, and how many there are.
Listener = Callable[[str, int, int], None]

_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear what is told inside, beside those that listen already."""
    token = _LISTENERS.set((*_LISTENERS.get(), listener))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


def tell(what: str, done: int, whole: int) -> None:
    """Say that so many parts of the whole are done."""
    for listener in _LISTENERS.get():
        listener(what, done, whole)

"""Where a fit is: reported by the loops that take long, heard by whoever asked for it.

A loop calls `report_progress`; it does nothing unless somebody listens. `listening` is a context,
so that neither the fits nor the estimators carry a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

# Called with what is being done, how many parts of it are done, and how many there are.
Listener = Callable[[str, int, int], None]

_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear what is reported inside, as do those that listen already."""
    token = _LISTENERS.set((*_LISTENERS.get(), listener))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


def report_progress(what: str, done: int, whole: int) -> None:
    """Say that `done` parts of the whole are done."""
    for listener in _LISTENERS.get():
        listener(what, done, whole)


def prints_progress(fit: Callable[P, Result]) -> Callable[P, Result]:
    """Let a method print where it is if the estimator's parameter `verbose` asks for it."""

    @wraps(fit)
    def reported(*args: P.args, **kwargs: P.kwargs) -> Result:
        verbose = getattr(args[0], "verbose", 0)
        # A parameter that is no number is refused by the fit itself.
        if not (isinstance(verbose, int) and verbose):
            return fit(*args, **kwargs)
        with listening(partial(print_progress, args[0])):
            return fit(*args, **kwargs)

    return reported


def print_progress(estimator: object, what: str, done: int, whole: int) -> None:
    """One line about where a fit is."""
    print(f"[{type(estimator).__name__}] {what} {done} of {whole}", flush=True)

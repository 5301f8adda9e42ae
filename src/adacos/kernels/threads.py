"""One BLAS thread for sections of many small matrices.

Factors of a few hundred columns are slower on several threads than on one, and much slower on a
busy machine. `one_blas_thread` limits BLAS while a section runs and restores the user's setting
when the last of all sections, in whatever thread, has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_LOCK = Lock()


class _Limit:
    """Sections under way, and what restores the setting that the first of them met."""

    def __init__(self) -> None:
        self.sections = 0
        self.restore: Callable[[], Any] | None = None

    def enter(self) -> None:
        with _LOCK:
            self.sections += 1
            if self.sections == 1:
                limiter = _controller().limit(limits=1, user_api="blas")
                self.restore = limiter.restore_original_limits

    def leave(self) -> None:
        with _LOCK:
            self.sections -= 1
            if self.sections == 0 and self.restore is not None:
                self.restore()
                self.restore = None


_LIMIT = _Limit()


@cache
def _controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401  (brings its own BLAS)

    return ThreadpoolController()


def one_blas_thread(work: Callable[P, R]) -> Callable[P, R]:
    """Let a function run with one BLAS thread."""

    @wraps(work)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        _LIMIT.enter()
        try:
            return work(*args, **kwargs)
        finally:
            _LIMIT.leave()

    return limited

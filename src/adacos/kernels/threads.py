"""One BLAS thread for sections of many small matrices.

Factors of a few hundred columns are slower on several threads than on one, and much slower on a
busy machine. `one_blas_thread` limits BLAS in the calling thread while a section runs; what the
user has set for other code stays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own)

    return ThreadpoolController()


def one_blas_thread(work: Callable[P, R]) -> Callable[P, R]:
    """Let a function run with one BLAS thread."""

    @wraps(work)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return limited

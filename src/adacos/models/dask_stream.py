"""Rows in a Dask collection: pieces stay where they are, only sums of them travel.

Nothing here imports dask before somebody hands a collection over. The user's own `Client` is used
where there is one, else the threads of this process. What a worker held and lost is computed again
by the scheduler, from the same pieces and to the same numbers; sums are taken in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from adacos.kernels.binned import Block
from adacos.kernels.threads import one_blas_thread
from adacos.models.dask_wait import computed
from adacos.models.row_blocks import Sum, with_factor
from adacos.typing import Floats

if TYPE_CHECKING:
    from adacos.models.streamed_fits import Coded, CodedSums


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def in_memory(values: Any) -> NDArray[Any]:
    """One column, brought here in its pieces: `compute` would first join them on one worker."""
    parts = values.to_delayed()
    parts = parts if isinstance(parts, list) else parts.ravel().tolist()
    return np.concatenate([np.asarray(part) for part in computed(parts)])


class DaskStream:
    """The partitions of a `dask.dataframe`, or the blocks of rows of a `dask.array`."""

    def __init__(self, X: Any) -> None:
        if hasattr(X, "columns"):
            self.columns = [str(name) for name in X.columns]
            self._parts = list(X.to_delayed())
        else:
            self.columns = [f"x{i}" for i in range(X.shape[1])]
            self._parts = list(X.rechunk({1: -1}).to_delayed().ravel())
        self._X = X

    def head(self, n: int) -> Any:
        """The first n rows as they are."""
        if hasattr(self._X, "columns"):
            return computed([self._X.head(n, npartitions=-1, compute=False)])[0]
        return np.asarray(computed([self._X[:n]])[0])

    def each(self, work: Callable[..., Any], *given: Sequence[Any]) -> Iterator[Any]:
        """`work` of each piece where it lies."""
        return iter(computed(self._tasks(work, *given)))

    def held(
        self, work: Callable[..., Coded], *given: Sequence[Any]
    ) -> tuple[DaskBlocks, list[CodedSums]]:
        """Keep the blocks where they are made."""
        import dask

        coded = dask.persist(*self._tasks(work, *given))
        blocks = [dask.delayed(attrgetter("block"))(own) for own in coded]
        sums = computed([dask.delayed(attrgetter("sums"))(own) for own in coded])
        return DaskBlocks(blocks), list(sums)

    def _tasks(self, work: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        import dask

        # One object for all tasks, so that it travels to a worker once.
        shared = dask.delayed(work, pure=False)
        return [
            dask.delayed(_on_piece)(shared, part, *(own[number] for own in given))
            for number, part in enumerate(self._parts)
        ]


class DaskBlocks:
    """Blocks that workers hold."""

    def __init__(self, blocks: list[Any], plain: list[Any] | None = None) -> None:
        self._blocks, self._plain = blocks, plain

    def total(self, work: Callable[[Block], Sum]) -> Sum:
        """Sum over the blocks, two and two, by the workers."""
        import dask

        parts = self._each(work)
        plus = dask.delayed(_plus)
        while len(parts) > 1:
            pairs = [plus(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[len(parts) - len(parts) % 2 :]
        result: Sum = computed(parts)[0]
        return result

    def rows(self, work: Callable[[Block], Floats]) -> Floats:
        """What is made of the rows of each block, one after the other."""
        return np.concatenate(computed(self._each(work)))

    def made(self, work: Callable[[Block], Block]) -> DaskBlocks:
        """Blocks where these are."""
        import dask

        return DaskBlocks(list(dask.persist(*self._each(work))))

    def with_factor(self, work: Callable[[Block], Floats]) -> DaskBlocks:
        """Factors where the blocks are, joined with them in each pass: codes are held once."""
        import dask

        factors, join = dask.persist(*self._each(work)), dask.delayed(with_factor)
        plain = self._plain if self._plain is not None else self._blocks
        joined = [join(block, factor) for block, factor in zip(plain, factors, strict=True)]
        return DaskBlocks(joined, plain)

    def _each(self, work: Callable[[Block], Any]) -> list[Any]:
        import dask

        shared = dask.delayed(work, pure=False)
        return [dask.delayed(_on_block)(shared, block) for block in self._blocks]


@one_blas_thread
def _on_piece(work: Callable[..., Any], piece: Any, *given: Any) -> Any:
    """`work` of a partition as a validated table."""
    if not isinstance(piece, np.ndarray):
        return work(nw.from_native(piece, eager_only=True), *given)
    return work(np.asarray(piece, dtype=np.float64), *given)


@one_blas_thread
def _on_block(work: Callable[[Block], Any], block: Block) -> Any:
    return work(block)


def _plus(one: Sum, other: Sum) -> Sum:
    return one.plus(other)

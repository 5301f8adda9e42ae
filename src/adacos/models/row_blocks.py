"""Where the blocks of a large table are, and sums over them.

A fit asks two things of the rows: a sum over the blocks, and something for each row in the order of
the table. `HeldBlocks` answers them from memory; whoever keeps the blocks elsewhere brings the same
two methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed

from adacos.kernels.binned import Block
from adacos.typing import Floats


class Summable(Protocol):
    """What can be summed over blocks."""

    def plus(self, other: Self) -> Self:
        """The sum of both."""
        ...


Sum = TypeVar("Sum", bound=Summable)


class RowBlocks(Protocol):
    """Blocks of rows, wherever they are."""

    def total(self, work: Callable[[Block], Sum]) -> Sum:
        """Sum over the blocks of what `work` makes of each."""
        ...

    def rows(self, work: Callable[[Block], Floats]) -> Floats:
        """What `work` makes of the rows of each block, in the order of the table."""
        ...

    def made(self, work: Callable[[Block], Block]) -> RowBlocks:
        """The blocks that `work` makes of these, kept where they are."""
        ...

    def with_factor(self, work: Callable[[Block], Floats]) -> RowBlocks:
        """The blocks with what `work` says as factor."""
        ...


class HeldBlocks:
    """Blocks in memory, gone through by `n_jobs` threads."""

    def __init__(self, blocks: Sequence[Block], n_jobs: int | None = None) -> None:
        self._blocks, self._n_jobs = blocks, n_jobs

    def total(self, work: Callable[[Block], Sum]) -> Sum:
        """Sum over the blocks, in their order."""
        parts: Iterator[Sum] = self._each(work)
        return reduce(lambda sum_, part: sum_.plus(part), parts)

    def rows(self, work: Callable[[Block], Floats]) -> Floats:
        """One after the other."""
        return np.concatenate(list(self._each(work)))

    def made(self, work: Callable[[Block], Block]) -> HeldBlocks:
        """Blocks in memory."""
        return HeldBlocks(list(self._each(work)), self._n_jobs)

    def with_factor(self, work: Callable[[Block], Floats]) -> HeldBlocks:
        """The same codes with other factors."""
        factors = self._each(work)
        pairs = zip(self._blocks, factors, strict=True)
        return HeldBlocks([with_factor(*pair) for pair in pairs], self._n_jobs)

    def _each(self, work: Callable[[Block], Any]) -> Any:
        # Shared memory: with a cluster behind joblib, blocks would travel in every pass.
        parallel = Parallel(self._n_jobs, require="sharedmem", return_as="generator")
        return parallel(delayed(work)(block) for block in self._blocks)


def with_factor(block: Block, factor: Floats) -> Block:
    """The block with a factor, or another one."""
    return block._replace(factor=factor)

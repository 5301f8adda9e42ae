"""Training rows that are never all in memory, made ready for fitting in three goes.

The first learns what the columns hold, the second fetches the sample and a key of each row, the
third turns rows into codes. Everything else is that of rows in memory, see
`adacos.models.large_fits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.binned import Block, block_of
from adacos.kernels.folds import drawn_rows, folds_of_keys, row_keys
from adacos.models.basis import AdditiveBasis
from adacos.models.large_fits import SAMPLE_ROWS, LargeFits, assemble
from adacos.models.levels import MOST_LEVELS, Cuts, LevelSums, cut, level_sums, level_values
from adacos.models.row_blocks import HeldBlocks, RowBlocks
from adacos.models.set_fits import prepare
from adacos.tables.encoder import TableEncoder
from adacos.tables.row_digests import RowDigests, hashed, salt_of
from adacos.tables.scanning import ColumnScan, encoder_of, refuse_missing, scan
from adacos.typing import Floats, Ints

# Rows whose leave-out log-odds are kept, drawn within each class.
KEPT_ROWS = 200_000


class Stream(Protocol):
    """A table in pieces, whose order never changes."""

    columns: list[str]

    def head(self) -> Any:
        """Two rows as they are."""
        ...

    def each(self, work: Callable[..., Any], *given: Sequence[Any]) -> Iterator[Any]:
        """`work` of each piece and of what is given for it, in order."""
        ...

    def held(
        self, work: Callable[..., Coded], *given: Sequence[Any]
    ) -> tuple[RowBlocks, list[CodedSums]]:
        """Keep the blocks that `work` makes of the pieces; bring back their sums."""
        ...


class PieceStream:
    """Pieces that are read one after the other, and blocks held in memory."""

    def __init__(self, table: Any, n_jobs: int | None = None) -> None:
        self.columns: list[str] = list(table.columns)
        self._table, self._n_jobs = table, n_jobs

    def head(self) -> Any:
        """The first two rows."""
        return next(self._table.pieces())[:2]

    def each(self, work: Callable[..., Any], *given: Sequence[Any]) -> Iterator[Any]:
        """One piece in memory at a time."""
        for number, piece in enumerate(self._table.pieces()):
            yield work(piece, *(values[number] for values in given))

    def held(
        self, work: Callable[..., Coded], *given: Sequence[Any]
    ) -> tuple[RowBlocks, list[CodedSums]]:
        """Blocks in memory."""
        coded = list(self.each(work, *given))
        return HeldBlocks([piece.block for piece in coded], self._n_jobs), [
            piece.sums for piece in coded
        ]


class CodedSums(NamedTuple):
    """Sums over the rows of each level of each covariate, and the digests of the rows."""

    levels: list[LevelSums]
    digests: NDArray[np.uint64]


class Coded(NamedTuple):
    """A piece as codes."""

    block: Block
    sums: CodedSums


class Scanned(NamedTuple):
    """What the first go learned.

    Attributes
    ----------
    encoder : from a piece to numbers.
    columns : what each column holds.
    sizes : number of rows of each piece.
    """

    encoder: TableEncoder
    columns: list[ColumnScan]
    sizes: list[int]


def scan_stream(stream: Stream) -> Scanned:
    """Learn what the columns hold; a missing value is refused."""
    names = tuple(stream.columns)
    pieces = list(stream.each(partial(scan, names=names, most=MOST_LEVELS)))

    def both(one: list[ColumnScan], other: list[ColumnScan]) -> list[ColumnScan]:
        return [a.plus(b, MOST_LEVELS) for a, b in zip(one, other, strict=True)]

    columns = reduce(both, pieces)
    refuse_missing(columns, names)
    return Scanned(encoder_of(columns, names), columns, [piece[0].rows for piece in pieces])


def prepare_streamed(
    stream: Stream,
    scanned: Scanned,
    y: Floats,
    *,
    n_splines: int,
    families: tuple[str, ...],
    n_folds: int,
    seed: int,
    n_jobs: int | None,
) -> tuple[LargeFits, RowDigests]:
    """Rows as codes, ready for fitting, and the digests of the rows."""
    encoder, ends = scanned.encoder, np.cumsum([0, *scanned.sizes])
    chosen = drawn_rows(y, SAMPLE_ROWS, seed)
    of_piece = [chosen[(chosen >= a) & (chosen < b)] - a for a, b in pairwise(ends)]
    looked = list(stream.each(partial(_look, encoder=encoder, seed=seed), of_piece))
    key = np.concatenate([piece.key for piece in looked])
    salt = salt_of(np.concatenate([piece.digests for piece in looked]), seed)
    some = np.concatenate([piece.sample for piece in looked])
    fold = folds_of_keys(key, y, n_folds, seed, len(encoder.source))
    low, high = _range(encoder)
    sample = prepare(
        some,
        y[chosen],
        encoder,
        n_splines=n_splines,
        families=families,
        fold=fold[chosen],
        n_jobs=n_jobs,
        ends=(low, high),
    )
    cuts = _cuts(scanned, some, sample.basis)
    rows = [slice(a, b) for a, b in pairwise(ends)]
    n_held_out = int(fold.max()) + 1
    work = partial(_code, encoder=encoder, cuts=cuts, n_folds=n_held_out, salt=salt)
    # Three bytes a row travel to whoever holds it.
    small = y.astype(np.int8), fold.astype(np.int16)
    blocks, sums = stream.held(work, *([column[piece] for piece in rows] for column in small))
    digests = RowDigests(salt, np.sort(np.concatenate([piece.digests for piece in sums])))
    counts = [
        reduce(lambda one, other: one.plus(other), (piece.levels[k] for piece in sums))
        for k in range(len(cuts))
    ]
    values = [
        level_values(edges, count, float(low[j]), float(high[j]))
        for edges, count, j in zip(cuts, counts, encoder.first, strict=True)
    ]
    nowhere = np.zeros(len(chosen), dtype=np.intp)
    in_sample = _block(some, y[chosen], nowhere, encoder, cuts, 1)
    kept = drawn_rows(y, KEPT_ROWS, seed)
    rows_kept = y[kept], _standing_for_all(y, kept), fold[kept]
    fits = assemble(sample, values, counts, (low, high), blocks, in_sample, rows_kept)
    return replace(fits, kept=kept), digests


def _standing_for_all(y: Floats, kept: Ints) -> Floats:
    """Weights of some rows: each stands for as many of its class as there are for one kept."""
    share = np.bincount(y.astype(np.intp)) / np.bincount(y[kept].astype(np.intp))
    return np.asarray(share[y[kept].astype(np.intp)])


class _Look(NamedTuple):
    sample: Floats
    key: Floats
    digests: NDArray[np.uint64]


def _look(piece: Any, chosen: Ints, encoder: TableEncoder, seed: int) -> _Look:
    """Encoded rows of the sample, key and digest of every row."""
    encoded = encoder.transform(piece)
    return _Look(encoded[chosen], row_keys(encoded, seed), hashed(encoded, ""))


def _cuts(scanned: Scanned, some: Floats, basis: AdditiveBasis) -> list[Cuts]:
    cuts = []
    for k, covariate in enumerate(scanned.columns):
        columns = np.flatnonzero(basis.source == k)
        values = np.empty(0)
        if covariate.values is not None:
            # Text that never varies is one indicator, which is always 1.
            values = np.ones(1) if covariate.text else covariate.values
        cuts.append(cut(basis.kinds[k], values, some[:, columns[0]], basis, columns))
    return cuts


def _code(
    piece: Any,
    y: NDArray[np.int8],
    fold: NDArray[np.int16],
    encoder: TableEncoder,
    cuts: list[Cuts],
    n_folds: int,
    salt: str,
) -> Coded:
    """A piece as codes, with what is summed over all pieces."""
    encoded = encoder.transform(piece)
    weight, sums = np.ones(len(y)), []
    for k, edges in enumerate(cuts):
        columns = encoded[:, encoder.source == k]
        sums.append(level_sums(edges, edges.codes(columns), columns, weight))
    block = _block(encoded, y.astype(np.float64), fold.astype(np.intp), encoder, cuts, n_folds)
    return Coded(block, CodedSums(sums, hashed(encoded, salt)))


def _block(
    encoded: Floats, y: Floats, fold: Ints, encoder: TableEncoder, cuts: list[Cuts], n_folds: int
) -> Block:
    codes = [edges.codes(encoded[:, encoder.source == k]) for k, edges in enumerate(cuts)]
    return block_of(codes, y, np.ones(len(y)), fold, n_folds)


def _range(encoder: TableEncoder) -> tuple[Floats, Floats]:
    """Range of each encoded column: an indicator is 0 or 1, and 1 where there is one category."""
    low, high = encoder.low[encoder.source], encoder.high[encoder.source]
    single = np.bincount(encoder.source, minlength=len(encoder.names))[encoder.source] == 1
    return np.where(np.isnan(low), np.where(single, 1.0, 0.0), low), np.where(
        np.isnan(high), 1.0, high
    )

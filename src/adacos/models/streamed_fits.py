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

from adacos.exceptions import InvalidInputError
from adacos.kernels.binned import Block, block_of
from adacos.kernels.folds import drawn_rows, folds_of_keys, row_keys
from adacos.models.basis import AdditiveBasis
from adacos.models.coded_missing import MOST_PAIRS, CodedRows, available, pairs_of_missing
from adacos.models.large_fits import SAMPLE_ROWS, LargeFits, assemble
from adacos.models.levels import MOST_LEVELS, Cuts, LevelSums, cut, level_sums, level_values
from adacos.models.row_blocks import HeldBlocks, RowBlocks
from adacos.models.set_fits import prepare
from adacos.tables.encoder import TableEncoder
from adacos.tables.parquet_table import joined
from adacos.tables.row_digests import RowDigests, hashed, salt_of
from adacos.tables.scanning import ColumnScan, encoder_of, scan
from adacos.typing import Floats, Ints

# Rows whose leave-out log-odds are kept, drawn within each class.
KEPT_ROWS = 200_000


class Stream(Protocol):
    """A table in pieces, whose order never changes."""

    columns: list[str]

    def head(self, n: int) -> Any:
        """The first n rows as they are."""
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

    def head(self, n: int) -> Any:
        """The first n rows."""
        return joined(list(self._few(n)))

    def _few(self, n: int) -> Iterator[Any]:
        for piece in self._table.pieces():
            yield piece[:n]
            n -= len(piece)
            if n <= 0:
                return

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
    """Learn what the columns hold."""
    names = tuple(stream.columns)
    pieces = list(stream.each(partial(scan, names=names, most=MOST_LEVELS)))

    def both(one: list[ColumnScan], other: list[ColumnScan]) -> list[ColumnScan]:
        return [a.plus(b, MOST_LEVELS) for a, b in zip(one, other, strict=True)]

    columns = reduce(both, pieces)
    return Scanned(encoder_of(columns, names), columns, [piece[0].rows for piece in pieces])


def refuse_pairs(sample: Floats) -> None:
    """Refuse rows in which very many values are missing together, of which two bytes are kept."""
    pairs = pairs_of_missing(sample)
    if pairs > MOST_PAIRS:
        raise InvalidInputError(
            "X",
            f"must have at most {MOST_PAIRS} pairs of values missing together in the mean row of a "
            "table that is read a piece at a time",
            f"{pairs:,.0f}",
            "Leave covariates out that are hardly ever there, or read fewer rows into memory.",
        )


class StreamedRows(NamedTuple):
    """Rows ready for fitting, and what else was learned of them.

    Attributes
    ----------
    fits : the rows as codes.
    digests : of all rows.
    kept : encoded values of the rows whose out-of-fold log-odds are kept.
    """

    fits: LargeFits
    digests: RowDigests
    kept: Floats


class Labelled(NamedTuple):
    """What is at hand of every row: its class, how often it counts, and its group if there are."""

    y: Floats
    weight: Floats
    groups: Ints | None


def prepare_streamed(
    stream: Stream,
    scanned: Scanned,
    rows: Labelled,
    *,
    n_splines: int,
    families: tuple[str, ...],
    n_folds: int,
    seed: int,
    n_jobs: int | None,
    n_classes: int = 2,
    unlabeled: Floats | None = None,
) -> StreamedRows:
    """Turn rows into codes, ready for fitting; `unlabeled` are further rows, in memory."""
    y, weight, groups = rows
    encoder, ends = scanned.encoder, np.cumsum([0, *scanned.sizes])
    chosen, kept = drawn_rows(y, SAMPLE_ROWS, seed), drawn_rows(y, KEPT_ROWS, seed)
    wanted = [
        [own[(own >= a) & (own < b)] - a for a, b in pairwise(ends)] for own in (chosen, kept)
    ]
    looked = list(stream.each(partial(_look, encoder=encoder, seed=seed), *wanted))
    key = np.concatenate([piece.key for piece in looked])
    salt = salt_of(np.concatenate([piece.digests for piece in looked]), seed)
    some = np.concatenate([piece.sample for piece in looked])
    values_kept = np.concatenate([piece.kept for piece in looked])
    refuse_pairs(some)
    fold = folds_of_keys(key, y, n_folds, seed, len(encoder.source), groups)
    low, high = _range(encoder)
    sample = prepare(
        some,
        y[chosen],
        encoder,
        n_splines=n_splines,
        families=families,
        fold=fold[chosen],
        weight=weight[chosen],
        n_jobs=n_jobs,
        n_classes=n_classes,
        ends=(low, high),
    )
    cuts = _cuts(scanned, some, sample.basis)
    pieces = [slice(a, b) for a, b in pairwise(ends)]
    n_held_out = int(fold.max()) + 1
    work = partial(_code, encoder=encoder, cuts=cuts, n_folds=n_held_out, salt=salt)
    # Few bytes a row travel to whoever holds it.
    small = y.astype(np.int16), _few_bytes(weight), fold.astype(np.int16)
    blocks, sums = stream.held(work, *([column[piece] for piece in pieces] for column in small))
    digests = RowDigests(salt, np.sort(np.concatenate([piece.digests for piece in sums])))
    values, counts = _levels(cuts, sums, encoder)
    nowhere = np.zeros(len(chosen), dtype=np.intp)
    in_sample = _block(some, y[chosen], weight[chosen], nowhere, encoder, cuts, 1)
    labelled = y[kept], _weighted_for_all(y, weight, kept), fold[kept]
    coded = CodedRows(values, counts, blocks, in_sample)
    there = available(values_kept, encoder.source, any(own.missing for own in scanned.columns))
    fits = assemble(sample, coded, cuts, (low, high), labelled, unlabeled, there)
    return StreamedRows(replace(fits, kept=kept), digests, values_kept)


def _levels(
    cuts: list[Cuts], sums: list[CodedSums], encoder: TableEncoder
) -> tuple[list[Floats], list[LevelSums]]:
    """Encoded values of the levels of each covariate, and the rows at each."""
    low, high = _range(encoder)
    counts = [
        reduce(lambda one, other: one.plus(other), (piece.levels[k] for piece in sums))
        for k in range(len(cuts))
    ]
    values = [
        level_values(edges, count, float(low[j]), float(high[j]))
        for edges, count, j in zip(cuts, counts, encoder.first, strict=True)
    ]
    return values, counts


def _few_bytes(weight: Floats) -> NDArray[Any]:
    """Weights in the fewest bytes that hold them exactly."""
    whole = weight.astype(np.uint8) if weight.max() < 256 else weight
    return whole if np.array_equal(whole, weight) else weight


def _weighted_for_all(y: Floats, weight: Floats, kept: Ints) -> Floats:
    """Weights of some rows: each represents as many of its class as there are for one kept."""
    label = y.astype(np.intp)
    share = np.bincount(label, weight) / np.bincount(label[kept], weight[kept])
    return np.asarray(weight[kept] * share[label[kept]])


class _Look(NamedTuple):
    sample: Floats
    kept: Floats
    key: Floats
    digests: NDArray[np.uint64]


def _look(piece: Any, chosen: Ints, kept: Ints, encoder: TableEncoder, seed: int) -> _Look:
    """Encoded rows of the sample and of those kept, key and digest of every row."""
    encoded = encoder.transform(piece)
    return _Look(encoded[chosen], encoded[kept], row_keys(encoded, seed), hashed(encoded, ""))


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
    y: NDArray[np.int16],
    weight: NDArray[Any],
    fold: NDArray[np.int16],
    encoder: TableEncoder,
    cuts: list[Cuts],
    n_folds: int,
    salt: str,
) -> Coded:
    """A piece as codes, with what is summed over all pieces."""
    encoded = encoder.transform(piece)
    weight, sums = weight.astype(np.float64), []
    for k, edges in enumerate(cuts):
        columns = encoded[:, encoder.source == k]
        sums.append(level_sums(edges, edges.codes(columns), columns, weight))
    rows = y.astype(np.float64), weight, fold.astype(np.intp)
    block = _block(encoded, *rows, encoder, cuts, n_folds)
    return Coded(block, CodedSums(sums, hashed(encoded, salt)))


def _block(
    encoded: Floats,
    y: Floats,
    weight: Floats,
    fold: Ints,
    encoder: TableEncoder,
    cuts: list[Cuts],
    n_folds: int,
) -> Block:
    codes = [edges.codes(encoded[:, encoder.source == k]) for k, edges in enumerate(cuts)]
    return block_of(codes, y, weight, fold, n_folds)


def _range(encoder: TableEncoder) -> tuple[Floats, Floats]:
    """Range of each encoded column: an indicator is 0 or 1, and 1 where there is one category."""
    low, high = encoder.low[encoder.source], encoder.high[encoder.source]
    single = np.bincount(encoder.source, minlength=len(encoder.names))[encoder.source] == 1
    return np.where(np.isnan(low), np.where(single, 1.0, 0.0), low), np.where(
        np.isnan(high), 1.0, high
    )

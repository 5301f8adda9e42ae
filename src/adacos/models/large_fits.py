"""Models of covariate sets on very many rows, whose basis columns are not held.

From `LARGE_ROWS` complete rows of two classes on, covariates are cut into levels
(`adacos.models.levels`) and rows are codes (`adacos.kernels.binned`). All rows make the
coefficients, the strengths, the out-of-fold log-odds and the moments of the densities. A stratified
sample of `SAMPLE_ROWS` finds the order of the sets, the joint model for what is unavailable, the
places of the cuts, and where each fit begins.

Strengths are those per covariate, of highest restricted likelihood: with this number of rows the
blend with common ones (`adacos.kernels.strengths`) has nothing to add. Where only common strengths
are allowed they are blended on the sample. A strength is a prior precision, the same for any number
of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from adacos.kernels.binned import BLOCK_ROWS, Block, Design, block_of, log_odds, plain_gram, sums
from adacos.kernels.binned_fit import BinnedFit, fit_in_passes, without_folds
from adacos.kernels.folds import drawn_rows
from adacos.kernels.namespace import distinct, host, is_tensor, like, namespace
from adacos.kernels.strengths import central_strengths, row_loss
from adacos.models.additive import AdditiveFit
from adacos.models.basis import AdditiveBasis, uncentred_basis
from adacos.models.density import moment_matrix
from adacos.models.levels import MOST_LEVELS, Cuts, LevelSums, cut, level_sums, level_values
from adacos.models.missing import JointModel
from adacos.models.row_blocks import HeldBlocks, RowBlocks
from adacos.models.set_fits import SetFits, prepare
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Floats, Ints

# Rows from which on they are held as codes.
LARGE_ROWS = 100_000
# Rows of the sample.
SAMPLE_ROWS = 32_768


class _Gram(NamedTuple):
    matrix: Floats

    def plus(self, other: Self) -> Self:
        return type(self)(self.matrix + other.matrix)


@dataclass(frozen=True)
class LargeFits:
    """Training rows as codes, ready for fitting; the counterpart of `SetFits`.

    Attributes
    ----------
    sample : some of the rows, prepared as few rows are.
    basis : basis of the additive models, of all rows.
    joint : joint model of the encoded values.
    tables : for each covariate, the basis columns at each level.
    blocks : the rows.
    sample_block : the sample as codes.
    moments : Gram matrix of [1, standardised values, columns].
    y, weight, fold : labels, weights and folds of the rows whose out-of-fold log-odds are kept.
    families : candidates of the strengths.
    table : the rows and their classes as they were given, to fit on some of them.
    kept : numbers of the rows whose out-of-fold log-odds are kept, whose weights then stand for
    all;
        None for every row.
    """

    sample: SetFits
    basis: AdditiveBasis
    joint: JointModel
    tables: tuple[Floats, ...]
    blocks: RowBlocks
    sample_block: Block
    moments: Floats
    y: Floats
    weight: Floats
    fold: Ints
    families: tuple[str, ...]
    table: tuple[Any, Any, Ints | None] | None = None
    n_classes: int = 2
    kept: Ints | None = None
    _fitted: dict[frozenset[int], AdditiveFit] = field(default_factory=dict)
    _of_sample: dict[frozenset[int], AdditiveFit] = field(default_factory=dict)

    def fit(self, covariates: Ints, start: AdditiveFit | None) -> AdditiveFit:
        """Model of one set."""
        key = frozenset(covariates.tolist())
        if key not in self._fitted:
            self._fitted[key] = self._fit(covariates, start)
        return self._fitted[key]

    def _fit(self, covariates: Ints, start: AdditiveFit | None) -> AdditiveFit:
        basis, search = self.basis, "per_covariate" in self.families
        inside = np.flatnonzero(np.isin(basis.group, covariates))
        terms, term = np.unique(basis.term[inside], return_inverse=True)
        groups = sorted(set(basis.group[inside].tolist()))
        design = Design(tuple(groups), tuple(self.tables[k] for k in groups))
        begin = np.zeros(1 + len(inside))
        strengths = central_strengths(basis.linear)
        if start is not None:
            begin = np.append(start.intercept, start.coef[inside])
            strengths = np.where(np.isnan(start.strengths), strengths, start.strengths)
        if not search:
            strengths = self._common_strengths(covariates)
        rough = self._in_passes(
            HeldBlocks([self.sample_block]), design, term, strengths[terms], begin, search
        )
        fit = self._in_passes(self.blocks, design, term, rough.strengths, rough.coef, search)
        without = without_folds(fit, float(self.weight.sum()), term, search=search)
        leave_out = self.blocks.rows(partial(log_odds, design=design, coefs=without))
        leave_out = leave_out if self.kept is None else leave_out[self.kept]
        coef = np.zeros(len(basis.group))
        coef[inside] = fit.coef[1:]
        chosen = np.full(len(basis.linear), np.nan)
        chosen[terms] = fit.strengths
        loss = float(self.weight @ row_loss(leave_out, self.y))
        return AdditiveFit(float(fit.coef[0]), coef, chosen, leave_out, loss)

    def _in_passes(
        self,
        blocks: RowBlocks,
        design: Design,
        term: Ints,
        strengths: Floats,
        begin: Floats,
        search: bool,
    ) -> BinnedFit:
        def evaluate(coef: Floats, gram: bool) -> Any:
            return blocks.total(partial(sums, design=design, coef=coef, gram=gram))

        weight = self.sample_block.weight if blocks is not self.blocks else self.weight
        return fit_in_passes(evaluate, float(weight.sum()), term, strengths, begin, search=search)

    def _common_strengths(self, covariates: Ints) -> Floats:
        """Strengths of the sample's blend; a set starts from the set that it extends by one."""
        before = self._of_sample.get(frozenset(covariates[:-1].tolist()))
        fit = self.sample.fit(covariates, before)
        self._of_sample[frozenset(covariates.tolist())] = fit
        return fit.strengths


# Training rows ready for fitting, however many they are.
PreparedRows = SetFits | LargeFits


def holds_codes(n: int, n_classes: int) -> bool:
    """Whether n complete rows are held as codes."""
    return n >= LARGE_ROWS and n_classes == 2


def prepare_rows(
    encoded: Floats,
    y: Floats,
    encoder: TableEncoder,
    *,
    seed: int,
    unlabeled: Floats | None = None,
    n_classes: int = 2,
    placed_like: Any = None,
    **given: Any,
) -> PreparedRows:
    """Rows ready for fitting: very many complete ones of two classes as codes, else as columns.

    Codes are held where `placed_like` is, if that is a tensor.
    """
    rows = encoded, y, encoder
    if holds_codes(len(y), n_classes):
        tables = [encoded] if unlabeled is None else [encoded, unlabeled]
        if not any(np.isnan(column).any() for table in tables for column in table.T):
            rows = like(placed_like, encoded), y, encoder
            return prepare_large(*rows, seed=seed, unlabeled=unlabeled, **given)
    return prepare(*rows, unlabeled=unlabeled, n_classes=n_classes, **given)


def prepare_large(
    encoded: Floats,
    y: Floats,
    encoder: TableEncoder,
    *,
    n_splines: int,
    families: tuple[str, ...],
    fold: Ints,
    seed: int,
    weight: Floats | None = None,
    n_jobs: int | None = None,
    unlabeled: Floats | None = None,
) -> LargeFits:
    """Cut the covariates into levels and hold complete rows as codes."""
    n_folds, chosen = int(fold.max()) + 1, drawn_rows(y, SAMPLE_ROWS, seed)
    xp = namespace(encoded)
    ends = host(xp.min(encoded, axis=0)), host(xp.max(encoded, axis=0))
    sample = prepare(
        host(encoded[like(encoded, chosen)]),
        y[chosen],
        encoder,
        n_splines=n_splines,
        families=families,
        fold=fold[chosen],
        weight=None if weight is None else weight[chosen],
        n_jobs=n_jobs,
        ends=ends,
    )
    weight = np.ones(len(y)) if weight is None else weight
    cuts, codes, values, counts = [], [], [], []
    for k in range(len(encoder.names)):
        columns = encoded[:, like(encoded, encoder.source == k)]
        cuts.append(_cut_of(sample.basis, k, columns, chosen))
        codes.append(cuts[k].codes(columns))
        sums = level_sums(cuts[k], codes[k], columns, like(encoded, weight))
        values.append(level_values(cuts[k], sums, float(columns.min()), float(columns.max())))
        counts.append(sums)
    # A device works on all its rows at once.
    size = len(y) if is_tensor(encoded) else BLOCK_ROWS
    blocks = [
        block_of([code[rows] for code in codes], y[rows], weight[rows], fold[rows], n_folds)
        for rows in (slice(a, a + size) for a in range(0, len(y), size))
    ]
    in_sample = block_of(
        [code[like(encoded, chosen)] for code in codes],
        y[chosen],
        weight[chosen],
        np.zeros(len(chosen), dtype=np.intp),
        1,
    )
    return assemble(
        sample,
        values,
        counts,
        ends,
        HeldBlocks(blocks, n_jobs),
        in_sample,
        (y, weight, fold),
        unlabeled,
    )


def _cut_of(basis: AdditiveBasis, covariate: int, columns: Floats, chosen: Ints) -> Cuts:
    """Cuts of one covariate from its encoded columns."""
    kind, own = basis.kinds[covariate], np.flatnonzero(basis.source == covariate)
    some, values = np.empty(0), np.empty(0)
    if kind != CATEGORICAL:
        some = host(columns[like(columns, chosen), 0])
        if len(np.unique(some)) <= MOST_LEVELS:
            values = distinct(columns[:, 0])
    return cut(kind, values, some, basis, own)


def assemble(
    sample: SetFits,
    values: list[Floats],
    counts: list[LevelSums],
    ends: tuple[Floats, Floats],
    blocks: RowBlocks,
    sample_block: Block,
    rows: tuple[Floats, Floats, Ints],
    unlabeled: Floats | None = None,
) -> LargeFits:
    """Basis and moments of rows held as codes.

    `values` and `counts` are of the levels of each covariate, `ends` the range of each encoded
    column, `rows` labels, weights and folds.
    """
    drawn = sample.basis
    mapped = [drawn.maps.rows(v, np.flatnonzero(drawn.source == k)) for k, v in enumerate(values)]
    means = [np.average(v, axis=0, weights=c.weight) for v, c in zip(mapped, counts, strict=True)]
    spreads = [
        np.sqrt(np.average((v - mean) ** 2, axis=0, weights=c.weight))
        for v, c, mean in zip(mapped, counts, means, strict=True)
    ]
    mean, spread = np.concatenate(means), np.concatenate(spreads)
    kinds, splines = drawn.kinds, drawn.n_splines
    basis = uncentred_basis(drawn.source, kinds, splines, *ends, mean, spread, drawn.maps)
    columns = [basis.block(v, k) for k, v in enumerate(values)]
    centers = [c.weight @ part / c.weight.sum() for c, part in zip(counts, columns, strict=True)]
    basis = replace(basis, center=np.concatenate(centers))
    tables = tuple(part - center for part, center in zip(columns, centers, strict=True))
    moments = _moments(basis, values, tables, blocks)
    if unlabeled is not None:
        for first in range(0, len(unlabeled), BLOCK_ROWS):
            some = unlabeled[first : first + BLOCK_ROWS]
            moments += moment_matrix(basis.standardise(some), basis.transform(some))
    y, weight, fold = rows
    return LargeFits(
        sample=sample,
        basis=basis,
        joint=replace(sample.joint, low=ends[0], high=ends[1]),
        tables=tables,
        blocks=blocks,
        sample_block=sample_block,
        moments=moments,
        y=y,
        weight=weight,
        fold=fold,
        families=sample.families,
    )


def _moments(
    basis: AdditiveBasis, values: list[Floats], tables: tuple[Floats, ...], blocks: RowBlocks
) -> Floats:
    """Gram matrix of [1, standardised values, columns], see `moment_matrix`."""
    e = len(basis.source)
    both, place = [], [0]
    for k, (points, table) in enumerate(zip(values, tables, strict=True)):
        encoded, columns = np.flatnonzero(basis.source == k), np.flatnonzero(basis.group == k)
        standard = basis.standardise(points, encoded)
        both.append(np.hstack([standard, table]))
        place += [*(1 + encoded), *(1 + e + columns)]
    design = Design(tuple(range(len(values))), tuple(both))
    gram = blocks.total(lambda block: _Gram(plain_gram(block, design))).matrix
    moments = np.empty_like(gram)
    moments[np.ix_(place, place)] = gram
    return moments

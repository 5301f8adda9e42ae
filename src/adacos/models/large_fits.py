"""Models of covariate sets on very many rows, whose basis columns are not held.

From `LARGE_ROWS` rows on, covariates are cut into levels
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
from typing import Any

import numpy as np

from adacos.kernels.binned import (
    BLOCK_ROWS,
    Block,
    Codes,
    Design,
    Sums,
    block_of,
)
from adacos.kernels.binned_classes import passes_of
from adacos.kernels.binned_fit import BinnedFit, fit_in_passes, without_folds
from adacos.kernels.class_risk import log_loss
from adacos.kernels.folds import drawn_rows
from adacos.kernels.namespace import distinct, host, is_tensor, like, namespace
from adacos.kernels.strengths import central_strengths
from adacos.models.additive import AdditiveFit
from adacos.models.basis import AdditiveBasis, uncentred_basis
from adacos.models.coded_missing import (
    MOST_PAIRS,
    CodedRows,
    FillTables,
    available,
    expected_states,
    gram_of,
    pairs_of_missing,
    with_states,
)
from adacos.models.density import moment_matrix
from adacos.models.levels import MOST_LEVELS, Cuts, LevelSums, cut, level_sums, level_values
from adacos.models.missing import JointModel
from adacos.models.monotone import refuse_directions
from adacos.models.row_blocks import HeldBlocks, RowBlocks
from adacos.models.set_fits import SetFits, prepare
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Bools, Floats, Ints

# Rows from which on they are held as codes.
LARGE_ROWS = 100_000
# Rows of the sample.
SAMPLE_ROWS = 32_768
# Fits of the sample by which it is found how much missing values vary, of the first set and later.
FIRST_ROUGH_FITS, ROUGH_FITS = 3, 2


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
    table : the rows and their classes as they were given, to fit on some of them, and the groups of
        those whose out-of-fold log-odds are kept. Of rows that come in pieces the groups alone.
    kept : numbers of the rows whose out-of-fold log-odds are kept, whose weights then stand for
    all;
        None for every row.
    there : which covariates the rows have whose out-of-fold log-odds are kept; None where every row
        has all.
    states : of what is missing, None where nothing is.
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
    there: Bools | None = None
    states: FillTables | None = None
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
        passes = passes_of(self.n_classes)
        inside = np.flatnonzero(np.isin(basis.group, covariates))
        terms, term = np.unique(basis.term[inside], return_inverse=True)
        term = np.repeat(term, passes.width)
        groups = sorted(set(basis.group[inside].tolist()))
        design = Design(tuple(groups), tuple(self.tables[k] for k in groups))
        begin = np.zeros((1 + len(inside)) * passes.width)
        strengths = central_strengths(basis.linear)
        if start is not None:
            begin = passes.flat(start.intercept, start.coef[..., inside])
            strengths = np.where(np.isnan(start.strengths), strengths, start.strengths)
        if not search:
            strengths = self._common_strengths(covariates)
        rough = self._rough(design, inside, term, strengths[terms], begin, start is None)
        blocks = self._with_factor(self.blocks, design, inside, rough.coef)
        given = design, term, rough.strengths
        weight = float(self.weight.sum())
        fit = self._in_passes(blocks, weight, *given, rough.coef, search)
        if self.states is not None:
            # By now the coefficients of all rows say how much the missing values vary.
            blocks = self._with_factor(self.blocks, design, inside, fit.coef)
            given = design, term, fit.strengths
            fit = self._in_passes(blocks, weight, *given, fit.coef, False, fit.gram)
        without = without_folds(fit, weight, term, search=search)
        out_of_fold = blocks.rows(partial(passes.log_odds, design=design, coefs=without))
        out_of_fold = out_of_fold if self.kept is None else out_of_fold[self.kept]
        chosen = np.full(len(basis.linear), np.nan)
        chosen[terms] = fit.strengths
        loss = float(self.weight @ log_loss(out_of_fold, self.y))
        intercept, own = passes.parted(fit.coef)
        coef = np.zeros((*own.shape[:-1], len(basis.group)))
        coef[..., inside] = own
        return AdditiveFit(intercept, coef, chosen, out_of_fold, loss)

    def _rough(
        self,
        design: Design,
        inside: Ints,
        term: Ints,
        strengths: Floats,
        begin: Floats,
        first: bool,
    ) -> BinnedFit:
        """Fit on the sample, from which that on all rows begins."""
        sample: RowBlocks = HeldBlocks([self.sample_block])
        weight, search = float(self.sample_block.weight.sum()), "per_covariate" in self.families
        fits = 1 if self.states is None else FIRST_ROUGH_FITS if first else ROUGH_FITS
        for _ in range(fits):
            near = self._with_factor(sample, design, inside, begin)
            fit = self._in_passes(near, weight, design, term, strengths, begin, search)
            strengths, begin = fit.strengths, fit.coef
        return fit

    def _with_factor(
        self, blocks: RowBlocks, design: Design, inside: Ints, flat: Floats
    ) -> RowBlocks:
        """The rows with factors that integrate missing values out by the variance of a model."""
        if self.states is None:
            return blocks
        passes = passes_of(self.n_classes)
        own = passes.functions(passes.parted(flat)[1])
        functions = np.zeros((len(own), len(self.basis.group)))
        functions[:, inside] = own
        tables = self.states.of(self.basis, functions)
        return blocks.with_factor(partial(passes.factor, design=design, coef=flat, tables=tables))

    def _in_passes(
        self,
        blocks: RowBlocks,
        weight: float,
        design: Design,
        term: Ints,
        strengths: Floats,
        begin: Floats,
        search: bool,
        gram: Floats | None = None,
    ) -> BinnedFit:
        passes = passes_of(self.n_classes)

        def evaluate(coef: Floats, gram: bool) -> Sums:
            work = partial(passes.sums, design=design, coef=coef, gram=gram)
            return passes.joined(blocks.total(work))

        given = evaluate, weight, term, strengths, begin
        return fit_in_passes(*given, search=search, gram=gram)

    def _common_strengths(self, covariates: Ints) -> Floats:
        """Strengths of the sample's blend; a set starts from the set that it extends by one."""
        before = self._of_sample.get(frozenset(covariates[:-1].tolist()))
        fit = self.sample.fit(covariates, before)
        self._of_sample[frozenset(covariates.tolist())] = fit
        return fit.strengths


# Training rows ready for fitting, however many they are.
PreparedRows = SetFits | LargeFits


def holds_codes(n: int) -> bool:
    """Whether n rows are held as codes."""
    return n >= LARGE_ROWS


def refuse_held(directions: Ints | None, n_rows: int) -> None:
    """Refuse functions that go in one direction where rows are held as codes."""
    if directions is not None:
        rule = f"must be None from {LARGE_ROWS:,} rows on"
        remedy = "Fit a sample of the rows, or leave it out."
        refuse_directions(rule, f"{n_rows:,} rows", remedy)


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
    """Rows ready for fitting: very many as codes, few as columns.

    Codes of complete rows of two classes are held where `placed_like` is, if that is a tensor. Rows
    stay columns where very many values are missing together.
    """
    rows = encoded, y, encoder
    given |= {"unlabeled": unlabeled, "n_classes": n_classes}
    if not holds_codes(len(y)):
        return prepare(*rows, **given)
    tables = [encoded] if unlabeled is None else [encoded, unlabeled]
    if any(np.isnan(column).any() for table in tables for column in table.T):
        if max(map(pairs_of_missing, tables)) > MOST_PAIRS:
            return prepare(*rows, **given)
    elif n_classes == 2:
        rows = like(placed_like, encoded), y, encoder
    refuse_held(given.pop("directions", None), len(y))
    return prepare_large(*rows, seed=seed, **given)


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
    n_classes: int = 2,
) -> LargeFits:
    """Cut the covariates into levels and hold complete rows as codes."""
    n_folds, chosen = int(fold.max()) + 1, drawn_rows(y, SAMPLE_ROWS, seed)
    ends = _ends(encoded)
    sample = prepare(
        host(encoded[like(encoded, chosen)]),
        y[chosen],
        encoder,
        n_splines=n_splines,
        families=families,
        fold=fold[chosen],
        weight=None if weight is None else weight[chosen],
        n_jobs=n_jobs,
        n_classes=n_classes,
        ends=ends,
    )
    weight = np.ones(len(y)) if weight is None else weight
    cuts, codes, values, counts = _levels(sample.basis, encoded, weight, chosen, ends)
    # A device works on all its rows at once.
    size = len(y) if is_tensor(encoded) else BLOCK_ROWS
    blocks = [
        block_of([code[rows] for code in codes], y[rows], weight[rows], fold[rows], n_folds)
        for rows in (slice(a, a + size) for a in range(0, len(y), size))
    ]
    nowhere = np.zeros(len(chosen), dtype=np.intp)
    own = [code[like(encoded, chosen)] for code in codes]
    in_sample = block_of(own, y[chosen], weight[chosen], nowhere, 1)
    rows = CodedRows(values, counts, HeldBlocks(blocks, n_jobs), in_sample)
    there = None if is_tensor(encoded) else available(encoded, encoder.source)
    return assemble(sample, rows, cuts, ends, (y, weight, fold), unlabeled, there)


def _ends(encoded: Floats) -> tuple[Floats, Floats]:
    """Range of the values that each encoded column has."""
    if is_tensor(encoded):
        xp = namespace(encoded)
        return host(xp.min(encoded, axis=0)), host(xp.max(encoded, axis=0))
    return np.fmin.reduce(encoded, axis=0), np.fmax.reduce(encoded, axis=0)


def _levels(
    basis: AdditiveBasis,
    encoded: Floats,
    weight: Floats,
    chosen: Ints,
    ends: tuple[Floats, Floats],
) -> tuple[list[Cuts], list[Codes], list[Floats], list[LevelSums]]:
    """Cuts of the covariates, codes of the rows, encoded values of the levels, and their rows."""
    cuts, codes, values, counts = [], [], [], []
    for k in range(basis.n_groups):
        own = np.flatnonzero(basis.source == k)
        columns = encoded[:, like(encoded, basis.source == k)]
        cuts.append(_cut_of(basis, k, columns, chosen))
        codes.append(cuts[k].codes(columns))
        counts.append(level_sums(cuts[k], codes[k], columns, like(encoded, weight)))
        low, high = float(ends[0][own].min()), float(ends[1][own].max())
        values.append(level_values(cuts[k], counts[k], low, high))
    return cuts, codes, values, counts


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
    rows: CodedRows,
    cuts: list[Cuts],
    ends: tuple[Floats, Floats],
    labelled: tuple[Floats, Floats, Ints],
    unlabeled: Floats | None = None,
    there: Bools | None = None,
) -> LargeFits:
    """Basis and moments of rows held as codes.

    `ends` is the range of each encoded column, `labelled` labels, weights and folds, `there` which
    covariates these rows have, None where every row has all.
    """
    joint, plan = replace(sample.joint, low=ends[0], high=ends[1]), None
    if there is not None or (unlabeled is not None and np.isnan(unlabeled).any()):
        rows = rows._replace(unlabeled=_unlabeled_blocks(cuts, unlabeled, sample.basis))
        rows, plan, joint = with_states(rows, joint)
        unlabeled = None
    basis, columns = _basis_of(rows, sample.basis, ends)
    standard = [
        basis.standardise(own, np.flatnonzero(basis.source == k))
        for k, own in enumerate(rows.values)
    ]
    expected = None if plan is None else expected_states(plan, basis, rows)
    if expected is not None:
        for k, (own, values) in enumerate(zip(expected.columns, columns, strict=True)):
            values[-len(own) :] = own
            standard[k][-len(own) :] = expected.standardised[k]
    weights = [own.weight for own in rows.counts]
    centers = [w @ part / w.sum() for w, part in zip(weights, columns, strict=True)]
    basis = replace(basis, center=np.concatenate(centers))
    tables = tuple(part - center for part, center in zip(columns, centers, strict=True))
    moments = _moments(basis, standard, tables, rows.parts)
    if expected is not None:
        moments += expected.covariance
    if unlabeled is not None:
        for first in range(0, len(unlabeled), BLOCK_ROWS):
            some = unlabeled[first : first + BLOCK_ROWS]
            moments += moment_matrix(basis.standardise(some), basis.transform(some))
    y, weight, fold = labelled
    return LargeFits(
        sample=sample,
        basis=basis,
        joint=joint,
        tables=tables,
        blocks=rows.blocks,
        sample_block=rows.sample,
        moments=moments,
        y=y,
        weight=weight,
        fold=fold,
        families=sample.families,
        n_classes=sample.n_classes,
        there=there,
        states=None if expected is None else expected.tables,
    )


def _unlabeled_blocks(
    cuts: list[Cuts], unlabeled: Floats | None, basis: AdditiveBasis
) -> HeldBlocks | None:
    """Rows without a class as codes."""
    if unlabeled is None:
        return None
    blocks = []
    for first in range(0, len(unlabeled), BLOCK_ROWS):
        some = unlabeled[first : first + BLOCK_ROWS]
        codes = [own.codes(some[:, basis.source == k]) for k, own in enumerate(cuts)]
        nothing = np.zeros(len(some))
        blocks.append(block_of(codes, nothing, nothing + 1.0, nothing.astype(np.intp), 1))
    return HeldBlocks(blocks)


def _basis_of(
    rows: CodedRows, drawn: AdditiveBasis, ends: tuple[Floats, Floats]
) -> tuple[AdditiveBasis, list[Floats]]:
    """Basis with center zero, by the moments of all rows, and its columns at each level."""
    pairs = list(zip(rows.values, rows.counts, strict=True))
    mapped = [
        drawn.maps.rows(v, np.flatnonzero(drawn.source == k)) for k, v in enumerate(rows.values)
    ]
    means = [
        np.average(v, axis=0, weights=c.weight) for v, (_, c) in zip(mapped, pairs, strict=True)
    ]
    spreads = [
        np.sqrt(np.average((v - mean) ** 2, axis=0, weights=c.weight))
        for v, (_, c), mean in zip(mapped, pairs, means, strict=True)
    ]
    mean, spread = np.concatenate(means), np.concatenate(spreads)
    kinds, splines = drawn.kinds, drawn.n_splines
    basis = uncentred_basis(drawn.source, kinds, splines, *ends, mean, spread, drawn.maps)
    return basis, [basis.block(v, k) for k, v in enumerate(rows.values)]


def _moments(
    basis: AdditiveBasis,
    standard: list[Floats],
    tables: tuple[Floats, ...],
    parts: list[RowBlocks],
) -> Floats:
    """Gram matrix of [1, standardised values, columns], see `moment_matrix`."""
    e = len(basis.source)
    both, place = [], [0]
    for k, pair in enumerate(zip(standard, tables, strict=True)):
        encoded, columns = np.flatnonzero(basis.source == k), np.flatnonzero(basis.group == k)
        both.append(np.hstack(pair))
        place += [*(1 + encoded), *(1 + e + columns)]
    gram = gram_of(parts, Design(tuple(range(len(standard))), tuple(both)))
    moments = np.empty_like(gram)
    moments[np.ix_(place, place)] = gram
    return moments

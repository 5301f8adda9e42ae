"""A design of which a row is a few small integers: sums over rows without the design itself.

Covariate k has levels; a table holds its basis columns once per level, and a row holds its level as
a code of one or two bytes. The log-odds of a row are a sum of table entries, a gradient is a sum of
residuals over the rows of each level, multiplied by the table. The Gram matrix is made from rows
expanded a few thousand at a time: at nine columns per covariate that is as fast as scattering the
weights into a table for each pair of covariates, and it does not depend on the number of levels.

A block may hold tensors; its sums are numpy, as is all that is not done for each row.

Rows come in blocks, sorted by fold, and everything is summed over the rows of each fold: what is
without a fold is the total less its part. Sums over blocks are all that a fit asks of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.namespace import (
    counted,
    expit,
    host,
    is_tensor,
    like,
    namespace,
    softplus,
    taken,
)
from adacos.typing import Floats, Ints

Codes = NDArray[np.unsignedinteger[Any]]

# Rows whose log-odds and expanded columns are held at once.
ROWS_AT_ONCE = 4096
# The same of tensors: 270 columns of them take half a GiB.
TENSOR_ROWS_AT_ONCE = 262_144
# Units of a correlation of missing values.
CORRELATION_UNIT = 32767
# Rows of a block: a part of the work that can be done elsewhere.
BLOCK_ROWS = 131_072


class CodedMissing(NamedTuple):
    """Rows of a block with the same number of values missing.

    Attributes
    ----------
    rows : (rows,).
    place : (rows, missing) entry of each missing value in tables of what is known about them.
    correlation : (rows, pairs) of the missing values in units of 1 / CORRELATION_UNIT, the first
        with each later one, then the second, and so on.
    """

    rows: NDArray[np.int32]
    place: NDArray[np.int32]
    correlation: NDArray[np.int16]

    def variance(self, own: Floats, loading: Floats) -> Floats:
        """Variance of a sum over the missing values, from the tables of one function."""
        moved: Floats = loading[self.place]
        total: Floats = own[self.place].sum(axis=1)
        first, size = 0, self.place.shape[1]
        for i in range(size - 1):
            with_later = self.correlation[:, first : first + size - 1 - i] * moved[:, i + 1 :]
            total += (2.0 / CORRELATION_UNIT) * moved[:, i] * with_later.sum(axis=1)
            first += size - 1 - i
        return np.asarray(np.maximum(total, 0.0))


class Block(NamedTuple):
    """Some rows, those of fold f at ends[f]:ends[f + 1].

    Attributes
    ----------
    codes : for each covariate, the level of each row.
    y, weight : labels and how often each row counts.
    ends : (folds + 1,).
    order : the place of each row before they were sorted by fold.
    missing : what is known about missing values, whose codes say what to expect of them.
    factor : by what the log-odds of each row are multiplied, so that its missing values are
        integrated out; None where none is missing.
    """

    codes: tuple[Codes, ...]
    y: Floats
    weight: Floats
    ends: Ints
    order: Ints
    missing: tuple[CodedMissing, ...] = ()
    factor: Floats | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.ends) - 1

    def chunks(self, f: int) -> Iterator[slice]:
        """Rows of a fold, a few at a time."""
        first, end = int(self.ends[f]), int(self.ends[f + 1])
        step = TENSOR_ROWS_AT_ONCE if is_tensor(self.y) else ROWS_AT_ONCE
        return (slice(a, min(a + step, end)) for a in range(first, end, step))


class Design(NamedTuple):
    """The columns of a set: a table (levels, columns) for each of its covariates, in order."""

    covariates: tuple[int, ...]
    tables: tuple[Floats, ...]

    @property
    def size(self) -> int:
        """Number of columns, with that of the intercept, which is the first."""
        return 1 + sum(int(table.shape[1]) for table in self.tables)

    def parts(self, coef: Floats) -> list[Floats]:
        """Contribution of each covariate at each level; `coef` begins with the intercept."""
        ends = np.cumsum([1, *(table.shape[1] for table in self.tables)])
        return [
            table @ coef[first:end]
            for table, first, end in zip(self.tables, ends, ends[1:], strict=False)
        ]


class Sums(NamedTuple):
    """Sums over the rows of each fold at some coefficients, without any penalty.

    Attributes
    ----------
    loss : (folds,) negative log-likelihood.
    gradient : (folds, columns) of it.
    gram : (folds, columns, columns) Gram matrix with the weights of its curvature, or None.
    """

    loss: Floats
    gradient: Floats
    gram: Floats | None = None

    def plus(self, other: Sums) -> Sums:
        """Sums over the rows of both."""
        gram = None
        if self.gram is not None and other.gram is not None:
            gram = self.gram + other.gram
        return Sums(self.loss + other.loss, self.gradient + other.gradient, gram)


def block_of(codes: list[Codes], y: Floats, weight: Floats, fold: Ints, n_folds: int) -> Block:
    """Rows as a block."""
    order, there = np.argsort(fold, kind="stable"), codes[0]
    own = like(there, order)
    return Block(
        tuple(code[own] for code in codes),
        like(there, y[order]),
        like(there, weight[order]),
        np.searchsorted(fold[order], np.arange(n_folds + 1)),
        own,
    )


def log_odds(block: Block, design: Design, coefs: Floats) -> Floats:
    """Log-odds of each row as they were ordered before, by the coefficients coefs[f] of its fold.

    `coefs` has shape (folds, columns).
    """
    result = namespace(block.y).empty_like(block.y)
    for f, coef in enumerate(coefs):
        parts = [like(block.y, part) for part in design.parts(coef)]
        for rows in block.chunks(f):
            result[block.order[rows]] = _log_odds(block, design, float(coef[0]), parts, rows)
    every: Floats = host(result)
    return every


def sums(block: Block, design: Design, coef: Floats, *, gram: bool) -> Sums:
    """Loss, gradient and, if asked for, Gram matrix of each fold's rows at some coefficients."""
    n_folds = block.n_folds
    parts = [like(block.y, part) for part in design.parts(coef)]
    loss, constant = _zeros(block, n_folds), _zeros(block, n_folds)
    residuals = [_zeros(block, n_folds, len(part)) for part in parts]
    grams = _zeros(block, n_folds, design.size, design.size) if gram else None
    expand = Expansion(block, design) if gram else None
    for f in range(n_folds):
        for rows in block.chunks(f):
            y, weight = block.y[rows], block.weight[rows]
            u = _log_odds(block, design, float(coef[0]), parts, rows)
            loss[f] += weight @ (softplus(u) - y * u)
            p = expit(u)
            residual, spread = weight * (p - y), weight
            if block.factor is not None:
                residual *= block.factor[rows]
                spread = weight * block.factor[rows] ** 2
            constant[f] += residual.sum()
            for k, counts in zip(design.covariates, residuals, strict=True):
                counts[f] += counted(block.codes[k][rows], residual, counts.shape[1])
            if grams is not None and expand is not None:
                grams[f] += expand.gram(rows, spread * p * (1.0 - p))
    of_levels = [host(own) @ table for own, table in zip(residuals, design.tables, strict=True)]
    gradient = np.hstack([host(constant)[:, None], *of_levels])
    return Sums(host(loss), gradient, None if grams is None else host(grams))


def missing_variance(block: Block, own: Floats, loading: Floats) -> Floats:
    """Variance of what is missing of each row contributes to a function, from its tables."""
    total = np.zeros(len(block.y))
    for missing in block.missing:
        total[missing.rows] = missing.variance(own, loading)
    return total


def plain_gram(block: Block, design: Design) -> Floats:
    """Gram matrix of the design over the rows with their weights."""
    expand = Expansion(block, design)
    gram = _zeros(block, design.size, design.size)
    for f in range(block.n_folds):
        for rows in block.chunks(f):
            gram += expand.gram(rows, block.weight[rows])
    every: Floats = host(gram)
    return every


def _zeros(block: Block, *shape: int) -> Floats:
    """Zeros where the block is."""
    xp = namespace(block.y)
    zeros: Floats = xp.zeros(shape, dtype=xp.float64, device=block.y.device)
    return zeros


def _log_odds(
    block: Block, design: Design, intercept: float, parts: list[Floats], rows: slice
) -> Floats:
    total: Floats = namespace(block.y).full_like(block.y[rows], intercept)
    for k, part in zip(design.covariates, parts, strict=True):
        total += taken(part, block.codes[k][rows])
    if block.factor is not None:
        total *= block.factor[rows]
    return total


class Expansion:
    """Columns of a few rows, one below the other in memory of their own.

    Tensors have a row's columns side by side: whole rows of a table are fetched at once.
    """

    def __init__(self, block: Block, design: Design) -> None:
        self.block, self.design = block, design
        if is_tensor(block.y):
            self.tables = [like(block.y, table) for table in design.tables]
            return
        self.columns = [np.ascontiguousarray(table.T) for table in design.tables]
        self.buffer = np.empty((design.size, ROWS_AT_ONCE))

    def gram(self, rows: slice, weight: Floats) -> Floats:
        """Gram matrix of the rows with weights that are not negative."""
        if is_tensor(weight):
            xp, own = namespace(weight), zip(self.design.covariates, self.tables, strict=True)
            expanded = [taken(table, self.block.codes[k][rows]) for k, table in own]
            wide = xp.concat([xp.ones_like(weight)[:, None], *expanded], axis=1)
            wide *= xp.sqrt(weight)[:, None]
            gram: Floats = wide.T @ wide
            return gram
        filled = self.filled(rows)
        filled *= np.sqrt(weight)
        return np.asarray(filled @ filled.T)

    def filled(self, rows: slice) -> Floats:
        """The columns (columns, rows), in memory that the next call fills again; in numpy."""
        filled = self.buffer[:, : rows.stop - rows.start]
        filled[0] = 1.0
        place = 1
        for k, columns in zip(self.design.covariates, self.columns, strict=True):
            places = self.block.codes[k][rows].astype(np.intp)
            for column in columns:
                column.take(places, mode="clip", out=filled[place])
                place += 1
        return filled

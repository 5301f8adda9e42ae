"""A design of which a row is a few small integers: sums over rows without the design itself.

Covariate k has levels; a table holds its basis columns once per level, and a row holds its level as
a code of one or two bytes. The log-odds of a row are a sum of table entries, a gradient is a sum of
residuals over the rows of each level, multiplied by the table. The Gram matrix is made from rows
expanded a few thousand at a time: at nine columns per covariate that is as fast as scattering the
weights into a table for each pair of covariates, and it does not depend on the number of levels.

Rows come in blocks, sorted by fold, and everything is summed over the rows of each fold: what is
without a fold is the total less its part. Sums over blocks are all that a fit asks of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Codes = NDArray[np.unsignedinteger[Any]]

# Rows whose log-odds and expanded columns are held at once.
ROWS_AT_ONCE = 4096
# Rows of a block: a part of the work that can be done elsewhere.
BLOCK_ROWS = 131_072


class Block(NamedTuple):
    """Some rows, those of fold f at ends[f]:ends[f + 1].

    Attributes
    ----------
    codes : for each covariate, the level of each row.
    y, weight : labels and how often each row counts.
    ends : (folds + 1,).
    order : the place of each row before they were sorted by fold.
    """

    codes: tuple[Codes, ...]
    y: Floats
    weight: Floats
    ends: Ints
    order: Ints


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
    order = np.argsort(fold, kind="stable")
    return Block(
        tuple(np.ascontiguousarray(code[order]) for code in codes),
        y[order],
        weight[order],
        np.searchsorted(fold[order], np.arange(n_folds + 1)),
        order,
    )


def log_odds(block: Block, design: Design, coefs: Floats) -> Floats:
    """Log-odds of each row as they were ordered before, by the coefficients coefs[f] of its fold.

    `coefs` has shape (folds, columns).
    """
    result = np.empty(len(block.y))
    for f, coef in enumerate(coefs):
        parts = design.parts(coef)
        for rows in _chunks(block, f):
            result[block.order[rows]] = _log_odds(block, design, float(coef[0]), parts, rows)
    return result


def sums(block: Block, design: Design, coef: Floats, *, gram: bool) -> Sums:
    """Loss, gradient and, if asked for, Gram matrix of each fold's rows at some coefficients."""
    n_folds, parts = len(block.ends) - 1, design.parts(coef)
    loss, constant = np.zeros(n_folds), np.zeros(n_folds)
    residuals = [np.zeros((n_folds, len(part))) for part in parts]
    grams = np.zeros((n_folds, design.size, design.size)) if gram else None
    expand = _Expansion(design) if gram else None
    for f in range(n_folds):
        for rows in _chunks(block, f):
            y, weight = block.y[rows], block.weight[rows]
            u = _log_odds(block, design, float(coef[0]), parts, rows)
            loss[f] += weight @ (np.logaddexp(0.0, u) - y * u)
            p = expit(u)
            residual = weight * (p - y)
            constant[f] += residual.sum()
            for k, counts in zip(design.covariates, residuals, strict=True):
                counts[f] += np.bincount(block.codes[k][rows], residual, counts.shape[1])
            if grams is not None and expand is not None:
                grams[f] += expand.gram(block, rows, weight * p * (1.0 - p))
    of_levels = [counts @ table for counts, table in zip(residuals, design.tables, strict=True)]
    return Sums(loss, np.hstack([constant[:, None], *of_levels]), grams)


def plain_gram(block: Block, design: Design) -> Floats:
    """Gram matrix of the design over the rows with their weights."""
    expand = _Expansion(design)
    gram = np.zeros((design.size, design.size))
    for f in range(len(block.ends) - 1):
        for rows in _chunks(block, f):
            gram += expand.gram(block, rows, block.weight[rows])
    return gram


def _chunks(block: Block, f: int) -> Iterator[slice]:
    """Rows of a fold, a few at a time."""
    first, end = int(block.ends[f]), int(block.ends[f + 1])
    return (slice(a, min(a + ROWS_AT_ONCE, end)) for a in range(first, end, ROWS_AT_ONCE))


def _log_odds(
    block: Block, design: Design, intercept: float, parts: list[Floats], rows: slice
) -> Floats:
    total = np.full(rows.stop - rows.start, intercept)
    for k, part in zip(design.covariates, parts, strict=True):
        # Codes are levels by construction: "clip" only spares the check.
        total += part.take(block.codes[k][rows], mode="clip")
    return total


class _Expansion:
    """Columns of a few rows, one below the other in memory of their own."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.columns = [np.ascontiguousarray(table.T) for table in design.tables]
        self.buffer = np.empty((design.size, ROWS_AT_ONCE))

    def gram(self, block: Block, rows: slice, weight: Floats) -> Floats:
        """Gram matrix of the rows with weights that are not negative."""
        filled = self.buffer[:, : rows.stop - rows.start]
        filled[0] = 1.0
        place = 1
        for k, columns in zip(self.design.covariates, self.columns, strict=True):
            code = block.codes[k][rows].astype(np.intp)
            for column in columns:
                column.take(code, mode="clip", out=filled[place])
                place += 1
        filled *= np.sqrt(weight)
        return np.asarray(filled @ filled.T)

"""The columns of the additive model: one block of basis columns per covariate.

An `AdditiveBasis` turns encoded values (one column per numeric covariate, one indicator per
category) into the centred design of the logistic GAM and, for the group lasso, into standardised
B-spline columns. Every block is centred on the training rows, so that contributions have mean
zero and the intercept is the log-odds of an average row. Numbers with heavy tails are mapped first
(`adacos.models.maps`); ranges stay those of the covariate itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.namespace import like
from adacos.kernels.splines import bspline_basis, numeric_columns
from adacos.models.maps import MonotoneMaps, fit_maps
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Floats, Ints

# The paper's number of B-splines per covariate in the group lasso. The order of entry depends on it
# (with 10 columns two covariates of Pima change places), the additive models hardly do.
SEQUENCE_SPLINES = 20
# Columns that a basis may have however few the rows are. Beyond, there are no more columns than
# rows, and with more than so many numeric covariates at least so many rows for each column.
ALWAYS_COLUMNS = 256
MANY_COVARIATES, ROWS_PER_COLUMN = 40, 4
# Splines that may be asked for of a covariate; a model file holds no more.
MOST_SPLINES = 10_000


@dataclass(frozen=True)
class AdditiveBasis:
    """Fitted basis; `transform` is a pure function of the encoded values.

    Attributes
    ----------
    kinds : kind of each covariate.
    source : covariate of each encoded column.
    group : covariate of each basis column.
    term : penalised term of each basis column; a covariate has a linear term and, when numeric,
        a wiggly one.
    linear : for each term, whether it is a linear part (ridge) or a wiggly part (smoothness).
    term_group : covariate of each term.
    low, high : range of each encoded column on the training rows.
    mean, scale : moments of each encoded column, mapped.
    center : mean of each basis column on the training rows.
    maps : of encoded columns with heavy tails.
    """

    kinds: tuple[str, ...]
    source: Ints
    n_splines: int
    low: Floats
    high: Floats
    mean: Floats
    scale: Floats
    group: Ints
    term: Ints
    linear: NDArray[np.bool_]
    term_group: Ints
    center: Floats
    maps: MonotoneMaps = field(default_factory=MonotoneMaps.none, kw_only=True)  # not in old files

    @property
    def n_groups(self) -> int:
        """Number of covariates."""
        return len(self.kinds)

    def standardise(self, encoded: Floats, columns: Ints | None = None) -> Floats:
        """Rows of these encoded columns, by default all, mapped, of mean 0 and deviation 1."""
        columns = np.arange(len(self.source)) if columns is None else columns
        mapped = self.maps.rows(encoded, columns)
        return (mapped - self.mean[columns]) / self.scale[columns]

    def grid(self, column: int, points: int) -> Floats:
        """Values over the range of an encoded column, equally spaced once mapped."""
        return self.maps.back(np.linspace(self.low[column], self.high[column], points), column)

    def transform(self, encoded: Floats) -> Floats:
        """Centred basis columns of every covariate, shape (rows, len(group))."""
        columns = np.empty((len(encoded), len(self.group)))
        for covariate in range(len(self.kinds)):
            own = encoded[:, self.source == covariate]
            first, end = np.searchsorted(self.group, [covariate, covariate + 1])
            columns[:, first:end] = self.block(own, covariate)
        return columns

    def block(self, encoded: Floats, covariate: int) -> Floats:
        """Centred basis columns of one covariate from its own encoded columns.

        A linear part, and for a numeric covariate a wiggly part after it.
        """
        kind = self.kinds[covariate]
        j = int(np.searchsorted(self.source, covariate))
        if kind == CONSTANT:
            return encoded[:, :0]
        if kind == CATEGORICAL:
            raw = encoded
        elif kind == BINARY:
            raw = (encoded - float(self.mean[j])) / float(self.scale[j])
        else:
            low, high = float(self.low[j]), float(self.high[j])
            mean, scale = float(self.mean[j]), float(self.scale[j])
            mapped = self.maps.column(encoded[:, 0], j)
            raw = numeric_columns(mapped, low, high, mean, scale, self.n_splines)
        centred: Floats = raw - like(raw, self.center[self.group == covariate])
        return centred

    def contributions(self, encoded: Floats, covariates: Ints, coefs: Floats) -> Floats:
        """f_jk(x_k) of one row for these covariates (rows) under each row j of `coefs` (columns).

        The splines of all numeric covariates are evaluated together.
        """
        result = np.empty((len(covariates), len(coefs)))
        numeric = np.array([self.kinds[k] == NUMERIC for k in covariates], dtype=np.bool_)
        for place in np.flatnonzero(~numeric):
            k = covariates[place]
            block = self.block(encoded[:, self.source == k], k)
            result[place] = (block @ coefs[:, self.group == k].T)[0]
        if numeric.any():
            j = np.searchsorted(self.source, covariates[numeric])
            moments = self.low[j], self.high[j], self.mean[j], self.scale[j]
            mapped = self.maps.rows(encoded[:, j], j)[0]
            raw = numeric_columns(mapped, *moments, self.n_splines)
            first = np.searchsorted(self.group, covariates[numeric])
            columns = first[:, None] + np.arange(self.n_splines - 1)
            centred = raw - self.center[columns]
            result[numeric] = np.einsum("kc,jkc->kj", centred, coefs[:, columns])
        return result

    def standardised(
        self, encoded: Floats, weight: Floats, n_splines: int = SEQUENCE_SPLINES
    ) -> tuple[Floats, Ints]:
        """B-spline columns with mean 0 and standard deviation 1, and the covariate of each.

        The group lasso penalises these, several for a numeric covariate. A column without variation
        is dropped; a constant covariate therefore has no column.
        """
        blocks, groups = [], []
        for covariate, kind in enumerate(self.kinds):
            own = np.flatnonzero(self.source == covariate)
            if kind == NUMERIC:
                j = own[0]
                mapped = self.maps.column(encoded[:, j], int(j))
                columns = bspline_basis(mapped, self.low[j], self.high[j], n_splines)
            else:
                columns = encoded[:, own]
            columns = columns - np.average(columns, axis=0, weights=weight)
            spread = np.sqrt(np.average(columns**2, axis=0, weights=weight))
            varies = spread > 1e-9
            blocks.append(columns[:, varies] / spread[varies])
            groups += [covariate] * int(varies.sum())
        return np.hstack(blocks), np.array(groups, dtype=np.intp)


def affordable_splines(n_rows: int, kinds: tuple[str, ...], n_splines: int) -> int:
    """B-splines per numeric covariate, at most `n_splines`: fewer where rows are too few for them.

    A covariate has one column less than B-splines, and four of these are the fewest there can be.
    """
    numeric = kinds.count(NUMERIC)
    columns = n_rows // ROWS_PER_COLUMN if numeric > MANY_COVARIATES else n_rows
    each = max(columns, ALWAYS_COLUMNS) // max(numeric, 1)
    return int(np.clip(each + 1, 4, n_splines))


def sequence_splines(n_rows: int, kinds: tuple[str, ...]) -> int:
    """B-splines per numeric covariate in the group lasso: fewer only for many covariates."""
    if kinds.count(NUMERIC) <= MANY_COVARIATES:
        return SEQUENCE_SPLINES
    return affordable_splines(n_rows, kinds, SEQUENCE_SPLINES)


def fit_basis(
    encoded: Floats,
    weight: Floats,
    source: Ints,
    kinds: tuple[str, ...],
    n_splines: int,
    ends: tuple[Floats, Floats] | None = None,
    observed: Floats | None = None,
) -> tuple[AdditiveBasis, Floats]:
    """Basis for these training rows, and its centred columns; the range is that of all rows.

    `ends` is the range of each encoded column, by default that of these rows. `observed` are the
    rows as they were before missing values were filled in.
    """
    ends = (encoded.min(axis=0), encoded.max(axis=0)) if ends is None else ends
    known = encoded if observed is None else observed
    maps = fit_maps(known, weight, source, kinds, *ends)
    mapped = maps.rows(encoded, np.arange(len(source)))
    mean = np.average(mapped, axis=0, weights=weight)
    spread = np.sqrt(np.average((mapped - mean) ** 2, axis=0, weights=weight))
    basis = uncentred_basis(source, kinds, n_splines, *ends, mean, spread, maps)
    columns = basis.transform(encoded)
    center = weight @ columns / weight.sum()
    columns -= center
    return replace(basis, center=center), columns


def uncentred_basis(
    source: Ints,
    kinds: tuple[str, ...],
    n_splines: int,
    low: Floats,
    high: Floats,
    mean: Floats,
    spread: Floats,
    maps: MonotoneMaps,
) -> AdditiveBasis:
    """Basis for encoded columns of these ranges, and moments once mapped; center zero."""
    group: list[int] = []
    term: list[int] = []
    linear: list[bool] = []
    term_group: list[int] = []
    for covariate, kind in enumerate(kinds):
        if kind == CONSTANT:
            continue
        n_linear = int(np.sum(source == covariate))
        group += [covariate] * n_linear
        term += [len(linear)] * n_linear
        linear.append(True)
        term_group.append(covariate)
        if kind == NUMERIC:
            group += [covariate] * (n_splines - 2)
            term += [len(linear)] * (n_splines - 2)
            linear.append(False)
            term_group.append(covariate)
    return AdditiveBasis(
        kinds=kinds,
        source=source,
        n_splines=n_splines,
        low=low,
        high=high,
        mean=mean,
        scale=np.where(spread > 0, spread, 1.0),
        group=np.array(group, dtype=np.intp),
        term=np.array(term, dtype=np.intp),
        linear=np.array(linear, dtype=np.bool_),
        term_group=np.array(term_group, dtype=np.intp),
        center=np.zeros(len(group)),
        maps=maps,
    )

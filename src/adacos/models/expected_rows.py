"""Training rows with missing values in expectation: what models and densities learn from them.

See `adacos.models.missing` for the distribution of what is missing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from adacos.kernels.gaussian import MissingPattern
from adacos.models.basis import AdditiveBasis
from adacos.models.missing import (
    FilledRows,
    JointModel,
    between_covariates,
    moments_of,
    rows_without,
)
from adacos.typing import Floats, Ints

# Rows whose loadings are held in memory at once.
_ROWS_AT_ONCE = 1024


class MissingMoments(NamedTuple):
    """Conditional covariance of the basis columns of missing covariates.

    Attributes
    ----------
    rows : for each covariate, the rows in which it is missing.
    covariance : for each covariate, (rows, columns, columns).
    loading : for each covariate, (rows, encoded columns, columns), see `Moments`.
    between : for each pattern, the correlation of its encoded columns.
    patterns : rows with the same values missing.
    """

    rows: dict[int, Ints]
    covariance: dict[int, Floats]
    loading: dict[int, Floats]
    between: list[Floats]
    patterns: list[MissingPattern]

    def variance(self, basis: AdditiveBasis, coef: Floats, n: int) -> Floats:
        """Variance of what is missing of each of the first n rows contributes to the log-odds."""
        total, moved = np.zeros(n), np.zeros((n, len(basis.source)))
        moves = np.zeros(len(basis.source), dtype=np.bool_)
        for k, rows in self.rows.items():
            beta = coef[basis.group == k]
            if not beta.any():
                continue
            # The rows are in order: the first of them are those below n.
            here = slice(int(np.searchsorted(rows, n)))
            total[rows[here]] += (self.covariance[k][here] @ beta) @ beta
            own = np.flatnonzero(basis.source == k)
            moved[np.ix_(rows[here], own)] = self.loading[k][here] @ beta
            moves[own] = True
        for pattern, between in zip(self.patterns, self.between, strict=True):
            if len(between) == 1 or not moves[pattern.missing].any():
                continue
            rows = pattern.rows[pattern.rows < n]
            if len(rows):
                loading = moved[rows[:, None], pattern.missing]
                total[rows] += np.einsum("re,re->r", loading @ between, loading)
        return np.maximum(total, 0.0)


class ExpectedRows(NamedTuple):
    """Rows with missing values in expectation.

    Attributes
    ----------
    standardised, columns : standardised values and basis columns, those of missing covariates at
        their conditional mean.
    covariance : conditional covariance of [1, standardised values, columns], summed over the rows:
        what the Gram matrix of the expectations does not contain.
    moments : conditional covariance of the columns of each row.
    """

    standardised: Floats
    columns: Floats
    covariance: Floats
    moments: MissingMoments


def expected_rows(
    joint: JointModel, basis: AdditiveBasis, filled: FilledRows, weight: Floats | None = None
) -> ExpectedRows:
    """Expectation of the values and basis columns of training rows, and what it leaves out."""
    root = np.ones(len(filled.values)) if weight is None else np.sqrt(weight)
    n_encoded, n_columns = len(basis.source), len(basis.group)
    total = np.zeros((1 + n_encoded + n_columns,) * 2)
    standardised, columns = basis.standardise(filled.values), basis.transform(filled.values)
    missing = rows_without(joint, filled)
    position, loadings, covariances, own_loadings = {}, {}, {}, {}
    for k, rows in missing.items():
        encoded, own = np.flatnonzero(basis.source == k), np.flatnonzero(basis.group == k)
        position[k] = np.append(1 + encoded, 1 + n_encoded + own)
        moments = moments_of(
            joint,
            filled,
            rows,
            k,
            partial(values_and_columns, basis, k),
        )
        standardised[np.ix_(rows, encoded)] = moments.mean[:, : len(encoded)]
        columns[np.ix_(rows, own)] = moments.mean[:, len(encoded) :]
        centred = (moments.centred * root[rows, None, None]).reshape(-1, len(position[k]))
        total[np.ix_(position[k], position[k])] = centred.T @ centred
        loadings[k] = moments.loading * root[rows, None, None]
        of_columns = moments.centred[:, :, len(encoded) :]
        covariances[k] = of_columns.transpose(0, 2, 1) @ of_columns
        own_loadings[k] = moments.loading[:, :, len(encoded) :]
    between = [between_covariates(joint, pattern) for pattern in filled.patterns]
    for pattern, correlation in zip(filled.patterns, between, strict=True):
        covariates = np.unique(joint.source[pattern.missing]).tolist()
        if len(covariates) > 1:
            where = np.concatenate([position[k] for k in covariates])
            total[np.ix_(where, where)] += _cross_covariance(
                correlation,
                [loadings[k][np.searchsorted(missing[k], pattern.rows)] for k in covariates],
            )
    kept = MissingMoments(missing, covariances, own_loadings, between, filled.patterns)
    return ExpectedRows(standardised, columns, total, kept)


def values_and_columns(basis: AdditiveBasis, covariate: int, values: Floats) -> Floats:
    """Standardised values and basis columns of one covariate, side by side."""
    own = np.flatnonzero(basis.source == covariate)
    standard = basis.standardise(values, own)
    return np.hstack([standard, basis.block(values, covariate)])


def _cross_covariance(between: Floats, loadings: list[Floats]) -> Floats:
    """Σ over rows of L' R L, with L the loadings of several covariates side by side."""
    n_encoded = [loading.shape[1] for loading in loadings]
    n_functions = [loading.shape[2] for loading in loadings]
    row, column = np.cumsum([0, *n_encoded]), np.cumsum([0, *n_functions])
    total = np.zeros((column[-1], column[-1]))
    for first in range(0, len(loadings[0]), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        together = np.zeros((len(loadings[0][rows]), row[-1], column[-1]))
        for number, loading in enumerate(loadings):
            together[:, row[number] : row[number + 1], column[number] : column[number + 1]] = (
                loading[rows]
            )
        moved = np.einsum("ef,rfj->rej", between, together, optimize=True)
        flat = (-1, int(column[-1]))
        total += together.reshape(flat).T @ moved.reshape(flat)
    return total

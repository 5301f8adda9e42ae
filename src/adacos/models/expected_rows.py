"""Training rows with missing values in expectation: what models and densities learn from them.

See `adacos.models.missing` for the distribution of what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from adacos.kernels.gaussian import MissingPatterns
from adacos.models.basis import AdditiveBasis
from adacos.models.missing import (
    FilledRows,
    JointModel,
    between_covariates,
    moments_of,
    rows_without,
)
from adacos.typing import Floats, Ints

# Pairs of missing columns of the patterns in memory at once.
_PAIRS_AT_ONCE = 1 << 21


class MissingMoments(NamedTuple):
    """Conditional covariance of the basis columns of missing covariates.

    Attributes
    ----------
    rows : for each covariate, the rows in which it is missing.
    covariance : for each covariate, (rows, columns, columns).
    loading : for each covariate, (rows, encoded columns, columns), see `Moments`.
    patterns : rows with as many values missing.
    between : for each of these, the correlation of the encoded columns by pattern.
    """

    rows: dict[int, Ints]
    covariance: dict[int, Floats]
    loading: dict[int, Floats]
    patterns: list[MissingPatterns]
    between: list[Floats]

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
        for patterns, between in zip(self.patterns, self.between, strict=True):
            if not moves[patterns.missing].any() or not between.any():
                continue
            for part in patterns.parts():
                rows, which = part.rows[part.rows < n], part.which[part.rows < n]
                loading = moved[rows[:, None], part.missing[which]]
                turned = np.matmul(between[which], loading[:, :, None])[:, :, 0]
                total[rows] += np.einsum("re,re->r", turned, loading)
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
    between = [between_covariates(joint, patterns) for patterns in filled.patterns]
    first = np.searchsorted(joint.source, np.arange(len(joint.kinds)))
    for patterns, correlation in zip(filled.patterns, between, strict=True):
        for i, j, rows, weight in correlated_columns(patterns, correlation, joint.source):
            k, m = int(joint.source[i]), int(joint.source[j])
            left = loadings[k][np.searchsorted(missing[k], rows), i - first[k]]
            right = loadings[m][np.searchsorted(missing[m], rows), j - first[m]]
            product = (left * weight[:, None]).T @ right
            total[np.ix_(position[k], position[m])] += product
            total[np.ix_(position[m], position[k])] += product.T
    kept = MissingMoments(missing, covariances, own_loadings, filled.patterns, between)
    return ExpectedRows(standardised, columns, total, kept)


def values_and_columns(basis: AdditiveBasis, covariate: int, values: Floats) -> Floats:
    """Standardised values and basis columns of one covariate, side by side."""
    own = np.flatnonzero(basis.source == covariate)
    standard = basis.standardise(values, own)
    return np.hstack([standard, basis.block(values, covariate)])


def correlated_columns(
    patterns: MissingPatterns, between: Floats, source: Ints
) -> Iterator[tuple[int, int, Ints, Floats]]:
    """Each two columns of different covariates, rows without both, and their correlation.

    Two columns come again for other rows: patterns are looked at in parts of limited memory.
    """
    n_patterns, number = patterns.missing.shape
    # The rows of a pattern are neighbours.
    ends = np.searchsorted(patterns.which, np.arange(n_patterns + 1))
    one, other = np.triu_indices(number, 1)
    size = max(_PAIRS_AT_ONCE // max(len(one), 1), 1)
    for start in range(0, n_patterns, size):
        missing = patterns.missing[start : start + size]
        first, second = missing[:, one], missing[:, other]
        pattern, pair = np.nonzero(source[first] != source[second])
        key = first[pattern, pair] * len(source) + second[pattern, pair]
        order = np.argsort(key, kind="stable")
        for same in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
            if not len(same):
                continue
            at = start + pattern[same]
            count = ends[at + 1] - ends[at]
            rows = np.repeat(ends[at] - np.cumsum(count) + count, count) + np.arange(count.sum())
            weight = between[at, one[pair[same]], other[pair[same]]]
            i, j = divmod(int(key[same[0]]), len(source))
            yield i, j, patterns.rows[rows], np.repeat(weight, count)

"""Gaussian model of a table with missing values: its covariance, and conditional means.

NaN marks a missing value. The covariance is the estimator of Lounici (2014) with a missing rate
per column: unbiased when values are missing at random, but not positive definite in general, hence
projected. A constant column keeps variance zero throughout: it says nothing and is always known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from adacos.exceptions import InvalidInputError
from adacos.typing import Floats

# Eigenvalues are those of a correlation matrix, whose mean eigenvalue is one. An estimate is given
# at least the first; a block with one below the second is inverted on its range.
_SMALLEST_EIGENVALUE = 1e-6
_SINGULAR = 1e-10


def covariance_with_missing(
    X: npt.ArrayLike, weight: Floats | None = None
) -> tuple[Floats, Floats]:
    """Column means over the observed values, and a positive definite covariance.

    The eigenvalues of the estimated correlation are raised to a floor and the variances restored.
    An eigenvalue below the error of the estimate may be zero, and its inverse would
    send conditional means far outside the data. The floor is therefore the largest of 1e-6, minus
    the least eigenvalue (the error is at least that large), and the root mean square length of
    the error that missing values add to a row, √(max_i Σ_j (1 / (δ_i δ_j) - 1) / n). With nothing
    missing only the first remains. Constant columns stay at variance zero. A row of weight w counts
    as w rows.
    """
    table = np.asarray(X, dtype=float)
    mean, estimate = unprojected_covariance(table, weight)
    n_rows = len(table) if weight is None else float(weight.sum())
    return mean, projected(estimate, _joint_fraction(table, weight), n_rows)


def projected(estimate: Floats, joint_fraction: Floats, n_rows: float) -> Floats:
    """The estimate with its eigenvalues raised to the floor, see `covariance_with_missing`."""
    deviation = np.sqrt(np.diag(estimate))
    correlation = _rescale(estimate, _inverse(deviation))
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    # Fractions of weights can exceed one by a rounding error.
    added = np.sum(np.maximum(1 / joint_fraction - 1, 0.0), axis=1)
    added_error = np.sqrt(np.max(added) / n_rows)
    floor = max(_SMALLEST_EIGENVALUE, -values[0], added_error)
    if values[0] >= floor:
        return estimate
    root = vectors * np.sqrt(np.maximum(values, floor))
    raised = root @ root.T
    return _rescale(raised, deviation / np.sqrt(np.diag(raised)))


def unprojected_covariance(X: npt.ArrayLike, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """Column means and Lounici's estimate: Y'Y / n with Y centred and zero where missing.

    Off the diagonal it is divided by δ_i δ_j, on it by δ_i, the observed fractions of the columns.
    """
    table = np.asarray(X, dtype=float)
    observed = ~np.isnan(table)
    empty = np.flatnonzero(~observed.any(axis=0))
    if table.ndim != 2 or empty.size:
        raise InvalidInputError(
            "X",
            "a two-dimensional table with an observed value in every column",
            f"no value in columns {empty.tolist()}" if table.ndim == 2 else table.shape,
            "Leave out columns that are never observed.",
        )
    if weight is None:
        mean = np.nanmean(table, axis=0)
    else:
        mean = np.nansum(weight[:, None] * table, axis=0) / (weight @ observed)
    centred = np.where(observed, table - mean, 0.0)
    # The mean of equal numbers can be off by a rounding error; a constant has no variance.
    centred[:, np.nanmin(table, axis=0) == np.nanmax(table, axis=0)] = 0.0
    if weight is None:
        return mean, centred.T @ centred / len(table) / _joint_fraction(table, None)
    gram = centred.T @ (weight[:, None] * centred)
    return mean, gram / float(weight.sum()) / _joint_fraction(table, weight)


class MissingPattern(NamedTuple):
    """Rows with the same values missing, and what is uncertain about these given the others.

    Attributes
    ----------
    rows : positions of the rows.
    missing : columns that are missing.
    covariance : conditional covariance of these columns, the same for all rows.
    """

    rows: npt.NDArray[np.intp]
    missing: npt.NDArray[np.intp]
    covariance: Floats


def conditional_mean(
    X: npt.ArrayLike,
    observed: npt.ArrayLike,
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
) -> Floats:
    """X with every entry that is not observed replaced by its mean given the row's observed part.

    E[x_m | x_o] = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o), solved once for each pattern of missing values.
    A singular Σ_oo is inverted on its range.
    """
    return conditional_normal(X, observed, mean, covariance)[0]


def conditional_normal(
    X: npt.ArrayLike,
    observed: npt.ArrayLike,
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
) -> tuple[Floats, list[MissingPattern]]:
    """The `conditional_mean`, and the covariance Σ_mm - Σ_mo Σ_oo⁻¹ Σ_om around it by pattern."""
    table, seen = np.asarray(X, dtype=float), np.asarray(observed, dtype=bool)
    center, sigma = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    deviation = np.sqrt(np.diag(sigma))
    correlation = _rescale(sigma, _inverse(deviation))
    informative = deviation > 0
    # Eigenvalues interlace: no block Σ_oo is nearer to singular than the whole.
    values = np.linalg.eigvalsh(correlation[np.ix_(informative, informative)])
    singular = values.size > 0 and values[0] < _SINGULAR

    filled = table.copy()
    patterns = []
    rows = np.flatnonzero(~seen.all(axis=1))
    _, group, sizes = np.unique(
        np.packbits(seen[rows], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    order = rows[np.argsort(group.ravel(), kind="stable")]
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        members = order[end - size : end]
        known = np.flatnonzero(seen[members[0]] & informative)
        unknown = np.flatnonzero(~seen[members[0]])
        inner, cross = correlation[np.ix_(known, known)], correlation[np.ix_(known, unknown)]
        weights = (
            np.linalg.pinv(inner, rcond=_SINGULAR, hermitian=True) @ cross
            if singular
            else np.linalg.solve(inner, cross)
        )
        standardised = (table[np.ix_(members, known)] - center[known]) / deviation[known]
        filled[np.ix_(members, unknown)] = (
            center[unknown] + (standardised @ weights) * deviation[unknown]
        )
        left = correlation[np.ix_(unknown, unknown)] - cross.T @ weights
        patterns.append(MissingPattern(members, unknown, _rescale(left, deviation[unknown])))
    return filled, patterns


class RowGaps(NamedTuple):
    """Rows with the same number of values missing, and what is known about these.

    Attributes
    ----------
    rows : (rows,) positions of the rows.
    missing : (rows, missing) columns that are missing, in ascending order.
    center : (rows, missing) their conditional means.
    covariance : (rows, missing, missing) their conditional covariance.
    """

    rows: npt.NDArray[np.intp]
    missing: npt.NDArray[np.intp]
    center: Floats
    covariance: Floats


def conditional_by_row(table: Floats, mean: Floats, covariance: Floats) -> list[RowGaps]:
    """What `conditional_normal` says of rows that hardly ever miss the same values.

    With Ω = Σ⁻¹ the conditional covariance is (Ω_mm)⁻¹ and the mean μ_m - (Ω_mm)⁻¹ Ω_mo (x_o -
    μ_o): one small solve for each row, all rows with as many missing values together. Σ must not be
    singular but for constant columns.
    """
    deviation = np.sqrt(np.diag(covariance))
    correlation = _rescale(covariance, _inverse(deviation))
    np.fill_diagonal(correlation, 1.0)
    precision = np.linalg.inv(correlation)
    is_missing = np.isnan(table)
    pulled = np.where(is_missing, 0.0, (table - mean) * _inverse(deviation)) @ precision
    count, found = is_missing.sum(axis=1), []
    for number in np.unique(count[count > 0]).tolist():
        rows = np.flatnonzero(count == number)
        missing = np.nonzero(is_missing[rows])[1].reshape(-1, number)
        left = np.linalg.inv(precision[missing[:, :, None], missing[:, None]])
        moved = np.matmul(left, pulled[rows[:, None], missing][:, :, None])[:, :, 0]
        scale = deviation[missing]
        own = left * (scale[:, :, None] * scale[:, None])
        found.append(RowGaps(rows, missing, mean[missing] - scale * moved, own))
    return found


def _joint_fraction(table: Floats, weight: Floats | None) -> Floats:
    fraction: Floats = np.average(~np.isnan(table), axis=0, weights=weight)
    return joint_fraction(fraction)


def joint_fraction(fraction: Floats) -> Floats:
    """δ_i δ_j off the diagonal and δ_i on it, δ the observed fraction of each column."""
    joint = np.outer(fraction, fraction)
    np.fill_diagonal(joint, fraction)
    return joint


def _rescale(matrix: Floats, factor: Floats) -> Floats:
    return matrix * np.outer(factor, factor)


def _inverse(deviation: Floats) -> Floats:
    """1 / deviation, and zero for a constant column."""
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)

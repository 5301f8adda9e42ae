"""Gaussian model of a table with missing values: its covariance, and conditional means.

NaN marks a missing value. The covariance is the estimator of Lounici (2014) with a missing rate
per column: unbiased when values are missing at random, but not positive definite in general, hence
projected. A constant column keeps variance zero throughout: it says nothing and is always known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from adacos.exceptions import InvalidInputError
from adacos.typing import Floats

# Eigenvalues are those of a correlation matrix, whose mean eigenvalue is one. An estimate is given
# at least the first; a block with one below the second is inverted on its range.
_SMALLEST_EIGENVALUE = 1e-6
_SINGULAR = 1e-10
# Numbers of rows that are multiplied at once: they stay in the processor's cache.
NUMBERS_AT_ONCE = 1 << 18


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


class MissingPatterns(NamedTuple):
    """Rows with as many values missing, and what is uncertain about these given the others.

    Attributes
    ----------
    rows : (rows,) positions of the rows.
    which : (rows,) the pattern of each.
    missing : (patterns, values) columns that are missing, in ascending order.
    covariance : (patterns, values, values) conditional covariance of these columns.
    """

    rows: npt.NDArray[np.intp]
    which: npt.NDArray[np.intp]
    missing: npt.NDArray[np.intp]
    covariance: Floats

    def of_rows(self, some: slice) -> Self:
        """Some of the rows, with all patterns."""
        return self._replace(rows=self.rows[some], which=self.which[some])

    def parts(self, numbers: int | None = None) -> Iterator[Self]:
        """The rows in parts of limited memory, for that many numbers a row: of a covariance."""
        size = max(NUMBERS_AT_ONCE // (numbers or self.missing.shape[1] ** 2), 1)
        for first in range(0, len(self.rows), size):
            yield self.of_rows(slice(first, first + size))


class RowGaps(NamedTuple):
    """Rows with as many values missing, and what is known about these.

    Attributes
    ----------
    rows : (rows,) positions of the rows.
    missing : (rows, values) columns that are missing, in ascending order.
    center : (rows, values) their conditional means.
    covariance : (rows, values, values) their conditional covariance.
    """

    rows: npt.NDArray[np.intp]
    missing: npt.NDArray[np.intp]
    center: Floats
    covariance: Floats

    @classmethod
    def of(cls, filled: Floats, patterns: MissingPatterns) -> Self:
        """Those of rows with their missing values at the conditional means, row by row."""
        missing = patterns.missing[patterns.which]
        center = filled[patterns.rows[:, None], missing]
        return cls(patterns.rows, missing, center, patterns.covariance[patterns.which])


def conditional_mean(
    X: npt.ArrayLike,
    observed: npt.ArrayLike,
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
) -> Floats:
    """X with every entry that is not observed replaced by its mean given the row's observed part.

    E[x_m | x_o] = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o). A singular Σ_oo is inverted on its range.
    """
    return conditional_normal(X, observed, mean, covariance)[0]


def conditional_normal(
    X: npt.ArrayLike,
    observed: npt.ArrayLike,
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
) -> tuple[Floats, list[MissingPatterns]]:
    """The `conditional_mean`, and the covariance Σ_mm - Σ_mo Σ_oo⁻¹ Σ_om around it by pattern.

    With Ω = Σ⁻¹ this covariance is (Ω_mm)⁻¹, and the mean is μ_m - (Ω_mm)⁻¹ Ω_mo (x_o - μ_o): one
    small inverse for each pattern, all patterns with as many missing values together.
    """
    table, seen = np.asarray(X, dtype=float), np.asarray(observed, dtype=bool)
    center, sigma = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    deviation = np.sqrt(np.diag(sigma))
    correlation = _rescale(sigma, _inverse(deviation))
    # Constants say nothing of the others.
    np.fill_diagonal(correlation, 1.0)
    # Eigenvalues interlace: no block Σ_oo is nearer to singular than the whole.
    singular = len(correlation) > 0 and np.linalg.eigvalsh(correlation)[0] < _SINGULAR
    moments = _by_regression(correlation) if singular else _by_precision(correlation)
    standardised = np.where(seen, table - center, 0.0) * _inverse(deviation)

    filled, found = table.copy(), []
    rows = np.flatnonzero(~seen.all(axis=1))
    _, first, group = np.unique(
        np.packbits(seen[rows], axis=1), axis=0, return_index=True, return_inverse=True
    )
    absent, group = ~seen[rows[first]], group.ravel()
    count, place = absent.sum(axis=1), np.zeros(len(first), dtype=np.intp)
    for number in np.unique(count).tolist():
        patterns = np.flatnonzero(count == number)
        place[patterns] = np.arange(len(patterns))
        members = np.flatnonzero(count[group] == number)
        members = members[np.argsort(place[group[members]], kind="stable")]
        which, missing = place[group[members]], np.nonzero(absent[patterns])[1]
        own = MissingPatterns(
            rows[members],
            which,
            missing.reshape(-1, number),
            np.empty((len(patterns), number, number)),
        )
        numbers = number * table.shape[1]
        size = max(NUMBERS_AT_ONCE // numbers, 1)
        for start in range(0, len(patterns), size):
            some = slice(start, start + size)
            weights, left = moments(own.missing[some])
            scale = deviation[own.missing[some]]
            own.covariance[some] = left * (scale[:, :, None] * scale[:, None])
            here = slice(*np.searchsorted(which, [start, start + size]))
            for part in own.of_rows(here).parts(numbers):
                columns = own.missing[part.which]
                moved = np.matmul(standardised[part.rows, None], weights[part.which - start])
                moved = moved[:, 0] * deviation[columns]
                filled[part.rows[:, None], columns] = center[columns] + moved
        found.append(own)
    return filled, found


def _by_precision(correlation: Floats) -> Callable[[npt.NDArray[np.intp]], tuple[Floats, Floats]]:
    """Weights of the other columns and conditional covariance of those missing, by pattern.

    Weights are for all columns: those of missing ones meet zeros.
    """
    precision = np.asarray(np.linalg.inv(correlation), dtype=np.float64)

    def moments(missing: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        own = precision[missing[:, :, None], missing[:, None]]
        left = np.asarray(np.linalg.inv(own), dtype=np.float64)
        return -np.matmul(precision[:, missing].transpose(1, 0, 2), left), left

    return moments


def _by_regression(correlation: Floats) -> Callable[[npt.NDArray[np.intp]], tuple[Floats, Floats]]:
    """The same where the correlation is singular: what is observed is inverted on its range."""
    size = len(correlation)

    def moments(missing: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        known = np.ones((len(missing), size), dtype=np.bool_)
        np.put_along_axis(known, missing, False, axis=1)
        cross = correlation[:, missing].transpose(1, 0, 2) * known[:, :, None]
        # Rows and columns of what is missing are zero: they are outside the range.
        inner = correlation * (known[:, :, None] & known[:, None])
        weights = np.linalg.pinv(inner, rcond=_SINGULAR, hermitian=True) @ cross
        left = correlation[missing[:, :, None], missing[:, None]]
        return weights, left - np.matmul(cross.transpose(0, 2, 1), weights)

    return moments


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

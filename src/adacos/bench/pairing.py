"""Paired comparison of two methods: is a difference more than noise?

Two views, neither of which is the whole truth. Folds: the mean difference per fold with a t
interval. There are few of them and their training rows overlap, so the variance is enlarged by
Nadeau and Bengio's factor, 1/n + (test rows / training rows) in place of 1/n. Rows: each tested
row's own difference, averaged first over the cross-validations in which it was tested, with a
normal interval or a studentised bootstrap over rows. It answers for new rows, given models trained
as these were. That a difference is within either interval is no evidence that there is none: the
interval says how large it may be. Repeating the cross-validation of the same rows narrows neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from adacos.bench.units import Outcome
from adacos.exceptions import InvalidInputError

Floats = NDArray[np.float64]

# Test rows over training rows in five-fold cross-validation.
FIVE_FOLD_OVERLAP = 1 / 4


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether a value lies outside the interval."""
        return self.low > value or self.high < value


def fold_interval(
    differences: ArrayLike, *, overlap: float = FIVE_FOLD_OVERLAP, confidence: float = 0.95
) -> Interval:
    """Mean over folds with a t interval.

    `overlap` is the number of test rows over training rows; 0 gives the plain paired t interval.
    """
    d = _checked(differences)
    scale = np.sqrt(d.var(ddof=1) * (1 / len(d) + overlap))
    return _t_interval(float(d.mean()), float(scale), len(d) - 1, confidence)


def row_interval(differences: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Mean over rows with a normal interval."""
    d = _checked(differences)
    half = stats.norm.ppf((1 + confidence) / 2) * d.std(ddof=1) / np.sqrt(len(d))
    return Interval(float(d.mean()), float(d.mean() - half), float(d.mean() + half))


def row_differences(
    first: Sequence[Outcome], second: Sequence[Outcome], values: str = "total"
) -> Floats:
    """Difference of each row of one cell, averaged over the cross-validations that tested it."""
    a, b = row_means(first, values), row_means(second, values)
    if a.keys() != b.keys():
        raise InvalidInputError(
            "outcomes",
            "both methods must have been tested on the same rows",
            f"{len(a)} and {len(b)} rows",
            "Run both methods on the same splits and folds.",
        )
    return np.array([a[row] - b[row] for row in a])


def row_means(outcomes: Iterable[Outcome], values: str = "total") -> dict[int, float]:
    """Mean of a row's value (`total` or `operation`) over the cross-validations that tested it."""
    rows, found = [], []
    for outcome in outcomes:
        rows.append(outcome.rows)
        found.append(getattr(outcome, values))
    unique, index = np.unique(np.concatenate(rows), return_inverse=True)
    mean = np.bincount(index, weights=np.concatenate(found)) / np.bincount(index)
    return dict(zip(unique.tolist(), mean.tolist(), strict=True))


def geometric_ratio_by_folds(
    log_ratios: ArrayLike, *, overlap: float = FIVE_FOLD_OVERLAP, confidence: float = 0.95
) -> Interval:
    """Ratio of geometric means from log ratios, one per fold and averaged over cells.

    One per cross-validation with `overlap` 0 gives the noise of splitting these very rows, which is
    less than that of drawing other rows.
    """
    inner = fold_interval(log_ratios, overlap=overlap, confidence=confidence)
    return Interval(*np.exp([inner.estimate, inner.low, inner.high]).tolist())


def geometric_ratio_by_rows(
    cells: Mapping[tuple[str, ...], tuple[Floats, Floats]],
    *,
    confidence: float = 0.95,
    n_draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """Ratio of geometric means over cells with a studentised bootstrap interval over rows.

    `cells` maps a key that begins with the data set to the two methods' values of its rows, in the
    same order of rows in all cells of a data set: a row is drawn for all its cells at once. The
    interval is symmetric in the logarithm: its half width is a quantile of |t| over the draws,
    where t divides the deviation of a draw by its own standard error. Costs are skew (rare large
    losses), and quantiles of the draws themselves reject too often.
    """
    by_dataset: dict[str, list[tuple[Floats, Floats]]] = {}
    for key, pair in cells.items():
        by_dataset.setdefault(key[0], []).append(pair)
    rng = np.random.default_rng(seed)
    estimate, variance = 0.0, 0.0
    drawn, drawn_variance = np.zeros(n_draws), np.zeros(n_draws)
    for pairs in by_dataset.values():
        first = np.stack([a for a, _ in pairs])
        second = np.stack([b for _, b in pairs])
        n = first.shape[1]
        value, square = _log_ratio(first, second, np.ones(n))
        estimate, variance = estimate + value, variance + square
        for k in range(n_draws):
            weight = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
            value, square = _log_ratio(first, second, weight)
            drawn[k] += value
            drawn_variance[k] += square
    n_cells = len(cells)
    error = np.sqrt(variance)
    off, scale = np.abs(drawn - estimate), np.sqrt(drawn_variance)
    # Where the rows that differ are so few that draws miss them all, nothing can be said.
    t = np.divide(off, scale, out=np.where(off > 0, np.inf, 0.0), where=scale > 0)
    half = float(np.quantile(t, confidence, method="higher")) * error if error > 0 else 0.0
    ends = np.array([estimate, estimate - half, estimate + half]) / n_cells
    with np.errstate(over="ignore"):
        return Interval(*np.exp(ends).tolist())


def _log_ratio(first: Floats, second: Floats, weight: Floats) -> tuple[float, float]:
    """Sum over cells of the log ratio of weighted means over n rows, and its squared error.

    The error is that of the linear part: to first order the sum moves with row i by
    Σ_cells (first_i / mean first - second_i / mean second) / n.
    """
    n = len(weight)
    a, b = first @ weight / n, second @ weight / n
    influence = (first / a[:, None] - second / b[:, None]).sum(axis=0)
    return float(np.log(a / b).sum()), float(weight @ influence**2) / n / (n - 1)


def _t_interval(mean: float, scale: float, freedom: int, confidence: float) -> Interval:
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * scale
    return Interval(mean, mean - half, mean + half)


def _checked(differences: ArrayLike) -> Floats:
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2 or not np.all(np.isfinite(d)):
        raise InvalidInputError(
            "differences", "must be at least two finite numbers", d.shape, "Run more folds."
        )
    return d

"""Paired comparison of two methods: is a difference more than noise?

Two views, neither of which is the whole truth. Folds: the mean difference per fold with a t
interval. There are few of them and their training rows overlap, so the variance is enlarged by
Nadeau and Bengio's factor, 1/n + (test rows / training rows) in place of 1/n. Rows: each tested
row's own difference, averaged first over the cross-validations in which it was tested, with a
normal interval; for ratios the interval is over rows and folds together. It answers for new rows.
That a difference is within either interval is no evidence that there is none: the interval says how
large it may be. Repeating the cross-validation of the same rows narrows neither. Where rows belong
together, as visits of one patient do, they are in one fold, and the second view is over groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from adacos.bench.units import Outcome
from adacos.exceptions import InvalidInputError
from adacos.kernels.intervals import ConfidenceInterval, checked_differences, t_interval
from adacos.typing import Floats, Ints

# Test rows over training rows in five-fold cross-validation.
FIVE_FOLD_OVERLAP = 1 / 4


def fold_interval(
    differences: ArrayLike, *, overlap: float = FIVE_FOLD_OVERLAP, confidence: float = 0.95
) -> ConfidenceInterval:
    """Mean over folds with a t interval.

    `overlap` is the number of test rows over training rows; 0 gives the plain paired t interval.
    """
    d = checked_differences(differences)
    scale = np.sqrt(d.var(ddof=1) * (1 / len(d) + overlap))
    return t_interval(float(d.mean()), float(scale), len(d) - 1, confidence)


def row_differences(
    first: Sequence[Outcome], second: Sequence[Outcome], values: str = "total"
) -> Floats:
    """Difference of each row of one cell, averaged over the cross-validations that tested it."""
    a, b = row_means(first, values), row_means(second, values)
    if a.keys() != b.keys():
        raise _other_rows(len(a), len(b))
    return np.array([a[row] - b[row] for row in a])


def row_groups(outcomes: Iterable[Outcome]) -> Ints | None:
    """Group of each tested row, in the order of `row_means`; None where no row has one."""
    rows, parts = [], []
    for outcome in outcomes:
        if outcome.groups is None:
            return None
        rows.append(outcome.rows)
        parts.append(outcome.groups)
    first = np.unique(np.concatenate(rows), return_index=True)[1]
    return np.asarray(np.concatenate(parts)[first])


def row_means(outcomes: Iterable[Outcome], values: str = "total") -> dict[int, float]:
    """Mean of a row's value (`total` or `operation`) over the cross-validations that tested it."""
    rows, parts = [], []
    for outcome in outcomes:
        rows.append(outcome.rows)
        parts.append(getattr(outcome, values))
    unique, index = np.unique(np.concatenate(rows), return_inverse=True)
    mean = np.bincount(index, weights=np.concatenate(parts)) / np.bincount(index)
    return dict(zip(unique.tolist(), mean.tolist(), strict=True))


def geometric_ratio_by_folds(
    log_ratios: ArrayLike, *, overlap: float = FIVE_FOLD_OVERLAP, confidence: float = 0.95
) -> ConfidenceInterval:
    """Ratio of geometric means from log ratios, one per fold and averaged over cells.

    One per cross-validation with `overlap` 0 gives the noise of splitting these very rows, which is
    less than that of drawing other rows.
    """
    inner = fold_interval(log_ratios, overlap=overlap, confidence=confidence)
    return ConfidenceInterval(*np.exp([inner.estimate, inner.low, inner.high]).tolist())


@dataclass(frozen=True)
class Pairs:
    """Costs of two methods in every test: the row tested, and the fold of which cross-validation.

    A row that several cross-validations tested counts as often. Rows that belong together
    have the number of their group.
    """

    first: Floats
    second: Floats
    rows: Ints
    folds: Ints


def paired_tests(
    first: Sequence[Outcome], second: Sequence[Outcome], values: str = "total"
) -> Pairs:
    """All tests of one cell; both methods must have been run on the same folds."""
    for a, b in zip(first, second, strict=True):
        if not np.array_equal(a.rows, b.rows):
            raise _other_rows(len(a.rows), len(b.rows))
    return Pairs(
        np.concatenate([getattr(outcome, values) for outcome in first]),
        np.concatenate([getattr(outcome, values) for outcome in second]),
        np.concatenate([o.rows if o.groups is None else o.groups for o in first]),
        np.repeat(np.arange(len(first)), [len(outcome.rows) for outcome in first]),
    )


def geometric_ratio_by_rows(
    cells: Mapping[tuple[str, ...], Pairs], *, confidence: float = 0.95
) -> ConfidenceInterval:
    """Ratio of geometric means over cells with an interval over rows and folds.

    `cells` maps a key that begins with the data set to its tests, the same ones in the same order
    in all cells of a data set. To first order the logarithm of the ratio moves with a test by its
    influence u = Σ_cells (first / mean first - second / mean second) / number of tests. Tests of
    one row share the row, tests of one fold share the trained models, and a model that turned out
    well or badly moves all of them: the variance is Σ_rows (Σu)² + max(0, Σ_folds (Σu)² - Σu²), as
    clustering both ways has it. Costs are skew (rare large losses), so that the variance itself is
    uncertain: the quantile is that of t with the degrees of freedom that the fourth moment of the
    influences leaves (Satterthwaite).
    """
    by_dataset: dict[str, list[Pairs]] = {}
    for key, pairs in cells.items():
        by_dataset.setdefault(key[0], []).append(pairs)
    estimate, variance, uncertainty = 0.0, 0.0, 0.0
    for same_tests in by_dataset.values():
        influence = np.zeros(len(same_tests[0].rows))
        for pairs in same_tests:
            a, b = pairs.first.mean(), pairs.second.mean()
            estimate += float(np.log(a / b))
            influence += (pairs.first / a - pairs.second / b) / len(influence)
        own, freedom = _clustered(influence, same_tests[0].rows)
        shared, folds = _between(influence, same_tests[0].folds)
        variance += own + shared
        uncertainty += own**2 / freedom
        if shared > 0:
            uncertainty += (shared + float(influence @ influence)) ** 2 / (folds - 1)
    half = 0.0
    if variance > 0:
        freedom = max(variance**2 / uncertainty, 1.0)
        half = float(stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(variance))
    ends = np.array([estimate, estimate - half, estimate + half]) / len(cells)
    with np.errstate(over="ignore"):
        return ConfidenceInterval(*np.exp(ends).tolist())


def _clustered(influence: Floats, cluster: Ints) -> tuple[float, float]:
    """Variance of the sum of influences over independent clusters, and its degrees of freedom.

    A sample variance of n values with kurtosis k has a relative variance of (k - 1) / n, that of a
    normal sample with f degrees of freedom 2 / f.
    """
    _, number = np.unique(cluster, return_inverse=True)
    sums = np.bincount(number, weights=influence)
    n, squares = len(sums), float(sums @ sums)
    if squares == 0:
        return 0.0, float(n - 1)
    excess = max(n * float(np.sum(sums**4)) / squares**2 - 1.0, 2 / n)
    return squares * n / (n - 1), float(np.clip(2 * n / excess, 1, n - 1))


def _between(influence: Floats, folds: Ints) -> tuple[float, int]:
    """What folds add to the variance beyond the tests in them, and the number of folds."""
    _, number = np.unique(folds, return_inverse=True)
    sums = np.bincount(number, weights=influence)
    k = len(sums)
    if k < 2:
        return 0.0, 2
    return max(float(sums @ sums * k / (k - 1) - influence @ influence), 0.0), k


def _other_rows(first: int, second: int) -> InvalidInputError:
    return InvalidInputError(
        "outcomes",
        "both methods must have been tested on the same rows",
        f"{first} and {second} rows",
        "Run both methods on the same splits and folds.",
    )

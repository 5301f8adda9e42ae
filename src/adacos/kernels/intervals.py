"""Confidence intervals of paired differences: a mean over rows, or over groups of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from adacos.exceptions import InvalidInputError
from adacos.kernels.groups import standard_error
from adacos.typing import Floats, Ints


@dataclass(frozen=True)
class ConfidenceInterval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether a value lies outside the interval."""
        return self.low > value or self.high < value


def row_interval(
    differences: ArrayLike, groups: Ints | None = None, *, confidence: float = 0.95
) -> ConfidenceInterval:
    """Mean over rows with a normal interval; over groups of rows with a t interval."""
    d = checked_differences(differences)
    if groups is not None:
        checked_differences(np.unique(groups))
        freedom = len(np.unique(groups)) - 1
        return t_interval(float(d.mean()), standard_error(d, groups), freedom, confidence)
    half = stats.norm.ppf((1 + confidence) / 2) * d.std(ddof=1) / np.sqrt(len(d))
    return ConfidenceInterval(float(d.mean()), float(d.mean() - half), float(d.mean() + half))


def t_interval(mean: float, scale: float, freedom: int, confidence: float) -> ConfidenceInterval:
    """The interval of a mean with an estimated standard error."""
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * scale
    return ConfidenceInterval(mean, mean - half, mean + half)


def checked_differences(differences: ArrayLike) -> Floats:
    """At least two finite numbers, or a clear error."""
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2 or not np.all(np.isfinite(d)):
        raise InvalidInputError(
            "differences", "must be at least two finite numbers", d.shape, "Run more folds."
        )
    return d

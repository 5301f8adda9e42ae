"""Log-odds of a model at another prevalence, or as the outcomes of other rows ask for.

With u the log-odds of the later classes against the first, and u_0 those before anything is known,

    u' = u_0 + shift + slope (u - u_0).

If classes occur with other shares and rows of a class are as before (label shift), then Bayes' rule
gives slope 1 and shift_k = log(s'_k / s_k) - log(s'_0 / s_0), for every set of covariates. From
outcomes (u_i, y_i) of other rows shift and slope are the maximum of

    Σ log P(y_i | u'_i) - Σ_k shift_k² / (2 SHIFT_SD²) - (slope - 1)² / (2 SLOPE_SD²),

so that few rows change little; standard errors are those of the curvature there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.kernels.class_risk import probabilities, with_first
from adacos.typing import Floats, Ints

# Standard deviations of what is expected before any outcome is seen: odds a sevenfold higher or
# lower are common between sites, while slopes mostly lie between 0.5 and 1.5.
SHIFT_SD, SLOPE_SD = 2.0, 0.25
_MOST_STEPS, _TOLERANCE = 100, 1e-10


class LogOddsChange(NamedTuple):
    """How log-odds change, and with them how often rows of each class count.

    Attributes
    ----------
    shift : (classes - 1,) what is added to the log-odds.
    slope : factor of the log-odds around those before anything is known.
    base : (classes - 1,) log-odds before anything is known, as they were.
    """

    shift: Floats
    slope: float
    base: Floats

    @property
    def offset(self) -> Floats:
        """What is added to `slope` times the log-odds."""
        return self.shift + (1 - self.slope) * self.base

    @property
    def factors(self) -> Floats:
        """By how much more often each class occurs, (classes,)."""
        return np.asarray(shares_at(self.base + self.shift) / shares_at(self.base))

    def of(self, log_odds: Floats) -> Floats:
        """The log-odds after it: (…,) with two classes, else (…, classes - 1)."""
        offset = self.offset[0] if len(self.shift) == 1 else self.offset
        return np.asarray(self.slope * log_odds + offset)

    def row_factors(self, log_odds: Floats, labels: Ints) -> Floats:
        """By how much more often rows occur whose log-odds with every covariate are known.

        A row has the values of rows with other shares of the classes, and its class is as likely
        as the new log-odds say. With slope 1 that is the factor of its class, and so it is taken to
        be where the log-odds are not known.
        """
        factor = self.factors[labels]
        if self.slope == 1.0:
            return factor
        shape = len(labels), len(self.shift)
        before = probabilities(log_odds.reshape(shape))
        after = probabilities(self.of(log_odds).reshape(shape))
        rows = np.arange(len(labels))
        with np.errstate(invalid="ignore"):
            values = before @ self.factors
            found = values * after[rows, labels] / before[rows, labels]
        return np.where(np.isnan(found), factor, found)


def shares_at(log_odds: Floats) -> Floats:
    """Shares of the classes at log-odds (classes - 1,)."""
    return np.asarray(probabilities(log_odds[None])[0])


def log_odds_at(shares: Floats) -> Floats:
    """Log-odds of the later classes against the first, from the shares of all."""
    return np.asarray(np.log(shares[1:] / shares[0]))


class FittedChange(NamedTuple):
    """A change found from outcomes, with the standard errors of its shift and its slope."""

    change: LogOddsChange
    shift_error: Floats
    slope_error: float


def fit_change(
    log_odds: Floats, labels: Ints, base: Floats, with_slope: bool = True
) -> FittedChange:
    """The change that outcomes ask for, by Newton's method on a concave objective.

    `log_odds` is (rows,) or (rows, classes - 1); without a slope it stays 1, exactly known.
    """
    u = log_odds.reshape(len(labels), -1)
    size = u.shape[1]
    precision = np.append(np.full(size, SHIFT_SD**-2), SLOPE_SD**-2)
    moved = np.append(np.ones(size, dtype=np.bool_), with_slope)
    value = np.append(np.zeros(size), 1.0)
    prior = value.copy()
    said = np.equal.outer(labels, np.arange(1, size + 1)).astype(np.float64)

    def objective(at: Floats) -> float:
        after = with_first(base + at[:size] + at[size] * (u - base))
        top = after.max(axis=1)
        log_sum = top + np.log(np.exp(after - top[:, None]).sum(axis=1))
        own = after[np.arange(len(labels)), labels]
        return float(np.sum(own - log_sum) - 0.5 * precision @ (at - prior) ** 2)

    curvature = np.diag(precision)
    for _ in range(_MOST_STEPS):
        p = probabilities(base + value[:size] + value[size] * (u - base))[:, 1:]
        away = u - base
        left = said - p
        gradient = np.append(left.sum(axis=0), np.sum(left * away)) - precision * (value - prior)
        curvature = np.diag(precision)
        curvature[:size, :size] += np.diag(p.sum(axis=0)) - p.T @ p
        along = p * (away - np.sum(p * away, axis=1, keepdims=True))
        curvature[size, :size] += along.sum(axis=0)
        curvature[:size, size] = curvature[size, :size]
        curvature[size, size] += float(np.sum(along * away))
        step = np.zeros(size + 1)
        step[moved] = np.linalg.solve(curvature[np.ix_(moved, moved)], gradient[moved])
        now, share = objective(value), 1.0
        while objective(value + share * step) < now and share > 1e-8:
            share /= 2
        value = value + share * step
        if np.max(np.abs(share * step)) < _TOLERANCE:
            break
    error = np.zeros(size + 1)
    error[moved] = np.sqrt(np.diag(np.linalg.inv(curvature[np.ix_(moved, moved)])))
    return FittedChange(
        LogOddsChange(value[:size], float(value[size]), base), error[:size], float(error[size])
    )

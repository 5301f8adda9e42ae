"""Bayes risk of three or more classes, and its expectation while the log-odds are still Gaussian.

Log-odds of K classes are those of each later class against the first: a vector u of K - 1 numbers,
with probabilities p = softmax(0, u). For a misclassification matrix C[y, label] the Bayes risk is

    r(u) = min over label of Σ_y p_y C[y, label].

Before a set of covariates is acquired u ~ N(m, R R'), and E[r(u)] has no closed form for K > 2. It
is a mean over a fixed set of points: the normal quantiles of the first points of a Sobol sequence,
of mean zero and unit covariance; `N_POINTS` says how many. All rows use the same points, so that a
decision is a function of the row alone. `tests/kernels/test_class_risk.py` holds the error against
integrals of many more points: at most 1e-3 of the most expensive error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from adacos.kernels.bayes_risk import bayes_risk, label_of
from adacos.kernels.strengths import row_loss
from adacos.kernels.ties import last_of_least
from adacos.typing import Floats, Ints

# Points of the rule for two log-odds, three, four; the last one serves all larger numbers.
N_POINTS = (512, 2048, 4096, 8192)
# Exponents beyond this hide behind the others in any sum. Squares of odds within the second fit
# single precision.
_LARGEST, _WIDEST_SINGLE = 300.0, 40.0
# Entries of a temporary array: it stays in the processor's cache.
_BLOCK = 131072


def probabilities(log_odds: Floats) -> Floats:
    """Probabilities (..., K) at log-odds (..., K - 1) of the later classes against the first."""
    scores = with_first(log_odds)
    odds = np.exp(scores - _over_classes(np.maximum, scores)[..., None])
    return np.asarray(odds / _over_classes(np.add, odds)[..., None])


def log_odds_of(probability: Floats) -> Floats:
    """Log-odds (..., K - 1) of probabilities (..., K) that are not zero."""
    logarithm = np.log(np.maximum(probability, np.exp(-_LARGEST)))
    return np.asarray(logarithm[..., 1:] - logarithm[..., :1])


def best_label(log_odds: Floats, matrix: Floats) -> NDArray[np.int64]:
    """Label of least expected misclassification cost, for two classes or more.

    Log-odds have a last axis over the later classes where there are more than two.
    """
    return label_of(log_odds, matrix) if len(matrix) == 2 else class_label(log_odds, matrix)


def least_risk(log_odds: Floats, matrix: Floats) -> Floats:
    """Expected misclassification cost of the best label, for two classes or more."""
    return bayes_risk(log_odds, matrix) if len(matrix) == 2 else class_bayes_risk(log_odds, matrix)


def log_loss(log_odds: Floats, y: Floats) -> Floats:
    """Negative log-likelihood of each row, for two classes or more."""
    if log_odds.ndim == 1:
        return row_loss(log_odds, y)
    scores = with_first(log_odds)
    chosen = scores[np.arange(len(y)), y.astype(np.intp)]
    return np.asarray(np.logaddexp.reduce(scores, axis=1) - chosen)


def class_risks(log_odds: Floats, matrix: Floats) -> Floats:
    """Expected misclassification cost of every label, (..., K)."""
    return np.asarray(probabilities(log_odds) @ matrix)


def class_label(log_odds: Floats, matrix: Floats) -> Ints:
    """Label of least expected misclassification cost; of equal ones the last."""
    return label_at(probabilities(log_odds), matrix)


def label_at(probability: Floats, matrix: Floats) -> Ints:
    """`class_label` at the probabilities (..., K) of the classes."""
    return last_of_least(probability @ matrix, probability @ np.abs(matrix))


def class_bayes_risk(log_odds: Floats, matrix: Floats) -> Floats:
    """Expected misclassification cost of the best label."""
    return _over_classes(np.minimum, class_risks(log_odds, matrix))


@lru_cache(maxsize=32)
def normal_points(dimension: int) -> Floats:
    """The points (points, dimension) of the rule, of mean 0 and covariance 1; not to be changed."""
    number = N_POINTS[min(dimension - 2, len(N_POINTS) - 1)]
    uniform = qmc.Sobol(dimension, scramble=False).random(number)
    # The first point of the sequence is zero; half a step brings all inside.
    points = ndtri(uniform + 0.5 / number)
    points -= points.mean(axis=0)
    whiten = np.linalg.inv(np.linalg.cholesky(points.T @ points / number))
    points = np.asarray(points @ whiten.T)
    points.flags.writeable = False
    return points


def roots(covariance: Floats) -> Floats:
    """R (..., K, K - 1) with R R' the covariance of (0, u) less its mean over the classes.

    `covariance` (..., K - 1, K - 1) is that of the log-odds. Columns are principal directions, the
    widest first: the first coordinates of the points are the most even. Their signs do not change
    with the rounding of the covariance, which depends on the rows next to a row.
    """
    size = covariance.shape[-1] + 1
    centring = (np.eye(size) - 1.0 / size)[:, 1:]
    values, vectors = np.linalg.eigh(centring @ covariance @ centring.T)
    # Powers of e: no directions that classes are likely to have are at right angles to them.
    along = np.exp(np.arange(size) / size) @ vectors
    vectors = vectors * np.where(along < 0, -1.0, 1.0)[..., None, :]
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])[..., :0:-1])


def expected_class_risk(mean: Floats, root: Floats, matrix: Floats) -> Floats:
    """E[r(u)] for u ~ N(mean, covariance) of each row.

    Parameters
    ----------
    mean : (rows, K - 1) of the log-odds after the acquisition.
    root : `roots` of their covariance, (K, K - 1) for all rows or one for each.
    matrix : C[y, label].
    """

    def risk(mean: Floats, weight: Floats) -> Floats:
        return _risk(_Odds.scaled(_exponentials(with_first(mean)), weight), matrix)

    return _by_blocks(mean, root, risk, single=True)


def integrated_class_log_odds(mean: Floats, root: Floats) -> Floats:
    """Log-odds of the mean probabilities E[softmax(0, u)], u ~ N(mean, covariance) of each row."""

    def integrated(mean: Floats, weight: Floats) -> Floats:
        return log_odds_of(_Odds.scaled(_exponentials(with_first(mean)), weight).mean())

    return _by_blocks(mean, root, integrated)


def pair_variance(covariance: Floats) -> Floats:
    """Variance (...) of the log-odds of two classes, averaged over all pairs of classes.

    `covariance` (..., K - 1, K - 1) is that of the log-odds against the first class.
    """
    size = covariance.shape[-1]
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    # Over ordered pairs: those with the first class, and those among the later ones.
    among = size * trace - covariance.sum(axis=(-2, -1))
    return np.asarray(np.maximum(2.0 * (trace + among), 0.0) / (size * (size + 1)))


def pairwise_shrink(variance: Floats) -> Floats:
    """Factor of log-odds that leaves about the mean probabilities where they vary so, by pairs."""
    return np.asarray(1.0 / np.sqrt(1.0 + np.pi / 8.0 * variance))


class _Odds(NamedTuple):
    """Odds factor_k · weight_ik of class k at point i, for some rows; unscaled.

    Attributes
    ----------
    factor : (rows, K) from the means.
    weight : (points, K) from the points, for all rows, or (rows, points, K).
    inverse : (rows, points) one over the sum over the classes.
    """

    factor: Floats
    weight: Floats
    inverse: Floats

    @classmethod
    def scaled(cls, factor: Floats, weight: Floats) -> _Odds:
        """The odds at these factors, in the precision of the weights."""
        factor = factor.astype(weight.dtype)
        return cls(factor, weight, 1 / _along(weight, factor))

    def mean(self) -> Floats:
        """Mean probability of each class, (rows, K)."""
        n_points = self.inverse.shape[1]
        if self.weight.ndim == 2:
            summed = self.inverse @ self.weight
        else:
            summed = np.matmul(self.inverse[:, None, :], self.weight)[:, 0]
        return np.asarray(self.factor * summed / n_points, dtype=np.float64)


def _risk(odds: _Odds, matrix: Floats) -> Floats:
    """Mean over the points of the least expected cost."""
    # In units of a power of two, which rounds nothing: costs of any size fit single precision.
    unit = 2.0 ** int(np.frexp(np.abs(matrix).max())[1])
    prices = (matrix / unit).astype(odds.weight.dtype)
    least = _along(odds.weight, odds.factor * prices[:, 0])
    for column in prices.T[1:]:
        np.minimum(least, _along(odds.weight, odds.factor * column), out=least)
    least *= odds.inverse
    return unit * np.asarray(least.mean(axis=1), dtype=np.float64)


def _along(weight: Floats, factor: Floats) -> Floats:
    """Sum over the classes at each point, (rows, points)."""
    if weight.ndim == 2:
        return np.asarray(factor @ weight.T)
    return np.asarray(np.matmul(weight, factor[:, :, None])[:, :, 0])


def _by_blocks(
    values: Floats,
    root: Floats,
    function: Callable[[Floats, Floats], Floats],
    *,
    single: bool = False,
) -> Floats:
    """A function of rows and of the weights of the rule, over blocks.

    Single precision is twice as fast, and enough for a mean over some thousand points.
    """
    points, common = normal_points(root.shape[-1]), root.ndim == 2
    weight = _exponentials(points @ root.T, single) if common else points
    # An entry for each row and each point stays in the cache.
    size = max(_BLOCK // len(points) // (1 if common else values.shape[1] + 1), 1)
    parts = []
    for first in range(0, max(len(values), 1), size):
        rows = slice(first, first + size)
        if not common:
            weight = _exponentials(points @ root[rows].transpose(0, 2, 1), single)
        parts.append(function(values[rows], weight))
    return np.concatenate(parts)


def _exponentials(values: Floats, single: bool = False) -> Floats:
    """exp along the last axis, scaled to a largest value of 1; in single precision if it can be."""
    shifted = values - _over_classes(np.maximum, values)[..., None]
    if single and shifted.min(initial=0.0) >= -_WIDEST_SINGLE:
        return np.asarray(np.exp(shifted.astype(np.float32)))
    return np.asarray(np.exp(np.maximum(shifted, -_LARGEST)))


def _over_classes(function: np.ufunc, values: Floats) -> Floats:
    """The reduction over the last axis, class by class: numpy's own goes from row to row."""
    result = values[..., 0]
    for k in range(1, values.shape[-1]):
        result = function(result, values[..., k])
    return np.asarray(result)


def with_first(log_odds: Floats) -> Floats:
    """The log-odds of all classes, those of the first being zero."""
    return np.concatenate([np.zeros((*log_odds.shape[:-1], 1)), log_odds], axis=-1)

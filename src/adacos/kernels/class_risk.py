"""Bayes risk of more than two classes, and its expectation while the log-odds are still Gaussian.

Log-odds of K classes are those of each later class against the first: a vector u of K - 1 numbers,
with probabilities p = softmax(0, u). For a misclassification matrix C[y, label] the Bayes risk is

    r(u) = min over label of Σ_y p_y C[y, label].

Before a set of covariates is acquired u ~ N(m, R R'), and E[r(u)] has no closed form for K > 2. It
is a mean over a fixed set of points: the normal quantiles of the first points of a Sobol sequence,
of mean zero and unit covariance; `N_POINTS` says how many. All rows use the same points, so that a
decision is a function of the row alone. `tests/kernels/test_class_risk.py` holds the error against
integrals of many more points: at most 1e-3 of the dearest error.

A forecast that keeps the probabilities has the mean m with E[softmax(0, u)] = p now. It is the
minimiser of the convex function E[log Σ_k exp(u_k)] - p'm, found by damped Newton steps over the
same points: under the rule the probabilities are a martingale, and by Jensen's inequality the
expected risk is at most the risk now, as under the integral.
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

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Points of the rule for two log-odds, three, four; the last one serves all larger numbers.
N_POINTS = (512, 2048, 4096, 8192)
# A rough rule, with one in so many points, says where to start from.
_ROUGHER = 8
# Exponents beyond this hide behind the others in any sum. Squares of odds within the second fit
# single precision.
_LARGEST, _WIDEST_SINGLE = 300.0, 40.0
# Entries of a temporary array: it stays in the processor's cache.
_BLOCK = 131072
# The probability is kept to this, in sum over the classes: where only the risk matters, which errs
# by as much of the costs, and where the mean itself is asked for.
_KEPT, _KEPT_EXACTLY = 2e-5, 1e-9
_ITERATIONS = 60
# Systems of so many equations are solved for all rows at once.
_FEW_CLASSES = 4


def probabilities(log_odds: Floats) -> Floats:
    """Probabilities (..., K) at log-odds (..., K - 1) of the later classes against the first."""
    scores = _with_first(log_odds)
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
    scores = _with_first(log_odds)
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
    risks = probability @ matrix
    return np.asarray(len(matrix) - 1 - np.argmin(risks[..., ::-1], axis=-1), dtype=np.intp)


def class_bayes_risk(log_odds: Floats, matrix: Floats) -> Floats:
    """Expected misclassification cost of the best label."""
    return _over_classes(np.minimum, class_risks(log_odds, matrix))


@lru_cache(maxsize=32)
def normal_points(dimension: int, rough: bool = False) -> Floats:
    """The points (points, dimension) of the rule, of mean 0 and covariance 1; not to be changed."""
    number = N_POINTS[min(dimension - 2, len(N_POINTS) - 1)] // (_ROUGHER if rough else 1)
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
    with the rounding of the covariance, which is that of the rows beside a row.
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

    def risk(mean: Floats, weight: Floats, few: Floats) -> Floats:
        return _risk(_Odds.scaled(_exponentials(_with_first(mean)), weight), matrix)

    return _by_blocks(mean, root, risk, single=True)


def kept_class_risk(log_odds: Floats, root: Floats, matrix: Floats) -> Floats:
    """E[r(u)] for a normal u whose mean keeps the probabilities at `log_odds`, at most r now."""

    def kept(now: Floats, weights: Floats, few: Floats) -> Floats:
        start = _keeping(now, few, _KEPT).factor
        risk = np.empty(len(now))
        size = _rows_at_once(weights)
        for first in range(0, len(now), size):
            rows = slice(first, first + size)
            part = weights if weights.ndim == 2 else weights[rows]
            risk[rows] = _risk(_keeping(now[rows], part, _KEPT, start[rows]), matrix)
        return np.asarray(np.minimum(risk, class_bayes_risk(now, matrix)))

    return _by_blocks(log_odds, root, kept, single=True, rough_first=True)


def coherent_class_mean(log_odds: Floats, root: Floats) -> Floats:
    """The mean m with E[softmax(0, u)] = softmax(0, log_odds) for u ~ N(m, covariance)."""

    def mean(now: Floats, weight: Floats, few: Floats) -> Floats:
        return log_odds_of(_keeping(now, weight, _KEPT_EXACTLY).factor)

    return _by_blocks(log_odds, root, mean)


def integrated_class_log_odds(mean: Floats, root: Floats) -> Floats:
    """Log-odds of the mean probabilities E[softmax(0, u)], u ~ N(mean, covariance) of each row."""

    def integrated(mean: Floats, weight: Floats, few: Floats) -> Floats:
        return log_odds_of(_Odds.scaled(_exponentials(_with_first(mean)), weight).mean())

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

    def of(self, rows: NDArray[np.generic]) -> _Odds:
        """The odds of some of the rows."""
        weight = self.weight if self.weight.ndim == 2 else self.weight[rows]
        return _Odds(self.factor[rows], weight, self.inverse[rows])

    def mean(self) -> Floats:
        """Mean probability of each class, (rows, K)."""
        n_points = self.inverse.shape[1]
        if self.weight.ndim == 2:
            summed = self.inverse @ self.weight
        else:
            summed = np.matmul(self.inverse[:, None, :], self.weight)[:, 0]
        return np.asarray(self.factor * summed / n_points, dtype=np.float64)

    def products(self) -> Floats:
        """Mean product of the probabilities of two classes, (rows, K, K)."""
        n_points, size = self.inverse.shape[1], self.factor.shape[1]
        if self.weight.ndim == 2:
            pairs = (self.weight[:, :, None] * self.weight[:, None, :]).reshape(n_points, -1)
            summed = ((self.inverse**2) @ pairs).reshape(-1, size, size)
        else:
            shares = self.weight * self.inverse[:, :, None]
            summed = np.matmul(shares.transpose(0, 2, 1), shares)
        both = self.factor[:, :, None] * self.factor[:, None, :]
        return np.asarray(both * summed / n_points, dtype=np.float64)


def _risk(odds: _Odds, matrix: Floats) -> Floats:
    """Mean over the points of the least expected cost."""
    prices = matrix.astype(odds.weight.dtype)
    least = _along(odds.weight, odds.factor * prices[:, 0])
    for column in prices.T[1:]:
        np.minimum(least, _along(odds.weight, odds.factor * column), out=least)
    least *= odds.inverse
    return np.asarray(least.mean(axis=1), dtype=np.float64)


def _keeping(
    log_odds: Floats, weight: Floats, tolerance: float, start: Floats | None = None
) -> _Odds:
    """The odds whose mean probabilities are those at `log_odds`.

    Newton's step v on the convex function is shortened to log(1 + d) / d of it, d the range of v:
    the third derivative is at most the second times the range, and the steps then converge from
    anywhere. `start` holds factors to begin with.
    """
    target = probabilities(log_odds)
    size = target.shape[1]
    point = (
        _first_guess(log_odds, weight)
        if start is None
        else np.log(np.maximum(start, 1e-37), dtype=np.float64)
    )
    odds = _Odds.scaled(_exponentials(point), weight)
    active = np.arange(len(point))
    for _ in range(_ITERATIONS):
        part = odds if len(active) == len(point) else odds.of(active)
        mean = part.mean()
        gap = mean - target[active]
        unkept = _over_classes(np.add, np.abs(gap)) > tolerance
        if not unkept.any():
            break
        if not unkept.all():
            active, gap, mean, part = active[unkept], gap[unkept], mean[unkept], part.of(unkept)
        hessian = -part.products()
        diagonal = np.arange(size)
        # The direction in which nothing changes is filled in; a floor keeps certain rows solvable.
        hessian[:, diagonal, diagonal] += mean + 1e-14
        hessian += mean[:, :, None] * mean[:, None, :]
        step = _solved(hessian, gap)
        reach = _over_classes(np.maximum, step) - _over_classes(np.minimum, step)
        reach = np.maximum(reach, 1e-12)
        point[active] -= step * (np.log1p(reach) / reach)[:, None]
        moved = _Odds.scaled(_exponentials(point[active]), part.weight)
        if len(active) == len(point):
            odds = moved
        else:
            odds.factor[active], odds.inverse[active] = moved.factor, moved.inverse
        # What a short step leaves is of its square.
        active = active[reach > 0.5 * np.sqrt(tolerance)]
        if len(active) == 0:
            break
    return odds


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Solutions (rows, K) of positive definite systems (rows, K, K), by elimination.

    All rows at once: numpy's own solver goes from row to row, which takes longer for few classes.
    """
    if len(matrix[0]) > _FEW_CLASSES:
        return np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])
    size = len(matrix[0])
    system = np.empty((size, size + 1, len(matrix)))
    system[:, :-1], system[:, -1] = matrix.transpose(1, 2, 0), right.T
    for k in range(size):
        system[k, k + 1 :] /= system[k, k]
        for other in range(size):
            if other != k:
                system[other, k + 1 :] -= system[other, k] * system[k, k + 1 :]
    return np.ascontiguousarray(system[:, -1].T)


def _first_guess(log_odds: Floats, weight: Floats) -> Floats:
    """Log-odds of all classes that are exact for two of them and a small variance."""
    centred = _with_first(log_odds)
    size = centred.shape[1]
    centred -= centred.mean(axis=1, keepdims=True)
    spread = np.log(np.maximum(weight, np.exp(-_LARGEST)))
    spread -= spread.mean(axis=-1, keepdims=True)
    variance = 2.0 * np.mean(spread**2, axis=(-2, -1)) * size / (size - 1)
    return np.asarray(centred * np.sqrt(1.0 + np.pi / 8.0 * variance)[..., None])


def _along(weight: Floats, factor: Floats) -> Floats:
    """Sum over the classes at each point, (rows, points)."""
    if weight.ndim == 2:
        return np.asarray(factor @ weight.T)
    return np.asarray(np.matmul(weight, factor[:, :, None])[:, :, 0])


def _by_blocks(
    values: Floats,
    root: Floats,
    function: Callable[[Floats, Floats, Floats], Floats],
    *,
    single: bool = False,
    rough_first: bool = False,
) -> Floats:
    """A function of rows and of the weights of the rule and of the rough one, over blocks.

    Single precision is twice as fast, and enough for a mean over some thousand points. A function
    that begins with the rough rule takes larger blocks, where the points are the same for all rows,
    and divides them itself.
    """
    rules = [normal_points(root.shape[-1], rough) for rough in (False, True)]
    common = root.ndim == 2
    weights = [_exponentials(points @ root.T, single) if common else points for points in rules]
    size = _rows_at_once(weights[1 if rough_first and common else 0])
    if not common:
        size = max(size // (values.shape[1] + 1), 1)
    parts = []
    for first in range(0, max(len(values), 1), size):
        rows = slice(first, first + size)
        of_block = weights
        if not common:
            turned = root[rows].transpose(0, 2, 1)
            of_block = [_exponentials(points @ turned, single) for points in rules]
        parts.append(function(values[rows], *of_block))
    return np.concatenate(parts)


def _rows_at_once(points: Floats) -> int:
    """So many rows that an entry for each of them and each point stays in the cache."""
    return max(_BLOCK // int(points.shape[-2]), 1)


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


def _with_first(log_odds: Floats) -> Floats:
    """The log-odds of all classes, those of the first being zero."""
    return np.concatenate([np.zeros((*log_odds.shape[:-1], 1)), log_odds], axis=-1)

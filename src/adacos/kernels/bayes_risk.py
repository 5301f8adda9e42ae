"""Bayes risk of a decision taken at log-odds u, and its expectation while u is still Gaussian.

For a misclassification matrix C[y, label] the Bayes risk at log-odds u is

    r(u) = min over label of (1 - g(u)) C[0, label] + g(u) C[1, label],    g the sigmoid,

and label 1 is the better one from u* = log((C01 - C00) / (C10 - C11)) on. Before a set of
covariates is acquired u ~ N(mu, sigma^2), and E[r(u)] is what deciding after the acquisition is
expected to cost. Because u is the total log-odds, r is one fixed function for a given matrix.

There may be more decisions than classes, one in each column (`adacos.kernels.decisions`). With
L_0, …, L_m the expected costs of those that are cheapest somewhere, in their order along u,

    r = Σ_j min(L_j-1, L_j) - (L_1 + … + L_m-1),

so that E[r(u)] is a sum over pairs of neighbours less what is linear in g(u).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

from adacos.exceptions import InvalidInputError
from adacos.kernels.decisions import pieces as pieces_of
from adacos.kernels.namespace import expit, floats, like, namespace, whole
from adacos.kernels.ties import reaches

# g(u) ≈ Σ weight · Φ(scale · u), off by at most 7e-7. Scales and weights minimise the largest error
# over all u under Σ weight = 1; the scales are then rounded and the weights fitted once more.
_NORMAL_MIXTURE = (
    (0.0237501771, 0.292),
    (0.2102716041, 0.412),
    (0.4305197464, 0.578),
    (0.2919932870, 0.806),
    (0.0434651854, 1.125),
)

# Error of the polynomial in e^{u - u*} that stands for g on u <= u*, relative to g(u*).
_GAIN_TOLERANCE = 2e-6

# Rows per block: the temporaries of a block stay in the processor's cache.
_BLOCK = 8192

# Standard deviations are moved between these two. Below the first E[r(u)] is r(mu). Above the
# second it has reached its limit (C00 + C11) / 2 within 1e-6 of the costs for |mu| <= 100, and
# the sum over knots would lose digits in proportion to sigma.
_SMALLEST_SIGMA, _LARGEST_SIGMA = 1e-100, 1e8


def decision_threshold(matrix: npt.ArrayLike) -> float:
    """Log-odds u* from which on label 1 is expected to cost no more than label 0."""
    costs = _check_matrix(matrix)
    return float(np.log(costs[0, 1] - costs[0, 0]) - np.log(costs[1, 0] - costs[1, 1]))


def bayes_risk(log_odds: npt.ArrayLike, matrix: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Expected cost of the best label or decision at each log-odds."""
    costs, (columns, _) = np.asarray(matrix, dtype=float), pieces_of(matrix)
    u = floats(log_odds)
    # 1 - g(u) loses all digits for large u; g(-u) does not.
    negative, positive = expit(-u), expit(u)
    each = [negative * costs[0, column] + positive * costs[1, column] for column in columns]
    risk: npt.NDArray[np.float64] = each[0]
    for other in each[1:]:
        risk = namespace(u).minimum(risk, other)
    return risk


def label_of(log_odds: npt.ArrayLike, matrix: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Label or decision of least expected cost at each log-odds; of equal ones the later one."""
    (columns, cuts), u = pieces_of(matrix), floats(log_odds)
    place: npt.NDArray[np.int64] = whole(u > np.inf)
    for cut in cuts:
        place = place + whole(reaches(u, cut))
    if columns == tuple(range(len(columns))):
        return place
    label: npt.NDArray[np.int64] = like(u, np.array(columns))[place]
    return label


def expected_bayes_risk(
    mu: npt.ArrayLike,
    sigma: npt.ArrayLike,
    matrix: npt.ArrayLike,
    *,
    pieces: int | None = None,
    bound: float = 10.0,
    positive: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """E[r(u)] for u ~ N(mu, sigma^2), exact where sigma = 0.

    Parameters
    ----------
    mu, sigma : mean and standard deviation of the log-odds after the acquisition; broadcast.
    matrix : C[y, label], true class first; a column for each label or decision.
    pieces : None for the accurate form, off by at most 7e-7 |C11 - C01| + 2e-6 (C01 - C00) if
        u* <= 0, and by 7e-7 |C10 - C00| + 2e-6 (C10 - C11) otherwise: with free correct labels
        3e-6 of the cheaper error; of more decisions the sum of this over pairs of neighbours, and
        7e-7 of the differences in between. A number for the paper's form: the sigmoid
        interpolated on that many equal pieces of [-bound, bound] and constant outside, off by at
        most max(|C10 - C00|, |C11 - C01|) · max((2 bound / pieces)² / 8 · 0.0962, g(-bound)).
    bound : where the paper's form ends; the accurate form has no use for it.
    positive : E[g(u)] where it is known, of the shape of mu and sigma together; spares the
        accurate form the work.
    """
    columns, cuts = pieces_of(matrix)
    costs = np.asarray(matrix, dtype=float)[:, columns]
    means, deviations = np.broadcast_arrays(
        np.asarray(mu, dtype=float), np.asarray(sigma, dtype=float)
    )
    if not np.all((deviations >= 0) & (deviations < np.inf)):
        raise InvalidInputError(
            "sigma",
            "a standard deviation is finite and not negative",
            sigma,
            "Pass the square root of the variance of the log-odds.",
        )
    if pieces is not None and (pieces < 1 or not 0 < bound < np.inf):
        raise InvalidInputError(
            "pieces, bound",
            "at least one piece on an interval of positive finite length",
            (pieces, bound),
            "Pass for example pieces=40, bound=10, or leave pieces out.",
        )
    m, s = means.ravel(), np.clip(deviations.ravel(), _SMALLEST_SIGMA, _LARGEST_SIGMA)
    share = None if positive is None else np.broadcast_to(positive, means.shape).ravel()
    flat = np.empty(m.size)
    for start in range(0, m.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        if pieces is None:
            known_share = None if share is None else share[block]
            flat[block] = _of_neighbours(m[block], s[block], costs, known_share)
        else:
            flat[block] = _piecewise_linear(m[block], s[block], costs, cuts, pieces, bound)
    risk = flat.reshape(means.shape)
    known = deviations == 0
    risk[known] = bayes_risk(means[known], costs)
    return risk


def _of_neighbours(
    mu: npt.NDArray[np.float64],
    sigma: npt.NDArray[np.float64],
    costs: npt.NDArray[np.float64],
    positive: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.float64]:
    """The accurate form for decisions in their order: a sum over pairs of neighbours."""
    if costs.shape[1] == 2:
        return _accurate(mu, sigma, costs, positive)
    positive = _mean_sigmoid(mu, sigma) if positive is None else positive
    linear = costs[0] + (costs[1] - costs[0]) * positive[:, None]
    if costs.shape[1] == 1:
        return np.asarray(linear[:, 0])
    pairs = [_accurate(mu, sigma, costs[:, j : j + 2], positive) for j in range(len(costs[0]) - 1)]
    return np.asarray(np.sum(pairs, axis=0) - linear[:, 1:-1].sum(axis=1))


def _mean_sigmoid(
    mu: npt.NDArray[np.float64], sigma: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """E[g(u)] by the normal mixture."""
    positive = np.zeros_like(mu)
    for weight, scale in _NORMAL_MIXTURE:
        positive += weight * ndtr(scale * mu / np.sqrt(1 + (scale * sigma) ** 2))
    return positive


def _accurate(
    mu: npt.NDArray[np.float64],
    sigma: npt.NDArray[np.float64],
    costs: npt.NDArray[np.float64],
    positive: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.float64]:
    """Closed form with a normal mixture for E[g] and a polynomial in e^u for the gain of label 0.

    For u* <= 0:  r(u) = C01 + (C11 - C01) g(u) - D (g(u*) - g(u))_+,
    D = (C01 - C00) + (C10 - C11).
    """
    threshold = decision_threshold(costs)
    if threshold > 0:
        # Exchanging the two classes turns u into -u and brings the threshold below zero.
        mu, costs, threshold = -mu, costs[::-1, ::-1], -threshold
        positive = None if positive is None else 1 - positive
    if positive is None:
        positive = _mean_sigmoid(mu, sigma)

    distance = threshold - mu
    a = distance / sigma
    half_density = 0.5 * np.exp(-0.5 * a**2)
    half_variance = 0.5 * sigma**2
    below = np.zeros_like(mu)  # E[g(u) 1(u < u*)]
    for k, weight in enumerate(sigmoid_below(threshold), start=1):
        # With x = kσ - a,  E[e^{k (u - u*)} 1(u < u*)] = e^{k (μ - u*) + k²σ²/2} Φ(-x)
        # = e^{-a²/2} erfcx(x/√2) / 2. The first form overflows for x >> 0, the second for x << 0,
        # where erfcx(-y) = 2 e^{y²} - erfcx(y) leads back to the first: its exponent is then
        # below k (μ - u*) / 2 < 0.
        x = k * sigma - a
        tail = half_density * erfcx(np.abs(x) * np.sqrt(0.5))
        inside = np.exp(np.minimum(k * (k * half_variance - distance), 0))
        below += weight * (np.copysign(tail, x) + inside * (x < 0))

    cut = expit(threshold)
    # (cut - g)_+ is not negative, and below its chord cut (1 - g): the risk stays between that of
    # label 1 and that of knowing the class.
    gain = np.clip(cut * ndtr(a) - below, 0, cut * (1 - positive))
    scale = (costs[0, 1] - costs[0, 0]) + (costs[1, 0] - costs[1, 1])
    risk: npt.NDArray[np.float64] = (
        costs[0, 1] + (costs[1, 1] - costs[0, 1]) * positive - scale * gain
    )
    return risk


@lru_cache(maxsize=256)
def sigmoid_below(threshold: float) -> tuple[float, ...]:
    """Weights of v, v², … whose sum is g(u) for u <= threshold, where v = e^{u - threshold}.

    With W = e^threshold, g(u) = v · W / (1 + W v). Interpolating the second factor at the d
    Chebyshev nodes of [0, 1] leaves the error g(u) T_d(2v - 1) / T_d(-1 - 2/W).
    """
    odds = max(np.exp(threshold), 1e-300)
    degree = np.arccosh(1 / _GAIN_TOLERANCE) / np.arccosh(1 + 2 / odds)
    series = np.polynomial.Chebyshev.interpolate(
        lambda v: odds / (1 + odds * v), int(np.ceil(degree)) - 1, domain=[0, 1]
    )
    return tuple(series.convert(kind=np.polynomial.Polynomial).coef.tolist())


def _piecewise_linear(
    mu: npt.NDArray[np.float64],
    sigma: npt.NDArray[np.float64],
    costs: npt.NDArray[np.float64],
    cuts: tuple[float, ...],
    pieces: int,
    bound: float,
) -> npt.NDArray[np.float64]:
    """The paper's closed form, summed by knots instead of by pieces.

    With the interpolated sigmoid the risk is piecewise linear with a step at each cut, hence
    r(-∞) + Σ_cuts step · 1(u >= cut) + Σ_b (change of slope at b) · (u - b)_+, and
    E[(u - b)_+] = σ (x Φ(x) + φ(x)) with x = (μ - b) / σ.
    """
    knots = np.linspace(-bound, bound, pieces + 1)
    values = expit(knots)
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])

    breaks = np.union1d(knots, cuts)
    of_label = (costs[1] - costs[0])[np.searchsorted(cuts, breaks, side="right")]
    risk_slopes = slopes[np.searchsorted(knots, breaks, side="right")] * of_label

    risk = np.full_like(mu, costs[0, 0] + (costs[1, 0] - costs[0, 0]) * values[0])
    for j, cut in enumerate(cuts):
        wrong, missed = costs[0, j + 1] - costs[0, j], costs[1, j] - costs[1, j + 1]
        step = wrong - (wrong + missed) * np.interp(cut, knots, values)
        risk += step * ndtr((mu - cut) / sigma)
    for knot, change in zip(breaks, np.diff(risk_slopes, prepend=0.0), strict=True):
        x = (mu - knot) / sigma
        density = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
        risk += change * sigma * (x * ndtr(x) + density)
    return risk


def _check_matrix(matrix: npt.ArrayLike) -> npt.NDArray[np.float64]:
    costs = np.asarray(matrix, dtype=float)
    if (
        costs.shape != (2, 2)
        or not np.all(np.isfinite(costs))
        or costs[0, 1] <= costs[0, 0]
        or costs[1, 0] <= costs[1, 1]
    ):
        raise InvalidInputError(
            "matrix",
            "C[y, label] is 2 × 2, finite, and the wrong label costs more than the right one",
            matrix,
            "Put the true class first: [[correct 0, false positive], [false negative, correct 1]].",
        )
    return costs

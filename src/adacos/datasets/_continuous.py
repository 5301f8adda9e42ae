"""Problems with numeric covariates and a known distribution, whose optimum can be computed.

Covariates come from a mixture of products of normal distributions, the class from a known
P(y = 1 | x). Cut into cells, such a problem has a joint distribution in closed form, up to the mean
of P(y = 1 | x) within a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from adacos.typing import Floats
from adacos.validation import choice, integer, real

MIXTURES = ("mixture-2", "mixture-4", "mixture-8", "mixture-16")
ALIENS = ("copula", "trees", "pairs", "switches")
# P(y = 1) of a mixture.
_POSITIVE = 0.4
# Nodes of the factor that covariates share where they depend on each other by a Gaussian copula.
_NODES = 24
# Points at which P(y = 1 | x) is averaged, in all cells together, and places of a quantile table.
_POINTS, _TABLE = 2_000_000, 20_001
# Standard deviation of the log-odds of problems that are no mixtures.
_SPREAD = 2.5


@dataclass(frozen=True, eq=False)
class ContinuousProblem:
    """A known distribution of class and numeric covariates, with covariate costs.

    A latent z is drawn from a mixture of products of normal distributions, P(y = 1) depends on z,
    and covariate i is an increasing function of z_i.

    Parameters
    ----------
    weight : ndarray of shape (n_components,)
        Probability of each component.
    mean : ndarray of shape (n_components, n_covariates)
        Means of z given the component.
    deviation : ndarray of shape (n_components, n_covariates)
        Its standard deviations.
    class_share : ndarray of shape (n_components,) or None
        P(y = 1) given the component; None where `log_odds` gives it.
    log_odds : callable or None
        Log-odds of y = 1 for rows of z; None where `class_share` gives it.
    prices : dict of str to float
        Covariate cost of x0, x1, and so on.
    skewed : bool, default=False
        Whether x1 is the exponential of z_1, x2 its rank, x4 and x5 likewise, and so on.

    Examples
    --------
    >>> from adacos.datasets import make_continuous_problem
    >>> problem = make_continuous_problem("mixture-4", seed=1)
    >>> X, y = problem.sample(1000, seed=0)
    >>> X.shape, problem.cells(4).shape
    ((1000, 5), (2, 4, 4, 4, 4, 4))
    """

    weight: Floats
    mean: Floats
    deviation: Floats
    class_share: Floats | None
    log_odds: Callable[[Floats], Floats] | None
    prices: dict[str, float]
    skewed: bool = False

    def sample(self, n: int, seed: Any) -> tuple[Floats, NDArray[np.int64]]:
        """Draw rows from the distribution.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int or sequence of int
            Seed of the draw.

        Returns
        -------
        X : ndarray of shape (n, n_covariates)
            Covariate values.
        y : ndarray of shape (n,)
            Classes.
        """
        rng = np.random.default_rng(seed)
        component = rng.choice(len(self.weight), size=n, p=self.weight)
        z = rng.normal(self.mean[component], self.deviation[component])
        y = rng.random(n) < self.positive(z)
        return self._shown(z), y.astype(np.int64)

    def positive(self, z: Floats) -> Floats:
        """P(y = 1 | x) of rows.

        Parameters
        ----------
        z : ndarray of shape (n, n_covariates)
            Latent values, which `latent` gives.

        Returns
        -------
        ndarray of shape (n,)
            Probabilities.
        """
        if self.log_odds is not None:
            return np.asarray(expit(self.log_odds(z)))
        assert self.class_share is not None
        log = np.log(self.weight) - np.log(self.deviation).sum(axis=1)
        for j in range(z.shape[1]):
            log = log - 0.5 * ((z[:, j, None] - self.mean[:, j]) / self.deviation[:, j]) ** 2
        share = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(share @ self.class_share / share.sum(axis=1))

    def latent(self, X: Floats) -> Floats:
        """Give the latent values of rows.

        Parameters
        ----------
        X : ndarray of shape (n, n_covariates)
            Covariate values.

        Returns
        -------
        ndarray of shape (n, n_covariates)
            Values of z.
        """
        z = X.copy()
        if self.skewed:
            z[:, 1::3] = np.log(X[:, 1::3])
            for j in range(2, X.shape[1], 3):
                z[:, j] = np.interp(X[:, j], *self._quantiles[j])
        return z

    def edges(self, n_cells: int) -> Floats:
        """Cut each latent covariate into cells of equal probability.

        Parameters
        ----------
        n_cells : int
            Cells of each covariate.

        Returns
        -------
        ndarray of shape (n_covariates, n_cells - 1)
            The inner cuts, in units of z.
        """
        inner = np.arange(1, n_cells) / n_cells
        return np.array([np.interp(inner, *table) for table in self._quantiles])

    def cells(self, n_cells: int) -> Floats:
        """Compute the joint distribution of the class and the covariates cut into cells.

        P(x in a cell) is exact. So is P(y | cell) of a mixture whose classes depend on the
        component; otherwise it is a mean over points drawn in the cell.

        Parameters
        ----------
        n_cells : int
            Cells of each covariate, of equal probability.

        Returns
        -------
        ndarray of shape (2, n_cells, ...)
            P(y, cell), with one axis for each covariate.
        """
        cuts = self.edges(n_cells)
        ends = np.empty((len(self.weight), len(cuts), n_cells + 1))
        ends[..., 0], ends[..., -1] = 0.0, 1.0
        ends[..., 1:-1] = ndtr((cuts - self.mean[..., None]) / self.deviation[..., None])
        share = np.diff(ends, axis=2)
        if self.class_share is not None:
            by_class = np.array([1 - self.class_share, self.class_share]) * self.weight
            return np.stack([_product_sum(weight, share) for weight in by_class])
        mass = _product_sum(self.weight, share)
        positive = mass * self._mean_in_cells(mass.shape)
        return np.stack([mass - positive, positive])

    def _mean_in_cells(self, shape: tuple[int, ...]) -> Floats:
        """Mean of P(y = 1 | x) over points of each cell, spread over the ranks within it."""
        rng = np.random.default_rng(0)
        place = np.indices(shape).reshape(len(shape), -1)
        n_points = max(_POINTS // place.shape[1], 1)
        total = np.zeros(place.shape[1])
        for _ in range(n_points):
            rank = (place + rng.random(place.shape)) / shape[0]
            z = [np.interp(rank[j], *table) for j, table in enumerate(self._quantiles)]
            total += self.positive(np.column_stack(z))
        return np.asarray((total / n_points).reshape(shape))

    @cached_property
    def _quantiles(self) -> list[tuple[Floats, Floats]]:
        """Of each latent covariate probabilities, and the values below which they lie."""
        tables = []
        for mean, deviation in zip(self.mean.T, self.deviation.T, strict=True):
            reach = 6 * deviation
            z = np.linspace((mean - reach).min(), (mean + reach).max(), _TABLE)
            below = ndtr((z[:, None] - mean) / deviation) @ self.weight
            tables.append((below, z))
        return tables

    def _shown(self, z: Floats) -> Floats:
        """Covariates as they are given to a method."""
        X = z.copy()
        if self.skewed:
            X[:, 1::3] = np.exp(z[:, 1::3])
            for j in range(2, z.shape[1], 3):
                X[:, j] = np.interp(z[:, j], *self._quantiles[j][::-1])
        return X


def _product_sum(weight: Floats, share: Floats) -> Floats:
    """Σ_k weight_k Π_j share[k, j, cell of j], with one axis for each j."""
    n = share.shape[2]
    left = weight[:, None]
    for j in range(share.shape[1] - 1):
        left = (left[:, :, None] * share[:, j, None, :]).reshape(len(weight), -1)
    return np.asarray((left.T @ share[:, -1]).reshape((n,) * share.shape[1]))


def make_continuous_problem(
    kind: str, *, n_covariates: int = 5, mean_price: float = 1.0, seed: int = 0
) -> ContinuousProblem:
    """Draw a random problem with numeric covariates.

    "mixture-2", "mixture-4", "mixture-8" and "mixture-16" have 2 to 16 components, half of them of
    each class, in which covariates are independent and normal. With one component for each class
    the log-odds are a sum of functions of one covariate each. The others are no such mixtures:
    covariates have a Gaussian copula of one factor and different marginal distributions, and the
    log-odds are a sum of curves ("copula"), of small trees ("trees") or of products of two
    covariates ("pairs"), or the sign of the first covariate says which others hold the class
    ("switches").

    Parameters
    ----------
    kind : str
        One of these.
    n_covariates : int, default=5
        Number of covariates, at least 3.
    mean_price : float, default=1.0
        Covariate costs are drawn between half and one and a half of it.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    ContinuousProblem
        Distribution and covariate costs.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Examples
    --------
    >>> from adacos.datasets import make_continuous_problem
    >>> X, y = make_continuous_problem("trees").sample(500, seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((500, 5), [0, 1])
    """
    choice("kind", kind, (*MIXTURES, *ALIENS))
    integer("n_covariates", n_covariates, at_least=3)
    real("mean_price", mean_price, at_least=0)
    rng = np.random.default_rng([(*MIXTURES, *ALIENS).index(kind), seed])
    prices = mean_price * rng.uniform(0.5, 1.5, n_covariates)
    named = {f"x{i}": float(price) for i, price in enumerate(prices)}
    if kind in MIXTURES:
        return _mixture(int(kind.rpartition("-")[2]), n_covariates, named, rng)
    nodes, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    loading = rng.uniform(-0.8, 0.8, n_covariates)
    return ContinuousProblem(
        weight / weight.sum(),
        nodes[:, None] * loading,
        np.tile(np.sqrt(1 - loading**2), (_NODES, 1)),
        None,
        _standardised(_MAKERS[kind](n_covariates, rng), n_covariates),
        named,
        skewed=True,
    )


def _mixture(
    n_components: int, p: int, prices: dict[str, float], rng: np.random.Generator
) -> ContinuousProblem:
    each = n_components // 2
    prior = np.repeat([1 - _POSITIVE, _POSITIVE], each)
    weight = prior * rng.dirichlet(np.full(each, 5.0), size=2).ravel()
    # The classes differ in every covariate, and so do the components of a class.
    mean = 0.45 * np.repeat(rng.normal(size=(2, p)), each, axis=0)
    if each > 1:
        mean = mean + 0.9 * rng.normal(size=(n_components, p))
    deviation = rng.uniform(0.6, 1.2, size=(n_components, p))
    return ContinuousProblem(
        weight / weight.sum(), mean, deviation, np.repeat([0.0, 1.0], each), None, prices
    )


def _standardised(log_odds: Callable[[Floats], Floats], p: int) -> Callable[[Floats], Floats]:
    """Log-odds with mean -0.4 and the spread of this module, over independent normal rows."""
    values = log_odds(np.random.default_rng(0).normal(size=(20_000, p)))
    middle, scale = float(values.mean()), _SPREAD / float(values.std())
    return lambda z: scale * (log_odds(z) - middle) - 0.4


def _curves(p: int, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    slope, wave, phase = rng.normal(size=p), rng.normal(size=p), rng.uniform(0, 2 * np.pi, p)
    return lambda z: np.asarray(np.tanh(z) @ slope + np.sin(1.5 * z + phase) @ wave)


def _trees(p: int, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Four trees of three covariates, one threshold for each; it is a decile."""
    chosen = np.array([rng.permutation(p)[:3] for _ in range(4)])
    cut, leaf = ndtri(rng.integers(2, 9, size=(4, 3)) / 10), rng.normal(size=(4, 8))

    def log_odds(z: Floats) -> Floats:
        total = np.zeros(len(z))
        for t in range(4):
            place = (z[:, chosen[t]] > cut[t]) @ np.array([4, 2, 1])
            total += leaf[t, place]
        return total

    return log_odds


def _pairs(p: int, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    own, both = 0.7 * rng.normal(size=p), 0.7 * np.triu(rng.normal(size=(p, p)), 1)

    def log_odds(z: Floats) -> Floats:
        bounded = 2 * np.tanh(z / 2)
        return np.asarray(bounded @ own + ((bounded @ both) * bounded).sum(axis=1))

    return log_odds


def _switches(p: int, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Where the first covariate is high, some others predict the class, elsewhere the rest."""
    half = rng.permutation(p - 1) % 2
    weight = rng.choice([-1.0, 1.0], p - 1) * rng.uniform(0.5, 1.5, p - 1)
    cut = ndtri(rng.integers(3, 8) / 10)

    def log_odds(z: Floats) -> Floats:
        first, rest = z[:, 1:] @ (weight * half), z[:, 1:] @ (weight * (1 - half))
        return np.where(z[:, 0] > cut, first, rest)

    return log_odds


_MAKERS: dict[str, Callable[[int, np.random.Generator], Callable[[Floats], Floats]]] = {
    "copula": _curves,
    "trees": _trees,
    "pairs": _pairs,
    "switches": _switches,
}

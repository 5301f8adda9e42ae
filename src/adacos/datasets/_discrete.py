"""Discrete problems with a known joint distribution, whose optimal policy can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.typing import Floats
from adacos.validation import integer, real


@dataclass(frozen=True)
class DiscreteProblem:
    """A known joint distribution of class and covariates, with covariate costs.

    Parameters
    ----------
    joint : ndarray of shape (2, levels of x0, levels of x1, ...)
        P(y, x); covariate i takes the values 0, 1, and so on.
    prices : dict of str to float
        Covariate cost of x0, x1, and so on.

    Examples
    --------
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> problem.levels, problem.prices
    ((2, 2, 2), {'x0': 1.0, 'x1': 5.0, 'x2': 5.0})
    """

    joint: Floats
    prices: dict[str, float]

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of values of each covariate."""
        return self.joint.shape[1:]

    def sample(self, n: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
        """Draw rows from the distribution.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int
            Seed of the draw.

        Returns
        -------
        X : ndarray of shape (n, n_covariates)
            Covariate values as floats.
        y : ndarray of shape (n,)
            Classes.
        """
        cumulative = np.cumsum(self.joint.ravel())
        draw = np.random.default_rng(seed).random(n) * cumulative[-1]
        cell = np.searchsorted(cumulative, draw, side="right")
        y, *x = np.unravel_index(cell, self.joint.shape)
        return np.column_stack(x).astype(np.float64), y.astype(np.int64)


def make_discrete_problem(
    n_covariates: int,
    *,
    levels: int | Sequence[int] = 2,
    dependence: float = 0.5,
    strength: float = 1.0,
    n_components: int = 3,
    positive: float = 0.4,
    mean_price: float = 1.0,
    seed: int = 0,
) -> DiscreteProblem:
    """Draw a random problem: a mixture in each class, covariates independent given the component.

    Log-probabilities of a covariate's values are normal draws: one common to both classes, one per
    class times `strength`, and one per class and component times `dependence`.

    Parameters
    ----------
    n_covariates : int
        Number of covariates.
    levels : int or sequence of int, default=2
        Number of values of each covariate, or one number for all.
    dependence : float, default=0.5
        Spread between the components of a class; 0 is naive Bayes.
    strength : float, default=1.0
        Spread between the classes.
    n_components : int, default=3
        Components of each class.
    positive : float, default=0.4
        P(y = 1).
    mean_price : float, default=1.0
        Covariate costs are drawn between half and one and a half of it.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    DiscreteProblem
        Distribution and covariate costs.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Examples
    --------
    >>> from adacos.datasets import make_discrete_problem
    >>> problem = make_discrete_problem(4, levels=[2, 2, 3, 2])
    >>> problem.joint.shape, round(float(problem.joint[1].sum()), 6)
    ((2, 2, 2, 3, 2), 0.4)
    """
    integer("n_covariates", n_covariates, at_least=1)
    integer("n_components", n_components, at_least=1)
    for name, value in (("dependence", dependence), ("strength", strength)):
        real(name, value, at_least=0)
    real("positive", positive, above=0, below=1)
    real("mean_price", mean_price, at_least=0)
    sizes = list(levels) if isinstance(levels, Sequence) else [levels] * n_covariates
    if len(sizes) != n_covariates:
        raise InvalidInputError(
            "levels",
            f"must be one number, or one for each of the {n_covariates} covariates",
            levels,
            "For example levels=2 or levels=[2, 3].",
        )
    for size in sizes:
        integer("levels", size, at_least=1)
    rng = np.random.default_rng(seed)
    prices = mean_price * rng.uniform(0.5, 1.5, n_covariates)
    prior = np.array([1 - positive, positive])
    weight = prior[:, None] * rng.dirichlet(np.full(n_components, 5.0), size=2)
    table = weight
    for size in sizes:
        logits = (
            0.5 * rng.normal(size=size)
            + strength * rng.normal(size=(2, 1, size))
            + dependence * rng.normal(size=(2, n_components, size))
        )
        emission = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        table = table[..., None] * emission.reshape(2, n_components, *[1] * (table.ndim - 2), size)
    return DiscreteProblem(
        table.sum(axis=1), {f"x{i}": float(price) for i, price in enumerate(prices)}
    )


def make_value_dependent_problem(
    *,
    noise: float = 0.05,
    n_irrelevant: int = 0,
    prices: tuple[float, float] = (1.0, 5.0),
) -> DiscreteProblem:
    """Make a problem in which the best next covariate depends on the value of the first.

    x0 says which covariate holds the class: y = x1 where x0 = 0 and y = x2 where x0 = 1, each
    wrong with probability `noise`. All covariates are fair coins. Whoever acquires in a fixed
    order pays for a covariate that says nothing on every other row.

    Parameters
    ----------
    noise : float, default=0.05
        P(y differs from the covariate that holds it).
    n_irrelevant : int, default=0
        Number of further fair coins x3, x4, and so on without any meaning.
    prices : tuple of (float, float), default=(1.0, 5.0)
        Covariate cost of x0, and of every other covariate.

    Returns
    -------
    DiscreteProblem
        Distribution and covariate costs.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Examples
    --------
    >>> from adacos.datasets import make_value_dependent_problem
    >>> X, y = make_value_dependent_problem(noise=0.0).sample(1000, seed=0)
    >>> bool((y[X[:, 0] == 0] == X[X[:, 0] == 0, 1]).all())
    True
    """
    real("noise", noise, at_least=0, below=0.5)
    integer("n_irrelevant", n_irrelevant, at_least=0)
    if len(prices) != 2:
        raise InvalidInputError(
            "prices", "must be two covariate costs", prices, "For example prices=(1.0, 5.0)."
        )
    for price in prices:
        real("prices", price, at_least=0)
    y, x0, x1, x2 = np.ogrid[:2, :2, :2, :2]
    deciding = np.where(x0 == 0, x1, x2)
    joint = np.where(y == deciding, 1 - noise, noise) / 8
    shape = joint.shape + (2,) * n_irrelevant
    joint = joint.reshape(*joint.shape, *[1] * n_irrelevant) / 2**n_irrelevant
    names = [f"x{i}" for i in range(3 + n_irrelevant)]
    costs = [prices[0], *[prices[1]] * (2 + n_irrelevant)]
    return DiscreteProblem(
        np.broadcast_to(joint, shape).copy(), dict(zip(names, costs, strict=True))
    )

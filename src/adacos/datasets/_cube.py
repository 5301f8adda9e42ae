"""CUBE and its variant with a context: eight classes, each decided by three of many covariates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.typing import Floats
from adacos.validation import choice, integer, real

N_CLASSES = 8
PRICES = ("equal", "random", "informative")
# Corners of the unit cube, one for each class.
_CORNERS = np.array([[k >> 2 & 1, k >> 1 & 1, k & 1] for k in range(N_CLASSES)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CubeProblem:
    """A known distribution of eight classes and numeric covariates.

    Class k is a corner of the unit cube. The three covariates k, k + 1 and k + 2 of a block are
    normal around the corner's coordinates; all others are uniform between 0 and 1. With several
    contexts there is a block for each, and the first covariate, which says nothing about the class
    by itself, gives the number of the block that is not uniform.

    Parameters
    ----------
    block : int
        Covariates in a block.
    contexts : int
        Number of blocks.
    noise : float
        Standard deviation around the corner.
    prices : dict of str to float
        Cost of each covariate, by name.

    Examples
    --------
    >>> from adacos.datasets import make_cube_problem
    >>> problem = make_cube_problem(contexts=3)
    >>> X, y = problem.sample(1000, seed=0)
    >>> X.shape, len(problem.prices)
    ((1000, 31), 31)
    """

    block: int
    contexts: int
    noise: float
    prices: dict[str, float]

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
            Classes, 0 to 7.
        """
        rng = np.random.default_rng(seed)
        y = rng.integers(0, N_CLASSES, n)
        context = rng.integers(0, self.contexts, n)
        X = rng.random((n, self.block * self.contexts))
        columns = (self.block * context + y)[:, None] + np.arange(3)
        values = rng.normal(_CORNERS[y], self.noise)
        np.put_along_axis(X, columns, values, axis=1)
        if self.contexts > 1:
            X = np.column_stack([context, X])
        return X, y


def make_cube_problem(
    *, contexts: int = 1, noise: float = 0.1, prices: str = "equal", seed: int = 0
) -> CubeProblem:
    """Make CUBE, or with several contexts its variant in which greedy acquisition fails.

    CUBE has twenty covariates, of which ten say something about the class. With contexts there are
    ten covariates in a block for each, and one that names the block. It is written from the
    descriptions in the literature.

    Parameters
    ----------
    contexts : int, default=1
        Number of blocks.
    noise : float, default=0.1
        Standard deviation of the covariates that decide the class.
    prices : {"equal", "random", "informative"}, default="equal"
        Covariate costs: 1 for each; drawn between 1/4 and 4; or 2 for those of a block that
        decide a class and 1 for the others. The context costs 1 unless costs are random.
    seed : int, default=0
        Seed of random costs.

    Returns
    -------
    CubeProblem
        The distribution with its covariate costs.

    Examples
    --------
    >>> from adacos.datasets import make_cube_problem
    >>> problem = make_cube_problem(prices="informative")
    >>> list(problem.prices.values())[8:12]
    [2.0, 2.0, 1.0, 1.0]
    """
    integer("contexts", contexts, at_least=1, at_most=100)
    real("noise", noise, at_least=0.0)
    choice("prices", prices, PRICES)
    informative = N_CLASSES + 2
    block = 2 * informative if contexts == 1 else informative
    names = [f"x{k}" for k in range(block * contexts)]
    deciding = np.arange(block * contexts) % block < informative
    costs = np.where(deciding, 2.0, 1.0) if prices == "informative" else np.ones(len(names))
    if contexts > 1:
        names, costs = ["context", *names], np.append(1.0, costs)
    if prices == "random":
        costs = np.round(4.0 ** np.random.default_rng(seed).uniform(-1, 1, len(names)), 2)
    return CubeProblem(block, contexts, noise, dict(zip(names, costs.tolist(), strict=True)))

"""p(z | x_A): what the covariates still to be acquired will contribute to the log-odds.

For sets S_i ⊂ S_j, z = sum over k in S_j \\ S_i of f_jk(x_k) is regressed on the standardised
values r of A = S_i by Bayesian linear regression:

    z | r, w, s² ~ N(w'[1, r], s²),   w | s² ~ N(0, s² / PRIOR_PRECISION), flat on the intercept,
    s² ~ scaled inverse chi-square(PRIOR_DEGREES, marginal variance of z).

Because z is linear in the basis columns, one factorisation of the Gram matrix of [1, r] gives the
regression of *every* basis column outside A and so, through the coefficients of each model j, all
pairs (i, j) of one i. No label enters, so unlabelled rows can be added to the Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

PRIOR_PRECISION = 1.0
PRIOR_DEGREES = 1.0


@dataclass(frozen=True)
class ConditionalDensity:
    """Moments of z given x_A for one A = S_i and every later set j.

    Attributes
    ----------
    regressors : encoded columns that belong to A.
    weights : regression weights of z on [1, r], one column per later set.
    inverse : inverse of the (prior-augmented) Gram matrix of [1, r].
    covariance : per later set, covariance of the contributions of its covariates outside A, in
        order of acquisition, before the factor for the uncertainty of the weights.
    """

    regressors: Ints
    weights: Floats
    inverse: Floats
    covariance: tuple[Floats, ...]

    def moments(self, r: Floats, available: Bools | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation of z for each row and later set.

        `r` holds the standardised values of the regressors. `available[:, k]` says whether the
        k-th covariate after A can be acquired for a row: one that cannot stays at its conditional
        mean, so only its mean enters.
        """
        design = np.column_stack([np.ones(len(r)), r])
        mean = design @ self.weights
        inflation = 1.0 + np.einsum("ij,ij->i", design @ self.inverse, design)
        if available is None:
            variance = np.array([matrix.sum() for matrix in self.covariance])
            return mean, np.sqrt(np.maximum(variance, 0.0) * inflation[:, None])
        variance = np.empty_like(mean)
        for j, matrix in enumerate(self.covariance):
            seen = available[:, : len(matrix)].astype(np.float64)
            variance[:, j] = np.einsum("ij,ij->i", seen @ matrix, seen)
        return mean, np.sqrt(np.maximum(variance, 0.0) * inflation[:, None])


def fit_densities(
    values: Floats,
    source: Ints,
    columns: Floats,
    group: Ints,
    coefs: Floats,
    order: Ints,
    sizes: Ints,
) -> list[ConditionalDensity]:
    """Densities for every set but the last.

    Parameters
    ----------
    values : standardised encoded values (rows, encoded columns), complete.
    source : covariate of each encoded column.
    columns : centred basis columns (rows, basis columns).
    group : covariate of each basis column.
    coefs : coefficients of the model of each set (sets, basis columns).
    order : covariates in order of acquisition.
    sizes : number of covariates in each set.
    """
    n, n_values = values.shape
    joint = np.column_stack([np.ones(n), values, columns])
    gram = joint.T @ joint
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    by_rank = np.argsort(rank[group], kind="stable")
    column_rank = rank[group][by_rank]
    column_at = 1 + n_values + by_rank
    center = gram[0, column_at] / n
    marginal = gram[np.ix_(column_at, column_at)] / n - np.outer(center, center)
    densities = []
    for i, size in enumerate(sizes[:-1]):
        regressors = np.flatnonzero(rank[source] < size)
        inside = np.append(0, 1 + regressors)
        outside = column_rank >= size
        prior = np.diag(np.append(0.0, np.full(len(regressors), PRIOR_PRECISION)))
        factor = cho_factor(gram[np.ix_(inside, inside)] + prior)
        cross = gram[np.ix_(inside, column_at[outside])]
        solved = cho_solve(factor, cross)
        rest = gram[np.ix_(column_at[outside], column_at[outside])] - cross.T @ solved
        posterior = (rest + PRIOR_DEGREES * marginal[np.ix_(outside, outside)]) / max(
            n + PRIOR_DEGREES - 2.0, 1.0
        )
        later = coefs[i + 1 :][:, by_rank][:, outside]
        starts = np.searchsorted(column_rank[outside], np.arange(size, len(order)))
        densities.append(
            ConditionalDensity(
                regressors=regressors,
                weights=solved @ later.T,
                inverse=cho_solve(factor, np.eye(len(inside))),
                covariance=tuple(
                    _by_covariate(posterior, beta, starts)[: s - size, : s - size]
                    for beta, s in zip(later, sizes[i + 1 :], strict=True)
                ),
            )
        )
    return densities


def _by_covariate(matrix: Floats, beta: Floats, starts: Ints) -> Floats:
    """Covariance of the contributions sum_m beta_m x_m of consecutive blocks of columns."""
    weighted = np.append(matrix * np.outer(beta, beta), np.zeros((1, len(beta))), axis=0)
    weighted = np.append(weighted, np.zeros((len(weighted), 1)), axis=1)
    ends = np.append(starts[1:], len(beta))
    sums = np.add.reduceat(np.add.reduceat(weighted, starts, axis=0), starts, axis=1)
    # reduceat returns the element at `start` for an empty block (a constant covariate).
    present = (ends > starts).astype(np.float64)
    return sums * np.outer(present, present)

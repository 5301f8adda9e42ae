"""p(z | x_A): what the covariates still to be acquired will contribute to the log-odds.

For sets S_i ⊂ S_j, z = sum over k in S_j \\ S_i of f_jk(x_k) is regressed on the standardised
values r of A = S_i by Bayesian linear regression:

    z | r, w, s² ~ N(w'[1, r], s²),   w | s² ~ N(0, s² / PRIOR_PRECISION), flat on the intercept,
    s² ~ scaled inverse chi-square(PRIOR_DEGREES, marginal variance of z).

The flat intercept takes one degree of freedom, so that s² has n + PRIOR_DEGREES - 1 of them left
and its mean is the sum of squares over two fewer.

Because z is linear in the basis columns, one factorisation of the Gram matrix of [1, r] gives the
regression of *every* basis column outside A and so, through the coefficients of each model j, all
pairs (i, j) of one i. Everything is read off one Gram matrix, that of [1, r, basis columns], for
any A. No label enters, so unlabelled rows can be added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from adacos.typing import Floats, Ints

PRIOR_PRECISION = 1.0
PRIOR_DEGREES = 1.0
# Rows whose joint columns are held in memory at once.
_BLOCK = 16384


@dataclass(frozen=True)
class ConditionalDensity:
    """Moments of z given x_A for one A = S_i and every later set j.

    Attributes
    ----------
    regressors : encoded columns that belong to A.
    weights : regression weights of z on [1, r], one column per later set; with K > 2 classes
        (1 + regressors, later sets, K - 1).
    inverse : inverse of the (prior-augmented) Gram matrix of [1, r].
    variance : per later set, variance of z before the factor for the uncertainty of the weights.
        With K > 2 classes z is a vector and this its covariance (later sets, K - 1, K - 1), with
        that factor as it is for an average row.
    """

    regressors: Ints
    weights: Floats
    inverse: Floats
    variance: Floats

    def moments(self, r: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of z for each row and later set.

        `r` holds the standardised values of the regressors.
        """
        design = np.column_stack([np.ones(len(r)), r])
        inflation = 1.0 + np.einsum("ij,ij->i", design @ self.inverse, design)
        variance = np.maximum(self.variance, 0.0)
        return design @ self.weights, np.sqrt(variance * inflation[:, None])

    def means(self, r: Floats) -> Floats:
        """Mean of the vector z for each row and later set, (rows, later sets, K - 1)."""
        design = np.column_stack([np.ones(len(r)), r])
        return np.asarray(np.tensordot(design, self.weights, axes=(1, 0)))


def moment_matrix(values: Floats, columns: Floats, weight: Floats | None = None) -> Floats:
    """Gram matrix of [1, values, columns] over the rows: all that the densities need of the data.

    Parameters
    ----------
    values : standardised encoded values (rows, encoded columns), complete.
    columns : centred basis columns (rows, basis columns).
    weight : how often each row counts; once if it is None.
    """
    size = 1 + values.shape[1] + columns.shape[1]
    gram = np.zeros((size, size))
    for first in range(0, len(values), _BLOCK):
        rows = slice(first, first + _BLOCK)
        ones = np.ones(len(values[rows]))
        joint = np.column_stack([ones, values[rows], columns[rows]])
        if weight is not None:
            joint *= np.sqrt(weight[rows])[:, None]
        gram += joint.T @ joint
    return gram


def fit_densities(
    gram: Floats, source: Ints, group: Ints, coefs: Floats, order: Ints, sizes: Ints
) -> list[ConditionalDensity]:
    """Densities for every set but the last.

    Parameters
    ----------
    gram : the `moment_matrix`.
    source : covariate of each encoded column.
    group : covariate of each basis column.
    coefs : coefficients of the model of each set (sets, basis columns); with K > 2 classes
        (sets, K - 1, basis columns).
    order : covariates in order of acquisition.
    sizes : number of covariates in each set.
    """
    return [density_at(gram, source, group, coefs, order, sizes, i) for i in range(len(sizes) - 1)]


def density_at(
    gram: Floats, source: Ints, group: Ints, coefs: Floats, order: Ints, sizes: Ints, i: int
) -> ConditionalDensity:
    """Density of the i-th set; parameters as for `fit_densities`."""
    size = int(sizes[i])
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    regressors = np.flatnonzero(rank[source] < size)
    columns = np.flatnonzero(rank[group] >= size)
    beta = coefs[i + 1 :][..., columns]
    regression = regress(gram, regressors, 1 + len(source) + columns)
    if beta.ndim == 3:
        inside = np.append(0, 1 + regressors)
        uncertain = float(np.sum(regression.inverse * gram[np.ix_(inside, inside)]) / gram[0, 0])
        return ConditionalDensity(
            regressors=regressors,
            weights=np.tensordot(regression.weights, beta, axes=(1, 2)),
            inverse=regression.inverse,
            variance=(1.0 + uncertain) * (beta @ regression.covariance @ beta.transpose(0, 2, 1)),
        )
    return ConditionalDensity(
        regressors=regressors,
        weights=regression.weights @ beta.T,
        inverse=regression.inverse,
        variance=np.einsum("ij,ij->i", beta @ regression.covariance, beta),
    )


class Regression(NamedTuple):
    """Several columns regressed on [1, r]: weights, and the covariance of what is left over.

    `inverse` is that of the prior-augmented Gram matrix of [1, r].
    """

    weights: Floats
    inverse: Floats
    covariance: Floats


def regress(gram: Floats, regressors: Ints, columns: Ints) -> Regression:
    """Bayesian linear regression of rows `columns` of the moment matrix on [1, r].

    `regressors` counts encoded columns, whose rows in the moment matrix follow that of the 1.
    """
    n = float(gram[0, 0])
    inside = np.append(0, 1 + regressors)
    prior = np.append(0.0, np.full(len(regressors), PRIOR_PRECISION))
    factor = cho_factor(gram[np.ix_(inside, inside)] + np.diag(prior))
    cross = gram[np.ix_(inside, columns)]
    weights = cho_solve(factor, cross)
    own = gram[np.ix_(columns, columns)]
    center = gram[0, columns] / n
    marginal = own / n - np.outer(center, center)
    covariance = (own - cross.T @ weights + PRIOR_DEGREES * marginal) / max(
        n + PRIOR_DEGREES - 3.0, 1.0
    )
    return Regression(weights, cho_solve(factor, np.eye(len(inside))), covariance)

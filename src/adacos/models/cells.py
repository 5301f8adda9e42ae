"""P(y, x) over cells of coded covariates, for planning.

P(x) is that of a mixture of products (`adacos.models.table_mixture`). P(y | x) is a geometric mean
of two models: the mixture, and additive functions with products of pairs (`adacos.models.pairs`).
Their weights are those with the least log-loss of out-of-fold rows. What is believed of every set
x_S is then the sum over the cells that agree with it, so that beliefs are coherent: what is
expected after an acquisition is what is believed before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adacos.kernels.product_mixture import log_joint, log_sum
from adacos.models.pairs import PairedFit, class_probabilities
from adacos.models.set_fits import SetFits
from adacos.models.table_mixture import TableMixture
from adacos.tables.codes import UNKNOWN, Codes
from adacos.typing import Bools, Floats, Ints

# Weights of the mixture in P(y | x) that are compared.
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Smallest probability of a model that is trusted, and its logarithm within codes.
_LEAST, _LEAST_LOG = 1e-9, -50.0


def mixture_weight(mixture: Floats, pairs: Floats, labels: Ints) -> float:
    """Weight of the mixture with which out-of-fold rows' classes are predicted best.

    `mixture` and `pairs` are logarithms of the probabilities of the classes, (rows, classes).
    """
    rows = np.arange(len(labels))
    loss = [-float(pooled_shares(mixture, pairs, w)[rows, labels].mean()) for w in WEIGHTS]
    return WEIGHTS[int(np.argmin(loss))]


def pooled_shares(mixture: Floats, pairs: Floats, weight: float) -> Floats:
    """Logarithm of the normalised geometric mean of class probabilities, classes last."""
    scores = weight * mixture + (1 - weight) * pairs
    return np.asarray(scores - log_sum(scores)[..., None])


def pooled_joint(joint: Floats, pairs: Floats, weight: float, class_share: Floats) -> Floats:
    """P(y, cell) with P(cell) of the mixture's `joint`, (classes, codes, …).

    `pairs` are logarithms of class probabilities in the cells, classes last. Each class has the
    share in all that it has among the rows, `class_share`.
    """
    mass = joint.sum(axis=0)
    log = np.moveaxis(np.log(np.maximum(joint, np.finfo(float).tiny)), 0, -1)
    shares = np.moveaxis(np.exp(pooled_shares(log, pairs, weight)), -1, 0)
    pooled = shares * mass
    each_class = pooled.reshape(len(joint), -1).sum(axis=1)
    pooled *= (class_share / each_class).reshape(-1, *(1,) * mass.ndim)
    return np.asarray(pooled / pooled.sum())


def pair_shares(fits: SetFits, model: PairedFit, codes: Ints, sizes: Ints) -> Floats:
    """Logarithm of the class probabilities at the mean of each cell, (codes, …, classes).

    `codes` (rows, covariates) are those of the prepared rows, missing values filled in.
    """
    basis, n, n_axes = fits.basis, len(fits.y), len(sizes)
    standardised = fits.standardised[:n]
    log_odds = model.intercept.reshape(-1, *(1,) * n_axes)
    means: dict[int, tuple[int, Floats]] = {}
    for k in range(n_axes):
        member = np.where(codes[:, k] == np.arange(sizes[k])[:, None], fits.weight, 0.0)
        member /= np.maximum(member.sum(axis=1), np.finfo(float).tiny)[:, None]
        own = basis.group == k
        effect = model.coef[:, own] @ (member @ fits.columns[:n, own]).T
        log_odds = log_odds + _along(effect, (k,), n_axes)
        for column in np.flatnonzero(basis.source == k).tolist():
            means[column] = k, member @ standardised[:, column]
    products = model.products
    for i, (first, second) in enumerate(zip(products.first, products.second, strict=True)):
        (one, values), (other, times) = sorted(
            (means[int(first)], means[int(second)]), key=lambda place: place[0]
        )
        product = (np.outer(values, times) - products.mean[i]) / products.scale[i]
        added = model.weights[:, i, None, None] * product
        log_odds = log_odds + _along(added, (one, other), n_axes)
    shape = (len(model.intercept), *sizes.tolist())
    likely = class_probabilities(np.moveaxis(np.broadcast_to(log_odds, shape), 0, -1))
    return log_shares_of(likely)


def log_shares_of(likely: Floats) -> Floats:
    """Logarithms of class probabilities, none of which is zero."""
    return np.asarray(np.log(np.maximum(likely, _LEAST)))


def _along(values: Floats, axes: tuple[int, ...], n_axes: int) -> Floats:
    """Values (classes, along some axes) with all axes, for broadcasting."""
    shape = [1] * n_axes
    for axis, size in zip(axes, values.shape[1:], strict=True):
        shape[axis] = size
    return values.reshape(len(values), *shape)


@dataclass(frozen=True, eq=False)
class WithinCodes:
    """What values say of the class beyond their codes, by a mixture of products.

    Attributes
    ----------
    mixture : the joint model.
    weight : its weight in P(y | x).
    """

    mixture: TableMixture
    weight: float

    def says_no_more(self, codes: Codes, covariate: int) -> bool:
        """Whether each code of a covariate is one value."""
        reading = self.mixture.reading
        levels = len(reading.levels[covariate])
        return not len(reading.knots[covariate]) and levels == codes.sizes[covariate]

    def statistics(self, encoded: Floats) -> Floats:
        """What is read of encoded rows."""
        return self.mixture.reading.statistics(encoded)

    def more_log_odds(
        self, statistics: Floats, values: Ints, acquired: Bools, codes: Codes, planned: Ints
    ) -> Floats:
        """Log-odds given what was acquired less those given the codes of the planned covariates.

        `statistics` are those of the rows, `values` their codes.
        """
        mixture = self.mixture
        exact = mixture.log_joint(statistics, acquired)
        component = np.tile(mixture.log_weight, (len(values), 1))
        for k in planned.tolist():
            rows = np.flatnonzero(acquired[:, k] & (values[:, k] != UNKNOWN))
            component[rows] += self._log_shares(codes, k)[values[rows, k]]
        coded = log_joint(component, mixture.class_share)
        more = self.weight * (_log_odds(exact) - _log_odds(coded))
        return np.asarray(more[:, 0] if more.shape[1] == 1 else more)

    def _log_shares(self, codes: Codes, covariate: int) -> Floats:
        """Logarithm of the probability of each code given the component, (codes, components)."""
        if covariate not in self._found:
            shares = self.mixture.code_shares(codes, covariate)
            self._found[covariate] = np.log(np.maximum(shares.T, np.finfo(float).tiny))
        return self._found[covariate]

    @cached_property
    def _found(self) -> dict[int, Floats]:
        return {}


def _log_odds(log: Floats) -> Floats:
    """Of the later classes against the first, from logarithms of which none is too small."""
    bounded = np.maximum(log - log.max(axis=1, keepdims=True), _LEAST_LOG)
    return np.asarray(bounded[:, 1:] - bounded[:, :1])

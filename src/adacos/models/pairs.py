"""What rows are likely to be when covariates act in pairs, by models that did not see them.

The additive model of all covariates with the products of pairs besides, ridge-penalised with the
strength that predicts rows left out best; one of the strengths leaves nothing of the products. No
policy decides by it: it is a judge of policies that is not blind to what additive models cannot
say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos.kernels.irls import curvature, fit_folds, fold_grams, newton, objective
from adacos.kernels.strengths import central_strengths
from adacos.models.set_fits import SCREENING_TOLERANCE, SetFits

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Strengths of the products to choose from; the middle one is where all begin.
PAIR_GRID = (3.0, 10.0, 30.0, 100.0, 300.0, 1e9)
# Of more products, those are kept whose gradient at the additive model is largest.
MOST_PAIRS = 150
# Standard deviation below which a product does not vary.
_NO_SPREAD = 1e-9


def leave_out_by_pairs(fits: SetFits, fold: Ints) -> Floats:
    """Log-odds of the prepared rows, each by a model without its fold."""
    n, basis = len(fits.y), fits.basis
    standardised = (fits.complete[:n] - basis.mean) / basis.scale
    additive = np.hstack([np.ones((n, 1)), fits.columns[:n]])
    penalty = np.append(0.0, central_strengths(basis.linear)[basis.term])
    fit = newton(additive, fits.y, fits.weight, penalty, tolerance=SCREENING_TOLERANCE)
    products = _products(standardised, basis.source, fits.weight)
    gradient = np.abs((fits.weight * (fits.y - expit(fit.log_odds))) @ products)
    products = products[:, np.sort(np.argsort(-gradient, kind="stable")[:MOST_PAIRS])]
    n_pairs = products.shape[1]
    design = np.hstack([additive, products])
    penalties = np.column_stack([np.append(penalty, np.full(n_pairs, s)) for s in PAIR_GRID])
    middle = penalties[:, len(PAIR_GRID) // 2]
    fit = newton(design, fits.y, fits.weight, middle, tolerance=SCREENING_TOLERANCE)
    row_curvature = curvature(fit.log_odds, fits.weight)
    grams = fold_grams(design, row_curvature, fold, int(fold.max()) + 1)
    _, held_out = fit_folds(design, fits.y, fits.weight, fold, penalties, fit.coef, grams)
    loss = [objective(log_odds, fits.y, fits.weight) for log_odds in held_out.T]
    return np.asarray(held_out[:, int(np.argmin(loss))])


def leave_out_probabilities(fits: SetFits, fold: Ints) -> Floats:
    """P(second class) of the prepared rows, each by a model without its fold.

    Of more than two classes that of each, (rows, K): every class is set against all others, and
    the probabilities are brought to a sum of 1.
    """
    if fits.n_classes == 2:
        return np.asarray(expit(leave_out_by_pairs(fits, fold)))
    each = [
        leave_out_by_pairs(replace(fits, y=(fits.y == k).astype(np.float64)), fold)
        for k in range(fits.n_classes)
    ]
    shares = expit(np.stack(each, axis=1))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _products(standardised: Floats, source: Ints, weight: Floats) -> Floats:
    """Products of columns of different covariates, of mean zero and variance one."""
    first, second = np.triu_indices(len(source), 1)
    apart = source[first] != source[second]
    products = standardised[:, first[apart]] * standardised[:, second[apart]]
    products -= np.average(products, axis=0, weights=weight)
    spread = np.sqrt(np.average(products**2, axis=0, weights=weight))
    varies = spread > _NO_SPREAD
    return np.asarray(products[:, varies] / spread[varies])

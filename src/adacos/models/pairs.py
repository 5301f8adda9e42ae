"""Models in which covariates act in pairs: products of two next to the additive functions.

    log-odds(x) = intercept + Σ_k f_k(x_k) + Σ_kl w_kl x_k x_l,

x standardised, with indicators for categories. Products are ridge-penalised, with the strength that
predicts out-of-fold rows best; one of the strengths leaves nothing of them. Where there are too
many, those of the first covariates of a given order are taken. They must not be chosen by how they
go with the class: rows would have a say in the models that leave them out. The policies along a set
sequence are additive; these models judge branches, and say what rows are likely to be where all
orders of questions are weighed (`adacos.models.cells`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos.kernels.irls import curvature, fit_folds, fold_grams, newton, objective
from adacos.kernels.strengths import CENTER, blend_strengths, central_strengths
from adacos.models.additive import FAMILIES
from adacos.models.basis import AdditiveBasis
from adacos.models.set_fits import SCREENING_TOLERANCE, SetFits
from adacos.typing import Floats, Ints

# Strengths of the products to choose from; the middle one is where all begin.
PAIR_GRID = (3.0, 10.0, 30.0, 100.0, 300.0, 1e9)
# Most products, which are no more than rows, and most entries of their Gram matrix times rows.
MOST_PAIRS, MOST_WORK = 600, 1e9
# Standard deviation below which a product does not vary.
_NO_SPREAD = 1e-9


class Products(NamedTuple):
    """Products of standardised encoded columns of different covariates.

    Attributes
    ----------
    first, second : (products,) the encoded columns.
    mean, scale : (products,) by which a product is centred and divided.
    """

    first: Ints
    second: Ints
    mean: Floats
    scale: Floats

    def columns(self, basis: AdditiveBasis, encoded: Floats) -> Floats:
        """The products of rows."""
        standardised = basis.standardise(encoded)
        products = standardised[:, self.first] * standardised[:, self.second]
        return np.asarray((products - self.mean) / self.scale)

    def some(self, kept: Ints) -> Products:
        """Some of the products."""
        return Products(self.first[kept], self.second[kept], self.mean[kept], self.scale[kept])


def varying_products(
    basis: AdditiveBasis, encoded: Floats, weight: Floats, asked: NDArray[np.bool_]
) -> Products:
    """All products that vary of columns of covariates asked for, of mean zero and variance one.

    `asked` (covariates, covariates) is symmetric and False for a covariate with itself.
    """
    first, second = np.triu_indices(len(basis.source), 1)
    apart = asked[basis.source[first], basis.source[second]]
    first, second = first[apart], second[apart]
    plain = Products(first, second, np.zeros(len(first)), np.ones(len(first)))
    columns = plain.columns(basis, encoded)
    mean = np.average(columns, axis=0, weights=weight)
    scale = np.sqrt(np.average((columns - mean) ** 2, axis=0, weights=weight))
    return Products(first, second, mean, scale).some(np.flatnonzero(scale > _NO_SPREAD))


class PairedFit(NamedTuple):
    """A model of all covariates with products of pairs.

    Of two classes it has one function, of more one for each class against all others.

    Attributes
    ----------
    intercept, coef, weights : (functions,), (functions, basis columns), (functions, products).
    products : the products, of which there may be none.
    out_of_fold : (rows, classes) probabilities by models without the row's fold.
    """

    intercept: Floats
    coef: Floats
    weights: Floats
    products: Products
    out_of_fold: Floats


def paired_fit(fits: SetFits, order: Ints) -> PairedFit:
    """The model of all covariates, with the products that predict out-of-fold rows better.

    Where there are too many, `order` says which covariates come first.
    Several classes are fitted one by one: a multinomial fit of as many columns takes several times
    as long.
    """
    products = _chosen_products(fits, order)
    n, basis = len(fits.y), fits.basis
    columns = products.columns(basis, fits.complete[:n])
    design = np.hstack([np.ones((n, 1)), fits.columns[:n], columns])
    # One term for all products of two covariates.
    pair = np.sort(basis.source[np.stack([products.first, products.second])], axis=0)
    _, number = np.unique(pair[0] * len(basis.kinds) + pair[1], return_inverse=True)
    n_terms = len(basis.linear)
    term = np.concatenate([[-1], basis.term, n_terms + number])
    linear = np.append(basis.linear, np.ones(int(number.max(initial=-1)) + 1, dtype=np.bool_))
    each = [
        blend_strengths(
            design, y, fits.weight, fits.fold, term, linear, families=FAMILIES["common"]
        )
        for y in _against_others(fits)
    ]
    coef, end = np.stack([fit.coef for fit in each]), 1 + len(basis.group)
    out_of_fold = np.stack([fit.out_of_fold_log_odds for fit in each], axis=1)
    return PairedFit(
        coef[:, 0], coef[:, 1:end], coef[:, end:], products, class_probabilities(out_of_fold)
    )


def class_probabilities(log_odds: Floats) -> Floats:
    """Probability of every class (…, classes) from the functions of a `PairedFit` (…, functions).

    Those of three or more classes are brought to a sum of 1.
    """
    shares = expit(log_odds)
    if shares.shape[-1] == 1:
        return np.concatenate([1 - shares, shares], axis=-1)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def out_of_fold_by_pairs(fits: SetFits, fold: Ints, order: Ints) -> Floats:
    """Log-odds of the prepared rows, each by a model without its fold."""
    products = _of_the_first(fits, order)
    held_out, loss = _by_strength(fits, fits.y, products, fold)
    return np.asarray(held_out[:, int(np.argmin(loss))])


def out_of_fold_probabilities(fits: SetFits, fold: Ints, order: Ints) -> Floats:
    """P(second class) of the prepared rows, each by a model without its fold.

    With three or more classes that of each, (rows, K): every class is set against all others, and
    the probabilities are brought to a sum of 1.
    """
    if fits.n_classes == 2:
        return np.asarray(expit(out_of_fold_by_pairs(fits, fold, order)))
    each = [out_of_fold_by_pairs(replace(fits, y=y), fold, order) for y in _against_others(fits)]
    return class_probabilities(np.stack(each, axis=1))


def _against_others(fits: SetFits) -> list[Floats]:
    """Each class against all others as labels 0 and 1; of two classes the second alone."""
    if fits.n_classes == 2:
        return [fits.y]
    return [(fits.y == k).astype(np.float64) for k in range(fits.n_classes)]


def _chosen_products(fits: SetFits, order: Ints) -> Products:
    """Products with the strength that predicts best, as columns to which that of a linear part
    applies; none where that leaves nothing of them."""
    labels = _against_others(fits)
    products = _of_the_first(fits, order)
    loss = np.sum([_by_strength(fits, y, products, fits.fold)[1] for y in labels], axis=0)
    best = int(np.argmin(loss))
    if best == len(PAIR_GRID) - 1:
        return products.some(np.empty(0, dtype=np.intp))
    return products._replace(scale=products.scale * np.sqrt(PAIR_GRID[best] / CENTER[1]))


def _of_the_first(fits: SetFits, order: Ints) -> Products:
    """Products of all covariates, or of the first of an order that have not too many.

    A covariate that would bring too many is passed over.
    """
    basis, n = fits.basis, len(fits.y)
    width = np.bincount(basis.source, minlength=len(basis.kinds))
    most = min(MOST_PAIRS, n, int(np.sqrt(MOST_WORK / n)))
    asked = np.zeros((len(width), len(width)), dtype=np.bool_)
    inside, columns, products = np.zeros(len(width), dtype=np.bool_), 0, 0
    for k in order.tolist():
        if products + columns * width[k] <= most:
            asked[k, inside] = asked[inside, k] = inside[k] = True
            products, columns = products + columns * width[k], columns + width[k]
    return varying_products(basis, fits.complete[:n], fits.weight, asked)


def _additive(fits: SetFits) -> tuple[Floats, Floats]:
    """Design of the additive model of all covariates, and its penalties at central strengths."""
    n, basis = len(fits.y), fits.basis
    design = np.hstack([np.ones((n, 1)), fits.columns[:n]])
    return design, np.append(0.0, central_strengths(basis.linear)[basis.term])


def _by_strength(fits: SetFits, y: Floats, products: Products, fold: Ints) -> tuple[Floats, Floats]:
    """Out-of-fold log-odds (rows, strengths) with products of each strength, and their losses."""
    additive, penalty = _additive(fits)
    columns = products.columns(fits.basis, fits.complete[: len(y)])
    design = np.hstack([additive, columns])
    penalties = np.column_stack(
        [np.append(penalty, np.full(columns.shape[1], strength)) for strength in PAIR_GRID]
    )
    middle = penalties[:, len(PAIR_GRID) // 2]
    fit = newton(design, y, fits.weight, middle, tolerance=SCREENING_TOLERANCE)
    grams = fold_grams(design, curvature(fit.log_odds, fits.weight), fold, int(fold.max()) + 1)
    _, held_out = fit_folds(design, y, fits.weight, fold, penalties, fit.coef, grams)
    loss = np.array([objective(log_odds, y, fits.weight) for log_odds in held_out.T])
    return held_out, loss

"""The additive model of a covariate set as a function of arrays.

    log-odds(x) = intercept + sum_i f_i(x_i)

with f_i a penalised spline for a numeric covariate, a slope for a two-valued one and one effect
per category for a categorical one. The set sequence is built from it. With three or more classes
every class has log-odds of its own: the multinomial model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adacos.kernels.class_strengths import (
    blend_class_strengths,
    fixed_class_strengths,
    straight_classes,
)
from adacos.kernels.irls import newton
from adacos.kernels.spans import spanned
from adacos.kernels.strengths import StrengthMixture, blend_strengths, fixed_strengths
from adacos.models.basis import AdditiveBasis
from adacos.models.monotone import monotone_cone, refuse_of_classes
from adacos.typing import Bools, Floats, Ints

FAMILIES = {
    "auto": ("common", "per_covariate"),
    "common": ("common",),
    "per_covariate": ("per_covariate",),
}


class AdditiveFit(NamedTuple):
    """An additive model of some covariates.

    `coef` runs over all columns of the basis, zero outside the set; `strengths` over all terms,
    NaN outside the set. With K > 2 classes `intercept`, `coef` and each row of
    `out_of_fold_log_odds` have one number for each later class against the first: shapes (K - 1,),
    (K - 1, columns) and (rows, K - 1). `used` says which candidates of the strengths were blended,
    None where they were given, `mixture` what was found for them on the terms of the set (with
    K > 2 classes its `coefs` have the shape (candidates, folds + 1, K - 1, columns of the design)),
    and `chosen_at` for how many covariates they were last chosen among all.
    """

    intercept: Any
    coef: Floats
    strengths: Floats
    out_of_fold_log_odds: Floats
    out_of_fold_loss: float
    used: Bools | None = None
    chosen_at: int = 0
    mixture: StrengthMixture | None = None


def fit_additive(
    columns: Floats,
    basis: AdditiveBasis,
    covariates: Ints,
    y: Floats,
    weight: Floats,
    fold: Ints | None,
    *,
    families: tuple[str, ...] = FAMILIES["auto"],
    strengths: Floats | None = None,
    start: AdditiveFit | None = None,
    tolerance: float = 1e-12,
    shrink: Floats | None = None,
    candidates: Bools | None = None,
    n_classes: int = 2,
    directions: Ints | None = None,
) -> AdditiveFit:
    """Fit the model of these covariates on `columns` = basis.transform(training rows).

    The strengths are found by out-of-fold log-likelihood over `fold` unless they are given; then
    the tolerance of `newton` applies and `fold` may be None. `start` is the model of a similar set.
    `shrink` multiplies the log-odds of each row, whose missing values are integrated out.
    `candidates` limits the strengths to choose from to those that a similar set used. With
    `directions` the functions of covariates rise (1) or fall (-1), of two classes.
    """
    if n_classes > 2:
        refuse_of_classes(directions, n_classes)
        more = (families, strengths, start, tolerance, shrink, candidates)
        return _fit_classes(columns, basis, covariates, y, weight, fold, n_classes, *more)
    design, inside, term, terms = set_design(columns, basis, covariates, shrink)
    cone = monotone_cone(basis, inside, directions)
    if start is None:
        begin = _straight(design, y, weight, np.append(True, basis.linear[basis.term[inside]]))
    else:
        begin = np.append(start.intercept, start.coef[inside])
    if strengths is not None or len(terms) == 0:
        given = np.empty(0) if strengths is None else strengths[terms]
        fit = fixed_strengths(
            design, y, weight, fold, term, given, start=begin, tolerance=tolerance, cone=cone
        )
    else:
        assert fold is not None
        fit = blend_strengths(
            design,
            y,
            weight,
            fold,
            term,
            basis.linear[terms],
            families=families,
            start=begin,
            candidates=candidates,
            cone=cone,
        )
    coef = np.zeros(len(basis.group))
    coef[inside] = fit.coef[1:]
    chosen = np.full(len(basis.linear), np.nan)
    chosen[terms] = fit.strengths
    return AdditiveFit(
        float(fit.coef[0]),
        coef,
        chosen,
        fit.out_of_fold_log_odds,
        fit.out_of_fold_loss,
        fit.used,
        len(covariates) if candidates is None or start is None else start.chosen_at,
        fit.mixture,
    )


def set_design(
    columns: Floats, basis: AdditiveBasis, covariates: Ints, shrink: Floats | None
) -> tuple[Floats, Bools, Ints, Ints]:
    """Design of a set, its basis columns, the term of each column of the design, and the terms."""
    inside = np.isin(basis.group, covariates)
    terms = np.flatnonzero(np.isin(basis.term_group, covariates))
    renumbered = np.full(len(basis.linear), -1, dtype=np.intp)
    renumbered[terms] = np.arange(len(terms))
    design = np.ones((len(columns), 1 + int(inside.sum())))
    # Much faster than a mask over the columns.
    design[:, 1:] = columns.take(np.flatnonzero(inside), axis=1)
    if shrink is not None:
        design *= shrink[:, None]
    return design, inside, np.append(-1, renumbered[basis.term[inside]]), terms


def _fit_classes(
    columns: Floats,
    basis: AdditiveBasis,
    covariates: Ints,
    y: Floats,
    weight: Floats,
    fold: Ints | None,
    n_classes: int,
    families: tuple[str, ...],
    strengths: Floats | None,
    start: AdditiveFit | None,
    tolerance: float,
    shrink: Floats | None,
    candidates: Bools | None,
) -> AdditiveFit:
    """`fit_additive` for three or more classes."""
    design, inside, term, terms = set_design(columns, basis, covariates, shrink)
    labels = y.astype(np.intp)
    design, term, directions = spanned(design, term)
    if start is None:
        linear = np.append(basis.linear[terms], True)[term]
        begin = straight_classes(design, labels, weight, linear, n_classes)
    else:
        begin = np.column_stack([start.intercept, start.coef[:, inside]]) @ directions
    if strengths is not None or len(terms) == 0:
        given = np.empty(0) if strengths is None else strengths[terms]
        fit = fixed_class_strengths(
            design, labels, weight, fold, term, given, start=begin, tolerance=tolerance
        )
    else:
        assert fold is not None
        fit = blend_class_strengths(
            design,
            labels,
            weight,
            fold,
            term,
            basis.linear[terms],
            families=families,
            start=begin,
            candidates=candidates,
        )
    coef = np.zeros((n_classes - 1, len(basis.group)))
    coef[:, inside] = fit.coef @ directions[1:].T
    chosen = np.full(len(basis.linear), np.nan)
    chosen[terms] = fit.strengths
    return AdditiveFit(
        fit.coef[:, 0],
        coef,
        chosen,
        fit.out_of_fold_log_odds,
        fit.out_of_fold_loss,
        fit.used,
        len(covariates) if candidates is None or start is None else start.chosen_at,
        mixture_back(fit.mixture, directions),
    )


def mixture_back(mixture: StrengthMixture | None, directions: Floats) -> StrengthMixture | None:
    """A mixture of three or more classes on the columns of a set, see `spanned`."""
    return mixture and mixture._replace(coefs=mixture.coefs @ directions.T)


def _straight(design: Floats, y: Floats, weight: Floats, linear: Bools) -> Floats:
    """Coefficients of the straight model: cheap, with a curvature near that of the optimum."""
    begin = np.zeros(design.shape[1])
    penalty = np.ones(int(linear.sum()))
    begin[linear] = newton(design[:, linear], y, weight, penalty, tolerance=1e-4).coef
    return begin

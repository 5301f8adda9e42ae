"""Quick models of a set sequence, with which policies are compared while a tree is grown.

Strengths are central instead of chosen and there are no folds: whoever compares keeps rows out
by giving them the weight 0. The order of the sets is greedy: next comes the covariate whose
standardised columns have the largest gradient norm per cost and root of their number, the one that
a cost-weighted group lasso would let enter once the set before is fitted.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from adacos.families import family
from adacos.kernels.irls import newton
from adacos.kernels.multinomial import contrasts, newton_classes, residuals, to_reference
from adacos.kernels.strengths import central_strengths
from adacos.models.density import fit_densities, moment_matrix
from adacos.models.followed import FollowedRows
from adacos.models.sequence_model import SequenceModel
from adacos.models.sequences import SetSequence
from adacos.models.set_fits import SCREENING_TOLERANCE, SetFits
from adacos.typing import Bools, Floats

# Standard deviation below which a column does not vary.
_NO_SPREAD = 1e-9


def quick_model(
    fits: SetFits, weight: Floats, prices: Floats, first: Bools, missing: Floats
) -> SequenceModel:
    """Set sequence that begins with the covariates in `first`, its models and densities.

    `fits` are prepared rows without unlabelled ones, `weight` counts them, `prices` are the costs
    of the covariates that are not in `first`, and `missing` is what missing values add to the
    moment matrix for one unit of weight. With three or more classes these rows say what comes of
    continuing.
    """
    basis, kept = fits.basis, weight > 0
    columns, y, count = fits.columns[kept], fits.y[kept], weight[kept]
    order = [int(k) for k in np.flatnonzero(first)]
    left = [int(k) for k in np.flatnonzero(~first)]
    n_first, total = len(order), count.sum()
    mean = count @ columns / total
    spread = np.sqrt(np.maximum(count @ columns**2 / total - mean**2, 0.0))
    scale = np.where(spread > _NO_SPREAD, spread, np.inf)
    toll = prices * np.sqrt(np.maximum(np.bincount(basis.group, minlength=len(prices)), 1))
    penalty = central_strengths(basis.linear)[basis.term]
    ones = np.ones((len(y), 1))
    later = family(fits.n_classes).later
    start, coefs, intercepts = np.zeros((*later, 1 + len(basis.group))), [], []
    while True:
        inside = np.flatnonzero(np.isin(basis.group, order))
        design = np.hstack([ones, columns[:, inside]])
        place = np.append(0, 1 + inside)
        strengths = np.append(0.0, penalty[inside])
        fitted, residual = central_fit(design, y, count, strengths, start[..., place])
        start[..., place] = fitted
        own = to_reference(start, contrasts(fits.n_classes)) if later else start
        intercepts.append(own[..., 0].copy())
        coefs.append(own[..., 1:].copy())
        if not left:
            break
        gradient = residual @ columns - np.multiply.outer(residual.sum(axis=-1), mean)
        squares = np.atleast_2d((gradient / scale) ** 2).sum(axis=0)
        norm = np.sqrt(np.bincount(basis.group, squares, minlength=len(prices)))
        following = left[int(np.argmax(norm[left] / toll[left]))]
        order.append(following)
        left.remove(following)
    sequence = SetSequence(np.array(order, dtype=np.intp), n_first)
    coef = np.stack(coefs)
    moments = moment_matrix(fits.standardised[kept], columns, count)
    moments += total * missing
    densities = fit_densities(
        moments, basis.source, basis.group, coef, sequence.order, sequence.sizes
    )
    followed = None
    if later:
        log_odds = np.stack(intercepts) + np.tensordot(columns, coef, axes=(1, 2))
        followed = FollowedRows(log_odds, y, count)
    return SequenceModel(
        basis=basis,
        joint=fits.joint,
        sequence=sequence,
        intercepts=np.array(intercepts),
        coefs=coef,
        densities=tuple(densities),
        moments=moments,
        y=y,
        weight=count,
        out_of_fold_log_odds=np.full((len(y), len(sequence), *later), np.nan),
        followed=followed,
    )


def central_fit(
    design: Floats, y: Floats, weight: Floats, penalty: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """Coefficients, and weighed residuals (rows,); of K > 2 classes both as contrasts (K - 1, …).

    `start` says how many classes there are.
    """
    if start.ndim == 1:
        fit = newton(design, y, weight, penalty, start, tolerance=SCREENING_TOLERANCE)
        return fit.coef, weight * (y - expit(fit.log_odds))
    basis, number = contrasts(len(start) + 1), y.astype(np.intp)
    many = newton_classes(
        design, number, weight, penalty, basis, start, tolerance=SCREENING_TOLERANCE
    )
    return many.coef, -weight * residuals(many.log_odds, number, basis)

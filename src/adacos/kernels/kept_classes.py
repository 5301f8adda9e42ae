"""Fits of three or more classes at kept strengths, to a design with further terms.

The candidates of the strengths are those of a fit to the other columns, without each fold and with
all rows (`adacos.kernels.strengths.StrengthMixture`). To new terms a common candidate gives its
strengths. The candidate per covariate gives those of highest restricted likelihood, found again
without each fold, all else being where it was. Every fit continues from its own coefficients, so
that what a fold keeps was found without it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrs

from adacos.kernels.appended import strengths_of_quadratic
from adacos.kernels.class_lockstep import (
    ClassRows,
    advance_classes,
    hessian_factors,
    joint_gram,
    objectives,
)
from adacos.kernels.class_strengths import class_blend
from adacos.kernels.multinomial import class_gram
from adacos.kernels.strengths import Blend, StrengthMixture, penalty_of
from adacos.typing import Bools, Floats, Ints


def keep_class_strengths(
    rows: ClassRows, term: Ints, mixture: StrengthMixture, new: Bools
) -> Blend:
    """Blend of candidates whose strengths are kept; `new` says which terms have none yet.

    `mixture` holds all terms and columns: for the new terms where the search for strengths begins,
    and coefficients of zero. Its coefficients are those of each later class against the first,
    shape (candidates, folds + 1, K - 1, P).
    """
    left_out = np.arange(rows.n_folds + 1)
    strengths, start = mixture.strengths.copy(), rows.basis[1:].T @ mixture.coefs
    factors: list[Floats] = []
    which, penalties = [], []
    for c, per_covariate in enumerate(mixture.per_covariate):
        gram = joint_gram(rows, start[c, -1])
        if per_covariate:
            strengths[:, c] = _searched(rows, term, strengths[:, c], new, start[c], gram)
        own = np.stack([penalty_of(term, column) for column in strengths[:, c].T])
        which.append(len(factors) + (left_out if per_covariate else 0 * left_out))
        factors += hessian_factors(rows, gram, own if per_covariate else own[:1])
        penalties.append(own)
    coefs = advance_classes(
        rows,
        np.tile(left_out, len(start)),
        np.concatenate(penalties),
        start.reshape(-1, *start.shape[2:]),
        factors,
        np.concatenate(which),
    )
    return class_blend(rows, strengths, mixture.per_covariate, coefs.reshape(start.shape))


def _searched(
    rows: ClassRows, term: Ints, begin: Floats, new: Bools, coef: Floats, gram: Floats
) -> Floats:
    """Strengths (terms, folds + 1) with those of the new terms by restricted likelihood.

    `gram` is the joint Hessian of the loss of all rows, from which that of each fold is taken. The
    information about new columns, once the others follow, is the inverse of their block of the
    inverse Hessian, less their penalty.
    """
    design, _, weight, fold, basis = rows
    left_out, size = np.arange(rows.n_folds + 1), len(basis) - 1
    columns = np.flatnonzero(np.append(new, False)[term])
    of_term = np.tile(np.unique(term[columns], return_inverse=True)[1], size)
    joint = (np.arange(size)[:, None] * len(term) + columns).ravel()
    penalties = np.stack([penalty_of(term, column) for column in begin.T])
    score = -objectives(rows, left_out, penalties, coef)[1].reshape(len(coef), -1)[:, joint]
    units = np.zeros((len(gram), len(joint)), order="F")
    units[joint, np.arange(len(joint))] = 1.0
    log_odds, strengths = coef[-1] @ design.T, begin.copy()
    for f in left_out.tolist():
        own = fold == f
        rest = gram - class_gram(design[own], log_odds[:, own], weight[own], basis)
        factor = hessian_factors(rows, rest, penalties[f : f + 1])[0]
        inverse = dpotrs(factor, units, lower=0)[0][joint]
        schur = np.linalg.inv(inverse) - np.diag(np.tile(penalties[f, columns], size))
        strengths[new, f] = strengths_of_quadratic(schur, score[f], begin[new, f], of_term)
    return strengths

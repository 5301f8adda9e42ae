"""Models of the sets late in a long sequence: strengths kept, the next covariate appended.

Choosing strengths takes a hundred fits of a set. Late in a long sequence sets differ by one
covariate in many, so that the choice is made again only when they have grown by a factor
(`adacos.models.set_fits`). In between a set keeps the candidates of the strengths that the last
choice used, with all rows and without each fold; their weights in the blend are found for every
set. To the new covariate a common candidate gives its strengths, and the candidate per covariate
those of highest restricted likelihood. What a fold keeps was found without it, so out-of-fold
log-odds stay honest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.kernels.appended import KeptFits, NewColumns, append_columns, kept_fits
from adacos.kernels.class_strengths import keep_class_strengths
from adacos.kernels.irls import held_out_log_odds
from adacos.kernels.multinomial import contrasts
from adacos.kernels.multinomial_fits import ClassRows
from adacos.kernels.spans import spanned
from adacos.kernels.strengths import StrengthMixture, blend_shares, central_strengths, row_loss
from adacos.models.additive import AdditiveFit, mixture_back, set_design
from adacos.models.basis import AdditiveBasis
from adacos.typing import Bools, Floats, Ints


class KeptSet(NamedTuple):
    """Fits of one set: those without fold f of every candidate follow those without fold f - 1.

    `order` is the basis column behind each column of their design but the first, `terms` the term
    behind each row of the strengths of `mixture`; `shrink` multiplied the rows of the design.
    """

    fits: KeptFits
    order: Ints
    terms: Ints
    mixture: StrengthMixture
    shrink: Floats | None


def fit_kept(
    columns: Floats,
    basis: AdditiveBasis,
    covariates: Ints,
    y: Floats,
    weight: Floats,
    fold: Ints,
    start: AdditiveFit,
    before: KeptSet | None,
    shrink: Floats | None = None,
) -> tuple[AdditiveFit, KeptSet]:
    """Model of a set that contains that of `start`, at its strengths; see `fit_additive`.

    `before` are the fits behind `start`, None where its strengths were chosen. Their factors serve
    as they are although `shrink` may have been another one: gradients follow it.
    """
    old = _order(basis, start) if before is None else before.order
    new = np.setdiff1d(np.flatnonzero(np.isin(basis.group, covariates)), old)
    order = np.append(old, new)
    design = np.ones((len(y), 1 + len(order)))
    design[:, 1:] = columns.take(order, axis=1)
    if shrink is not None:
        design *= shrink[:, None]
    if before is None:
        before = _of_chosen(design[:, : 1 + len(old)], basis, y, weight, fold, start)
    mixture = before.mixture
    terms, place = np.unique(basis.term[new], return_inverse=True)
    begin = _begin(mixture, basis.linear[before.terms], basis.linear[terms])
    _, n_candidates, n_fold_fits = mixture.strengths.shape
    search = np.tile(mixture.per_covariate, n_fold_fits)
    added = NewColumns(place, begin.reshape(len(terms), -1), search)
    fits, found = append_columns(before.fits, design, added, y, weight, fold)
    strengths = found.reshape(len(terms), n_fold_fits, n_candidates).transpose(0, 2, 1)
    mixture = mixture._replace(strengths=np.concatenate([mixture.strengths, strengths]))
    kept = KeptSet(fits, order, np.append(before.terms, terms), mixture, shrink)
    return _blended(kept, design, basis, y, weight, fold, start), kept


def fit_kept_classes(
    columns: Floats,
    basis: AdditiveBasis,
    covariates: Ints,
    y: Floats,
    weight: Floats,
    fold: Ints,
    start: AdditiveFit,
    shrink: Floats | None = None,
) -> AdditiveFit:
    """`fit_kept` for three or more classes."""
    before = start.mixture
    assert before is not None
    design, inside, term, terms = set_design(columns, basis, covariates, shrink)
    design, term, directions = spanned(design, term)
    new = np.isnan(start.strengths[terms])
    n_candidates, n_fits, size, _ = before.coefs.shape
    strengths = np.empty((len(terms), n_candidates, n_fits))
    strengths[~new] = before.strengths
    linear = basis.linear[terms]
    strengths[new] = _begin(before, linear[~new], linear[new]).transpose(0, 2, 1)
    coefs = np.zeros((n_candidates, n_fits, size, 1 + int(inside.sum())))
    coefs[..., np.append(True, ~np.isnan(start.strengths[basis.term[inside]]))] = before.coefs
    rows = ClassRows(design, y.astype(np.intp), weight, fold, contrasts(size + 1))
    mixture = StrengthMixture(strengths, before.per_covariate, coefs @ directions)
    fit = keep_class_strengths(rows, term, mixture, new)
    coef = np.zeros((size, len(basis.group)))
    coef[:, inside] = fit.coef @ directions[1:].T
    chosen = np.full(len(basis.linear), np.nan)
    chosen[terms] = fit.strengths
    return AdditiveFit(
        fit.coef[:, 0],
        coef,
        chosen,
        fit.out_of_fold_log_odds,
        fit.out_of_fold_loss,
        start.used,
        start.chosen_at,
        mixture_back(fit.mixture, directions),
    )


def _blended(
    kept: KeptSet,
    design: Floats,
    basis: AdditiveBasis,
    y: Floats,
    weight: Floats,
    fold: Ints,
    start: AdditiveFit,
) -> AdditiveFit:
    """The model that the fits make together."""
    n_candidates = len(kept.mixture.per_covariate)
    coefs = kept.fits.coef.reshape(design.shape[1], -1, n_candidates).transpose(0, 2, 1)
    held_out = held_out_log_odds(design, fold, coefs)
    shares = blend_shares(held_out, y, weight, fold)
    out_of_fold = np.einsum("ij,ij->i", held_out, shares[fold])
    blended = coefs[:, :, -1] @ shares[-1]
    coef = np.zeros(len(basis.group))
    coef[kept.order] = blended[1:]
    strengths = np.full(len(basis.linear), np.nan)
    strengths[kept.terms] = np.exp(np.log(kept.mixture.strengths[:, :, -1]) @ shares[-1])
    return AdditiveFit(
        float(blended[0]),
        coef,
        strengths,
        out_of_fold,
        float(weight @ row_loss(out_of_fold, y)),
        start.used,
        start.chosen_at,
        StrengthMixture(
            kept.mixture.strengths[np.argsort(kept.terms)],
            kept.mixture.per_covariate,
            coefs[np.append(0, 1 + np.argsort(kept.order))],
        ),
    )


def _order(basis: AdditiveBasis, start: AdditiveFit) -> Ints:
    """Basis columns of a model."""
    return np.flatnonzero(np.isin(basis.term, np.flatnonzero(~np.isnan(start.strengths))))


def _of_chosen(
    design: Floats, basis: AdditiveBasis, y: Floats, weight: Floats, fold: Ints, start: AdditiveFit
) -> KeptSet:
    """Fits of the set of `start` at the strengths that were chosen for it."""
    mixture = start.mixture
    assert mixture is not None
    terms, order = np.flatnonzero(~np.isnan(start.strengths)), _order(basis, start)
    _, n_candidates, n_fold_fits = mixture.strengths.shape
    by_fit = mixture.strengths.transpose(0, 2, 1).reshape(len(terms), -1)
    penalties = np.vstack(
        [np.zeros(by_fit.shape[1]), by_fit[np.searchsorted(terms, basis.term[order])]]
    )
    without_fold = np.repeat(np.arange(n_fold_fits), n_candidates)
    candidate = np.tile(np.arange(n_candidates), n_fold_fits)
    begin = mixture.coefs.transpose(0, 2, 1).reshape(1 + len(order), -1)
    fits = kept_fits(design, y, weight, fold, without_fold, candidate, penalties, begin)
    return KeptSet(fits, order, terms, mixture, None)


def _begin(mixture: StrengthMixture, linear: Bools, new_linear: Bools) -> Floats:
    """Strengths of new terms, (terms, folds + 1, candidates): those of their kind so far.

    The candidate per covariate has no common one, and begins its search in the middle. So does a
    common one as long as it has met no term of the kind.
    """
    _, n_candidates, n_fits = mixture.strengths.shape
    middle = central_strengths(new_linear)[:, None, None]
    begin = np.broadcast_to(middle, (len(new_linear), n_fits, n_candidates)).copy()
    common = ~mixture.per_covariate
    for kind in (True, False):
        if (linear == kind).any():
            known = mixture.strengths[np.argmax(linear == kind)][common].T
            begin[np.ix_(new_linear == kind, np.arange(n_fits), common)] = known
    return begin

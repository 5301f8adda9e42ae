"""Fitted models at another prevalence, or as the outcomes of other rows ask for.

Nothing is fitted again: `adacos.kernels.prior_shift` says how log-odds change, and by how much more
often training rows of each kind count. Under label shift this is exact for the models of all sets,
for what training rows show (costs, what continuing saved), for a joint model of classes and
covariates, and so for plans. What the covariates still to be acquired are expected to contribute is
approximated: the regressions of the training table are kept, though their standard deviations
depend on the shares of the classes too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adacos.kernels.prior_shift import LogOddsChange
from adacos.models.cells import WithinCodes
from adacos.models.density import ConditionalDensity
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Floats


def class_shares(model: SequenceModel) -> Floats:
    """Share of each class among the training rows, by their weights."""
    size = model.intercepts[0].size + 1
    counts = np.bincount(model.y.astype(np.intp), model.weight, size)
    return np.asarray(counts / counts.sum())


def shifted_model(model: SequenceModel, change: LogOddsChange) -> SequenceModel:
    """A sequence model after a change: models of all sets, rows and densities."""
    out_of_fold = model.out_of_fold_log_odds
    weight = _reweighted(change, out_of_fold, model.y, model.weight)
    followed = model.followed
    if followed is not None:
        own = _reweighted(change, followed.log_odds, followed.y, followed.weight)
        followed = replace(followed, log_odds=change.of(followed.log_odds), weight=own)
    return replace(
        model,
        intercepts=change.of(model.intercepts),
        coefs=change.slope * model.coefs,
        densities=tuple(_scaled(density, change.slope) for density in model.densities),
        weight=weight,
        out_of_fold_log_odds=change.of(out_of_fold),
        followed=followed,
    )


def shifted_joint(joint: Floats, change: LogOddsChange) -> Floats:
    """P(y, x), with the class first, at the shares of a change with slope 1."""
    factors = change.factors.reshape(-1, *(1,) * (joint.ndim - 1))
    return np.asarray(joint * factors / np.sum(joint * factors))


def shifted_within(within: WithinCodes, change: LogOddsChange) -> WithinCodes:
    """The mixture behind a plan at the shares of a change with slope 1.

    Σ_k w_k π_k(y) f_k(x) s'_y / s_y is again a mixture, with other weights and class shares.
    """
    mixture = within.mixture
    share = mixture.class_share * change.factors
    total = share.sum(axis=1)
    log_weight = mixture.log_weight + np.log(total)
    log_weight -= np.log(np.sum(np.exp(log_weight)))
    moved = replace(mixture, log_weight=log_weight, class_share=share / total[:, None])
    return replace(within, mixture=moved)


def _scaled(density: ConditionalDensity, slope: float) -> ConditionalDensity:
    """The density of contributions that are `slope` times as large."""
    if slope == 1.0:
        return density
    weights, variance = slope * density.weights, slope**2 * density.variance
    return replace(density, weights=weights, variance=variance)


def _reweighted(change: LogOddsChange, log_odds: Floats, y: Floats, weight: Floats) -> Floats:
    """Weights of rows after a change, as many rows in all as before."""
    last = log_odds[:, -1]
    found = weight * change.row_factors(last, y.astype(np.intp))
    return np.asarray(found * (weight.sum() / max(float(found.sum()), 1e-300)))

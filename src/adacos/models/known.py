"""The sequence model of rows of which some covariates are known from the start, at no cost.

With K known, a row walks the sets S_j ∪ K. The log-odds of such a set are

    u_j(x_{S_j}) + m_k(x_{S_j ∪ K}) - m_k(x_{S_j}),

where u_j is the model of the largest S_j inside it, S_k the smallest set that holds K, and
m_k(x_A) the log-odds of model k with what lies outside A integrated out: the contribution z of
those covariates is N(mean, s²) given x_A (see `adacos.models.density`), and E[g(u + z)] is close to
g(κ (u + mean)) with κ = 1 / sqrt(1 + π s² / 8). The difference says what knowing K changes; errors
of integrating out are alike in both terms and cancel, and once K lies inside S_j it is zero.
Everything is linear in the basis columns, so the result is a `SequenceModel` like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from adacos.kernels.class_risk import pair_variance, pairwise_shrink
from adacos.models.basis import AdditiveBasis
from adacos.models.density import ConditionalDensity, density_at, regress
from adacos.models.sequence_model import SequenceModel
from adacos.models.sequences import SetSequence
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Bools, Floats, Ints


def given_known(model: SequenceModel, known: Bools) -> SequenceModel:
    """The model of rows whose covariates in the mask `known` are known; its S_1 contains them."""
    order, n_free = model.sequence.order, model.sequence.n_free
    first = known[order] | (np.arange(len(order)) < n_free)
    if not first[n_free:].any():
        return model
    pattern = first.tobytes()
    derived = model.derived.find(pattern)
    return model.derived.keep(pattern, _derive(model, first)) if derived is None else derived


def _derive(model: SequenceModel, first: Bools) -> SequenceModel:
    """The model whose S_1 holds the covariates of the sequence's order in the mask `first`."""
    order, n_free = model.sequence.order, model.sequence.n_free
    sequence = SetSequence(np.append(order[first], order[~first]), int(first.sum()))
    stages = original_stages(model.sequence, sequence)
    holds_known = int(np.flatnonzero(first)[-1]) + 1 - n_free
    intercepts, coefs = [], []
    for i, stage in enumerate(stages):
        intercept, coef = model.intercepts[stage], model.coefs[stage]
        if stage < holds_known:
            with_known = _integrated(model, holds_known, sequence.set(i))
            without = _integrated(model, holds_known, model.sequence.set(stage))
            intercept = intercept + with_known[0] - without[0]
            coef = coef + with_known[1] - without[1]
        intercepts.append(intercept)
        coefs.append(coef)
    stacked = np.stack(coefs)
    followed = model.followed
    if followed is not None:
        # Models without a row were made of the sequence's own sets only.
        own, log_odds = int(np.sum(stages < holds_known)), followed.log_odds[:, stages]
        if model.many_classes:
            log_odds = _in_another_order(followed.log_odds, model.sequence, sequence)
        followed = replace(followed, log_odds=log_odds, first=own)
    return replace(
        model,
        sequence=sequence,
        intercepts=np.array(intercepts),
        coefs=stacked,
        densities=_Densities(model.moments, model.basis, stacked, sequence),
        out_of_fold_log_odds=model.out_of_fold_log_odds[:, stages],
        followed=followed,
    )


def _in_another_order(log_odds: Floats, original: SetSequence, sequence: SetSequence) -> Floats:
    """Log-odds of rows at the sets of `sequence`, each covariate saying what it said before."""
    added = np.zeros((len(log_odds), len(original.order), *log_odds.shape[2:]))
    added[:, original.order[original.n_free :]] = np.diff(log_odds, axis=1)
    moved = added[:, sequence.order].cumsum(axis=1)[:, sequence.n_free - 1 :]
    return np.asarray(log_odds[:, :1] + moved)


def original_stages(original: SetSequence, sequence: SetSequence) -> Ints:
    """For each set of `sequence`, the number of the largest set of `original` inside it."""
    inside = sequence.masks()[:, original.order]
    leading = np.where(inside.all(axis=1), len(original.order), inside.argmin(axis=1))
    return np.asarray(leading - original.n_free, dtype=np.intp)


def _integrated(model: SequenceModel, stage: int, inside: Ints) -> tuple[Any, Floats]:
    """Intercept and coefficients of one model with the covariates not `inside` integrated out.

    The variance of vectors of log-odds is that between two classes, on average.
    """
    basis, coefs = model.basis, np.atleast_2d(model.coefs[stage])
    own = np.isin(basis.group, inside)
    outside = np.flatnonzero(~own & (coefs != 0).any(axis=0))
    intercept, kept = model.intercepts[stage], np.where(own, model.coefs[stage], 0.0)
    if len(outside) == 0:
        return intercept, kept
    beta = coefs[:, outside]
    regressors = np.flatnonzero(np.isin(basis.source, inside))
    regression = regress(model.moments, regressors, 1 + len(basis.source) + outside)
    weights = regression.weights @ beta.T
    moved = [_on_columns(basis, regressors, column[1:]) for column in weights.T]
    shift = weights[0] + [constant for constant, _ in moved]
    slope = np.reshape([slope for _, slope in moved], kept.shape)
    shrink = pairwise_shrink(pair_variance(beta @ regression.covariance @ beta.T))
    return shrink * (intercept + shift.reshape(intercept.shape)), shrink * (kept + slope)


def _on_columns(basis: AdditiveBasis, regressors: Ints, weights: Floats) -> tuple[float, Floats]:
    """weights · r as a constant plus coefficients on the centred basis columns.

    The linear columns of a covariate are its standardised value, or its indicators as they are.
    """
    shift, slope = 0.0, np.zeros(len(basis.group))
    linear = np.flatnonzero(basis.linear[basis.term])
    for covariate in np.unique(basis.source[regressors]):
        own = basis.source[regressors] == covariate
        columns = linear[basis.group[linear] == covariate]
        weight, center = weights[own], basis.center[columns]
        if len(columns) == 0:
            continue
        if basis.kinds[covariate] == CATEGORICAL:
            encoded = regressors[own]
            weight = weight / basis.scale[encoded]
            center = center - basis.mean[encoded]
        slope[columns] = weight
        shift += float(weight @ center)
    return shift, slope


class _Densities(Sequence[ConditionalDensity]):
    """Densities of a derived sequence, each computed when a row first comes to its set."""

    def __init__(
        self, moments: Floats, basis: AdditiveBasis, coefs: Floats, sequence: SetSequence
    ) -> None:
        self._moments, self._basis, self._coefs, self._sequence = moments, basis, coefs, sequence
        self._computed: dict[int, ConditionalDensity] = {}

    def __len__(self) -> int:
        return len(self._sequence) - 1

    @overload
    def __getitem__(self, i: int) -> ConditionalDensity: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[ConditionalDensity]: ...
    def __getitem__(self, i: int | slice) -> ConditionalDensity | Sequence[ConditionalDensity]:
        if isinstance(i, slice):
            return [self[number] for number in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        if i not in self._computed:
            self._computed[i] = density_at(
                self._moments,
                self._basis.source,
                self._basis.group,
                self._coefs,
                self._sequence.order,
                self._sequence.sizes,
                i,
            )
        return self._computed[i]

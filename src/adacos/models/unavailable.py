"""Rows of which some covariates are unavailable: what the others can still say about them.

Of the contributions T to the log-odds of a later model that are unknown now, acquiring B makes some
known, those of B itself, and says something about the rest that it is correlated with. By the law
of total variance Var(T | now) = Var(E[T | B]) + E[Var(T | B)]: the first part is what may be
learned, the second stays unknown and draws the log-odds towards zero. Contributions are split into
what is linear in the normal score of a covariate, where learning is that of a joint normal
distribution, and the rest, which only the covariate itself reveals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.kernels.gaussian import MissingPattern
from adacos.models.missing import contribution_moments, fill_missing, polarised, rows_without
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Bools, Floats, Ints

# Added to correlations that are inverted: the indicators of a category are linearly dependent.
_JITTER = 1e-6
# Rows whose loadings are multiplied at once: they stay in the processor's cache.
_ROWS_AT_ONCE = 512


class Learnable(NamedTuple):
    """Contributions that are not known at a set, for rows and later sets.

    Attributes
    ----------
    mean : of the contributions of what is not acquired of the later set.
    learned : variance of what acquiring its available covariates will say about them.
    unknown : variance that stays.
    """

    mean: Floats
    learned: Floats
    unknown: Floats


def learnable(model: SequenceModel, encoded: Floats, available: Bools, stage: int) -> Learnable:
    """What rows that have the available covariates of S_stage can learn from the later sets.

    With three or more classes there are several functions of each later set, see `polarised`.
    """
    basis, joint, sequence = model.basis, model.joint, model.sequence
    acquired = available & sequence.masks()[stage]
    filled = fill_missing(
        joint,
        np.where(acquired[:, basis.source], encoded, np.nan),
        np.ones(len(basis.source), dtype=np.bool_),
        numeric_values=False,
    )
    coefs, sets = model.coefs[stage + 1 :], sequence.masks()[stage + 1 :]
    n_sets, coefs = len(coefs), polarised(coefs.reshape(len(coefs), *model.vector_shape))
    sets = np.repeat(sets, len(coefs) // max(n_sets, 1), axis=0)
    size = (len(encoded), len(coefs))
    result = Learnable(np.zeros(size), np.zeros(size), np.zeros(size))
    loading = np.zeros((len(encoded), len(basis.source), len(coefs)))
    variance = np.zeros((len(encoded), available.shape[1], len(coefs)))
    for k, rows in rows_without(joint, filled).items():
        moments = contribution_moments(joint, basis, coefs, filled, rows, k)
        result.mean[rows] += moments.mean
        loading[np.ix_(rows, np.flatnonzero(basis.source == k))] = moments.loading
        variance[rows, k] = moments.variance
    upcoming = sequence.order[sequence.sizes[stage] :]
    for pattern in filled.patterns:
        scores = _Scores.of(pattern, basis.source, upcoming, sets)
        for first in range(0, len(pattern.rows), _ROWS_AT_ONCE):
            rows = pattern.rows[first : first + _ROWS_AT_ONCE]
            result.learned[rows], result.unknown[rows] = _split(
                scores, loading[np.ix_(rows, pattern.missing)], variance[rows], available[rows]
            )
    return result


class _Scores(NamedTuple):
    """Scores that rows do not know, the same for all rows with one pattern.

    Attributes
    ----------
    correlation : of the scores.
    source : covariate of each.
    to_come : positions of those after the set, in order.
    inside : (to come, later sets) membership; sets are nested, so that they come first.
    """

    correlation: Floats
    source: Ints
    to_come: Ints
    inside: Bools

    @classmethod
    def of(cls, pattern: MissingPattern, source: Ints, upcoming: Ints, sets: Bools) -> _Scores:
        """Those of a pattern of missing values; the `upcoming` covariates can be acquired."""
        deviation = np.sqrt(np.maximum(np.diag(pattern.covariance), 1e-300))
        own = source[pattern.missing]
        to_come = np.concatenate([np.flatnonzero(own == k) for k in upcoming])
        return cls(
            pattern.covariance / np.outer(deviation, deviation),
            own,
            to_come,
            sets[:, own[to_come]].T,
        )

    def weights(self, available: Bools) -> tuple[Floats, Ints]:
        """What each score to come adds to what those before it say, by pattern.

        `available` (rows, to come) says which of them can be acquired; the others say nothing.
        Gives (patterns, to come, scores), and the pattern of each row.
        """
        _, first, which = np.unique(
            np.packbits(available, axis=1), axis=0, return_index=True, return_inverse=True
        )
        there = available[first]
        cross = self.correlation[self.to_come] * there[:, :, None]
        inner = cross[:, :, self.to_come] * there[:, None, :]
        diagonal = np.arange(len(self.to_come))
        inner[:, diagonal, diagonal] = np.where(there, inner[:, diagonal, diagonal] + _JITTER, 1.0)
        return np.linalg.solve(np.linalg.cholesky(inner), cross), which.ravel()


def _split(
    scores: _Scores, loading: Floats, variance: Floats, available: Bools
) -> tuple[Floats, Floats]:
    """Variance that is learned and variance that stays, for rows of one pattern and later sets.

    Parameters
    ----------
    scores : what the rows do not know.
    loading : (rows, scores, sets) how far the log-odds move with each score.
    variance : (rows, covariates, sets) of the contribution of each covariate.
    available : (rows, covariates) what can be acquired.
    """
    of = scores.source
    total = np.einsum("rej,rej->rj", scores.correlation @ loading, loading)
    together = scores.correlation * (of[:, None] == of)
    member = np.equal.outer(np.arange(variance.shape[1]), of).astype(np.float64)
    linear = member @ ((together @ loading) * loading)
    curved = np.maximum(variance - linear, 0.0)
    total += curved.sum(axis=1)
    learned = np.einsum("rk,rkj->rj", available.astype(np.float64), curved)
    if len(scores.to_come):
        weights, which = scores.weights(available[:, of[scores.to_come]])
        moved = weights[which] @ loading
        learned += np.einsum("rbj,rbj,bj->rj", moved, moved, scores.inside.astype(np.float64))
    learned = np.minimum(learned, total)
    return learned, total - learned

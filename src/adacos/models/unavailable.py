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

from adacos.kernels.gaussian import MissingPatterns
from adacos.models.missing import contribution_moments, fill_missing, polarised, rows_without
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Bools, Floats, Ints

# Added to correlations that are inverted: the indicators of a category are linearly dependent.
_JITTER = 1e-6


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
    for patterns in filled.patterns:
        scores = _Scores.of(patterns, basis.source, upcoming, sets)
        number = patterns.missing.shape[1]
        for part in patterns.parts(number * (number + len(coefs))):
            rows, columns = part.rows, scores.columns[part.which]
            own = loading[rows[:, None], columns], variance[rows], available[rows]
            result.learned[rows], result.unknown[rows] = _split(scores, part.which, *own)
    return result


class _Scores(NamedTuple):
    """Scores that rows do not know, by pattern; those to come are first, in order.

    Attributes
    ----------
    columns, source : (patterns, scores) encoded column and covariate of each.
    correlation : (patterns, scores, scores).
    to_come : (patterns, scores) whether it comes after the set.
    inside : (patterns, scores, later sets) membership; sets are nested, so that they come first.
    """

    columns: Ints
    source: Ints
    correlation: Floats
    to_come: Bools
    inside: Bools

    @classmethod
    def of(cls, patterns: MissingPatterns, source: Ints, upcoming: Ints, sets: Bools) -> _Scores:
        """Those of patterns of missing values; the `upcoming` covariates can be acquired."""
        rank = np.full(sets.shape[1], len(upcoming))
        rank[upcoming] = np.arange(len(upcoming))
        order = np.argsort(rank[source[patterns.missing]], axis=1, kind="stable")
        columns = np.take_along_axis(patterns.missing, order, axis=1)
        each = np.arange(len(order))[:, None, None]
        covariance = patterns.covariance[each, order[:, :, None], order[:, None]]
        deviation = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 1e-300))
        own = source[columns]
        return cls(
            columns,
            own,
            covariance / (deviation[:, :, None] * deviation[:, None]),
            rank[own] < len(upcoming),
            sets.T[own],
        )

    def weights(self, which: Ints, available: Bools) -> tuple[Floats, Ints]:
        """What each score to come adds to what those before it say, by pattern and availability.

        `available` (rows, scores) says which scores can be acquired; the others say nothing.
        Gives (cases, scores, scores), and the case of each row.
        """
        cases = np.column_stack([which, np.packbits(available, axis=1)])
        _, first, case = np.unique(cases, axis=0, return_index=True, return_inverse=True)
        there = available[first]
        cross = self.correlation[which[first]] * there[:, :, None]
        inner = cross * there[:, None]
        diagonal = np.arange(there.shape[1])
        inner[:, diagonal, diagonal] = np.where(there, inner[:, diagonal, diagonal] + _JITTER, 1.0)
        return np.linalg.solve(np.linalg.cholesky(inner), cross), case.ravel()


def _split(
    scores: _Scores, which: Ints, loading: Floats, variance: Floats, available: Bools
) -> tuple[Floats, Floats]:
    """Variance that is learned and variance that stays, for rows and later sets.

    Parameters
    ----------
    scores : what the rows do not know.
    which : (rows,) pattern of each.
    loading : (rows, scores, sets) how far the log-odds move with each score.
    variance : (rows, covariates, sets) of the contribution of each covariate.
    available : (rows, covariates) what can be acquired.
    """
    of, correlation = scores.source[which], scores.correlation[which]
    total = np.einsum("rej,rej->rj", correlation @ loading, loading)
    together = correlation * (of[:, :, None] == of[:, None])
    member = of[:, None] == np.arange(variance.shape[1])[:, None]
    linear = member.astype(np.float64) @ ((together @ loading) * loading)
    curved = np.maximum(variance - linear, 0.0)
    total += curved.sum(axis=1)
    learned = np.einsum("rk,rkj->rj", available.astype(np.float64), curved)
    there = scores.to_come[which] & np.take_along_axis(available, of, axis=1)
    weights, case = scores.weights(which, there)
    moved = weights[case] @ loading
    learned += np.einsum("rbj,rbj,rbj->rj", moved, moved, scores.inside[which].astype(np.float64))
    learned = np.minimum(learned, total)
    return learned, total - learned

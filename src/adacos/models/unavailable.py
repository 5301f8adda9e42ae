"""Rows of which some covariates are not to be had: what the others can still tell about them.

Of the contributions T to the log-odds of a later model that are unknown now, acquiring B makes some
known, those of B itself, and tells something about the rest that it is correlated with. By the law
of total variance Var(T | now) = Var(E[T | B]) + E[Var(T | B)]: the first part is what may be
learned, the second stays unknown and draws the log-odds towards zero. Contributions are split into
what is linear in the normal score of a covariate, where learning is that of a joint normal
distribution, and the rest, which only the covariate itself reveals.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from adacos.models.missing import Moments, fill_holes, moments_of, rows_without, weighted_block
from adacos.models.sequence_model import SequenceModel

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Added to correlations that are inverted: the indicators of a category are linearly dependent.
_JITTER = 1e-6


class Learnable(NamedTuple):
    """Contributions that are not known at a set, for rows and later sets.

    Attributes
    ----------
    mean : of the contributions of what is not acquired of the later set.
    learned : variance of what acquiring its available covariates will tell about them.
    unknown : variance that stays.
    """

    mean: Floats
    learned: Floats
    unknown: Floats


def learnable(model: SequenceModel, encoded: Floats, available: Bools, stage: int) -> Learnable:
    """What rows that have the available covariates of S_stage can learn from the later sets."""
    basis, joint, sequence = model.basis, model.joint, model.sequence
    acquired = available & sequence.masks()[stage]
    holes = fill_holes(
        joint,
        np.where(acquired[:, basis.source], encoded, np.nan),
        np.ones(len(basis.source), dtype=np.bool_),
    )
    coefs = model.coefs[stage + 1 :]
    size = (len(encoded), len(coefs))
    result = Learnable(np.zeros(size), np.zeros(size), np.zeros(size))
    lacking = rows_without(joint, holes)
    moments = {}
    for k, rows in lacking.items():
        own = coefs[:, basis.group == k].T
        moments[k] = moments_of(joint, holes, rows, k, partial(weighted_block, basis, k, own))
        result.mean[rows] += moments[k].mean
    pattern_of = np.empty(len(encoded), dtype=np.intp)
    for number, pattern in enumerate(holes.patterns):
        pattern_of[pattern.rows] = number
    upcoming = sequence.order[sequence.sizes[stage] :]
    for rows in _alike(available):
        pattern = holes.patterns[pattern_of[rows[0]]]
        source = basis.source[pattern.missing]
        parts = {
            int(k): _of_rows(moments[k], np.searchsorted(lacking[k], rows))
            for k in np.unique(source)
        }
        to_come = [k for k in upcoming.tolist() if available[rows[0], k]]
        result.learned[rows], result.unknown[rows] = _split(
            pattern.covariance,
            source,
            parts,
            to_come,
            sequence.masks()[stage + 1 :],
        )
    return result


def _alike(available: Bools) -> list[Ints]:
    """Rows with the same available covariates."""
    _, number = np.unique(np.packbits(available, axis=1), axis=0, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number.ravel()[order])) + 1)


def _of_rows(moments: Moments, rows: Ints) -> Moments:
    return Moments(moments.mean[rows], moments.centred[rows], moments.loading[rows])


def _split(
    covariance: Floats, source: Ints, parts: dict[int, Moments], to_come: list[int], sets: Bools
) -> tuple[Floats, Floats]:
    """Variance that is learned and variance that stays, for rows alike and each later set.

    Parameters
    ----------
    covariance : of the scores that are not known.
    source : covariate of each of them.
    parts : moments of the contributions of each covariate.
    to_come : covariates that can still be acquired, in order.
    sets : membership (later sets, covariates).
    """
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = covariance / np.outer(deviation, deviation)
    loading = np.concatenate([parts[k].loading for k in sorted(parts)], axis=1)
    total = np.einsum("rej,ef,rfj->rj", loading, correlation, loading, optimize=True)
    learned = np.zeros_like(total)
    for k, moments in parts.items():
        own = source == k
        linear = np.einsum(
            "rej,ef,rfj->rj", moments.loading, correlation[np.ix_(own, own)], moments.loading
        )
        variance = np.einsum("rpj,rpj->rj", moments.centred, moments.centred)
        curved = np.maximum(variance - linear, 0.0)
        total += curved
        if k in to_come:
            learned += curved
    columns = [int(e) for k in to_come for e in np.flatnonzero(source == k)]
    if columns:
        inner = correlation[np.ix_(columns, columns)] + _JITTER * np.eye(len(columns))
        factor = np.linalg.cholesky(inner)
        weights = solve_triangular(factor, correlation[columns], lower=True)
        told = np.cumsum(np.einsum("be,rej->rbj", weights, loading) ** 2, axis=1)
        # Scores of the covariates in a set come first: sets are nested.
        count = sets[:, source[columns]].sum(axis=1)
        for j in np.flatnonzero(count):
            learned[:, j] += told[:, count[j] - 1, j]
    learned = np.minimum(learned, total)
    return learned, total - learned

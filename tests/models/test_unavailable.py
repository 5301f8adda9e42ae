"""What can still be learned of incomplete rows: all together, and one by one by the formula."""

from __future__ import annotations

from functools import partial

import numpy as np

from adacos import AdaCOSClassifier, Costs, load_heart
from adacos.models.missing import fill_missing, moments_of, weighted_block
from adacos.models.unavailable import learnable


def by_the_formula(model, row: np.ndarray, available: np.ndarray, stage: int):
    """Mean, learned and unknown variance of one row: law of total variance, inverse by inverse."""
    basis, joint, sequence = model.basis, model.joint, model.sequence
    acquired = available & sequence.masks()[stage]
    known = np.where(acquired[basis.source], row, np.nan)[None]
    filled = fill_missing(joint, known, np.ones(len(row), dtype=bool))
    (patterns,) = filled.patterns
    source, covariance = basis.source[patterns.missing[0]], patterns.covariance[0]
    deviation = np.sqrt(np.diag(covariance).clip(1e-300))
    R = covariance / np.outer(deviation, deviation)
    coefs = model.coefs[stage + 1 :]
    mean, learned, unknown = (np.zeros(len(coefs)) for _ in range(3))
    for j, coef in enumerate(coefs):
        inside = sequence.masks()[stage + 1 + j]
        loading, curved, total_by_score = [], 0.0, 0.0
        for k in np.unique(source):
            own = partial(weighted_block, basis, k, coef[basis.group == k][:, None])
            moments = moments_of(joint, filled, np.array([0]), k, own)
            mean[j] += moments.mean[0, 0]
            loading.append(moments.loading[0, :, 0])
            block = R[np.ix_(source == k, source == k)]
            left = np.sum(moments.centred**2) - loading[-1] @ block @ loading[-1]
            curved += max(left, 0.0)
            total_by_score += max(left, 0.0) if available[k] else 0.0
        L = np.concatenate(loading)
        C = np.flatnonzero(inside[source] & available[source])
        cross = R[C] @ L
        total_by_score += cross @ np.linalg.solve(R[np.ix_(C, C)] + 1e-6 * np.eye(len(C)), cross)
        total = L @ R @ L + curved
        learned[j] = min(total_by_score, total)
        unknown[j] = total - learned[j]
    return mean, learned, unknown


def test_all_rows_together_are_as_each_by_the_formula() -> None:
    data = load_heart()
    costs = Costs(data.prices, false_positive=100, false_negative=1000)
    policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(data.X, data.y)
    encoded = policy._encode(data.X)
    encoded = encoded[~np.isnan(encoded).any(axis=1)][:40]
    rng = np.random.default_rng(0)
    available = rng.random((len(encoded), len(policy.encoder_.names))) < 0.7
    available[:5] = available[0]
    encoded = np.where(available[:, policy.encoder_.source], encoded, np.nan)
    for stage in (0, 1, 4, 9):
        found = learnable(policy.model_, encoded, available, stage)
        for row in range(0, len(encoded), 3):
            expected = by_the_formula(policy.model_, encoded[row], available[row], stage)
            for actual, value in zip(found, expected, strict=True):
                np.testing.assert_allclose(actual[row], value, rtol=1e-6, atol=1e-8)

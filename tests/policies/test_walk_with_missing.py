"""Algorithm 1 for incomplete rows: what is unknown is drawn from the joint model, draw by draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit, ndtri
from scipy.stats import qmc

from adacos import AdaCOSClassifier, load_pima
from adacos.typing import Floats
from tests.policies.tables import mean_that_keeps, pima_policy, risk_of, weighted_risk

# Draws of what may be acquired, and for each of them draws of what cannot.
OUTER, INNER = 256, 16


def normals(n: int, dimension: int, seed: int) -> Floats:
    """Evenly spread standard normal draws."""
    if dimension == 0:
        return np.zeros((n, 0))
    return ndtri(qmc.Sobol(dimension, rng=np.random.default_rng(seed)).random(n))


def regression(joint: Any, on: list[int], of: list[int]) -> tuple[Floats, Floats]:
    """Slopes of the scores `of` on those `on`, and a root of the covariance that they leave."""
    inner = joint.covariance[np.ix_(on, on)]
    slopes = joint.covariance[np.ix_(of, on)] @ np.linalg.inv(inner)
    left = joint.covariance[np.ix_(of, of)] - slopes @ joint.covariance[np.ix_(on, of)]
    return slopes, np.linalg.cholesky(left + 1e-10 * np.eye(len(of)))


def contribution(model: Any, j: int, k: int, scores: Floats) -> Floats:
    """What covariate k adds to the log-odds of model j at these scores."""
    values = np.interp(scores.ravel(), model.joint.scores, model.joint.quantiles[k])
    block = model.basis.block(values[:, None], k)
    return (block @ model.coefs[j, model.basis.group == k]).reshape(scores.shape)


def after(model: Any, j: int, row: Floats, seen: list[int], can: list[int]) -> Floats:
    """Log-odds by model j of a row that has `seen`, for draws of what it can have besides."""
    joint, scores = model.joint, model.joint.to_scores(row[None])[0]
    members = model.sequence.set(j).tolist()
    cannot = [k for k in members if k not in (*seen, *can)]
    total = np.full((OUTER, INNER), model.intercepts[j])
    for k in seen:
        block = model.basis.block(row[None, [k]], k)
        total += float((block @ model.coefs[j, model.basis.group == k])[0])
    slopes, root = regression(joint, seen, can)
    drawn = joint.mean[can] + slopes @ (scores[seen] - joint.mean[seen])
    drawn = drawn + normals(OUTER, len(can), 1) @ root.T
    for place, k in enumerate(can):
        total += contribution(model, j, k, drawn[:, [place]])
    slopes, root = regression(joint, [*seen, *can], cannot)
    known = np.column_stack([np.tile(scores[seen], (OUTER, 1)), drawn])
    center = joint.mean[cannot] + (known - joint.mean[[*seen, *can]]) @ slopes.T
    more = normals(OUTER * INNER, len(cannot), 2).reshape(OUTER, INNER, -1) @ root.T
    for place, k in enumerate(cannot):
        total += contribution(model, j, k, center[:, None, place] + more[:, :, place])
    return np.asarray(logit(expit(total).mean(axis=1)))


def by_drawing(policy: Any, row: Floats) -> tuple[int, float]:
    """Stage, and log-odds there."""
    model, costs = policy.model_, policy.costs
    q, c = len(model.sequence), np.asarray(costs.matrix)
    available = ~np.isnan(row)
    for i in range(q):
        inside = model.sequence.set(i)
        seen = [int(k) for k in inside if available[k]]
        # Nothing more is acquired: the draws differ only in what cannot be had.
        now = float(logit(expit(after(model, i, row, seen, [])).mean()))
        risk = float(risk_of(now, c))
        continues = False
        for j in range(i + 1, q):
            new = model.sequence.set(j)[len(inside) :]
            can = [int(k) for k in new if available[k]]
            sd = float(after(model, j, row, seen, can).std()) if can else 0.0
            expected = risk
            if sd > 1e-9:
                center = mean_that_keeps(now, sd)
                threshold = np.log((c[0, 1] - c[0, 0]) / (c[1, 0] - c[1, 1]))
                cut = float(np.clip((threshold - center) / sd, -8, 8))
                expected = sum(
                    quad(weighted_risk, low, high, args=(center, sd, c), epsrel=1e-7)[0]
                    for low, high in ((-9, cut), (cut, 9))
                )
            continues |= costs.of(can, given=seen) + expected < risk
        if not continues:
            return i, now
    raise AssertionError("the last set has no later one")


@pytest.mark.parametrize(
    ("matrix", "panels"),
    [
        ([[0, 400], [1000, 0]], None),
        ([[0.0, 60.0], [60.0, 0.0]], {"visit": (0.9, [0, 5, 6]), "blood": (10, [1, 4])}),
    ],
)
def test_rows_with_missing_values_walk_by_algorithm_1(matrix: Any, panels: Any) -> None:
    _, policy = pima_policy(AdaCOSClassifier, matrix, panels)
    rows = load_pima(as_frame=False).X[400:436].copy()
    rows[np.random.default_rng(0).random(rows.shape) < 0.25] = np.nan
    result = policy.acquire(rows)
    walks = [by_drawing(policy, row) for row in rows]
    # The lookahead takes contributions of several covariates as jointly normal: near a tie it may
    # decide otherwise.
    agree = [k for k, (stage, _) in enumerate(walks) if stage == result.stage[k]]
    assert len(agree) >= 0.94 * len(rows)
    expected = expit([log_odds for _, log_odds in walks])
    np.testing.assert_allclose(result.probability[agree], expected[agree], atol=0.006)
    missing = [np.isnan(rows[k, policy.model_.sequence.set(walks[k][0])]).any() for k in agree]
    assert sum(missing) >= 8
    assert len(set(result.stage)) >= 4

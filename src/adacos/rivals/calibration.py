"""From scores to log-odds, and the cost by which tree baselines choose their settings.

A baseline that was trained on weighted rows answers by the sign of its score; one that was not has
its score turned into log-odds by a logistic curve (Platt) and answers by Bayes' rule. Written in
log-odds both are Bayes' rule: weights w_0, w_1 proportional to the cost of a wrong answer move
the log-odds by log(w_1 / w_0), which is minus the threshold of the misclassification matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from adacos.costs import total_of
from adacos.kernels.bayes_risk import decision_threshold, label_of
from adacos.typing import Floats, Ints

_NEWTON_STEPS = 50
# Longest step in standardised units, and the ridge that bounds a slope on separated classes.
_LONGEST_STEP = 2.0
_RIDGE = 1e-3


def class_weights(y: Floats, matrix: Floats) -> Floats:
    """Weight of each row, proportional to the cost of answering it wrongly; their mean is 1."""
    stake = np.array([matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]])
    weight: Floats = stake[y.astype(np.intp)]
    return np.asarray(weight / weight.mean())


def fit_calibration(scores: Floats, y: Floats, matrix: Floats, weighted: bool) -> Floats:
    """Slope and intercept, each of shape scores.shape[1:], that turn scores into log-odds.

    Scores of a model of weighted rows (`weighted`) get the intercept at which Bayes' rule is the
    sign of the score; only the slope is fitted, to weighted rows. For the others both are.
    """
    if weighted:
        weight = class_weights(y, matrix)
        slope, _ = _logistic_curve(scores, y, weight, with_intercept=False)
        return np.stack([slope, np.full_like(slope, decision_threshold(matrix))])
    return _logistic_curve(scores, y, np.ones(len(y)), with_intercept=True)


def held_out_log_odds(
    scores: Floats, y: Floats, fold: Ints, matrix: Floats, weighted: bool
) -> Floats:
    """Log-odds from held-out scores, each fold's calibrated on the other folds."""
    log_odds = np.empty_like(scores)
    for k in range(int(fold.max()) + 1):
        inside = fold == k
        slope, intercept = fit_calibration(scores[~inside], y[~inside], matrix, weighted)
        log_odds[inside] = slope * scores[inside] + intercept
    return log_odds


def mean_total_cost(log_odds: Floats, paid: Floats, y: Floats, matrix: Floats) -> Floats:
    """Mean over rows (the first axis) of covariate cost paid plus cost of the Bayes label."""
    truth = y.reshape(-1, *[1] * (log_odds.ndim - 1))
    total: Floats = total_of(paid, truth, label_of(log_odds, matrix), matrix).mean(axis=0)
    return total


def _logistic_curve(scores: Floats, y: Floats, weight: Floats, with_intercept: bool) -> Floats:
    """Slope and intercept of the logistic regression of y on each column by itself.

    Labels are drawn in by one pseudo-row per class, as Platt proposes, so that the curve stays
    finite on separated classes.
    """
    columns = scores.reshape(len(scores), -1)
    scale = np.maximum(np.sqrt((columns**2).mean(axis=0)), 1e-12)
    x = columns / scale
    positives = y.sum()
    target = np.where(y > 0, (positives + 1) / (positives + 2), 1 / (len(y) - positives + 2))
    slope, intercept = np.zeros((2, x.shape[1]))
    for _ in range(_NEWTON_STEPS):
        p = expit(x * slope + intercept)
        error = weight[:, None] * (target[:, None] - p)
        curvature = weight[:, None] * np.maximum(p * (1 - p), 1e-9)
        g1, h11 = (error * x).sum(axis=0) - _RIDGE * slope, (curvature * x**2).sum(axis=0) + _RIDGE
        step0 = np.zeros_like(slope)
        step1 = g1 / h11
        if with_intercept:
            g0, h00 = error.sum(axis=0), curvature.sum(axis=0)
            h01 = (curvature * x).sum(axis=0)
            determinant = np.maximum(h00 * h11 - h01**2, 1e-12 * h00 * h11)
            step0 = (h11 * g0 - h01 * g1) / determinant
            step1 = (h00 * g1 - h01 * g0) / determinant
        step = np.clip([step1, step0], -_LONGEST_STEP, _LONGEST_STEP)
        slope, intercept = slope + step[0], intercept + step[1]
        if np.abs(step).max() < 1e-8:
            break
    return np.stack([slope / scale, intercept]).reshape(2, *scores.shape[1:])

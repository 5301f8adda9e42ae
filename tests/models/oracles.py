"""Textbook formulas that models are held against."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from adacos.typing import Floats


def predictive(R: Floats, z: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of a new z at r, by the conjugate update of a textbook.

    Normal-inverse-chi-square: precision 1 on the slopes, none on the intercept; noise
    variance scaled inverse chi-square with 1 degree of freedom and the marginal variance of z. The
    predictive is Student's t.
    """
    n = len(z)
    design, new = np.column_stack([np.ones(n), R]), np.column_stack([np.ones(len(r)), r])
    prior = np.diag(np.append(1e-13 * n, np.ones(R.shape[1])))
    precision = design.T @ design + prior
    mean = np.linalg.solve(precision, design.T @ z)
    # A flat intercept is integrated out at the price of one degree of freedom.
    degrees = 1.0 + n - 1.0
    residual = z - design @ mean
    scale = (1.0 * np.var(z) + residual @ residual + mean @ prior @ mean) / degrees
    spread = scale * (1 + np.sum(new * np.linalg.solve(precision, new.T).T, axis=1))
    return new @ mean, np.sqrt(spread * degrees / (degrees - 2))


def calibration_slope(log_odds, y):
    """Slope of a logistic regression of y on the log-odds."""
    design, beta = np.column_stack([np.ones_like(log_odds), log_odds]), np.zeros(2)
    for _ in range(30):
        p = expit(design @ beta)
        hessian = (design.T * (p * (1 - p))) @ design
        beta = beta + np.linalg.solve(hessian, design.T @ (y - p))
    return float(beta[1])

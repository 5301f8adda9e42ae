"""Time and largest error of the forms of the expected Bayes risk, side by side.

    python benchmarks/bayes_risk.py [rows]

Errors are in units of the largest difference of two costs, against Gauss-Legendre quadrature on
panels that resolve both the sigmoid and the Gaussian.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.special import ndtr

from adacos.kernels.bayes_risk import bayes_risk, decision_threshold, expected_bayes_risk

MATRICES = {
    "equal": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "FN = 10 FP": np.array([[0.0, 1.0], [10.0, 0.0]]),
    "Table 1": np.array([[-50.0, 400.0], [400.0, -50.0]]),
}
FORMS = {"default": None, "xi = 40": 40, "xi = 200": 200}
EDGE = 40.0  # beyond it the risk is constant in double precision


def by_quadrature(mu: np.ndarray, sigma: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    u_star = decision_threshold(matrix)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    steps = np.linspace(-1, 1, 41)
    total = matrix[0, 0] * ndtr((-EDGE - mu) / sigma) + matrix[1, 1] * ndtr((mu - EDGE) / sigma)
    for row, (m, s) in enumerate(zip(mu, sigma, strict=True)):
        cuts = np.concatenate([EDGE * steps, m + 9 * s * steps, [u_star]])
        low, high = max(-EDGE, m - 9 * s), min(EDGE, m + 9 * s)
        if low < high:
            cuts = np.unique(np.clip(cuts, low, high))
            half = np.diff(cuts)[:, None] / 2
            u = cuts[:-1, None] + half * (1 + nodes)
            density = np.exp(-0.5 * ((u - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
            total[row] += np.sum(half * weights * density * bayes_risk(u, matrix))
    return total


def main(rows: int = 1_000_000, checked: int = 2_000) -> None:
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(scale=3, size=rows), np.exp(rng.uniform(-4, 3, size=rows))
    print(f"{rows} rows\n{'matrix':12}{'form':12}{'seconds':>10}{'largest error':>16}")
    for name, matrix in MATRICES.items():
        exact = by_quadrature(mu[:checked], sigma[:checked], matrix)
        for form, pieces in FORMS.items():
            start = time.perf_counter()
            risk = expected_bayes_risk(mu, sigma, matrix, pieces=pieces)
            seconds = time.perf_counter() - start
            error = np.abs(risk[:checked] - exact).max() / np.ptp(matrix)
            print(f"{name:12}{form:12}{seconds:10.2f}{error:16.1e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

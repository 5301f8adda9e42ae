"""Costs with a third way out, rows of three covariates, and what enumeration says of a plan."""

from __future__ import annotations

import numpy as np

NAMES = ["age", "glucose", "scan"]
PRICES = dict(zip(NAMES, [1.0, 4.0, 12.0], strict=True))
REFER = [[0, 20, 100], [1000, 120, 50]]
DECISIONS = ("discharge", "refer", "treat")
SQUARE = [[0.0, 100.0], [1000.0, 50.0]]
QUICK = {"cv": 3, "strengths": "common"}


def rows(n: int, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three covariates, the more expensive the more they say."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = y[:, None] * np.array([0.6, 1.0, 1.6]) + rng.normal(size=(n, 3))
    return X, y


def by_enumeration(joint, prices, matrix):
    """Least expected cost by recursion over what was seen, P(y, x) given, without any table."""
    sizes = joint.shape[1:]

    def value(seen: dict[int, int]) -> float:
        here = joint[(slice(None), *(seen.get(k, slice(None)) for k in range(len(sizes))))]
        mass = here.reshape(len(joint), -1).sum(axis=1)
        best = (mass @ matrix).min()
        for k in set(range(len(sizes))) - set(seen):
            after = sum(value({**seen, k: v}) for v in range(sizes[k]))
            best = min(best, prices[k] * mass.sum() + after)
        return float(best)

    return value({})

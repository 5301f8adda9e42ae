"""A table with a known truth on which budgets bite."""

from __future__ import annotations

from typing import Any

import numpy as np

from adacos import (
    Costs,
)

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    log_odds = 1.5 * x[:, 0] + x[:, 1] - x[:, 2] + 0.7 * x[:, 3]
    return x, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


COSTS = Costs([1.0, 2.0, 3.0, 4.0], false_positive=50, false_negative=80)

"""Small tables on which the tree rivals are tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from adacos import Costs

MIXED_COSTS = Costs(
    {"age": 0.0, "blood": 3.0, "sugar": 4.0, "kind": 1.0, "noise": 2.0},
    misclassification=[[-5.0, 20.0], [60.0, -10.0]],
    panels={"draw": (2.5, ["blood", "sugar"])},
)


def mixed_table(n: int = 160, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numeric and categorical columns with missing values; class named by words."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 4))
    kind = rng.choice(["a", "b", "c"], n)
    logit = 1.5 * values[:, 0] + 2 * np.sign(values[:, 1]) * (kind == "a") + values[:, 2] - 0.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * logit)), "sick", "healthy")
    X = pd.DataFrame(values, columns=["age", "blood", "sugar", "noise"])
    X.insert(3, "kind", kind)
    X = X.mask(rng.random(X.shape) < 0.07)
    return X, np.asarray(y)


THREE_COSTS = Costs(
    {"age": 0.0, "blood": 3.0, "sugar": 4.0, "kind": 1.0, "noise": 2.0},
    misclassification=[[-5.0, 20.0, 30.0], [60.0, -10.0, 25.0], [40.0, 15.0, 0.0]],
    panels={"draw": (2.5, ["blood", "sugar"])},
)


def three_table(n: int = 160, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """The mixed table with a third class, cut from the sick by sugar."""
    X, y = mixed_table(n, seed)
    sweet = X["sugar"].fillna(0.0) + 0.3 * np.random.default_rng(seed).normal(size=n) > 0.3
    return X, np.where((y == "sick") & sweet, "very sick", y)


def total_cost(policy: Any, X: Any, y: np.ndarray) -> float:
    """Mean covariate cost paid plus misclassification cost."""
    result = policy.acquire(X)
    code = {label: k for k, label in enumerate(policy.classes_)}
    truth = [code[label] for label in y]
    label = [code[label] for label in result.label]
    return float((result.cost + policy.cost_table_.matrix[truth, label]).mean())

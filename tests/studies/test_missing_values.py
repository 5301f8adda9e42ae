"""Calibration with missing values in worlds of known truth: training, rows to decide, or both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from adacos import Costs, FullModelClassifier
from adacos.metrics import total_costs
from tests.test_missing import calibration_slope

pandas = pytest.importorskip("pandas")

NAMES = list("abcde")
COSTS = Costs(dict.fromkeys(NAMES, 0.0), false_positive=100, false_negative=400)


def world(kind: str, rng: np.random.Generator, n: int) -> tuple[Any, np.ndarray]:
    """A table and its true log-odds; covariates correlate by 0.4."""
    X = rng.multivariate_normal(np.zeros(5), 0.4 + 0.6 * np.eye(5), size=n)
    effect = np.array([1.5, 1.0, -0.8, 0.5, 0.0])
    if kind == "gaussian":
        return pandas.DataFrame(X, columns=NAMES), X @ effect - 1.5
    if kind == "skewed":
        return pandas.DataFrame(np.exp(0.7 * X), columns=NAMES), 0.9 * (X @ effect) - 1.5
    group = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-1, 0, 1])
    table = pandas.DataFrame(X, columns=NAMES)
    table["a"] = np.array(list("wxyz"), dtype=object)[group]
    table["e"] = (X[:, 4] > 0).astype(float)
    lift = np.array([-1.5, 0.0, 0.5, 2.0])[group] + table["e"].to_numpy()
    return table, lift + X[:, 1:4] @ effect[1:4] - 1.5


def punched(table: Any, rng: np.random.Generator, missing: float | str) -> Any:
    """A share of all values missing, or one covariate in every row."""
    table = table.copy()
    for name in NAMES:
        hole = rng.random(len(table)) < missing if isinstance(missing, float) else name == missing
        absent = None if table[name].dtype == object else np.nan
        table[name] = table[name].where(~np.broadcast_to(hole, len(table)), absent)
    return table


def judged(kind: str, train: float, missing: float | str, n: int, seed: int) -> dict[str, float]:
    """Calibration of the full model on 20,000 new rows of which some values are missing."""
    rng = np.random.default_rng([seed, n])
    table, truth = world(kind, rng, n)
    y = (rng.random(n) < expit(truth)).astype(int)
    policy = FullModelClassifier(COSTS, strengths="common", cv=3)
    policy.fit(punched(table, rng, train), y)
    new, truth = world(kind, rng, 20_000)
    labels = (rng.random(20_000) < expit(truth)).astype(int)
    result = policy.acquire(punched(new, rng, missing))
    cost = total_costs(result, labels, COSTS)
    share = labels.mean()
    return {
        "slope": calibration_slope(logit(result.probability), labels),
        "difference": result.probability.mean() - share,
        "error": np.sqrt(share * (1 - share) * (1 / n + 1 / 20_000)),
        "cost": cost.mean(),
        "constant": min(100 * (1 - share), 400 * share),
        "cost error": cost.std() / np.sqrt(20_000),
    }


def check(results: list[dict[str, float]]) -> None:
    mean = {name: float(np.mean([r[name] for r in results])) for name in results[0]}
    assert 0.95 <= mean["slope"] <= 1.05, mean
    error = mean["error"] / np.sqrt(len(results))
    assert abs(mean["difference"]) <= 2 * error + 0.003, mean
    assert mean["cost"] <= mean["constant"] + mean["cost error"], mean


@pytest.mark.parametrize("kind", ["gaussian", "skewed", "categorical"])
@pytest.mark.parametrize(("train", "missing"), [(0.0, "a"), (0.3, 0.3)])
def test_calibrated_with_holes(kind: str, train: float, missing: float | str) -> None:
    check([judged(kind, train, missing, 10_000, seed) for seed in range(2)])


@pytest.mark.study
@pytest.mark.parametrize("kind", ["gaussian", "skewed", "categorical"])
@pytest.mark.parametrize("train", [0.0, 0.3])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.5, *NAMES])
def test_calibrated_whatever_is_missing(kind: str, train: float, missing: float | str) -> None:
    results = [judged(kind, train, missing, 10_000, seed) for seed in range(6)]
    print(
        f"\n{kind}, training {train}, missing {missing}: slope "
        f"{np.mean([r['slope'] for r in results]):.3f}, probability - share "
        f"{np.mean([r['difference'] for r in results]):+.4f}"
    )
    check(results)

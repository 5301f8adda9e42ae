"""Calibration with missing values in worlds of known truth: training, rows to decide, or both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from adacos import AdaCOSClassifier, Costs, FullModelClassifier
from adacos.metrics import total_costs
from tests.models.oracles import calibration_slope

pandas = pytest.importorskip("pandas")

NAMES = list("abcde")
KINDS = ["gaussian", "skewed", "categorical"]
# A share of all values, one covariate in every row, or a share of one covariate.
Missing = float | str | tuple[str, float]
COSTS = Costs(dict.fromkeys(NAMES, 0.0), false_positive=100, false_negative=400)


def draw_rows(kind: str, rng: np.random.Generator, n: int) -> tuple[Any, np.ndarray]:
    """A table and its true log-odds; covariates correlate by 0.4."""
    # Equal eigenvalues leave the vectors to the LAPACK in use; a Cholesky factor is unique.
    covariance = 0.4 + 0.6 * np.eye(5)
    X = rng.multivariate_normal(np.zeros(5), covariance, size=n, method="cholesky")
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


def punched(table: Any, rng: np.random.Generator, missing: Missing) -> Any:
    """A share of all values missing, a share of one covariate, or one covariate in every row."""
    table = table.copy()
    for name in NAMES:
        share = missing if isinstance(missing, float) else float(name == missing)
        if isinstance(missing, tuple):
            share = missing[1] * (name == missing[0])
        absent = None if table[name].dtype == object else np.nan
        table[name] = table[name].where(rng.random(len(table)) >= share, absent)
    return table


def fitted(kind: str, train: Missing, n: int, seed: int) -> tuple[FullModelClassifier, float]:
    """A full model of n rows of which some values are missing, and the luck of its labels.

    That is by how much the share of positive rows exceeds the mean of their true probabilities: no
    model can tell it from the truth.
    """
    rng = np.random.default_rng([seed, n])
    table, truth = draw_rows(kind, rng, n)
    y = (rng.random(n) < expit(truth)).astype(int)
    policy = FullModelClassifier(COSTS, strengths="common", cv=3)
    return policy.fit(punched(table, rng, train), y), float(np.mean(y - expit(truth)))


def judged(
    policy: FullModelClassifier, luck: float, kind: str, missing: Missing, seed: int
) -> dict[str, float]:
    """Its calibration on 20,000 new rows of which some values are missing."""
    rng = np.random.default_rng([seed, 20_000])
    table, truth = draw_rows(kind, rng, 20_000)
    labels = (rng.random(20_000) < expit(truth)).astype(int)
    result = policy.acquire(punched(table, rng, missing))
    cost = total_costs(result, labels, COSTS)
    share, n = labels.mean(), len(policy.model_.y)
    return {
        "slope": calibration_slope(logit(result.probability), labels),
        "difference": result.probability.mean() - share,
        "bias": float(np.mean(result.probability - expit(truth))) - luck,
        "error": np.sqrt(share * (1 - share) * (1 / n + 1 / 20_000)),
        "cost": cost.mean(),
        "constant": min(100 * (1 - share), 400 * share),
        "cost error": cost.std() / np.sqrt(20_000),
    }


def check(results: list[dict[str, float]]) -> None:
    """Means over training sets: slope, mean probability within two standard errors, cost.

    The bias is the difference of the mean probability from the share without the luck of labels, so
    that one case in twenty need not fail.
    """
    mean = {name: float(np.mean([r[name] for r in results])) for name in results[0]}
    error = mean["error"] / np.sqrt(len(results))
    reported = f"{mean} {mean['bias'] / error:.2f} standard errors"
    assert 0.95 <= mean["slope"] <= 1.05, reported
    assert abs(mean["bias"]) <= 2 * error, reported
    assert mean["cost"] <= mean["constant"] + mean["cost error"], reported


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("train", "missing"), [(0.0, "a"), (0.3, 0.3)])
def test_calibrated_with_missing_values(kind: str, train: float, missing: Missing) -> None:
    check(
        [judged(*fitted(kind, train, 10_000, seed), kind, missing, seed + 100) for seed in range(2)]
    )


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("train", [0.0, 0.3, *((name, 0.5) for name in NAMES)], ids=str)
def test_calibrated_whatever_is_missing(kind: str, train: Missing) -> None:
    """None, a share of all values, or half of one covariate missing in training.

    In the rows to be decided the same, or one covariate in every row. Training sets are drawn anew
    six times, each with new rows to be decided.
    """
    missing: tuple[Missing, ...] = (0.0, 0.3, 0.5, *NAMES)
    if isinstance(train, tuple):
        missing = (0.0, train[0], train)
    policies = [fitted(kind, train, 10_000, seed) for seed in range(6)]
    wrong = []
    for pattern in missing:
        results = [judged(*one, kind, pattern, 100 + seed) for seed, one in enumerate(policies)]
        mean = {name: np.mean([r[name] for r in results]) for name in results[0]}
        print(
            f"{kind}, training {train}, missing {pattern}: slope {mean['slope']:.3f}, "
            f"probability - share {mean['difference']:+.4f}, of which no luck {mean['bias']:+.4f} "
            f"(standard error {mean['error'] / np.sqrt(6):.4f}), cost {mean['cost']:.1f}, "
            f"best constant answer {mean['constant']:.1f}",
            flush=True,
        )
        try:
            check(results)
        except AssertionError as error:
            wrong.append(f"{pattern}: {error}")
    assert not wrong


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::adacos.exceptions.TableWarning")
def test_a_stated_cost_is_too_low_as_the_warnings_say() -> None:
    """One normal for each class: rows recorded by a policy, a share missing at random, none."""
    costs = Costs([1.0, 2.0, 2.0, 3.0, 3.0], false_positive=100, false_negative=100)
    off: dict[str, list[float]] = {}
    for seed in range(12):
        for kind in ("none", "policy", "fifth", "half"):
            rng = np.random.default_rng([seed, 5])
            X, y = two_normals(rng, 1000)
            if kind == "policy":
                first = AdaCOSClassifier(costs, strengths="common", cv=5)
                X = np.where(first.fit(*two_normals(rng, 400)).acquire(X).acquired, X, np.nan)
            else:
                share = {"none": 0.0, "fifth": 0.2, "half": 0.5}[kind]
                X[rng.random(X.shape) < share] = np.nan
            policy = AdaCOSClassifier(costs, strengths="common", cv=5).fit(X, y)
            reported = {suspicion.kind for suspicion in policy.check(X, y)}
            wanted = {"policy": "missing_by_values", "none": ""}.get(kind, "many_missing")
            assert wanted in reported or (kind == "none" and not reported)
            fresh, labels = two_normals(rng, 20_000)
            result = policy.acquire(fresh)
            true = total_costs(result, labels, costs).mean()
            off.setdefault(kind, []).append(result.expected_cost.mean() / true - 1)
    mean = {kind: float(np.mean(values)) for kind, values in off.items()}
    print(mean)
    assert abs(mean["none"]) < 0.02
    assert -0.19 < mean["policy"] < -0.04
    assert mean["half"] < mean["fifth"] < -0.03


def two_normals(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Five independent covariates that are normal in each class."""
    y = (rng.random(n) < 0.4).astype(int)
    return rng.normal(size=(n, 5)) + np.array([0.9, 0.8, 0.7, 1.0, 0.6]) * y[:, None], y

"""Tables that several tests of policies fit, and oracles of what is decided on them."""

from __future__ import annotations

from math import exp, pi, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

from adacos import (
    AdaCOSClassifier,
    Costs,
    load_pima,
)
from adacos.typing import Floats


def risk_of(log_odds: Any, matrix: Any) -> Any:
    """Expected cost of the better label, written out."""
    p, c = expit(log_odds), np.asarray(matrix)
    return np.minimum((1 - p) * c[0, 0] + p * c[1, 0], (1 - p) * c[0, 1] + p * c[1, 1])


def numbers(n: int, seed: int) -> tuple[Floats, NDArray[np.intp]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] += 0.7 * X[:, 0]
    odds = 1.5 * X[:, 0] - X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * X[:, 3]
    return X, (rng.random(n) < expit(odds)).astype(np.intp)


def mixed(n: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    """Numbers, truth values, categories, constants, and gaps in all of them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "smokes": rng.random(n) < 0.4,
            "town": rng.choice(["north", "south", "west"], n),
            "planet": "earth",
            "zero": 0.0,
            "dose": rng.exponential(size=n),
        }
    )
    odds = 0.08 * (frame.age - 50) + 1.5 * frame.smokes + np.where(frame.town == "west", 2, -0.5)
    y = np.where(rng.random(n) < expit(odds - 0.8 * frame.dose), "ill", "healthy")
    return frame.mask(rng.random(frame.shape) < 0.1), y


def pima_policy(cls: Any, matrix: Any, panels: Any = None) -> tuple[Floats, Any]:
    data = load_pima(as_frame=False)
    X, y = data.X[:400], data.y[:400]
    costs = Costs(list(data.prices.values()), misclassification=matrix, panels=panels)
    lookahead = {"lookahead": "coherent"} if cls is AdaCOSClassifier else {}
    return X, cls(costs, cv=3, strengths="common", **lookahead).fit(X, y)


def weighted_risk(t: float, center: float, sd: float, c: Floats) -> float:
    """Risk at log-odds center + sd t, times the density of t."""
    p = 1 / (1 + exp(-(center + sd * t)))
    answers = ((1 - p) * c[0, 0] + p * c[1, 0], (1 - p) * c[0, 1] + p * c[1, 1])
    return min(answers) * exp(-0.5 * t * t) / sqrt(2 * pi)


def mean_that_keeps(log_odds: float, sd: float) -> float:
    """Mean of a normal with this deviation whose expected sigmoid is that of the log-odds."""

    def gap(center: float) -> float:
        def weighted(t: float) -> float:
            return exp(-0.5 * t * t) / sqrt(2 * pi) / (1 + exp(-(center + sd * t)))

        return quad(weighted, -9, 9, epsrel=1e-9, limit=200)[0] - 1 / (1 + exp(-log_odds))

    reach = 5 + 10 * sd
    return float(brentq(gap, log_odds - reach, log_odds + reach, xtol=1e-9))


def noisy_rows(rng, n, p=12):
    """Two useful covariates and noise; one of the useful ones is weak."""
    X = rng.normal(size=(n, p))
    y = rng.random(n) < expit(1.2 * X[:, 0] + 0.6 * X[:, 1] - 0.5)
    return X, y.astype(int)


def patients(seed: int, n: int = 24, visits: int = 15) -> tuple[Any, Any, Any]:
    """Each patient has one class and covariates around values of his own, which say nothing."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), visits)
    own = rng.normal(size=(n, 3))
    return own[who] + 0.01 * rng.normal(size=(len(who), 3)), who % 2, who


def drawn(seed: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.5).astype(int)
    return rng.normal(size=(n, 4)) + 0.6 * y[:, None], y


def repeated(X: Any, y: Any, times: int, seed: int = 0) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(times * len(y))
    return np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order]


def tables_of_different_cases() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    n = 4000
    age = rng.integers(0, 600, n)
    labs = np.where((rng.random(n) < 0.5)[:, None], np.nan, rng.normal(size=(n, 4)))
    return {
        "two values": rng.integers(0, 2, (n, 8)),
        "a category as indicators": np.eye(5)[rng.integers(0, 5, n)],
        "one covariate": age[:, None],
        "a number and rare flags": np.c_[age, rng.random((n, 2)) < 0.01],
        "a number, its decade and a flag": np.c_[age, age // 100, rng.random(n) < 0.3],
        "missing together": np.c_[rng.integers(0, 2, n), rng.random(n) < 0.05, labs],
        "rounded": rng.normal(size=(n, 2)).round(1),
        "skewed": rng.zipf(1.5, (n, 2)).clip(0, 10**4),
    }

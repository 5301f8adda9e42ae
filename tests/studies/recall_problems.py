"""Worlds with a known truth in which certificates of recall are put to the test.

A world draws rows (X, y) without end, so the recall of a fitted policy can be measured as finely as
wanted, and calibration rows can be drawn afresh for every repetition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from adacos import Costs
from adacos.typing import Floats

PRICES = (1.0, 2.0, 4.0, 8.0)


def _correlated(rng: np.random.Generator, n: int) -> Floats:
    shared = rng.normal(size=(n, 1))
    return (0.6 * shared + 0.8 * rng.normal(size=(n, len(PRICES)))).astype(np.float64)


def _additive(x: Floats) -> Floats:
    return 1.2 * x[:, 0] + np.sin(2 * x[:, 1]) + 0.8 * x[:, 2] ** 2 - 1.5 + 1.4 * x[:, 3]


def _interacting(x: Floats) -> Floats:
    """Products and jumps, which no additive model can follow."""
    jump = np.where(x[:, 0] * x[:, 3] > 0, 1.0, -1.0)
    return 1.5 * x[:, 0] + 1.5 * x[:, 1] * x[:, 2] + 1.5 * jump + 2.0 * x[:, 3] - 2.0


@dataclass(frozen=True)
class Problem:
    """How rows arise, and how many of them there are.

    Attributes
    ----------
    log_odds : true log-odds of the positive class given the covariates.
    shift : added to them, for the share of positives.
    n_train : rows the model learns from.
    n_positives : positive rows in a calibration set.
    n_noise : covariates that say nothing.
    false_positive : cost of a false positive; the higher, the more the policy asks for.
    recall, confidence : what is asked for.
    """

    log_odds: Callable[[Floats], Floats]
    shift: float
    n_train: int
    n_positives: int
    n_noise: int = 0
    false_positive: float = 50.0
    recall: float = 0.95
    confidence: float = 0.9

    @property
    def costs(self) -> Costs:
        return Costs((*PRICES, *[1.0] * self.n_noise), false_positive=self.false_positive)

    def rows(self, rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.int64]]:
        X = _correlated(rng, n)
        y = rng.random(n) < expit(self.log_odds(X) + self.shift)
        return np.hstack([X, rng.normal(size=(n, self.n_noise))]), y.astype(np.int64)

    def positives_share(self) -> float:
        return float(self.rows(np.random.default_rng(0), 100_000)[1].mean())

    def positives(self, rng: np.random.Generator, n: int) -> Floats:
        found: list[Floats] = []
        while sum(map(len, found)) < n:
            X, y = self.rows(rng, 100_000)
            found.append(X[y == 1])
        return np.vstack(found)[:n]

    def calibration(
        self, positives: Floats, rng: np.random.Generator
    ) -> tuple[Floats, NDArray[np.int64]]:
        """These positives with as many rows that are not."""
        X, y = self.rows(rng, 4 * len(positives) + 20)
        negatives = X[y == 0][: len(positives)]
        return np.vstack([positives, negatives]), np.repeat(
            [1, 0], [len(positives), len(negatives)]
        )


PROBLEMS = {
    "well specified": Problem(_additive, 0.0, n_train=1000, n_positives=500),
    "misspecified": Problem(_interacting, 0.0, n_train=1000, n_positives=500),
    "rare positives": Problem(_additive, -4.5, n_train=3000, n_positives=150),
    "few positives": Problem(_additive, 0.0, n_train=200, n_positives=60, false_positive=200.0),
}


# Least probability, under a true rate of 1 - confidence, of as many broken promises as were seen.
SIGNIFICANCE = 0.01


def kept(broken: int, repetitions: int, confidence: float) -> bool:
    """Whether so many broken promises agree with the confidence, within binomial error."""
    return bool(binom.sf(broken - 1, repetitions, 1 - confidence) >= SIGNIFICANCE)

"""Two classes and more as one mechanism: what depends on their number, behind one face.

Log-odds of a row are one number of two classes, of the second; of K classes a vector of K - 1, of
each later class against the first. A `Family` knows their shape and how they become probabilities.
The numerics differ in kind and are those of the kernels: closed forms of one normal number, or a
mean over fixed points of a normal vector. Whoever has log-odds or probabilities asks the family and
never how many classes there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from adacos.kernels.class_risk import (
    integrated_class_log_odds,
    normal_points,
    probabilities,
    roots,
    with_first,
)
from adacos.kernels.martingale import integrated_log_odds
from adacos.kernels.namespace import expit, namespace
from adacos.typing import Floats, Ints

# Points and masses of a Gauss-Hermite rule for a standard normal variable.
_POINTS, _MASSES = np.polynomial.hermite_e.hermegauss(31)


class Family(ABC):
    """What a number of classes means for log-odds and probabilities."""

    @property
    @abstractmethod
    def later(self) -> tuple[int, ...]:
        """Shape of the log-odds of one row."""

    @abstractmethod
    def probability(self, log_odds: Floats) -> Floats:
        """Probability as it is stated: of the second of two classes, of more of each (rows, K)."""

    @abstractmethod
    def of_each(self, probability: Floats) -> Floats:
        """Probability of every class (rows, K) from that which is stated."""

    @abstractmethod
    def of_label(self, probability: Floats, label: Ints) -> Floats:
        """The one probability that is shown for rows with these labels, from that stated."""

    @abstractmethod
    def columns(self, probability: Floats, names: Sequence[Any], between: str) -> dict[str, Floats]:
        """Stated probabilities by heading; those of classes end in `between` and their names."""

    @abstractmethod
    def integrated(self, log_odds: Floats, mean: Floats, covariance: Floats) -> Floats:
        """Log-odds of the mean probability where a normal part of them cannot be known.

        `mean` (rows, L) and `covariance` (rows, L, L) are those of that part.
        """

    @abstractmethod
    def normal(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Log-odds that are normal with mean (L,) and covariance (L, L), and the mass of each."""


@dataclass(frozen=True)
class Binary(Family):
    """Two classes."""

    @property
    def later(self) -> tuple[int, ...]:
        """The log-odds of a row are a number."""
        return ()

    def probability(self, log_odds: Floats) -> Floats:
        """Probability of the second class."""
        probability: Floats = expit(log_odds)
        return probability

    def of_each(self, probability: Floats) -> Floats:
        """Probability of both classes (rows, 2)."""
        both: Floats = namespace(probability).stack([1.0 - probability, probability], axis=1)
        return both

    def of_label(self, probability: Floats, label: Ints) -> Floats:
        """That of the second class, whatever the label."""
        return probability

    def columns(self, probability: Floats, names: Sequence[Any], between: str) -> dict[str, Floats]:
        """One column."""
        return {"probability": probability}

    def integrated(self, log_odds: Floats, mean: Floats, covariance: Floats) -> Floats:
        """Log-odds of the mean probability."""
        return integrated_log_odds(log_odds + mean[:, 0], np.sqrt(covariance[:, 0, 0]))

    def normal(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Log-odds at the points of a Gauss-Hermite rule, and their masses."""
        deviation = np.sqrt(float(covariance[0, 0]))
        return float(mean[0]) + deviation * _POINTS, _MASSES / _MASSES.sum()


@dataclass(frozen=True)
class Multinomial(Family):
    """Three or more classes."""

    n_classes: int

    @property
    def later(self) -> tuple[int, ...]:
        """The log-odds of a row are a vector."""
        return (self.n_classes - 1,)

    def probability(self, log_odds: Floats) -> Floats:
        """Probability of each class."""
        return probabilities(log_odds)

    def of_each(self, probability: Floats) -> Floats:
        """The same."""
        return probability

    def of_label(self, probability: Floats, label: Ints) -> Floats:
        """That of the label."""
        return np.asarray(probability[np.arange(len(label)), label])

    def columns(self, probability: Floats, names: Sequence[Any], between: str) -> dict[str, Floats]:
        """One column for each class."""
        pairs = zip(names, probability.T, strict=True)
        return {f"probability{between}{name}": column for name, column in pairs}

    def integrated(self, log_odds: Floats, mean: Floats, covariance: Floats) -> Floats:
        """Log-odds of the mean probabilities."""
        return integrated_class_log_odds(log_odds + mean, roots(covariance))

    def normal(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Log-odds at the points of the rule, all of one mass."""
        spread = normal_points(len(mean)) @ roots(covariance).T
        moved = with_first(mean) + spread
        return moved[:, 1:] - moved[:, :1], np.full(len(spread), 1 / len(spread))


_BINARY = Binary()


def family(n_classes: int) -> Family:
    """The family of this number of classes."""
    return _BINARY if n_classes == 2 else Multinomial(n_classes)


def family_at(log_odds: Floats) -> Family:
    """The family of the log-odds of rows."""
    return family(1 + prod(log_odds.shape[1:]))


def family_of(probability: Floats) -> Family:
    """The family of probabilities as they are stated."""
    return _BINARY if probability.ndim == 1 else Multinomial(probability.shape[1])

"""Exact dynamic programming over batches, and problems with a known joint distribution."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from adacos import (
    Costs,
)


def waiting(costs: Costs, round_cost: float, *immediate: str) -> Costs:
    """The same costs with a cost of rounds."""
    return Costs(
        costs.covariates,
        misclassification=costs.matrix,
        panels=costs.panels,
        round_cost=round_cost,
        immediate=immediate,
    )


class Oracle:
    """The least expected total cost of a discrete world in which batches may be ordered."""

    def __init__(self, joint: np.ndarray, prices: list[float], errors: Any, round_cost: float):
        self.joint, self.prices, self.errors = joint, prices, np.asarray(errors, dtype=float)
        self.round_cost, self.p = round_cost, joint.ndim - 1
        self.value = cache(self._value)

    def mass(self, seen: tuple[tuple[int, int], ...]) -> np.ndarray:
        """P(y, what was seen)."""
        index: list[Any] = [slice(None)] * (self.p + 1)
        for k, value in seen:
            index[k + 1] = slice(value, value + 1)
        return self.joint[tuple(index)].reshape(len(self.joint), -1).sum(axis=1)

    def stop(self, seen: tuple[tuple[int, int], ...]) -> float:
        return float((self.mass(seen) @ self.errors).min())

    def batch(self, seen: tuple[tuple[int, int], ...], order: tuple[int, ...], then: Any) -> float:
        """Cost of ordering a batch and then going on in the best way, times P(seen)."""
        paid = sum(self.prices[k] for k in order) + self.round_cost
        total = float(self.mass(seen).sum()) * paid
        for values in np.ndindex(*[self.joint.shape[k + 1] for k in order]):
            total += then(tuple(sorted((*seen, *zip(order, values, strict=True)))))
        return total

    def _value(self, seen: tuple[tuple[int, int], ...]) -> float:
        left = [k for k in range(self.p) if k not in dict(seen)]
        batches = [b for size in range(1, len(left) + 1) for b in combinations(left, size)]
        return min([self.stop(seen), *(self.batch(seen, b, self.value) for b in batches)])

    def best_single_batch(self) -> tuple[float, tuple[int, ...]]:
        sets = [b for size in range(1, self.p + 1) for b in combinations(range(self.p), size)]
        costs = {b: self.batch((), b, self.stop) for b in sets}
        costs[()] = self.stop(())
        best = min(costs, key=costs.__getitem__)
        return costs[best], best


def draw(joint: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    cell = np.random.default_rng(seed).choice(joint.size, n, p=joint.ravel())
    y, *x = np.unravel_index(cell, joint.shape)
    return np.column_stack(x).astype(float), y


PRICES = [2.0, 3.0, 1.0, 2.5]


ERRORS = 100 * (1 - np.eye(3))


SHARES = [(0.1, 0.8, 0.5), (0.2, 0.3, 0.9), (0.8, 0.2, 0.3), (0.3, 0.7, 0.7)]


def naive_bayes() -> np.ndarray:
    """P(y, x) of binary covariates that are independent given one of three classes."""
    joint = np.array([0.4, 0.35, 0.25])
    for share in np.array(SHARES):
        likely = np.stack([1 - share, share], axis=1)
        joint = joint[..., None] * likely.reshape(3, *[1] * (joint.ndim - 1), 2)
    return joint


JOINT = naive_bayes()


def realised(policy: Any) -> float:
    """Expected total cost of a policy under the true joint distribution, exactly."""
    cells = np.array(list(np.ndindex(*JOINT.shape[1:])), dtype=float)
    result, mass = policy.acquire(cells), JOINT.reshape(3, -1)
    return float((mass.sum(axis=0) * result.cost).sum() + (mass * ERRORS[:, result.label]).sum())


def expected_by(policy: Any) -> float:
    """The total cost that a consultation states before anything is known."""
    explanation = policy.consultation().next().explanation
    best = explanation.best_plan
    stop = explanation.stop_now
    return float(stop if best is None else min(stop, best.expected_total_cost))

"""A report on a policy with three or more classes in numbers: who is answered what, how right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.kernels.binomial import interval
from adacos.report.held import Held
from adacos.report.numbers import FEW, Bin, shares_by_probability, stops_of
from adacos.report.shapes import grid_of
from adacos.typing import Floats, Ints


class Share(NamedTuple):
    """Rows counted among others, with the exact 95% interval of their share."""

    found: int
    among: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share; NaN of none."""
        return self.found / self.among if self.among else np.nan


class ClassLine(NamedTuple):
    """How one class fares: how many of its rows are found, and of its answers right.

    `cost` is the mean misclassification cost of its rows, NaN of none.
    """

    name: str
    recall: Share
    right: Share
    cost: float


class ClassMisfit(NamedTuple):
    """Rows with one answer at one stop: share of wrong answers and their cost, expected and found.

    Costs are means per row.
    """

    stop: str
    answer: int
    expected: float
    found: Share
    expected_cost: float
    cost: float

    @property
    def agrees(self) -> bool:
        """Whether the expected share lies inside the interval of the one found."""
        return self.found.low <= self.expected <= self.found.high


class ClassShape(NamedTuple):
    """What each value of a covariate adds to the log-odds of each class against all of them.

    `effects` has a column for each class; in each line they sum to zero. `rug` are values of
    held-out rows, empty for categories.
    """

    covariate: str
    values: NDArray[Any]
    effects: Floats
    rug: Floats


def confusion(held: Held) -> Ints:
    """Number of rows by true class and answer."""
    counts = np.zeros(held.charged.shape, dtype=np.intp)
    np.add.at(counts, (held.true, held.label), 1)
    return counts


def class_lines(held: Held) -> list[ClassLine]:
    """Every class in order."""
    counts = confusion(held)
    rows, answers = counts.sum(axis=1), counts.sum(axis=0)
    wrong = (counts * held.charged).sum(axis=1)
    return [
        ClassLine(
            name,
            _share(int(counts[k, k]), int(rows[k])),
            _share(int(counts[k, k]), int(answers[k])),
            float(wrong[k] / rows[k]) if rows[k] else np.nan,
        )
        for k, name in enumerate(held.class_names)
    ]


def class_calibration(held: Held) -> list[list[Bin]]:
    """Observed share of each class among rows of like probability of it."""
    return [
        shares_by_probability(p, (held.true == k).astype(np.intp))
        for k, p in enumerate(held.result.probability.T)
    ]


def class_scores(held: Held) -> tuple[float, float]:
    """Log-loss and Brier score (sum over the classes) of the probabilities at the stop."""
    p, each = held.result.probability, np.arange(len(held.true))
    own = np.maximum(p[each, held.true], np.finfo(np.float64).tiny)
    truth = np.zeros_like(p)
    truth[each, held.true] = 1.0
    return float(-np.log(own).mean()), float(((p - truth) ** 2).sum(axis=1).mean())


def class_misfits(held: Held) -> list[ClassMisfit]:
    """Wrong answers expected and found at each stop with each answer."""
    p, label, true = held.result.probability, held.label, held.true
    each = np.arange(len(label))
    expected_cost = (p * held.charged.T[label]).sum(axis=1)
    cost = held.charged[true, label]
    lines = []
    stop, names = stops_of(held)
    for number in np.unique(stop):
        for answer in range(p.shape[1]):
            rows = (stop == number) & (label == answer)
            if rows.sum() < FEW:
                continue
            lines.append(
                ClassMisfit(
                    names[int(number)],
                    answer,
                    float(1 - p[each, label][rows].mean()),
                    _share(int((true[rows] != answer).sum()), int(rows.sum())),
                    float(expected_cost[rows].mean()),
                    float(cost[rows].mean()),
                )
            )
    return lines


def class_shapes(held: Held, stage: int) -> list[ClassShape]:
    """The shape functions of one set."""
    names, model, basis = held.policy.encoder_.names, held.model, held.model.basis
    found = []
    for k in model.sequence.set(stage).tolist():
        if not (basis.group == k).any():
            continue
        values, grid, rug = grid_of(held, k)
        later = basis.block(grid, k) @ model.coefs[stage][:, basis.group == k].T
        effects = np.column_stack([np.zeros(len(later)), later])
        effects -= effects.mean(axis=1, keepdims=True)
        found.append(ClassShape(names[k], values, effects, rug))
    return found


def _share(found: int, among: int) -> Share:
    low, high = interval(found, among, 0.95) if among else (0.0, 1.0)
    return Share(found, among, float(low), float(high))

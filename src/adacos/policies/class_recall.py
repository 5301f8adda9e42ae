"""Target recalls of classes, where there are more than two: surcharges on the errors about them.

Each class k may have a target recall r_k, the least share of its rows that are answered with it.
The policy is then that of costs by which every wrong answer to a row of class k costs s_k >= 0 more
than was stated:

    C_s[k, label] = C[k, label] + s_k    for label != k.

A policy that is best for C_s has the least cost by C of all whose recalls of the surcharged classes
are at least its own: a cheaper one would be cheaper by C_s too. So s is the Lagrange multiplier of
"least total cost at these recalls", and the stated costs stay as they are.

With the log-odds given, a larger s_k turns answers into k and no others: the recall of k rises, all
others fall. So s is raised from zero, class by class, each to the least surcharge at which its
recall is reached while the others stay, until all are. Where every row stops at the same set, no
solution has a smaller surcharge of any class, and if s grows without end there is none. A policy
that stops row by row may stop elsewhere at another s; what is found then reaches the targets, but
need not be the least. Recalls are those of training rows, answered by models that did not see them.

Of a policy that has no such models rows stop as by the stated costs, and surcharges turn answers
only (`StoppedRows`). Recalls are then those of rows that it was not fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adacos.deciders.out_of_fold import AnyFoldedDecider
from adacos.decision import DecisionRule
from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import label_at
from adacos.policies.recall import percent, recall_target
from adacos.typing import Floats, Ints
from adacos.validation import choices

# Training rows of each class on which its recall is found, drawn where there are more.
_MOST_ROWS = 1500
# Surcharges are tried from this share of the dearest error up to this multiple of it.
_SMALLEST, _LARGEST = 1 / 16, 1e6
# A share of rows that is exactly the target may round below it.
_ROUNDING = 1e-9


class Targets(NamedTuple):
    """Numbers of the classes that have a target recall, and their recalls."""

    classes: Ints
    recalls: Floats

    def stricter(self, share: float) -> Targets:
        """The same with this share of the allowed misses."""
        return self._replace(recalls=1 - share * (1 - self.recalls))


def targets_of(wanted: Any, classes: NDArray[Any]) -> Targets:
    """The target recalls of three or more classes, which must be named."""
    known = classes.tolist()
    if not isinstance(wanted, Mapping):
        raise InvalidInputError(
            "target_recall",
            f"must name the class it protects, of {len(known)}",
            wanted,
            f"For example target_recall={{{known[-1]!r}: 0.95}}; several classes may have one.",
        )
    recall_target("target_recall", wanted)
    unknown = [label for label in wanted if label not in known]
    if unknown:
        raise InvalidInputError(
            "target_recall", "must name classes of y", unknown, _classes_meant(unknown, known)
        )
    numbers = [known.index(label) for label in wanted]
    return Targets(np.array(numbers, dtype=np.intp), np.array([*wanted.values()], dtype=float))


def _classes_meant(unknown: list[Any], known: list[Any]) -> str:
    """What could have been meant by labels that are no classes."""
    for label in unknown:
        for own in known:
            if str(own) == str(label):
                kinds = type(own).__name__, type(label).__name__
                return f"Write {own!r}, which is of type {kinds[0]} in y, not {kinds[1]}."
    return choices(map(str, unknown), [str(label) for label in known], "The classes are")


def surcharged(matrix: Floats, targets: Targets, surcharges: Floats) -> Floats:
    """The costs by which a wrong answer to a row of these classes costs its surcharge more."""
    rows = np.zeros((len(matrix), 1))
    rows[targets.classes, 0] = surcharges
    return np.asarray(matrix + rows * (1 - np.eye(len(matrix))))


def least_surcharges(
    recall_at: Callable[[Floats, int], float],
    recalls: Floats,
    scale: float,
    start: Floats,
    accuracy: float = 0.02,
    cycles: int = 20,
) -> Floats | None:
    """Surcharges from `start` on at which every recall is reached; None if none were found.

    Parameters
    ----------
    recall_at : from the surcharges of all classes to the recall of the one of this number.
    recalls : what is to be reached.
    scale : cost of the most expensive error.
    start : surcharges to begin with, at most those wanted.
    accuracy : relative.
    cycles : how often all classes are gone through.
    """
    surcharges = start.copy()

    def reaches(k: int, surcharge: float) -> bool:
        tried = surcharges.copy()
        tried[k] = surcharge
        return bool(recall_at(tried, k) >= recalls[k] - _ROUNDING)

    for _ in range(cycles):
        lacking = [k for k in range(len(surcharges)) if not reaches(k, surcharges[k])]
        if not lacking:
            return surcharges
        for k in lacking:
            low, high = surcharges[k], max(4 * surcharges[k], _SMALLEST * scale)
            while not reaches(k, high):
                low, high = high, 4 * high
                if low > _LARGEST * scale:
                    return None
            while high - low > accuracy * high:
                middle = (low + high) / 2
                low, high = (low, middle) if reaches(k, middle) else (middle, high)
            surcharges[k] = high
    return None


class Recalls(Protocol):
    """Recalls of the classes with a target, on rows that took no part in what answers them."""

    @property
    def scale(self) -> float:
        """Cost of the most expensive error."""

    def at(self, surcharges: Floats, k: int) -> float:
        """The recall of one class at these surcharges."""


class LeftOutRecalls:
    """Cross-validated recalls of a policy's classes on training rows."""

    def __init__(self, policy: Any, targets: Targets) -> None:
        self.decider, self.targets = policy.decider_, targets
        model, rng = policy.model_, np.random.default_rng(policy.random_state)
        members = [np.flatnonzero(model.y == k) for k in targets.classes]
        members = [np.sort(rng.permutation(rows)[:_MOST_ROWS]) for rows in members]
        self.weights = [model.weight[rows] for rows in members]
        self.answers: list[Callable[[AnyFoldedDecider], Ints]] = [
            policy._answers_left_out(r) for r in members
        ]

    @property
    def scale(self) -> float:
        """Cost of the most expensive error."""
        return float(np.ptp(self.decider.costs.matrix))

    def at(self, surcharges: Floats, k: int) -> float:
        """The recall of one class at these surcharges."""
        matrix = surcharged(self.decider.costs.matrix, self.targets, surcharges)
        decider = self.decider.with_rule(DecisionRule(matrix))
        right = self.answers[k](decider) == self.targets.classes[k]
        return float(np.average(right, weights=self.weights[k]))


@dataclass(frozen=True)
class StoppedRows:
    """Rows that a policy was not fitted on, where they stopped.

    Attributes
    ----------
    probability : (rows, K) probability of each class at the stop.
    number : (rows,) number of the class.
    """

    probability: Floats
    number: Ints

    def counts(self, targets: Targets) -> Ints:
        """How many rows of each class with a target there are."""
        return np.array([np.sum(self.number == k) for k in targets.classes], dtype=np.intp)

    def misses(self, matrix: Floats, targets: Targets, surcharges: Floats) -> Ints:
        """How many of them are answered with another class at these surcharges."""
        label = label_at(self.probability, surcharged(matrix, targets, surcharges))
        missed = [np.sum(label[self.number == k] != k) for k in targets.classes]
        return np.array(missed, dtype=np.intp)


class StoppedRecalls:
    """Recalls of rows that stop where they do, whatever the surcharges."""

    def __init__(self, rows: StoppedRows, matrix: Floats, targets: Targets) -> None:
        self.rows, self.matrix, self.targets = rows, matrix, targets
        self.counts = rows.counts(targets)

    @property
    def scale(self) -> float:
        """Cost of the most expensive error."""
        return float(np.ptp(self.matrix))

    def at(self, surcharges: Floats, k: int) -> float:
        """The recall of one class at these surcharges."""
        misses = self.rows.misses(self.matrix, self.targets, surcharges)
        return float(1 - misses[k] / self.counts[k])


def use_class_recalls(policy: Any, wanted: Any) -> None:
    """Let a policy reach these recalls on training rows, cross-validated."""
    reach_recalls(policy, targets_of(wanted, policy.classes_), partial(LeftOutRecalls, policy))


def reach_recalls(
    policy: Any, targets: Targets, recalls_of: Callable[[Targets], Recalls], remedy: str = ""
) -> None:
    """Let a policy have the least surcharges at which the recalls reach their targets.

    `recalls_of` gives the recalls of the classes of some targets; `remedy` says what else helps
    where they do not reach them.
    """
    recalls = recalls_of(targets)
    start = np.zeros(len(targets.classes))
    surcharges = least_surcharges(recalls.at, targets.recalls, recalls.scale, start)
    if surcharges is None:
        raise out_of_reach(policy.classes_, targets, recalls_of, remedy)
    reached = [recalls.at(surcharges, k) for k in range(len(surcharges))]
    use_surcharges(policy, targets, surcharges)
    policy.recall_estimate_ = of_classes(policy, targets, reached)


def out_of_reach(
    classes: NDArray[Any],
    targets: Targets,
    recalls_of: Callable[[Targets], Recalls],
    remedy: str = "",
) -> InvalidInputError:
    """The refusal of recalls that these rows do not reach."""
    names, unreached = classes[targets.classes].tolist(), []
    for k, name in enumerate(names):
        one = Targets(targets.classes[[k]], targets.recalls[[k]])
        recalls = recalls_of(one)
        if least_surcharges(recalls.at, one.recalls, recalls.scale, np.zeros(1)) is None:
            unreached.append(name)
    return InvalidInputError(
        "target_recall",
        "must be within reach of these rows",
        listed_recalls(names, targets.recalls)
        + (f": {unreached} not even alone" if unreached else ": each alone, but not together"),
        "Ask for less, or for fewer classes: what answers one class more often answers the "
        f"others less often.{remedy}",
    )


def use_surcharges(policy: Any, targets: Targets, surcharges: Floats) -> None:
    """Let a policy decide by the stated costs with these surcharges."""
    policy.surcharges_ = of_classes(policy, targets, surcharges)
    matrix = surcharged(policy.cost_table_.matrix, targets, surcharges)
    policy.decider_ = policy.decider_.with_rule(DecisionRule(matrix))


def of_classes(policy: Any, targets: Targets, values: Sequence[float] | Floats) -> dict[Any, float]:
    """A number for each class with a target."""
    labels = policy.classes_[targets.classes].tolist()
    return dict(zip(labels, map(float, values), strict=True))


def listed_recalls(names: Sequence[Any], recalls: Floats) -> str:
    """Classes with their recalls, in a row."""
    return ", ".join(
        f"{name} {percent(float(recall))}" for name, recall in zip(names, recalls, strict=True)
    )

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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.engine import DecisionRule
from adacos.exceptions import InvalidInputError
from adacos.policies.recall import percent, recall_target
from adacos.validation import choices

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

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
        """The same with so much of the allowed misses."""
        return self._replace(recalls=1 - share * (1 - self.recalls))


def targets_of(wanted: Any, classes: NDArray[Any]) -> Targets:
    """The target recalls of more than two classes, which must be named."""
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
        remedy = choices(map(str, unknown), [str(label) for label in known], "The classes are")
        raise InvalidInputError("target_recall", "must name classes of y", unknown, remedy)
    numbers = [known.index(label) for label in wanted]
    return Targets(np.array(numbers, dtype=np.intp), np.array([*wanted.values()], dtype=float))


def surcharged(matrix: Floats, targets: Targets, surcharges: Floats) -> Floats:
    """The costs by which every wrong answer to a row of these classes costs so much more."""
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
    scale : cost of the dearest error.
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


class LeftOutRecalls:
    """Recalls of a policy's classes on training rows that are left out of the models."""

    def __init__(self, policy: Any, targets: Targets) -> None:
        self.policy, self.targets = policy, targets
        model, rng = policy.model_, np.random.default_rng(policy.random_state)
        members = [np.flatnonzero(model.y == k) for k in targets.classes]
        members = [np.sort(rng.permutation(rows)[:_MOST_ROWS]) for rows in members]
        self.weights = [model.weight[rows] for rows in members]
        self.answers: list[Callable[[], Ints]] = [policy._answers_left_out(r) for r in members]

    @property
    def scale(self) -> float:
        """Cost of the dearest error."""
        return float(np.ptp(self.policy.cost_table_.matrix))

    def at(self, surcharges: Floats, k: int) -> float:
        """The recall of one class at these surcharges, which the policy is left with."""
        matrix = surcharged(self.policy.cost_table_.matrix, self.targets, surcharges)
        self.policy._use_rule(DecisionRule(matrix))
        right = self.answers[k]() == self.targets.classes[k]
        return float(np.average(right, weights=self.weights[k]))


def use_class_recalls(policy: Any, wanted: Any) -> None:
    """Let a policy reach these recalls on training rows that are left out of the models."""
    targets = targets_of(wanted, policy.classes_)
    left_out = LeftOutRecalls(policy, targets)
    start = np.zeros(len(targets.classes))
    surcharges = least_surcharges(left_out.at, targets.recalls, left_out.scale, start)
    if surcharges is None:
        raise out_of_reach(policy, targets)
    recalls = [left_out.at(surcharges, k) for k in range(len(surcharges))]
    use_surcharges(policy, targets, surcharges)
    policy.recall_estimate_ = of_classes(policy, targets, recalls)


def out_of_reach(policy: Any, targets: Targets) -> InvalidInputError:
    """The refusal of recalls that training rows left out of the models do not reach."""
    names, unreached = policy.classes_[targets.classes].tolist(), []
    for k, name in enumerate(names):
        one = Targets(targets.classes[[k]], targets.recalls[[k]])
        left_out = LeftOutRecalls(policy, one)
        if least_surcharges(left_out.at, one.recalls, left_out.scale, np.zeros(1)) is None:
            unreached.append(name)
    return InvalidInputError(
        "target_recall",
        "must be within reach of these rows",
        listed_recalls(names, targets.recalls)
        + (f": {unreached} not even alone" if unreached else ": each alone, but not together"),
        "Ask for less, or for fewer classes: what answers one class more often answers the "
        "others less often.",
    )


def use_surcharges(policy: Any, targets: Targets, surcharges: Floats) -> None:
    """Let a policy decide by the stated costs with these surcharges."""
    policy.surcharges_ = of_classes(policy, targets, surcharges)
    matrix = surcharged(policy.cost_table_.matrix, targets, surcharges)
    policy._use_rule(DecisionRule(matrix))


def of_classes(policy: Any, targets: Targets, values: Sequence[float] | Floats) -> dict[Any, float]:
    """A number for each class with a target."""
    labels = policy.classes_[targets.classes].tolist()
    return dict(zip(labels, map(float, values), strict=True))


def listed_recalls(names: Sequence[Any], recalls: Floats) -> str:
    """Classes with their recalls, in a row."""
    return ", ".join(
        f"{name} {percent(float(recall))}" for name, recall in zip(names, recalls, strict=True)
    )


def told_of_recalls(policy: Any) -> str:
    """What target recalls have to do with a decision, in words."""
    names = [
        f"those about {label} {surcharge:.2f} more"
        for label, surcharge in getattr(policy, "surcharges_", {}).items()
        if surcharge > 0
    ]
    if not names:
        return ""
    return f"For the target recalls errors count more than was stated: {', '.join(names)}."

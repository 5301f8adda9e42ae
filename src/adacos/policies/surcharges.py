"""Target recalls of classes, where there are more than two: surcharges on the errors about them.

Each class k may have a target recall r_k, the least share of its rows that are answered with it, or
for which a decision is taken that protects it. Such a decision is then what is called a right
answer below, and two classes are treated alike.

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

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adacos.decision import DecisionRule
from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import label_at
from adacos.policies.recall import Reached, Targets, percent
from adacos.typing import Floats, Ints

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy
    from adacos.policies.sequence_policy import SequencePolicy

# From the surcharges of the classes with a target to the recall of the one of this number, on rows
# that took no part in what answers them; and from some targets to that.
RecallAt = Callable[[Floats, int], float]
RecallsOf = Callable[[Targets], RecallAt]
# Training rows of each class on which its recall is found, drawn where there are more.
_MOST_ROWS = 1500
# Shares of the allowed misses that the surcharges to be certified aim at, bold first.
SHARES = (1.25, 1.0, 0.8, 0.6, 0.4, 0.2, 0.05)
# They need not be found more exactly, nor at any price.
_ROUGHLY, _CYCLES = 0.1, 12
# Steps from one to the next.
_BETWEEN = 3
# Surcharges are tried from this share of the dearest error up to this multiple of it.
_SMALLEST, _LARGEST = 1 / 16, 1e6
# A share of rows that is exactly the target may round below it.
_ROUNDING = 1e-9


def check_two_of_each(number: Ints, classes: NDArray[Any]) -> None:
    """Refuse training rows of which a class has one only: no fold would have another."""
    rarest = int(np.argmin(np.bincount(number)))
    if np.sum(number == rarest) < 2:
        raise InvalidInputError(
            "y",
            "two training rows of every class are needed to certify recalls by class",
            f"one of class {classes.tolist()[rarest]!r}",
            "Add some, or leave recall_confidence out.",
        )


def surcharged(matrix: Floats, targets: Targets, surcharges: Floats) -> Floats:
    """The costs by which a wrong answer to a row of these classes costs its surcharge more."""
    rows = np.zeros((len(matrix), 1))
    rows[targets.classes, 0] = surcharges
    return np.asarray(matrix + rows * (1.0 - targets.found(len(matrix))))


def least_surcharges(
    recall_at: RecallAt,
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
        short = [k for k in range(len(surcharges)) if not reaches(k, surcharges[k])]
        if not short:
            return surcharges
        for k in short:
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


def out_of_fold_recalls(policy: SequencePolicy, targets: Targets) -> RecallAt:
    """Cross-validated recalls of a policy's classes on training rows."""
    decider, model = policy.decider_, policy.model_
    rng = np.random.default_rng(policy.random_state)
    members = [np.flatnonzero(model.y == k) for k in targets.classes]
    members = [np.sort(rng.permutation(rows)[:_MOST_ROWS]) for rows in members]
    answers = [policy._answers_out_of_fold(rows) for rows in members]

    def recall_at(surcharges: Floats, k: int) -> float:
        matrix = surcharged(decider.costs.matrix, targets, surcharges)
        label = answers[k](decider.with_rule(DecisionRule(matrix)))
        right = targets.found(len(matrix))[targets.classes[k], label]
        return float(np.average(right, weights=model.weight[members[k]]))

    return recall_at


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

    def misses(self, matrix: Floats, targets: Targets, surcharges: Floats) -> Ints:
        """How many rows of each class with a target are answered with another at these."""
        label = label_at(self.probability, surcharged(matrix, targets, surcharges))
        found = targets.found(len(matrix))
        missed = [np.sum(~found[k, label[self.number == k]]) for k in targets.classes]
        return np.array(missed, dtype=np.intp)

    def recalls(self, matrix: Floats, targets: Targets) -> RecallAt:
        """Recalls of rows that stop where they do, whatever the surcharges."""
        counts = [np.sum(self.number == k) for k in targets.classes]
        return lambda s, k: float(1 - self.misses(matrix, targets, s)[k] / counts[k])


def probability_of_each(probability: Floats) -> Floats:
    """Probabilities (rows, K) of the classes, of which there is one column for two of them."""
    if probability.shape[1:]:
        return probability
    return np.column_stack([1.0 - probability, probability])


def least_reaching(
    policy: BasePolicy, targets: Targets, recalls_of: RecallsOf, remedy: str = ""
) -> Reached:
    """The least surcharges of a policy at which the recalls reach their targets.

    `remedy` says what else helps where they do not reach them.
    """
    recall_at, start = recalls_of(targets), np.zeros(len(targets.classes))
    scale = float(np.ptp(policy.cost_table_.matrix))
    surcharges = least_surcharges(recall_at, targets.recalls, scale, start)
    if surcharges is None:
        raise out_of_reach(policy, targets, recalls_of, remedy)
    reached = [recall_at(surcharges, k) for k in range(len(surcharges))]
    return reached_by(policy, targets, surcharges, targets.by_name(policy.classes_, reached))


def surcharges_to_try(
    policy: BasePolicy, targets: Targets, recalls_of: RecallsOf, remedy: str = ""
) -> list[Floats]:
    """Surcharges from cautious to bold, by rows that take no part in the tests of a certificate."""
    recall_at, scale = recalls_of(targets), float(np.ptp(policy.cost_table_.matrix))
    found: list[Floats] = []
    start = np.zeros(len(targets.classes))
    for share in SHARES:
        wanted = np.maximum(targets.stricter(share).recalls, 0.0)
        more = least_surcharges(recall_at, wanted, scale, start, _ROUGHLY, _CYCLES)
        if more is None:
            break
        if not found or np.any(more > start):
            found.append(more)
        start = more
    if not found:
        raise out_of_reach(policy, targets, recalls_of, remedy)
    between = [
        bold + part * (cautious - bold)
        for bold, cautious in pairwise(found)
        for part in np.arange(_BETWEEN) / _BETWEEN
    ]
    return [*between, found[-1]][::-1]


def out_of_reach(
    policy: BasePolicy, targets: Targets, recalls_of: RecallsOf, remedy: str
) -> InvalidInputError:
    """The refusal of recalls that these rows do not reach."""
    names, scale = targets.names(policy.classes_), float(np.ptp(policy.cost_table_.matrix))
    unreached = []
    for k, name in enumerate(names):
        one = Targets(targets.classes[[k]], targets.recalls[[k]])
        if least_surcharges(recalls_of(one), one.recalls, scale, np.zeros(1)) is None:
            unreached.append(name)
    listed = zip(names, targets.recalls.tolist(), strict=True)
    return InvalidInputError(
        "target_recall",
        "must be within reach of these rows",
        ", ".join(f"{name} {percent(recall)}" for name, recall in listed)
        + (f": {unreached} not even alone" if unreached else ": each alone, but not together"),
        "Ask for less, or for fewer classes: what answers one class more often answers the "
        f"others less often.{remedy}",
    )


def reached_by(
    policy: BasePolicy,
    targets: Targets,
    surcharges: Floats,
    estimate: dict[Any, float],
    certificate: Any = None,
) -> Reached:
    """What a policy reaches that decides by the stated costs with these surcharges."""
    rule = DecisionRule(surcharged(policy.cost_table_.matrix, targets, surcharges))
    by_name = targets.by_name(policy.classes_, surcharges.tolist())
    return Reached(rule, estimate, surcharges=by_name, certificate=certificate)

"""A certificate of the recalls of several classes, earned on calibration rows.

Policies with ever smaller surcharges, see `adacos.policies.class_recall`, are fixed in advance on
training rows, and tried on held-out rows from cautious to bold, up to the first that fails. One
passes if the exact binomial test of every class does. If a class has less than its recall, all
tests pass with a probability of at most 1 - confidence, since its own must pass: so the number of
classes costs no confidence, and the number of policies costs none either, see
`adacos.policies.recall`. The certificate says that all recalls hold together.

Where not even the first policy passes, `on_uncertifiable="largest"` certifies what it does prove.
Bounds of several classes that are read off the same rows must share the confidence: each then has
1 - (1 - confidence) / number of classes, in the tests before as well, and none exceeds what was
asked for. If the first policy has all recalls asked for, such bounds cannot be wrong; if not, a
wrong certificate and a wrong bound both need the bound of some class to exceed its recall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.decision import DecisionRule
from adacos.document.blocks import Plain, fragment
from adacos.engine import run
from adacos.exceptions import InvalidInputError, NotCertifiableError
from adacos.kernels.binomial import lower_bound, trials_needed
from adacos.kernels.groups import one_of_each
from adacos.policies.class_recall import (
    LeftOutRecalls,
    Recalls,
    Targets,
    least_surcharges,
    of_classes,
    out_of_reach,
    surcharged,
    targets_of,
    use_surcharges,
)
from adacos.policies.many_classes import check_with_classes
from adacos.policies.recall import (
    GROUPED,
    allowed_misses,
    class_numbers,
    percent,
    refuse_training_rows,
    value_or_default,
)
from adacos.tables.weights import groups_of
from adacos.typing import Floats, Ints

# Shares of the allowed misses that the policies tried aim at, bold first.
SHARES = (1.25, 1.0, 0.8, 0.6, 0.4, 0.2, 0.05)
# They need not be found more exactly, nor at any price.
_ACCURACY, _CYCLES = 0.1, 12
# From one to the next it is so many steps.
_BETWEEN = 3
_METHOD = "exact binomial tests of every class on held-out rows, from cautious to bold surcharges"


@dataclass(frozen=True)
class ClassRecallCertificate:
    """Proof that the recalls of some classes on new rows are at least `bounds`, all together.

    Parameters
    ----------
    classes : tuple
        The classes.
    recalls : tuple of float
        What was asked for, of each class.
    bounds : tuple of float
        What holds, of each class.
    confidence : float
        At most 1 - confidence of all attempts end in a certificate of which some bound is wrong.
        Every request to certify is an attempt, refused ones included.
    n_rows : tuple of int
        Held-out rows of each class.
    misses : tuple of int
        How many of them the certified policy answers with another class.
    method : str
        How the certificate was obtained.

    See Also
    --------
    RecallCertificate : The certificate for two classes.

    Examples
    --------
    >>> from adacos import ClassRecallCertificate
    >>> print(ClassRecallCertificate(("a", "b"), (0.9, 0.8), (0.91, 0.8), 0.9, (80, 60), (2, 6),
    ...                              "exact binomial tests"))
    Sensitivities (recalls) for cases like these, at 90% confidence for all of them together:
    a: at least 91% (requested: 90%); 2 of 80 calibration rows missed.
    b: at least 80% (requested: 80%); 6 of 60 calibration rows missed.
    Method: exact binomial tests.
    The 90% covers every certification attempt, including refused ones.
    """

    classes: tuple[Any, ...]
    recalls: tuple[float, ...]
    bounds: tuple[float, ...]
    confidence: float
    n_rows: tuple[int, ...]
    misses: tuple[int, ...]
    method: str

    def _repr_html_(self) -> str:
        return fragment([Plain(str(self))])

    def __str__(self) -> str:
        each = zip(self.classes, self.recalls, self.bounds, self.n_rows, self.misses, strict=True)
        return "\n".join(
            [
                f"Sensitivities (recalls) for cases like these, at {percent(self.confidence)} "
                "confidence for all of them together:",
                *(
                    f"{name}: at least {percent(bound)} (requested: {percent(recall)}); {misses} "
                    f"of {n} calibration rows missed."
                    for name, recall, bound, n, misses in each
                ),
                f"Method: {self.method}.",
                f"The {percent(self.confidence)} covers every certification attempt, including "
                "refused ones.",
            ]
        )


def surcharges_to_try(
    classes: NDArray[Any],
    targets: Targets,
    recalls_of: Callable[[Targets], Recalls],
    remedy: str = "",
) -> list[Floats]:
    """Surcharges from cautious to bold, by rows that take no part in the tests.

    See `adacos.policies.class_recall.reach_recalls`.
    """
    recalls = recalls_of(targets)
    found: list[Floats] = []
    start = np.zeros(len(targets.classes))
    for share in SHARES:
        wanted = np.maximum(targets.stricter(share).recalls, 0.0)
        more = least_surcharges(recalls.at, wanted, recalls.scale, start, _ACCURACY, _CYCLES)
        if more is None:
            break
        if not found or np.any(more > start):
            found.append(more)
        start = more
    if not found:
        raise out_of_reach(classes, targets, recalls_of, remedy)
    between = [
        bold + part * (cautious - bold)
        for bold, cautious in pairwise(found)
        for part in np.arange(_BETWEEN) / _BETWEEN
    ]
    return [*between, found[-1]][::-1]


def certify_classes(
    misses_at: Callable[[Floats], Ints],
    surcharges: Sequence[Floats],
    n_rows: Ints,
    targets: Targets,
    confidence: float,
    labels: Sequence[Any],
    *,
    largest: bool = False,
) -> tuple[ClassRecallCertificate, Floats]:
    """Certificate for the boldest surcharges before the first that fail, and these.

    Parameters
    ----------
    misses_at : from surcharges to the held-out rows of each class that are answered with another.
    surcharges : to be tried in this order; not chosen on these rows.
    n_rows : held-out rows of each class.
    targets : the classes and the recalls asked for.
    confidence : of all recalls together.
    labels : the classes by name.
    largest : whether to certify what the first surcharges prove, where they fail.
    """
    each = 1 - (1 - confidence) / len(labels) if largest else confidence
    recalls = targets.recalls.tolist()
    allowed = np.array(
        [allowed_misses(int(n), r, each) for n, r in zip(n_rows, recalls, strict=True)]
    )
    passed: tuple[Floats, Ints] | None = None
    for tried in surcharges if np.all(allowed >= 0) else ():
        misses = misses_at(tried)
        if np.any(misses > allowed):
            break
        passed = tried, misses

    def certificate(bounds: Floats, misses: Ints, method: str) -> ClassRecallCertificate:
        return ClassRecallCertificate(
            tuple(labels),
            tuple(recalls),
            tuple(bounds.tolist()),
            confidence,
            tuple(n_rows.tolist()),
            tuple(misses.tolist()),
            method,
        )

    if passed is not None:
        found, misses = passed
        return certificate(lower_bound(n_rows - allowed, n_rows, each), misses, _METHOD), found
    first = surcharges[0]
    misses = misses_at(first)
    proved = np.minimum(lower_bound(n_rows - misses, n_rows, each), targets.recalls)
    if largest:
        method = "exact lower bounds at the most cautious surcharges, which share the confidence"
        return certificate(proved, misses, method), first
    k = int(np.argmax(misses > allowed))
    raise NotCertifiableError(
        recalls[k],
        confidence,
        int(n_rows[k]),
        int(misses[k]),
        float(lower_bound(n_rows[k] - misses[k], n_rows[k], 1 - (1 - confidence) / len(labels))),
        trials_needed(recalls[k], confidence, int(misses[k])),
        of_class=labels[k],
    )


def use_certified(
    policy: Any,
    targets: Targets,
    surcharges: Sequence[Floats],
    misses_at: Callable[[Floats], Ints],
    n_rows: Ints,
    confidence: float,
    note: str,
) -> None:
    """Let a policy have the boldest of these surcharges whose recalls are certified.

    `note` says of the rows that prove them what the certificate should.
    """
    labels = policy.classes_[targets.classes].tolist()
    largest = policy.on_uncertifiable == "largest"
    certificate, found = certify_classes(
        misses_at, surcharges, n_rows, targets, confidence, labels, largest=largest
    )
    policy.certificate_ = replace(certificate, method=certificate.method + note)
    policy.recall_estimate_ = of_classes(
        policy, targets, 1 - np.array(policy.certificate_.misses) / n_rows
    )
    use_surcharges(policy, targets, found)


def check_members(policy: Any, targets: Targets, number: Ints) -> None:
    """Refuse rows, of which the class numbers are given, that lack a class with a target recall."""
    for k in targets.classes:
        if not np.any(number == k):
            raise InvalidInputError(
                "y",
                "calibration needs rows of every class with a target recall",
                f"no row of class {policy.classes_.tolist()[k]!r} among {len(number)}",
                "Recall is a share of the rows of a class: add some.",
            )


def proving_classes(encoded: Floats, number: Ints, groups: Any, seed: int) -> tuple[Ints, str]:
    """Rows that count, and a note on them: one of each class of each group, or of copies."""
    found = groups_of(groups, encoded, number.astype(np.float64), split=False)
    rows = [one_of_each(np.flatnonzero(number == k), found, seed) for k in np.unique(number)]
    return np.sort(np.concatenate(rows)), "" if found is None else GROUPED


def calibrate_classes(
    policy: Any,
    X: Any,
    y: Any,
    target_recall: Any,
    confidence: float | None,
    trained: bool,
    groups: Any,
) -> None:
    """Let a policy with three or more classes have recalls that these rows certify."""
    check_with_classes(policy)
    wanted = policy.target_recall if target_recall is None else target_recall
    targets = targets_of(wanted, policy.classes_)
    confidence = value_or_default("confidence", confidence, policy.recall_confidence)
    encoded = policy._encode(X)
    if not trained:
        refuse_training_rows(policy.training_rows_, encoded)
    number = class_numbers(y, policy.classes_, len(encoded))
    check_members(policy, targets, number)
    kept, note = proving_classes(encoded, number, groups, policy.random_state)
    members = [encoded[kept[number[kept] == k]] for k in targets.classes]
    n_rows = np.array([len(rows) for rows in members])
    decider = policy.decider_

    def misses_at(surcharges: Floats) -> Ints:
        matrix = surcharged(policy.cost_table_.matrix, targets, surcharges)
        surcharging = decider.with_rule(DecisionRule(matrix))
        missed = [
            np.sum(run(surcharging, rows).label != k)
            for k, rows in zip(targets.classes, members, strict=True)
        ]
        return np.array(missed, dtype=np.intp)

    surcharges = surcharges_to_try(policy.classes_, targets, partial(LeftOutRecalls, policy))
    use_certified(policy, targets, surcharges, misses_at, n_rows, confidence, note)

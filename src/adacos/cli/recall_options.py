"""Options of `adacos fit` about recall, checked together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError, NotCertifiableError
from adacos.registry import POLICIES
from adacos.validation import choices

# One recall, or one by the name of the class.
Recall = float | dict[str, float]


def read_recall(given: Sequence[str]) -> Recall | None:
    """RECALL, or CLASS=RECALL of one class or several."""
    named: dict[str, float] = {}
    for text in given:
        name, sign, number = text.rpartition("=")
        try:
            recall = float(number)
        except ValueError:
            recall = np.nan
        if not 0 < recall < 1 or (not sign and len(given) > 1) or (sign and not name):
            meant = f"Did you mean {name}{sign}{recall / 100:g}?" if 1 < recall < 100 else ""
            raise InvalidInputError(
                "--target-recall",
                "must be a recall between 0 and 1, or CLASS=RECALL for each of some classes",
                text,
                meant or "For example --target-recall 0.95, or --target-recall virginica=0.95.",
            )
        if not sign:
            return recall
        if name in named:
            raise InvalidInputError("--target-recall", "must name a class once", text, "Drop one.")
        named[name] = recall
    return named or None


def recall_of_classes(recall: Recall | None, y: NDArray[Any], names: dict[str, str]) -> Any:
    """A target recall by the classes as the model knows them; of two that of the second."""
    if recall is None:
        return None
    labels = {names.get(str(label), str(label)): label for label in np.unique(y).tolist()}
    if not isinstance(recall, dict):
        if len(labels) == 2:
            return recall
        raise InvalidInputError(
            "--target-recall",
            f"must name the class it protects, of {len(labels)}",
            recall,
            f"For example --target-recall {quote(f'{list(labels)[-1]}={recall:g}')}; several "
            "classes may have one.",
        )
    unknown = [name for name in recall if name not in labels]
    if unknown:
        raise InvalidInputError(
            "--target-recall",
            "must name a class of the target",
            ", ".join(unknown),
            choices(unknown, list(labels), "It has"),
        )
    if len(labels) > 2:
        return {labels[name]: value for name, value in recall.items()}
    positive = list(labels)[1]
    if list(recall) != [positive]:
        raise InvalidInputError(
            "--target-recall",
            f"of two classes is the recall of the positive one, {positive}",
            ", ".join(recall),
            "Choose it with --positive; the other class then needs no target.",
        )
    return recall[positive]


def without_false_negative(
    policy: str,
    target_recall: Recall | None,
    recall_confidence: float | None,
    mean_budget: float | None,
) -> str | None:
    """What helps where nobody says what a missed positive costs; None where a recall says it.

    A policy that takes no recall itself, or none with its other options, acquires by the costs of
    both errors, and a recall decides its answers only: see `TargetRecallClassifier`.
    """
    unknown = "Where nobody can say what a missed positive costs, "
    if not POLICIES[policy].load().stops_by_rule:
        return (
            f"{unknown}--policy adacos and branching take --target-recall in its place; {policy} "
            "acquires by both costs, and a recall decides its answers only."
        )
    if recall_confidence is not None and mean_budget is not None:
        return (
            f"{unknown}leave --mean-budget or --recall-confidence out: with the two {policy} "
            "acquires by both costs, and the recall decides its answers only."
        )
    if target_recall is not None:
        return None
    return f"{unknown}--target-recall takes the place of the false-negative cost."


def check_recall(
    target_recall: Recall | None,
    recall_confidence: float | None,
    false_negative: float | None,
    nested: bool,
    replaces: bool,
) -> None:
    """Refuse options that exclude each other.

    `replaces` says that the policy takes a recall in place of the false-negative cost.
    """
    if replaces and false_negative is not None:
        raise InvalidInputError(
            "--target-recall",
            "cannot be combined with a false-negative cost, since each follows from the other",
            f"--false-negative {false_negative:g}",
            "Leave one of them out.",
        )
    if recall_confidence is not None and target_recall is None:
        raise InvalidInputError(
            "--recall-confidence",
            "needs the recall that is to be certified",
            recall_confidence,
            "For example --target-recall 0.95.",
        )
    if nested and recall_confidence is not None:
        raise InvalidInputError(
            "--nested",
            "cannot be given with --recall-confidence",
            "",
            "Leave it out: a certificate has calibration rows of its own.",
        )


def on_uncertifiable_recall(always_positive: bool, largest: bool, confidence: float | None) -> str:
    """What the policy does with a recall that the calibration rows do not prove."""
    if always_positive and largest:
        raise InvalidInputError(
            "--largest", "cannot be given with --always-positive", "", "Leave one of them out."
        )
    if (always_positive or largest) and confidence is None:
        raise InvalidInputError(
            "--largest" if largest else "--always-positive",
            "is for a recall that cannot be certified, and none is to be certified here",
            "",
            "Add --recall-confidence, for example --recall-confidence 0.9.",
        )
    if largest:
        return "largest"
    return "always_positive" if always_positive else "error"


def refusal_on_command_line(error: NotCertifiableError) -> InvalidInputError:
    """The same error with what the command line offers against it."""
    # Rounded down, so that what is offered can be certified.
    certifiable = math.floor(error.certifiable * 1e4) / 1e4
    kind, otherwise = f"class {error.of_class}", ""
    if error.of_class is None:
        kind, otherwise = "positive", ", or answer positive for every row with --always-positive"
    return InvalidInputError(
        "--target-recall",
        error.rule,
        error.value,
        f"A recall of {certifiable:g} is certified in this same attempt with --largest. For the "
        f"requested one at least {error.needed} {kind} calibration rows are needed, half "
        f"of all. Add rows{otherwise}. Asking the same rows again for a lower recall is another "
        "attempt, and the confidence counts attempts, refused ones included.",
    )

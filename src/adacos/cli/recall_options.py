"""Options of `adacos fit` about recall, checked together."""

from __future__ import annotations

from adacos.exceptions import InvalidInputError


def check_recall(
    target_recall: float | None,
    recall_confidence: float | None,
    false_negative: float | None,
    nested: bool,
) -> None:
    """Refuse options that exclude each other."""
    if target_recall is not None and false_negative is not None:
        raise InvalidInputError(
            "--target-recall",
            "cannot be combined with a false-negative cost: either follows from the other",
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
            "both",
            "Leave it out: a certificate is earned on rows held back already.",
        )


def on_uncertifiable_recall(always_positive: bool, largest: bool, confidence: float | None) -> str:
    """What the policy does with a recall that the rows held back do not prove."""
    if always_positive and largest:
        raise InvalidInputError(
            "--largest", "cannot be given with --always-positive", "both", "Leave one of them out."
        )
    if (always_positive or largest) and confidence is None:
        raise InvalidInputError(
            "--largest" if largest else "--always-positive",
            "is for a recall that cannot be certified",
            "no confidence",
            "Add --recall-confidence, for example 0.9.",
        )
    if largest:
        return "largest"
    return "always_positive" if always_positive else "error"

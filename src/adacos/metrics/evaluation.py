"""Held-out rows on which a fitted policy is evaluated, and the warning where it has seen them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from adacos.exceptions import InvalidInputError, TrainingRowsWarning
from adacos.kernels.folds import drawn_rows
from adacos.tables.row_digests import trained_among
from adacos.tables.weights import group_numbers
from adacos.typing import Floats, Ints
from adacos.validation import level_of_caller

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# Rows that are walked at many costs, drawn by class where there are more.
MOST_ROWS = 10_000


class EvaluatedRows(NamedTuple):
    """Rows on which a policy is evaluated.

    Attributes
    ----------
    encoded : their encoded values.
    true : their classes as 0, 1, …
    groups : number of the group of each row, if some belong together.
    trained : how many of them the policy was trained on, as far as it is known.
    """

    encoded: Floats
    true: Ints
    groups: Ints | None
    trained: int = 0


def drawn(rows: EvaluatedRows, seed: int) -> tuple[EvaluatedRows, Ints]:
    """The rows, drawn by class where there are more than enough, and their places."""
    kept = drawn_rows(rows.true.astype(np.float64), MOST_ROWS, seed)
    groups = None if rows.groups is None else rows.groups[kept]
    return EvaluatedRows(rows.encoded[kept], rows.true[kept], groups), kept


def held_out_rows(
    policy: BasePolicy, X: Any, y: ArrayLike, groups: ArrayLike | None, what: str
) -> EvaluatedRows:
    """Rows as the policy that decides takes them, with a warning if it was trained on some.

    `what` is what would then be too optimistic.
    """
    chosen = policy.chosen
    encoded, true = chosen._encode(X), np.asarray(y).ravel()
    number = {label: place for place, label in enumerate(chosen.classes_.tolist())}
    strange = [label for label in true.tolist() if label not in number]
    if len(true) != len(encoded) or strange:
        raise InvalidInputError(
            "y",
            f"must hold one of the classes {chosen.classes_.tolist()} for each row",
            strange[:5] if strange else f"{len(true)} values for {len(encoded)} rows",
            "Pass the classes of these rows.",
        )
    trained = max(trained_among(one.training_rows_, encoded) for one in (policy, chosen))
    if trained:
        warnings.warn(
            f"{trained:,} of {len(encoded):,} rows are rows that the policy was trained on: on "
            f"these it errs less than on new rows, so {what} too optimistic. Use other rows.",
            TrainingRowsWarning,
            stacklevel=level_of_caller(),
        )
    place = np.array([number[label] for label in true.tolist()], dtype=np.intp)
    number_of = None if groups is None else group_numbers(groups, len(true))
    return EvaluatedRows(encoded, place, number_of, trained)

"""What a wrong answer or a decision costs, as the user states it: checked, and in plain values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from adacos.exceptions import DecisionWarning, InvalidInputError
from adacos.kernels.decisions import cheapest_somewhere
from adacos.typing import Floats
from adacos.validation import (
    check_cost_size,
    choices,
    level_of_caller,
    listed,
    names_along,
    one_cost,
)


def error_costs(
    false_positive: float | None,
    false_negative: float | None,
    misclassification: Any,
    decisions: Any = None,
) -> Floats:
    """C[true class, label], checked; with decisions it has a column for each of these."""
    if misclassification is None:
        if decisions is not None:
            rule = "need what each costs for each true class"
            remedy = "Pass misclassification=C too, of shape (classes, decisions)."
            raise InvalidInputError("decisions", rule, decisions, remedy)
        given = {"false_positive": false_positive, "false_negative": false_negative}
        wrong = [1.0 if x is None else one_cost(name, x, above=0) for name, x in given.items()]
        return np.array([[0.0, wrong[0]], [wrong[1], 0.0]])
    if false_positive is not None or false_negative is not None:
        raise InvalidInputError(
            "misclassification",
            "cannot be given together with false_positive or false_negative",
            misclassification,
            "Give either the matrix or the two costs.",
        )
    check_names_sorted("misclassification", misclassification, decisions)
    try:
        matrix = np.atleast_1d(np.array(misclassification, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        matrix = np.empty(0)
    square = matrix.shape == 2 * matrix.shape[:1]
    fitting = square if decisions is None else matrix.ndim == 2 and matrix.shape[1] > 0
    if len(matrix) < 2 or not fitting or not np.isfinite(matrix).all():
        rule = "must be a square matrix C[true class, label] of finite numbers, at least 2 x 2"
        remedy = "For example [[0, 100], [1000, 0]]."
        if matrix.ndim == 2 and len(matrix) > 1 and not square:
            remedy += " If its columns are decisions, name them: decisions=('treat', 'refer', …)."
        if decisions is not None:
            rule = "must be a finite matrix C[true class, decision] with a row for each class"
            remedy = "For example [[0, 20, 100], [1000, 120, 50]]: two classes, three decisions."
        raise InvalidInputError("misclassification", rule, misclassification, remedy)
    for entry in matrix[matrix != 0].tolist():
        check_cost_size("misclassification", entry)
    if decisions is None:
        _check_right_answers(matrix)
    return matrix


def _check_right_answers(matrix: Floats) -> None:
    more = matrix - np.diag(matrix)[:, None] + np.diag(np.full(len(matrix), np.inf))
    if not np.all(more > 0):
        raise InvalidInputError(
            "misclassification",
            "a wrong label must cost more than the right one in each row",
            matrix.tolist(),
            "Rows are true classes, columns are labels, both sorted: check the order. Columns "
            "that are not the classes need names: decisions=('treat', 'refer', …).",
        )


def decision_names(decisions: Any, matrix: Floats) -> tuple[str, ...] | None:
    """Names of decisions, one for each column of the costs; None without any."""
    if decisions is None:
        return None
    names = list(decisions) if np.ndim(decisions) == 1 else []
    example = "For example decisions=('discharge', 'refer', 'treat')."
    if not all(isinstance(name, str) and name.strip() for name in names) or not names:
        rule = "must be a list of names, as text"
        raise InvalidInputError("decisions", rule, decisions, example)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        rule, remedy = "must have different names", "Name each column of misclassification."
        raise InvalidInputError("decisions", rule, f"{listed(twice)} more than once", remedy)
    if len(names) < 2 or len(names) != matrix.shape[1]:
        raise InvalidInputError(
            "decisions",
            "must name the columns of misclassification, of which there are two or more",
            f"{len(names)} names for {matrix.shape[1]} columns",
            "Rows are true classes, columns are decisions: pass C.T if it is the other way round."
            if len(names) == len(matrix)
            else example,
        )
    return tuple(map(str, names))


def protecting(protects: Any, decisions: tuple[str, ...] | None) -> dict[Any, tuple[str, ...]]:
    """The decisions that protect each class, checked against the decisions that there are."""
    if protects is None:
        return {}
    if decisions is None:
        rule, remedy = "goes with decisions only", "A label protects the class that it names."
        raise InvalidInputError("protects", rule, protects, remedy)
    if not isinstance(protects, Mapping):
        rule = "must be a mapping from a class to the decisions that protect it"
        remedy = f"For example protects={{'sick': {decisions[1:]!r}}}."
        raise InvalidInputError("protects", rule, protects, remedy)
    found: dict[Any, tuple[str, ...]] = {}
    for name, own in protects.items():
        own = (own,) if isinstance(own, str) else tuple(own)
        unknown = [one for one in own if one not in decisions]
        if unknown or not own or len(own) == len(decisions):
            rule = "must name some of the decisions, and not all of them"
            remedy = choices(map(str, unknown), decisions, "The decisions are")
            raise InvalidInputError(f"protects[{name!r}]", rule, own, remedy)
        found[name.item() if isinstance(name, np.generic) else name] = own
    return found


def check_names_sorted(name: str, matrix: Any, decisions: Any = None) -> None:
    """Refuse a data frame whose rows or columns are named in another order than classes have.

    Columns that are decisions have their order.
    """
    for axis in ("index", "columns"):
        names = names_along(matrix, axis)
        if axis == "columns" and decisions is not None:
            wanted = list(decisions)
            if any(isinstance(item, str) for item in names) and names != wanted:
                rule = "the columns of a data frame must be the decisions, in their order"
                raise InvalidInputError(name, rule, names, f"Pass C[{wanted!r}].")
            continue
        if names != sorted(names, key=lambda item: (isinstance(item, str), item)):
            raise InvalidInputError(
                name,
                f"the {axis} of a data frame must be in the order of the classes, which is sorted",
                names,
                "Pass C.sort_index().sort_index(axis=1) if these are the classes, or "
                "C.to_numpy() if its order is theirs.",
            )


def check_named_as_classes(decisions: Any, matrix: Floats, classes: Any) -> None:
    """Refuse decisions that are named after classes, but are not the answers to these.

    Among the decisions with names of classes, that of the true class must cost least.
    """
    listed_names = list(decisions or ())
    names = [str(one) for one in classes.tolist()]
    place = {k: listed_names.index(name) for k, name in enumerate(names) if name in listed_names}
    for k, own in place.items():
        for other in place.values():
            if other != own and matrix[k, other] <= matrix[k, own]:
                raise InvalidInputError(
                    "decisions",
                    "a decision with the name of a class must be the answer to it",
                    f"{decisions[own]!r} at {matrix[k, own]:g} where it is the class, and "
                    f"{decisions[other]!r} at {matrix[k, other]:g}",
                    "Put names and columns into one order, or choose other names.",
                )


def warn_of_never_cheapest(decisions: tuple[str, ...], matrix: Floats) -> None:
    """Warn of decisions that another one is cheaper than at every probability."""
    taken = cheapest_somewhere(matrix).tolist()
    never = [name for d, name in enumerate(decisions) if d not in taken]
    if never:
        warnings.warn(
            f"Never the cheapest decision, whatever the probabilities: {listed(never)}. Only "
            f"{listed(decisions[d] for d in taken)} can be decided. Check the costs in "
            "misclassification, of shape (classes, decisions).",
            DecisionWarning,
            stacklevel=level_of_caller(),
        )

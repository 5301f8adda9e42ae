"""The groups that an audit compares: labels of rows by columns, in any form they are given in."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.exceptions import InvalidInputError, TableWarning
from adacos.tables.columns import ColumnTable
from adacos.tables.encoder import is_frame
from adacos.typing import Floats, Ints
from adacos.validation import choices, level_of_caller

NO_VALUE = "(no value)"
CROSS = " × "
# Distinct numbers of a column from which on it is warned, and most groups of a column.
_MANY_NUMBERS, _MOST_GROUPS = 12, 100
_BANDS = "Make bands of them first, such as below 40, 40 to 59, and 60 or more"


class LabelledRows(NamedTuple):
    """Groups of one column, or of several that are crossed, and the number of each row's group."""

    name: str
    names: tuple[str, ...]
    number: Ints


def labelled_groups(by: Any, X: Any, n_rows: int, cross: bool) -> list[LabelledRows]:
    """The groups of each column, or of all of them crossed."""
    columns = {name: _texts(name, values) for name, values in _columns(by, X).items()}
    for name, texts in columns.items():
        if len(texts) != n_rows:
            rule = f"must have a value for each of the {n_rows:,} rows"
            raise InvalidInputError(f"by[{name!r}]", rule, len(texts), "Pass those of X.")
    every = [_labelled(name, texts) for name, texts in columns.items()]
    return [_crossed(every)] if cross and len(every) > 1 else every


def bands_of(values: ArrayLike, cuts: Sequence[float]) -> NDArray[np.str_]:
    """Numbers as bands between cuts: "below 40", "40 to below 60", "60 or more".

    What is no number has no band.
    """
    number = np.asarray(values, dtype=np.float64)
    shown = [f"{cut:g}" for cut in cuts]
    names = [f"below {shown[0]}"]
    names += [f"{low} to below {high}" for low, high in pairwise(shown)]
    names += [f"{shown[-1]} or more"]
    found = np.array(names)[np.searchsorted(np.asarray(cuts), number, side="right")]
    return np.where(np.isnan(number), "", found)


def _columns(by: Any, X: Any) -> dict[str, Any]:
    """The columns by name."""
    if isinstance(by, str) or (
        isinstance(by, list | tuple) and by and all(isinstance(name, str) for name in by)
    ):
        return _of_table([by] if isinstance(by, str) else list(by), X)
    if isinstance(by, Mapping):
        found = {str(name): values for name, values in by.items()}
    elif is_frame(by):
        found = {str(name): _column(by, name) for name in _names(by)}
    else:
        found = {str(getattr(by, "name", None) or "group"): by}
    if not found:
        raise InvalidInputError("by", "must have a column", 0, "For example by={'sex': sex}.")
    return found


def _of_table(names: list[str], X: Any) -> dict[str, Any]:
    """Columns of a data frame; a text for each row is no name."""
    known = _names(X) if is_frame(X) else []
    unknown = [name for name in names if name not in known]
    if unknown:
        remedy = "For a column that is no covariate pass by={'sex': sex}, a value for each row."
        raise InvalidInputError(
            "by",
            "must name columns of X, a data frame, or hold the values themselves",
            unknown[:5],
            f"{choices(unknown, known, 'The columns are')} {remedy}" if known else remedy,
        )
    return {name: _column(X, name) for name in names}


def _names(frame: Any) -> list[str]:
    own = frame if isinstance(frame, ColumnTable) else nw.from_native(frame)
    return [str(name) for name in own.columns]


def _column(frame: Any, name: str) -> Any:
    if isinstance(frame, ColumnTable):
        return frame.column(name)
    return nw.from_native(frame)[name].to_list()


def _texts(name: str, values: Any) -> list[str]:
    """Values as texts; a whole number is written without a point, no value as such."""
    listed_values = values.tolist() if hasattr(values, "tolist") else list(values)
    if any(isinstance(value, list | tuple) for value in listed_values):
        rule = "must hold one value for each row"
        raise InvalidInputError(f"by[{name!r}]", rule, "several columns", "Name each column.")
    return [_text(value) for value in listed_values]


def _text(value: Any) -> str:
    if value is None or value != value or str(value).strip() in ("", "<NA>", "NaT"):
        return NO_VALUE
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _labelled(name: str, texts: list[str]) -> LabelledRows:
    """Groups in the order of their numbers and texts; without a value last."""
    present = sorted(set(texts) - {NO_VALUE}, key=_place)
    numbers = _numbers(present)
    many = f"{len(present):,} values"
    if len(present) > _MOST_GROUPS:
        remedy = f"{_BANDS}." if numbers is not None else "Join the small ones."
        raise InvalidInputError(
            f"by[{name!r}]", f"must have at most {_MOST_GROUPS} groups", many, remedy
        )
    if numbers is not None and len(present) > _MANY_NUMBERS:
        warnings.warn(
            f"{name} has {many}, all of them numbers, and each is a group: intervals are wide. "
            f"{_BANDS}.",
            TableWarning,
            stacklevel=level_of_caller(),
        )
    names = (*present, *([NO_VALUE] if NO_VALUE in texts else []))
    place = {text: number for number, text in enumerate(names)}
    return LabelledRows(name, names, np.array([place[text] for text in texts], dtype=np.intp))


def _place(text: str) -> tuple[float, bool, str]:
    """Where a group is listed: by its first number, as bands are, then by its text."""
    number = re.search(r"\d+(\.\d+)?", text)
    if number is None:
        return np.inf, False, text
    sign = -1 if text.startswith("-") else 1
    return sign * float(number[0]), not text.startswith(("below", "under", "<")), text


def _numbers(texts: list[str]) -> Floats | None:
    """Texts as numbers, if all of them are."""
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        return None


def _crossed(every: list[LabelledRows]) -> LabelledRows:
    """The groups of several columns together, those that occur."""
    together = np.column_stack([one.number for one in every])
    present, number = np.unique(together, axis=0, return_inverse=True)
    if len(present) > _MOST_GROUPS:
        rule = f"must have at most {_MOST_GROUPS} groups when crossed"
        remedy = "Cross fewer columns, or join small groups."
        raise InvalidInputError("by", rule, f"{len(present):,}", remedy)
    names = tuple(
        CROSS.join(one.names[k] for one, k in zip(every, row, strict=True)) for row in present
    )
    return LabelledRows(
        CROSS.join(one.name for one in every), names, number.ravel().astype(np.intp)
    )

"""One column of a table of any kind as numbers or as text."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.tables.columns import ColumnTable
from adacos.tables.dates import number_of
from adacos.typing import Bools, Floats

# Objects that are no value of a covariate, though they could be written as text.
_NO_VALUES = (date, timedelta, complex, bytes, Collection)


def column_values(table: Any, position: int, name: str, form: str = "") -> NDArray[Any]:
    """One column of a validated table as floats (NaN = unknown) or as text ("" = unknown).

    With the `form` of dates what is no number is taken for one.
    """
    if isinstance(table, np.ndarray):
        return table[:, position]
    if isinstance(table, ColumnTable):
        return table.column(name)
    series = table[:, position]
    unknown = series.is_null().to_numpy().astype(np.bool_)
    if unknown.all():
        return np.full(len(unknown), np.nan)
    if form and not series.dtype.is_numeric():
        cells = zip(series.to_list(), unknown, strict=True)
        return np.array([np.nan if gone else number_of(c, name, form) for c, gone in cells])
    values: NDArray[Any] | None = None
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy().astype(np.float64)
    elif series.dtype == nw.Object:
        values = _numbers_among_objects(series.to_list(), unknown, name)
    if values is not None:
        values = np.where(unknown, np.nan, values)
        if np.isinf(values).any():
            raise InvalidInputError(
                f"column {name!r}",
                "must not hold infinite values",
                "infinity",
                "Replace it by a number, or by NaN if it is unknown.",
            )
        return values
    if series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        text = np.where(unknown, "", np.array(series.to_list(), dtype=object).astype(np.str_))
        return text.astype(np.str_)
    if series.dtype.is_temporal() and series.dtype != nw.Duration:
        raise _wrong_kind(
            name,
            str(series.dtype),
            f"Pass a number taken from it: a part, as X[{name!r}].dt.month does, or the days "
            f"before the decision. On the command line that is --date {name}=month.",
        )
    raise _wrong_kind(name, str(series.dtype))


def _numbers_among_objects(objects: list[Any], unknown: Bools, name: str) -> Floats | None:
    """Objects as numbers, or None for text: pandas keeps numbers and truth values with gaps among
    them as objects, and whatever else was put into a column."""
    known = [value for value, gone in zip(objects, unknown, strict=True) if not gone]
    for value in known:
        if isinstance(value, _NO_VALUES) and not isinstance(value, str):
            raise _wrong_kind(name, type(value).__name__)
    if not all(isinstance(value, Real | Decimal | np.bool_) for value in known):
        return None
    values = np.full(len(objects), np.nan)
    try:
        values[~unknown] = [float(value) for value in known]
    except OverflowError:
        raise InvalidInputError(
            f"column {name!r}",
            "must hold finite numbers",
            "a whole number beyond the range of floats",
            "Correct the value, or put NaN if it is unknown.",
        ) from None
    return values


def _wrong_kind(
    name: str, kind: str, remedy: str = "Convert it, for example a date to a number of days."
) -> InvalidInputError:
    return InvalidInputError(
        f"column {name!r}",
        "must be numeric, boolean, text or categorical",
        kind,
        remedy,
    )

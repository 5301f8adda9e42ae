"""Values that a person enters: what they may be, and what is odd about them."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from adacos.consultation.steps import ValueWarning
from adacos.exceptions import InvalidInputError
from adacos.reasons import Value
from adacos.tables.dates import number_of
from adacos.tables.description import Description
from adacos.tables.encoder import PLAUSIBLE_WIDTHS, TableEncoder
from adacos.tables.kinds import BINARY, CONSTANT
from adacos.validation import is_finite

# Powers of ten by which units commonly differ, the nearest first.
_FACTORS = (0.1, 10.0, 0.01, 100.0, 0.001, 1000.0)


def is_none(given: Any) -> bool:
    """Whether something means no value: None, NaN of any type, NaT or NA of pandas."""
    if given is None or type(given).__name__ == "NAType":
        return True
    if isinstance(given, Decimal):
        return given.is_nan()
    # Of all values only these differ from themselves.
    try:
        differs = given != given
    except Exception:  # an object of someone else, which is no value for other reasons
        return False
    return isinstance(differs, bool | np.bool_) and bool(differs)


def check_value(
    encoder: TableEncoder, k: int, given: Any, said: Description | None = None
) -> tuple[Value, ValueWarning | None]:
    """A value for the k-th covariate as float or text, and what is odd about it.

    `said` declares which values are plausible.
    """
    name, levels = encoder.names[k], encoder.categories[k]
    if is_none(given):
        raise _no_value(name, given)
    if isinstance(given, np.generic):
        given = given.item()
    if levels:
        text = _as_text(name, given)
        if text.strip() in ("", "nan"):
            raise _no_value(name, given)
        if text in levels or text in encoder.grouped_of(k):
            return text, None
        message = (
            f"{name} = {text} is none of the categories seen in training "
            f"({', '.join(levels[:10])}{', …' if len(levels) > 10 else ''}); "
            "it says nothing, as if the value were missing."
        )
        return text, ValueWarning(name, text, "unknown_category", message)
    if isinstance(given, Decimal):
        given = float(given)  # PostgreSQL's NUMERIC
    if name in encoder.date_forms and not isinstance(given, Real):
        given = number_of(given, name, encoder.date_forms[name])
    if not isinstance(given, Real) or not is_finite(given):
        raise _no_value(name, given)
    value = float(given)
    odd = _odd_number(encoder, k, value)
    declared = "" if said is None else said.implausible(name, value)
    if declared:
        message = declared if odd is None else f"{declared} {odd.message}"
        odd = ValueWarning(name, value, "implausible", message)
    return value, odd


def _as_text(name: str, given: Any) -> str:
    try:
        return given if isinstance(given, str) else str(given)
    except Exception:  # an object of someone else
        raise _no_value(name, given) from None


def _odd_number(encoder: TableEncoder, k: int, value: float) -> ValueWarning | None:
    name, low, high = encoder.names[k], float(encoder.low[k]), float(encoder.high[k])
    if encoder.kinds[k] in (BINARY, CONSTANT):
        if value in (low, high):
            return None
        allowed = f"{low:g}" if low == high else f"{low:g} or {high:g}"
        message = f"{name} = {value:g} was never seen in training, only {allowed}."
        return ValueWarning(name, value, "unknown_value", message)
    distance = max(low - value, value - high) / (high - low)
    if distance <= 0:
        return None
    message = f"{name} = {value:g} lies outside the training range {low:g} to {high:g}"
    used = f"it counts as {min(max(value, low), high):g}."
    if low >= 0 > value:
        message += f", in which nothing is negative; {used}"
        return ValueWarning(name, value, "implausible", message)
    if distance <= PLAUSIBLE_WIDTHS:
        return ValueWarning(name, value, "outside_range", f"{message}; {used}")
    scaled = [value * factor for factor in _FACTORS if low <= value * factor <= high]
    hint = f" ({scaled[0]:g} would lie inside)" if scaled else ""
    message += f", so far that the unit may be wrong{hint}; {used}"
    return ValueWarning(name, value, "implausible", message)


def _no_value(name: str, given: Any) -> InvalidInputError:
    return InvalidInputError(
        name,
        "needs a finite number, or a category if it is categorical",
        given,
        f"If there is no value, call unavailable({name!r}).",
    )

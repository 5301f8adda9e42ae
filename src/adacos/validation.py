"""Small checks of scalar parameters, shared by every layer above."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from adacos.exceptions import InvalidInputError


def real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
) -> float:
    """`value` as a finite float inside the given bounds, or a clear error."""
    bounds = [
        *([f"> {above:g}"] if above is not None else []),
        *([f">= {at_least:g}"] if at_least is not None else []),
        *([f"< {below:g}"] if below is not None else []),
    ]
    rule = "must be a finite number" + (" " + " and ".join(bounds) if bounds else "")
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidInputError(name, rule, value, f"Pass a number for {name}.")
    number = float(value)
    if (
        (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (below is not None and number >= below)
    ):
        raise InvalidInputError(name, rule, value, f"Choose {name} in that range.")
    return number


def integer(name: str, value: Any, *, at_least: int) -> int:
    """`value` as an int not below `at_least`, or a clear error."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise InvalidInputError(
            name, f"must be an integer >= {at_least}", value, f"Choose {name} in that range."
        )
    return int(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of the allowed words, or a clear error."""
    if value not in allowed:
        listed = ", ".join(repr(word) for word in allowed)
        raise InvalidInputError(name, f"must be one of {listed}", value, "Choose one of these.")
    return str(value)

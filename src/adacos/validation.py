"""Small checks of parameters and of types, and the words for what they refuse."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Protocol, Union, get_args, get_origin

import numpy as np

from adacos.exceptions import InvalidInputError

# Default of a parameter that the next release refuses.
DEPRECATED = "deprecated"
_MOST_LISTED = 50
# Costs other than 0 lie between these in size.
SMALLEST_COST, LARGEST_COST = 1e-50, 1e50


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
    # A name of several words is said once.
    wanted = "" if " " in name else f" for {name}"
    if isinstance(value, bool) or not isinstance(value, Real) or not is_finite(value):
        raise InvalidInputError(name, rule, as_written(value), f"Pass a number{wanted}.")
    number = float(value)
    if (
        (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (below is not None and number >= below)
    ):
        # Shares are given in per cent by mistake.
        percent = below == 1 and 1 < number < 100
        remedy = f"Choose {name} in that range." if wanted else "Choose a number in that range."
        remedy = f"Did you mean {number / 100:g}?" if percent else remedy
        raise InvalidInputError(name, rule, value, remedy)
    return number


def is_finite(value: Real) -> bool:
    """Whether a number is finite as a float: an integer may be too large for one."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def as_written(value: Any) -> Any:
    """A text with its quotes, so that it is not read as the number in it."""
    return repr(value) if isinstance(value, str) else value


def integer(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as an int within bounds, or a clear error."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        raise InvalidInputError(
            name,
            f"must be an integer >= {at_least}" + ("" if at_most is None else f" and <= {at_most}"),
            as_written(value),
            f"Choose {name} in that range." if whole else f"Pass an integer for {name}.",
        )
    return int(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of the allowed words, or a clear error."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        meant = did_you_mean([value] if isinstance(value, str) else [], allowed).strip()
        raise InvalidInputError(
            name, f"must be one of {words}", value, meant or "Choose one of these."
        )
    return str(value)


def several(name: str, value: Any, example: str) -> tuple[Any, ...]:
    """The covariates in a collection, by name or position, or a clear error."""
    if isinstance(value, str) or not isinstance(value, Collection):
        rule = "must be a list of covariates, by name or position"
        raise InvalidInputError(name, rule, value, f"For example {name}={example}.")
    return tuple(value)


def refuse_pipe(name: str, path: str | os.PathLike[str]) -> None:
    """What is read as a whole must be a plain file: a pipe may never end."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInputError(
            name, "must be a plain file", str(path), "Write a pipe into a file first."
        )


def names_along(table: Any, axis: str) -> list[Any]:
    """Names along an axis of a series or data frame, "index" or "columns"; else none."""
    names = getattr(table, axis, ())
    return [] if callable(names) else list(names)


def one_cost(name: str, value: Any, *, above: float | None = None) -> float:
    """A cost that is 0 or within the bounds of costs."""
    cost = real(name, value, above=above, at_least=0 if above is None else None)
    if cost:
        check_cost_size(name, cost)
    return cost


def check_cost_size(name: str, cost: float) -> None:
    """Refuse costs whose squares and products would leave the range of floats."""
    if not SMALLEST_COST <= abs(cost) <= LARGEST_COST:
        raise InvalidInputError(
            name,
            f"costs other than 0 must lie between {SMALLEST_COST:g} and {LARGEST_COST:g} in size",
            cost,
            "Use another unit for all costs.",
        )


def covariate_costs(covariates: Any) -> dict[str, float] | tuple[float, ...] | None:
    """Covariate costs by name or in column order, each checked; None where all are free."""
    if covariates is None:
        return None
    names = names_along(covariates, "index")  # those of a pandas series
    if names and np.ndim(covariates) == 1 and all(isinstance(name, str) for name in names):
        covariates = dict(zip(names, covariates, strict=True))
    if isinstance(covariates, Mapping):
        return {str(name): one_cost(f"cost of {name!r}", cost) for name, cost in covariates.items()}
    if isinstance(covariates, str) or np.ndim(covariates) != 1:
        raise InvalidInputError(
            "covariates",
            "must be a mapping from name to cost or a one-dimensional sequence",
            covariates,
            "For example Costs({'age': 1.0}) or Costs([1.0, 2.5]).",
        )
    values = list(covariates) if not isinstance(covariates, np.ndarray) else covariates.tolist()
    return tuple(one_cost(f"cost of covariate {i}", c) for i, c in enumerate(values))


# What a parameter must satisfy: called with its name and its value, it raises a clear error.
Constraint = Callable[[str, Any], Any]
Constraints = Mapping[str, Constraint]


def whole(at_least: int, at_most: int | None = None) -> Constraint:
    """An integer within bounds."""
    return lambda name, value: integer(name, value, at_least=at_least, at_most=at_most)


def folds(name: str, value: Any) -> None:
    """A number of folds, or splits: a splitter or a sequence of (train, test)."""
    if isinstance(value, Integral):
        integer(name, value, at_least=2)
        return
    pairs = isinstance(value, Sequence) and not isinstance(value, str) and len(value) >= 2
    if hasattr(value, "split") and not isinstance(value, str):
        return
    if not pairs or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in value):
        raise InvalidInputError(
            name,
            "must be an integer >= 2 or at least two splits that hold out every row once",
            value,
            "Use a number of folds, or KFold or GroupKFold.",
        )


def finite(
    *, above: float | None = None, at_least: float | None = None, below: float | None = None
) -> Constraint:
    """A finite number inside bounds."""
    return lambda name, value: real(name, value, above=above, at_least=at_least, below=below)


def one_of(*allowed: str) -> Constraint:
    """One of these words."""
    return lambda name, value: choice(name, value, allowed)


def maybe(constraint: Constraint) -> Constraint:
    """None, or what the constraint demands."""
    return lambda name, value: None if value is None else constraint(name, value)


# An amount of money, or None for any.
amount = maybe(finite(at_least=0))


def jobs(name: str, value: Any) -> None:
    """A number of processes as joblib counts them: None, from 1 up, or from -1 down."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value == 0:
        raise InvalidInputError(
            name, "must be None or an integer other than 0", value, "-1 means every core."
        )


def each(constraint: Constraint) -> Constraint:
    """A sequence whose members satisfy the constraint."""

    def check(name: str, values: Any) -> None:
        if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
            raise InvalidInputError(
                name, "must be a sequence of numbers", values, f"For example {name}=(0.1, 0.5)."
            )
        for place, value in enumerate(values):
            constraint(f"{name}[{place}]", value)

    return check


class Constrained(Protocol):
    """An estimator whose class says what its parameters must satisfy."""

    constraints: ClassVar[Constraints]


def check_parameters(estimator: Constrained) -> None:
    """Hold every parameter of an estimator against what its class declares in `constraints`."""
    for name, constraint in estimator.constraints.items():
        constraint(name, getattr(estimator, name))


def given_parameter(estimator: object, name: str) -> Any:
    """Value of a parameter, by its old name where it was given by that."""
    for old, new in renamed_parameters(type(estimator)).items():
        if new == name and getattr(estimator, old) != DEPRECATED:
            return getattr(estimator, old)
    return getattr(estimator, name)


def renamed_parameters(cls: type) -> Mapping[str, str]:
    """New names of the parameters of a class that have another since this release, by old name."""
    names: Mapping[str, str] = getattr(cls, "renamed_parameters", {})
    return names


def check_renamed(estimator: object) -> None:
    """Warn where a parameter is given by its old name; refuse it by both."""
    cls = type(estimator)
    for old, new in renamed_parameters(cls).items():
        value = getattr(estimator, old)
        if value == DEPRECATED:
            continue
        call = f"{cls.__name__}(..., {new}={value!r})"
        if getattr(estimator, new) != signature(cls).parameters[new].default:
            raise InvalidInputError(
                old, f"cannot be given together with {new}, its new name", value, f"Pass {call}."
            )
        warnings.warn(
            f"{old} is now named {new}: pass {call}. The next release refuses the old name.",
            FutureWarning,
            stacklevel=level_of_caller(),
        )


def is_given(value: Any) -> bool:
    """Whether a deprecated parameter was given a value."""
    return not (isinstance(value, str) and value == DEPRECATED)


def if_given(constraint: Constraint) -> Constraint:
    """What the constraint demands of a deprecated parameter, where it is given."""
    return lambda name, value: constraint(name, value) if is_given(value) else None


def level_of_caller() -> int:
    """How many calls above the function that asks the package was entered."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("adacos."):
        level, frame = level + 1, frame.f_back
    return level


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; what the annotation leaves open fits."""
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):
        # NDArray is an alias of its own kind from Python 3.12 on.
        return fits(value, origin.__value__[inner])
    if origin in (Union, UnionType):
        return any(fits(value, choice) for choice in inner)
    if origin is np.ndarray:
        (scalar,) = get_args(inner[1])
        return isinstance(value, np.ndarray) and (
            scalar is Any or value.dtype.kind == np.dtype(scalar).kind
        )
    if origin in (tuple, list, Sequence):
        if not isinstance(value, tuple if origin is tuple else (list, tuple)):
            return False
        if origin is tuple and inner[-1] is not Ellipsis:
            return len(value) == len(inner) and all(map(fits, value, inner))
        return all(fits(item, inner[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items()
        )
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return not isinstance(hint, type) or hint is Any or isinstance(value, hint)


def listed(items: Iterable[Any]) -> str:
    """Items in a row; one that holds a comma itself is quoted."""
    return ", ".join(f'"{item}"' if "," in str(item) else str(item) for item in items)


def and_more(n: int) -> str:
    """How many there are besides the first of `n`, in brackets; empty if it is the only one."""
    return f" (and {n - 1:,} more)" if n > 1 else ""


def did_you_mean(given: Iterable[str], names: Iterable[str]) -> str:
    """A question with the names nearest to those given, and a space; empty if none is near."""
    by_case: dict[str, str] = {}
    for name in names:
        by_case.setdefault(name.casefold(), name)
    near = (get_close_matches(item.casefold(), by_case, n=1) for item in given)
    meant = [by_case[match] for matches in near for match in matches]
    return f"Did you mean {listed(meant)}? " if meant else ""


def near_file(path: Path) -> str:
    """A question with the file of the same folder whose name is nearest; empty if none is near."""
    there = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    return did_you_mean([path.name], there)


def choices(given: Iterable[str], names: Collection[str], lead: str) -> str:
    """What could have been meant instead of `given`, then the names after the words `lead`."""
    more = f", … ({len(names):,} in all)" if len(names) > _MOST_LISTED else ""
    return f"{did_you_mean(given, names)}{lead} {listed(islice(names, _MOST_LISTED))}{more}."

"""Costs that are known as an interval or a distribution only, next to those a policy was given.

An uncertain cost is stated by its name and one of

    (low, high)              every amount between the two is as likely as any other
    (low, likely, high)      a triangle whose peak is the likely amount
    {"mean": m, "sd": s}     a gamma distribution, the usual one for costs
    a frozen distribution    of `scipy.stats`, or whatever has `mean`, `ppf` and `support`

The name is that of a covariate, `false_positive` or `false_negative`, or for an entry of the matrix
a pair (true class, answer), also written "true -> answer". Costs are independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from adacos.costs import CostTable
from adacos.exceptions import InvalidInputError
from adacos.typing import Bools, Floats, Ints
from adacos.validation import check_cost_size, choices, listed, real

# Of an interval that nobody stated: by how much of itself a cost may be less or more.
_SHARE = 0.5
# Of a distribution, the part that one-way analyses look at.
_INSIDE = 0.025, 0.975
_ERRORS = ("false_positive", "false_negative")
_EXAMPLE = "For example {'glucose': (10, 25), 'false_negative': {'mean': 400, 'sd': 100}}."


@dataclass(frozen=True)
class UncertainCost:
    """One uncertain cost of a cost table.

    Attributes
    ----------
    name : what it is called.
    place : number of the covariate, or (true class, answer) of the error.
    stated : the amount that the policy was given.
    low, high : ends of the interval, or the 2.5% and 97.5% quantiles of the distribution.
    distribution : how likely which amount is.
    """

    name: str
    place: int | tuple[int, int]
    stated: float
    low: float
    high: float
    distribution: Any

    @property
    def mean(self) -> float:
        """The expected amount."""
        return float(self.distribution.mean())

    def quantiles(self, shares: Floats) -> Floats:
        """The amounts below which these shares of the distribution lie."""
        return np.asarray(self.distribution.ppf(shares), dtype=np.float64)

    def exposure(self, acquired: Bools, true: Ints, answer: Ints) -> Bools:
        """Mask of the rows that pay this cost."""
        if isinstance(self.place, int):
            return np.asarray(acquired[:, self.place])
        return np.asarray((true == self.place[0]) & (answer == self.place[1]))


def at_amounts(table: CostTable, costs: Sequence[UncertainCost], amounts: Floats) -> CostTable:
    """The cost table with these amounts of the uncertain costs; what panels spare stays."""
    covariates, matrix = table.covariates.copy(), table.matrix.copy()
    for cost, amount in zip(costs, amounts, strict=True):
        if isinstance(cost.place, int):
            covariates[cost.place] = amount
        else:
            matrix[cost.place] = amount
    return replace(table, covariates=covariates, matrix=matrix)


def uncertain_costs(
    given: Mapping[Any, Any] | None,
    table: CostTable,
    answers: Sequence[tuple[Sequence[str], Sequence[str]]],
    *,
    missed_is_priced: bool = True,
) -> tuple[UncertainCost, ...]:
    """The uncertain costs in their order; None for each that is not zero, half as much or more.

    Parameters
    ----------
    given : what was stated, by name.
    table : the costs of the policy.
    answers : names of the true classes and of the answers, in their order; several pairs of lists
        where they have several names.
    missed_is_priced : whether a false negative has a stated cost.
    """
    if given is None:
        return tuple(_by_default(table, answers[0], missed_is_priced))
    if not isinstance(given, Mapping) or not given:
        raise InvalidInputError(
            "uncertain",
            "must be a mapping from at least one cost to its interval or distribution",
            given,
            _EXAMPLE,
        )
    found: list[UncertainCost] = []
    for name, content in given.items():
        place = _place(name, table, answers)
        title = _title(place, table, answers[0])
        if not missed_is_priced and isinstance(place, tuple) and place[0] == 1:
            raise InvalidInputError(
                f"uncertain[{title!r}]",
                "has no cost: a target recall took its place",
                content,
                "Leave it out; the cut-off stays that of the recall.",
            )
        if any(place == other.place for other in found):
            raise InvalidInputError(
                "uncertain", "must name each cost once", title, "Leave one of them out."
            )
        found.append(_checked(title, place, table, _distribution(title, content)))
    return tuple(found)


def _by_default(
    table: CostTable, names: tuple[Sequence[str], Sequence[str]], missed_is_priced: bool
) -> list[UncertainCost]:
    """Every cost from half of it to half as much again."""
    found: list[UncertainCost] = []
    for k in np.flatnonzero(table.covariates > 0).tolist():
        low, high = table.covariates[k] * np.array([1 - _SHARE, 1 + _SHARE])
        # What a panel spares is part of each member's cost.
        low = max(low, float(table.discount[k]))
        found.append(_checked(table.names[k], k, table, _even(low, high)))
    right = table.matrix.min(axis=1)
    for place in np.argwhere(table.matrix > right[:, None]).tolist():
        true, answer = place
        if missed_is_priced or true == 0:
            more = float(table.matrix[true, answer] - right[true])
            ends = right[true] + more * np.array([1 - _SHARE, 1 + _SHARE])
            spot = (true, answer)
            found.append(_checked(_title(spot, table, names), spot, table, _even(*ends)))
    return found


def _title(
    place: int | tuple[int, int], table: CostTable, names: tuple[Sequence[str], Sequence[str]]
) -> str:
    """What a cost is called."""
    if isinstance(place, int):
        return table.names[place]
    if table.matrix.shape == (2, 2):
        return _ERRORS[place[0]]
    return f"{names[0][place[0]]} -> {names[1][place[1]]}"


def _place(
    name: Any, table: CostTable, answers: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> int | tuple[int, int]:
    """The place of a cost in the table; a covariate comes first."""
    if isinstance(name, str) and name in table.names:
        return table.names.index(name)
    if name in _ERRORS and table.matrix.shape == (2, 2):
        return (0, 1) if name == _ERRORS[0] else (1, 0)
    pair: Any = name
    if isinstance(name, str) and "->" in name:
        pair = tuple(part.strip() for part in name.split("->", 1))
    if isinstance(pair, tuple) and len(pair) == 2:
        for true, answer in answers:
            if str(pair[0]) in true and str(pair[1]) in answer:
                place = list(true).index(str(pair[0])), list(answer).index(str(pair[1]))
                if table.matrix[place] > table.matrix[place[0]].min():
                    return place
                remedy = "State what the other answers cost instead: errors count beyond it."
                rule = "must be the cost of an error, not of the right answer"
                raise InvalidInputError("uncertain", rule, name, remedy)
        true, answer = answers[0]
        raise InvalidInputError(
            "uncertain",
            "must name a true class and an answer",
            name,
            f"The classes are {listed(true)}, the answers {listed(answer)}.",
        )
    errors = _ERRORS if table.matrix.shape == (2, 2) else ()
    remedy = choices([str(name)], [*table.names, *errors], "The costs are")
    if not errors:
        remedy += " An error is written 'true class -> answer'."
    raise InvalidInputError("uncertain", "must name costs of the policy", name, remedy)


class _Stated(NamedTuple):
    """A distribution, and the ends between which one-way analyses look at it."""

    distribution: Any
    low: float
    high: float


def _even(low: float, high: float) -> _Stated:
    return _Stated(stats.uniform(low, high - low), low, high)


def _distribution(title: str, content: Any) -> _Stated:
    """The distribution that an interval, three amounts, mean and deviation, or an object state."""
    name = f"uncertain[{title!r}]"
    if isinstance(content, Mapping):
        if set(content) != {"mean", "sd"}:
            rule = "must have a mean and an sd, and nothing else"
            raise InvalidInputError(name, rule, dict(content), _EXAMPLE)
        mean, sd = (real(f"{name} {part}", content[part], above=0) for part in ("mean", "sd"))
        content = stats.gamma((mean / sd) ** 2, scale=sd**2 / mean)
    if all(callable(getattr(content, part, None)) for part in ("mean", "ppf", "support")):
        low, high, mean = (float(end) for end in (*content.ppf(_INSIDE), content.mean()))
        if not np.isfinite([low, high, mean]).all():
            raise InvalidInputError(name, "must have a finite mean", mean, "Choose another one.")
        return _Stated(content, low, high)
    several = isinstance(content, Sequence | np.ndarray) and not isinstance(content, str)
    if not several or len(content) not in (2, 3):
        rule = "must be (low, high), (low, likely, high), a mean with an sd, or a frozen "
        raise InvalidInputError(name, f"{rule}distribution", content, _EXAMPLE)
    ends = [real(name, amount) for amount in np.asarray(content, dtype=object).tolist()]
    if ends != sorted(ends) or ends[0] == ends[-1]:
        rule = "amounts must rise from low to high"
        remedy = "Put the smaller amount first."
        if len(ends) == 3:
            remedy = "State the low, the likely and the high amount, in this order."
        raise InvalidInputError(name, rule, content, remedy)
    if len(ends) == 2:
        return _even(ends[0], ends[1])
    low, likely, high = ends
    shape = (likely - low) / (high - low)
    return _Stated(stats.triang(shape, low, high - low), low, high)


def _checked(
    title: str, place: int | tuple[int, int], table: CostTable, stated: _Stated
) -> UncertainCost:
    """The cost, after its amounts were found to be costs."""
    name, remedy = f"uncertain[{title!r}]", "Raise its lower end."
    first = min(float(stated.distribution.support()[0]), stated.low)
    if isinstance(place, int):
        now, least = float(table.covariates[place]), float(table.discount[place])
        rule, wrong = "a covariate cost cannot be negative", first < least * (1 - 1e-9)
        if least > 0:
            rule = f"must be at least {least:g}, which the panel spares its later members"
    else:
        now, least = float(table.matrix[place]), float(table.matrix[place[0]].min())
        rule = f"an error must cost more than the right answer, which costs {least:g}"
        wrong = first < least or stated.low <= least
    if wrong:
        if np.isinf(first):
            remedy = "Truncate the distribution, or state a mean with an sd."
        raise InvalidInputError(name, rule, f"{first:g}", remedy)
    for end in (stated.low, stated.high):
        if end:
            check_cost_size(name, end)
    return UncertainCost(title, place, now, stated.low, stated.high, stated.distribution)

"""What an audit found: measures of groups of rows, in the shape of fairlearn's `MetricFrame`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adacos.document.blocks import Block, Grid, Items, Text, fragment, plain_text
from adacos.exceptions import InvalidInputError
from adacos.kernels.intervals import ConfidenceInterval
from adacos.policies.recall import percent
from adacos.validation import choice, choices

ALL = "all rows"
_TITLES = {
    "total": "total cost",
    "covariates": "covariate costs",
    "errors": "cost of errors",
    "paid": "paid for values",
    "waits": "paid for waiting",
    "acquired": "covariates acquired",
    "positive": "answered positive",
}


def title_of(measure: str) -> str:
    """A measure in words."""
    if measure.startswith("stop_"):
        return f"stopped after {measure.removeprefix('stop_').replace('_', '–')}"
    return _TITLES.get(measure, measure)


def is_share(measure: str) -> bool:
    """Whether a measure is a share of rows, and no mean of amounts."""
    return measure not in _TITLES or measure == "positive"


@dataclass(frozen=True)
class GroupMeasure:
    """One measure of a group of rows.

    Parameters
    ----------
    rows : int
        Rows it is a mean over: for a recall those of the class.
    level : ConfidenceInterval
        Its value and interval; the value is NaN without rows.
    difference : ConfidenceInterval or None
        By how much it is more than that of all rows; None for all rows themselves.
    """

    rows: int
    level: ConfidenceInterval
    difference: ConfidenceInterval | None = None

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference leaves zero out."""
        return self.difference is not None and self.difference.excludes(0.0)


@dataclass(frozen=True)
class GroupCertificate:
    """Whether a promised recall is shown in a group.

    Parameters
    ----------
    label : object
        The class.
    promised : float
        Its recall, as it was promised.
    bound : float
        The recall that the rows of the group prove.
    rows, misses : int
        Rows of the class that were counted, and how many of them were missed.
    needed : int
        Rows of the class from which on the recall can be shown, if none is missed.
    verdict : {"shown", "not shown", "too few", "missed"}
        "too few" if there are fewer rows than needed; "missed" if the recall of the group is shown
        to be less than what was promised.
    """

    label: Any
    promised: float
    bound: float
    rows: int
    misses: int
    needed: int
    verdict: str

    def __str__(self) -> str:
        promise = percent(self.promised)
        counted = f"{self.misses:,} of {self.rows:,} missed"
        if self.verdict == "too few":
            return (
                f"{promise} cannot be shown with {self.rows:,} positives: {self.needed:,} are "
                f"needed, even if none is missed ({counted})"
            )
        if self.verdict == "shown":
            return f"{promise} is shown: at least {self.bound:.1%} ({counted})"
        if self.verdict == "missed":
            return f"{promise} is not reached in this group ({counted})"
        return f"{promise} is not shown: at least {self.bound:.1%} ({counted})"


@dataclass(frozen=True)
class AuditedGroup:
    """One group of rows.

    Parameters
    ----------
    name : str
        Its value of the column, or those of several columns.
    rows : int
        How many rows it has.
    measures : dict of str to GroupMeasure
        Its measures.
    certificates : tuple of GroupCertificate
        One for each class whose recall was promised.
    """

    name: str
    rows: int
    measures: dict[str, GroupMeasure]
    certificates: tuple[GroupCertificate, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """The groups of one column, or of several that are crossed, as fairlearn shapes them.

    Parameters
    ----------
    name : str
        The column, or the columns joined by " × ".
    groups : tuple of AuditedGroup
        The groups.
    whole : dict of str to GroupMeasure
        The measures of all rows.
    """

    name: str
    groups: tuple[AuditedGroup, ...]
    whole: dict[str, GroupMeasure]

    @property
    def overall(self) -> dict[str, float]:
        """Each measure of all rows."""
        return {name: own.level.estimate for name, own in self.whole.items()}

    @property
    def by_group(self) -> dict[str, dict[str, float]]:
        """Each measure of each group; `pandas.DataFrame(by_group)` has a line for each group."""
        return {
            name: {group.name: group.measures[name].level.estimate for group in self.groups}
            for name in self.whole
        }

    def group_min(self) -> dict[str, float]:
        """Find the least value of each measure among the groups.

        Returns
        -------
        dict of str to float
            One for each measure; groups without rows of a class do not count.
        """
        return self._over_groups(min)

    def group_max(self) -> dict[str, float]:
        """Find the largest value of each measure among the groups.

        Returns
        -------
        dict of str to float
            One for each measure; groups without rows of a class do not count.
        """
        return self._over_groups(max)

    def difference(self, method: str = "between_groups") -> dict[str, float]:
        """Give the largest difference of each measure.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}, default="between_groups"
            Between any two groups, or between a group and all rows.

        Returns
        -------
        dict of str to float
            One for each measure, 0 or more.
        """
        self._check(method)
        low, high = self.group_min(), self.group_max()
        if method == "between_groups":
            return {name: high[name] - low[name] for name in low}
        whole = self.overall
        return {name: max(high[name] - whole[name], whole[name] - low[name]) for name in low}

    def ratio(self, method: str = "between_groups") -> dict[str, float]:
        """Give the smallest ratio of each measure.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}, default="between_groups"
            Between any two groups, or between a group and all rows.

        Returns
        -------
        dict of str to float
            One for each measure, between 0 and 1; 1 where all are alike, NaN where all are 0.
        """
        self._check(method)
        low, high = self.group_min(), self.group_max()
        if method == "between_groups":
            return {name: _quotient(low[name], high[name]) for name in low}
        whole = self.overall
        return {
            name: float(np.fmin(_quotient(low[name], own), _quotient(own, high[name])))
            for name, own in whole.items()
        }

    def _over_groups(self, least_or_most: Callable[[list[float]], float]) -> dict[str, float]:
        found = {name: list(values.values()) for name, values in self.by_group.items()}
        known = {name: [v for v in values if v == v] for name, values in found.items()}
        return {
            name: least_or_most(values) if values else math.nan for name, values in known.items()
        }

    def _check(self, method: str) -> None:
        choice("method", method, ("between_groups", "to_overall"))

    def grid(self) -> Grid:
        """Give the measures as a table, by measure and then by group.

        Returns
        -------
        Grid
            A line for each measure of all rows and of each group.
        """
        lines = []
        for name, whole in self.whole.items():
            lines.append((title_of(name), ALL, *_cells(whole, is_share(name)), ""))
            for group in self.groups:
                own = group.measures[name]
                lines.append(
                    ("", group.name, *_cells(own, is_share(name)), _more(own, is_share(name)))
                )
        header = ("", self.name, "rows", "value", "interval", "more than all rows")
        return Grid(header, tuple(lines))

    def certified(self) -> tuple[str, ...]:
        """Say for each group whether what was promised is shown.

        Returns
        -------
        tuple of str
            A line for each group and class; none where no recall was promised.
        """
        many = len({one.label for group in self.groups for one in group.certificates}) > 1
        return tuple(
            f"{self.name} {group.name}{f', class {one.label}' if many else ''}: recall {one}"
            for group in self.groups
            for one in group.certificates
        )

    def differing(self) -> tuple[str, ...]:
        """Say which groups are shown to differ from all rows, and in what.

        Returns
        -------
        tuple of str
            A line for each such measure of a group.
        """
        return tuple(
            f"{self.name} {group.name}: {title_of(name)} {_more(own, is_share(name))[:-2]}"
            for name in self.whole
            for group in self.groups
            if (own := group.measures[name]).differs
        )


@dataclass(frozen=True)
class Audit:
    """What a policy does to groups of rows, with simultaneous intervals, see `audit`.

    Parameters
    ----------
    groupings : tuple of Grouping
        One for each column, or one for the columns crossed.
    rows : int
        How many rows there are.
    confidence : float
        With which all intervals hold together.
    intervals : int
        How many intervals share it.
    certificate_confidence : float or None
        With which all bounds of certificates hold together; None where no recall was promised.
    training_rows : int
        How many of the rows look like those that the policy was trained on.
    notes : tuple of str
        What was noticed about the groups, and how intervals were made.
    """

    groupings: tuple[Grouping, ...]
    rows: int
    confidence: float
    intervals: int
    certificate_confidence: float | None
    training_rows: int
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Grouping:
        for grouping in self.groupings:
            if grouping.name == name:
                return grouping
        names = [grouping.name for grouping in self.groupings]
        remedy = choices([str(name)], names, "They are")
        raise InvalidInputError("audit", "must be asked for a grouping it has", name, remedy)

    @property
    def overall(self) -> dict[str, float]:
        """Each measure of all rows."""
        return self.groupings[0].overall

    def __str__(self) -> str:
        parts = [*(plain_text(grouping.grid()) for grouping in self.groupings)]
        certified = self._certified()
        lines = ["Shown to differ from all rows:", *self._found()]
        if certified:
            lines += ["", self._certified_title(), *certified]
        return "\n\n".join([*parts, "\n".join(lines), "\n".join(self.notes)])

    def _repr_html_(self) -> str:
        blocks: list[Block] = [grouping.grid() for grouping in self.groupings]
        blocks += [Text("Shown to differ from all rows:"), Items(self._found())]
        if certified := self._certified():
            blocks += [Text(self._certified_title()), Items(certified)]
        return fragment([*blocks, Items(self.notes)])

    def _found(self) -> tuple[str, ...]:
        found = tuple(line for grouping in self.groupings for line in grouping.differing())
        return found or ("no group, in any measure",)

    def _certified(self) -> tuple[str, ...]:
        return tuple(line for grouping in self.groupings for line in grouping.certified())

    def _certified_title(self) -> str:
        return f"The promised recall in each group, at {self.certificate_confidence:.0%} together:"

    def to_dict(self) -> dict[str, Any]:
        """Give the audit as plain JSON values.

        Returns
        -------
        dict
            All fields, what is unknown as None; each grouping with `by_group`, `overall`,
            `difference` and `ratio`.
        """
        fields = asdict(self)
        for own, grouping in zip(fields["groupings"], self.groupings, strict=True):
            own |= {
                "by_group": grouping.by_group,
                "overall": grouping.overall,
                "difference": grouping.difference(),
                "ratio": grouping.ratio(),
            }
        plain: dict[str, Any] = _without_nan(fields)
        return plain


def _without_nan(value: Any) -> Any:
    """The same with None for NaN."""
    if isinstance(value, Mapping):
        return {key: _without_nan(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _quotient(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _cells(own: GroupMeasure, share: bool) -> tuple[str, str, str]:
    """Rows, value and interval."""
    many = ".1%" if share else ",.2f"
    value, low, high = own.level.estimate, own.level.low, own.level.high
    known = f"{value:{many}}" if own.rows else "–"
    return f"{own.rows:,}", known, f"{low:{many}} to {high:{many}}" if own.rows else ""


def _more(own: GroupMeasure, share: bool) -> str:
    """The difference from all rows with its interval, and a star where it is shown."""
    if own.difference is None or not own.rows or math.isnan(own.difference.estimate):
        return ""
    factor, many = (100, "+.1f") if share else (1, "+,.2f")
    more = own.difference
    value, low, high = (f"{factor * v:{many}}" for v in (more.estimate, more.low, more.high))
    return f"{value} ({low} to {high}) {'*' if own.differs else ' '}"

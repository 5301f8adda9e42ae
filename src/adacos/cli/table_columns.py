"""What the columns of a table of one's own are: target, covariates, groups, weights."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from adacos.cli.common import pairs
from adacos.exceptions import InvalidInputError
from adacos.tables.dates import check_date
from adacos.tables.reading import TableFile
from adacos.validation import choices, listed

Dropped = Annotated[
    list[str] | None, typer.Option(help="Column that is no covariate, such as an identifier.")
]
Categorical = Annotated[
    list[str] | None, typer.Option(help="Column of codes to treat as categories.")
]
Numeric = Annotated[
    list[str] | None,
    typer.Option(help="Column of digits with zeros in front to treat as numbers."),
]
Dates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=PART",
        help="Column of dates, read as days (since 1970), year, month, weekday or hour; "
        "repeatable. For 03/04/2026 add the order: month:day-first.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that groups rows, such as patient or site; not a covariate. Rows of a "
        "group stay on one side of every split and count once in a certificate.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that says how often a row counts; not a covariate. With --policy adacos, "
        "branching, cos and full.",
    ),
]


@dataclass(frozen=True)
class Columns:
    """What columns were named, and the covariates: all others.

    Attributes
    ----------
    target : column with the class.
    positive : the class that is set against all others, if one was named.
    drop, categorical, numeric : columns to leave, taken as categories, taken as numbers.
    groups, weights : column with the group and with the weight of a row, if there are.
    dates : how columns of dates are read, by name.
    covariates : filled in by `of`.
    """

    target: str
    positive: str | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    numeric: Sequence[str] = ()
    groups: str | None = None
    weights: str | None = None
    dates: Mapping[str, str] = field(default_factory=dict)
    covariates: Sequence[str] = ()

    def of(self, file: TableFile) -> Columns:
        """The same for a table, which must have them; names in one text may have commas between."""
        own = replace(
            self,
            drop=split_names(self.drop, file.columns),
            categorical=split_names(self.categorical, file.columns),
            numeric=split_names(self.numeric, file.columns),
        )
        own._check(file.columns)
        used = {self.target, *own.drop, *own.of_rows}
        covariates = [name for name in file.columns if name not in used]
        if not covariates:
            rule = "needs another column than the target"
            raise InvalidInputError("data", rule, self.target, "Add one.")
        return replace(own, covariates=covariates)

    @property
    def of_rows(self) -> list[str]:
        """Columns that are neither covariate nor class."""
        return [name for name in (self.groups, self.weights) if name is not None]

    def others(self, file: TableFile) -> list[str]:
        """Columns of the table that are no covariates."""
        return [name for name in file.columns if name not in self.covariates]

    @property
    def as_text(self) -> set[str]:
        """Columns that are read as text, whatever they hold."""
        return {self.target, *self.categorical, *([] if self.groups is None else [self.groups])}

    @property
    def as_numbers(self) -> set[str]:
        """Columns that are read as numbers, whatever they hold."""
        weights = [] if self.weights is None else [self.weights]
        return {*self.numeric, *self.dates, *weights}

    def _named(self) -> Iterator[tuple[str, Sequence[str]]]:
        yield "--target", [self.target]
        yield "--drop", self.drop
        yield "--categorical", self.categorical
        yield "--numeric", self.numeric
        yield "--date", list(self.dates)
        yield "--groups", [] if self.groups is None else [self.groups]
        yield "--weights", [] if self.weights is None else [self.weights]

    def _check(self, columns: Collection[str]) -> None:
        for option, given in self._named():
            unknown = [name for name in given if name not in columns]
            if unknown:
                remedy = choices(unknown, columns, "The columns are")
                one = option in ("--target", "--groups", "--weights")
                rule = "must name a column" if one else "must name columns"
                raise InvalidInputError(option, rule, listed(unknown), remedy)
        if self.target in self.drop:
            raise InvalidInputError("--drop", "must leave the target", self.target, "Remove it.")
        both = [name for name in self.numeric if name in (self.target, *self.categorical)]
        if both:
            rule = "must name covariates that --categorical does not name"
            raise InvalidInputError("--numeric", rule, listed(both), "Leave one of them out.")
        for name in self.dates:
            if name in (*self.drop, *self.categorical, *self.numeric, *self.of_rows, self.target):
                rule = "must name covariates that no other option names"
                raise InvalidInputError("--date", rule, name, "Leave one of them out.")
        what = {"--groups": "Name the patients or sites.", "--weights": "Name another column."}
        for option, given in self._named():
            if option in what and self.target in given:
                rule = "must be another column than the target"
                raise InvalidInputError(option, rule, self.target, what[option])
        if self.weights is not None and self.weights == self.groups:
            rule = "must be another column than that of --groups"
            raise InvalidInputError("--weights", rule, self.weights, "Leave one of them out.")


def read_dates(items: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """COLUMN=PART as given with --date, by column."""
    given = pairs(items, columns, "--date", f"--date {quote(f'{columns[0]}=month')}")
    return {name: check_date("--date", name, form) for name, form in given.items()}


def split_names(given: Collection[str], names: Collection[str]) -> list[str]:
    """Names as they were given, cut at commas where a text is no name itself."""
    cut = ([text] if text in names else text.split(",") for text in given)
    return [name.strip() if name not in names else name for parts in cut for name in parts]


def split_columns(given: Sequence[str], path: Path, encoding: str, decimal: str) -> list[str]:
    """As `split_names` with the columns of a file, which is opened only where a text is cut."""
    if not any("," in text for text in given):
        return list(given)
    return split_names(given, TableFile(path, encoding=encoding, decimal=decimal).columns)

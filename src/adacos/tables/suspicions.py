"""What looks like a mistake in a training table: said once, with what to do, never refused.

`suspicions(X, y)` looks at each covariate by itself: does it name the row or the class, hold
dates, numbers that were read as words, or a number far beyond all others? And at all of them: are
there enough rows of the rarer class to learn from, do rows look like copies of each other or like
visits of one patient, do shares of classes look designed, and are values missing often, more often
in one class, or where another value was clear?
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from adacos.kernels.groups import copies, one_of_each
from adacos.kernels.near_copies import near_copies
from adacos.tables.categories import (
    DATE,
    LEAST_ROWS,
    MAX_CATEGORIES,
    OTHER,
    SHARE_OF_FORM,
    share_of_form,
)
from adacos.tables.column_values import column_values
from adacos.tables.encoder import covariate_names, validate_table
from adacos.tables.labels import check_labels
from adacos.tables.sampling import (
    MANY,
    MANY_MISSING,
    MISSING,
    MISSING_BY_VALUES,
    describe_missing,
    describe_missing_by_values,
    designed_shares,
    missing_by_class,
    missing_by_values,
)
from adacos.tables.weights import (
    VISITS_REMEDY,
    count_near_copies,
    describe_copies,
    group_numbers,
)
from adacos.typing import Bools, Floats
from adacos.validation import listed

# Rows of the rarer class for each covariate below which estimates are mostly noise.
ROWS_PER_COVARIATE = 10
# Area under the ROC curve of one covariate from which it is more likely the answer than a finding.
_LEAK = 0.99
# So many rows of each class must be there before a covariate can be said to tell them apart.
_LEAST_ROWS = 10
_ROWS_TO_IDENTIFY = 50
_DISTINCT_SHARE = 0.9
# Numbers beyond the others: known numbers that are needed to judge them, and the most there may be.
_ROWS_OF_OTHERS, _MOST_BEYOND = 30, 3
# How often a column without a mistake would be named; and how many times as far from the median as
# all others a number must lie.
_BEYOND_LEVEL, _BEYOND_TIMES = 1e-4, 3.0
# With fewer distinct numbers their logarithms say little about the tail: it is taken to be at least
# so heavy.
_FEW_DISTINCT, _LEAST_TAIL = 10, 0.25
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_WHOLE = re.compile(r"[+-]?\d+")
_SEPARATED = re.compile(r"[+-]?\d{1,3}(?:[.,'\s\u00a0\u202f]\d{3})+(?:[.,]\d+)?")


_MESSAGES = {
    "leak": "{}: alone almost enough to separate the classes. Drop the column if it follows from "
    "the class or is known only afterwards.",
    "missing_by_class": MISSING,
    "missing_by_values": MISSING_BY_VALUES,
    "many_missing": MANY,
    "identifier": "{}: a different whole number in nearly every row. If it is an identifier, "
    "leave it out.",
    "date": "{}: looks like dates. Turn them into a number, such as days before the decision, or "
    "a part, such as the month (--date COLUMN=month on the command line), or leave them out.",
    "decimal_comma": "{}: looks like numbers with a decimal comma, read as categories. Write them "
    "with a decimal point, or read the CSV file with --decimal ,",
    "far_value": "{}: far beyond all other values. Correct a slip, or leave the cell empty where "
    "it means a missing value: one such number can spoil what is learned of the covariate.",
    "many_categories": "{}: more categories than "
    f"{MAX_CATEGORIES}. The most frequent {MAX_CATEGORIES - 1} are kept, those with at least "
    f"{LEAST_ROWS} rows; all others count as one, {OTHER!r}. The model file holds their names.",
    "written_numbers": "{}: looks like numbers, read as categories: they have separators between "
    "thousands, or another decimal sign than the file is read with. Leave the separators out.",
}


class Suspicion(NamedTuple):
    """What looks wrong.

    Attributes
    ----------
    kind : "few_rows", "copies", "near_copies", "class_shares", "missing_by_class",
        "missing_by_values", "many_missing", "leak", "identifier", "date", "decimal_comma",
        "far_value", "many_categories" or "written_numbers"; where a fitted policy checks rows also
        "misfit", "no_better", "other_order" and the kinds of `adacos.tables.unusual`.
    covariates : the names concerned; all of them are meant where there is none.
    message : what was seen, and what to do about it.
    """

    kind: str
    covariates: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message


def suspicions(X: Any, y: Any = None, groups: Any = None) -> list[Suspicion]:
    """What looks like a mistake in rows X, with the classes y and the groups if they are given."""
    probe = BaseEstimator()
    table = validate_table(probe, X, reset=True)
    names = covariate_names(probe)
    columns = [column_values(table, position, name) for position, name in enumerate(names)]
    members: list[Bools] = []
    result: list[Suspicion] = []
    if y is not None:
        classes, labels = check_labels(y, many=True)
        # With three or more classes a covariate that gives away every one of them is a leak.
        members = [labels == k for k in range(1 if len(classes) == 2 else 0, len(classes))]
        result += _few_rows(labels, len(names))
        codes, equal = np.column_stack([*map(_codes, columns)]), None
        if groups is None:
            equal = copies(codes, labels)
        if equal is not None:
            result.append(Suspicion("copies", (), describe_copies(equal)))
        elif groups is None:
            result += _visits(codes, labels, names)
        design = designed_shares(labels, classes.tolist(), equal)
        if design:
            result.append(Suspicion("class_shares", (), design))
    suspects: dict[str, list[str]] = {}
    by_kind: dict[str, list[str]] = {}
    for name, values in zip(names, columns, strict=True):
        for kind, text in _kinds_of(values, members):
            suspects.setdefault(kind, []).append(name)
            by_kind.setdefault(kind, []).append(f"{name}{text}")
    if y is not None:
        together = equal if groups is None else group_numbers(groups, len(labels))
        rows = one_of_each(np.arange(len(labels)), together, 0)
        missing, leaks = np.isnan(codes[rows]), suspects.get("leak", [])
        for found in missing_by_class(missing, labels[rows]):
            name = names[found.position]
            if name not in leaks:
                suspects.setdefault("missing_by_class", []).append(name)
                text = describe_missing(name, found, classes.tolist())
                by_kind.setdefault("missing_by_class", []).append(text)
        categorical = np.array([values.dtype.kind == "U" for values in columns])
        for at in missing_by_values(codes[rows], categorical, labels[rows]):
            name, other = names[at.position], names[at.other]
            suspects.setdefault("missing_by_values", []).append(name)
            text = describe_missing_by_values(name, other, at)
            by_kind.setdefault("missing_by_values", []).append(text)
        explained = [*leaks, *suspects.get("missing_by_values", ())]
        for name, share in zip(names, missing.mean(axis=0), strict=True):
            if share >= MANY_MISSING and name not in explained:
                suspects.setdefault("many_missing", []).append(name)
                by_kind.setdefault("many_missing", []).append(
                    f"{name} (missing in {share:.0%} of rows)"
                )
    for kind, message in _MESSAGES.items():
        if kind in suspects:
            text = ", ".join(by_kind[kind])
            result.append(Suspicion(kind, tuple(suspects[kind]), message.format(text)))
    return result


def _codes(values: NDArray[Any]) -> Floats:
    """Numbers as they are, text as numbers; NaN where there is no value."""
    if values.dtype.kind != "U":
        return values
    code = np.unique(values, return_inverse=True)[1].astype(np.float64)
    return np.where(values == "", np.nan, code)


def describe_visits(X: Any, y: Any, names: Sequence[str]) -> str | None:
    """What was seen of rows that look like visits of one patient, if there are any."""
    table, labels = validate_table(BaseEstimator(), X, reset=True), check_labels(y, many=True)[1]
    columns = (column_values(table, position, name) for position, name in enumerate(names))
    found = near_copies(np.column_stack([*map(_codes, columns)]), labels)
    return None if found is None else count_near_copies(found, len(labels), names)


def _visits(codes: Floats, labels: Floats, names: Sequence[str]) -> Iterator[Suspicion]:
    found = near_copies(codes, labels)
    if found is not None:
        seen = count_near_copies(found, len(labels), names)
        changing = tuple(names[k] for k in found.changing)
        yield Suspicion("near_copies", changing, f"{seen} {VISITS_REMEDY}")


def _few_rows(labels: Floats, n_covariates: int) -> Iterator[Suspicion]:
    counts = np.bincount(labels.astype(np.intp))
    rarer, rare = int(counts.min()), "rarer" if len(counts) == 2 else "rarest"
    if rarer < ROWS_PER_COVARIATE * n_covariates:
        yield Suspicion(
            "few_rows",
            (),
            f"{rarer} rows of the {rare} class for {n_covariates} covariates, fewer than about "
            f"{ROWS_PER_COVARIATE} for each. Add rows, or leave out covariates that hardly matter; "
            "costs on new rows will be higher than those shown.",
        )


def _kinds_of(values: NDArray[Any], members: list[Bools]) -> Iterator[tuple[str, str]]:
    """Kinds of suspicion about one covariate, and what is said after its name."""
    if values.dtype.kind == "U":
        known = values != ""
        if share_of_form(values[known], DATE) >= SHARE_OF_FORM:
            yield "date", ""
        elif (
            share_of_form(values[known], _DECIMAL_COMMA, _WHOLE) >= SHARE_OF_FORM
            and share_of_form(values[known], _DECIMAL_COMMA) > 0
        ):
            yield "decimal_comma", ""
        elif (
            share_of_form(values[known], _SEPARATED, _DECIMAL_POINT, _DECIMAL_COMMA, _WHOLE)
            >= SHARE_OF_FORM
            and share_of_form(values[known], _SEPARATED, _DECIMAL_POINT) > 0
        ):
            yield "written_numbers", ""
        elif len(np.unique(values[known])) > MAX_CATEGORIES:
            yield "many_categories", f" ({len(np.unique(values[known])):,})"
    else:
        known = ~np.isnan(values)
        if _are_dates(values[known]):
            yield "date", ""
        else:
            if len(beyond := far_values(values[known])):
                yield "far_value", f" = {listed(f'{value:g}' for value in beyond)}"
            if _identifies(values[known]):
                yield "identifier", ""
    if members and all(_reports(values, known, positive) for positive in members):
        yield "leak", ""


def _are_dates(numbers: Floats) -> bool:
    """Whether numbers are days written as 20260131."""
    if len(numbers) == 0 or np.any(numbers != np.round(numbers)):
        return False
    year, month, day = numbers // 10_000, numbers // 100 % 100, numbers % 100
    valid = (year >= 1900) & (year <= 2100) & (month >= 1) & (month <= 12) & (day >= 1)
    return bool(np.all(valid & (day <= 31)))


def _identifies(numbers: Floats) -> bool:
    if len(numbers) < _ROWS_TO_IDENTIFY or np.any(numbers != np.round(numbers)):
        return False
    return len(np.unique(numbers)) >= _DISTINCT_SHARE * len(numbers)


def far_values(numbers: Floats) -> Floats:
    """Numbers that lie far beyond all others, as a slip of the keyboard does; few, or none.

    What is compared are distances from the median. The logarithms of the largest of them lie about
    exponential distances apart, of a mean that the tail of the other numbers gives (Hill's
    estimator): long where the tail is heavy, as of incomes, short where it is light, as of ages. A
    gap is reported that such a tail would show in one of 10,000 columns.
    """
    distinct, counts = np.unique(numbers, return_counts=True)
    distance = np.abs(distinct - np.median(numbers))
    order = np.argsort(distance)
    found = distinct[:0]
    for k in range(1, min(_MOST_BEYOND, len(order) - 3) + 1):
        others = np.repeat(distance[order[:-k]], counts[order[:-k]])
        others = others[others > 0]
        if len(others) < _ROWS_OF_OTHERS:
            break
        tail = np.log(np.sort(others)[-max(10, len(others) // 10) :])
        mean = float(np.mean(tail - tail[0]))
        if len(order) - k < _FEW_DISTINCT:
            mean = max(mean, _LEAST_TAIL)
        gap = np.log(distance[order[-k]]) - tail[-1]
        if gap > max(np.log(_BEYOND_TIMES), -np.log(_BEYOND_LEVEL) * mean):
            found = np.sort(distinct[order[-k:]])
    return found


def _reports(values: NDArray[Any], known: Bools, positive: Bools) -> bool:
    """Whether the values, or their being there at all, separate the classes."""
    if _separates(known.astype(np.float64), positive):
        return True
    if values.dtype.kind != "U":
        return _separates(values[known], positive[known])
    rates = _leave_one_out_rates(values[known], positive[known])
    # Without its own row a positive has the lower rate in any category: that tells nothing.
    return _separates(rates, positive[known], downwards=False)


def _leave_one_out_rates(texts: NDArray[Any], positive: Bools) -> Floats:
    """Rate of the class among the other rows of the same category; the overall one if alone."""
    _, code = np.unique(texts, return_inverse=True)
    rows = np.bincount(code)[code] - 1
    hits = np.bincount(code, weights=positive)[code] - positive
    return np.where(rows > 0, hits / np.maximum(rows, 1), 0.5)


def _separates(numbers: Floats, positive: Bools, *, downwards: bool = True) -> bool:
    """Whether an order of the rows by these numbers puts nearly all of one class first.

    It may be either class, or the other one only where `downwards` is not asked for.
    """
    n1, n0 = int(positive.sum()), int((~positive).sum())
    if min(n1, n0) < _LEAST_ROWS:
        return False
    area = (rankdata(numbers)[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    return bool(area >= _LEAK or (downwards and 1 - area >= _LEAK))

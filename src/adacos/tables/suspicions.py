"""What looks like a mistake in a training table: told once, with what to do, never refused.

`suspicions(X, y)` looks at each covariate by itself: does it name the row, tell the class, hold
dates or numbers that were read as words? And at all of them: are there enough rows of the rarer
class to learn from?
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from adacos.tables.encoder import column_values, covariate_names, validate_table
from adacos.tables.labels import check_labels

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Rows of the rarer class for each covariate below which estimates are mostly noise.
ROWS_PER_COVARIATE = 10
# Area under the ROC curve of one covariate from which it is more likely the answer than a finding.
_LEAK = 0.99
# So many rows of each class must be there before a covariate can be said to tell them apart.
_ROWS_TO_TELL = 10
_ROWS_TO_IDENTIFY = 50
_DISTINCT_SHARE = 0.9
_SHARE_OF_FORM = 0.9
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?"
)
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_WHOLE = re.compile(r"[+-]?\d+")
_SEPARATED = re.compile(r"[+-]?\d{1,3}(?:[.,'\s\u00a0\u202f]\d{3})+(?:[.,]\d+)?")


_MESSAGES = {
    "leak": "{}: alone almost enough to tell the classes apart. What follows from the class, or is "
    "known only afterwards, must be left out.",
    "identifier": "{}: a different whole number in nearly every row. Leave identifiers out.",
    "date": "{}: looks like dates. Turn them into a number, such as days before the decision, or "
    "leave them out.",
    "decimal_comma": "{}: looks like numbers with a decimal comma, read as categories. Write them "
    "with a decimal point, or read the CSV file with --decimal ,",
    "written_numbers": "{}: looks like numbers, read as categories: they have separators between "
    "thousands, or another decimal sign than the file is read with. Leave the separators out.",
}


class Suspicion(NamedTuple):
    """What looks wrong.

    Attributes
    ----------
    kind : "few_rows", "leak", "identifier", "date", "decimal_comma" or "written_numbers".
    covariates : the names concerned; all of them are meant where there is none.
    message : what was seen, and what to do about it.
    """

    kind: str
    covariates: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message


def suspicions(X: Any, y: Any) -> list[Suspicion]:
    """What looks like a mistake in the rows X with the classes y."""
    probe = BaseEstimator()
    table = validate_table(probe, X, reset=True)
    names = covariate_names(probe)
    classes, labels = check_labels(y, many=True)
    # Of more than two classes a covariate that gives away every one of them is a leak.
    members = [labels == k for k in range(1 if len(classes) == 2 else 0, len(classes))]
    suspects: dict[str, list[str]] = {}
    for position, name in enumerate(names):
        for kind in _kinds_of(column_values(table, position, name), members):
            suspects.setdefault(kind, []).append(name)
    result = list(_few_rows(labels, len(names)))
    for kind, message in _MESSAGES.items():
        if kind in suspects:
            text = ", ".join(suspects[kind])
            result.append(Suspicion(kind, tuple(suspects[kind]), message.format(text)))
    return result


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


def _kinds_of(values: NDArray[Any], members: list[Bools]) -> Iterator[str]:
    """Kinds of suspicion about one covariate."""
    if values.dtype.kind == "U":
        known = values != ""
        if _share(values[known], _DATE) >= _SHARE_OF_FORM:
            yield "date"
        elif (
            _share(values[known], _DECIMAL_COMMA, _WHOLE) >= _SHARE_OF_FORM
            and _share(values[known], _DECIMAL_COMMA) > 0
        ):
            yield "decimal_comma"
        elif (
            _share(values[known], _SEPARATED, _DECIMAL_POINT, _DECIMAL_COMMA, _WHOLE)
            >= _SHARE_OF_FORM
            and _share(values[known], _SEPARATED, _DECIMAL_POINT) > 0
        ):
            yield "written_numbers"
    else:
        known = ~np.isnan(values)
        if _are_dates(values[known]):
            yield "date"
        elif _identifies(values[known]):
            yield "identifier"
    if all(_tells(values, known, positive) for positive in members):
        yield "leak"


def _share(texts: NDArray[Any], *forms: re.Pattern[str]) -> float:
    """Share of the texts that have one of the forms."""
    seen = [any(form.fullmatch(text) for form in forms) for text in texts[:10_000]]
    return sum(seen) / max(len(seen), 1)


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


def _tells(values: NDArray[Any], known: Bools, positive: Bools) -> bool:
    """Whether the values, or their being there at all, tell the classes apart."""
    if _separates(known.astype(np.float64), positive):
        return True
    if values.dtype.kind != "U":
        return _separates(values[known], positive[known])
    rates = _left_out_rates(values[known], positive[known])
    # Without its own row a positive has the lower rate in any category: that tells nothing.
    return _separates(rates, positive[known], downwards=False)


def _left_out_rates(texts: NDArray[Any], positive: Bools) -> Floats:
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
    if min(n1, n0) < _ROWS_TO_TELL:
        return False
    area = (rankdata(numbers)[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    return bool(area >= _LEAK or (downwards and 1 - area >= _LEAK))

"""Categories of a column: of many the frequent ones are kept, all rare ones are one together."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.typing import Bools, Floats, Ints

MAX_CATEGORIES = 100
# Where there are more, a category of fewer rows says too little to be kept by itself.
LEAST_ROWS = 5
# Name of all rare categories together; a category of that name is one of them.
OTHER = "other"
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?"
)
# From this share of values of one form a column holds values of that form.
SHARE_OF_FORM = 0.9
_ROWS_OF_FORM = 10_000


def share_of_form(texts: NDArray[Any], *forms: re.Pattern[str]) -> float:
    """Share of the texts that have one of the forms."""
    seen = [any(form.fullmatch(text) for form in forms) for text in texts[:_ROWS_OF_FORM]]
    return sum(seen) / max(len(seen), 1)


def unseen_categories(encoded: Floats, source: Ints, covariates: Ints) -> Bools:
    """Mask (rows, covariates) of the categories that were never seen in training.

    They are encoded by the shares of the others, each below 1; `covariates` are categorical.
    """
    unseen = np.zeros((len(encoded), len(covariates)), dtype=np.bool_)
    for place, covariate in enumerate(covariates.tolist()):
        unseen[:, place] = encoded[:, source == covariate].max(axis=1) < 1
    return unseen


def kept_categories(
    levels: NDArray[Any], counts: NDArray[Any], name: str
) -> tuple[tuple[str, ...], Floats, tuple[str, ...]]:
    """Categories in order with the share of each, and those that are grouped as `OTHER`.

    Up to `MAX_CATEGORIES` all are kept. If there are more, the most frequent ones are, with at
    least `LEAST_ROWS` rows each, whatever the classes of the rows are. Ties are broken in
    alphabetical order.
    """
    shares = counts / counts.sum()
    if len(levels) <= MAX_CATEGORIES:
        return tuple(levels.tolist()), shares, ()
    if share_of_form(levels, DATE) >= SHARE_OF_FORM:
        raise InvalidInputError(
            f"column {name!r}",
            "must not hold dates: new rows lie after all that were learned from",
            f"{len(levels):,} dates, such as {levels[0]}",
            "Turn it into a number of days, such as the age at that date, or into a part, such as "
            f"the month (adacos fit --date {name}=month); or leave it out.",
        )
    frequent = np.flatnonzero((counts >= LEAST_ROWS) & (levels != OTHER))
    by_count = frequent[np.argsort(-counts[frequent], kind="stable")][: MAX_CATEGORIES - 1]
    if len(by_count) == 0:
        raise InvalidInputError(
            f"column {name!r}",
            f"of more than {MAX_CATEGORIES} categories those of {LEAST_ROWS} rows or more are kept",
            f"{len(levels):,} categories, none of {LEAST_ROWS} rows",
            "Drop an identifier, group the categories, or encode it as a number.",
        )
    rare = np.setdiff1d(np.arange(len(levels)), by_count)
    names = np.append(levels[by_count].astype(object), OTHER)
    share = np.append(shares[by_count], shares[rare].sum())
    order = np.argsort(names.astype(np.str_), kind="stable")
    return tuple(names[order].tolist()), share[order], tuple(levels[rare].tolist())

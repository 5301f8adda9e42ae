"""How rows came into a table, as far as it shows: class shares by design, values missing by class.

A fit takes the rows as drawn from those it will meet, and values as missing at random: whether one
is missing may depend on values that are there, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact

from adacos.typing import Bools, Floats, Ints

# Rows from which equal counts of all classes are hardly chance.
_ROWS_OF_DESIGN = 100
# Share of a class that is repeated, and of another that is not, where a class was drawn again.
_REPEATED, _NOT_REPEATED = 0.2, 0.02
# How often a table is named of which no value is missing by class, all covariates together.
LEVEL = 0.01

SHARES = (
    "Probabilities, costs and recalls hold for rows with these shares of the classes only. If new "
    "rows have others, pass sample_weight: for each class its share among new rows over its share "
    "here."
)
MISSING = (
    "{}: whether the value is missing says something of the class. Missing values are taken as "
    "missing at random, given the values that are there; where a test was ordered for the ill, "
    "probabilities and costs can be far off. Add as covariates what it was decided by, or learn "
    "from rows in which it was recorded for everyone."
)


class MissingByClass(NamedTuple):
    """Shares of missing values of a covariate that differ between the classes.

    Attributes
    ----------
    position : the covariate.
    shares : for each class.
    """

    position: int
    shares: tuple[float, ...]


def designed_shares(labels: Floats, classes: Sequence[Any], equal: Ints | None) -> str:
    """What looks designed about the shares of the classes, in words; empty if nothing does.

    `equal` numbers the groups of equal rows, where rows look like copies of each other.
    """
    count = np.bincount(labels.astype(np.intp))
    if equal is not None:
        repeated = (np.bincount(equal) > 1)[equal]
        share = [float(repeated[labels == k].mean()) for k in range(len(count))]
        most, least = int(np.argmax(share)), int(np.argmin(share))
        if share[most] >= _REPEATED and share[least] <= _NOT_REPEATED:
            return (
                f"Rows of class {classes[most]} are repeated ({share[most]:.0%}), those of class "
                f"{classes[least]} are not: a class seems to have been drawn more often. {SHARES}"
            )
    if len(labels) >= _ROWS_OF_DESIGN and np.ptp(count) == 0:
        return f"All classes have exactly {count[0]:,} rows, which looks designed. {SHARES}"
    return ""


def missing_by_class(missing: Bools, labels: Floats) -> Iterator[MissingByClass]:
    """Covariates of which values are missing more often in some class than chance explains.

    An exact test for two classes, else by chi squared; the level is that of all covariates
    together, for rows that are independent.

    Parameters
    ----------
    missing : (rows, covariates) mask.
    labels : number of the class of each row.
    """
    each = missing.sum(axis=0)
    tested = np.flatnonzero((each > 0) & (each < len(labels)))
    number = labels.astype(np.intp)
    rows = np.bincount(number)
    for k in tested.tolist():
        lacking = np.bincount(number, weights=missing[:, k], minlength=len(rows)).astype(np.intp)
        table = np.array([lacking, rows - lacking])
        if _p_value(table) < LEVEL / len(tested):
            yield MissingByClass(k, tuple((lacking / rows).tolist()))


def _p_value(table: NDArray[np.intp]) -> float:
    if table.shape[1] == 2:
        return float(fisher_exact(table).pvalue)
    return float(chi2_contingency(table).pvalue)


def describe_missing(name: str, found: MissingByClass, classes: Sequence[Any]) -> str:
    """A covariate with its shares of missing values by class."""
    shares = ", ".join(
        f"{share:.0%} of {label}" for label, share in zip(classes, found.shares, strict=True)
    )
    return f"{name} (missing in {shares})"

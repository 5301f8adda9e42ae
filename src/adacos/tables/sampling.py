"""How rows came into a table, as far as it shows: class shares by design, values missing by rule.

A fit takes the rows as drawn from those it will meet, and values as missing completely at random.
It allows a little for values whose absence depends on values that are there, as in rows recorded by
a policy that stopped; costs that are stated are then too low.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, chi2_contingency, fisher_exact

from adacos.typing import Bools, Floats, Ints

# Rows from which equal counts of all classes are hardly chance.
_ROWS_OF_DESIGN = 100
# Share of a class that is repeated, and of another that is not, where a class was drawn again.
_REPEATED, _NOT_REPEATED = 0.2, 0.02
# How often a table is named in which nothing decides what is missing, all covariates together: once
# for classes, once for values.
LEVEL = 0.01
# Share of missing values from which stated costs may be too low, and a difference of shares between
# rows with other values that matters.
MANY_MISSING, _DIFFERENCE = 0.2, 0.1
# Ranges of the values by which another is missing; rows expected in the least of their cells.
_RANGES, _LEAST_EXPECTED = 5, 5
# Rows and products of columns over rows that are looked at for it.
_MOST_ROWS, _MOST_PRODUCTS = 10_000, 2_000_000_000

# What to do about designed shares of classes, in Python and on the command line.
SHARES_REMEDY = "pass sample_weight=prevalence_weights(y, prevalence) with the share among them."
SHARES_OPTIONS = (
    "give the share of the positive class among them with --prevalence, or with three or more "
    "classes a column of weights with --weights: the share of the row's class there over here."
)
SHARES = (
    "Probabilities, costs and recalls hold for rows with these shares of the classes only. If new "
    f"rows have others, {SHARES_REMEDY}"
)
MISSING = (
    "{}: missing more often in one class. Missing values are taken as missing at random, given "
    "the values that are there. Where a test was ordered for the ill, probabilities and costs can "
    "be far off. Add the covariates by which it was ordered, or fit on rows in which it was "
    "recorded for everyone."
)

MISSING_BY_VALUES = (
    "{}: missing more often at some values of another covariate. If tests were skipped "
    "there, stated costs are 5% to 19% too low in simulations. Add complete rows."
)
MANY = (
    "{}: missing values are estimated from the others of the row, so probabilities of new rows "
    "are somewhat too extreme. With 20% to 50% missing at random, stated costs were 5% to 10% too "
    "low in simulations. Check the cost on complete held-out rows."
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


class MissingByValues(NamedTuple):
    """A covariate that is missing more often at some values of another.

    Attributes
    ----------
    position : the covariate.
    other : the one whose values it depends on; of several the one with the clearest sign.
    low, high : least and largest share of missing values by ranges or categories of the other.
    """

    position: int
    other: int
    low: float
    high: float


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
        n_missing = np.bincount(number, weights=missing[:, k], minlength=len(rows)).astype(np.intp)
        table = np.array([n_missing, rows - n_missing])
        if _p_value(table) < LEVEL / len(tested):
            yield MissingByClass(k, tuple((n_missing / rows).tolist()))


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


def missing_by_values(
    codes: Floats, categorical: Bools, labels: Floats
) -> Iterator[MissingByValues]:
    """Covariates whose absence depends on the value of another, more than chance explains.

    For each pair the rows that have the other value are looked at, in ranges of it. Within a class
    the counts of missing values by range are hypergeometric if nothing decides; the sum over the
    classes is tested (Cochran, Mantel and Haenszel), so that what the class decides is not named.
    The level is that of all pairs together, for rows that are independent.

    Parameters
    ----------
    codes : (rows, covariates) numbers, NaN where a value is missing.
    categorical : (covariates,) whether the numbers stand for categories.
    labels : number of the class of each row.
    """
    codes, labels = _some_rows(codes, labels)
    missing = np.isnan(codes)
    each = missing.sum(axis=0)
    tested = np.flatnonzero((each > 0) & (each < len(codes)))
    level = LEVEL / max(len(tested) * (codes.shape[1] - 1), 1)
    absent = missing[:, tested].astype(np.float64)
    found: dict[int, tuple[float, MissingByValues]] = {}
    for other in range(codes.shape[1] if len(tested) else 0):
        place = _ranges(codes[:, other], bool(categorical[other]))
        member = np.eye(max(int(place.max()) + 1, 1))[place] * (place >= 0)[:, None]
        strata = [member * (labels == label)[:, None] for label in np.unique(labels)]
        count = np.array([own.sum(axis=0) for own in strata])
        n_missing = np.moveaxis(np.array([own.T @ absent for own in strata]), -1, 0)
        # Joining ranges lowers the statistic and the degrees of freedom: few have to be looked at.
        likely = chi2.sf(_statistic(n_missing, count), 1) < level
        for k, own in zip(tested[likely].tolist(), n_missing[likely], strict=True):
            p = _p_value_by_range(own, count) if k != other else 1.0
            if p >= level or (k in found and p >= found[k][0]):
                continue
            share = own.sum(axis=0) / count.sum(axis=0)
            if np.ptp(share) >= _DIFFERENCE:
                low, high = float(share.min()), float(share.max())
                found[k] = p, MissingByValues(k, other, low, high)
    for k in sorted(found):
        yield found[k][1]


def _some_rows(codes: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Rows drawn at random, as many as keep the products of all pairs of columns in bounds."""
    pairs = codes.shape[1] * max(int(np.isnan(codes).any(axis=0).sum()), 1)
    most = min(_MOST_PRODUCTS // (_RANGES * pairs), _MOST_ROWS)
    if len(codes) <= most:
        return codes, labels
    rows = np.random.default_rng(0).choice(len(codes), most, replace=False)
    return codes[rows], labels[rows]


def _ranges(values: Floats, categorical: bool) -> NDArray[np.intp]:
    """Number of the range or frequent category of each value; -1 where it is missing."""
    known = ~np.isnan(values)
    place = np.full(len(values), -1, dtype=np.intp)
    if categorical:
        kinds, code, rows = np.unique(values[known], return_inverse=True, return_counts=True)
        rank = np.empty(len(kinds), dtype=np.intp)
        rank[np.argsort(-rows, kind="stable")] = np.arange(len(kinds))
        place[known] = np.minimum(rank, _RANGES - 1)[code]
    elif known.any():
        cuts = np.unique(np.quantile(values[known], np.arange(1, _RANGES) / _RANGES))
        # Where few values are frequent some ranges would be empty.
        place[known] = np.unique(np.searchsorted(cuts, values[known]), return_inverse=True)[1]
    return place


def _p_value_by_range(n_missing: Floats, count: Floats) -> float:
    """That missing values depend on ranges given the class, both (classes, ranges) of rows.

    Ranges are joined with their neighbours until enough missing and other values are expected; 1
    where fewer than two are left.
    """
    share = n_missing.sum(axis=1) / np.maximum(count.sum(axis=1), 1)
    least = np.minimum(share @ count, (1 - share) @ count)
    starts, gathered = [0], 0.0
    for place, amount in enumerate(least.tolist()):
        if min(gathered, least[place:].sum()) >= _LEAST_EXPECTED:
            starts, gathered = [*starts, place], 0.0
        gathered += amount
    if len(starts) < 2:
        return 1.0
    n_missing, count = (np.add.reduceat(rows, starts, axis=1) for rows in (n_missing, count))
    return float(chi2.sf(_statistic(n_missing[None], count)[0], len(starts) - 1))


def _statistic(n_missing: Floats, count: Floats) -> Floats:
    """The chi squared of Cochran, Mantel and Haenszel, for (tables, classes, ranges) of rows."""
    rows = count.sum(axis=1)
    share = n_missing.sum(axis=2) / np.maximum(rows, 1)
    difference = (n_missing - share[..., None] * count).sum(axis=1)[:, :-1]
    each = rows[:, None, None] * np.eye(count.shape[1]) * count[:, None] - np.einsum(
        "ci,cj->cij", count, count
    )
    scale = share * (1 - share) / np.maximum(rows - 1, 1)
    variance = np.einsum("tc,cij->tij", scale, each)[:, :-1, :-1]
    # The ridge is for ranges in which nothing can differ.
    ridge = 1e-9 * np.trace(variance, axis1=1, axis2=2)[:, None, None] + 1e-12
    solved = np.linalg.solve(variance + ridge * np.eye(variance.shape[-1]), difference[..., None])
    return np.asarray((difference * solved[..., 0]).sum(axis=1))


def describe_missing_by_values(name: str, other: str, found: MissingByValues) -> str:
    """A covariate with what its absence depends on."""
    return f"{name} ({found.low:.0%} to {found.high:.0%} of rows, by {other})"

"""Functions of covariates that only rise, or only fall: which, and what that asks of coefficients.

A spline f(x) = Σ_l b_l B_l(x) rises where b_l does not fall with l, as f' is a combination of the
B-splines of degree two with the weights b_l+1 - b_l. For the columns of a covariate (a linear part,
and a wiggly part Z = B W) these differences are A theta, with a square and invertible A: the
functions are those with theta = A^-1 c, c >= 0. Outside the range a spline continues with its
slope at the edge. A covariate of two values has one coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from adacos.exceptions import InvalidInputError
from adacos.kernels.cone import Cone, cone_of
from adacos.kernels.splines import DEGREE, wiggly_directions
from adacos.models.basis import AdditiveBasis
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Bools, Ints
from adacos.validation import choices

_REMEDY = "1 for a function that rises with the covariate, -1 for one that falls, 0 for any."


def directions(name: str, value: Any) -> None:
    """A constraint: directions by name, or in the order of the columns, or None for any."""
    if value is None:
        return
    in_order = not isinstance(value, str) and np.iterable(value) and len(list(value))
    if not (isinstance(value, Mapping) or in_order):
        rule = "must be a mapping from names to directions, or have one for each column"
        raise InvalidInputError(name, rule, value, _REMEDY)
    named = value.items() if isinstance(value, Mapping) else enumerate(value)
    for place, direction in named:
        if isinstance(direction, bool) or direction not in (-1, 0, 1):
            rule = "must be -1, 0 or 1"
            raise InvalidInputError(f"{name}[{place!r}]", rule, direction, _REMEDY)


def monotone_directions(given: Any, encoder: TableEncoder) -> Ints | None:
    """Direction of each covariate, 1, 0 or -1, from names or in their order; None without any."""
    directions("monotonic_cst", given)
    if given is None:
        return None
    names = encoder.names
    if isinstance(given, Mapping):
        if unknown := [str(name) for name in given if name not in names]:
            remedy = choices(unknown, names, "The covariates are")
            raise InvalidInputError("monotonic_cst", "must name covariates", unknown, remedy)
        given = [given.get(name, 0) for name in names]
    values = np.asarray(given, dtype=object)
    if values.shape != (len(names),):
        rule = f"must be a mapping by name, or have one direction for each of {len(names)} columns"
        raise InvalidInputError("monotonic_cst", rule, f"shape {values.shape}", _REMEDY)
    found = values.astype(np.intp)
    if not found.any():
        return None
    for k in np.flatnonzero(found):
        if encoder.kinds[k] == CATEGORICAL:
            rule = f"must be 0 for {names[k]}, whose categories have no order"
            remedy = "Leave it out, or code the categories as numbers in their order."
            raise InvalidInputError("monotonic_cst", rule, int(found[k]), remedy)
    return found


def refuse_directions(rule: str, received: str, remedy: str) -> None:
    """Refuse functions that go in one direction where there is no fit of them."""
    raise InvalidInputError("monotonic_cst", rule, received, remedy)


def refuse_of_classes(directions: Ints | None, n_classes: int) -> None:
    """Refuse functions that go in one direction where there are several of a covariate."""
    if directions is not None:
        rule = "must be None with three or more classes, which have several functions each"
        refuse_directions(rule, f"{n_classes} classes", "Leave it out, or join classes.")


class Directed(Protocol):
    """A fitted estimator with this parameter."""

    monotonic_cst: Any
    encoder_: TableEncoder


def directions_of(estimator: Directed) -> Ints | None:
    """The directions that are asked of an estimator with this parameter, being fitted."""
    return monotone_directions(estimator.monotonic_cst, estimator.encoder_)


def monotone_cone(basis: AdditiveBasis, inside: Bools, directions: Ints | None) -> Cone | None:
    """The cone of the coefficients of a set: the intercept, then its basis columns `inside`."""
    if directions is None:
        return None
    blocks, group = [], basis.group[inside]
    for k in np.flatnonzero(directions):
        columns = 1 + np.flatnonzero(group == k)
        if len(columns) == 0 or basis.kinds[k] == CONSTANT:
            continue
        combinations = np.eye(1)
        if basis.kinds[k] == NUMERIC:
            j = int(np.searchsorted(basis.source, k))
            knots = float(basis.high[j] - basis.low[j]) / (basis.n_splines - DEGREE)
            straight = np.full((basis.n_splines - 1, 1), knots / float(basis.scale[j]))
            wiggly = np.diff(wiggly_directions(basis.n_splines), axis=0)
            combinations = np.linalg.inv(np.hstack([straight, wiggly]))
        blocks.append((columns, int(directions[k]) * combinations))
    return cone_of(blocks, 1 + len(group))

"""Fewer columns for the same fits: each penalised term in coordinates of what its columns span.

A ridge penalty on all columns of a term leaves no part of its coefficients where the columns
vanish for every row. With an orthonormal V whose range is the rows' span, coefficients V c have the
penalty of c, so that the fit on the columns D V is the fit on D. A covariate of a few values has
splines that span a few dimensions only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.typing import Floats, Ints

# Largest square of a direction, relative to that of the term's longest, that rounding leaves of 0.
_ROUNDING = 1e-13


class Span(NamedTuple):
    """A design (n, p) in the coordinates, the term of its columns, and V (P, p)."""

    design: Floats
    term: Ints
    directions: Floats


def spanned(design: Floats, term: Ints) -> Span:
    """The design in coordinates of the span of each term; as it is where all columns are needed.

    `term[m]` numbers the term of column m, -1 where it is unpenalised.
    """
    parts: list[tuple[Ints, Floats]] = []
    for t in np.unique(term):
        own = np.flatnonzero(term == t)
        directions = np.eye(len(own))
        if t >= 0 and len(own) > 1:
            block = design[:, own]
            squares, vectors = np.linalg.eigh(block.T @ block)
            needed = squares > _ROUNDING * squares[-1]
            directions = directions if needed.all() else vectors[:, needed]
        parts.append((own, directions))
    width = sum(directions.shape[1] for _, directions in parts)
    if width == len(term):
        return Span(design, term, np.eye(len(term)))
    every = np.zeros((len(term), width))
    of_column = np.empty(width, dtype=np.intp)
    first = 0
    for own, directions in parts:
        columns = slice(first, first + directions.shape[1])
        every[own, columns] = directions
        of_column[columns] = term[own[0]]
        first = columns.stop
    return Span(design @ every, of_column, every)

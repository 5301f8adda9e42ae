"""Values that are implausible, or outside the training range, or never seen in training.

A value is answered all the same; whoever reads the answer should know. The kinds are those of the
warnings of a consultation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.tables.description import Description
from adacos.tables.encoder import PLAUSIBLE_WIDTHS, TableEncoder
from adacos.tables.kinds import BINARY, CONSTANT

# By number; 0 is a value like those of the training rows, or none at all.
KINDS = ("", "outside_range", "implausible", "unknown_category", "unknown_value")
_OUTSIDE, _IMPLAUSIBLE, _CATEGORY, _VALUE = range(1, 5)


def unusual(encoder: TableEncoder, table: Any, said: Description) -> NDArray[np.int8]:
    """Number in `KINDS` of each value of a validated table, shape (rows, covariates).

    `said` declares which values are plausible.
    """
    columns = [
        _unusual_of(encoder, position, encoder.values(table, position), said.of(name).range)
        for position, name in enumerate(encoder.names)
    ]
    return np.stack(columns, axis=1)


def _unusual_of(
    encoder: TableEncoder,
    position: int,
    values: NDArray[Any],
    declared: tuple[float, float] | None,
) -> NDArray[np.int8]:
    levels = encoder.categories[position]
    if levels:
        if values.dtype.kind != "U":
            values = np.where(np.isnan(values), "", values.astype(np.str_))
        strange = ~np.isin(values, (*levels, *encoder.grouped_of(position), ""))
        return np.where(strange, _CATEGORY, 0).astype(np.int8)
    low, high = encoder.low[position], encoder.high[position]
    outside = (values < low) | (values > high)
    least, most = (-np.inf, np.inf) if declared is None else declared
    undeclared = (values < least) | (values > most)
    if encoder.kinds[position] in (BINARY, CONSTANT):
        strange = ~np.isnan(values) & (values != low) & (values != high)
        kind = np.where(strange, _VALUE, 0)
        return np.where(undeclared, _IMPLAUSIBLE, kind).astype(np.int8)
    beyond = PLAUSIBLE_WIDTHS * (high - low)
    # What was never negative in training, an age or a count, cannot be.
    implausible = (values < low - beyond) | (values > high + beyond) | ((low >= 0) & (values < 0))
    kind = np.where(implausible | undeclared, _IMPLAUSIBLE, np.where(outside, _OUTSIDE, 0))
    return kind.astype(np.int8)

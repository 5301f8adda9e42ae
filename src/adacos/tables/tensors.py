"""Rows given as a torch tensor, checked and encoded on the device that has them."""

from __future__ import annotations

from typing import Any

from adacos.exceptions import InvalidInputError
from adacos.kernels.namespace import floats, host, like, namespace
from adacos.tables.encoder import TableEncoder


def encode_tensor(encoder: TableEncoder, X: Any) -> Any:
    """Encoded values of rows like those of the training table, NaN where unknown.

    As `TableEncoder.transform` of an array; categories, which a tensor holds as numbers, are looked
    up in numpy.
    """
    xp, width = namespace(X), len(encoder.names)
    if X.ndim != 2 or X.shape[1] != width or not len(X):
        raise InvalidInputError(
            "X",
            f"a tensor must have at least one row, and a column for each of {width} covariates",
            f"shape {tuple(X.shape)}",
            "Select the fitted columns, in their order.",
        )
    values = floats(X)
    if xp.any(xp.isinf(values)):
        raise InvalidInputError(
            "X", "must not hold infinite values", "infinity", "Put NaN where a value is unknown."
        )
    if any(encoder.categories):
        return like(values, encoder.transform(host(values)))
    return xp.clip(values, like(values, encoder.low), like(values, encoder.high))

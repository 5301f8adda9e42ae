"""Which values of a row are known from the start, as a user says it and as a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.exceptions import InvalidInputError
from adacos.tables.encoder import TableEncoder, in_fitted_order
from adacos.typing import Bools, Floats
from adacos.validation import choices


def known_mask(
    estimator: Any, encoder: TableEncoder, known: ArrayLike | None, X: Any, encoded: Floats
) -> Bools:
    """`known` as a mask for all rows, or one per row; a value that is known is not missing.

    `known` holds names of covariates, or is a mask in the order of the columns of X.
    """
    names = encoder.names
    if known is None:
        return np.zeros(len(names), dtype=np.bool_)
    mask = np.asarray(known)
    if mask.ndim == 1 and (mask.dtype.kind in "OU" or not len(mask)):
        unknown = [name for name in mask.tolist() if name not in names]
        if unknown:
            raise InvalidInputError(
                "known", "must name covariates", unknown, choices(unknown, names, "They are")
            )
        mask = np.isin(names, mask)
        missing = np.isnan(encoded[:, encoder.first])
        return np.asarray(mask & ~missing) if missing[:, mask].any() else mask
    shape = (len(encoded), len(names))
    if mask.dtype != np.bool_ or mask.shape not in (shape, shape[1:]):
        raise InvalidInputError(
            "known",
            f"must be names of covariates or a mask of shape {shape} or ({len(names)},)",
            f"{mask.dtype} of shape {mask.shape}",
            "Pass True where a value is known from the start.",
        )
    mask = np.asarray(in_fitted_order(estimator, X, mask))
    missing = np.isnan(encoded[:, encoder.first])
    if mask.ndim == 1:
        return np.asarray(mask & ~missing) if missing[:, mask].any() else mask
    contradiction = np.argwhere(mask & missing)
    if len(contradiction):
        row, covariate = contradiction[0]
        raise InvalidInputError(
            "known",
            "a value that is known must be in X",
            f"row {row}, column {names[covariate]!r} is missing"
            + (f" (and {len(contradiction) - 1} more)" if len(contradiction) > 1 else ""),
            "Fill in the value, or set the mask to False there.",
        )
    return mask

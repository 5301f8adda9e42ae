"""Which values of a row are known from the start, or unavailable, as a mask."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from adacos.exceptions import InvalidInputError
from adacos.tables.encoder import TableEncoder, in_fitted_order
from adacos.typing import Bools, Floats
from adacos.validation import and_more, choices, listed


def known_mask(
    estimator: BaseEstimator,
    encoder: TableEncoder,
    known: ArrayLike | None,
    X: Any,
    encoded: Floats,
) -> Bools:
    """`known` as a mask for all rows, or one per row; a value that is known is not missing.

    `known` holds names of covariates, or is a mask in the order of the columns of X.
    """
    mask, there = _mask(estimator, encoder, "known", known, X, encoded)
    if mask.ndim == 1:
        return mask & there if (mask & ~there).any() else mask
    _refuse_contradiction(
        encoder,
        "known",
        mask & ~there,
        "a value that is known must be in X",
        "is missing",
        "Fill in the value, or set the mask to False there.",
    )
    return mask


def unavailable_mask(
    estimator: BaseEstimator,
    encoder: TableEncoder,
    unavailable: ArrayLike | None,
    X: Any,
    encoded: Floats,
) -> Bools:
    """`unavailable`, given as for `known_mask`, as one mask per row, without what has a value."""
    mask, there = _mask(estimator, encoder, "unavailable", unavailable, X, encoded)
    if mask.ndim == 2:
        _refuse_contradiction(
            encoder,
            "unavailable",
            mask & there,
            "a covariate that cannot be acquired has no value in X",
            "has one",
            "Remove the value, or set the mask to False there.",
        )
    return np.asarray(mask & ~there)


def asked_of(
    encoder: TableEncoder,
    must: Collection[str],
    never: Collection[str],
    before: tuple[Bools, Bools] | None = None,
) -> tuple[Bools, Bools]:
    """Masks of covariates that must be asked, and of those that must never be.

    Those in `before` are as well.
    """
    masks = []
    for parameter, names in (("must", must), ("never", never)):
        given = [names] if isinstance(names, str) else list(names)
        unknown = [str(name) for name in given if name not in encoder.names]
        if unknown:
            remedy = choices(unknown, encoder.names, "They are")
            raise InvalidInputError(parameter, "must name covariates", unknown, remedy)
        masks.append(np.isin(encoder.names, given))
    if before is not None:
        masks = [own | other for own, other in zip(masks, before, strict=True)]
    if (both := masks[0] & masks[1]).any():
        name = encoder.names[int(np.argmax(both))]
        rule = "cannot name a covariate that is never asked"
        raise InvalidInputError("must", rule, name, "Leave it out of one of them.")
    return masks[0], masks[1]


def refuse_lists(must: Bools, never: Bools) -> None:
    """Refuse lists of what is asked where values are fetched, or are on a device."""
    if must.any() or never.any():
        rule = "cannot be given with providers or a tensor"
        raise InvalidInputError("must or never", rule, "", "Pass a table with all values.")


def _mask(
    estimator: BaseEstimator,
    encoder: TableEncoder,
    parameter: str,
    given: ArrayLike | None,
    X: Any,
    encoded: Floats,
) -> tuple[Bools, Bools]:
    """What was given as a mask in the order of the fit, and a mask of the values there are."""
    names = encoder.names
    there = ~np.isnan(encoded[:, encoder.first])
    if given is None:
        return np.zeros(len(names), dtype=np.bool_), there
    if isinstance(given, Mapping):
        _refuse_mapping(parameter, given)
    mask = np.asarray(given)
    if mask.ndim == 1 and (mask.dtype.kind in "OU" or not len(mask)):
        unknown = [name for name in mask.tolist() if name not in names]
        if unknown:
            remedy = choices(unknown, names, "The covariates are")
            raise InvalidInputError(parameter, "must name covariates", unknown, remedy)
        return np.isin(names, mask), there
    shape = (len(encoded), len(names))
    if mask.dtype != np.bool_ or mask.shape not in (shape, shape[1:]):
        raise InvalidInputError(
            parameter,
            f"must be names of covariates or a mask of shape {shape} or ({len(names)},)",
            f"{mask.dtype} of shape {mask.shape}",
            "Pass True where "
            + (
                "a value is known from the start."
                if parameter == "known"
                else "it cannot be acquired."
            ),
        )
    return np.asarray(in_fitted_order(estimator, X, mask)), there


def _refuse_mapping(parameter: str, given: Mapping[Any, Any]) -> NoReturn:
    """Refuse values by covariate, as a consultation takes them: of rows they stand in X."""
    names = [str(name) for name in given]
    raise InvalidInputError(
        parameter,
        "must be names of covariates or a mask, not a mapping: the values of rows are in X",
        f"a mapping of {listed(names)}",
        f"Put the values into X and pass {parameter}={names}."
        if parameter == "known"
        else f"Pass {parameter}={names}.",
    )


def _refuse_contradiction(
    encoder: TableEncoder, parameter: str, wrong: Bools, rule: str, what: str, remedy: str
) -> None:
    """Refuse a mask that says of a value what X contradicts."""
    cells = np.argwhere(wrong)
    if len(cells):
        row, covariate = cells[0]
        raise InvalidInputError(
            parameter,
            rule,
            f"row {row}, column {encoder.names[covariate]!r} {what}{and_more(len(cells))}",
            remedy,
        )

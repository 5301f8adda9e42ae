"""One source for numpy arrays and torch tensors: whose functions to call, and where values lie.

A kernel on the way of `acquire`, or of a fit on very many rows, takes its functions from the
namespace of its input: numpy itself for a numpy array, whose results stay what they were bit for
bit, and that of array-api-compat for a tensor. What the array API does not have is here, by
numpy and scipy for the one and by torch for the other. Models stay in numpy: their few numbers are
brought to where the rows are when they are used.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from scipy import special

from adacos.exceptions import MissingExtraError


def is_tensor(values: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def namespace(array: Any) -> Any:
    """The functions for this array: numpy, or the array API of torch."""
    return _of_torch() if is_tensor(array) else np


@cache
def _of_torch() -> Any:
    try:
        import array_api_compat.torch as functions
    except ImportError as error:
        raise MissingExtraError("array-api-compat", "gpu") from error
    return functions


def host(array: Any) -> Any:
    """The array in numpy; one that is, as it is."""
    return array.detach().cpu().numpy() if is_tensor(array) else array


def like(array: Any, values: Any) -> Any:
    """Values brought to where `array` is; as they are where that is numpy."""
    if not is_tensor(array):
        return values
    if not is_tensor(values):
        # A tensor of values that must not be written would say so in a warning.
        values = np.require(values, requirements="W")
    return namespace(array).asarray(values, device=array.device)


def floats(values: Any) -> Any:
    """Numbers as floats of double precision."""
    return values.double() if is_tensor(values) else np.asarray(values, dtype=float)


def whole(array: Any) -> Any:
    """Numbers cut, and truth values, as integers."""
    return array.long() if is_tensor(array) else array.astype(np.intp)


def expit(log_odds: Any) -> Any:
    """The sigmoid."""
    return log_odds.sigmoid() if is_tensor(log_odds) else special.expit(log_odds)


def sum_where(mask: Any, values: Any) -> Any:
    """Sums of values, in numpy, over the last axis of a mask."""
    return floats(mask) @ like(mask, values) if is_tensor(mask) else mask @ values


def distinct(values: Any) -> Any:
    """Different values in ascending order, in numpy."""
    return host(values.unique()) if is_tensor(values) else np.unique(values)


def softplus(log_odds: Any) -> Any:
    """log(1 + exp(u))."""
    if not is_tensor(log_odds):
        return np.logaddexp(0.0, log_odds)
    return log_odds.logaddexp(log_odds.new_zeros(()))


def taken(table: Any, codes: Any) -> Any:
    """Entry, or row, of a table for each code; every code has one."""
    if is_tensor(table):
        return table.index_select(0, codes)
    # "clip" only spares the check.
    return table.take(codes, axis=0, mode="clip")


def counted(codes: Any, weight: Any, n: int) -> Any:
    """Sum of the weights of each of n codes."""
    if is_tensor(codes):
        return weight.new_zeros(n).index_add_(0, codes, weight)
    return np.bincount(codes, weight, n)


def put_along(array: Any, index: Any, values: Any) -> None:
    """Set the values at these places of the last axis, of which -1 is the last."""
    if is_tensor(array):
        array.scatter_(-1, index % array.shape[-1], values)
    else:
        np.put_along_axis(array, index, values, axis=-1)


def interpolate(at: Any, places: Any, values: Any) -> Any:
    """Piecewise linear function through values, in numpy, at ascending places; constant outside."""
    if not is_tensor(at):
        return np.interp(at, places, values)
    xp = namespace(at)
    width = np.diff(places)
    rise = np.divide(np.diff(values), width, out=np.zeros_like(width), where=width > 0)
    slopes = like(at, rise)
    places, values = like(at, places), like(at, values)
    left = xp.clip(xp.searchsorted(places, at, side="right") - 1, 0, len(slopes) - 1)
    inside = xp.minimum(xp.maximum(at, places[0]), places[-1])
    return values[left] + slopes[left] * (inside - places[left])

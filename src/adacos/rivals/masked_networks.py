"""Two small networks over what was acquired: a classifier, and a score for each covariate.

Both are perceptrons with two hidden layers. They read the values, 0 where a covariate was not
acquired, and the mask of what was. The functions act on arrays of numpy and on tensors of torch
alike, so that a fitted policy decides without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.typing import Bools, Floats, Ints

HIDDEN = 128
LAYERS = 3
CLASSIFIER, SELECTOR = "classifier", "selector"

Weights = dict[str, NDArray[Any]]


class Inputs(NamedTuple):
    """How the networks read encoded rows: standardised, 0 for what is unknown.

    Attributes
    ----------
    centre, scale : of the encoded columns.
    source : the covariate of each.
    """

    centre: Floats
    scale: Floats
    source: Ints

    @classmethod
    def of(cls, encoded: Floats, source: Ints) -> Inputs:
        """Standardised by mean and deviation of the known values."""
        deviation = np.nanstd(encoded, axis=0)
        return cls(np.nanmean(encoded, axis=0), np.where(deviation > 0, deviation, 1.0), source)

    def values(self, encoded: Floats) -> Floats:
        """Standardised values (rows, columns)."""
        return np.nan_to_num((encoded - self.centre) / self.scale, nan=0.0)

    def shown(self, values: Floats, acquired: Bools) -> Floats:
        """What the networks read (rows, columns + covariates) of standardised values."""
        return np.concatenate([values * acquired[:, self.source], acquired], axis=1)


def initial_weights(
    rng: np.random.Generator, n_inputs: int, n_classes: int, n_covariates: int
) -> Weights:
    """Random weights of both networks, by He's rule for rectified units."""
    weights: Weights = {}
    for name, n_outputs in ((CLASSIFIER, n_classes), (SELECTOR, n_covariates)):
        sizes = [n_inputs, *[HIDDEN] * (LAYERS - 1), n_outputs]
        for layer, (before, after) in enumerate(pairwise(sizes)):
            deviation = np.sqrt(2.0 / before)
            drawn = rng.normal(scale=deviation, size=(before, after))
            weights[f"{name}_{layer}"] = drawn.astype(np.float32)
            weights[f"{name}_{layer}_bias"] = np.zeros(after, dtype=np.float32)
    return weights


def forward(
    weights: Mapping[str, Any], name: str, inputs: Any, drop: Callable[[Any], Any] | None = None
) -> Any:
    """Outputs of a network (rows, outputs); `drop` is applied to what its hidden units give."""
    hidden = inputs
    for layer in range(LAYERS):
        hidden = hidden @ weights[f"{name}_{layer}"] + weights[f"{name}_{layer}_bias"]
        if layer < LAYERS - 1:
            hidden = hidden * (hidden > 0)
            hidden = hidden if drop is None else drop(hidden)
    return hidden

"""A method and a data set small enough to know every number by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from adacos.datasets import Dataset


class Thresholder:
    """Acquires the first covariate and answers 1 where it is positive.

    `fits` counts the calls of `fit` over all objects of a process.
    """

    fits = 0

    def __init__(self, costs):
        self.costs = costs

    def fit(self, X, y):
        Thresholder.fits += 1
        self.table_ = self.costs.bind([str(i) for i in range(X.shape[1])])
        return self

    def acquire(self, X):
        acquired = np.zeros(X.shape, dtype=bool)
        acquired[:, 0] = True
        label = (X[:, 0] > 0).astype(int)
        return SimpleNamespace(
            label=label,
            probability=np.where(label == 1, 0.8, 0.3),
            acquired=acquired,
            cost=self.table_.of(acquired),
        )


class Noisy(Thresholder):
    """Draws its answers from the global generator, as a careless method would."""

    def acquire(self, X):
        result = super().acquire(X)
        result.label = np.random.randint(0, 2, len(X))  # noqa: NPY002
        return result


def toy_dataset(n=60, seed=0) -> Dataset:
    """Two covariates at 2 and 3; the class is the sign of the first, one answer in six wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] > 0).astype(int)
    y[::6] = 1 - y[::6]
    return Dataset(X, y, {"a": 2.0, "b": 3.0}, {}, "made up", ("a", "b"))

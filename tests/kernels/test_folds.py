"""Folds have their share of each class, whatever the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.kernels.folds import shuffled_folds, stratified_folds


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_every_fold_has_its_share_of_each_class(n_folds: int) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(53) < 0.3).astype(float)
    for fold in (
        shuffled_folds(y, n_folds, 1),
        stratified_folds(rng.normal(size=(53, 2)), y, n_folds, 1),
    ):
        for rows in (np.arange(53), np.flatnonzero(y == 0), np.flatnonzero(y == 1)):
            counts = np.bincount(fold[rows], minlength=n_folds)
            assert counts.max() - counts.min() <= 1
    assert np.any(shuffled_folds(y, n_folds, 1) != shuffled_folds(y, n_folds, 2))

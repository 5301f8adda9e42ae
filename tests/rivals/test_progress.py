"""Fits that take long say where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import Costs
from adacos.models.progress import listening
from adacos.rivals import (
    AdaptGbrtClassifier,
    DWSMClassifier,
    GreedyMiserClassifier,
    POMDPClassifier,
)


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (GreedyMiserClassifier, {"n_trees": 3, "n_lambdas": 2, "cv": 3}),
        (AdaptGbrtClassifier, {"n_trees": 2, "n_lambdas": 1, "cv": 2}),
        (DWSMClassifier, {"n_rounds": 2, "n_states": 100, "n_init": 1}),
        (POMDPClassifier, {"n_codes": 3, "cv": 2, "n_init": 1}),
    ],
)
def test_a_rival_says_how_much_of_its_fit_is_done(cls: Any, parameters: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X.sum(axis=1) + rng.normal(size=120) > 0).astype(int)
    heard: list[tuple[str, int, int]] = []
    with listening(lambda *reported: heard.append(reported)):
        cls(Costs([1.0] * 3, false_positive=9, false_negative=9), **parameters).fit(X, y)
    # A rival may hold a model of ours, which tells of its sets.
    own = [(done, whole) for what, done, whole in heard if what != "set"]
    assert len(own) >= 2
    assert all(0 <= done <= whole for done, whole in own)
    assert own[-1][0] == own[-1][1]

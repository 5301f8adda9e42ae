"""Every registered policy, quickly fitted."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from adacos import (
    COSClassifier,
    Costs,
    TargetRecallClassifier,
)
from adacos.policies.sequence_policy import SequencePolicy
from adacos.registry import POLICIES

QUICK: dict[str, dict[str, Any]] = {
    "AdaptGbrtClassifier": {
        "n_trees": 3,
        "n_lambdas": 2,
        "cv": 2,
        "learning_rates": (0.3,),
        "full_fractions": (0.5,),
    },
    "AACOClassifier": {"max_sets": 10},
    "CEGBClassifier": {"n_trees": 5},
    "STreeDClassifier": {"max_depth": 2},
    "GreedyMiserClassifier": {"n_trees": 5, "n_lambdas": 2, "cv": 2},
    "POMDPClassifier": {"n_components": 2, "smoothing": 1.0, "n_init": 1},
    "DWSMClassifier": {"n_rounds": 2, "n_init": 1},
}


def table(n: int = 200):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, size=(n, 3)).astype(float)
    y = (rng.random(n) < 0.15 + 0.3 * X[:, 0] + 0.3 * X[:, 1]).astype(int)
    return X, y


COSTS = Costs([1.0, 2.0, 3.0], false_positive=20, false_negative=60)


def registered() -> list[type]:
    """Every policy of the registry that can be fitted here in seconds."""
    entries = [
        entry
        for entry in POLICIES.values()
        if entry.requires is None or find_spec(entry.requires[0]) is not None
    ]
    kinds = [entry.load() for entry in entries]
    slow = {"DIMEClassifier", "GDFSClassifier", "Shim2018Classifier"}
    quick = [kind for kind in kinds if kind.__name__ not in slow]
    return [*quick, TargetRecallClassifier]


def build(kind: type):
    if kind is TargetRecallClassifier:
        # Forward selection weighs both costs, so that the total cost can be stated.
        inner = build(COSClassifier).set_params(sequence="forward")
        return TargetRecallClassifier(inner, target_recall=0.8)
    parameters = {"strengths": "common", "cv": 2} if issubclass(kind, SequencePolicy) else {}
    known = kind(COSTS).get_params()
    given = {**parameters, **QUICK.get(kind.__name__, {})}
    return kind(COSTS, **{name: value for name, value in given.items() if name in known})

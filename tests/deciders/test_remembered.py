"""Rows at many costs with states that are remembered: the same decisions as without."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, COSClassifier, Costs, FullModelClassifier
from adacos.deciders.remembered import RememberedDecider
from adacos.decision import Kept
from adacos.engine import run
from tests.policies.tables import mixed

QUICK: dict[str, Any] = {"strengths": "common", "cv": 3, "n_splines": 5}
MANY = (60 * (1 - np.eye(3))).tolist()


def table(n: int, seed: int, classes: int = 2) -> tuple[Any, Any]:
    """Rows with numbers and words, some of which are missing; two classes or three."""
    X, y = mixed(n, seed)
    if classes == 3:
        y = np.where(X["dose"].fillna(0) > 1.5, "third", y)
    return X, y


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "policy",
    [
        AdaCOSClassifier(**QUICK),
        AdaCOSClassifier(lookahead="dynamic", budget=4.0, **QUICK),
        AdaCOSClassifier(lookahead="coherent", **QUICK),
        COSClassifier(**QUICK),
        FullModelClassifier(**QUICK),
    ],
    ids=["AdaCOS", "budget", "coherent", "COS", "full"],
)
def test_remembered_states_decide_as_new_ones(policy: Any, classes: int) -> None:
    X, y = table(240, 3, classes)
    prices = {name: 1.0 + k for k, name in enumerate(X.columns)}
    costs = Costs(prices, false_positive=60, false_negative=90)
    if classes == 3:
        costs = Costs(prices, misclassification=MANY)
    policy = policy.set_params(costs=costs).fit(X, y)
    new, _ = table(150, 4, classes)
    new.loc[new.index[::7], "town"] = "never seen"
    encoded, own = policy._encode(new), policy.decider_
    states: Kept = {}
    rng = np.random.default_rng(0)
    for _ in range(6):
        there = policy.cost_table_
        there = replace(
            there,
            covariates=there.covariates * rng.uniform(0.1, 3, len(there.covariates)),
            matrix=there.matrix * rng.uniform(0.3, 2, (len(there.matrix), 1)),
        )
        at = own.with_costs(there)
        assert isinstance(at.remembering(states), RememberedDecider)
        plain, found = run(at, encoded), run(at.remembering(states), encoded)
        for field in fields(plain):
            first, second = getattr(plain, field.name), getattr(found, field.name)
            if field.name in ("probability", "expected_cost"):
                np.testing.assert_allclose(second, first, rtol=1e-12)
            else:
                assert np.array_equal(first, second), field.name
    assert states

"""POMDP and DWSM keep what every policy promises, and scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from adacos import Costs, load_pima
from adacos.rivals import DWSMClassifier, POMDPClassifier
from tests.policy_checks import check_policy
from tests.rivals.problems import MIXED_COSTS, mixed_table

SMALL_POMDP = {"n_components": 1, "smoothing": 1.0, "n_init": 1}
SMALL_DWSM = {"n_rounds": 2, "n_states": 300, "charge": 1.0}


@parametrize_with_checks([POMDPClassifier(**SMALL_POMDP), DWSMClassifier(**SMALL_DWSM)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("rival", "small"), [(POMDPClassifier, SMALL_POMDP), (DWSMClassifier, SMALL_DWSM)]
)
def test_policy_checks(rival: Any, small: dict[str, Any]) -> None:
    check_policy(rival(MIXED_COSTS, **small), *mixed_table())
    X, y, prices, *_ = load_pima(as_frame=False)
    costs = Costs(list(prices.values()), false_positive=50, false_negative=200)
    check_policy(rival(costs, **small), X[::4], y[::4])

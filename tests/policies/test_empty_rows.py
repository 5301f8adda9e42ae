"""Rows without any value are answered, and a warning counts them once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adacos import COSClassifier, Costs
from adacos.exceptions import TableWarning
from adacos.policies.estimates import estimate_costs
from adacos.report.importances import covariate_importances

COSTS = Costs({"a": 1.0, "t": 2.0}, false_positive=10.0, false_negative=10.0)


@pytest.fixture(scope="module")
def fitted() -> tuple[COSClassifier, Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    word = np.array(["u", "v", "w"])[(y + rng.integers(0, 2, 300)) % 3]
    X = pd.DataFrame({"a": rng.normal(size=300) + y, "t": word})
    return COSClassifier(COSTS, strengths="common", n_splines=5, cv=3).fit(X, y), X, y


def reported(policy: Any, X: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            policy.acquire(X)
    return [str(item.message) for item in found if item.category is TableWarning]


def test_rows_without_a_value_are_reported_once(fitted: Any) -> None:
    policy, X, _ = fitted
    some = X.copy()
    some.loc[:4, "a"] = np.nan
    some.loc[:3, "t"] = None
    (message,) = reported(policy, some)
    assert message.startswith("4 of 300 rows have no value of any covariate")
    assert "policy.next(X)" in message
    result = policy.acquire(some)
    assert not result.acquired[:4].any()
    assert len(set(result.label[:4].tolist())) == 1
    some.loc[:3, "t"] = "u"
    assert reported(policy, some) == []
    with pytest.warns(TableWarning, match="1 of 1 rows"):
        policy.predict(X.iloc[:1].assign(a=np.nan, t=None))


def test_nothing_is_said_of_rows_that_a_policy_looks_at_by_itself(fitted: Any) -> None:
    policy, X, y = fitted
    some = X.copy()
    some.loc[:2, "a"] = np.nan
    some.loc[:2, "t"] = None
    result = policy.acquire(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="(?s).*no value of any covariate")
        policy.check(some, y)
        # One covariate is acquired, without which there is nothing.
        assert covariate_importances(policy, X, result)
        policy.next(some)
        COSClassifier(COSTS, strengths="common", n_splines=5, cv=3).fit(some, y)
        estimate_costs(policy, some, y)

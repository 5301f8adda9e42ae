"""What continuing is worth with three classes: against exact dynamic programming and fresh rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from adacos import AdaCOSClassifier, Costs, load, save
from adacos.metrics import total_costs
from tests.deciders.round_oracle import ERRORS, JOINT, PRICES, Oracle, draw, expected_by, realised
from tests.policies.budget_table import QUICK
from tests.policy_checks import check_consultation, same, with_missing


def ruling_out(n: int, rng: Any) -> Any:
    """A letter that rules one of three classes out, and a dear number."""
    z = rng.integers(0, 3, n)
    letter = np.array(list("pqrs"))[(z + rng.integers(0, 3, n)) % 4]
    X = pd.DataFrame({"d": letter, "a": rng.normal(z, 1)})
    return X, z, Costs({"d": 1.0, "a": 20.0}, misclassification=60 * (1 - np.eye(3)))


def normals(n: int, rng: Any) -> Any:
    y = rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])
    mean = 1.1 * np.random.default_rng(5).normal(size=(4, 5))
    costs = Costs([1.0, 2.0, 3.0, 4.0, 5.0], misclassification=50 * (1 - np.eye(4)))
    return mean[y] + rng.normal(size=(n, 5)), y, costs


def correlated(n: int, rng: Any) -> Any:
    y, mean = rng.integers(0, 3, n), 1.2 * np.random.default_rng(6).normal(size=(3, 4))
    X = mean[y] + rng.normal(size=(n, 4)) @ (0.6 * np.eye(4) + 0.5)
    return X, y, Costs([1.0, 2.0, 3.0, 4.0], misclassification=40 * (1 - np.eye(3)))


def letters(n: int, rng: Any) -> Any:
    y, known = rng.choice(5, size=n, p=[0.35, 0.25, 0.2, 0.15, 0.05]), np.random.default_rng(7)
    columns = {}
    for k in range(5):
        share = known.dirichlet(0.5 * np.ones(4), size=5)[y].cumsum(axis=1)
        place = (rng.random((n, 1)) > share).sum(axis=1).clip(max=3)
        columns[f"c{k}"] = np.array(list("stuv"))[place]
    costs = {name: 1.0 + k for k, name in enumerate(columns)}
    return pd.DataFrame(columns), y, Costs(costs, misclassification=60 * (1 - np.eye(5)))


def kinds(n: int, rng: Any) -> Any:
    """Numbers of which two say nearly the same, a letter, and errors that differ."""
    z = rng.integers(0, 3, n)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["a"] += 1.2 * (z > 0)
    X["b"] += 1.5 * (z == 2)
    X["c"] = X["a"] + 0.5 * rng.normal(size=n)
    X["d"] = np.array(list("xyz"))[np.where(rng.random(n) < 0.6, z, rng.integers(0, 3, n))]
    matrix = [[0, 20, 60], [30, 0, 30], [80, 40, 0]]
    return X, z, Costs({"a": 1.0, "b": 5.0, "c": 2.0, "d": 8.0}, misclassification=matrix)


def together(n: int, rng: Any) -> Any:
    """Classes cut from a sum: covariates are not independent given the class."""
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + 0.75 * X[:, 1] + 0.7 * X[:, 2] ** 2 + 0.5 * rng.normal(size=n)
    matrix = 40 * np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    return X, np.digitize(score, [0.1, 1.1]), Costs([2.0, 2.0, 3.0, 1.0], misclassification=matrix)


def real(read: Any) -> Any:
    def table(n: int, rng: Any) -> Any:
        X, y = read(return_X_y=True)
        rows = rng.permutation(len(y))
        costs = Costs(1.0 + np.arange(X.shape[1]) % 4, misclassification=40 * (1 - np.eye(3)))
        return X[rows], y[rows], costs

    return table


TABLES = {
    **{f.__name__: f for f in (ruling_out, normals, correlated, letters, kinds, together)},
    **{"iris": real(load_iris), "wine": real(load_wine)},
}


@pytest.mark.parametrize("name", list(TABLES))
def test_the_stated_cost_is_what_fresh_rows_pay(name: str) -> None:
    """Within two standard errors of both samples: the training rows and the fresh ones."""
    X, y, costs = TABLES[name](6000, np.random.default_rng(0))
    n = min(1000, len(y) // 2)
    rows = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    policy = AdaCOSClassifier(costs, cv=5).fit(rows(slice(n)), y[:n])
    paid = total_costs(policy.acquire(rows(slice(n, None))), y[n:], costs)
    error = float(paid.std() * np.sqrt(1 / n + 1 / len(paid)))
    assert abs(expected_by(policy) - paid.mean()) < 2 * error
    risk = policy.consultation().next().explanation.stop_now
    assert expected_by(policy) < risk - error


@pytest.mark.parametrize("lookahead", ["realised", "dynamic"])
def test_total_cost_is_near_the_least_of_all_policies(lookahead: str) -> None:
    """Sequential policies in any order of acquisition, by exact dynamic programming."""
    least = Oracle(JOINT, PRICES, ERRORS, 0.0).value(())
    costs = Costs(PRICES, misclassification=ERRORS)
    X, y = draw(JOINT, 4000, 0)
    policy = AdaCOSClassifier(costs, lookahead=lookahead, **QUICK).fit(X, y)
    fixed = AdaCOSClassifier(costs, lookahead="coherent").from_model(policy)
    found = realised(policy)
    assert least - 1e-9 <= found <= 1.03 * least
    assert found <= realised(fixed) + 1e-9
    error = total_costs(policy.acquire(X), y, costs).std() / np.sqrt(len(y))
    assert abs(expected_by(policy) - found) < 2.5 * error


def test_what_is_known_and_what_is_unavailable_is_counted(tmp_path: Any) -> None:
    X, y = draw(JOINT, 1500, 0)
    costs = Costs(PRICES, misclassification=ERRORS)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    check_consultation(policy, X[:8])
    check_consultation(policy, with_missing(X[:8], np.random.default_rng(0).random((8, 4)) < 0.4))
    save(policy, tmp_path / "m")
    same(load(tmp_path / "m").acquire(X[:200]), policy.acquire(X[:200]))
    # What is already known is not counted as something that another covariate would tell.
    paid = total_costs(policy.acquire(X, known=np.arange(4) == 3), y, costs)
    fresh = []
    for value in (0.0, 1.0):
        step = policy.consultation({"x3": value}).next().explanation
        fresh.append(min(step.stop_now, step.best_plan.expected_total_cost))
    stated = float(np.where(X[:, 3] == 1.0, fresh[1], fresh[0]).mean())
    assert abs(stated - paid.mean()) < 2.5 * paid.std() / np.sqrt(len(y))


def test_rows_with_missing_values_say_what_they_can() -> None:
    """Nearly every training row has a hole: each covariate still tells what it tells."""
    X, y = draw(JOINT, 4000, 0)
    missing = np.random.default_rng(1).random(X.shape) < 0.35
    costs = Costs(PRICES, misclassification=ERRORS)
    policy = AdaCOSClassifier(costs, **QUICK).fit(with_missing(X, missing), y)
    assert policy.model_.followed.there is not None
    least = Oracle(JOINT, PRICES, ERRORS, 0.0).value(())
    assert realised(policy) <= 1.06 * least
    assert expected_by(policy) < 1.1 * realised(policy)

"""What covariates are worth, against dropping, repricing and testing by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    Costs,
    FullModelClassifier,
    covariate_worth,
    new_test_worth,
)
from adacos.datasets import make_discrete_problem
from adacos.engine import run
from adacos.exceptions import InvalidInputError, TrainingRowsWarning
from adacos.metrics import total_cost
from adacos.rivals import OptimalPolicyClassifier
from tests.policies.budget_table import COSTS, QUICK, draw_rows


@pytest.fixture(scope="module")
def policy() -> Any:
    return AdaCOSClassifier(COSTS, **QUICK).fit(*draw_rows(600, 0))


def test_dropping_and_prices_are_those_of_the_policy(policy: Any) -> None:
    X, y = draw_rows(200, 1)
    worth = covariate_worth(policy, X, y, tolerance=0.01)
    base = total_cost(policy.acquire(X), y, COSTS)
    encoded = policy._encode(X)
    costs = [item.dropping for item in worth.covariates]
    assert costs == sorted(costs, reverse=True)
    for item in worth.covariates:
        k = policy.encoder_.names.index(item.covariate)
        without = X.copy()
        without[:, k] = np.nan
        own = policy.acquire(without)
        assert item.dropping == pytest.approx(total_cost(own, y, COSTS) - base, abs=1e-9)
        assert item.paid == pytest.approx(item.price * item.acquired)

        def share(price: float, k: int = k) -> float:
            covariates = policy.cost_table_.covariates.copy()
            covariates[k] = price
            table = replace(policy.cost_table_, covariates=covariates)
            found = run(policy.decider_.with_costs(table), encoded)
            return float(found.acquired[:, k].mean())

        for limit, least in ((item.price_for_some, 0.001), (item.price_for_half, 0.5)):
            if limit is None:
                assert share(0.0) < least
                continue
            assert share(limit) >= least
            assert share(limit + 0.0101 * max(limit, item.price)) < least
        assert item.price_for_some is not None
        assert item.price_for_some >= (item.price_for_half or 0)


def test_the_highest_price_is_that_of_the_exact_optimum() -> None:
    problem = make_discrete_problem(1, strength=2.0, seed=1)
    X, y = problem.sample(500, seed=0)
    costs = Costs([1.0], false_positive=40, false_negative=60)
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    (item,) = covariate_worth(policy, X, y, tolerance=1e-6).covariates
    # P(y, x): what knowing x saves is the most that it may cost.
    matrix, joint = np.array([[0.0, 40.0], [60.0, 0.0]]), problem.joint
    saved = (joint.sum(axis=1) @ matrix).min() - (joint.T @ matrix).min(axis=1).sum()
    assert saved > 0.5
    assert item.price_for_some == pytest.approx(saved, rel=1e-5)
    assert item.price_for_half == pytest.approx(saved, rel=1e-5)


def test_what_is_always_or_never_acquired_has_no_highest_price() -> None:
    X, y = draw_rows(300, 0)
    full = FullModelClassifier(COSTS, **QUICK).fit(X, y)
    new = draw_rows(50, 1)
    reported = covariate_worth(full, *new)
    assert all(item.price_for_half == np.inf for item in reported.covariates)
    assert json.loads(json.dumps(reported.to_dict(), allow_nan=False))["covariates"][0][
        "price_for_some"
    ] == "any"  # fmt: skip
    assert "any price" in str(reported)
    noise = np.column_stack([X, np.zeros(300)])
    costs = Costs([1.0, 2.0, 3.0, 4.0, 1.0], false_positive=50, false_negative=80)
    policy = AdaCOSClassifier(costs, **QUICK).fit(noise, y)
    rows = np.column_stack([new[0], np.zeros(50)])
    last = {item.covariate: item for item in covariate_worth(policy, rows, new[1]).covariates}
    assert last["x4"].acquired == 0
    assert last["x4"].price_for_half is None
    assert "at no price" in covariate_worth(policy, rows, new[1])._repr_html_()


def test_a_new_test_is_worth_what_simulated_results_save(policy: Any) -> None:
    X, y = draw_rows(400, 1)
    found = new_test_worth(policy, X, y, sensitivity=0.9, specificity=0.8, prices=[0, 4])
    p = policy.predict_proba(X)[:, 1]
    stopped = policy.acquire(X).label
    rng = np.random.default_rng(0)
    saved = []
    for _ in range(400):
        positive = rng.random(len(y)) < np.where(y == 1, 0.9, 0.2)
        ratio = np.where(positive, 0.9 / 0.2, 0.1 / 0.8)
        odds = ratio * p / (1 - p)
        label = odds >= 50 / 80
        matrix = COSTS.matrix
        saved.append((matrix[y, stopped] - matrix[y, label.astype(int)]).mean())
    error = np.std(saved) / np.sqrt(len(saved))
    assert abs(found.realised_for_all - np.mean(saved)) < 4 * error

    # As expected by the probabilities: classes drawn from them.
    def risk(q: Any) -> Any:
        return np.minimum(50 * (1 - q), 80 * q)

    yes = 0.9 * p + 0.2 * (1 - p)
    value = risk(p) - yes * risk(0.9 * p / yes) - (1 - yes) * risk(0.1 * p / (1 - yes))
    assert found.price_for_some == pytest.approx(value.max())
    assert found.price_for_half == pytest.approx(np.median(value))
    assert found.price_for_all == pytest.approx(value.mean())
    free, expensive = found.points
    assert free.saving == pytest.approx(value.mean())
    assert free.realised == pytest.approx(found.realised_for_all)
    assert expensive.acquired == pytest.approx(np.mean(value > 4))
    assert expensive.saving == pytest.approx(np.maximum(value - 4, 0).mean())
    useless = new_test_worth(policy, X, y, results=[[0.3, 0.7], [0.3, 0.7]])
    assert useless.price_for_some == pytest.approx(0, abs=1e-9)
    assert json.loads(json.dumps(found.to_dict()))["rows"] == 400
    assert "Worth introducing for some rows below" in str(found)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "must both be given"),
    ({"sensitivity": 0.9}, "must both be given"),
    ({"sensitivity": 95, "specificity": 0.9}, "Did you mean 0.95"),
    ({"sensitivity": -0.1, "specificity": 0.9}, "sensitivity"),
    ({"results": [[0.5, 0.5]]}, "each of 2 classes"),
    ({"results": [[0.5, 0.4], [0.1, 0.9]]}, "sums to 1"),
    ({"results": "no"}, "sums to 1"),
    ({"results": np.eye(2), "sensitivity": 0.9}, "together"),
    ({"results": np.eye(2), "prices": [-1]}, "prices"),
    ({"results": np.eye(2), "prices": []}, "list numbers"),
]


@pytest.mark.parametrize("given", WRONG, ids=lambda given: given[1])
def test_wrong_tests_are_refused(policy: Any, given: tuple[dict[str, Any], str]) -> None:
    with pytest.raises(InvalidInputError, match=given[1]):
        new_test_worth(policy, *draw_rows(30, 1), **given[0])


def test_training_rows_are_reported_and_figures_drawn(policy: Any) -> None:
    X, y = draw_rows(600, 0)
    with pytest.warns(TrainingRowsWarning, match="the values are too optimistic"):
        new_test_worth(policy, X[:200], y[:200], sensitivity=0.9, specificity=0.9)
    with pytest.raises(InvalidInputError, match="tolerance"):
        covariate_worth(policy, X, y, tolerance=0)
    pytest.importorskip("matplotlib")
    worth = covariate_worth(policy, *draw_rows(50, 1), tolerance=0.2)
    assert worth.plot(currency="USD").get_xlabel() == "per row, or price (USD)"

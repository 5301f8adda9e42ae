"""DWSM: roll-outs against a replay, the fit of actions, and how costs steer the policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import Costs, load_pima
from adacos.datasets import make_discrete_problem
from adacos.exceptions import InvalidInputError
from adacos.metrics import total_cost
from adacos.rivals import DWSMClassifier, OptimalPolicyClassifier
from adacos.rivals.dwsm import Game, LinearScores, action_costs, fit_actions, sample_states
from tests.rivals.problems import MIXED_COSTS, mixed_table

SMALL = {"n_rounds": 2, "n_states": 400, "n_init": 1}


def random_game(seed: int, n: int = 40) -> tuple[Game, LinearScores]:
    """Rows with 4 covariates, the third of two columns, and random scores."""
    rng = np.random.default_rng(seed)
    source = np.array([0, 1, 2, 2, 3])
    available = rng.random((n, 4)) < 0.8
    encoded = np.where(available[:, source], rng.normal(size=(n, 5)), np.nan)
    costs = Costs(
        [1.0, 2.0, 1.5, 0.5],
        misclassification=[[-1, 5], [7, 0]],
        panels={"draw": (0.8, [0, 1])},
    ).bind(["a", "b", "c", "d"])
    coef = rng.normal(size=(10, 6))
    coef[0, 2:] += 1.0  # most rows acquire something
    scores = LinearScores(rng.normal(size=5), rng.uniform(0.5, 2, 5), source, coef)
    return Game(encoded, rng.integers(0, 2, n), available, costs), scores


def replay(game: Game, scores: LinearScores, row: int, have: list[int]) -> float:
    """Total cost of one row when the policy takes over with these covariates acquired."""
    have = list(have)
    while True:
        phi = np.zeros(10)
        phi[0] = 1
        for k in have:
            phi[1 + k] = 1
            for column in np.flatnonzero(scores.source == k):
                value = (game.encoded[row, column] - scores.mean[column]) / scores.scale[column]
                phi[5 + column] = value
        score = phi @ scores.coef
        options = [k for k in range(4) if k not in have and game.available[row, k]]
        best = max(options, key=lambda k: score[2 + k], default=None)
        if best is None or score[2 + best] <= score[:2].max():
            label = int(score[1] > score[0])
            mask = np.isin(np.arange(4), have)
            return float(game.costs.of(mask) + game.costs.matrix[game.y[row], label])
        have.append(best)


@pytest.mark.parametrize("seed", range(3))
def test_action_costs_are_those_of_a_replay(seed: int) -> None:
    game, scores = random_game(seed)
    rng = np.random.default_rng(seed)
    acquired = game.available & (rng.random(game.available.shape) < 0.3)
    cost = action_costs(game, scores, acquired)
    for row in range(len(game.y)):
        np.testing.assert_array_equal(cost[row, :2], game.costs.matrix[game.y[row]])
        have = list(np.flatnonzero(acquired[row]))
        paid = float(game.costs.of(acquired[row]))
        for k in range(4):
            if acquired[row, k] or not game.available[row, k]:
                assert np.isnan(cost[row, 2 + k])
            else:
                expected = replay(game, scores, row, [*have, k]) - paid
                assert cost[row, 2 + k] == pytest.approx(expected, abs=1e-12)


def test_states_are_those_along_the_policy_and_random_sets() -> None:
    game, scores = random_game(3)
    rows, acquired = sample_states(game, scores, 10_000, np.random.default_rng(0))
    assert not np.any(acquired & ~game.available[rows])
    assert set(rows) == set(range(len(game.y)))
    # The empty set comes first, random sets second, then one more covariate with every step.
    n = len(game.y)
    assert not acquired[:n].any()
    sizes = acquired[2 * n :].sum(axis=1)
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[0] == 1
    few, _ = sample_states(game, scores, 30, np.random.default_rng(0))
    assert len(few) == 30


def test_the_fit_of_actions_finds_the_cheapest_one() -> None:
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(3000), rng.normal(size=(3000, 2))])
    true = rng.normal(size=(3, 4))
    # The best action has the least cost in the mean only: its cost is noisy.
    cost = -features @ true + rng.normal(size=(3000, 4))
    cost[:500, 1] = np.nan
    coef = fit_actions(features, cost, np.zeros((3, 4)), 1e-6)
    allowed = np.where(np.isnan(cost), -np.inf, 0.0)
    chosen = np.argmax(features @ coef + allowed, axis=1)
    best = np.argmax(features @ true + allowed, axis=1)
    assert np.mean(chosen == best) > 0.93


def test_close_to_the_optimum_where_log_odds_are_linear() -> None:
    ratios = []
    for seed in range(3):
        problem = make_discrete_problem(5, dependence=0.0, mean_price=0.5, seed=seed)
        costs = Costs(problem.prices, false_positive=20, false_negative=20)
        X, y = problem.sample(2000, seed=0)
        new, truth = problem.sample(20_000, seed=1)
        optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
        policy = DWSMClassifier(costs).fit(X, y)
        ratios.append(
            total_cost(policy.acquire(new), truth, costs)
            / total_cost(optimum.acquire(new), truth, costs)
        )
    assert np.mean(ratios) <= 1.05


def twins(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    """Two nearly equal covariates that tell the class, and noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    reported = 3.0 * y + rng.normal(size=n)
    X = np.column_stack([reported + 0.01 * rng.normal(size=n), reported, rng.normal(size=n)])
    return X, y


def test_the_cheaper_of_two_equal_covariates_is_acquired() -> None:
    X, y = twins()
    for cheap in (0, 1):
        prices = np.where(np.arange(3) == cheap, 1.0, 30.0)
        costs = Costs(prices, false_positive=100, false_negative=100)
        result = DWSMClassifier(costs).fit(X, y).acquire(X)
        assert result.acquired[:, cheap].mean() > 0.95
        assert result.acquired[:, 1 - cheap].mean() < 0.05


def test_unconstrained_does_not_see_prices_but_pays_them() -> None:
    X, y = twins()
    found = []
    for prices in ([1.0, 9.0, 2.0], [9.0, 1.0, 2.0]):
        costs = Costs(prices, false_positive=100, false_negative=100)
        policy = DWSMClassifier(costs, variant="unconstrained", charge=3.0, **SMALL).fit(X, y)
        found.append(policy.acquire(X))
        np.testing.assert_allclose(found[-1].cost, found[-1].acquired @ np.array(prices))
    np.testing.assert_array_equal(found[0].acquired, found[1].acquired)
    costs = Costs([2.0, 3.0, 4.0], false_positive=100, false_negative=100)
    by_mean = DWSMClassifier(costs, variant="unconstrained", **SMALL).fit(X, y)
    np.testing.assert_array_equal(by_mean.acquire(X).acquired, found[0].acquired)


def test_reward_improves_and_expensive_covariates_are_never_acquired() -> None:
    X, y, prices, *_ = load_pima(as_frame=False)
    costs = Costs(list(prices.values()), misclassification=[[-50, 400], [400, -50]])
    policy = DWSMClassifier(costs, n_init=1).fit(X, y)
    assert policy.rewards_[-1] > policy.rewards_[0] + 5
    assert policy.rewards_[-1] > policy.rewards_.max() - 5
    expensive = DWSMClassifier(Costs([1e6] * 8, false_positive=10, false_negative=1), **SMALL).fit(
        X, y
    )
    assert expensive.acquire(X).cost.max() == 0
    np.testing.assert_allclose(expensive.predict_proba(X)[:, 1], y.mean(), atol=0.05)


def test_labels_follow_the_misclassification_costs() -> None:
    X, y, *_ = load_pima(as_frame=False)
    positives = []
    for false_negative in (10.0, 100.0, 1000.0):
        costs = Costs([0.1] * 8, false_positive=100, false_negative=false_negative)
        policy = DWSMClassifier(costs, **SMALL).fit(X, y)
        positives.append(policy.predict(X).mean())
        cut = 100 / (100 + false_negative)
        p = policy.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(policy.predict(X), (p >= cut).astype(int))
    assert positives[0] < positives[1] < positives[2]


def test_known_values_are_where_the_policy_starts() -> None:
    X, y, prices, *_ = load_pima(as_frame=False)
    costs = Costs(list(prices.values()), false_positive=400, false_negative=400)
    policy = DWSMClassifier(costs, n_init=1).fit(X, y)
    result = policy.acquire(X, known=np.arange(8) == 1)
    assert not result.acquired[:, 1].any()
    assert total_cost(result, y, costs) < total_cost(policy.acquire(X), y, costs) - 5


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("variant", "constrained"),
        ("charge", -1.0),
        ("ridge", 0.0),
        ("n_rounds", 0),
        ("n_states", 0),
        ("n_init", 0),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(parameter: str, value: Any) -> None:
    X, y = mixed_table(40)
    with pytest.raises(InvalidInputError, match=parameter):
        DWSMClassifier(MIXED_COSTS, **{parameter: value}).fit(X, y)

"""The exact optimum: against all decision trees, Bellman's equation, simulation, other policies."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adacos import AdaCOSClassifier, COSClassifier, Costs
from adacos.costs import CostTable
from adacos.datasets import (
    DiscreteProblem,
    make_discrete_problem,
    make_value_dependent_problem,
)
from adacos.exceptions import InvalidInputError
from adacos.kernels.planning import marginals, solve
from adacos.metrics import total_costs
from adacos.rivals import DWSMClassifier, OptimalPolicyClassifier, POMDPClassifier
from adacos.rivals.optimal import naive_bayes, smoothed_counts
from tests.policy_checks import check_policy

SETTINGS = [
    {"n_covariates": 1, "levels": 3, "seed": 0},
    {"n_covariates": 2, "levels": [3, 2], "seed": 1},
    {"n_covariates": 3, "dependence": 2.0, "seed": 2},
    {"n_covariates": 3, "dependence": 0.0, "mean_price": 3.0, "seed": 3},
    {"n_covariates": 3, "strength": 0.2, "dependence": 3.0, "mean_price": 0.2, "seed": 4},
]


def test_policy_checks_with_a_known_joint() -> None:
    problem = make_discrete_problem(4, levels=[2, 3, 2, 2], seed=5)
    X, y = problem.sample(200, seed=0)
    costs = Costs(problem.prices, false_positive=8, false_negative=12)
    check_policy(OptimalPolicyClassifier(costs, joint=problem), X, y)
    check_policy(OptimalPolicyClassifier(costs, joint=problem.joint), X, y)


def cost_table(problem: DiscreteProblem, matrix: Any, panels: Any = None) -> CostTable:
    return Costs(problem.prices, misclassification=matrix, panels=panels).bind(list(problem.prices))


def all_trees(joint: np.ndarray, costs: CostTable, values: tuple[int | None, ...]) -> np.ndarray:
    """P(values) times the expected cost to come, of every decision tree from here on."""
    place = (slice(None), *(slice(None) if v is None else v for v in values))
    by_class = joint[place].reshape(2, -1).sum(axis=1)
    every = [by_class @ costs.matrix]
    acquired = np.array([v is not None for v in values])
    for i in np.flatnonzero(~acquired):
        then = acquired.copy()
        then[i] = True
        total = np.zeros(1)
        for v in range(joint.shape[1 + i]):
            below = all_trees(joint, costs, (*values[:i], v, *values[i + 1 :]))
            total = (total[:, None] + below).ravel()
        every.append(by_class.sum() * (costs.of(then) - costs.of(acquired)) + total)
    return np.concatenate(every)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("matrix", [[[0, 5], [9, 0]], [[-3, 6], [4, -1]]])
def test_no_decision_tree_is_cheaper_and_one_is_as_cheap(settings: Any, matrix: Any) -> None:
    problem = make_discrete_problem(**settings)
    panels = (
        {"both": (0.8 * min(problem.prices.values()), [0, 1])} if len(problem.prices) > 1 else {}
    )
    for given in ({}, panels):
        costs = cost_table(problem, matrix, given)
        trees = all_trees(problem.joint, costs, (None,) * len(problem.prices))
        [best] = solve(problem.joint, costs.of_next, costs.matrix)
        value = best.weighted_value.flat[-1]
        assert value == pytest.approx(trees.min(), rel=1e-12)


def test_number_of_trees() -> None:
    # 2 answers; then T(p) = 2 + p T(p - 1)² for binary covariates.
    problem = make_discrete_problem(3, seed=0)
    trees = all_trees(problem.joint, cost_table(problem, [[0, 1], [1, 0]]), (None,) * 3)
    assert len(trees) == 2 + 3 * (2 + 2 * (2 + 2**2) ** 2) ** 2


def test_bellman_equation_at_random_states() -> None:
    problem = make_discrete_problem(8, levels=[2, 3, 2, 2, 2, 3, 2, 2], seed=6, mean_price=0.4)
    costs = cost_table(problem, [[0, 10], [15, 0]], {"draw": (0.15, [1, 4, 6])})
    [tables] = solve(problem.joint, costs.of_next, costs.matrix)
    marginal, action = tables.marginal, tables.action
    value = tables.weighted_value / marginal.sum(axis=0)
    levels = problem.levels
    rng = np.random.default_rng(0)
    for _ in range(300):
        state = [int(rng.integers(n + 1)) for n in levels]
        acquired = np.array([v < n for v, n in zip(state, levels, strict=True)])
        place = [
            slice(None),
            *(v if a else slice(None) for v, a in zip(state, acquired, strict=True)),
        ]
        by_class = problem.joint[tuple(place)].reshape(2, -1).sum(axis=1)
        options = {-1: (by_class @ costs.matrix).min() / by_class.sum()}
        for i in np.flatnonzero(~acquired):
            then = acquired | (np.arange(8) == i)
            future = float(costs.of(then, given=acquired))
            for v in range(levels[i]):
                after = (*state[:i], v, *state[i + 1 :])
                share = marginal[(slice(None), *after)].sum() / by_class.sum()
                future += share * value[after]
            options[int(i)] = future
        best = min(options.values())
        assert value[tuple(state)] == pytest.approx(best, rel=1e-10)
        assert options[int(action[tuple(state)])] == pytest.approx(best, rel=1e-10)
    assert (action >= 0).any()


def test_marginals_are_sums_over_what_was_not_acquired() -> None:
    joint = make_discrete_problem(3, levels=[2, 3, 2], seed=7).joint
    table = marginals(joint)
    np.testing.assert_allclose(table[:, 2, 3, 2], joint.sum(axis=(1, 2, 3)))
    np.testing.assert_allclose(table[:, 1, 3, 0], joint[:, 1, :, 0].sum(axis=1))
    np.testing.assert_allclose(table[:, :2, :3, :2], joint)


@pytest.mark.parametrize("matrix", [[[0, 10], [10, 0]], [[-5, 20], [60, -10]]])
def test_expected_cost_is_that_of_a_simulation(matrix: Any) -> None:
    problem = make_discrete_problem(6, levels=[2, 3, 2, 2, 4, 2], seed=8, mean_price=0.5)
    X, y = problem.sample(40_000, seed=1)
    costs = Costs(problem.prices, misclassification=matrix, panels={"draw": (0.1, [0, 3])})
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X[:50], y[:50])
    result = policy.acquire(X)
    spent = total_costs(result, y, costs)
    assert spent.mean() == pytest.approx(policy.expected_cost_, abs=4 * spent.std() / 200)
    # What it expects at the stop is right as well, not only what it ends up with.
    assert result.expected_cost.mean() == pytest.approx(
        policy.expected_cost_, abs=4 * result.expected_cost.std() / 200
    )
    assert 0 < result.acquired.mean() < 1


def test_unavailable_covariates_get_the_optimum_of_the_others() -> None:
    problem = make_discrete_problem(4, seed=9, mean_price=0.5)
    X, y = problem.sample(300, seed=0)
    costs = Costs(problem.prices, false_positive=9, false_negative=11)
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    incomplete = X.copy()
    incomplete[:, 2] = np.nan
    fewer = Costs(
        {k: v for k, v in problem.prices.items() if k != "x2"}, false_positive=9, false_negative=11
    )
    names = ["x0", "x1", "x3"]
    rest = pd.DataFrame(X[:, [0, 1, 3]], columns=names)
    other = OptimalPolicyClassifier(fewer, joint=problem.joint.sum(axis=3)).fit(rest, y)
    ours, theirs = policy.acquire(incomplete), other.acquire(rest)
    np.testing.assert_array_equal(ours.acquired[:, [0, 1, 3]], theirs.acquired)
    np.testing.assert_allclose(ours.probability, theirs.probability, rtol=1e-12)
    assert [ours.covariates(i) for i in range(300)] == [theirs.covariates(i) for i in range(300)]
    # Nothing available: the prior decides.
    blank = policy.acquire(np.full((1, 4), np.nan))
    assert blank.probability[0] == pytest.approx(problem.joint[1].sum())
    assert blank.cost[0] == 0


def test_known_values_are_where_the_policy_starts() -> None:
    problem = make_value_dependent_problem()
    X, y = problem.sample(100, seed=0)
    costs = Costs(problem.prices, false_positive=100, false_negative=100)
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    result = policy.acquire(X, known=np.array([True, False, False]))
    np.testing.assert_array_equal(result.order[:, 0], np.where(X[:, 0] == 0, 1, 2))
    assert np.all(result.cost == 5)
    assert np.all(result.stage == 1)


def test_the_next_covariate_depends_on_the_value_of_the_first() -> None:
    problem = make_value_dependent_problem(noise=0.1, n_irrelevant=1, prices=(1.0, 5.0))
    assert problem.joint.sum() == pytest.approx(1.0)
    X, y = problem.sample(20_000, seed=0)
    telling = np.where(X[:, 0] == 0, X[:, 1], X[:, 2])
    assert np.mean(telling == y) == pytest.approx(0.9, abs=0.01)
    costs = Costs(problem.prices, false_positive=100, false_negative=100)
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    assert policy.expected_cost_ == pytest.approx(1 + 5 + 10)
    order = policy.acquire(X).order
    assert np.all(order[:, 0] == 0)
    np.testing.assert_array_equal(order[:, 1], np.where(X[:, 0] == 0, 1, 2))
    assert np.all(order[:, 2:] == -1)


def test_states_that_cannot_occur() -> None:
    # x1 copies x0, so that (0, 1) and (1, 0) have probability 0.
    joint = np.array([[[0.4, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 0.4]]])
    X, y = np.array([[0, 0], [1, 1], [0, 1], [1, 0]] * 2, dtype=float), np.array([0, 1] * 4)
    policy = OptimalPolicyClassifier(Costs([0.0, 0.0]), joint=joint).fit(X, y)
    assert policy.expected_cost_ == pytest.approx(0.2)
    assert np.isfinite(policy.acquire(X).probability).all()
    assert np.all(policy.acquire(X).stage == 1)


def test_estimated_joints_approach_the_true_one() -> None:
    independent = make_discrete_problem(4, levels=[2, 3, 2, 2], dependence=0.0, seed=10)
    dependent = make_discrete_problem(4, levels=[2, 3, 2, 2], dependence=2.0, seed=10)
    sizes = np.array([2, 3, 2, 2])

    def distance(problem: DiscreteProblem, counts: bool) -> float:
        X, y = problem.sample(100_000, seed=0)
        codes = X.astype(np.intp)
        joint = naive_bayes(codes, y, sizes, 1.0)
        if counts:
            joint = smoothed_counts(codes, y, joint, 1.0)
        assert joint.sum() == pytest.approx(1.0)
        return float(np.abs(joint - problem.joint).sum())

    assert distance(independent, counts=False) < 0.02
    assert distance(independent, counts=True) < 0.03
    assert distance(dependent, counts=True) < 0.03
    assert distance(dependent, counts=False) > 0.1


def test_counts_fall_back_on_naive_bayes_where_rows_are_missing() -> None:
    problem = make_discrete_problem(2, seed=11)
    X, y = problem.sample(400, seed=0)
    X[::2, 0], X[1::2, 1] = np.nan, np.nan
    by_counts = OptimalPolicyClassifier(joint="counts").fit(X, y)
    by_bayes = OptimalPolicyClassifier(joint="naive_bayes").fit(X, y)
    np.testing.assert_allclose(by_counts.joint_, by_bayes.joint_, rtol=1e-12)


def test_a_value_between_levels_counts_as_the_nearest() -> None:
    X = np.array([[0.0], [1.0], [3.0]] * 20)
    y = np.array([0, 1, 1] * 20)
    policy = OptimalPolicyClassifier(Costs([0.1])).fit(X, y)
    np.testing.assert_array_equal(
        policy.predict_proba(np.array([[0.4], [1.9], [2.1], [99.0]])),
        policy.predict_proba(np.array([[0.0], [1.0], [3.0], [3.0]])),
    )


def test_twelve_binary_covariates() -> None:
    problem = make_discrete_problem(12, seed=12, dependence=1.0)
    X, y = problem.sample(5000, seed=0)
    costs = Costs(problem.prices, false_positive=20, false_negative=30)
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    spent = total_costs(policy.acquire(X), y, costs)
    assert spent.mean() == pytest.approx(policy.expected_cost_, abs=4 * spent.std() / np.sqrt(5000))


def test_too_many_states_are_refused_with_an_estimate() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (50, 25)).astype(float), rng.integers(0, 2, 50)
    with pytest.raises(InvalidInputError, match=r"25 covariates with 8.5e\+11 states.*GiB"):
        OptimalPolicyClassifier(joint="naive_bayes").fit(X, y)
    with pytest.raises(InvalidInputError, match="GiB"):
        OptimalPolicyClassifier(max_memory=1e-6).fit(X[:, :8], y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint": "guess"}, "joint: must be one of"),
        ({"joint": np.ones((2, 2)) / 4}, "joint: .* one axis for each of 2"),
        ({"joint": np.ones((2, 2, 2))}, "sum to 1"),
        ({"joint": np.stack([np.ones((2, 2)) / 4, np.zeros((2, 2))])}, "both classes"),
        ({"joint": np.ones((2, 2, 1)) / 4}, "column 'x1': joint has 1 values"),
        ({"joint": object()}, "joint"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"n_codes": 1}, "n_codes"),
        ({"max_memory": -1.0}, "max_memory"),
    ],
)
def test_bad_parameters_are_refused(change: Any, message: str) -> None:
    X = np.array(list(product([0.0, 1.0], repeat=2)) * 3)
    with pytest.raises(InvalidInputError, match=message):
        OptimalPolicyClassifier(**change).fit(X, np.arange(12) % 2)


def test_measurements_are_refused_unless_cut() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    with pytest.raises(InvalidInputError, match=r"100 distinct values.*Bin it.*n_codes"):
        OptimalPolicyClassifier().fit(X, y)
    assert OptimalPolicyClassifier(n_codes=4).fit(X, y).joint_.shape == (2, 4, 4)


@pytest.mark.parametrize("dependence", [0.0, 1.5])
@pytest.mark.parametrize("mean_price", [0.3, 1.0])
def test_no_policy_goes_below_the_optimum(dependence: float, mean_price: float) -> None:
    problem = make_discrete_problem(5, dependence=dependence, mean_price=mean_price, seed=13)
    costs = Costs(problem.prices, false_positive=10, false_negative=15)
    X, y = problem.sample(600, seed=1)
    new, truth = problem.sample(20_000, seed=2)
    optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    best = total_costs(optimum.acquire(new), truth, costs)
    for rival in (
        OptimalPolicyClassifier(costs),
        OptimalPolicyClassifier(costs, joint="naive_bayes"),
        POMDPClassifier(costs, n_components=2, smoothing=5.0, n_init=1),
        DWSMClassifier(costs, n_rounds=3, n_states=1500),
        AdaCOSClassifier(costs, strengths="common", cv=3),
        COSClassifier(costs, strengths="common", cv=3),
    ):
        spent = total_costs(rival.fit(X, y).acquire(new), truth, costs)
        regret = spent - best
        assert regret.mean() >= -4 * regret.std() / np.sqrt(len(regret)), rival

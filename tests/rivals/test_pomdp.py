"""POMDP: beliefs and looks ahead against enumeration, and near the optimum on its own model."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from adacos import Costs, load_pima
from adacos.bench.regret import expected_cost
from adacos.costs import CostTable
from adacos.datasets import make_discrete_problem, make_value_dependent_problem
from adacos.exceptions import InvalidInputError
from adacos.kernels.planning import solve
from adacos.metrics import total_cost
from adacos.rivals import OptimalPolicyClassifier, POMDPClassifier
from adacos.rivals.pomdp import HiddenStates, fit_mixture, future_costs, indicators_of
from tests.rivals.problems import MIXED_COSTS, mixed_table

SMALL = {"n_components": 2, "smoothing": 5.0, "n_init": 1}
PANEL = {"draw": (0.3, [0, 1])}


def random_states(sizes: tuple[int, ...], seed: int) -> tuple[HiddenStates, np.ndarray]:
    """A model with 2 + 3 states, and its P(y, x)."""
    rng = np.random.default_rng(seed)
    label = np.array([0, 0, 1, 1, 1])
    weight = rng.dirichlet(np.ones(5))
    emission = [rng.dirichlet(np.ones(size), size=5) for size in sizes]
    joint = np.zeros((2, *sizes))
    for state in range(5):
        table = weight[state]
        for own in emission:
            table = np.multiply.outer(table, own[state])
        joint[label[state]] += table
    model = HiddenStates(
        label, np.log(weight), np.log(np.hstack(emission)), np.array(sizes, dtype=np.intp)
    )
    return model, joint


def bound(n: int, panels: Any = None) -> CostTable:
    prices = [0.5, 0.4, 0.7, 0.3][:n]
    costs = Costs(prices, misclassification=[[-1, 6], [8, 0]], panels=panels)
    return costs.bind([f"x{i}" for i in range(n)])


def test_beliefs_are_those_of_bayes() -> None:
    model, joint = random_states((2, 3, 2), seed=0)
    codes = np.array(list(product(range(2), range(3), range(2))))
    for acquired in product([False, True], repeat=3):
        mask = np.tile(acquired, (len(codes), 1))
        belief = model.beliefs(codes, mask)
        np.testing.assert_allclose(belief.sum(axis=1), 1.0)
        for row, code in enumerate(codes):
            place = tuple(c if a else slice(None) for c, a in zip(code, acquired, strict=True))
            by_class = joint[(slice(None), *place)].reshape(2, -1).sum(axis=1)
            expected = by_class[1] / by_class.sum()
            assert belief[row, model.label == 1].sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("panels", [None, PANEL])
def test_one_look_ahead_is_the_expectation_over_the_next_value(panels: Any) -> None:
    model, joint = random_states((2, 3, 2), seed=1)
    costs = bound(3, panels)
    acquired = np.array([[False, True, False]])
    belief = model.beliefs(np.array([[0, 2, 0]]), acquired)
    future = future_costs(model, belief, acquired, np.ones((1, 3), dtype=bool), costs, 1)[0]
    given = joint[:, :, 2, :] / joint[:, :, 2, :].sum()
    after_0 = sum((given[:, v].sum(axis=1) @ costs.matrix).min() for v in range(2))
    after_2 = sum((given[:, :, v].sum(axis=1) @ costs.matrix).min() for v in range(2))
    price_0 = 0.5 - (0.3 if panels else 0)
    np.testing.assert_allclose(future, [price_0 + after_0, np.inf, 0.7 + after_2], rtol=1e-12)


@pytest.mark.parametrize("panels", [None, PANEL])
@pytest.mark.parametrize("seed", range(4))
def test_two_looks_ahead_are_optimal_for_two_covariates(panels: Any, seed: int) -> None:
    model, joint = random_states((3, 4), seed)
    costs = bound(2, panels)
    nothing = np.zeros((1, 2), dtype=bool)
    belief = model.beliefs(np.zeros((1, 2), dtype=np.intp), nothing)
    future = future_costs(model, belief, nothing, ~nothing, costs, 2).min()
    now = (joint.reshape(2, -1).sum(axis=1) @ costs.matrix).min()
    assert min(now, future) == pytest.approx(
        solve(joint, costs.of_next, costs.matrix)[0].weighted_value.flat[-1], rel=1e-12
    )


def test_what_is_not_available_is_not_offered() -> None:
    model, _ = random_states((2, 3, 2), seed=2)
    nothing = np.zeros((1, 3), dtype=bool)
    belief = model.beliefs(np.zeros((1, 3), dtype=np.intp), nothing)
    available = np.array([[True, False, True]])
    for lookahead in (1, 2):
        future = future_costs(model, belief, nothing, available, bound(3), lookahead)
        assert np.isinf(future[0, 1])
        assert np.isfinite(future[0, [0, 2]]).all()


def test_close_to_the_optimum_on_its_own_model() -> None:
    ratios = []
    for seed in range(6):
        problem = make_discrete_problem(
            6, levels=[2, 3, 2, 3, 2, 2], dependence=1.0, n_components=2, mean_price=0.3, seed=seed
        )
        costs = Costs(problem.prices, false_positive=20, false_negative=20)
        X, y = problem.sample(4000, seed=0)
        new, truth = problem.sample(20_000, seed=1)
        optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
        least = total_cost(optimum.acquire(new), truth, costs)
        pomdp = POMDPClassifier(costs, n_components=2, smoothing=3.0).fit(X, y)
        reached = [
            total_cost(pomdp.set_params(lookahead=k).finish_fit().acquire(new), truth, costs)
            for k in (1, 2)
        ]
        ratios.append(np.array(reached) / least)
    one, two = np.mean(ratios, axis=0)
    assert two <= one <= 1.05


def test_two_looks_find_what_only_pays_together() -> None:
    problem = make_value_dependent_problem(n_irrelevant=1)
    costs = Costs(problem.prices, false_positive=40, false_negative=40)
    X, y = problem.sample(800, seed=0)
    pomdp = POMDPClassifier(costs, n_components=4).fit(X, y)
    cost = {
        k: expected_cost(pomdp.set_params(lookahead=k).finish_fit(), problem, costs) for k in (1, 2)
    }
    optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y).expected_cost_
    assert cost[2] <= 1.05 * optimum
    assert cost[1] > 1.2 * optimum


def test_mixture_recovers_the_distribution_of_held_out_rows() -> None:
    problem = make_discrete_problem(5, dependence=2.0, n_components=2, seed=3)
    sizes = np.full(5, 2, dtype=np.intp)
    X, y = problem.sample(20_000, seed=0)
    own = indicators_of(X[y == 1].astype(np.intp), sizes)
    prior = np.full(10, 0.5)
    truth = np.log(problem.joint[1] / problem.joint[1].sum())[tuple(X[y == 1].astype(int).T)].mean()
    fitted = {}
    for n_components in (1, 2):
        mixture = fit_mixture(own, prior, sizes, n_components, 1.0, np.random.default_rng(0))
        rows = mixture.log_weight + own @ mixture.log_emission.T
        fitted[n_components] = logsumexp(rows, axis=1).mean()
    assert fitted[2] == pytest.approx(truth, abs=2e-3)
    assert fitted[1] < truth - 0.02


def test_rows_with_missing_values_still_teach() -> None:
    problem = make_discrete_problem(4, dependence=0.0, seed=4)
    costs = Costs(problem.prices, false_positive=10, false_negative=10)
    X, y = problem.sample(2000, seed=0)
    incomplete = np.where(np.random.default_rng(0).random(X.shape) < 0.4, np.nan, X)
    new, truth = problem.sample(10_000, seed=1)
    complete = POMDPClassifier(costs, **SMALL).fit(X, y)
    partial = POMDPClassifier(costs, **SMALL).fit(incomplete, y)
    assert total_cost(partial.acquire(new), truth, costs) <= 1.05 * total_cost(
        complete.acquire(new), truth, costs
    )


def test_covariates_that_cost_too_much_are_never_acquired_and_labels_follow_the_costs() -> None:
    X, y, *_ = load_pima(as_frame=False)
    expensive = POMDPClassifier(Costs([1e6] * 8, false_positive=10, false_negative=1), **SMALL).fit(
        X, y
    )
    assert expensive.acquire(X).cost.max() == 0
    np.testing.assert_allclose(expensive.predict_proba(X)[:, 1], y.mean())
    positives = []
    for false_negative in (10.0, 100.0, 1000.0):
        costs = Costs([0.0] * 8, false_positive=100, false_negative=false_negative)
        policy = POMDPClassifier(costs, **SMALL).fit(X, y)
        positives.append(policy.predict(X).mean())
        cut = 100 / (100 + false_negative)
        p = policy.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(policy.predict(X), (p >= cut).astype(int))
    assert positives[0] < positives[1] < positives[2]


def test_known_values_are_where_the_policy_starts() -> None:
    X, y, prices, *_ = load_pima(as_frame=False)
    costs = Costs(list(prices.values()), false_positive=400, false_negative=400)
    policy = POMDPClassifier(costs, **SMALL).fit(X, y)
    glucose = np.arange(8) == 1
    result = policy.acquire(X, known=glucose)
    assert not result.acquired[:, 1].any()
    assert total_cost(result, y, costs) < total_cost(policy.acquire(X), y, costs) - 5
    everything = policy.acquire(X, known=np.ones(8, dtype=bool))
    assert everything.cost.max() == 0
    belief = policy.model_.beliefs(policy.codes_.transform(X), np.ones(X.shape, dtype=bool))
    np.testing.assert_allclose(
        everything.probability, belief[:, policy.model_.label == 1].sum(axis=1), atol=1e-9
    )


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 0),
        ("smoothing", 0.0),
        ("n_codes", 1),
        ("lookahead", 3),
        ("cv", 1),
        ("n_init", 0),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(parameter: str, value: Any) -> None:
    X, y = mixed_table(40)
    with pytest.raises(InvalidInputError, match=parameter):
        POMDPClassifier(MIXED_COSTS, **{parameter: value}).fit(X, y)

"""DIME and GDFS: information against its exact value, and stops against the costs they lead to."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from adacos import Costs, load, save
from adacos.costs import total_of
from adacos.datasets import DiscreteProblem, make_discrete_problem
from adacos.engine import run
from adacos.kernels.class_risk import best_label
from adacos.rivals import DIMEClassifier, GDFSClassifier
from adacos.rivals.greedy_networks import GreedyNetworks, Inputs, Stopping, _Walks, cheapest_stop
from adacos.rivals.masked_networks import initial_weights
from tests.rivals.problems import THREE_COSTS, three_table

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


PROBLEM = make_discrete_problem(4, dependence=1.0, strength=1.5, seed=3)
COSTS = Costs([1.0] * 4, false_positive=20, false_negative=30)


@cache
def fitted(kind: Any, n_updates: int = 500) -> Any:
    X, y = PROBLEM.sample(4000, seed=0)
    policy = kind(COSTS, n_updates=n_updates, n_pretraining=300, device="cpu", patience=100)
    return policy.fit(X, y)


def entropy(joint: np.ndarray) -> float:
    """Mean entropy of the first axis given the others."""
    share = joint / np.maximum(joint.sum(axis=0), 1e-300)
    return float(-(joint * np.log(np.maximum(share, 1e-300))).sum())


def information(problem: DiscreteProblem, given: dict[int, int]) -> np.ndarray:
    """Exact I(y; x_i | given) of each covariate, zero for those given."""
    joint = problem.joint
    for i, value in given.items():
        joint = np.take(joint, [value], axis=i + 1)
    joint = joint / joint.sum()
    alone = entropy(joint.sum(axis=tuple(range(1, joint.ndim))))
    found = []
    for i in range(joint.ndim - 1):
        others = tuple(k + 1 for k in range(joint.ndim - 1) if k != i)
        found.append(alone - entropy(joint.sum(axis=others)))
    return np.array(found)


@pytest.mark.parametrize("given", [{}, {0: 1}, {2: 0}])
def test_dime_estimates_conditional_mutual_information(given: dict[int, int]) -> None:
    policy = fitted(DIMEClassifier, 2000)
    acquired = np.isin(np.arange(4), list(given))[None]
    encoded = np.zeros((1, 4))
    for i, value in given.items():
        encoded[0, i] = value
    networks = policy.decider_.networks
    values = networks.inputs.values(encoded)
    exact, prices = information(PROBLEM, given), policy.cost_table_
    # The statistic is the largest information per cost: every covariate by itself.
    estimated = [
        networks.assess(values, acquired, np.eye(4, dtype=bool)[[i]] & ~acquired, prices)[2][0]
        for i in range(4)
    ]
    free = ~acquired[0]
    np.testing.assert_allclose(np.array(estimated)[free], exact[free], atol=0.04)
    assert np.argmax(np.where(free, estimated, -1)) == np.argmax(np.where(free, exact, -1))


def test_gdfs_selects_what_says_most() -> None:
    policy = fitted(GDFSClassifier)
    networks, nothing = policy.decider_.networks, np.zeros((1, 4), dtype=bool)
    _, first, _ = networks.assess(np.zeros((1, 4)), nothing, ~nothing, policy.cost_table_)
    assert first[0] == information(PROBLEM, {}).argmax()


def test_the_stop_is_the_cheapest_of_all_rules() -> None:
    """Against walking every row by every rule."""
    rng = np.random.default_rng(0)
    costs = COSTS.bind(("a", "b", "c", "d"), 2)
    n_steps, n_rows = 5, 40
    paid = np.cumsum(np.vstack([np.zeros(n_rows), rng.random((n_steps - 1, n_rows))]), axis=0)
    walks = _Walks(paid, rng.normal(size=(n_steps, n_rows)), rng.random((n_steps, n_rows)))
    y = rng.integers(0, 2, n_rows).astype(float)

    def cost_of(stopping: Stopping) -> float:
        total = 0.0
        for row in range(n_rows):
            step = 0
            while step < min(stopping.most, n_steps - 1):
                if walks.statistic[step, row] <= stopping.threshold:
                    break
                step += 1
            label = best_label(walks.log_odds[step, [row]], costs.matrix)
            total += float(total_of(paid[step, [row]], y[[row]], label, costs.matrix)[0])
        return total / n_rows

    chosen, cost = cheapest_stop(walks, y, costs)
    assert cost == pytest.approx(cost_of(chosen))
    for threshold in (-np.inf, 0.1, 0.3, 0.5, 0.7, 0.9, np.inf):
        for most in range(n_steps):
            # Thresholds in between are not tried: rows may stop at the next level.
            assert cost <= cost_of(Stopping(threshold, most)) + 1.5


@pytest.mark.parametrize("kind", [DIMEClassifier, GDFSClassifier])
def test_three_classes_panels_missing_values_and_files(kind: Any, tmp_path: Any) -> None:
    X, y = three_table(300)
    policy = kind(THREE_COSTS, n_updates=100, n_pretraining=100, device="cpu").fit(X, y)
    result = policy.acquire(X)
    assert set(result.label) <= set(policy.classes_)
    np.testing.assert_allclose(result.cost, policy.cost_table_.of_order(result.order), rtol=1e-12)
    assert not (result.acquired & X.isna().to_numpy()).any()
    save(policy, tmp_path / "p.adacos")
    again = load(tmp_path / "p.adacos").acquire(X)
    assert np.array_equal(again.order, result.order)


def test_a_larger_multiplier_acquires_less() -> None:
    policy = fitted(DIMEClassifier)
    encoded = policy.encoder_.transform(PROBLEM.sample(500, seed=1)[0])
    paid = [run(policy.decider_.with_multiplier(m), encoded).cost.mean() for m in (0, 1, 10, 1000)]
    assert paid == sorted(paid, reverse=True)
    assert paid[-1] < paid[0]


def test_values_that_were_not_acquired_are_not_read() -> None:
    rng = np.random.default_rng(0)
    inputs = Inputs.of(rng.normal(size=(50, 3)), np.arange(3))
    networks = GreedyNetworks(inputs, initial_weights(rng, 6, 2, 3), True)
    acquired = rng.random((20, 3)) < 0.5
    values = rng.normal(size=(20, 3))
    costs = Costs([1.0] * 3, false_positive=1, false_negative=1).bind(("a", "b", "c"), 2)
    one = networks.assess(values, acquired, ~acquired, costs)
    other = networks.assess(np.where(acquired, values, 99.0), acquired, ~acquired, costs)
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)

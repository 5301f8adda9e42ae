"""Dynamic programming over states: against a recursion that follows the definition."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import Costs
from adacos.costs import CostTable
from adacos.kernels.planning import CLASSIFY, marginals, solve
from adacos.models.plans import tabulate


def problem(n_classes: int, sizes: tuple[int, ...], seed: int) -> tuple[np.ndarray, CostTable]:
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(n_classes * int(np.prod(sizes)), 0.3))
    matrix = rng.uniform(2, 9, size=(n_classes, n_classes)) * (1 - np.eye(n_classes))
    names = [f"x{i}" for i in range(len(sizes))]
    prices = dict(zip(names, rng.uniform(0.1, 0.8, size=len(sizes)), strict=True))
    panels = {"both": (0.05, names[:2])} if len(sizes) > 1 else {}
    costs = Costs(prices, misclassification=matrix, panels=panels).bind(names, n_classes)
    return joint.reshape(n_classes, *sizes), costs


def plan(
    joint: np.ndarray, costs: CostTable, seen: dict[int, int], caution: float
) -> tuple[float, float]:
    """What a state is weighed by and what it costs, times its probability, as defined."""
    place = tuple(seen.get(i, slice(None)) for i in range(joint.ndim - 1))
    by_class = joint[(slice(None), *place)].reshape(len(joint), -1).sum(axis=1)
    best = cost = float((by_class @ costs.matrix).min())
    acquired = np.isin(np.arange(joint.ndim - 1), list(seen))
    for i in np.flatnonzero(~acquired):
        price = by_class.sum() * costs.of_next(acquired)[i]
        after = [plan(joint, costs, {**seen, i: v}, caution) for v in range(joint.shape[1 + i])]
        weighed = caution * price + sum(part[0] for part in after)
        if weighed < best - 1e-12:
            best, cost = weighed, price + sum(part[1] for part in after)
    return best, cost


@pytest.mark.parametrize("caution", [1.0, 2.5])
@pytest.mark.parametrize(
    ("n_classes", "sizes"), [(2, (2, 3, 2)), (3, (2, 2, 3)), (4, (3, 2)), (3, (2,))]
)
def test_value_of_the_plan(n_classes: int, sizes: tuple[int, ...], caution: float) -> None:
    for seed in range(4):
        joint, costs = problem(n_classes, sizes, seed)
        # Made beside the plan of another caution.
        both = solve(joint, costs.of_next, costs.matrix, (caution, 4.0))
        [solution] = solve(joint, costs.of_next, costs.matrix, (caution,))
        for one, other in zip(both[0], solution, strict=True):
            np.testing.assert_array_equal(one, other)
        expected = plan(joint, costs, {}, caution)[1]
        assert solution.weighted_value.flat[-1] == pytest.approx(expected, rel=1e-10)
        # And below the first value of the first covariate.
        here = (0, *sizes[1:])
        expected = plan(joint, costs, {0: 0}, caution)[1]
        assert solution.weighted_value[here] == pytest.approx(expected, rel=1e-10)


def test_marginals_of_several_classes() -> None:
    joint, _ = problem(3, (2, 3), 0)
    table = marginals(joint)
    np.testing.assert_allclose(table[:, 2, 3], joint.sum(axis=(1, 2)))
    np.testing.assert_allclose(table[:, 1, 3], joint[:, 1].sum(axis=1))
    np.testing.assert_allclose(table[:, 2, 0], joint[:, :, 0].sum(axis=1))


def test_great_caution_acquires_nothing_but_costs_what_it_costs() -> None:
    joint, costs = problem(3, (2, 3), 1)
    table = tabulate(joint, costs, 1e6)
    assert (table.action == CLASSIFY).all()
    assert table.expected_cost == pytest.approx((joint.sum(axis=(1, 2)) @ costs.matrix).min())


def test_states_after_an_acquisition() -> None:
    joint, costs = problem(2, (2, 3), 2)
    table = tabulate(joint, costs)
    nothing = np.zeros(2, dtype=np.bool_)
    states, share = table.after(np.zeros(2, dtype=np.intp), nothing, 1)
    np.testing.assert_allclose(share, joint.sum(axis=(0, 1)))
    odds = np.log(joint[1].sum(axis=0) / joint[0].sum(axis=0))
    np.testing.assert_allclose(table.log_odds[states], odds)

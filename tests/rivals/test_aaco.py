"""AACO: its plans against a plain enumeration, its pool of sets, and what it must not do."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from adacos import Costs
from adacos.decision import STOP, ObservedState
from adacos.rivals import AACOClassifier
from adacos.rivals.aaco import Neighbors, candidate_sets
from tests.rivals.problems import total_cost

P = 4
COSTS = Costs(
    [1.0, 2.0, 0.5, 3.0],
    misclassification=[[-2.0, 10.0], [30.0, -1.0]],
    panels={"p": {1: 0.5, 3: 2.5}},
).bind(list("abcd"))


def neighbors(every_set: bool, k: int, seed: int) -> Neighbors:
    """Random rows and random answers; the second covariate has two columns."""
    rng = np.random.default_rng(seed)
    pool = [s for size in range(P + 1) for s in combinations(range(P), size)]
    if not every_set:
        pool = [pool[0], *(s for s in pool[1:] if rng.random() < 0.5)]
    sets = np.array([np.isin(np.arange(P), s) for s in pool])
    return Neighbors(
        codes=rng.integers(-3, 4, (40, P + 1)).astype(np.int8),
        y=rng.integers(0, 2, 40).astype(np.int8),
        label=rng.integers(0, 2, (40, len(pool))).astype(np.int8),
        sets=sets,
        source=np.array([0, 1, 1, 2, 3]),
        k=k,
    )


def largest(found: Neighbors, have: set[int]) -> int:
    """Number of the last of the largest sets inside `have`."""
    inside = [
        (int(s.sum()), number)
        for number, s in enumerate(found.sets)
        if set(np.flatnonzero(s)) <= have
    ]
    return max(inside)[1]


def plan_by_hand(found: Neighbors, row: Any, have: set[int], available: set[int]) -> int:
    """The definition, one neighbour and one set after the other."""
    columns = [c for c, k in enumerate(found.source) if k in have]
    far = [sum((int(row[c]) - int(other[c])) ** 2 for c in columns) for other in found.codes]
    reach = sorted(far)[found.k - 1]
    near = [i for i, d in enumerate(far) if d <= reach]

    def expected(wanted: set[int]) -> float:
        number = largest(found, have | wanted)
        wrong = np.mean([COSTS.matrix[found.y[i], found.label[i, number]] for i in near])
        mask, given = np.isin(np.arange(P), list(wanted)), np.isin(np.arange(P), list(have))
        return float(wrong + COSTS.of(mask, given=given))

    plans = [set(np.flatnonzero(s).tolist()) for s in found.sets]
    plans = [plan for plan in plans if plan - have <= available]
    best = min(plans, key=expected)
    if expected(best) >= expected(set()) - 1e-6:
        return STOP
    return min(sorted(best - have), key=lambda k: expected({k}))


@pytest.mark.parametrize("every_set", [True, False])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_plans_are_those_of_the_definition(every_set: bool, k: int) -> None:
    went_on = 0
    for seed in range(4):
        found = neighbors(every_set, k, seed)
        rng = np.random.default_rng(100 + seed)
        codes = rng.integers(-3, 4, (60, P + 1)).astype(np.int8)
        available = rng.random((60, P)) < 0.8
        acquired = available & (rng.random((60, P)) < 0.4)
        covariate, model = found.plan(ObservedState(codes, available, acquired), COSTS)
        for row in range(60):
            have = set(np.flatnonzero(acquired[row]).tolist())
            there = set(np.flatnonzero(available[row]).tolist())
            assert covariate[row] == plan_by_hand(found, codes[row], have, there)
            assert model[row] == largest(found, have)
        went_on += int((covariate != STOP).sum())
    assert 0 < went_on < 4 * 60


def test_all_sets_or_a_pool_of_them() -> None:
    rng = np.random.default_rng(0)
    every = candidate_sets(5, 32, rng)
    assert len({tuple(s) for s in every}) == 32
    pool = candidate_sets(9, 64, rng)
    assert len({tuple(s) for s in pool}) == 64
    sizes = [len(s) for s in pool]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes.count(1), sizes[-1]) == (0, 9, 9)
    assert len(set(sizes)) > 5
    assert [len(s) for s in candidate_sets(50, 4, rng)] == [0, 1, 1, 50]


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first covariate says which of two others holds the class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(float)
    y = np.where(X[:, 0] == 1, X[:, 1], X[:, 2])
    return X, np.where(rng.random(n) < 0.05, 1 - y, y).astype(int)


def test_the_next_covariate_depends_on_the_values() -> None:
    """The additive model of a pair is right for the rows whose first covariate points to it."""
    costs = Costs([0.1, 1.0, 1.0], false_positive=20, false_negative=20)
    policy = AACOClassifier(costs, n_neighbors=(50,), cv=3).fit(*draw(600, 0))
    X, y = draw(1000, 1)
    result = policy.acquire(X, known=np.array([True, False, False]))
    wanted = np.where(X[:, 0] == 1, 1, 2)
    np.testing.assert_array_equal(result.order[:, 0], wanted)
    np.testing.assert_array_equal(result.cost, 1.0)
    assert np.mean(result.label == y) > 0.9


def test_expensive_covariates_are_not_acquired() -> None:
    X, y = draw(300, 0)
    policy = AACOClassifier(Costs([1e6] * 3, false_positive=10, false_negative=1), cv=2).fit(X, y)
    assert policy.acquire(X).cost.max() == 0
    np.testing.assert_allclose(policy.predict_proba(X)[:, 1], y.mean(), atol=0.02)


def test_the_number_of_neighbours_is_the_cheapest_tried() -> None:
    X, y = draw(300, 0)
    costs = Costs([0.1, 1.0, 1.0], false_positive=20, false_negative=20)
    policy = AACOClassifier(costs, n_neighbors=(3, 30, 5000), cv=3).fit(X, y)
    assert policy.out_of_fold_cost_.shape == (3,)
    assert policy.n_neighbors_ == (3, 30, 300)[int(policy.out_of_fold_cost_.argmin())]
    # Found on rows that were held out, it is near what new rows cost.
    new = total_cost(policy, *draw(3000, 2))
    assert new == pytest.approx(policy.out_of_fold_cost_.min(), rel=0.35)

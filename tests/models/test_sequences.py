"""Set sequences: what a sequence is, and the orders the authors' code found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adacos import AdaCOSClassifier, Costs, load_pima, paper_folds
from adacos.models.sequences import SetSequence


@given(st.permutations(range(6)), st.integers(0, 6))
def test_sets_are_nested_from_the_free_ones_to_all(order: list[int], n_free: int) -> None:
    sequence = SetSequence(np.array(order), n_free)
    assert len(sequence) == 7 - n_free
    np.testing.assert_array_equal(sequence.sizes, np.arange(n_free, 7))
    masks = sequence.masks()
    assert masks.shape == (len(sequence), 6)
    for i in range(len(sequence)):
        assert sequence.set(i).tolist() == order[: n_free + i]
        assert set(np.flatnonzero(masks[i])) == set(order[: n_free + i])
        if i:
            assert np.all(masks[i - 1] <= masks[i])
            assert masks[i].sum() == masks[i - 1].sum() + 1
    assert masks[-1].all()


@given(st.permutations(range(6)), st.integers(0, 6))
def test_sets_cost_what_their_order_costs(order: list[int], n_free: int) -> None:
    """The first member of the panel in the sequence pays in full, whichever is cheapest."""
    later = {1: 0.5, 3: 2.0, 4: 8.0}
    costs = Costs([1.0, 7.0, 2.0, 3.0, 9.0, 0.5], panels={"p": later})
    table = costs.bind(list("abcdef"))
    sequence = SetSequence(np.array(order), n_free)
    paid, opened, by_size = 0.0, False, [0.0]
    for k in order:
        paid += later[k] if k in later and opened else float(table.covariates[k])
        opened |= k in later
        by_size.append(paid)
    np.testing.assert_allclose(sequence.costs(table), by_size[n_free:])


def draw(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Influence falls from column to column; the last one is constant."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 4)), np.full(n, 2.0)])
    odds = X[:, :4] @ [2.0, 1.2, 0.6, 0.0]
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def fitted(costs: list[float], **parameters: Any) -> AdaCOSClassifier:
    X, y = draw()
    settings = {"cv": 3, "strengths": "common", **parameters}
    policy = AdaCOSClassifier(Costs(costs, false_positive=5, false_negative=5), **settings)
    return policy.fit(X, y)


def test_equal_costs_order_by_influence_and_a_constant_comes_last() -> None:
    policy = fitted([1.0, 1.0, 1.0, 1.0, 1.0])
    assert policy.model_.sequence.order[:2].tolist() == [0, 1]
    assert policy.model_.sequence.order[-1] == 4
    assert policy.model_.sequence.n_free == 0
    assert policy.sets_[0] == ()
    assert policy.sets_[2] == ("x0", "x1")
    assert len(policy.sets_) == 6


def test_an_expensive_covariate_moves_back() -> None:
    assert fitted([1000.0, 1.0, 1.0, 1.0, 1.0]).model_.sequence.order[0] != 0


def test_free_covariates_make_the_first_set() -> None:
    policy = fitted([3.0, 0.0, 3.0, 0.0, 0.0])
    sequence = policy.model_.sequence
    assert sequence.n_free == 3
    assert set(sequence.set(0)) == {1, 3, 4}
    assert sequence.order[3] == 0
    assert set(policy.sets_[-1]) == {"x0", "x1", "x2", "x3", "x4"}


def test_everything_free_is_one_set() -> None:
    policy = fitted([0.0] * 5)
    assert len(policy.model_.sequence) == 1
    assert len(policy.sets_[0]) == 5


def test_only_constants_cost() -> None:
    policy = fitted([0.0, 0.0, 0.0, 0.0, 7.0])
    assert policy.model_.sequence.order[-1] == 4
    assert len(policy.model_.sequence) == 2


@pytest.fixture(scope="module")
def pima_orders() -> list[list[int]]:
    """Order of the covariates on the training rows of each of the paper's folds."""
    data = load_pima(as_frame=False)
    fold = paper_folds("pima")
    costs = Costs(list(data.prices.values()), false_positive=100, false_negative=1000)
    orders = []
    for f in range(5):
        rows = fold != f
        policy = AdaCOSClassifier(costs, cv=2, strengths="common").fit(data.X[rows], data.y[rows])
        assert policy.model_.sequence.n_free == 0
        orders.append(policy.model_.sequence.order.tolist())
    return orders


def test_pima_fold_0(pima_orders: list[list[int]]) -> None:
    assert pima_orders[0] == [7, 5, 6, 0, 3, 2, 1, 4]


def test_all_pima_folds_are_the_authors_orders(
    pima_orders: list[list[int]], shared_dir: Path
) -> None:
    path = shared_dir / "reference" / "authors_group_lasso_sequences.json"
    theirs = json.loads(path.read_text())["pima"]
    for f, sets in enumerate(theirs):
        # Their last set holds all covariates in the order in which they entered.
        assert pima_orders[f] == sets[-1]
        for size, members in enumerate(sets):
            assert set(pima_orders[f][:size]) == set(members)

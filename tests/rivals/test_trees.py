"""Trees against brute force, and forests against a walk node by node."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from adacos import Costs
from adacos.rivals.trees import NEVER, Bins, Forest, cut, grow_tree, order_of, plant


def draw(seed: int, n: int, m: int, missing: float = 0.0) -> tuple[Any, Any, Any]:
    """Coarse values (so that ties occur), targets and weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, m)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    X[0] = 0.0
    X[1] = 5.0
    weight = rng.uniform(0.2, 2.0, n)
    return X, weight * rng.normal(size=n), weight


def loss(gradient: Any, weight: Any, parts: list[Any], ridge: float) -> float:
    """1/2 Σ w (r - h)² + ridge/2 Σ h² at the best h of each part, up to a constant."""
    return -0.5 * sum(gradient[p].sum() ** 2 / (weight[p].sum() + ridge) for p in parts)


def costs_of(m: int, **panels: Any) -> Any:
    return Costs(np.linspace(0.5, 1.5, m), **panels).bind([f"x{i}" for i in range(m)])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("charge", [0.0, 0.15])
def test_first_split_is_the_best_of_all(seed: int, missing: float, charge: float) -> None:
    X, gradient, weight = draw(seed, 14, 3, missing)
    costs, ridge, m = costs_of(3), 0.5, 3
    everything = np.ones(len(X), dtype=bool)
    used = np.zeros(m, dtype=bool)
    used[seed % m] = True
    candidates = [(loss(gradient, weight, [everything], ridge), -1)]
    for j in range(m):
        values = np.unique(X[~np.isnan(X[:, j]), j])
        for threshold, missing_left in itertools.product(values[:-1], (True, False)):
            left = np.where(np.isnan(X[:, j]), missing_left, X[:, j] <= threshold)
            price = 0.0 if used[j] else charge * costs.covariates[j]
            candidates.append((loss(gradient, weight, [left, ~left], ridge) + price, j))
    least, column = min(candidates)
    tree, leaf = grow_tree(
        cut(X),
        gradient,
        weight,
        depth=1,
        source=np.arange(m),
        costs=costs,
        charge=charge,
        used=(after := used.copy()),
        ridge=ridge,
    )
    assert tree.column[0] == column
    paid = charge * costs.covariates[after & ~used].sum()
    parts = [leaf == k for k in np.unique(leaf)]
    assert loss(gradient, weight, parts, ridge) + paid == pytest.approx(least, abs=1e-12)
    for part, k in zip(parts, np.unique(leaf), strict=True):
        assert tree.value[k] == pytest.approx(gradient[part].sum() / (weight[part].sum() + ridge))


@pytest.mark.parametrize("seed", range(6))
def test_every_split_of_a_deep_tree_is_the_best_of_its_node(seed: int) -> None:
    X, gradient, weight = draw(seed, 60, 4, 0.1)
    kwargs = {"source": np.arange(4), "costs": costs_of(4), "charge": 0.0, "ridge": 0.5}
    tree, leaf = grow_tree(
        cut(X), gradient, weight, depth=3, used=np.zeros(4, dtype=bool), **kwargs
    )
    reached = leaf.copy()
    for node in range(len(tree.column) - 1, -1, -1):
        inside = np.flatnonzero(reached == node)
        reached[inside] = (node - 1) // 2
        if len(inside) == 0 or node >= 7:
            continue
        stump, _ = grow_tree(
            Bins(cut(X).codes[:, inside], cut(X).edges),
            gradient[inside],
            weight[inside],
            depth=1,
            used=np.zeros(4, dtype=bool),
            **kwargs,
        )
        assert stump.column[0] == tree.column[node]
        assert stump.threshold[0] == tree.threshold[node]


def test_a_covariate_is_paid_once_and_a_panel_only_in_part() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    gradient = np.where(X[:, 0] > 0, 1.0, -1.0) + 0.8 * np.sign(X[:, 1])
    gains = {"ridge": 0.0, "depth": 2, "source": np.arange(2)}
    panel = {"panels": {"blood": (90.0, [0, 1])}}
    alone = Costs([100.0, 100.0]).bind(["x0", "x1"])
    together = Costs([100.0, 100.0], **panel).bind(["x0", "x1"])
    for costs, columns in ((alone, {0}), (together, {0, 1})):
        used = np.zeros(2, dtype=bool)
        tree, _ = grow_tree(
            cut(X), gradient, np.ones(400), costs=costs, charge=1.3, used=used, **gains
        )
        assert set(tree.column[tree.column >= 0]) == columns
        assert set(np.flatnonzero(used)) == columns
    # Once it has been used it is free.
    used = np.array([True, True])
    tree, _ = grow_tree(cut(X), gradient, np.ones(400), costs=alone, charge=1.3, used=used, **gains)
    assert set(tree.column[:3]) == {0, 1}


def test_all_indicators_of_a_category_cost_once() -> None:
    rng = np.random.default_rng(1)
    category = rng.integers(0, 3, 300)
    gradient = np.array([-1.0, 0.0, 1.0])[category]
    tree, _ = grow_tree(
        cut(np.eye(3)[category]),
        gradient,
        np.ones(300),
        depth=2,
        source=np.zeros(3, dtype=np.intp),
        costs=Costs([60.0]).bind(["kind"]),
        charge=1.0,
        used=np.zeros(1, dtype=bool),
    )
    # The second split alone gains less than the price.
    assert (tree.column >= 0).sum() == 2


def test_unknown_values_follow_the_heavier_child_unless_training_knows_better() -> None:
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    gradient = np.array([1.0, 1.0, 1.0, -1.0])
    kwargs = {
        "depth": 1,
        "source": np.array([0]),
        "costs": Costs([0.0]).bind(["x0"]),
        "charge": 0.0,
    }
    tree, _ = grow_tree(cut(X), gradient, np.ones(4), used=np.zeros(1, dtype=bool), **kwargs)
    assert tree.missing_left[0]
    X = np.append(X, [[np.nan]], axis=0)
    gradient = np.append(gradient, -1.0)
    tree, leaf = grow_tree(cut(X), gradient, np.ones(5), used=np.zeros(1, dtype=bool), **kwargs)
    assert not tree.missing_left[0]
    assert leaf.tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize("n", [5, 100, 5000])
def test_bins_keep_the_order_and_their_edges_lie_between_values(n: int) -> None:
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.normal(size=n), np.round(rng.exponential(size=n), 1), np.ones(n)])
    X[rng.random(X.shape) < 0.05] = np.nan
    X[0, 2] = 1.0
    bins = cut(X, 64)
    width = bins.edges.shape[1]
    assert width <= 64
    for values, codes, edges in zip(X.T, bins.codes, bins.edges, strict=True):
        unknown = np.isnan(values)
        np.testing.assert_array_equal(codes == width, unknown)
        edges = edges[~np.isnan(edges)]
        assert not np.isin(edges, values).any()
        below = (values[~unknown, None] > edges).sum(axis=1)
        np.testing.assert_array_equal(codes[~unknown], below)
    # Quantile bins hold similar numbers of rows.
    counts = np.bincount(bins.codes[0][~np.isnan(X[:, 0])])
    assert counts.max() <= max(2 * n // 64 + 1, 1)


def test_neighbouring_floats_are_reported_apart() -> None:
    x = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    bins = cut(x)
    assert bins.codes.tolist() == [[0, 1]]
    np.testing.assert_array_equal(x[:, 0] <= bins.edges[0, 0], [True, False])


def grown_forest(seed: int, n_trees: int, depth: int) -> tuple[Forest, Any, list[Any]]:
    X, gradient, weight = draw(seed, 80, 5, 0.15)
    rng = np.random.default_rng(seed)
    source = np.array([0, 1, 2, 2, 3])
    costs = costs_of(4)
    used = np.zeros(4, dtype=bool)
    trees, leaves = [], []
    for _ in range(n_trees):
        tree, leaf = grow_tree(
            cut(X),
            gradient + rng.normal(size=80),
            weight,
            depth=depth,
            source=source,
            costs=costs,
            charge=0.5,
            used=used,
            min_weight=2.0,
        )
        trees.append(tree)
        leaves.append(tree.value[leaf])
    return plant(trees, depth, source), X, leaves


@pytest.mark.parametrize("seed", range(4))
def test_forest_against_a_walk_row_by_row(seed: int) -> None:
    forest, X, leaves = grown_forest(seed, 6, 3)
    values, first_use = forest.walk(X)
    np.testing.assert_array_equal(values, np.column_stack(leaves))
    order = order_of(first_use)
    for row, x in enumerate(X):
        seen: list[int] = []
        for t, root in enumerate(forest.roots):
            node = root
            while forest.column[node] >= 0:
                value = x[forest.column[node]]
                covariate = forest.source[forest.column[node]]
                if not np.isnan(value) and covariate not in seen:
                    seen.append(covariate)
                    assert first_use[row, covariate] // forest.depth == t
                left = (
                    forest.missing_left[node]
                    if np.isnan(value)
                    else value <= forest.threshold[node]
                )
                node = forest.children[node, 0 if left else 1]
            assert values[row, t] == forest.value[node]
        assert [k for k in order[row] if k >= 0] == seen
        assert set(np.flatnonzero(first_use[row] < NEVER)) == set(seen)


def test_rows_are_walked_alike_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    forest, X, _ = grown_forest(9, 5, 3)
    values, first_use = forest.walk(X)
    monkeypatch.setattr("adacos.rivals.trees._WALKED_AT_ONCE", 35)
    again, again_use = forest.walk(X)
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(again_use, first_use)

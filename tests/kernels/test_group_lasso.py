"""Group lasso against an independent solver, its optimality conditions and the authors' orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.preprocessing import SplineTransformer

from adacos.exceptions import InvalidInputError
from adacos.kernels.group_lasso import RIDGE, entry_order, solve, solve_path

Array = NDArray[np.float64]
PIMA_COSTS = np.array([1, 17.61, 1, 1, 22.78, 1, 1, 1])
HEART_COSTS = np.array([1, 1, 1, 1, 7.27, 5.20, 15.50, 102.90, 87.30, 87.30, 87.30, 100.90, 102.90])


def standardise(X: Array) -> Array:
    X = X - X.mean(axis=0)
    std = X.std(axis=0)
    return np.where(std > 1e-12, X / np.where(std > 1e-12, std, 1.0), 0.0)


def draw(
    seed: int, n: int, p: int, size: int, *, correlation: float = 0.6, signal: float = 1.0
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Correlated groups of columns; the influence of a group falls with its index."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 1))
    X = standardise(correlation * shared + rng.normal(size=(n, p * size)))
    beta = signal * rng.normal(size=p * size) / (1 + np.repeat(np.arange(p), size))
    y = (rng.random(n) < 1 / (1 + np.exp(-(X @ beta - 0.5)))).astype(float)
    return X, y, np.repeat(np.arange(p), size)


def objective(
    X: Array, y: Array, groups: Any, w: Array, lam: float, s: Array, b: float, beta: Array
) -> float:
    norms = np.array([np.linalg.norm(beta[groups == g]) for g in range(len(w))])
    loss = s @ np.logaddexp(0, -(2 * y - 1) * (b + X @ beta))
    return float(loss + RIDGE * s.sum() / 2 * beta @ beta + lam * w @ norms)


def proximal_gradient(
    X: Array, y: Array, groups: Any, w: Array, lam: float, s: Array
) -> tuple[float, Array]:
    """Accelerated proximal gradient with restarts, run until it no longer moves."""
    A = np.column_stack([np.ones(len(y)), X])
    ridge = np.r_[0.0, np.full(X.shape[1], RIDGE * s.sum())]
    step = 1 / (np.linalg.norm(A * np.sqrt(s)[:, None], 2) ** 2 / 4 + ridge.max())
    members = [np.flatnonzero(groups == g) + 1 for g in range(len(w))]
    theta = z = np.zeros(A.shape[1])
    t = 1.0
    for _ in range(100_000):
        gradient = A.T @ (s * (1 / (1 + np.exp(-A @ z)) - y)) + ridge * z
        new = z - step * gradient
        for g, columns in enumerate(members):
            norm = np.linalg.norm(new[columns])
            if w[g] > 0:
                new[columns] *= max(0.0, 1 - step * lam * w[g] / norm) if norm > 0 else 0.0
        if np.abs(new - z).max() < 1e-12:
            break
        if (z - new) @ (new - theta) > 0:
            t, z = 1.0, new
        else:
            t, momentum = (1 + np.sqrt(1 + 4 * t * t)) / 2, t - 1
            z = new + momentum / t * (new - theta)
        theta = new
    return float(new[0]), new[1:]


def assert_optimal(
    X: Array, y: Array, groups: Any, w: Array, lam: float, b: float, beta: Array, tol: float
) -> None:
    residual = 1 / (1 + np.exp(-(b + X @ beta))) - y
    gradient = X.T @ residual + RIDGE * len(y) * beta
    assert abs(residual.sum()) <= tol * lam * w[w > 0].min()
    for g in range(len(w)):
        grad, coef = gradient[groups == g], beta[groups == g]
        norm = np.linalg.norm(coef)
        if w[g] == 0:
            assert np.linalg.norm(grad) <= tol * lam * w[w > 0].min()
        elif norm > 0:
            assert np.linalg.norm(grad + lam * w[g] * coef / norm) <= tol * lam * w[g]
        else:
            assert np.linalg.norm(grad) <= lam * w[g] * (1 + tol)


def lam_max(X: Array, y: Array, groups: Any, w: Array) -> float:
    gradient = X.T @ (y - y.mean())
    return float(max(np.linalg.norm(gradient[groups == g]) / w[g] for g in range(len(w))))


def grid_order(X: Array, y: Array, groups: Any, w: Array, ratio: float) -> list[int]:
    """Order of first entry on a fine grid of λ, which must see groups one at a time."""
    order: list[int] = []
    lam, previous = 1.01 * lam_max(X, y, groups, w), None
    while len(order) < len(w):
        lam *= ratio
        previous = solve(X, y, groups, w, lam, init=previous)
        new = [g for g in range(len(w)) if previous.coef[groups == g].any() and g not in order]
        assert len(new) <= 1, "the grid is too coarse to be an oracle for this problem"
        order += new
    return order


@pytest.mark.parametrize("share", [0.9, 0.3, 0.05, 0.002])
@pytest.mark.parametrize("weighted", [False, True])
def test_same_minimum_as_proximal_gradient(share: float, weighted: bool) -> None:
    X, y, groups = draw(3, n=60, p=4, size=3)
    w = np.array([1.0, 0.0, 2.0, 0.5])
    s = np.random.default_rng(1).integers(0, 4, len(y)) / 1.5 if weighted else np.ones(len(y))
    lam = share * lam_max(X, y, groups, np.maximum(w, 0.5))
    ours = solve(X, y, groups, w, lam, sample_weight=s)
    b, beta = proximal_gradient(X, y, groups, w, lam, s)
    best = objective(X, y, groups, w, lam, s, b, beta)
    assert objective(X, y, groups, w, lam, s, ours.intercept, ours.coef) == pytest.approx(
        best, rel=1e-7
    )
    np.testing.assert_allclose(ours.coef, beta, atol=1e-4)
    np.testing.assert_array_equal(ours.coef == 0, np.abs(beta) < 1e-9)


def test_sample_weights_repeat_rows() -> None:
    X, y, groups = draw(5, n=60, p=4, size=3)
    w = np.ones(4)
    s = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = solve(X, y, groups, w, 2.0, sample_weight=s, tol=1e-9)
    repeated = solve(np.repeat(X, s, axis=0), np.repeat(y, s), groups, w, 2.0, tol=1e-9)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_optimality_conditions_on_a_large_problem(share: float) -> None:
    X, y, groups = draw(0, n=5000, p=30, size=10, signal=0.3)
    w = np.random.default_rng(0).uniform(0.5, 3, 30)
    w[[3, 17]] = 0.0
    lam = share * lam_max(X, y, groups, np.maximum(w, 0.5))
    result = solve(X, y, groups, w, lam)
    assert result.kkt <= 1e-6
    assert_optimal(X, y, groups, w, lam, result.intercept, result.coef, tol=2e-6)


def test_start_does_not_change_the_minimum() -> None:
    X, y, groups = draw(4, n=100, p=5, size=3)
    w = np.ones(5)
    cold = solve(X, y, groups, w, 3.0)
    warm = solve(X, y, groups, w, 3.0, init=solve(X, y, groups, w, 1.0))
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-5)
    assert solve(X, y, groups, w, 3.0, init=cold).iterations == 0


def test_a_path_gives_the_minimum_at_each_strength() -> None:
    X, y, groups = draw(3, 200, 6, 3)
    w = np.array([0.3, 1.0, 2.0, 1.0, 0.5, 1.0])
    lams = [*np.geomspace(0.9, 1e-2, 5) * lam_max(X, y, groups, w), 0.0]
    for lam, found in zip(lams, solve_path(X, y, groups, w, lams), strict=True):
        alone = solve(X, y, groups, w, lam)
        np.testing.assert_allclose(found.coef, alone.coef, atol=1e-4)
        assert found.kkt <= 1e-6


def test_one_group_leaves_zero_at_lam_max() -> None:
    X, y, groups = draw(1, n=200, p=6, size=4)
    w = np.array([1, 2, 1, 3, 1, 1.0])
    top = lam_max(X, y, groups, w)
    assert not solve(X, y, groups, w, 1.0001 * top).coef.any()
    assert len(np.unique(groups[solve(X, y, groups, w, 0.9999 * top).coef != 0])) == 1
    assert entry_order(X, y, groups, w).lam[0] == pytest.approx(top, rel=1e-6)


@pytest.mark.parametrize("lam", [0.0, 1e-6, 1.0])
def test_separated_classes_have_a_minimum(lam: float) -> None:
    X, _, groups = draw(2, n=80, p=4, size=3)
    y = (X[:, 0] > 0).astype(float)
    result = solve(X, y, groups, np.array([0.0, 1, 1, 1]), lam)
    assert result.kkt <= 1e-6
    assert np.isfinite(result.coef).all()


@pytest.mark.parametrize("weights", [[0, 0, 1, 0], [1, 1, 1, 1]])
def test_duplicate_and_zero_columns_converge(weights: list[float]) -> None:
    X, y, groups = draw(2, n=80, p=4, size=3)
    X[:, 3:6], X[:, 9:] = X[:, :3], 0.0
    result = solve(X, y, groups, weights, 0.5)
    assert result.kkt <= 1e-6
    assert not result.coef[9:].any()
    # The ridge makes the minimum unique: twins share alike.
    np.testing.assert_allclose(result.coef[:3], result.coef[3:6], atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_order_is_that_of_a_fine_grid(seed: int) -> None:
    X, y, groups = draw(seed, n=150, p=6, size=3, signal=0.6)
    w = np.random.default_rng(seed).uniform(0.5, 4, 6)
    assert entry_order(X, y, groups, w).order == grid_order(X, y, groups, w, ratio=0.99)


def test_entry_lambdas_bracket_the_support() -> None:
    X, y, groups = draw(7, n=150, p=6, size=3, signal=0.6)
    w = np.ones(6)
    entries = entry_order(X, y, groups, w)
    assert (np.diff(entries.lam) <= 0).all()
    for g, lam in zip(entries.order, entries.lam, strict=True):
        assert not solve(X, y, groups, w, 1.02 * lam).coef[groups == g].any()
        assert solve(X, y, groups, w, 0.98 * lam).coef[groups == g].any()


def test_order_ignores_the_order_of_rows() -> None:
    X, y, groups = draw(8, n=150, p=8, size=4)
    rows = np.random.default_rng(0).permutation(len(y))
    w = np.ones(8)
    assert entry_order(X, y, groups, w).order == entry_order(X[rows], y[rows], groups, w).order


def test_unpenalised_groups_are_not_in_the_order() -> None:
    X, y, groups = draw(9, n=150, p=6, size=3)
    assert sorted(entry_order(X, y, groups, [1, 0, 1, 1, 0, 2]).order) == [0, 2, 3, 5]
    assert entry_order(X, y, groups, np.zeros(6)).order == []


def test_constant_covariates_come_last() -> None:
    X, y, groups = draw(10, n=150, p=5, size=3)
    X[:, groups == 1] = 0.0
    X[:, groups == 0] = 0.0
    entries = entry_order(X, y, groups, np.ones(5))
    assert entries.order[-2:] == [0, 1]
    assert (entries.lam[-2:] == 0).all()
    assert (entries.lam[:-2] > 0).all()
    assert entry_order(0 * X, y, groups, np.ones(5)).order == [0, 1, 2, 3, 4]


def test_twins_enter_together_in_order_of_index() -> None:
    X, y, groups = draw(11, n=150, p=5, size=3)
    strongest = entry_order(X, y, groups, np.ones(5)).order[0]
    twin = 4 if strongest != 4 else 0
    X[:, groups == twin] = X[:, groups == strongest]
    entries = entry_order(X, y, groups, np.ones(5))
    assert entries.order[:2] == sorted([strongest, twin])
    assert entries.lam[0] == pytest.approx(entries.lam[1], rel=1e-3)
    costlier = np.ones(5)
    costlier[twin] = 1.5
    assert entry_order(X, y, groups, costlier).order[-1] == twin


@pytest.mark.parametrize(("n", "p"), [(80, 6), (20, 12)])
def test_order_on_separated_classes_is_complete(n: int, p: int) -> None:
    X, _, groups = draw(12, n=n, p=p, size=5)
    y = (X[:, 0] + X[:, 5] > 0).astype(float)
    w = np.geomspace(1, 100, p)
    assert sorted(entry_order(X, y, groups, w).order) == list(range(p))
    w[0] = 0.0
    assert sorted(entry_order(X, y, groups, w).order) == list(range(1, p))


@pytest.mark.parametrize(
    ("parameter", "change"),
    [
        ("X", {"X": np.full((20, 4), np.nan)}),
        ("y", {"y": np.ones(20)}),
        ("y", {"y": np.arange(20)}),
        ("y", {"sample_weight": np.arange(20) % 2}),
        ("groups", {"groups": [0, 1, 0, 1]}),
        ("groups", {"groups": [1, 1, 2, 2]}),
        ("weights", {"weights": [1, -1]}),
        ("weights", {"weights": [1, 1, 1]}),
        ("sample_weight", {"sample_weight": -np.ones(20)}),
        ("lam", {"lam": -1.0}),
        ("resolution", {"resolution": 0.0}),
    ],
)
def test_bad_input_names_the_parameter(parameter: str, change: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    arguments: dict[str, Any] = {
        "X": rng.normal(size=(20, 4)),
        "y": np.arange(20) % 2,
        "groups": [0, 0, 1, 1],
        "weights": [1, 1],
    } | change
    call: Any = entry_order
    if "resolution" not in change:
        call, arguments = solve, {"lam": 1.0} | arguments
    with pytest.raises(InvalidInputError) as caught:
        call(**arguments)
    assert caught.value.parameter == parameter


def spline_columns(table: pd.DataFrame, size: int) -> tuple[Array, Array, NDArray[np.intp]]:
    covariates = table.drop(columns=["y", "test_fold"])
    filled = covariates.fillna(covariates.mean()).to_numpy(dtype=float)
    columns = SplineTransformer(n_knots=size - 2, degree=3).fit_transform(filled)
    groups = np.repeat(np.arange(filled.shape[1]), size)
    return standardise(columns), table["y"].to_numpy(dtype=float), groups


# With 20 columns per covariate (the default of the authors' additive model) the sets of their path
# on a coarse grid of λ must be unions of ours.
@pytest.mark.parametrize(("name", "costs"), [("pima", PIMA_COSTS), ("heart", HEART_COSTS)])
@pytest.mark.parametrize("fold", range(5))
def test_authors_sequences(shared_dir: Path, name: str, costs: Array, fold: int) -> None:
    reference = json.loads(
        (shared_dir / "reference" / "authors_group_lasso_sequences.json").read_text()
    )
    table = pd.read_csv(shared_dir / "data" / f"{name}.csv")
    X, y, groups = spline_columns(table[table["test_fold"] != fold], size=20)
    order = entry_order(X, y, groups, costs).order
    for covariates in reference[name][fold]:
        assert set(order[: len(covariates)]) == set(covariates)


def test_pima_order_is_that_of_proximal_gradient(shared_dir: Path) -> None:
    table = pd.read_csv(shared_dir / "data" / "pima.csv")
    X, y, groups = spline_columns(table[table["test_fold"] != 0], size=10)
    entries = entry_order(X, y, groups, PIMA_COSTS)
    assert entries.order == [7, 5, 6, 3, 0, 2, 1, 4]
    # Covariates 3 and 0 enter within 3% of λ: the independent solver between the two.
    lam = np.sqrt(entries.lam[3] * entries.lam[4])
    _, beta = proximal_gradient(X, y, groups, PIMA_COSTS, lam, np.ones(len(y)))
    assert set(groups[np.abs(beta) > 1e-9]) == {7, 5, 6, 3}

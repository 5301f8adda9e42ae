"""Folds, blend weights and the honesty of leave-out log-odds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.special import expit

from adacos.kernels import strengths
from adacos.kernels.folds import stratified_folds
from adacos.kernels.strengths import (
    RIDGE_GRID,
    SMOOTHNESS_GRID,
    blend_strengths,
    fixed_strengths,
    row_loss,
    stack_weights,
)
from adacos.typing import Floats, Ints

# Folds


tables = st.tuples(st.integers(20, 80), st.integers(1, 4), st.integers(2, 12), st.integers(0, 999))


def table(n: int, p: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    y = np.zeros(n)
    y[rng.permutation(n)[: rng.integers(3, n - 3)]] = 1.0
    return rng.normal(size=(n, p)), y


@given(tables)
def test_folds_are_stratified_and_of_equal_size(case: tuple[int, int, int, int]) -> None:
    n, p, n_folds, seed = case
    X, y = table(n, p, seed)
    fold = stratified_folds(X, y, n_folds, seed)
    used = max(min(n_folds, int(y.sum()), int(n - y.sum())), 2)
    assert set(fold) == set(range(used))
    for rows in (y == 0, y == 1, np.ones(n, dtype=bool)):
        counts = np.bincount(fold[rows], minlength=used)
        assert counts.max() - counts.min() <= 1


@given(tables)
def test_folds_do_not_depend_on_the_order_of_rows(case: tuple[int, int, int, int]) -> None:
    n, p, n_folds, seed = case
    X, y = table(n, p, seed)
    shuffled = np.random.default_rng(seed + 1).permutation(n)
    np.testing.assert_array_equal(
        stratified_folds(X, y, n_folds, 3)[shuffled],
        stratified_folds(X[shuffled], y[shuffled], n_folds, 3),
    )


def test_copies_are_dealt_to_different_folds() -> None:
    """Held out together, the copies of a discrete row would turn the held-out answers around."""
    X, y = np.repeat([[0.0], [1.0]], 60, axis=0), np.tile([0.0, 1.0], 60)
    fold = stratified_folds(X, y, 5, 0)
    cells = np.stack(
        [
            np.bincount(fold[(X[:, 0] == a) & (y == b)], minlength=5)
            for a in (0.0, 1.0)
            for b in (0.0, 1.0)
        ]
    )
    assert cells.min() > 0


def test_rows_with_missing_values_are_dealt_too() -> None:
    X, y = table(60, 3, 0)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = np.nan
    assert set(stratified_folds(X, y, 5, 0)) == set(range(5))


def test_the_seed_changes_the_folds() -> None:
    X, y = table(60, 3, 0)
    assert np.any(stratified_folds(X, y, 5, 0) != stratified_folds(X, y, 5, 1))


def test_one_row_of_a_class_still_gives_two_folds() -> None:
    X, y = np.arange(10.0)[:, None], np.r_[1.0, np.zeros(9)]
    assert set(stratified_folds(X, y, 10, 0)) == {0, 1}


# Blend weights


def candidates(
    seed: int, n: int, k: int, spread: float, separation: float
) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    truth = separation * rng.normal(size=n)
    y = (rng.random(n) < expit(truth)).astype(float)
    log_odds = truth[:, None] * rng.uniform(0, 2, k) + spread * rng.normal(size=(n, k))
    return log_odds, y, rng.uniform(0.2, 2.0, n)


@given(
    st.integers(0, 10**6),
    st.integers(2, 13),
    st.sampled_from([0.01, 0.3, 2.0, 50.0]),
    st.sampled_from([1.0, 6.0, 30.0]),
)
def test_blend_weights_are_the_optimum_on_the_simplex(
    seed: int, k: int, spread: float, separation: float
) -> None:
    log_odds, y, weight = candidates(seed, 80, k, spread, separation)
    shares = stack_weights(log_odds, y, weight)
    assert np.all(shares >= 0)
    assert shares.sum() == pytest.approx(1.0)

    def value(w: Floats) -> float:
        mixed = log_odds @ w
        return float(weight @ (np.logaddexp(0, mixed) - y * mixed))

    # Optimal on a simplex: nothing is gained on the way to a corner or from one share to another.
    slack = 1e-6 * (1 + value(shares))
    corners = np.eye(k)
    ways = [corner - shares for corner in corners]
    ways += [
        shares[j] * (corners[i] - corners[j])
        for i in range(k)
        for j in range(k)
        if shares[j] > 1e-3
    ]
    gradient = log_odds.T @ (weight * (expit(log_odds @ shares) - y))
    for way in sorted(ways, key=lambda way: gradient @ way)[:6]:
        there = minimize_scalar(
            lambda t, way=way: value(shares + t * way), bounds=(0, 1), method="bounded"
        )
        assert value(shares) <= there.fun + slack
    theirs = minimize(
        value,
        np.full(k, 1 / k),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert value(shares) <= value(theirs.x / theirs.x.sum()) + slack


def test_a_perfect_candidate_takes_all() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(50) < 0.5).astype(float)
    noise = rng.normal(size=(50, 3))
    log_odds = np.column_stack([noise[:, 0], 3.0 * (2 * y - 1), noise[:, 1:]])
    np.testing.assert_allclose(stack_weights(log_odds, y, np.ones(50)), [0, 1, 0, 0], atol=1e-6)


def test_equal_candidates_are_no_difficulty() -> None:
    log_odds = np.repeat(np.random.default_rng(0).normal(size=(40, 1)), 5, axis=1)
    y = (np.arange(40) % 2).astype(float)
    assert stack_weights(log_odds, y, np.ones(40)).sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(stack_weights(log_odds[:, :1], y, np.ones(40)), [1.0])


def test_enormous_log_odds_are_no_difficulty() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(60) < 0.5).astype(float)
    log_odds = 1e4 * rng.normal(size=(60, 4))
    shares = stack_weights(log_odds, y, np.ones(60))
    assert np.all(np.isfinite(shares))
    single = row_loss(log_odds, y).sum(axis=0).min()
    assert row_loss(log_odds @ shares, y).sum() <= single


# Leave-out log-odds


def problem(
    seed: int, n: int = 90, separated: bool = False
) -> tuple[Floats, Floats, Floats, Ints, Ints, NDArray[np.bool_]]:
    """Two covariates with a straight and two bent columns each, in terms 0 to 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    design = np.column_stack(
        [np.ones(n), X, *(np.sin(k * X[:, [j]]) for j in (0, 1) for k in (2, 3))]
    )
    truth = 1.3 * X[:, 0] + np.sin(2 * X[:, 1])
    y = truth > 0 if separated else rng.random(n) < expit(truth)
    term = np.array([-1, 0, 1, 2, 2, 3, 3])
    linear = np.array([True, True, False, False])
    weight = np.ones(n) if separated else rng.uniform(0.5, 2.0, n)
    return design, y.astype(float), weight, rng.permutation(n) % 4, term, linear


def refit(design: Floats, y: Floats, weight: Floats, penalty: Floats) -> Floats:
    """Penalised logistic regression by a general optimiser."""

    def value(b: Floats) -> tuple[float, Floats]:
        odds = design @ b
        gradient = design.T @ (weight * (expit(odds) - y)) + penalty * b
        loss = weight @ (np.logaddexp(0, odds) - y * odds) + 0.5 * penalty @ b**2
        return float(loss), gradient

    start = np.zeros(design.shape[1])
    return minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-6}).x


def refits_without_each_fold(
    design: Floats, y: Floats, weight: Floats, fold: Ints, term: Ints
) -> Floats:
    """Held-out log-odds of every point of the grid of common strengths."""
    grid = [(smoothness, ridge) for smoothness in SMOOTHNESS_GRID for ridge in RIDGE_GRID]
    held_out = np.empty((len(y), len(grid)))
    for c, (smoothness, ridge) in enumerate(grid):
        penalty = np.select([term < 0, term < 2], [1e-8 * weight.sum(), ridge], smoothness)
        for f in range(fold.max() + 1):
            rows = fold != f
            held_out[~rows, c] = design[~rows] @ refit(design[rows], y[rows], weight[rows], penalty)
    return held_out


@pytest.mark.parametrize("separated", [False, True])
def test_common_strengths_follow_the_documented_recipe(separated: bool) -> None:
    """Everything anew with slow general optimisers: refits, weights on the other folds, blend."""
    design, y, weight, fold, term, linear = problem(0, separated=separated)
    blend = blend_strengths(design, y, weight, fold, term, linear, families=("common",))
    held_out = refits_without_each_fold(design, y, weight, fold, term)

    def best(rows: NDArray[np.bool_]) -> Floats:
        k = held_out.shape[1]

        def value(w: Floats) -> float:
            mixed = held_out[rows] @ w
            return float(weight[rows] @ (np.logaddexp(0, mixed) - y[rows] * mixed))

        return minimize(
            value,
            np.full(k, 1 / k),
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-10, "maxiter": 500},
        ).x

    expected = np.empty(len(y))
    for f in range(4):
        rows = fold == f
        expected[rows] = held_out[rows] @ best(~rows)
    assert np.abs(expit(blend.out_of_fold_log_odds) - expit(expected)).max() < 0.01
    loss = weight @ (np.logaddexp(0, expected) - y * expected)
    assert blend.out_of_fold_loss == pytest.approx(loss, rel=2e-3)
    ours = blend.out_of_fold_log_odds
    assert blend.out_of_fold_loss == pytest.approx(weight @ row_loss(ours, y), rel=1e-12)
    # The model itself is the blend of the fits on all rows, with the weights of all folds.
    grid = [(s, r) for s in SMOOTHNESS_GRID for r in RIDGE_GRID]
    fits = [
        refit(design, y, weight, np.select([term < 0, term < 2], [1e-8, r], s)) for s, r in grid
    ]
    whole = design @ np.stack(fits, axis=1) @ best(np.ones(len(y), dtype=bool))
    assert np.abs(expit(design @ blend.coef) - expit(whole)).max() < 0.01


@pytest.mark.parametrize("f", [0, 3])
def test_labels_of_a_fold_cannot_reach_its_out_of_fold_log_odds_but_through_the_weights(
    f: int,
) -> None:
    """However its labels are changed, a fold is answered by a blend of refits without it.

    The candidates' refits do not know the labels of the fold at all; the weights know them only
    through the fits of the other folds, and not through any loss on the fold itself.
    """
    design, y, weight, fold, term, linear = problem(1)
    own = fold == f
    refits = refits_without_each_fold(design, y, weight, fold, term)[own]
    for changed in (y, np.where(own, 1 - y, y), np.where(own, 1.0, y)):
        blend = blend_strengths(design, changed, weight, fold, term, linear, families=("common",))
        out_of_fold = blend.out_of_fold_log_odds[own]
        # Is it in the convex hull of the refits? Least squares on the simplex tells.
        heavy = 1e3 * np.ones((1, refits.shape[1]))
        _, distance = nnls(np.vstack([refits, heavy]), np.append(out_of_fold, 1e3))
        assert distance / np.sqrt(own.sum()) < 0.01


def test_labels_of_a_fold_hardly_reach_its_restricted_likelihood_fit() -> None:
    """The start and the kept curvature come from all rows, the strengths and the fit do not."""
    design, y, weight, fold, term, linear = problem(2, n=200)
    own = fold == 1
    before = blend_strengths(design, y, weight, fold, term, linear, families=("per_covariate",))
    few = own & (np.arange(len(y)) % 5 == 0)
    changed = np.where(few, 1 - y, y)
    after = blend_strengths(
        design, changed, weight, fold, term, linear, families=("per_covariate",)
    )
    moved = np.abs(expit(before.out_of_fold_log_odds) - expit(after.out_of_fold_log_odds))
    assert moved[own].max() < 0.02
    assert moved[~own].max() > 0.05


@pytest.mark.parametrize("separated", [False, True])
def test_given_strengths_are_dropped_by_true_refits(separated: bool) -> None:
    design, y, weight, fold, term, _ = problem(3, separated=separated)
    strengths = np.array([0.5, 2.0, 5.0, 20.0])
    fit = fixed_strengths(design, y, weight, fold, term, strengths)
    penalty = np.where(term >= 0, strengths[term], 1e-8 * weight.sum())
    np.testing.assert_allclose(fit.coef, refit(design, y, weight, penalty), atol=1e-4)
    expected = np.empty(len(y))
    for f in range(4):
        rows = fold != f
        expected[~rows] = design[~rows] @ refit(design[rows], y[rows], weight[rows], penalty)
    assert np.abs(expit(fit.out_of_fold_log_odds) - expit(expected)).max() < 3e-3
    assert fit.out_of_fold_loss == pytest.approx(weight @ row_loss(expected, y), rel=1e-3)
    np.testing.assert_array_equal(fit.strengths, strengths)


def test_families_can_be_taken_alone_and_together() -> None:
    design, y, weight, fold, term, linear = problem(4)
    both = blend_strengths(design, y, weight, fold, term, linear)
    common = blend_strengths(design, y, weight, fold, term, linear, families=("common",))
    own = blend_strengths(design, y, weight, fold, term, linear, families=("per_covariate",))
    for one in (common, own):
        assert np.abs(one.out_of_fold_log_odds - both.out_of_fold_log_odds).max() > 1e-3
    # Common strengths lie on the grid's range and are equal within a kind; the others are not.
    assert common.strengths[0] == pytest.approx(common.strengths[1])
    assert common.strengths[2] == pytest.approx(common.strengths[3])
    assert own.strengths[0] != pytest.approx(own.strengths[1])


def test_without_wiggly_parts_smoothness_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blend is that of the ridge strengths alone."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(150), rng.integers(0, 2, (150, 3)).astype(float)])
    y = (design[:, 1:].sum(axis=1) + rng.logistic(size=150) > 1.5).astype(float)
    term, linear = np.array([-1, 0, 1, 2]), np.ones(3, dtype=np.bool_)
    rows = (design, y, np.ones(150), np.arange(150) % 5, term, linear)
    blend = blend_strengths(*rows)
    n_ridge = len(strengths.RIDGE_GRID)
    assert blend.used is not None
    assert not blend.used[n_ridge:-1].any()
    monkeypatch.setattr(strengths, "SMOOTHNESS_GRID", (7.0,))
    alone = blend_strengths(*rows)
    np.testing.assert_allclose(blend.coef, alone.coef, rtol=1e-12)
    np.testing.assert_allclose(blend.out_of_fold_log_odds, alone.out_of_fold_log_odds, rtol=1e-12)


def test_all_candidates_named_are_all_candidates() -> None:
    """Naming every candidate changes no bit; naming some fits no other."""
    design, y, weight, fold, term, linear = problem(seed=3, n=240)
    plain = blend_strengths(design, y, weight, fold, term, linear)
    named = blend_strengths(
        design, y, weight, fold, term, linear, candidates=np.ones(13, dtype=bool)
    )
    assert plain.mixture is not None
    assert named.mixture is not None
    before, after = (*plain[:-1], *plain.mixture), (*named[:-1], *named.mixture)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    assert plain.used is not None
    assert 0 < plain.used.sum() < 13
    few = blend_strengths(design, y, weight, fold, term, linear, candidates=plain.used)
    assert few.used is not None
    assert not np.any(few.used & ~plain.used)


@pytest.mark.parametrize("seed", [4, 5])
def test_strengths_chosen_on_a_part_of_the_rows_do_as_well(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The rule for many rows, brought down to few: held-out log-loss within 0.1%."""
    large = problem(seed=seed, n=2400)
    full = blend_strengths(*large)
    monkeypatch.setattr(strengths, "PART_ROWS", 600)
    part = blend_strengths(*large)
    assert not np.array_equal(part.coef, full.coef)
    assert part.out_of_fold_loss <= full.out_of_fold_loss * 1.001


def test_what_a_part_of_the_rows_cannot_see_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waves of falling height: a quarter of the rows prunes terms that all of them show."""
    rng = np.random.default_rng(2)
    n, p, size = 3000, 8, 6
    X = rng.uniform(-1, 1, (n, p))
    waves = [np.sin((m + 1) * np.pi * X) / (m + 1) for m in range(size)]
    design = np.hstack([np.ones((n, 1)), np.stack(waves, axis=2).reshape(n, -1)])
    log_odds = (np.sin(4 * X) * np.geomspace(1.5, 0.1, p)).sum(axis=1)
    y = (rng.random(n) < expit(log_odds)).astype(float)
    term, linear = np.append(-1, np.repeat(np.arange(p), size)), np.zeros(p, dtype=np.bool_)
    rows = design, y, np.ones(n), np.arange(n) % 5, term, linear
    full = blend_strengths(*rows, families=("per_covariate",))
    monkeypatch.setattr(strengths, "PART_ROWS", 750)
    part = blend_strengths(*rows, families=("per_covariate",))
    assert part.out_of_fold_loss <= full.out_of_fold_loss * 1.001


def test_a_part_of_the_rows_has_its_share_of_every_fold_and_class() -> None:
    rng = np.random.default_rng(0)
    fold, y = rng.integers(5, size=4000), (rng.random(4000) < 0.1).astype(float)
    rows = strengths.some_rows(fold, y, 4)
    assert len(rows) == 1000
    assert len(np.unique(rows)) == 1000
    for f in range(5):
        for label in (0, 1):
            own = (fold == f) & (y == label)
            assert abs(own[rows].sum() - own.sum() / 4) <= 1

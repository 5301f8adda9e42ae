"""Penalised logistic Newton against a general optimiser, refits, and numerical derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit

from adacos.kernels.irls import (
    PENALTY_FLOOR,
    cholesky,
    curvature,
    fellner_schall,
    fit_folds,
    fit_together,
    fold_grams,
    newton,
    objective,
    weighted_gram,
)
from adacos.typing import Floats


class Problem(NamedTuple):
    design: Floats
    y: Floats
    weight: Floats
    penalty: Floats


def draw(seed: int = 0, n: int = 200, p: int = 6, *, penalty: float = 1.0) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-0.5, 0.5, p)
    y = (rng.random(n) < expit(X @ rng.normal(size=p) - 0.7)).astype(float)
    strengths = penalty * rng.uniform(0.5, 2.0, p)
    design = np.column_stack([np.ones(n), X])
    return Problem(design, y, rng.uniform(0.5, 2.0, n), np.append(0.0, strengths))


def loss(coef: Floats, problem: Problem) -> float:
    """The documented objective, written out row by row."""
    total = 0.0
    for row, label, weight in zip(problem.design, problem.y, problem.weight, strict=True):
        odds = float(row @ coef)
        total += weight * (-np.log(expit(odds)) if label else -np.log(expit(-odds)))
    return total + 0.5 * float(np.sum(problem.penalty * coef**2))


def decrement(coef: Floats, problem: Problem) -> float:
    """Squared Newton decrement with the penalty floor, by plain linear algebra."""
    design, y, weight, penalty = problem
    penalty = np.maximum(penalty, PENALTY_FLOOR * weight.sum())
    p = expit(design @ coef)
    gradient = design.T @ (weight * (p - y)) + penalty * coef
    hessian = design.T @ np.diag(weight * p * (1 - p)) @ design + np.diag(penalty)
    return float(gradient @ np.linalg.lstsq(hessian, gradient, rcond=None)[0])


def test_objective_is_the_documented_one() -> None:
    problem = draw(n=30)
    coef = np.random.default_rng(1).normal(size=7)
    ours = objective(problem.design @ coef, problem.y, problem.weight)
    assert ours + 0.5 * problem.penalty @ coef**2 == pytest.approx(loss(coef, problem), rel=1e-12)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", [0, 1])
def test_finds_the_optimum_of_a_general_optimiser(seed: int, penalty: float) -> None:
    problem = draw(seed, penalty=penalty)

    def value(b: Floats) -> float:
        odds = problem.design @ b
        rows = np.logaddexp(0, -odds) + (1 - problem.y) * odds
        return float(problem.weight @ rows + 0.5 * problem.penalty @ b**2)

    theirs = minimize(value, np.zeros(7), method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    ours = newton(*problem)
    assert value(ours.coef) <= theirs.fun + 1e-9
    np.testing.assert_allclose(ours.coef, theirs.x, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ours.log_odds, problem.design @ ours.coef, atol=1e-9)


def test_derivatives_at_the_optimum_are_those_of_the_objective() -> None:
    problem = draw(2, n=60, p=3)
    fit = newton(*problem)
    step = 1e-5
    gradient = np.array(
        [
            (loss(fit.coef + step * e, problem) - loss(fit.coef - step * e, problem)) / (2 * step)
            for e in np.eye(4)
        ]
    )
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)
    step = 1e-3
    hessian = np.array(
        [
            [
                (
                    loss(fit.coef + step * (a + b), problem)
                    - loss(fit.coef + step * (a - b), problem)
                    - loss(fit.coef + step * (b - a), problem)
                    + loss(fit.coef - step * (a + b), problem)
                )
                / (4 * step**2)
                for a in np.eye(4)
            ]
            for b in np.eye(4)
        ]
    )
    ours = weighted_gram(problem.design, curvature(fit.log_odds, problem.weight))
    ours[np.diag_indices(4)] += problem.penalty
    np.testing.assert_allclose(ours, hessian, rtol=1e-4, atol=1e-3)


def awkward(name: str) -> Problem:
    rng = np.random.default_rng(7)
    design, y, weight, penalty = draw(3, n=80, p=4)
    if name == "separated":
        y = (design[:, 1] + design[:, 2] > 0).astype(float)
        penalty = np.zeros(5)
    elif name == "separated, one column":
        design = np.column_stack([np.ones(40), np.r_[np.full(20, -1.0), np.full(20, 1.0)]])
        y, weight, penalty = np.repeat([0.0, 1.0], 20), np.ones(40), np.zeros(2)
    elif name == "tiny penalty":
        penalty = np.full(5, 1e-300)
    elif name == "fewer rows than columns":
        design = np.column_stack([np.ones(10), rng.normal(size=(10, 60))])
        y, weight, penalty = (rng.random(10) < 0.5).astype(float), np.ones(10), np.zeros(61)
    elif name == "zero column":
        design[:, 2] = 0.0
        penalty = np.zeros(5)
    elif name == "constant column":
        design[:, 2] = 3.0
        penalty = np.zeros(5)
    elif name == "equal columns":
        design[:, 2] = design[:, 1]
        penalty = np.zeros(5)
    elif name == "one weight dominates":
        weight[5] = 1e8
    elif name == "one class":
        y = np.ones(80)
        penalty = np.zeros(5)
    elif name == "large values":
        design[:, 1] *= 1e6
        penalty = np.zeros(5)
    elif name == "enormous penalty":
        penalty = np.full(5, 1e12)
    return Problem(design, y, weight, penalty)


AWKWARD = [
    "separated",
    "separated, one column",
    "tiny penalty",
    "fewer rows than columns",
    "zero column",
    "constant column",
    "equal columns",
    "one weight dominates",
    "one class",
    "large values",
    "enormous penalty",
]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("far", [False, True], ids=["from zero", "from far away"])
def test_always_converges(name: str, far: bool) -> None:
    problem = awkward(name)
    start = None
    if far:  # log-odds of about a hundred
        start = np.random.default_rng(0).normal(size=problem.design.shape[1])
        start *= 100 / np.abs(problem.design @ start).max()
    fit = newton(*problem, start)
    assert np.all(np.isfinite(fit.coef))
    value = objective(fit.log_odds, problem.y, problem.weight)
    assert decrement(fit.coef, problem) <= 2e-9 * (1 + value)
    np.testing.assert_allclose(
        fit.log_odds,
        problem.design @ fit.coef,
        rtol=1e-8,
        atol=1e-12 + 1e-8 * np.abs(fit.log_odds).max(),
    )


def test_separated_data_are_answered_with_large_but_bounded_log_odds() -> None:
    problem = awkward("separated, one column")
    odds = newton(*problem).log_odds
    assert np.all(np.sign(odds) == 2 * problem.y - 1)
    assert 5 < np.abs(odds).max() < 30


def test_a_column_of_zeros_gets_no_weight() -> None:
    assert abs(newton(*awkward("zero column")).coef[2]) < 1e-12


def test_equal_columns_share_their_weight() -> None:
    coef = newton(*awkward("equal columns")).coef
    assert coef[1] == pytest.approx(coef[2], rel=1e-6)


def test_weights_count_rows() -> None:
    design, y, _, penalty = draw(4, n=50)
    times = np.random.default_rng(0).integers(0, 4, 50)
    weighted = newton(design, y, times.astype(float), penalty)
    repeated = newton(design.repeat(times, axis=0), y.repeat(times), np.ones(times.sum()), penalty)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-9)


def test_cholesky_factors_and_repairs() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    matrix = root @ root.T + np.eye(5)
    factor = cholesky(matrix)
    np.testing.assert_allclose(factor.T @ factor, matrix, rtol=1e-12)
    np.testing.assert_array_equal(np.tril(factor, -1), 0.0)
    for singular in (np.outer(root[0], root[0]), np.outer(root[0], root[0]) - 1e-9 * np.eye(5)):
        nearby = cholesky(singular)
        np.testing.assert_allclose(nearby.T @ nearby, singular, atol=1e-6)
    assert np.all(np.isfinite(cholesky(np.zeros((3, 3)))))


def test_gram_matrices_by_definition() -> None:
    design, _, weight, _ = draw(5, n=40)
    fold = np.random.default_rng(0).integers(0, 3, 40)
    expected = design.T @ np.diag(weight) @ design
    np.testing.assert_allclose(weighted_gram(design, weight), expected, rtol=1e-12)
    np.testing.assert_allclose(
        fold_grams(design, weight, fold, 3).sum(axis=0), expected, rtol=1e-12
    )
    odds = np.linspace(-4, 4, 9)
    numerical = [(expit(o + 1e-6) - expit(o - 1e-6)) / 2e-6 for o in odds]
    np.testing.assert_allclose(curvature(odds, np.full(9, 2.0)), 2 * np.array(numerical), rtol=1e-6)


def splines_like(seed: int, n: int, separated: bool) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """A design like the additive model's: three covariates with curved columns of each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    curved = [np.sin(k * X[:, [j]]) for j in range(3) for k in (1, 2, 3, 4)]
    design = np.column_stack([np.ones(n), X, *curved])
    design[:, 1:] -= design[:, 1:].mean(axis=0)
    truth = 1.5 * X[:, 0] - X[:, 1] + np.sin(2 * X[:, 2])
    y = truth > 0 if separated else rng.random(n) < expit(truth)
    return design, y.astype(float), rng.permutation(n) % 5


@pytest.mark.parametrize("separated", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_fold_fits_are_the_refits_without_the_fold(separated: bool, weighted: bool) -> None:
    tolerance = 1e-6
    design, y, fold = splines_like(0, 160, separated)
    n = len(y)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, n) if weighted else np.ones(n)
    candidates = [(smooth, ridge) for smooth in (1.0, 30.0, 1000.0) for ridge in (0.1, 1.0, 100.0)]
    penalties = np.stack([np.r_[0.0, [r] * 3, [s] * 12] for s, r in candidates], axis=1)
    start = newton(design, y, weight, penalties[:, 4], tolerance=1e-6)
    grams = fold_grams(design, curvature(start.log_odds, weight), fold, 5)
    coef, held_out = fit_folds(
        design, y, weight, fold, penalties, start.coef, grams, tolerance=tolerance
    )
    for c in range(len(candidates)):
        whole = newton(design, y, weight, penalties[:, c], tolerance=1e-13)
        whole_error = design @ (coef[:, c] - whole.coef)
        assert np.average(curvature(whole.log_odds, weight) * whole_error**2) <= 4 * tolerance
        for f in range(5):
            rows = fold != f
            refit = newton(
                design[rows], y[rows], weight[rows], penalties[:, c], tolerance=1e-13
            ).coef
            expected = design[~rows] @ refit
            error = held_out[~rows, c] - expected
            # As documented: root mean square about sqrt(tolerance), weighted by p (1 - p).
            weighted_square = np.mean(curvature(expected, np.ones(len(expected))) * error**2)
            assert weighted_square <= 6 * tolerance
            assert np.abs(expit(held_out[~rows, c]) - expit(expected)).max() < 5e-3


def test_fold_fits_reach_any_tolerance() -> None:
    design, y, fold = splines_like(1, 120, True)
    weight = np.ones(120)
    penalties = np.stack([np.r_[0.0, [0.1] * 3, [1.0] * 12], np.r_[0.0, [9.0] * 15]], axis=1)
    start = np.zeros(16)
    grams = fold_grams(design, curvature(design @ start, weight), fold, 5)
    _, held_out = fit_folds(design, y, weight, fold, penalties, start, grams, tolerance=1e-12)
    for c in range(2):
        for f in range(5):
            rows = fold != f
            refit = newton(design[rows], y[rows], weight[rows], penalties[:, c], tolerance=1e-14)
            np.testing.assert_allclose(held_out[~rows, c], design[~rows] @ refit.coef, atol=2e-4)


def test_labels_of_a_fold_do_not_enter_the_fit_without_it() -> None:
    design, y, fold = splines_like(2, 120, False)
    weight = np.ones(120)
    penalties = np.stack([np.r_[0.0, [1.0] * 3, [9.0] * 12], np.r_[0.0, [30.0] * 15]], axis=1)
    start = newton(design, y, weight, penalties[:, 0])
    grams = fold_grams(design, curvature(start.log_odds, weight), fold, 5)
    before = fit_folds(design, y, weight, fold, penalties, start.coef, grams)
    flipped = np.where(fold == 3, 1 - y, y)
    after = fit_folds(design, flipped, weight, fold, penalties, start.coef, grams)
    own = fold == 3
    # Fits stop on their own, so which others are still open cannot change this one but by the
    # rounding of a product with more or fewer columns.
    np.testing.assert_allclose(before[1][own], after[1][own], rtol=1e-9, atol=1e-11)
    assert np.abs(before[1][~own] - after[1][~own]).max() > 0.1
    assert np.abs(before[0] - after[0]).max() > 0.1


def test_fits_with_penalties_of_their_own() -> None:
    design, y, fold = splines_like(3, 120, False)
    weight = np.ones(120)
    rng = np.random.default_rng(0)
    without_fold = np.array([0, 1, 5])
    penalties = np.vstack([np.zeros(3), 10.0 ** rng.uniform(-1, 2, (15, 3))])
    start = rng.normal(scale=0.1, size=(16, 3))
    grams = fold_grams(design, np.full(120, 0.2), fold, 5)
    coef = fit_together(
        design, y, weight, fold, without_fold, penalties, start, grams, tolerance=1e-11
    )
    for k, f in enumerate(without_fold):
        rows = fold != f
        refit = newton(design[rows], y[rows], weight[rows], penalties[:, k], tolerance=1e-13)
        np.testing.assert_allclose(design @ coef[:, k], design @ refit.coef, atol=1e-4)


def marginal_likelihood(
    log_strengths: Floats, problem: Problem, term: NDArray[np.intp], gram: Floats
) -> float:
    """Laplace's restricted log-likelihood, up to a constant, with the curvature kept at `gram`.

    -J(b) at the optimum b, + 1/2 log|penalty| - 1/2 log|gram + penalty|.
    """
    strengths = np.exp(log_strengths)
    inside = term >= 0
    floor = PENALTY_FLOOR * problem.weight.sum()
    penalty = np.full(len(term), floor)
    penalty[inside] = strengths[term[inside]]

    def value(b: Floats) -> tuple[float, Floats]:
        odds = problem.design @ b
        rows = np.logaddexp(0, odds) - problem.y * odds
        gradient = problem.design.T @ (problem.weight * (expit(odds) - problem.y)) + penalty * b
        return float(problem.weight @ rows + 0.5 * penalty @ b**2), gradient

    best = minimize(value, np.zeros(len(term)), jac=True, method="BFGS", options={"gtol": 1e-9})
    return float(
        -best.fun
        + 0.5 * np.log(penalty[inside]).sum()
        - 0.5 * np.linalg.slogdet(gram + np.diag(penalty))[1]
    )


def restricted(seed: int = 5) -> tuple[Problem, NDArray[np.intp]]:
    """Two covariates with a straight and a curved influence each: four terms."""
    rng = np.random.default_rng(seed)
    n = 300
    X = rng.uniform(-2, 2, size=(n, 2))
    bends = [np.sin(k * X[:, [j]]) for j in range(2) for k in (2, 3, 4)]
    design = np.column_stack([np.ones(n), X, *bends])
    truth = X[:, 0] + 2 * np.sin(2 * X[:, 0]) - 0.7 * X[:, 1] + np.sin(3 * X[:, 1])
    y = (rng.random(n) < expit(truth)).astype(float)
    term = np.array([-1, 0, 1, 2, 2, 2, 3, 3, 3])
    return Problem(design, y, np.ones(n), np.zeros(9)), term


@pytest.mark.parametrize(("tolerance", "slack"), [(1e-8, 2e-4), (0.05, 0.1)])
def test_restricted_likelihood_has_its_optimum_at_the_strengths(
    tolerance: float, slack: float
) -> None:
    problem, term = restricted()
    design, y, weight, _ = problem
    start = newton(design, y, weight, np.where(term >= 0, 1.0, 0.0))
    gram = weighted_gram(design, curvature(start.log_odds, weight))
    strengths, coef = fellner_schall(
        design,
        y,
        weight[:, None],
        term,
        np.ones(4),
        start.coef,
        gram[None],
        tolerance=tolerance,
        max_iter=2000,
    )
    assert np.all((strengths > 2e-3) & (strengths < 1e5)), "the optimum must be inside the bounds"
    at = np.log(strengths[:, 0])
    gradient = np.array(
        [
            (
                marginal_likelihood(at + 1e-3 * e, problem, term, gram)
                - marginal_likelihood(at - 1e-3 * e, problem, term, gram)
            )
            / 2e-3
            for e in np.eye(4)
        ]
    )
    np.testing.assert_allclose(gradient, 0.0, atol=slack)
    # The start is not an optimum, so the test can tell.
    begin = approx_fprime(np.zeros(4), marginal_likelihood, 1e-4, problem, term, gram)
    assert np.abs(begin).max() > 0.3
    penalty = np.where(term >= 0, strengths[term, 0], 0.0)
    error = design @ (coef[:, 0] - newton(design, y, weight, penalty).coef)
    assert np.sqrt(np.mean(error**2)) < (1e-4 if tolerance < 1e-6 else 0.1)


def test_the_strength_of_useless_columns_runs_to_the_bound() -> None:
    problem, term = restricted()
    design, y, weight, _ = problem
    # About every second draw of noise happens to explain less than nothing; this one does.
    noise = np.random.default_rng(2).normal(size=(len(y), 3))
    problem = Problem(np.column_stack([design, noise]), y, weight, np.zeros(12))
    term = np.append(term, [4, 4, 4])
    start = newton(problem.design, y, weight, np.where(term >= 0, 1.0, 0.0))
    gram = weighted_gram(problem.design, curvature(start.log_odds, weight))
    strengths, coef = fellner_schall(
        problem.design,
        y,
        weight[:, None],
        term,
        np.ones(5),
        start.coef,
        gram[None],
        bounds=(1e-3, 1e4),
        tolerance=1e-7,
        max_iter=3000,
    )
    assert strengths[4, 0] == pytest.approx(1e4)
    assert np.all(strengths[:4, 0] < 1e3)
    assert np.abs(coef[9:, 0]).max() < 0.01
    # The likelihood still rises at the bound, and is flat in the others.
    at, e = np.log(strengths[:, 0]), np.eye(5)
    slopes = [
        marginal_likelihood(at + 0.01 * e[t], problem, term, gram)
        - marginal_likelihood(at - 0.01 * e[t], problem, term, gram)
        for t in range(5)
    ]
    assert slopes[4] > 0
    np.testing.assert_allclose(slopes[:4], 0.0, atol=1e-5)


def test_problems_advance_together_as_they_do_alone() -> None:
    problem, term = restricted()
    design, y, _, _ = problem
    fold = np.random.default_rng(0).integers(0, 3, len(y))
    weights = np.stack([(fold != f).astype(float) for f in range(3)], axis=1)
    start = newton(design, y, np.ones(len(y)), np.where(term >= 0, 1.0, 0.0))
    grams = np.stack(
        [weighted_gram(design, curvature(start.log_odds, weights[:, f])) for f in range(3)]
    )
    tight = {"tolerance": 1e-9, "max_iter": 3000}
    together = fellner_schall(design, y, weights, term, np.ones(4), start.coef, grams, **tight)
    for f in range(3):
        rows = fold != f
        alone = fellner_schall(
            design[rows],
            y[rows],
            np.ones((rows.sum(), 1)),
            term,
            np.ones(4),
            start.coef,
            grams[f][None],
            **tight,
        )
        np.testing.assert_allclose(together[0][:, f], alone[0][:, 0], rtol=1e-4)
        np.testing.assert_allclose(together[1][:, f], alone[1][:, 0], rtol=1e-4, atol=1e-6)

"""Multinomial fits advanced together against Newton's method, one fit at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos.kernels import multinomial_fits
from adacos.kernels.multinomial import class_loss, contrasts, newton_classes
from adacos.kernels.multinomial_fits import (
    ClassRows,
    advance_classes,
    hessian_factors,
    joint_gram,
    objectives,
)

N_FOLDS = 5


def rows_of(n_classes: int, spread: float = 1.0, n: int = 200) -> ClassRows:
    """A wiggly covariate and three more; with a large spread the classes are nearly separated."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, 4))
    X[:, 3] = np.sin(3 * X[:, 0])
    scores = spread * X @ rng.normal(size=(4, n_classes)) + rng.gumbel(size=(n, n_classes))
    design = np.column_stack([np.ones(n), X])
    weight = rng.uniform(0.5, 2.0, size=n)
    fold = np.arange(n) % N_FOLDS
    return ClassRows(design, scores.argmax(axis=1), weight, fold, contrasts(n_classes))


def objective(rows: ClassRows, without_fold: int, penalty: Any, coef: Any) -> float:
    weight = rows.weight * (rows.fold != without_fold)
    loss = class_loss(coef @ rows.design.T, rows.y, rows.basis)
    return float(weight @ loss + 0.5 * (coef**2 @ penalty).sum())


def test_objective_and_gradient_of_several_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in blocks; the gradient is that of differences."""
    monkeypatch.setattr(multinomial_fits, "_BLOCK", 64)
    rows = rows_of(4)
    rng = np.random.default_rng(0)
    coef, without_fold = rng.normal(size=(2, 3, 5)), np.array([1, N_FOLDS])
    penalties = rng.uniform(0.1, 3.0, size=(2, 5))
    value, gradient = objectives(rows, without_fold, penalties, coef)
    for k in range(2):
        fit = rows, int(without_fold[k]), penalties[k]
        assert value[k] == pytest.approx(objective(*fit, coef[k]))
        for step in 1e-6 * np.eye(15).reshape(15, 3, 5):
            change = objective(*fit, coef[k] + step) - objective(*fit, coef[k] - step)
            assert float((gradient[k] * step).sum()) == pytest.approx(change / 2, abs=1e-10)


@pytest.mark.parametrize("n_classes", [3, 6, 15])
@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("iterations", [1, multinomial_fits.LOCKSTEP_ITERATIONS])
def test_every_fit_ends_at_the_optimum_of_newton(
    n_classes: int, spread: float, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a poor start, with the curvature of another fit; Newton finishes what is not done."""
    monkeypatch.setattr(multinomial_fits, "LOCKSTEP_ITERATIONS", iterations)
    rows = rows_of(n_classes, spread)
    strengths = np.array([0.01, 1.0, 100.0])
    # A penalty on the intercept above the floor, which depends on how many rows there are.
    penalties = np.repeat(np.append(0.001, np.ones(4))[None] * strengths[:, None], 2, axis=0)
    without_fold = np.array([0, N_FOLDS] * 3)
    start = np.zeros((6, n_classes - 1, 5))
    factors = hessian_factors(rows, joint_gram(rows, start[0]), penalties[::2])
    which = np.repeat(np.arange(3), 2)
    found = advance_classes(rows, without_fold, penalties, start, factors, which, tolerance=1e-14)
    for k, f in enumerate(without_fold.tolist()):
        kept = rows.fold != f
        true = newton_classes(
            rows.design[kept], rows.y[kept], rows.weight[kept], penalties[k], rows.basis
        )
        np.testing.assert_allclose(
            objective(rows, f, penalties[k], found[k]),
            objective(rows, f, penalties[k], true.coef),
            rtol=1e-10,
        )
        gap = (found[k] - true.coef) @ rows.design.T
        assert np.abs(gap).max() < 1e-3 * (1.0 + np.abs(true.log_odds).max())


def test_a_step_too_long_is_halved_until_the_objective_falls() -> None:
    """A kept curvature a thousand times too small: the first steps miss, the end is right."""
    rows = rows_of(3)
    penalty = np.append(0.0, np.ones(4))[None]
    start = np.zeros((1, 2, 5))
    gram = joint_gram(rows, start[0])
    factors = [factor / np.sqrt(1000.0) for factor in hessian_factors(rows, gram, penalty)]
    fold, which = np.array([N_FOLDS]), np.zeros(1, dtype=np.intp)
    found = advance_classes(rows, fold, penalty, start, factors, which, tolerance=1e-12)
    true = newton_classes(rows.design, rows.y, rows.weight, penalty[0], rows.basis)
    np.testing.assert_allclose(found[0], true.coef, atol=1e-5)

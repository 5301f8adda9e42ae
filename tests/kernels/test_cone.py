"""Logistic regression in a cone against a general optimiser and the optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from adacos.kernels.cone import cone_fits, cone_newton, cone_of, within
from adacos.kernels.irls import PENALTY_FLOOR, newton


def problem(seed, n=120, size=7):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, size - 1))])
    y = (rng.random(n) < expit(design @ rng.normal(size=size))).astype(float)
    weight = rng.uniform(0.2, 2.0, n)
    penalty = np.append(0.0, rng.uniform(0.1, 5.0, size - 1))
    blocks = [(np.array([1, 2, 3]), rng.normal(size=(3, 3))), (np.array([5]), -np.eye(1))]
    return design, y, weight, penalty, cone_of(blocks, size)


def loss(coef, design, y, weight, penalty):
    u = design @ coef
    penalty = np.maximum(penalty, PENALTY_FLOOR * weight.sum())
    return weight @ (np.logaddexp(0, u) - y * u) + 0.5 * penalty @ coef**2


@pytest.mark.parametrize("seed", range(8))
def test_it_finds_what_a_general_optimiser_finds(seed):
    *rows, cone = problem(seed)
    found = cone_newton(*rows, cone, np.zeros(7))
    bounded = cone.inverse[cone.bounded]
    best = minimize(
        loss,
        found + 0.1,
        tuple(rows),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda b: bounded @ b, "jac": lambda b: bounded},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert cone.holds(found)
    assert loss(found, *rows) <= best.fun + 1e-9
    assert found == pytest.approx(best.x, abs=2e-4)
    # The gradient is a non-negative combination of the bounds that are met.
    design, y, weight, penalty = rows
    gradient = design.T @ (weight * (expit(design @ found) - y)) + penalty * found
    prices = cone.basis.T @ gradient
    c = cone.inverse @ found
    scale = weight.sum()
    assert np.abs(prices[~cone.bounded]).max() < 1e-5 * scale
    assert prices[cone.bounded].min() > -1e-5 * scale
    assert np.abs(prices[cone.bounded] * c[cone.bounded]).max() < 1e-5 * scale


@pytest.mark.parametrize("seed", range(4))
def test_any_start_leads_to_the_same_fit(seed):
    *rows, cone = problem(seed)
    starts = np.random.default_rng(seed).normal(0, 5, size=(5, 7))
    found = [cone_newton(*rows, cone, start) for start in starts]
    assert np.ptp(found, axis=0).max() < 1e-5


def test_a_fit_in_the_cone_is_its_own_answer():
    design, y, weight, penalty, _ = problem(0)
    free = newton(design, y, weight, penalty).coef
    wide = cone_of([(np.array([1]), np.array([[np.sign(free[1])]]))], 7)
    coefs = free[:, None, None]
    found = cone_fits(design, y, weight, None, penalty[:, None, None], coefs, wide)
    assert np.array_equal(found, coefs)
    assert cone_newton(design, y, weight, penalty, wide, np.zeros(7)) == pytest.approx(
        free, abs=1e-5
    )
    assert cone_of([], 3) is None


def test_fits_without_each_fold_are_those_of_the_other_rows():
    design, y, weight, penalty, cone = problem(1)
    fold = np.arange(len(y)) % 3
    coefs = np.repeat(newton(design, y, weight, penalty).coef[:, None, None], 4, axis=2)
    penalties = np.broadcast_to(penalty[:, None, None], coefs.shape)
    found = cone_fits(design, y, weight, fold, penalties, coefs, cone, tolerance=1e-12)
    assert cone.holds(found).all()
    for f in range(3):
        rows = fold != f
        own = cone_newton(design[rows], y[rows], weight[rows], penalty, cone, np.zeros(7))
        assert found[:, 0, f] == pytest.approx(own, abs=1e-5)


def test_separated_classes_end():
    x = np.linspace(-1, 1, 40)
    design = np.column_stack([np.ones(40), x])
    rising = cone_of([(np.array([1]), np.eye(1))], 2)
    rows = design, (x > 0).astype(float), np.ones(40), np.zeros(2)
    found = cone_newton(*rows, rising, np.zeros(2))
    assert np.isfinite(found).all()
    assert found[1] > 10
    falling = cone_of([(np.array([1]), -np.eye(1))], 2)
    assert cone_newton(*rows, falling, np.zeros(2)) == pytest.approx([0, 0], abs=1e-6)


def test_a_quadratic_model_within_bounds():
    hessian = np.array([[2.0, 1.0], [1.0, 2.0]])
    bounded = np.array([False, True])
    # The free minimum is (1, -1): at the bound the other one is at 1/2.
    gradient = hessian @ np.array([-1.0, 1.0])
    found = within(hessian, gradient, np.zeros(2), bounded)
    assert found == pytest.approx([0.5, 0.0], abs=1e-9)

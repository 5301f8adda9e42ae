"""Multinomial fits against scikit-learn, derivatives against differences, folds against refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from adacos.kernels.class_risk import probabilities
from adacos.kernels.class_strengths import (
    blend_class_strengths,
    fixed_class_strengths,
    stack_class_weights,
    straight_classes,
)
from adacos.kernels.irls import fellner_schall, newton, weighted_gram
from adacos.kernels.multinomial import (
    class_fellner_schall,
    class_gram,
    class_loss,
    contrasts,
    newton_classes,
    residuals,
    shares_at,
    symmetric,
    to_contrasts,
    to_reference,
    turned,
)


def problem(n_classes: int, n: int = 400, p: int = 4, seed: int = 0) -> tuple[Any, Any, Any]:
    """A design with a constant, classes and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    scores = X @ rng.normal(size=(p, n_classes)) + rng.gumbel(size=(n, n_classes))
    return np.column_stack([np.ones(n), X]), scores.argmax(axis=1), rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize("n_classes", [3, 4, 15])
def test_the_objective_is_that_of_scikit_learn_at_equal_penalties(n_classes: int) -> None:
    design, y, weight = problem(n_classes)
    strength = 0.7
    own = newton_classes(
        design, y, weight, np.append(0.0, np.full(4, strength)), contrasts(n_classes)
    )
    peer = LogisticRegression(C=1 / strength, tol=1e-12, max_iter=10_000, solver="newton-cg")
    peer.fit(design[:, 1:], y, sample_weight=weight)

    def objective(coef: Any) -> float:
        scores = design @ coef.T
        loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]
        return float(weight @ loss + 0.5 * strength * np.sum(coef[:, 1:] ** 2))

    ours = objective(contrasts(n_classes) @ own.coef)
    assert ours == pytest.approx(
        objective(np.column_stack([peer.intercept_, peer.coef_])), abs=1e-8
    )
    np.testing.assert_allclose(
        shares_at(own.log_odds, contrasts(n_classes)).T,
        peer.predict_proba(design[:, 1:]),
        atol=1e-5,
    )


def test_derivatives_are_those_of_differences() -> None:
    design, y, weight = problem(4, n=50, p=2)
    rng = np.random.default_rng(1)
    basis, coef = contrasts(4), rng.normal(size=(3, 3))

    def loss(coef: Any) -> float:
        return float(weight @ class_loss(coef @ design.T, y, basis))

    def gradient(coef: Any) -> Any:
        return (weight * residuals(coef @ design.T, y, basis)) @ design

    steps = 1e-6 * np.eye(9).reshape(9, 3, 3)
    by_difference = [(loss(coef + s) - loss(coef - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(gradient(coef).ravel(), by_difference, atol=1e-6)
    second = [((gradient(coef + s) - gradient(coef - s)) / 2e-6).ravel() for s in steps]
    hessian = class_gram(design, coef @ design.T, weight, basis)
    np.testing.assert_allclose(hessian, second, atol=1e-6)
    # Turned contrasts are as good, and their average curvature has no entry off the diagonal.
    other = turned(coef @ design.T, weight, basis)
    np.testing.assert_allclose(other.T @ other, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(other.sum(axis=0), 0.0, atol=1e-12)
    ones = np.ones((len(y), 1))
    average = class_gram(ones, other.T @ basis @ coef @ design.T, weight, other)
    assert np.abs(average - np.diag(np.diag(average))).max() < 1e-9


def test_contrasts_there_and_back() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 5))
    basis = contrasts(4)
    np.testing.assert_allclose(to_reference(to_contrasts(values, basis), basis), values)
    every = symmetric(values)
    np.testing.assert_allclose(every.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(every[1:] - every[0], values)


def test_two_classes_are_the_two_class_fit_at_half_the_penalty() -> None:
    """The symmetric penalty of ±u / 2 is half that of u; strengths by likelihood follow suit."""
    design, y, weight = problem(2)
    penalty = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    binary = newton(design, y.astype(float), weight, penalty)
    both = newton_classes(design, y, weight, 2 * penalty, contrasts(2))
    np.testing.assert_allclose(to_reference(both.coef, contrasts(2))[0], binary.coef, atol=1e-8)
    term = np.array([-1, 0, 0, 1, 1])
    p = 1 / (1 + np.exp(-binary.log_odds))
    gram = weighted_gram(design, weight * p * (1 - p))
    start = np.array([1.0, 1.0])
    expected, _ = fellner_schall(
        design, y.astype(float), weight[:, None], term, start, binary.coef, gram[None]
    )
    found, _ = class_fellner_schall(
        design,
        y,
        weight[:, None],
        term,
        2 * start,
        both.coef,
        class_gram(design, both.log_odds, weight, contrasts(2))[None, None],
        contrasts(2),
    )
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-6)


def test_held_out_log_odds_are_those_of_refits() -> None:
    design, y, weight = problem(3)
    fold = np.arange(len(y)) % 4
    term, strengths = np.array([-1, 0, 0, 1, 1]), np.array([1.0, 3.0])
    linear = np.ones(5, dtype=np.bool_)
    start = straight_classes(design, y, weight, linear, 3)
    fit = fixed_class_strengths(design, y, weight, fold, term, strengths, start=start)
    penalty = np.array([0.0, 1.0, 1.0, 3.0, 3.0])
    for f in range(4):
        rows = fold == f
        refit = newton_classes(design[~rows], y[~rows], weight[~rows], penalty, contrasts(3))
        held_out = design[rows] @ to_reference(refit.coef, contrasts(3)).T
        gap = probabilities(fit.out_of_fold_log_odds[rows]) - probabilities(held_out)
        assert np.abs(gap).max() < 2e-3


def test_separated_classes_end_at_finite_log_odds() -> None:
    design = np.column_stack([np.ones(30), np.repeat([-1.0, 0.0, 1.0], 10)])
    y = np.repeat([0, 1, 2], 10)
    fit = newton_classes(design, y, np.ones(30), np.zeros(2), contrasts(3))
    assert np.isfinite(fit.coef).all()
    assert (shares_at(fit.log_odds, contrasts(3)).argmax(axis=0) == y).all()


def test_weights_of_candidates_are_the_best_on_the_simplex() -> None:
    rng = np.random.default_rng(0)
    _, y, weight = problem(3)
    basis = contrasts(3)
    truth = rng.normal(size=(2, len(y), 1))
    log_odds = truth + rng.normal(size=(2, len(y), 5)) * [0.1, 0.5, 1, 1, 2]
    shares = stack_class_weights(log_odds, y, weight, basis)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1.0)
    best = weight @ class_loss(log_odds @ shares, y, basis)
    for other in rng.dirichlet(np.full(5, 0.5), size=300):
        assert best <= weight @ class_loss(log_odds @ other, y, basis) + 1e-6


def test_names_of_the_classes_do_not_matter() -> None:
    """Another order of the classes gives the same probabilities in that order."""
    design, y, weight = problem(4)
    fold = np.arange(len(y)) % 4
    term, linear = np.array([-1, 0, 1, 2, 3]), np.ones(4, dtype=np.bool_)
    order = np.array([2, 0, 3, 1])

    def out_of_fold(y: Any) -> Any:
        start = straight_classes(design, y, weight, np.ones(5, dtype=np.bool_), 4)
        fit = blend_class_strengths(design, y, weight, fold, term, linear, start=start)
        assert fit.used is not None
        return symmetric(fit.out_of_fold_log_odds.T)

    np.testing.assert_allclose(out_of_fold(order[y])[order], out_of_fold(y), atol=0.02)

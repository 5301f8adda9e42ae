"""Risk of more than two classes against definitions, and its rule against many more points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk, label_of
from adacos.kernels.class_risk import (
    class_bayes_risk,
    class_label,
    expected_class_risk,
    integrated_class_log_odds,
    log_odds_of,
    normal_points,
    probabilities,
    roots,
)


def matrix_of(rng: Any, n_classes: int) -> Any:
    """Misclassification costs whose dearest error costs 1."""
    matrix = rng.uniform(0.1, 1.0, size=(n_classes, n_classes))
    np.fill_diagonal(matrix, 0.0)
    return matrix / matrix.max()


def covariance_of(rng: Any, size: int) -> Any:
    root = rng.normal(size=(size, size)) * rng.choice([0.2, 0.5, 1.0, 2.0]) / np.sqrt(size / 2)
    return root @ root.T


def test_roots_do_not_turn_with_the_last_digit() -> None:
    """A row answered alone and among others has covariances that differ by rounding."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(4000, 3, 3)) * np.array([1.0, 0.1, 0.01])
    covariance = factor @ factor.transpose(0, 2, 1)
    off = rng.normal(size=covariance.shape) * 1e-15
    again = covariance * (1.0 + off + off.transpose(0, 2, 1))
    np.testing.assert_allclose(roots(again), roots(covariance), atol=1e-6)
    centring = (np.eye(4) - 0.25)[:, 1:]
    product = roots(covariance) @ roots(covariance).transpose(0, 2, 1)
    np.testing.assert_allclose(product, centring @ covariance @ centring.T, atol=1e-9)


def test_labels_and_risk_by_definition() -> None:
    rng = np.random.default_rng(0)
    for n_classes in (3, 4, 15):
        matrix = matrix_of(rng, n_classes) - 0.05 * np.eye(n_classes)
        log_odds = 3 * rng.normal(size=(50, n_classes - 1))
        for u, label, risk in zip(
            log_odds, class_label(log_odds, matrix), class_bayes_risk(log_odds, matrix), strict=True
        ):
            p = np.exp(np.append(0.0, u))
            p /= p.sum()
            by_label = [
                sum(p[y] * matrix[y, k] for y in range(n_classes)) for k in range(n_classes)
            ]
            assert label == np.argmin(by_label)
            assert risk == pytest.approx(min(by_label))
        p = probabilities(log_odds)
        np.testing.assert_allclose(log_odds_of(p), log_odds, atol=1e-9)
    # Of equal labels the last, as with two classes; certain rows have finite risks.
    assert class_label(np.zeros((1, 2)), 1 - np.eye(3))[0] == 2
    far = class_bayes_risk(np.array([[800.0, -800.0], [-900.0, -900.0]]), 1 - np.eye(3))
    np.testing.assert_allclose(far, 0.0, atol=1e-300)


def test_a_class_that_cannot_be_leaves_two() -> None:
    """With the third class out of question risk and labels are those of two."""
    rng = np.random.default_rng(0)
    u = 2 * rng.normal(size=40)
    matrix = np.array([[0.0, 1.0, 1.0], [3.0, 0.0, 3.0], [1.0, 1.0, 0.0]])
    three = np.column_stack([u, np.full(40, -80.0)])
    np.testing.assert_allclose(class_bayes_risk(three, matrix), bayes_risk(u, matrix[:2, :2]))
    np.testing.assert_array_equal(class_label(three, matrix), label_of(u, matrix[:2, :2]))
    root = roots(np.diag([1.5**2, 0.0]))
    expected = expected_bayes_risk(u, 1.5, matrix[:2, :2])
    assert np.abs(expected_class_risk(three, root, matrix) - expected).max() < 3e-3


@pytest.mark.parametrize(("n_classes", "cases"), [(3, 60), (4, 40), (15, 12)])
def test_the_rule_is_within_a_thousandth_of_the_most_expensive_error(
    n_classes: int, cases: int
) -> None:
    """Against 2^16 scrambled points."""
    rng = np.random.default_rng(0)
    size = n_classes - 1
    uniform = qmc.Sobol(size, scramble=True, rng=np.random.default_rng(3)).random(2**16)
    points = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    for _ in range(cases):
        matrix, covariance = matrix_of(rng, n_classes), covariance_of(rng, size)
        now = 2 * rng.normal(size=(1, size))
        root, spread = roots(covariance), points @ np.linalg.cholesky(covariance).T
        plain = class_bayes_risk(now + spread, matrix).mean()
        assert abs(expected_class_risk(now, root, matrix)[0] - plain) < 1.5e-3
        p = probabilities(now + spread).mean(axis=0)
        found = probabilities(integrated_class_log_odds(now, root))[0]
        assert np.abs(found - p).max() < 2.5e-3


def test_a_row_by_itself_is_treated_like_one_among_others() -> None:
    rng = np.random.default_rng(1)
    now, matrix = rng.normal(size=(20, 3)), matrix_of(rng, 4)
    root = roots(covariance_of(rng, 3))
    each = np.broadcast_to(root, (20, *root.shape))
    risk = expected_class_risk(now, root, matrix)
    np.testing.assert_allclose(expected_class_risk(now, each, matrix), risk, atol=1e-5)
    np.testing.assert_allclose(expected_class_risk(now[3:4], root, matrix), risk[3:4], atol=1e-6)
    together = integrated_class_log_odds(now, root)
    np.testing.assert_allclose(integrated_class_log_odds(now, each), together, atol=1e-9)


def test_no_variance_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    now, matrix = rng.normal(size=(10, 3)), matrix_of(rng, 4)
    root = roots(np.zeros((3, 3)))
    np.testing.assert_allclose(integrated_class_log_odds(now, root), now, atol=1e-7)
    np.testing.assert_allclose(
        expected_class_risk(now, root, matrix), class_bayes_risk(now, matrix), atol=1e-6
    )
    assert expected_class_risk(now[:0], root, matrix).shape == (0,)


def test_points_have_the_moments_of_the_normal() -> None:
    for size in (2, 3, 14):
        points = normal_points(size)
        np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(points.T @ points / len(points), np.eye(size), atol=1e-9)
    covariance = covariance_of(np.random.default_rng(0), 3)
    root = roots(covariance)
    spread = root @ root.T
    # Differences from the first class have the covariance of the log-odds.
    less = np.column_stack([-np.ones(3), np.eye(3)])
    np.testing.assert_allclose(less @ spread @ less.T, covariance, atol=1e-12)


def test_costs_of_any_size_scale_the_risk() -> None:
    """To the bit where the factor is a power of two, in single precision too."""
    rng = np.random.default_rng(8)
    mean, matrix = rng.normal(size=(20, 2)), rng.random((3, 3)) + 1 - np.eye(3)
    root = roots(np.array([[1.0, 0.4], [0.4, 2.0]]))
    expected = expected_class_risk(mean, root, matrix)
    with np.errstate(all="raise"):
        for factor in (2.0**140, 2.0**-140, 2.0**400):
            scaled = expected_class_risk(mean, root, factor * matrix)
            np.testing.assert_array_equal(scaled, factor * expected)

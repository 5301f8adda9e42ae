"""Followed rows stand for the table, however its values came to be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from adacos import AdaCOSClassifier, COSClassifier, Costs
from adacos.metrics import total_costs
from adacos.models.followed import FollowedRows, estimated_after
from adacos.models.sequences import SetSequence
from tests.policies.budget_table import QUICK
from tests.policy_checks import with_missing

PRICES = [2.0, 2.0, 5.0, 3.0, 1.0]
SHIFTS = np.array([[0.0] * 5, [0.5, 0.8, 1.0, 0.6, 0.3], [1.0, 0.2, -1.0, 0.8, 1.4]])
COSTS = {
    2: Costs(PRICES, false_positive=50, false_negative=100),
    3: Costs(PRICES, misclassification=[[0, 50, 60], [80, 0, 40], [100, 60, 0]]),
}
FRESH = 10_000


def draw(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=[[0.6, 0.4], [0.4, 0.35, 0.25]][n_classes - 2])
    return rng.normal(size=(n, 5)) + SHIFTS[y], y


def misses_x2(X: np.ndarray, y: np.ndarray, rule: Any) -> np.ndarray:
    """X without some values of x2, by shares for the classes or where x0 + x1 < 0."""
    rng, missing = np.random.default_rng(9), np.zeros(X.shape, dtype=bool)
    if rule == "values":
        missing[:, 2] = X[:, 0] + X[:, 1] < 0
    else:
        missing[:, 2] = rng.random(len(X)) < np.array(rule)[y]
    return np.asarray(with_missing(X, missing))


@pytest.mark.parametrize(
    ("n_classes", "rule", "seed"),
    [
        (2, (0.7, 0.1), 0),
        (2, (0.5, 0.2), 1),
        (2, "values", 2),
        (3, (0.7, 0.1, 0.1), 0),
    ],
)
def test_missing_values_do_not_decide_that_nothing_pays(
    n_classes: int, rule: Any, seed: int
) -> None:
    """Complete new rows cost what they cost without the correction, and what is stated."""
    X, y = draw(1500, n_classes, seed)
    costs = COSTS[n_classes]
    policy = AdaCOSClassifier(costs, **QUICK).fit(misses_x2(X, y, rule), y)
    dynamic = AdaCOSClassifier(costs, lookahead="dynamic").from_model(policy)
    fixed = COSClassifier(costs).from_model(policy)
    X, y = draw(FRESH, n_classes, 99)
    of_policy = total_costs(policy.acquire(X), y, costs)
    more = of_policy - total_costs(dynamic.acquire(X), y, costs)
    assert more.mean() <= 0.01 * of_policy.mean() + 2 * more.std() / np.sqrt(FRESH)
    assert of_policy.mean() < total_costs(fixed.acquire(X), y, costs).mean()
    plan = policy.consultation({}).next().explanation.best_plan
    assert plan is not None
    assert plan.expected_total_cost == pytest.approx(of_policy.mean(), rel=0.06)


def along(y: np.ndarray, log_odds: np.ndarray, there: Any, **more: Any) -> np.ndarray:
    """Weights at all sets of a sequence that adds one covariate at a time."""
    n_sets = log_odds.shape[1]
    weight = np.ones(len(y))
    rows = FollowedRows(log_odds, y.astype(float), weight, there=there, **more)
    return rows.weights_along(SetSequence(np.arange(n_sets - 1), 0), n_sets - 1)


def test_the_rows_of_a_set_represent_the_table() -> None:
    """Means by class of what a row is at every set are those of complete rows, two steps on."""
    rng = np.random.default_rng(0)
    n = 40_000
    y = rng.random(n) < 0.4
    log_odds = np.cumsum(rng.normal(size=(n, 4)) + 0.7 * y[:, None], axis=1)
    there = np.ones((n, 3), dtype=bool)
    there[:, 1] = rng.random(n) < np.where(y, 0.9, 0.4) * (0.2 + 0.8 * expit(log_odds[:, 1]))
    there[:, 2] = rng.random(n) < np.where(y, 0.3, 0.8) * (1 - 0.8 * expit(log_odds[:, 2]))
    weights = along(y, log_odds, there)
    np.testing.assert_array_equal(weights[:, :2], 1.0)
    for i, has in ((2, there[:, 1]), (3, there[:, 1] & there[:, 2])):
        np.testing.assert_array_equal(weights[:, i] > 0, has)
        assert weights[y, i].sum() == pytest.approx(y.sum(), rel=0.01)
        assert weights[~y, i].sum() == pytest.approx((~y).sum(), rel=0.01)
        for label in (y, ~y):
            plain = log_odds[label & has, i].mean()
            weighed = np.average(log_odds[label, i], weights=weights[label, i])
            true = log_odds[label, i].mean()
            # Groups of rows leave a little of the difference.
            assert abs(weighed - true) < 0.15 * abs(plain - true) + 0.03


def test_three_classes_are_represented_too() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 3000)
    log_odds = rng.normal(size=(3000, 3, 2))
    there = np.ones((3000, 2), dtype=bool)
    there[:, 1] = rng.random(3000) > np.array([0.7, 0.4, 0.1])[y]
    weights = along(y, log_odds, there)
    np.testing.assert_allclose(np.bincount(y, weights[:, 2]), np.bincount(y))


def test_complete_rows_count_as_they_are() -> None:
    y = np.arange(8) % 2
    weight = np.random.default_rng(0).random(8)
    rows = FollowedRows(np.zeros((8, 3)), y.astype(float), weight)
    found = rows.weights_along(SetSequence(np.arange(2), 0), 2)
    np.testing.assert_array_equal(found, np.tile(weight[:, None], 3))
    after = np.random.default_rng(1).normal(size=8)
    np.testing.assert_array_equal(estimated_after(weight, weight, after, after + 3), after)


def test_nothing_is_followed_where_a_class_has_too_few_rows() -> None:
    """Four rows of a class represent nobody, and no correction comes of the other class."""
    y = np.arange(200) % 2
    there = np.ones((200, 2), dtype=bool)
    there[np.flatnonzero(y)[4:], 0] = False
    weights = along(y, np.random.default_rng(0).normal(size=(200, 3)), there)
    np.testing.assert_array_equal(weights[:, 0], 1.0)
    assert not weights[:, 1:].any()


def test_a_row_without_a_value_of_the_first_set_is_not_followed() -> None:
    y, log_odds = np.arange(200) % 2, np.zeros((200, 2))
    there = np.ones((200, 2), dtype=bool)
    there[:50, 0] = False
    rows = FollowedRows(log_odds, y.astype(float), np.ones(200), there=there)
    weights = rows.weights_along(SetSequence(np.arange(2), 1), 1)
    np.testing.assert_array_equal(weights[:50], 0.0)
    np.testing.assert_allclose(weights[50:], 200 / 150)


def test_the_cost_after_a_step_has_the_right_mean() -> None:
    """Whatever was expected, where the share of rows that are followed is right."""
    rng = np.random.default_rng(2)
    share = rng.uniform(0.2, 1.0, 200_000)
    followed = rng.random(len(share)) < share
    after, expected = 3 + 5 * share, np.full(len(share), 40.0)
    found = estimated_after(np.ones_like(share), followed / share, after, expected)
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - after.mean()) < 3 * error
    # And where the expectation is right, whatever the weights.
    found = estimated_after(np.ones_like(share), 2.0 * followed, after, after)
    np.testing.assert_allclose(found, after)

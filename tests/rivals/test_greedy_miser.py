"""GreedyMiser: what every policy promises, how costs steer it, and where it beats a fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, load_pima, paper_folds
from adacos.datasets import make_value_dependent_problem
from adacos.exceptions import InvalidInputError
from adacos.rivals import GreedyMiserClassifier
from adacos.rivals.calibration import class_weights, fit_calibration
from tests.rivals.problems import MIXED_COSTS, mixed_table, total_cost

SMALL = {"n_trees": 8, "n_lambdas": 3, "cv": 3}


def test_free_covariates_are_all_used_and_expensive_ones_never() -> None:
    X, y, *_ = load_pima(as_frame=False)
    free = GreedyMiserClassifier(Costs([0.0] * 8), **SMALL).fit(X, y)
    assert free.lambda_ == 0
    assert (free.predict(X) == y).mean() > 0.75
    expensive = GreedyMiserClassifier(
        Costs([1e6] * 8, false_positive=10, false_negative=1), **SMALL
    ).fit(X, y)
    assert expensive.acquire(X).cost.max() == 0
    np.testing.assert_allclose(expensive.predict_proba(X)[:, 1], y.mean(), atol=0.02)


def test_labels_follow_the_misclassification_costs() -> None:
    X, y, *_ = load_pima(as_frame=False)
    positives = []
    for false_negative in (10.0, 100.0, 1000.0):
        costs = Costs([0.0] * 8, false_positive=100, false_negative=false_negative)
        policy = GreedyMiserClassifier(costs, n_trees=20, n_lambdas=1, cv=3).fit(X, y)
        positives.append(policy.predict(X).mean())
        # The label is the Bayes decision at the probability, however costs entered.
        cut = 100 / (100 + false_negative)
        np.testing.assert_array_equal(
            policy.predict(X), (policy.predict_proba(X)[:, 1] >= cut).astype(int)
        )
    assert positives[0] < 0.2
    assert positives[0] < positives[1] < positives[2]


def test_probabilities_are_calibrated_on_new_rows() -> None:
    X, y, *_ = load_pima(as_frame=False)
    train = paper_folds("pima") != 0
    for false_negative in (1.0, 8.0):
        costs = Costs([0.0] * 8, false_positive=1.0, false_negative=false_negative)
        policy = GreedyMiserClassifier(costs, n_trees=30, n_lambdas=1).fit(X[train], y[train])
        p = policy.predict_proba(X[~train])[:, 1]
        assert p.mean() == pytest.approx(y[~train].mean(), abs=0.08)
        log_loss = -np.log(np.where(y[~train] == 1, p, 1 - p)).mean()
        assert log_loss < 0.56


def test_calibration_finds_the_true_curve_and_weights_leave_the_sign_alone() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=(20000, 2))
    y = (rng.random(20000) < 1 / (1 + np.exp(-(1.5 * score[:, 0] - 0.7)))).astype(float)
    matrix = np.array([[0.0, 1.0], [3.0, 0.0]])
    slope, intercept = fit_calibration(score, y, matrix, weighted=False)
    np.testing.assert_allclose(slope, [1.5, 0.0], atol=0.06)
    np.testing.assert_allclose(intercept[0], -0.7, atol=0.05)
    # Weighted rows have log-odds higher by log 3.
    weighted_score = 1.5 * score[:, 0] - 0.7 + np.log(3)
    slope, intercept = fit_calibration(weighted_score, y, matrix, weighted=True)
    assert slope == pytest.approx(1.0, abs=0.05)
    assert intercept == pytest.approx(-np.log(3))
    weight = class_weights(y, matrix)
    assert weight.mean() == pytest.approx(1.0)
    assert weight[y == 1][0] == pytest.approx(3 * weight[y == 0][0])


def test_calibration_stays_finite_on_separated_classes() -> None:
    y = np.repeat([0.0, 1.0], 50)
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    for weighted in (True, False):
        curve = fit_calibration(np.where(y > 0, 5.0, -5.0), y, matrix, weighted)
        assert np.isfinite(curve).all()
        assert 0 < curve[0] < 5


def test_beats_a_fixed_order_where_the_next_covariate_depends_on_a_value() -> None:
    problem = make_value_dependent_problem(n_irrelevant=1)
    X, y = problem.sample(1500, seed=1)
    new, truth = problem.sample(4000, seed=2)
    costs = Costs(list(problem.prices.values()), false_positive=40, false_negative=40)
    miser = GreedyMiserClassifier(costs, n_trees=30, n_lambdas=8).fit(X, y)
    ours = AdaCOSClassifier(costs).fit(X, y)
    assert total_cost(miser, new, truth) < total_cost(ours, new, truth) - 1.0
    # Not every row acquires the same.
    assert len(np.unique(miser.acquire(new).acquired, axis=0)) > 1


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("loss", "hinge"),
        ("depth", 0),
        ("learning_rate", 0.0),
        ("n_trees", 0),
        ("n_lambdas", 0),
        ("max_bins", 1),
        ("cv", 1),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(parameter: str, value: Any) -> None:
    X, y = mixed_table(40)
    with pytest.raises(InvalidInputError, match=parameter):
        GreedyMiserClassifier(MIXED_COSTS, **{parameter: value}).fit(X, y)

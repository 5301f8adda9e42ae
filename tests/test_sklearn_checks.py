"""scikit-learn's tools around our estimators, and its checks of those that are no policies.

Policies go through its checks in `tests/test_every_policy.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    GaussianImputer,
    LogisticGAM,
    TargetRecallClassifier,
)
from adacos.exceptions import InvalidInputError
from adacos.metrics import neg_total_cost_scorer
from adacos.policies.estimates import cost_estimates

POLICIES = [FullModelClassifier, COSClassifier, AdaCOSClassifier]
CLASSIFIERS = [LogisticGAM, *POLICIES]


@parametrize_with_checks([GaussianImputer(), LogisticGAM(), LogisticGAM(interactions="auto")])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def draw(n: int = 120, seed: int = 3) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-1.5 * values[:, 0] + values[:, 1]))).astype(int)
    return pd.DataFrame(values, columns=["a", "b", "c"]), y


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_in_a_pipeline_after_imputation(cls: Any) -> None:
    X, y = draw()
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    pipeline = make_pipeline(GaussianImputer(), StandardScaler(), cls(cv=3)).fit(X, y)
    assert pipeline.score(X, y) > 0.7
    assert set(pipeline.predict(X)) == {0, 1}


@pytest.mark.parametrize("cls", POLICIES)
def test_clone_keeps_parameters_and_forgets_the_fit(cls: Any) -> None:
    X, y = draw()
    costs = Costs({"a": 1.0, "b": 2.0, "c": 0.0}, false_positive=10, false_negative=20)
    policy = cls(costs=costs, n_splines=6, strengths="common", cv=3, random_state=5).fit(X, y)
    copy = clone(policy)
    assert copy.get_params() == policy.get_params()
    assert not hasattr(copy, "model_")
    np.testing.assert_array_equal(copy.fit(X, y).predict_proba(X), policy.predict_proba(X))


@pytest.mark.parametrize("cls", POLICIES)
def test_grid_search_by_total_cost(cls: Any) -> None:
    X, y = draw()
    costs = Costs({"a": 1.0, "b": 2.0, "c": 50.0}, false_positive=10, false_negative=20)
    search = GridSearchCV(
        cls(costs=costs, cv=3),
        {"n_splines": [5, 8], "strengths": ["common"]},
        scoring=neg_total_cost_scorer,
        cv=KFold(2),
    ).fit(X, y)
    result = search.best_estimator_.acquire(X)
    wrong = np.where(result.label == y, 0.0, np.where(y == 1, 20.0, 10.0))
    assert search.score(X, y) == pytest.approx(-(result.cost + wrong).mean(), rel=1e-12)
    by_hand = cross_val_score(
        cls(costs=costs, cv=3, **search.best_params_),
        X,
        y,
        scoring=neg_total_cost_scorer,
        cv=KFold(2),
    )
    assert search.best_score_ == pytest.approx(by_hand.mean(), rel=1e-12)


def test_given_splits_are_the_folds_of_the_out_of_fold_probabilities() -> None:
    X, y = draw()
    groups = np.random.default_rng(1).integers(0, 4, len(y))
    splits = list(GroupKFold(4).split(X, y, groups))
    gam = LogisticGAM(smoothness=10.0, ridge=1.0, cv=splits).fit(X, y)
    by_splitter = LogisticGAM(smoothness=10.0, ridge=1.0, cv=KFold(4)).fit(X, y)
    assert not np.allclose(gam.out_of_fold_proba_, by_splitter.out_of_fold_proba_)
    # Changing the labels of one group leaves its own leave-out probabilities alone.
    changed = np.where(groups == 2, 1 - y, y)
    again = LogisticGAM(smoothness=10.0, ridge=1.0, cv=splits).fit(X, changed)
    own = groups == 2
    np.testing.assert_allclose(
        gam.out_of_fold_proba_[own], again.out_of_fold_proba_[own], atol=2e-3
    )
    assert np.abs(gam.out_of_fold_proba_[~own] - again.out_of_fold_proba_[~own]).max() > 0.05


@pytest.mark.parametrize(
    "held_out",
    [[range(10), range(9, 20)], [range(10), range(10, 19)], [range(20)]],
    ids=["a row twice", "a row never", "one split"],
)
def test_splits_must_hold_out_every_row_once(held_out: list[Any]) -> None:
    X, y = draw(20)
    splits = [(np.setdiff1d(np.arange(20), test), np.array(test)) for test in held_out]
    with pytest.raises(InvalidInputError, match=r"cv: must be .* hold out every row once"):
        LogisticGAM(cv=splits).fit(X, y)


def weighted_and_repeated() -> tuple[Any, ...]:
    """Incomplete rows of weights 0 to 3, the same rows repeated, and the same splits of both."""
    rng = np.random.default_rng(8)
    X, y = draw(90, seed=8)
    X = X.mask(rng.random(X.shape) < 0.15)
    weight = rng.integers(0, 4, size=90)
    rows = np.repeat(np.arange(90), weight)
    fold = np.arange(90) % 3
    every, again = np.arange(90), np.arange(len(rows))
    splits = [(every[fold != k], every[fold == k]) for k in range(3)]
    repeated = [(again[fold[rows] != k], again[fold[rows] == k]) for k in range(3)]
    return X, y, weight, splits, X.iloc[rows], y[rows], repeated


@pytest.mark.parametrize("cls", POLICIES)
@pytest.mark.parametrize("options", [{}, {"sequence": "forward"}, {"recall": 0.9}])
def test_a_row_of_weight_two_is_the_row_twice(cls: Any, options: Any) -> None:
    X, y, weight, splits, X_again, y_again, repeated = weighted_and_repeated()
    by_recall = "recall" in options
    missed = None if by_recall else 20
    costs = Costs([1.0, 0.5, 0.0], false_positive=10, false_negative=missed)
    kinds = {"strengths": "common", **({} if by_recall else options)}
    policy, twice = (cls(costs, cv=cv, **kinds) for cv in (splits, repeated))
    if by_recall:
        policy, twice = (TargetRecallClassifier(own, target_recall=0.9) for own in (policy, twice))
    around = policy.fit(X, y, sample_weight=weight, X_unlabeled=X[:20])
    around_twice = twice.fit(X_again, y_again, X_unlabeled=X[:20])
    policy, twice = around.chosen, around_twice.chosen
    assert policy.sets_ == twice.sets_
    np.testing.assert_allclose(policy.rule_.matrix, twice.rule_.matrix, rtol=1e-4)
    for name in ("mean", "covariance", "quantiles"):
        mine, other = getattr(policy.model_.joint, name), getattr(twice.model_.joint, name)
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.model_.moments, twice.model_.moments, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(policy.predict_proba(X), twice.predict_proba(X), atol=1e-5)
    if by_recall:
        # The threshold is the log-odds of one row, which rounding puts on either side of it.
        assert policy.recall_estimate_ == pytest.approx(twice.recall_estimate_)
        return
    np.testing.assert_allclose(policy.expected_cost_by_set_, twice.expected_cost_by_set_, rtol=1e-6)
    for one, two in zip(cost_estimates(policy), cost_estimates(twice), strict=True):
        assert one[1] == pytest.approx(two[1], rel=1e-6)
        # A weight says how many rows a row stands for, and not that so many were seen.
        assert one[2] >= two[2] * (1 - 1e-6)


@pytest.mark.parametrize("cls", POLICIES)
def test_a_row_of_weight_zero_is_dropped(cls: Any) -> None:
    X, y = draw()
    weight = np.where(np.arange(120) < 80, 1.0, 0.0)
    X.iloc[100:, 0] = 1e6
    policy = cls(strengths="common", cv=3)
    answers = policy.fit(X, y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(answers, policy.fit(X[:80], y[:80]).predict_proba(X), atol=1e-9)


def test_weights_that_cannot_be_honoured_are_refused() -> None:
    X, y = draw()
    policy = AdaCOSClassifier(strengths="common", cv=3)
    for weight, message in ((y - 0.5, "negative"), (y, "both classes")):
        with pytest.raises(InvalidInputError, match=message):
            policy.fit(X, y, sample_weight=weight)
    certified = TargetRecallClassifier(policy, target_recall=0.9, recall_confidence=0.9)
    with pytest.raises(InvalidInputError, match="cannot be combined with sample_weight"):
        certified.fit(X, y, sample_weight=np.ones(120))
    for cv in (1, "three", None, 2.5, [(np.arange(60), np.arange(60, 120))]):
        with pytest.raises(InvalidInputError, match="cv"):
            clone(policy).set_params(cv=cv).fit(X, y)

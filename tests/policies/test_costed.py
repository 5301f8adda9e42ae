"""Any classifier or rule on one set of covariates, by the contract of every policy."""

from __future__ import annotations

import pickle
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from adacos import AdaCOSClassifier, CostedClassifier, Costs, TargetRecallClassifier, save
from adacos.exceptions import InvalidInputError, OtherAnswerWarning
from adacos.metrics import total_cost, total_cost_scorer
from adacos.policies.nested import nested_cost
from tests.policy_checks import check_consultation, check_pickle, check_policy
from tests.rivals.problems import MIXED_COSTS, THREE_COSTS, mixed_table, three_table

BOOSTING = HistGradientBoostingClassifier(max_iter=8, random_state=0)
LOGISTIC = make_pipeline(SimpleImputer(), LogisticRegression())
COSTS = Costs([1.0, 2.0, 4.0], false_positive=10, false_negative=30)


class Above(BaseEstimator):
    """A rule that is an object."""

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0).astype(int)


def numbers(n: int = 200, seed: int = 0) -> tuple[Any, Any]:
    """Three numbers, of which the second says most and the third nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (0.7 * X[:, 0] + 2 * X[:, 1] + rng.logistic(size=n) > 0).astype(int)


@pytest.mark.parametrize("estimator", [BOOSTING, LOGISTIC], ids=["boosting", "logistic"])
@pytest.mark.parametrize("covariates", [["sugar", "kind"], []], ids=["two", "none"])
def test_promises_on_a_mixed_table(estimator: Any, covariates: list[str]) -> None:
    policy = CostedClassifier(estimator, MIXED_COSTS, covariates=covariates)
    check_policy(policy, *mixed_table(), saved=False)


def test_promises_of_three_classes_and_all_covariates() -> None:
    X, y = three_table(100)
    check_policy(CostedClassifier(BOOSTING, THREE_COSTS), X, y, saved=False)
    check_consultation(CostedClassifier(LOGISTIC, THREE_COSTS).fit(X, y), X.head(6))


def test_a_consultation_decides_as_acquire_does() -> None:
    X, y = mixed_table()
    policy = CostedClassifier(LOGISTIC, MIXED_COSTS, covariates=["blood", "sugar"]).fit(X, y)
    check_consultation(policy, X.head(12))
    step = policy.consultation().next()
    assert "Until all are there" in step.explanation.because


def test_a_pickle_decides_the_same() -> None:
    X, y = mixed_table()
    policy = CostedClassifier(LOGISTIC, MIXED_COSTS).fit(X, y)
    check_pickle(policy, X, policy.acquire(X))
    assert pickle.loads(pickle.dumps(policy)).decider_.digest == policy.decider_.digest
    assert CostedClassifier(LOGISTIC, MIXED_COSTS).fit(X, y).decider_.digest == (
        policy.decider_.digest
    )


def test_the_answer_is_the_cheapest_by_the_probabilities_of_the_estimator() -> None:
    X, y = numbers()
    policy = CostedClassifier(LogisticRegression(), COSTS, covariates=[1, 0]).fit(X, y)
    own = LogisticRegression().fit(X[:, [1, 0]], y).predict_proba(X[:, [1, 0]])
    np.testing.assert_allclose(policy.predict_proba(X), own)
    cheapest = (own @ np.array([[0, 10], [30, 0]])).argmin(axis=1)
    result = policy.acquire(X)
    np.testing.assert_array_equal(result.label, cheapest)
    assert result.covariates(0) == ("x1", "x0")
    assert (result.cost == 3.0).all()
    wrong = np.array([[0, 10], [30, 0]])[y, cheapest]
    assert total_cost(result, y, COSTS) == pytest.approx(3.0 + wrong.mean())


def test_a_mean_panel_is_charged_in_the_order_given() -> None:
    X, y = numbers()
    costs = Costs(
        {"x0": 5.0, "x1": 4.0, "x2": 1.0},
        false_positive=9,
        false_negative=9,
        panels={"draw": {"x0": 1.0, "x1": 3.0}},
    )
    for order, paid in ((["x0", "x1"], 8.0), (["x1", "x0"], 5.0)):
        policy = CostedClassifier(LogisticRegression(), costs, covariates=order).fit(X, y)
        assert policy.acquire(X).cost[0] == paid


def test_a_round_is_waited_for_once() -> None:
    X, y = numbers()
    costs = Costs([1.0, 2.0, 4.0], false_positive=10, false_negative=30, round_cost=0.5)
    assert CostedClassifier(LogisticRegression(), costs).fit(X, y).acquire(X).cost[0] == 7.5


@pytest.mark.parametrize(
    "rule",
    [lambda rows: rows[:, 0] > 0, lambda rows: np.where(rows[:, 0] > 0, 1, 0), Above()],
    ids=["truth", "classes", "object"],
)
def test_a_rule_answers_as_it_does_and_its_errors_are_foretold(rule: Any) -> None:
    X, y = numbers(400)
    # At these costs the cheapest answer is 1 for every row.
    costs = Costs([1.0, 2.0, 4.0], false_positive=1, false_negative=500)
    policy = CostedClassifier(rule, costs, covariates=["x1"]).fit(X, y)
    fresh, true = numbers(4000, seed=1)
    result = policy.acquire(fresh)
    np.testing.assert_array_equal(result.label, fresh[:, 1] > 0)
    assert result.expected_cost.mean() == pytest.approx(total_cost(result, true, costs), rel=0.25)
    share = np.mean(y[X[:, 1] > 0])
    np.testing.assert_allclose(result.probability[fresh[:, 1] > 0], share, atol=0.01)


def test_without_probabilities_answers_are_shares_and_another_answer_is_reported() -> None:
    X, y = numbers(300)
    words = np.where(y == 1, "sick", "well")
    even = Costs([1.0, 2.0, 4.0], false_positive=10, false_negative=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OtherAnswerWarning)
        policy = CostedClassifier(LinearSVC(), even).fit(X, words)
    np.testing.assert_allclose(policy.answered_shares_.sum(axis=1), 1.0)
    np.testing.assert_array_equal(policy.predict(X), LinearSVC().fit(X, words).predict(X))
    expensive = Costs([1.0, 2.0, 4.0], misclassification=[[0, 1], [900, 0]])
    with pytest.warns(OtherAnswerWarning, match="answers 'sick' are answered 'well'"):
        assert set(CostedClassifier(LinearSVC(), expensive).fit(X, words).predict(X)) == {"well"}


def test_known_values_must_be_the_whole_set_or_none() -> None:
    X, y = numbers()
    policy = CostedClassifier(LogisticRegression(), COSTS, covariates=["x0", "x1"]).fit(X, y)
    np.testing.assert_array_equal(
        policy.predict_proba(X, known=["x0", "x1"]), policy.predict_proba(X)
    )
    np.testing.assert_allclose(policy.predict_proba(X, known=[])[:, 1], y.mean())
    for known in (["x0"], ["x0", "x1", "x2"], ["x2"]):
        with pytest.raises(InvalidInputError, match="must be x0, x1"):
            policy.predict_proba(X, known=known)
    holed = X.copy()
    holed[3, 0] = np.nan
    with pytest.raises(InvalidInputError, match="received x1\\."):
        policy.predict_proba(holed, known=["x0", "x1"])


def test_missing_values_are_refused_in_words_where_the_estimator_takes_none() -> None:
    X, y = numbers()
    holed = X.copy()
    holed[:5, 0] = np.nan
    with pytest.raises(InvalidInputError, match=r"x0.*5 of .* rows without one.*make_pipeline"):
        CostedClassifier(LogisticRegression(), COSTS).fit(holed, y)
    # What is not acquired may be missing.
    CostedClassifier(LogisticRegression(), COSTS, covariates=["x1"]).fit(holed, y).acquire(holed)
    policy = CostedClassifier(LogisticRegression(), COSTS).fit(X, y)
    with pytest.raises(InvalidInputError, match="takes no missing values"):
        policy.acquire(holed)
    consultation = policy.consultation({"x1": 0.0, "x2": 0.0}).unavailable("x0")
    with pytest.raises(InvalidInputError, match="takes no missing values"):
        consultation.next()
    for takes in (BOOSTING, LOGISTIC):
        assert len(CostedClassifier(takes, COSTS).fit(holed, y).acquire(holed)) == 200


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"estimator": COSTS}, "Costs"),
        ({"estimator": LogisticRegression}, r"add \(\)"),
        ({"estimator": LinearRegression()}, "LinearRegression"),
        ({"estimator": AdaCOSClassifier()}, "A policy is scored as it is"),
        ({"estimator": 3}, "must be a classifier"),
        ({"covariates": "x1"}, r"Pass \['x1'\]"),
        ({"covariates": ["x7"]}, "The columns are x0, x1, x2"),
        ({"covariates": [9]}, "by name or position"),
        ({"covariates": [True, False, True]}, "by name or position"),
        ({"covariates": ["x1", 1]}, "different from each other"),
        ({"covariates": ["x2", "x1"], "budget": 3.0}, "at least 6, what the covariates cost"),
        ({"cv": 1}, "cv"),
    ],
)
def test_natural_mistakes_are_reported(given: dict[str, Any], reported: str) -> None:
    X, y = numbers(60)
    policy = CostedClassifier(**{"estimator": LOGISTIC, "costs": COSTS, **given})
    with pytest.raises(InvalidInputError, match=reported):
        policy.fit(X, y)


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        (lambda rows: rows, "one class"),
        (lambda rows: np.full(len(rows), "yes"), "classes 0, 1"),
        (lambda rows: np.full(len(rows), 2), "classes 0, 1"),
    ],
)
def test_a_rule_that_answers_otherwise_is_refused(rule: Any, reported: str) -> None:
    with pytest.raises(InvalidInputError, match=reported):
        CostedClassifier(rule, COSTS).fit(*numbers(60))


def test_a_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    X, y = numbers(80)
    policy = CostedClassifier(LogisticRegression(), COSTS)
    for model in (policy, TargetRecallClassifier(policy)):
        with pytest.raises(InvalidInputError, match="pickle or joblib"):
            save(model.fit(X, y), tmp_path / "model.adacos")
    assert not list(tmp_path.iterdir())


def test_scikit_learn_searches_its_parameters() -> None:
    X, y = numbers(120)
    policy = CostedClassifier(DecisionTreeClassifier(random_state=0), COSTS)
    search = GridSearchCV(
        policy,
        {"estimator__max_depth": [1, 3], "covariates": [["x1"], None]},
        scoring=total_cost_scorer(COSTS),
        cv=2,
    ).fit(X, y)
    assert search.best_params_["covariates"] == ["x1"]


def test_the_best_set_is_that_of_an_exhaustive_search() -> None:
    """Of three covariates one says most, one is too dear for what it says, one says nothing."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 3))
    y = (2 * X[:, 0] + X[:, 1] + rng.logistic(size=600) > 0).astype(int)
    costs = Costs([1.0, 9.0, 0.5], false_positive=20, false_negative=20)
    policy = CostedClassifier(LogisticRegression(), costs, covariates="best").fit(X, y)
    cost = {}
    for size in range(4):
        for members in combinations(range(3), size):
            one = CostedClassifier(LogisticRegression(), costs, covariates=list(members))
            cost[members] = nested_cost(one, X, y).mean
    assert min(cost, key=cost.__getitem__) == (0,)
    assert policy.covariates_ == ("x0",)
    # The folds are the same, and so is the cost.
    assert policy.cv_cost_.min() == pytest.approx(cost[(0,)])
    assert policy.cv_cost_[0] == pytest.approx(cost[()])


def test_a_budget_bounds_the_best_set_and_sets_that_cannot_win_are_not_compared() -> None:
    X, y = numbers(300)
    expensive = Costs([1.0, 2.0, 400.0], false_positive=30, false_negative=30)
    policy = CostedClassifier(LogisticRegression(), expensive, covariates="best").fit(X, y)
    assert set(policy.covariates_) <= {"x0", "x1"}
    assert np.isinf(policy.cv_cost_[-1])
    bound = CostedClassifier(LogisticRegression(), expensive, covariates="best", budget=1.0)
    assert bound.fit(X, y).covariates_ in ((), ("x0",))
    assert bound.acquire(X).cost.max() <= 1.0


def test_many_covariates_go_by_the_group_lasso_and_copies_stay_together() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 31))
    y = (5 * X[:, 5] + rng.logistic(size=60) > 0).astype(int)
    rows = np.repeat(np.arange(60), 2)
    costs = Costs([1.0] * 31, false_positive=50, false_negative=50)
    policy = CostedClassifier(LogisticRegression(), costs, covariates="best", cv=2)
    policy.fit(X[rows], y[rows], groups=rows)
    assert "x5" in policy.covariates_
    # A tree that remembers rows does not gain by their copies.
    tree = CostedClassifier(
        DecisionTreeClassifier(random_state=0), costs, covariates="best", cv=2
    ).fit(X[rows], y[rows], groups=rows)
    assert tree.cv_cost_.min() > 2.0


def test_rare_classes_and_a_class_that_a_fold_misses() -> None:
    X, y = numbers(60)
    y = y.astype(int)
    y[:1] = 2
    costs = Costs([1.0, 2.0, 4.0], misclassification=10 * (1 - np.eye(3)))
    policy = CostedClassifier(BOOSTING, costs, covariates="best").fit(X, y)
    np.testing.assert_allclose(policy.predict_proba(X).sum(axis=1), 1.0)


def test_a_data_frame_with_categories_and_the_nested_cost() -> None:
    X, y = mixed_table(120)
    policy = CostedClassifier(BOOSTING, MIXED_COSTS, covariates=["kind"])
    nested = nested_cost(policy, X, y, folds=2)
    assert nested.result.acquired[:, list(X.columns).index("kind")].any()
    assert isinstance(X, pd.DataFrame)

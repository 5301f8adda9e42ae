"""What answers cost and how right they were, counted by hand."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import adacos
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier
from adacos.exceptions import InvalidInputError, UnstatedCostWarning
from adacos.metrics import (
    false_discovery_rate,
    neg_total_cost_scorer,
    operation_cost,
    recall,
    total_cost,
    total_cost_scorer,
    total_costs,
    weighted_accuracy,
)

COSTS = Costs([1.0], misclassification=[[-5, 40], [70, -9]])


def answered(label: Any, cost: Any = 0.0) -> Any:
    label = np.asarray(label)
    return SimpleNamespace(label=label, cost=np.broadcast_to(cost, label.shape))


def test_by_hand() -> None:
    result = answered([0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0])
    y = [0, 0, 1, 1, 0]
    expected = [1 - 5, 2 + 40, 3 + 70, 4 - 9, 5 + 40]
    np.testing.assert_array_equal(total_costs(result, y, COSTS), expected)
    assert total_cost(result, y, COSTS) == pytest.approx(np.mean(expected))
    assert operation_cost(result, y, COSTS) == pytest.approx(np.mean([1, 42, 3, 4, 45]))
    assert recall(result, y) == 0.5
    assert false_discovery_rate(result, y) == pytest.approx(2 / 3)
    assert weighted_accuracy(result, y, positive_weight=10) == pytest.approx((1 + 10) / (3 + 20))


def test_words_and_truth_values_are_classes_too() -> None:
    numbers = answered([0, 1, 1]), [0, 0, 1]
    for classes in (np.array(["fine", "ill"]), np.array([False, True]), np.array([-1, 1])):
        label, y = classes[numbers[0].label], classes[numbers[1]]
        assert total_cost(answered(label), y, COSTS) == total_cost(*numbers, COSTS)
        assert recall(answered(label), y) == 1.0


def test_one_class_among_the_rows() -> None:
    ones = answered([1, 1])
    assert recall(ones, [1, 1]) == 1.0
    assert total_cost(ones, [1, 1], COSTS) == -9
    assert total_cost(answered([0, 0]), [0, 0], COSTS) == -5
    assert np.isnan(recall(answered([0, 1]), [0, 0]))
    assert np.isnan(false_discovery_rate(answered([0, 0]), [0, 1]))


def test_labels_must_belong_together() -> None:
    with pytest.raises(InvalidInputError, match="3 labels for 2 rows"):
        total_cost(answered([0, 1]), [0, 1, 1], COSTS)
    for label, y in (([0, 1], [0, 2]), (["ill", "ill"], ["ill", "ill"]), ([0, 1], [3, 4])):
        with pytest.raises(InvalidInputError, match="must be of two classes"):
            total_cost(answered(label), y, COSTS)


def test_the_order_of_scikit_learn_is_reported_apart() -> None:
    with pytest.raises(InvalidInputError, match=r"total_cost\(result, y, costs\)"):
        total_cost([0, 1], answered([0, 1]), COSTS)
    with pytest.raises(InvalidInputError, match="costs: must be a Costs object"):
        total_cost(answered([0, 1]), [0, 1], [[0, 1], [1, 0]])  # type: ignore[arg-type]


def noisy(n: int = 200) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("stated", ["false_positive", "false_negative"])
def test_the_cost_of_the_other_error_is_not_guessed(stated: str) -> None:
    """It counted as 1: beside a false alarm of 100 every row was answered negative."""
    X, y = noisy()
    other = {"false_positive": "false_negative"}.get(stated, "false_positive")
    costs = Costs([1.0, 2.0], **{stated: 100})
    with pytest.raises(InvalidInputError, match=f"received no {other}"):
        AdaCOSClassifier(costs).fit(X, y)
    with pytest.raises(InvalidInputError, match=f"received no {other}"):
        total_cost(answered([0, 1]), [0, 1], costs)
    with pytest.raises(InvalidInputError, match=f"received no {other}"):
        total_cost_scorer(costs)
    quick = {"cv": 2, "strengths": "common"}
    whole = Costs([1.0, 2.0], false_positive=100, false_negative=100)
    fitted = AdaCOSClassifier(whole, **quick).fit(X, y)
    with pytest.raises(InvalidInputError, match=f"received no {other}"):
        AdaCOSClassifier(costs).from_model(fitted)


def test_errors_without_a_cost_next_to_prices_are_said_to_count_as_one() -> None:
    X, y = noisy()
    quick = {"cv": 2, "strengths": "common"}
    with pytest.warns(UnstatedCostWarning, match=r"false_positive, false_negative\), so that each"):
        AdaCOSClassifier(Costs([1.0, 2.0]), **quick).fit(X, y)
    with pytest.warns(UnstatedCostWarning, match=r"an error \(false_positive\)"):
        TargetRecallClassifier(AdaCOSClassifier(Costs([1.0, 2.0]), **quick), target_recall=0.9).fit(
            X, y
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AdaCOSClassifier(Costs([0.0, 0.0]), **quick).fit(X, y)
        AdaCOSClassifier(None, **quick).fit(X, y)
        by_recall = Costs([1.0, 2.0], false_positive=10)
        TargetRecallClassifier(AdaCOSClassifier(by_recall, **quick), target_recall=0.9).fit(X, y)


def test_a_search_over_costs_is_scored_by_fixed_ones_or_warned_of() -> None:
    """Each candidate was scored by its own costs: the cheapest errors won."""
    X, y = noisy()
    truth, light = (Costs([1.0, 2.0], false_positive=c, false_negative=c) for c in (40, 2))
    policy = AdaCOSClassifier(truth, cv=2, strengths="common")
    grid = {"costs": [light, truth]}
    with pytest.warns(UserWarning, match="the scores cannot be compared"):
        own = GridSearchCV(policy, grid, scoring=neg_total_cost_scorer, cv=2).fit(X, y)
    assert own.best_params_["costs"] == light
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fixed = GridSearchCV(policy, grid, scoring=total_cost_scorer(truth), cv=2).fit(X, y)
        cross_val_score(policy, X[:150], y[:150], scoring=neg_total_cost_scorer, cv=2)
    assert fixed.best_params_["costs"] == truth
    cheap = AdaCOSClassifier(light, cv=2, strengths="common").fit(X, y)
    result = cheap.acquire(X)
    prices = result.acquired @ np.array([1.0, 2.0])
    expected = -(prices + 40 * (result.label != y)).mean()
    assert total_cost_scorer(truth)(cheap, X, y) == pytest.approx(expected)


def test_a_fixed_cost_of_waiting_must_be_that_of_the_policy() -> None:
    X, y = noisy()
    errors = {"false_positive": 40, "false_negative": 40}
    waits = Costs([1.0, 2.0], **errors, round_cost=3.0)
    policy = AdaCOSClassifier(waits, cv=2, strengths="common").fit(X, y)
    own = neg_total_cost_scorer(policy, X, y)
    assert total_cost_scorer(waits)(policy, X, y) == pytest.approx(own)
    with pytest.raises(InvalidInputError, match="cost of waiting must be that of the policy"):
        total_cost_scorer(Costs([1.0, 2.0], **errors))(policy, X, y)


def test_the_scorer_knows_the_classes_of_the_policy() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "ill", "fine")
    costs = Costs([1.0, 2.0], misclassification=[[-5, 40], [70, -9]])
    policy = AdaCOSClassifier(costs, cv=2, strengths="common").fit(X, y)
    for rows in (slice(None), y == "ill", y == "fine"):
        result = policy.acquire(X[rows])
        wrong = np.select(
            [
                (y[rows] == "fine") & (result.label == "fine"),
                y[rows] == "fine",
                result.label == "ill",
            ],
            [-5, 40, -9],
            70,
        )
        score = neg_total_cost_scorer(policy, X[rows], y[rows])
        assert score == pytest.approx(-(result.cost + wrong).mean())
    with pytest.raises(InvalidInputError, match="two classes"):
        neg_total_cost_scorer(policy, X, np.full(60, "dead"))


def test_the_scorer_reaches_the_policy_at_the_end_of_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    costs = Costs([1.0, 2.0], false_positive=20, false_negative=30)
    policy = AdaCOSClassifier(costs, cv=2, strengths="common")
    chosen = ColumnTransformer([("first", StandardScaler(), [0, 1])])
    pipeline = Pipeline([("scale", chosen), ("policy", policy)]).fit(X, y)
    result = policy.acquire(chosen.transform(X))
    expected = -total_cost(result, y, costs)
    assert neg_total_cost_scorer(pipeline, X, y) == pytest.approx(expected)
    nested = Pipeline([("all", pipeline)])
    assert neg_total_cost_scorer(nested, X, y) == pytest.approx(expected)
    scores = cross_val_score(pipeline, X, y, scoring=neg_total_cost_scorer, cv=2)
    assert np.all(np.isfinite(scores))


def test_acquire_goes_through_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    costs = Costs([1.0, 2.0], false_positive=20, false_negative=30)
    policy = AdaCOSClassifier(costs, cv=2, strengths="common")
    chosen = ColumnTransformer([("first", StandardScaler(), [0, 1])])
    pipeline = Pipeline([("scale", chosen), ("policy", policy)]).fit(X, y)
    known = np.array([True, False])
    expected = policy.acquire(chosen.transform(X), known=known)
    for estimator in (pipeline, Pipeline([("all", pipeline)])):
        found = adacos.acquire(estimator, X, known=known)
        np.testing.assert_array_equal(found.acquired, expected.acquired)
        np.testing.assert_array_equal(found.cost, expected.cost)
    np.testing.assert_array_equal(
        adacos.acquire(policy, chosen.transform(X)).label, pipeline.predict(X)
    )
    with pytest.raises(InvalidInputError, match="must be a policy"):
        adacos.acquire(Pipeline([("scale", chosen)]), X)


def test_a_frame_of_the_result_needs_pandas_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).normal(size=(40, 1))
    policy = AdaCOSClassifier(Costs([1.0]), cv=2, strengths="common").fit(X, X[:, 0] > 0)
    result = policy.acquire(X)
    assert isinstance(result, adacos.AcquisitionResult)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


def test_errors_without_a_cost_count_as_one_and_it_is_said() -> None:
    result = SimpleNamespace(label=np.array([0, 1]), cost=np.array([1.0, 3.0]))
    with pytest.warns(UnstatedCostWarning, match="each counts as 1 next to"):
        assert total_cost(result, [1, 1], Costs([1.0, 2.0])) == 2.5
    with pytest.warns(UnstatedCostWarning, match="a false alarm, so that it counts as 1"):
        operation_cost(result, [1, 0], Costs({"a": 1.0}))
    with pytest.warns(UnstatedCostWarning, match="each counts as 1"):
        total_cost_scorer(Costs([1.0, 2.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Nothing to weigh against: the share of errors, and no false alarm that is unstated.
        total_cost(result, [1, 1], Costs())
        total_cost(result, [1, 1], Costs([0.0, 0.0]))
        operation_cost(result, [1, 0], Costs([1.0], false_positive=5))


def test_words_and_numbers_are_reported_apart() -> None:
    result = SimpleNamespace(label=np.array(["no", "yes"], dtype=object), cost=np.ones(2))
    for measure in (
        lambda: adacos.metrics.recall(result, [0, 1]),
        lambda: adacos.metrics.total_cost(
            result, [0, 1], Costs(false_positive=1, false_negative=2)
        ),
    ):
        with pytest.raises(InvalidInputError, match="words or numbers, not both") as reported:
            measure()
        assert "'no', 'yes', 0, 1" in str(reported.value)

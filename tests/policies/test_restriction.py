"""Questions asked of every row, or of none, as part of a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    Consultation,
    COSClassifier,
    Costs,
    InvalidInputError,
    PlanningClassifier,
    ProtocolClassifier,
    TargetRecallClassifier,
    export,
    load,
    load_pima,
    save,
    sensitivity,
)
from adacos.card import model_card, recalls_in_words
from adacos.consultation.steps import Acquire

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LISTS = {"must": ["Pregnancies", "Age"], "never": ["BMI"]}
QUICK: dict[str, Any] = {"cv": 2, "strengths": "common"}


def _recall(costs: Any) -> Any:
    return TargetRecallClassifier(PlanningClassifier(costs, cv=2), target_recall=0.9)


MAKE = {
    "AdaCOS": lambda costs: AdaCOSClassifier(costs, **QUICK),
    "budget": lambda costs: AdaCOSClassifier(costs, budget=12.0, **QUICK),
    "Branching": lambda costs: BranchingClassifier(costs, max_depth=1, **QUICK),
    "COS": lambda costs: COSClassifier(costs, **QUICK),
    "Planning": lambda costs: PlanningClassifier(costs, cv=2),
    "protocol": lambda costs: ProtocolClassifier(costs, protocol="if BMI > 30: 1\n0"),
    "recall": lambda costs: TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK)),
    "recall around": _recall,
}


def table() -> tuple[Any, Any, Any]:
    X, y, prices, *_ = load_pima(zeros="missing")
    keep = ["Glucose", "BMI", "Age", "Pregnancies"]
    costs = Costs({name: prices[name] for name in keep}, false_positive=100, false_negative=500)
    return X[keep], y, costs


@pytest.fixture(scope="module", params=list(MAKE))
def fitted(request):  # type: ignore[no-untyped-def]
    X, y, costs = table()
    return MAKE[request.param](costs).fit(X[:400], y[:400]), X[400:430], y[400:430]


def same(first: Any, second: Any) -> None:
    for name in ("label", "order", "cost", "stage"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_allclose(first.expected_cost, second.expected_cost, rtol=1e-12)


def test_the_lists_of_a_policy_are_those_of_each_call(fitted: Any) -> None:
    policy, X, _ = fitted
    ours = policy.restrict(**LISTS)
    same(ours.acquire(X), policy.acquire(X, **LISTS))
    same(policy.restrict(must=LISTS["must"]).acquire(X, never=["BMI"]), ours.acquire(X))
    same(ours.restrict().acquire(X), policy.acquire(X))
    known = {"known": ["BMI"]}
    same(ours.acquire(X, **known), policy.acquire(X, **LISTS, **known))
    some = X.assign(Age=np.nan, BMI=np.nan)
    np.testing.assert_array_equal(ours.next(some).order, policy.next(some, **LISTS).order)


def test_a_consultation_asks_as_acquire_does(fitted: Any) -> None:
    policy, X, _ = fitted
    ours = policy.restrict(**LISTS)
    result = ours.acquire(X)
    assert result.acquired[:, [2, 3]].all()
    assert not result.acquired[:, 1].any()
    for row, values in enumerate(X.to_dict("records")):
        case = ours.consultation(key=row)
        if gone := [name for name, value in values.items() if value != value and name != "BMI"]:
            case.unavailable(*gone)
        asked: list[str] = []
        while isinstance(step := case.next(), Acquire):
            asked += step.covariates
            assert "BMI" not in {one.covariate for one in case.alternatives()}
            case.observe({name: values[name] for name in step.covariates})
        assert tuple(asked) == result.covariates(row)
        assert step.label == result.label[row]
        assert step.expected_cost == pytest.approx(result.expected_cost[row])
        # Nobody departed from what this policy asks.
        assert (case.must, case.never) == ((), ())
        assert "somebody chose what is asked" not in case.departures
    again = Consultation.from_state(ours, json.loads(json.dumps(case.state())))
    assert again.next() == case.next()


def test_a_file_holds_the_lists(fitted: Any, tmp_path: Path) -> None:
    policy, X, _ = fitted
    ours = policy.restrict(**LISTS)
    save(ours, tmp_path / "ours.adacos")
    loaded = load(tmp_path / "ours.adacos")
    assert loaded.restriction_ == ours.restriction_
    assert loaded.decider_.digest == ours.decider_.digest != policy.decider_.digest
    assert ours.restrict().decider_.digest == policy.decider_.digest
    same(loaded.acquire(X), ours.acquire(X))
    card = model_card(loaded)
    assert card["restriction"]["never"] == ["BMI"]
    assert "No row is asked: BMI" in card["restriction"]["text"]
    assert card["certificate"] is None
    with pytest.raises(InvalidInputError, match="cannot name a covariate that is never asked"):
        loaded.acquire(X, must=["BMI"])


def test_costs_that_are_stated_are_those_of_the_lists() -> None:
    X, y, costs = table()
    policy = AdaCOSClassifier(costs, **QUICK).fit(X[:400], y[:400])
    without = policy.consultation()
    without.unavailable("BMI")
    step = without.next().explanation
    ours = policy.restrict(never=["BMI"])
    assert ours.expected_cost_ == pytest.approx(step.best_plan.expected_total_cost)
    assert ours.expected_cost_ >= policy.expected_cost_ - 1e-9
    assert policy.restrict(must=["Age"]).expected_cost_ is None
    found = sensitivity(ours, X[400:], y[400:], {"Glucose": (5, 40)}, draws=2, grid=0)
    stated = ours.acquire(X[400:])
    paid = stated.cost + np.array([[0, 100], [500, 0]])[y[400:], stated.label]
    assert found.total == pytest.approx(paid.mean())
    with pytest.raises(InvalidInputError, match="always or never asked"):
        export(ours, "nowhere.html")


def test_recalibrated_and_restricted_either_way_round() -> None:
    X, y, costs = table()
    policy = AdaCOSClassifier(costs, **QUICK).fit(X[:400], y[:400])
    one = policy.restrict(**LISTS).recalibrate(prevalence=0.1)
    other = policy.recalibrate(prevalence=0.1).restrict(**LISTS)
    assert one.restriction_ == other.restriction_
    assert one.decider_.digest == other.decider_.digest
    same(one.acquire(X[400:]), other.acquire(X[400:]))


def test_what_auto_chose_keeps_to_the_lists() -> None:
    X, y, costs = table()
    policy = AutoPolicyClassifier(costs, cv=2).fit(X[:400], y[:400])
    ours = policy.restrict(**LISTS)
    same(ours.acquire(X[400:]), policy.acquire(X[400:], **LISTS))
    assert not ours.chosen.acquire(X[400:]).acquired[:, 1].any()


def test_three_classes_with_a_recall_say_that_it_is_not_certified() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.normal(size=(400, 3)) + y[:, None]
    costs = Costs([1.0, 2.0, 3.0], misclassification=20 * (1 - np.eye(3)))
    inner = AdaCOSClassifier(costs, **QUICK)
    policy = TargetRecallClassifier(inner, target_recall={2: 0.9}).fit(X, y)
    assert "estimated, not certified" in recalls_in_words(policy)[0]
    (line,) = recalls_in_words(policy.restrict(never=["x1"]))
    assert "target 90.0%, not certified" in line
    same(policy.restrict(never=["x1"]).acquire(X), policy.acquire(X, never=["x1"]))


def test_a_mean_budget_is_refused() -> None:
    X, y, costs = table()
    policy = AdaCOSClassifier(costs, mean_budget=3.0, **QUICK).fit(X[:400], y[:400])
    with pytest.raises(InvalidInputError, match="mean budget"):
        policy.restrict(never=["BMI"])
    with pytest.raises(InvalidInputError, match="Did you mean BMI"):
        policy.restrict(never=["BIM"])

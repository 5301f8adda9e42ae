"""A person's say: other questions, questions always and never asked, and why."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    Consultation,
    COSClassifier,
    Costs,
    InvalidInputError,
    PlanningClassifier,
    ProtocolClassifier,
    load_pima,
)
from adacos.consultation.steps import Acquire

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

MAKE = {
    "AdaCOS": lambda costs: AdaCOSClassifier(costs, cv=2, strengths="common"),
    "Branching": lambda costs: BranchingClassifier(costs, cv=2, strengths="common", max_depth=1),
    "COS": lambda costs: COSClassifier(costs, cv=2, strengths="common"),
    "Planning": lambda costs: PlanningClassifier(costs, cv=2),
    "protocol": lambda costs: ProtocolClassifier(costs, protocol="if BMI > 30: 1\n0"),
}


@pytest.fixture(scope="module", params=list(MAKE))
def fitted(request):  # type: ignore[no-untyped-def]
    X, y, prices, *_ = load_pima(zeros="missing")
    keep = ["Glucose", "BMI", "Age", "Pregnancies"]
    costs = Costs({name: prices[name] for name in keep}, false_positive=100, false_negative=500)
    return MAKE[request.param](costs).fit(X[keep][:400], y[:400]), X[keep][400:430]


def test_a_consultation_asks_as_acquire_does(fitted) -> None:  # type: ignore[no-untyped-def]
    """With both lists, with missing values: same questions, label and costs for every row."""
    policy, X = fitted
    lists = {"must": ["Pregnancies", "Age"], "never": ["BMI"]}
    result = policy.acquire(X, **lists)
    assert result.acquired[:, [2, 3]].all()
    assert not result.acquired[:, 1].any()
    for row, values in enumerate(X.to_dict("records")):
        case = policy.consultation(**lists)
        if gone := [name for name, value in values.items() if value != value and name != "BMI"]:
            case.unavailable(*gone)
        asked: list[str] = []
        while isinstance(step := case.next(), Acquire):
            asked += step.covariates
            assert step.explanation.expected_saving > 0 or step.explanation.because
            case.observe({name: values[name] for name in step.covariates})
        assert tuple(asked) == result.covariates(row)
        assert step.label == result.label[row]
        assert step.cost == pytest.approx(result.cost[row])
        assert step.expected_cost == pytest.approx(result.expected_cost[row])
        # What is never asked is not missing from the data.
        assert "BMI" not in case.missing
        assert "somebody chose what is asked" in case.departures


def test_never_is_decided_as_unavailable(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X = fitted
    without = X.assign(BMI=np.nan)
    expected, found = policy.acquire(without), policy.acquire(X, never=["BMI"])
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_allclose(found.probability, expected.probability)
    known = policy.acquire(X, never=["BMI"], known=["BMI"])
    plain = policy.acquire(X, known=["BMI"])
    np.testing.assert_array_equal(known.label, plain.label)
    steps = policy.next(X.assign(Age=np.nan, BMI=np.nan), never=["BMI"], must=["Age"])
    assert all("BMI" not in steps.covariates(row) for row in range(len(X)))
    assert all("Age" in steps.covariates(row) for row in range(len(X)))


def test_what_is_demanded_is_not_said_to_save(fitted) -> None:  # type: ignore[no-untyped-def]
    """The expected saving is that of the policy's own questions, and not of a demanded one."""
    policy, _ = fitted
    free = policy.consultation().next()
    own = free.covariates if isinstance(free, Acquire) else ()
    for name in ("Glucose", "BMI", "Age", "Pregnancies"):
        step = policy.consultation(must=[name]).next()
        assert isinstance(step, Acquire)
        assert step.covariates[0] in (name, *own)
        if step.covariates == (name,) != own:
            assert step.explanation.expected_saving == 0
            assert step.explanation.best_plan is None
            assert step.explanation.because == f"Asked in any case, whatever it is worth: {name}."


def test_what_is_free_and_what_is_demanded_are_asked_together() -> None:
    X, y, prices, *_ = load_pima(zeros="missing")
    prices = {name: 0.0 if name == "Age" else prices[name] for name in ("Age", "BMI", "Glucose")}
    costs = Costs(prices, false_positive=100, false_negative=500)
    policy = AdaCOSClassifier(costs, cv=2, strengths="common").fit(X[list(prices)], y)
    for case in (policy.consultation(must=["BMI"]), policy.restrict(must=["BMI"]).consultation()):
        step = case.next()
        assert isinstance(step, Acquire)
        assert step.covariates == ("Age", "BMI")
        assert step.explanation.best_plan is None
        assert step.explanation.because == "Asked in any case, whatever it is worth: BMI."


def test_open_questions_are_ranked(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, _ = fitted
    case = policy.consultation(known={"Age": 30.0}, never=["Pregnancies"])
    found = case.alternatives()
    assert {one.covariate for one in found} == {"Glucose", "BMI"}
    totals: list[float] = [
        np.inf if one.expected_total_cost is None else one.expected_total_cost for one in found
    ]
    assert totals == sorted(totals)
    prices: NDArray[np.float64] = policy.cost_table_.covariates
    names = list(policy.encoder_.names)
    assert all(one.cost == pytest.approx(prices[names.index(one.covariate)]) for one in found)
    step = case.next()
    if isinstance(step, Acquire) and step.explanation.acquire_next is not None:
        (own,) = [one for one in found if one.covariate == step.covariates[0]]
        if not own.others:
            assert own.expected_total_cost == pytest.approx(step.explanation.acquire_next)
    case.observe(Glucose=140.0)
    assert [one.covariate for one in case.alternatives()] == ["BMI"]


def test_a_reason_and_both_lists_travel(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, _ = fitted
    case = policy.consultation(must=["Age"], never=["BMI"])
    case.observe(Glucose=150.0).because("measured this morning")
    again = Consultation.from_state(policy, json.loads(json.dumps(case.state())))
    assert again.reasons == ("measured this morning",)
    assert (again.must, again.never) == (("Age",), ("BMI",))
    assert again.next() == case.next()
    assert "must" not in policy.consultation().state()


def test_mistakes_are_named(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X = fitted
    with pytest.raises(InvalidInputError, match="Did you mean BMI"):
        policy.consultation(never=["BIM"])
    with pytest.raises(InvalidInputError, match="cannot name a covariate that is never asked"):
        policy.acquire(X, must=["BMI"], never=["BMI"])
    with pytest.raises(InvalidInputError, match="at most 500 characters"):
        policy.consultation().because("")
    with pytest.raises(InvalidInputError, match="providers"):
        policy.acquire(X, never=["BMI"], providers={"BMI": lambda row: 1.0})
    state = policy.consultation().state() | {"must": "Age"}
    with pytest.raises(InvalidInputError, match="must hold"):
        Consultation.from_state(policy, state)

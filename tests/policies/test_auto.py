"""The automatic choice: what it compares, how it decides, and that it is the chosen policy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    PlanningClassifier,
    load_pima,
)
from adacos.datasets import make_value_dependent_problem
from adacos.engine import run
from adacos.policies.auto import CANDIDATES, choose
from adacos.policies.nested import nested_cost

TITLES = [candidate.title for candidate in CANDIDATES]


def costs_of(more: dict[str, float]) -> dict[str, np.ndarray]:
    """Costs of 400 rows under each candidate: those of AdaCOS and what is added to them."""
    rng = np.random.default_rng(0)
    incumbent = rng.gamma(2.0, 5.0, size=400)
    noise = {title: rng.normal(0, 0.5, size=400) for title in TITLES}
    noise["AdaCOS"] = np.zeros(400)
    return {"AdaCOS": incumbent} | {
        title: incumbent + more.get(title, 3.0) + noise[title] - noise[title].mean()
        for title in TITLES
        if title != "AdaCOS"
    }


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        ({}, "AdaCOS"),
        # 0.5 / sqrt(400) is the standard error, 1 / 400 the share of one error.
        ({"Branching": -0.02}, "AdaCOS"),
        ({"Branching": -0.04}, "Branching"),
        ({"Branching": -0.04, "Planning": -0.05}, "Planning"),
        # COS has to show as much, though it is simpler.
        ({"COS": -0.02}, "AdaCOS"),
        ({"COS": -0.04}, "COS"),
        ({"COS": -0.04, "Branching": -0.05}, "Branching"),
    ],
)
def test_the_rule(more: dict[str, float], taken: str) -> None:
    assert choose(costs_of(more), max_error=1.0) == taken


def test_an_error_not_yet_seen_is_allowed_for() -> None:
    """A gain without any spread is refused where a single dear error would eat it."""
    cost = costs_of({})
    cost["Branching"] = cost["AdaCOS"] - 0.5
    assert choose(cost, max_error=100.0) == "Branching"
    assert choose(cost, max_error=1000.0) == "AdaCOS"


def test_which_one_is_kept() -> None:
    """Planning where no covariate has to be cut, AdaCOS elsewhere and where there is a budget.

    Branching, whose orders Planning weighs too, is compared where Planning does not stand.
    """
    X, y = make_value_dependent_problem(n_irrelevant=1).sample(200, seed=3)
    measured = X + np.random.default_rng(0).random(X.shape)
    words = pd.DataFrame(X).assign(word=np.array(["a", "b", "c"])[np.arange(200) % 3])
    words.columns = words.columns.astype(str)
    costs = Costs(false_positive=1, false_negative=1)
    few = {"cv": 2, "strengths": "common"}
    for table, budget, first in (
        (X, None, "Planning"),
        (words, None, "Planning"),
        (measured, None, "AdaCOS"),
        (X, 1.0, "AdaCOS"),
        (np.where(X == 1, np.nan, X), None, "AdaCOS"),
    ):
        table = pd.DataFrame(table).rename(columns=str)
        policy = AutoPolicyClassifier(costs, budget=budget, **few)
        encoded = policy.begin_fit(table, y).encoded
        candidates = policy._candidates(encoded)
        assert candidates[0].title == first
        titles = {candidate.title for candidate in candidates}
        planned = budget is None and not pd.isna(table).to_numpy().any()
        assert len(titles) == len(candidates)
        assert titles >= {"AdaCOS", "COS"}
        assert ("Planning" in titles) == planned
        assert ("Branching" in titles) == (first == "AdaCOS")


def test_the_costs_are_those_of_rows_that_models_did_not_see() -> None:
    """As fitted and walked by other code, and near what fits without each fold cost."""
    X, y, prices, *_ = load_pima()
    X, y = X[:300], y[:300]
    costs = Costs(prices, false_positive=100, false_negative=1000)
    policy = AutoPolicyClassifier(costs, cv=5, strengths="common").fit(X, y)
    found = {item.title: item for item in policy.compared_}
    assert list(found) == ["AdaCOS", "COS", "Planning", "Branching"]
    plain = AdaCOSClassifier(costs, sequence="auto", cv=5, strengths="common").fit(X, y)
    for title, alone in (
        ("AdaCOS", plain),
        ("COS", COSClassifier(costs).from_model(plain)),
    ):
        decider = alone.decider_.out_of_fold(np.arange(len(X)))
        result = run(decider, alone._encode(X))
        total = result.cost + costs.matrix_for(2)[np.asarray(y), result.label]
        assert found[title].cost == pytest.approx(total.mean())
    planning = PlanningClassifier(costs, cv=5).fit(X, y)
    assert found["Planning"].cost == pytest.approx(planning.cross_validated_cost_)
    assert found["AdaCOS"].more == 0
    # Where no branch pays Branching is AdaCOS.
    assert found["Branching"].cost == found["AdaCOS"].cost
    nested = nested_cost(plain, X, y)
    assert abs(found["AdaCOS"].cost - nested.mean) < nested.error


def test_branching_is_not_grown_where_planning_is_clearly_cheaper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = make_value_dependent_problem(n_irrelevant=1).sample(400, seed=3)
    X = X + 0.2 * np.random.default_rng(0).random(X.shape)
    costs = Costs([1.0] * X.shape[1], false_positive=50, false_negative=75)
    grown: list[int] = []

    def fit(self: BranchingClassifier, X: object, y: object, **more: object) -> None:
        grown.append(1)

    monkeypatch.setattr(BranchingClassifier, "fit", fit)
    policy = AutoPolicyClassifier(costs, cv=3, strengths="common").fit(X, y)
    assert policy.choice_ == "Planning"
    assert not grown
    assert [item.title for item in policy.compared_] == ["AdaCOS", "COS", "Planning"]


@pytest.mark.parametrize(
    ("chosen", "words"), [("Planning", "x0 for 2.00"), ("Branching", "asked here of everyone")]
)
def test_it_is_the_chosen_policy(chosen: str, words: str) -> None:
    problem = make_value_dependent_problem(n_irrelevant=1, prices=(2.0, 8.0))
    X, y = problem.sample(400, seed=3)
    budget = None
    if chosen == "Branching":
        # Measured with an error that hides no value, but keeps values apart.
        X = X + 0.4 * np.random.default_rng(0).random(X.shape)
        # A plan knows no budget.
        budget = 100.0
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = AutoPolicyClassifier(costs, cv=3, strengths="common", budget=budget).fit(X, y)
    assert policy.choice_ == chosen
    one, other = policy.acquire(X), policy.policy_.acquire(X)
    np.testing.assert_array_equal(one.order, other.order)
    np.testing.assert_array_equal(one.probability, other.probability)
    step = policy.consultation().next()
    assert words in f"{step} {step.explanation}"


def test_progress_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    problem = make_value_dependent_problem()
    X, y = problem.sample(120, seed=3)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    AutoPolicyClassifier(costs, cv=2, strengths="common", verbose=1).fit(X, y)
    assert "[AutoPolicyClassifier] comparison, policy 3 of 3" in capsys.readouterr().out

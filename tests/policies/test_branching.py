"""Branching: where rows must be asked in different orders, and where it is AdaCOS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from adacos import (
    Acquire,
    AdaCOSClassifier,
    BranchingClassifier,
    Costs,
    TargetRecallClassifier,
    load_pima,
)
from adacos.bench.regret import expected_cost
from adacos.datasets import make_discrete_problem, make_value_dependent_problem
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import drawn_rows
from adacos.models.quick import quick_model
from adacos.models.set_fits import prepare
from adacos.policies import growing
from adacos.policies.growing import _outcome, growing_data
from adacos.rivals import OptimalPolicyClassifier
from tests.policies.branching_table import COSTS, PRICES, table
from tests.policy_checks import check_consultation, check_pickle, check_policy


def test_the_order_depends_on_what_was_seen() -> None:
    X, y = table()
    policy = BranchingClassifier(COSTS, cv=3, strengths="common").fit(X, y)
    result = policy.acquire(X)
    at_blood = np.isin(X["ward"], ["east", "south"])
    asked_blood = result.acquired[:, 2]
    assert not policy.in_one_order
    assert asked_blood[at_blood].mean() > 0.95
    # Which test comes first is a matter of luck; not everybody has both.
    asked_urine = result.acquired[:, 3]
    assert asked_urine[~at_blood].mean() > 0.95
    assert (asked_blood & asked_urine).mean() < 0.6
    assert result.acquired[:, 0].all()
    assert result.cost.mean() < 6.5


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_contract_with_branches(missing: bool) -> None:
    """No peeking, costs that add up (panels too), known values, missing ones, files."""
    X, y = table(1, missing)
    estimator = BranchingClassifier(COSTS, cv=2, strengths="common")
    assert not BranchingClassifier(COSTS, cv=2, strengths="common").fit(X, y).in_one_order
    check_policy(estimator, X[:300], y[:300])


def test_consultation_and_pickle_with_branches() -> None:
    X, y = table(2)
    policy = BranchingClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    check_consultation(policy, X[:25])
    check_pickle(policy, X, policy.acquire(X))


def test_the_reason_of_a_branch_is_reported() -> None:
    X, y = table(3)
    consultation = BranchingClassifier(COSTS, cv=2, strengths="common").fit(X, y).consultation()
    consultation.observe({"age": 50})
    step = consultation.next()
    first = step.covariates[0]
    assert f"{first} is asked here of everyone: 100%" in str(step.explanation)
    deciding = {"ward": "south", "blood": 1.5, "urine": 1.5, "scan": 0.0}
    while isinstance(step, Acquire):
        last = consultation.observe({name: deciding[name] for name in step.covariates})
        step = last.next()
    assert step.explanation.because == ""


def test_a_row_without_the_covariate_of_a_branch_continues_as_adacos() -> None:
    X, y = table(4)
    policy = BranchingClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    plain = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    first = policy.tree_.places[0].question
    X[first] = None if first == "ward" else np.nan
    np.testing.assert_array_equal(policy.acquire(X).order, plain.acquire(X).order)


def test_rows_without_the_covariate_of_a_second_branch_keep_a_mean_budget() -> None:
    """They walk sets that no model without them was made of."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(800, 7)).astype(float)
    left, right = np.where(X[:, 4], X[:, 5], X[:, 6]), np.where(X[:, 1], X[:, 2], X[:, 3])
    y = rng.random(800) < np.where(np.where(X[:, 0], right, left), 0.95, 0.05)
    X[rng.random(800) < 0.3, 1] = np.nan
    X[rng.random(800) < 0.3, 4] = np.nan
    costs = Costs([1.0] * 7, false_positive=50, false_negative=50)
    policy = BranchingClassifier(costs, cv=3, strengths="common", mean_budget=3.0).fit(X, y)
    assert len(policy.nodes_) > 3
    assert policy.mean_spent_ <= 3.0


@pytest.mark.parametrize("lookahead", ["realised", "coherent", "dynamic", "paper"])
def test_without_branches_it_is_adacos(lookahead: str) -> None:
    """Whether none is allowed, or none pays: the prices leave nothing to be asked."""
    X, y, prices, *_ = load_pima()
    for depth, expensive in ((0, 0.1), (3, 1e6)):
        costs = Costs(
            np.array(list(prices.values())) * expensive, false_positive=40, false_negative=400
        )
        policy = BranchingClassifier(costs, max_depth=depth, lookahead=lookahead, cv=3).fit(X, y)
        plain = AdaCOSClassifier(costs, lookahead=lookahead, cv=3).fit(X, y)
        one, other = policy.acquire(X), plain.acquire(X)
        for name in ("label", "probability", "order", "cost", "stage", "expected_cost"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert "no branches" in str(policy.tree_)
        assert (one.cost > 0).any() == (depth == 0)


def test_independent_covariates_ask_for_no_branch() -> None:
    """Naive Bayes with prices that leave nothing to gain by another order."""
    problem = make_discrete_problem(4, dependence=0.0, mean_price=3.0, seed=11)
    X, y = problem.sample(800, seed=11)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = BranchingClassifier(costs).fit(X, y)
    plain = AdaCOSClassifier(costs).fit(X, y)
    assert expected_cost(policy, problem, costs) <= expected_cost(plain, problem, costs) * 1.01


def test_where_a_fixed_order_must_lose_it_reaches_the_optimum() -> None:
    problem = make_value_dependent_problem(n_irrelevant=2, prices=(2.0, 8.0))
    X, y = problem.sample(800, seed=5)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y).expected_cost_
    policy = BranchingClassifier(costs).fit(X, y)
    assert expected_cost(policy, problem, costs) == pytest.approx(optimum, rel=0.01)
    assert expected_cost(AdaCOSClassifier(costs).fit(X, y), problem, costs) > 1.5 * optimum


def test_realised_cost_is_that_of_adacos_with_the_same_model() -> None:
    """The cost by which splits are judged, against the policy itself."""
    X, y = table(6, missing=True)
    policy = AdaCOSClassifier(COSTS, lookahead="coherent", cv=2, strengths="common").fit(X, y)
    encoded, labels = policy._encode(X), policy.model_.y
    data = growing_data(
        encoded,
        labels,
        np.ones(len(labels)),
        policy.encoder_,
        policy.cost_table_,
        order=policy.model_.sequence.order,
        lookahead="coherent",
        n_splines=10,
        seed=0,
    )
    free = policy.cost_table_.covariates == 0
    prices = np.maximum(policy.cost_table_.covariates, 1e-12)
    policy.model_ = quick_model(data.fits, np.ones(len(y)), prices, free, data.missing_moments)
    result = policy.finish_fit().acquire(X)
    expected = result.cost + policy.cost_table_.matrix[y, (result.label == 1).astype(int)]
    found = _outcome(data, policy.model_, np.arange(len(y)), np.zeros(len(free), dtype=bool))
    np.testing.assert_allclose(found[np.arange(len(y)), y], expected)


def test_quick_order_is_greedy_in_gradient_per_cost() -> None:
    """The first covariate against a direct computation of every gradient."""
    X, y = table(7)
    policy = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    encoded = policy._encode(X)
    fold = np.zeros(len(y), dtype=np.intp)
    fits = prepare(
        encoded, y.astype(float), policy.encoder_, n_splines=10, families=("common",), fold=fold
    )
    prices = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    nothing = np.zeros(5, dtype=bool)
    model = quick_model(fits, weight, prices, nothing, np.zeros_like(fits.moments))
    residual = weight * (y - np.average(y, weights=weight))
    score = []
    for k in range(5):
        block = fits.columns[:, fits.basis.group == k]
        spread = np.sqrt(
            np.cov(block.T, aweights=weight, ddof=0).reshape(block.shape[1], -1).diagonal()
        )
        norm = np.linalg.norm(residual @ (block / spread))
        score.append(norm / (prices[k] * np.sqrt(block.shape[1])))
    assert model.sequence.order[0] == int(np.argmax(score))


def test_target_recall_is_met_and_certified() -> None:
    X, y = table(8)
    costs = Costs(PRICES, false_positive=60)
    policy = TargetRecallClassifier(
        BranchingClassifier(costs, cv=2, strengths="common"),
        target_recall=0.9,
        recall_confidence=0.9,
    ).fit(X, y)
    fresh, truth = table(9)
    found = policy.predict(fresh)[truth == 1].mean()
    assert policy.certificate_.recall == 0.9
    assert found > 0.85
    plain = TargetRecallClassifier(
        BranchingClassifier(costs, cv=2, strengths="common"), target_recall=0.9
    ).fit(X, y)
    assert not plain.in_one_order
    assert plain.recall_estimate_ >= 0.9
    assert plain.predict(fresh)[truth == 1].mean() > 0.85


def test_unlabelled_rows_and_weights_are_taken() -> None:
    X, y = table(10)
    more, _ = table(11)
    weight = np.ones(len(y))
    weight[:50] = 2.0
    policy = BranchingClassifier(COSTS, cv=2, strengths="common")
    policy.fit(X, y, X_unlabeled=more, sample_weight=weight)
    twice = pd.concat([X, X[:50]], ignore_index=True)
    assert not policy.in_one_order
    assert policy.tree_.rows == len(y)
    assert len(policy.acquire(twice)) == 650


def test_a_tree_is_not_shared() -> None:
    X, y = table(12)
    fitted = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    with pytest.raises(InvalidInputError, match="grown from the training rows"):
        BranchingClassifier(COSTS).from_model(fitted)


def test_the_picture() -> None:
    X, y = table(13)
    policy: Any = BranchingClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    tree = policy.tree_
    lines = str(tree).splitlines()
    assert lines[0] == f"600 rows: every row is asked {tree.places[0].question}"
    assert len(lines) == len(tree.places)
    leaves = [place for place in tree.places if not place.question]
    assert sum(place.share for place in leaves) == pytest.approx(1.0)
    result = policy.acquire(X)
    paid = sum(place.share * place.cost for place in leaves)
    assert paid == pytest.approx(result.cost.mean())
    assert tree.to_dict()["places"][0]["below"] == (1, 2)


def test_many_covariates_and_rows_are_grown_on_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions in the part stand for the right columns of the table."""
    monkeypatch.setattr(growing, "MOST_ROWS", 500)
    monkeypatch.setattr(growing, "MOST_COVARIATES", 4)
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(1500, 6))
    deciding, first, second = rng.integers(0, 2, 1500), rng.normal(size=1500), rng.normal(size=1500)
    y = np.where(deciding == 1, first, second) > 0
    X = np.column_stack([noise[:, :3], second, noise[:, 3:], deciding, first])
    prices = [9.0, 9.0, 9.0, 2.0, 9.0, 9.0, 9.0, 0.1, 2.0]
    costs = Costs(prices, false_positive=50, false_negative=50)
    policy = BranchingClassifier(costs, cv=2, strengths="common").fit(X, y)
    result = policy.acquire(X)
    asked = {int(node.split.covariate) for node in policy.nodes_ if node.split is not None}
    assert asked <= {3, 7, 8}
    assert result.acquired[deciding == 1, 8].mean() > 0.95
    assert result.acquired[deciding == 0, 3].mean() > 0.95
    assert (result.label == y).mean() > 0.9
    assert not result.acquired[:, [0, 1, 2, 4, 5, 6]].any()


def test_drawn_rows_keep_the_classes() -> None:
    y = np.array([0.0] * 9_000 + [1.0] * 1_000)
    rows = drawn_rows(y, 500, seed=1)
    assert len(np.unique(rows)) == len(rows) == 500
    assert y[rows].sum() == 50
    np.testing.assert_array_equal(drawn_rows(y, 500, seed=1), rows)
    np.testing.assert_array_equal(drawn_rows(y, 10_000, seed=1), np.arange(10_000))

"""Budgets: no row exceeds its ceiling, rows keep a mean budget, and both are said everywhere."""

from __future__ import annotations

import json
import pickle
import warnings
from copy import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adacos import (
    Acquire,
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.card import model_card
from adacos.deciders.weighing import weigh
from adacos.decision import Rows
from adacos.exceptions import InvalidInputError, UnspentBudgetWarning
from adacos.kernels.bayes_risk import bayes_risk
from adacos.models.dynamic import ValueTables
from adacos.models.sequences import SetSequence, payable_first
from adacos.policies.budgets import least_multiplier
from adacos.rivals import DWSMClassifier, GreedyMiserClassifier, POMDPClassifier
from tests.policies.budget_table import COSTS, QUICK, draw_rows
from tests.policy_checks import check_consultation, missing, price, same, with_missing
from tests.rivals.problems import MIXED_COSTS, mixed_table

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

DISCOUNTED = Costs(
    {"age": 1.0, "blood": 3.0, "sugar": 4.0, "kind": 2.0, "noise": 2.0},
    false_positive=60,
    false_negative=90,
    panels={"draw": {"blood": 2.5, "sugar": 0.5, "age": 0.0}},
)
MAKERS = {
    "coherent": lambda costs: AdaCOSClassifier(costs, **QUICK),
    "dynamic": lambda costs: AdaCOSClassifier(costs, lookahead="dynamic", **QUICK),
    "cos": lambda costs: COSClassifier(costs, **QUICK),
    "full": lambda costs: FullModelClassifier(costs, **QUICK),
    "branching": lambda costs: BranchingClassifier(costs, max_depth=2, **QUICK),
    "dwsm": lambda costs: DWSMClassifier(costs, n_rounds=2, n_states=400),
    "greedy miser": lambda costs: GreedyMiserClassifier(costs, n_trees=6, n_lambdas=2),
    "pomdp": lambda costs: POMDPClassifier(costs, n_codes=4, n_components=2, n_init=1),
}
FITTED: dict[tuple[str, bool], Any] = {}


def fitted(name: str, discounted: bool, budget: float) -> Any:
    """A policy fitted without a ceiling, which the engine then gives it."""
    if (name, discounted) not in FITTED:
        costs = DISCOUNTED if discounted else MIXED_COSTS
        FITTED[name, discounted] = MAKERS[name](costs).fit(*mixed_table())
    policy = copy(FITTED[name, discounted])
    policy.budget = budget
    return policy.finish_fit()


@pytest.mark.filterwarnings("ignore:The positive class")
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=12)
@given(
    budget=st.floats(0, 14),
    discounted=st.booleans(),
    share_known=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 99),
)
def test_no_row_exceeds_the_ceiling(
    name: str, budget: float, discounted: bool, share_known: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = with_missing(mixed_table(60)[0], rng.random((60, 5)) < 0.15)
    # Few patterns of what is known: the rows of each are one group.
    known = ~missing(X) & (rng.random((4, X.shape[1])) < share_known)[rng.integers(4, size=60)]
    policy = fitted(name, discounted, budget)
    result = policy.acquire(X, known=known)
    assert np.all(result.cost <= budget * (1 + 1e-8))
    for row, own in enumerate(known):
        listed = [int(k) for k in result.order[row] if k >= 0]
        paid = price(policy.costs, result.names, listed, tuple(np.array(result.names)[own]))
        assert paid <= budget * (1 + 1e-8)
    if not discounted and name != "full":
        # What is free is always to be had: who wants it without a ceiling has it with one.
        free = policy.acquire(X, known=known).acquired[:, 0]
        policy.set_params(budget=None).finish_fit()
        np.testing.assert_array_equal(free, policy.acquire(X, known=known).acquired[:, 0])


@pytest.mark.filterwarnings("ignore:The positive class")
@pytest.mark.parametrize("discounted", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_a_consultation_keeps_the_ceiling_as_acquire_does(name: str, discounted: bool) -> None:
    for budget, rows in ((3.0, slice(6)), (5.5, slice(6, 12))):
        check_consultation(fitted(name, discounted, budget), mixed_table()[0][rows])


@pytest.mark.filterwarnings("ignore:The positive class")
def test_a_ceiling_that_does_not_bind_changes_nothing() -> None:
    X, y = mixed_table()
    for kind in (AdaCOSClassifier, COSClassifier, FullModelClassifier, BranchingClassifier):
        plain = kind(MIXED_COSTS, **QUICK).fit(X, y)
        same(kind(MIXED_COSTS, budget=100, **QUICK).fit(X, y).acquire(X), plain.acquire(X))


# Continuous worlds with a known truth


@pytest.mark.parametrize("lookahead", ["coherent", "paper", "dynamic"])
def test_sets_beyond_the_ceiling_have_no_part_in_the_decision(lookahead: str) -> None:
    """Against the same weighing of a sequence that ends where the money does."""
    X, y = draw_rows(400, 0)
    policy = AdaCOSClassifier(COSTS, lookahead=lookahead, **QUICK).fit(X, y)
    matrix, costs = policy.rule_.matrix, policy.cost_table_
    state = _start(policy, X)
    paid = policy.model_.sequence.costs(costs)
    seen = set()
    for ceiling in (0.5, paid[1], paid[2], paid[-1]):
        tables = ValueTables(costs, matrix)
        continues, _ = weigh(state._replace(left=np.full(len(X), ceiling)), tables, lookahead)
        inside = int((paid[1:] <= ceiling).sum())
        if lookahead != "dynamic":
            ahead = policy.decider_.decide(state).weighed
            after = ahead.expected_risk(np.arange(len(X)), slice(0, 4), matrix) + paid[1:]
            expected = (after[:, :inside] < bayes_risk(ahead.log_odds, matrix)[:, None]).any(axis=1)
            np.testing.assert_array_equal(continues, expected)
        elif inside <= 1:
            # With one set within reach there is no freedom to count.
            plain, _ = weigh(state._replace(left=np.full(len(X), ceiling)), tables, "coherent")
            assert np.mean(continues == plain) > 0.98
        seen.add(tuple(continues[:50]))
    assert len(seen) > 1, "the ceilings make no difference: nothing was shown"


def test_a_ceiling_is_planned_for_and_not_only_obeyed() -> None:
    """Two covariates that pay only together: who cannot pay both asks for neither."""
    rng = np.random.default_rng(1)
    y = (rng.random(4000) < 0.05).astype(int)
    x = rng.normal(size=(4000, 2)) + 0.7 * (2 * y[:, None] - 1)
    errors = {"false_positive": 100, "false_negative": 100}
    trial = AdaCOSClassifier(Costs([0.1, 0.1], **errors), **QUICK).fit(x, y)
    one, both = _gains(trial, x[:1])
    assert both > 2.2 * one
    cost = (one + both / 2) / 2
    free = AdaCOSClassifier(Costs([cost, cost], **errors), **QUICK).fit(x, y)
    assert free.acquire(x).acquired.any(axis=1).all()
    limited = AdaCOSClassifier(Costs([cost, cost], **errors), budget=1.5 * cost, **QUICK)
    assert not limited.fit(x, y).acquire(x).acquired.any()


def _gains(policy: Any, X: Any) -> np.ndarray:
    """What each set is expected to save a row that knows nothing."""
    _, ahead = weigh(
        _start(policy, X), ValueTables(policy.cost_table_, policy.rule_.matrix), "coherent"
    )
    risk = bayes_risk(ahead.log_odds, policy.rule_.matrix)
    return np.asarray(risk - (ahead.future[0] - ahead.cost[0]))


def _start(policy: Any, X: Any) -> Any:
    nothing = np.zeros(X.shape[1], dtype=np.bool_)
    return policy.decider_.begin(Rows(X, ~np.isnan(X), nothing, nothing))


@pytest.mark.parametrize("budget", [0.0, 3.0, 5.0, 6.5, 8.0, 20.0])
def test_what_can_be_paid_comes_first(budget: float) -> None:
    """Against paying out of a purse, covariate by covariate."""
    costs = Costs([0.0, 5.0, 3.0, 4.0, 2.0], panels={"draw": (2.5, [1, 3])}).bind(
        ["a", "b", "c", "d", "e"]
    )
    order = np.array([0, 1, 3, 2, 4])
    found = payable_first(SetSequence(order, 1), costs, budget)
    budget_left, have, first, rest = budget, set(), [], []
    for k in order.tolist():
        amount = float(costs.covariates[k]) - 2.5 * (k in (1, 3) and bool(have & {1, 3}))
        if amount <= budget_left + 1e-9:
            budget_left -= amount
            have.add(k)
            first.append(k)
        else:
            rest.append(k)
    assert found.order.tolist() == first + rest
    assert found.n_free == 1


def test_expensive_covariates_do_not_bar_the_way() -> None:
    """Without the dearest, which is the most printing_warnings, the others are still asked."""
    X, y = draw_rows(800, 3)
    costs = Costs([30.0, 1.0, 1.0, 1.0], false_positive=500, false_negative=500)
    free = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    limited = AdaCOSClassifier(costs, budget=3.0, **QUICK).fit(X, y)
    assert free.acquire(X).acquired[:, 0].mean() > 0.5
    result = limited.acquire(X)
    assert not result.acquired[:, 0].any()
    assert result.acquired[:, 1:].mean() > 0.5


# Mean budgets


def test_the_least_multiplier_of_a_step_function() -> None:
    for step in (0.0, 0.3, 1.0, 17.25, 1e6):
        found = least_multiplier(lambda m, step=step: m >= step)
        assert step <= found <= step + 2e-6 * (1 + step)
    assert least_multiplier(lambda m: True) == 0
    assert np.isinf(least_multiplier(lambda m: False))


@pytest.mark.parametrize("lookahead", ["coherent", "dynamic", "realised"])
def test_a_mean_budget_is_kept_on_fresh_rows(lookahead: str) -> None:
    """The error of one fit is that of a mean over its training rows; of many, the mean is zero."""
    budget, deviation, allowed = 2.0, [], []
    for seed in range(12):
        policy = AdaCOSClassifier(COSTS, mean_budget=budget, lookahead=lookahead, **QUICK)
        policy.fit(*draw_rows(600, seed))
        assert policy.multiplier_ > 0
        assert policy.mean_spent_ <= budget
        cost = policy.acquire(draw_rows(10_000, 1000 + seed)[0]).cost
        deviation.append(cost.mean() - budget)
        allowed.append(np.sqrt(cost.var() * (1 / 600 + 1 / 10_000)))
    deviation, allowed = np.array(deviation), np.array(allowed)
    assert abs(deviation.mean()) < 3 * np.sqrt((allowed**2).sum()) / len(allowed)
    assert np.mean(np.abs(deviation) < 2 * allowed) >= 0.6
    assert np.abs(deviation / allowed).max() < 5


@pytest.mark.parametrize("lookahead", ["coherent", "dynamic", "realised"])
def test_a_mean_budget_that_does_not_bind_changes_nothing(lookahead: str) -> None:
    X, y = draw_rows(300, 0)
    plain = AdaCOSClassifier(COSTS, lookahead=lookahead, **QUICK).fit(X, y)
    loose = AdaCOSClassifier(COSTS, mean_budget=1e3, lookahead=lookahead, **QUICK).fit(X, y)
    assert loose.multiplier_ == 0
    same(loose.acquire(X), plain.acquire(X))


def test_a_mean_budget_of_nothing_acquires_nothing() -> None:
    X, y = draw_rows(300, 0)
    assert not AdaCOSClassifier(COSTS, mean_budget=0, **QUICK).fit(X, y).acquire(X).cost.any()


def test_rows_that_are_alike_keep_a_mean_budget_together() -> None:
    """All rows of a cell walk as one: the budget is kept by the policy, not by its jackknife."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(500, 3)).astype(float)
    y = (rng.random(500) < np.where(X[:, 0] == 1, 0.8, 0.15 + 0.3 * X[:, 1])).astype(int)
    costs = Costs([2.0, 3.0, 1.0], false_positive=60, false_negative=60)
    for budget in (0.5, 1.0, 2.0, 3.0):
        for kind in (AdaCOSClassifier, BranchingClassifier):
            policy = kind(costs, mean_budget=budget, **QUICK).fit(X, y)
            cost = policy.acquire(X).cost
            assert cost.mean() <= budget + cost.std() / np.sqrt(len(X)) + 1e-9


def test_branches_keep_a_mean_budget_or_are_given_up() -> None:
    from adacos.datasets import make_value_dependent_problem

    problem = make_value_dependent_problem()
    X, y = problem.sample(500, seed=0)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    branching = BranchingClassifier(costs, mean_budget=4.0, **QUICK).fit(X, y)
    assert not branching.in_one_order
    assert 1 < branching.acquire(problem.sample(4000, seed=1)[0]).cost.mean() <= 4.2
    # The first question alone costs 1 for everyone.
    poor = BranchingClassifier(costs, mean_budget=0.5, **QUICK).fit(X, y)
    assert poor.in_one_order
    assert poor.acquire(X).cost.mean() == pytest.approx(0.5, rel=0.03)


def test_cos_selects_the_best_set_within_its_budgets() -> None:
    X, y = draw_rows(400, 0)
    plain = COSClassifier(COSTS, **QUICK).fit(X, y)
    paid = plain.model_.sequence.costs(plain.cost_table_)
    for budget in (0.5, 1.0, 3.0, 6.0, 10.0):
        for name in ("budget", "mean_budget"):
            policy = COSClassifier(COSTS, **{name: budget}, **QUICK).fit(X, y)
            if policy.sets_ == plain.sets_:
                inside = np.flatnonzero(paid <= budget)
                assert policy.stage_ == inside[plain.expected_cost_by_set_[inside].argmin()]
            assert policy.acquire(X).cost.max() <= budget


# What is refused


def test_a_budget_that_cannot_be_kept_is_refused() -> None:
    X, y = draw_rows(200, 0)
    for name in ("budget", "mean_budget"):
        with pytest.raises(InvalidInputError, match="what all covariates cost") as refused:
            FullModelClassifier(COSTS, **{name: 9.9}, **QUICK).fit(X, y)
        assert refused.value.parameter == name
        FullModelClassifier(COSTS, **{name: 10.0}, **QUICK).fit(X, y)
    policy = AdaCOSClassifier(COSTS, mean_budget=2.0, **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match="certificate"):
        policy.calibrate(*draw_rows(200, 1), target_recall=0.9, confidence=0.9)


def test_budgets_and_shared_fits() -> None:
    X, y = draw_rows(300, 0)
    plain = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match="budget"):
        AdaCOSClassifier(COSTS, budget=3.0).from_model(plain)
    with pytest.raises(InvalidInputError, match="mean budget"):
        AdaCOSClassifier(COSTS, mean_budget=2.0).from_model(pickle.loads(pickle.dumps(plain)))
    first = AdaCOSClassifier(COSTS, mean_budget=2.0, **QUICK).fit(X, y)
    for fitted in (plain, first):
        again = AdaCOSClassifier(COSTS, mean_budget=2.0).from_model(fitted)
        assert again.multiplier_ == first.multiplier_
        same(again.acquire(X), first.acquire(X))


def test_wrappers_keep_the_ceiling_of_what_they_wrap() -> None:
    X, y = draw_rows(400, 0)
    wrapped = TargetRecallClassifier(
        AdaCOSClassifier(COSTS, budget=3.0, **QUICK), target_recall=0.8
    )
    result = wrapped.fit(X, y).acquire(X)
    assert 0 < result.cost.max() <= 3
    auto = AutoPolicyClassifier(COSTS, budget=3.0, mean_budget=2.0, strengths="common", cv=3)
    result = auto.fit(X[:200], y[:200]).acquire(X)
    assert 0 < result.cost.max() <= 3
    assert auto.policy_.mean_budget == 2.0


# Files, card, consultation, service


def test_a_file_keeps_budgets_and_older_files_have_none(tmp_path: Any) -> None:
    X, y = draw_rows(300, 0)
    policy = AdaCOSClassifier(COSTS, budget=3.0, mean_budget=2.0, **QUICK).fit(X, y)
    save(policy, tmp_path / "m.adacos")
    again = load(tmp_path / "m.adacos")
    assert (again.budget, again.mean_budget) == (3.0, 2.0)
    assert again.multiplier_ == policy.multiplier_
    same(again.acquire(X), policy.acquire(X))
    plain = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    result = plain.acquire(X)
    for name in ("budget", "mean_budget", "multiplier_"):
        vars(plain).pop(name, None)
    save(plain, tmp_path / "old.adacos")
    old = load(tmp_path / "old.adacos")
    assert old.get_params()["budget"] is None
    same(old.acquire(X), result)


def test_the_card_describes_budgets() -> None:
    X, y = draw_rows(300, 0)
    policy = AdaCOSClassifier(COSTS, budget=3.0, mean_budget=1.5, **QUICK).fit(X, y)
    card = model_card(policy)
    assert (card["budget"], card["mean_budget"]) == (3.0, 1.5)
    assert card["multiplier"] == policy.multiplier_ > 0
    assert f"{1 + policy.multiplier_:.4g} times" in card["budget_text"]
    loose = model_card(AdaCOSClassifier(COSTS, mean_budget=99.0, **QUICK).fit(X, y))
    assert loose["multiplier"] == 0
    assert "does not bind" in loose["budget_text"]
    plain = model_card(AdaCOSClassifier(COSTS, **QUICK).fit(X, y))
    assert [plain[name] for name in ("budget", "mean_budget", "multiplier", "budget_text")] == [
        None
    ] * 4


def test_a_consultation_says_what_budgets_have_to_do_with_it() -> None:
    X, y = draw_rows(300, 0)
    policy = AdaCOSClassifier(COSTS, budget=3.0, mean_budget=1.5, **QUICK).fit(X, y)
    ahead, reported = False, set()
    for row in X[:40]:
        consultation = policy.consultation()
        while isinstance(step := consultation.next(), Acquire):
            consultation.observe({name: row[int(name[1:])] for name in step.covariates})
            ahead |= step.explanation.expected_saving > 0
        reported.add(step.explanation.because)
        assert step.cost <= 3.0
        plan = step.explanation.best_plan
        assert plan is None or step.cost + plan.cost <= 3.0 + 1e-9
        json.dumps(step.to_dict(), allow_nan=False)
    assert ahead
    assert any("of the 3.00 budget is left: not enough for" in text for text in reported)
    assert all(f"count {1 + policy.multiplier_:.2f} times" in text for text in reported)


def test_who_overspends_in_a_consultation_is_asked_for_nothing_more() -> None:
    X, y = draw_rows(300, 0)
    policy = AdaCOSClassifier(COSTS, budget=3.0, **QUICK).fit(X, y)
    consultation = policy.consultation().observe(x3=0.1)
    assert consultation.paid == 4.0
    assert not isinstance(consultation.next(), Acquire)


@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_a_budget_that_pays_for_nothing_is_warned_of(kind) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) + y[:, None]
    costs = Costs([2.0, 3.0], false_positive=50, false_negative=50)
    with pytest.warns(UnspentBudgetWarning, match="budget=1 pays for no set") as reported:
        policy = kind(costs, budget=1.0, **QUICK).fit(X, y)
    assert len([item for item in reported if item.category is UnspentBudgetWarning]) == 1
    assert not policy.acquire(X).cost.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnspentBudgetWarning)
        kind(costs, budget=0.0, **QUICK).fit(X, y)
        kind(costs, budget=2.0, **QUICK).fit(X, y)
        spent = AdaCOSClassifier(costs, mean_budget=1.0, **QUICK).fit(X, y).acquire(X).cost.mean()
    assert 0 < spent < 1.5
    with pytest.warns(UnspentBudgetWarning, match="mean_budget=1 pays for no set .* AdaCOS"):
        assert not COSClassifier(costs, mean_budget=1.0, **QUICK).fit(X, y).acquire(X).cost.any()

"""A decision depends on a decider and on nothing else: nothing in it can go stale."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import FrozenInstanceError, make_dataclass, replace
from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    PlanningClassifier,
    TargetRecallClassifier,
    load_pima,
)
from adacos.consultation import fingerprint
from adacos.datasets import make_value_dependent_problem
from adacos.engine import run
from adacos.exceptions import InvalidInputError
from tests.policy_cases import Case, cases
from tests.policy_checks import same
from tests.rivals.problems import MIXED_COSTS, THREE_COSTS, mixed_table, three_table

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}


@pytest.fixture(scope="module")
def pima() -> tuple[Any, Any, dict[str, float]]:
    X, y, prices, *_ = load_pima()
    return X[:400], y[:400], prices


def test_a_certificate_does_not_outlive_its_fit(pima: Any) -> None:
    X, y, prices = pima
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs(prices, false_positive=100), **QUICK),
        target_recall=0.8,
        recall_confidence=0.8,
    ).fit(X, y)
    assert policy.certificate_.recall == 0.8
    costs = Costs(prices, false_positive=100, false_negative=500)
    policy.set_params(recall_confidence=None, policy__costs=costs).fit(X, y)
    fresh = TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK), target_recall=0.8).fit(X, y)
    assert sorted(vars(policy)) == sorted(vars(fresh))
    assert policy.certificate_ is None
    assert policy.false_negative_cost_ == fresh.false_negative_cost_


@pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")
@pytest.mark.parametrize("case", cases(variants=False))
def test_a_fit_leaves_nothing_of_the_fit_before(case: Case) -> None:
    X, y = mixed_table(120)
    policy = case.make(MIXED_COSTS)
    has = policy.get_params()
    others = {"mean_budget": 3.0, "target_recall": 0.7, "random_state": 3}
    changed = {name: value for name, value in others.items() if name in has}
    if "target_recall" in changed:
        changed["costs"] = Costs(MIXED_COSTS.covariates, false_positive=10)
    try:
        policy.set_params(**changed).fit(X, y)
    except InvalidInputError:
        assert case.name == "full", "only the full model refuses a budget below all prices"
    policy.earlier_ = "what no fit sets"
    policy.set_params(**{name: has[name] for name in changed}).fit(X, y)
    fresh = case.make(MIXED_COSTS).fit(X, y)
    assert sorted(vars(policy)) == sorted(vars(fresh))
    assert fingerprint(policy) == fingerprint(fresh)
    same(policy.acquire(X), fresh.acquire(X))


def test_a_shared_fit_leaves_nothing_of_the_fit_before(pima: Any) -> None:
    X, y, prices = pima
    costs = Costs(prices, false_positive=100, false_negative=500)
    fitted = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    policy = TargetRecallClassifier(
        COSClassifier(Costs(prices, false_positive=100), **QUICK),
        target_recall=0.8,
        recall_confidence=0.8,
    ).fit(X, y)
    policy.set_params(recall_confidence=None).from_model(fitted)
    assert policy.certificate_ is None


def test_parameters_of_a_fitted_policy_change_nothing_before_the_next_fit(pima: Any) -> None:
    X, y, prices = pima
    costs = Costs(prices, false_positive=100, false_negative=500)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    before, digest = policy.acquire(X), fingerprint(policy)
    policy.set_params(lookahead="paper", budget=1.0)
    same(policy.acquire(X), before)
    assert fingerprint(policy) == digest
    policy.finish_fit()
    assert fingerprint(policy) != digest
    assert (policy.acquire(X).acquired != before.acquired).any()


def test_what_is_waited_for_has_its_own_values(pima: Any) -> None:
    """Two cost tables that differ only in what is immediate, on one model, one after the other."""
    X, y, prices = pima

    def costs(*immediate: str) -> Costs:
        return Costs(
            prices, false_positive=100, false_negative=500, round_cost=6.0, immediate=[*immediate]
        )

    few, most = costs("Age"), costs(*list(prices)[2:])
    fitted = AdaCOSClassifier(few, **QUICK).fit(X, y)

    def answers(*order: Costs) -> list[Any]:
        shared = AdaCOSClassifier(few, **QUICK).fit(X, y)
        return [AdaCOSClassifier(own, **QUICK).from_model(shared).acquire(X) for own in order]

    first, second = answers(few, most)
    later, sooner = answers(most, few)
    same(first, sooner)
    same(second, later)
    same(fitted.acquire(X), first)
    assert (first.order != second.order).any()


def test_the_fingerprint_depends_on_fields_and_not_on_names_of_values(pima: Any) -> None:
    """Values of ours may be renamed; numbers of numpy are those of Python."""
    X, y, prices = pima
    policy = COSClassifier(Costs(prices, false_positive=100, false_negative=500), **QUICK).fit(X, y)
    decider, digest = policy.decider_, fingerprint(policy)
    ours = {"__module__": "adacos.elsewhere"}
    for module, same_digest in ((ours, True), ({}, False)):
        rule = make_dataclass("Rule", ["matrix", "threshold"], namespace=module)
        renamed = rule(decider.rule.matrix, decider.rule.threshold)
        other = replace(decider, terms=decider.terms._replace(rule=renamed))
        assert (other.digest == digest) == same_digest
    for amounts in ((2.5, np.float64(2.5)), (True, np.bool_(True)), (3, np.int32(3))):
        budgets = [decider.terms._replace(budget=amount) for amount in amounts]
        first, second = (replace(decider, terms=terms).digest for terms in budgets)
        assert first == second != digest


def test_the_fingerprint_says_what_is_decided(pima: Any) -> None:
    X, y, prices = pima
    costs = Costs(prices, false_positive=100, false_negative=500)
    fitted = AdaCOSClassifier(costs, **QUICK).fit(X, y)

    def other(**parameters: Any) -> str:
        return fingerprint(AdaCOSClassifier(costs, **parameters).from_model(fitted))

    assert other() == fingerprint(fitted)
    digests = [other(lookahead="paper"), other(lookahead="dynamic")]
    for limit in ({"mean_budget": 2.0}, {"budget": 3.0}):
        digests.append(fingerprint(AdaCOSClassifier(costs, **limit, **QUICK).fit(X, y)))
    assert len({*digests, fingerprint(fitted)}) == 5
    # An object that is put where another one was: nothing is remembered by its place.
    fitted.decider_ = replace(fitted.decider_, lookahead="coherent")
    assert fingerprint(fitted) == other(lookahead="coherent")


def test_a_consultation_ends_with_the_decider_it_began_with(pima: Any) -> None:
    X, y, prices = pima
    costs = Costs(prices, false_positive=100, false_negative=500)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    row = {name: X.iloc[3][name] for name in X.columns}
    expected = policy.consultation()
    expected.observe(Age=row["Age"])
    expected_by = expected.next().to_dict()
    begun = policy.consultation()
    policy.set_params(costs=Costs(prices, false_positive=1, false_negative=1)).fit(X, y)
    begun.observe(Age=row["Age"])
    found = begun.next().to_dict()
    assert found == expected_by


def test_a_decider_is_frozen_and_made_again(pima: Any) -> None:
    X, y, prices = pima
    policy = AdaCOSClassifier(Costs(prices, false_positive=100, false_negative=500), **QUICK).fit(
        X, y
    )
    decider = policy.decider_
    with pytest.raises(FrozenInstanceError):
        decider.lookahead = "paper"
    before = policy.acquire(X)
    costlier = decider.with_multiplier(3.0)
    assert costlier is not decider
    assert decider.multiplier == 0
    same(policy.acquire(X), before)


def shared_by_threads(kind: str) -> tuple[Any, Any, Any]:
    """An unfitted policy of a kind, and a table on which its rows part ways."""
    quick = {"cv": 2, "strengths": "common"}
    if kind in ("Branching", "Planning"):
        problem = make_value_dependent_problem()
        X, y = problem.sample(400, seed=0)
        costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
        policy = BranchingClassifier if kind == "Branching" else PlanningClassifier
        return policy(costs), X, y
    if kind.startswith("three classes"):
        X, y = three_table(150)
        lookahead = kind.partition(": ")[2]
        return AdaCOSClassifier(THREE_COSTS, lookahead=lookahead, **quick), X, y
    X, y, prices, *_ = load_pima()
    waits = {"round_cost": 6.0, "immediate": ["Age"]} if kind == "rounds" else {}
    costs = Costs(prices, false_positive=100, false_negative=500, **waits)
    lookahead = kind if kind in ("paper", "coherent", "dynamic") else "realised"
    return AdaCOSClassifier(costs, lookahead=lookahead, **quick), X[:400], y[:400]


@pytest.mark.parametrize(
    "kind",
    [
        *("realised", "dynamic", "coherent", "paper", "rounds", "Branching", "Planning"),
        *("three classes: realised", "three classes: coherent"),
    ],
)
def test_threads_share_a_decider(kind: str) -> None:
    """No table is computed yet when they begin; what is known differs from thread to thread."""
    policy, X, y = shared_by_threads(kind)
    policy.fit(X, y)
    n_covariates = len(policy.encoder_.names)
    masks = [np.arange(n_covariates) == k for k in range(n_covariates)]

    def unused() -> Any:
        """The policy with a decider of which nothing was asked yet."""
        own = copy(policy)
        own.decider_ = replace(policy.decider_)
        return own

    alone = [unused().acquire(X, known=known) for known in masks]
    shared = unused()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda known: shared.acquire(X, known=known), masks * 3))
    for result, expected in zip(results, alone * 3, strict=True):
        same(result, expected)


@pytest.mark.parametrize("case", cases(variants=False))
def test_probabilities_given_exactly_some_values(case: Case) -> None:
    """Row by row what a consultation says that knows them and is stopped."""
    X, y = mixed_table(90)
    policy = case.make(MIXED_COSTS).fit(X, y)
    rng = np.random.default_rng(0)
    known = (rng.random(X.shape) < 0.5) & ~X.isna().to_numpy()
    p = policy.predict_proba(X, known=known)
    for row in range(0, 90, 9):
        values = {name: X.iloc[row][name] for k, name in enumerate(X.columns) if known[row, k]}
        step = policy.consultation(known=values).stop().next()
        assert step.probability == pytest.approx(p[row, 1])


@pytest.mark.parametrize("case", cases(variants=False))
def test_probabilities_of_three_classes_given_exactly_some_values(case: Case) -> None:
    """Those of every class, as a consultation says them that knows the values and is stopped."""
    if not case.policy.load().takes_many_classes:
        return
    X, y = three_table(90)
    policy = case.make(THREE_COSTS).fit(X, y)
    known = (np.random.default_rng(0).random(X.shape) < 0.5) & ~X.isna().to_numpy()
    p = policy.predict_proba(X, known=known)
    assert p.shape == (90, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    for row in range(0, 90, 9):
        values = {name: X.iloc[row][name] for k, name in enumerate(X.columns) if known[row, k]}
        step = policy.consultation(known=values).stop().next()
        assert list(step.explanation.probabilities.values()) == pytest.approx(p[row])


@pytest.mark.parametrize("kind", [BranchingClassifier, PlanningClassifier])
def test_probabilities_in_trees_and_plans(kind: Any) -> None:
    problem = make_value_dependent_problem()
    X, y = problem.sample(400, seed=0)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = TargetRecallClassifier(kind(costs), target_recall=0.9).fit(X, y)
    for known in ([], ["x0"], ["x1"], ["x0", "x2"]):
        p = policy.predict_proba(X[:20], known=known)
        for row in range(20):
            values = {name: float(X[row, int(name[1])]) for name in known}
            step = policy.consultation(known=values).stop().next()
            assert step.probability == pytest.approx(p[row, 1])


def test_known_by_name_is_known_by_mask(pima: Any) -> None:
    X, y, prices = pima
    policy = AdaCOSClassifier(Costs(prices, false_positive=100, false_negative=500), **QUICK).fit(
        X, y
    )
    mask = np.isin(list(X.columns), ["Age", "BMI"])
    same(policy.acquire(X, known=["Age", "BMI"]), policy.acquire(X, known=mask))
    np.testing.assert_array_equal(
        policy.predict_proba(X, known=["Age"]), policy.predict_proba(X, known=X.columns == "Age")
    )
    with pytest.raises(InvalidInputError, match="Did you mean Age"):
        policy.acquire(X, known=["age"])


@pytest.mark.parametrize("budget", [0.0, 3.0, 6.0])
def test_a_plan_keeps_a_budget_that_its_terms_have(budget: float) -> None:
    problem = make_value_dependent_problem()
    X, y = problem.sample(400, seed=0)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = PlanningClassifier(costs).fit(X, y)
    free = policy.acquire(X)
    decider = policy.decider_
    limited = replace(decider, terms=decider.terms._replace(budget=budget))
    result = run(limited, policy._encode(X))
    assert (result.cost <= budget).all()
    if budget >= free.cost.max():
        np.testing.assert_array_equal(result.order, free.order)
    else:
        assert result.cost.mean() < free.cost.mean()

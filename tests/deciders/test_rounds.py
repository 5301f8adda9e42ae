"""Rounds: what is ordered together returns together, against exact dynamic programming."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import (
    Acquire,
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    load,
    save,
    trade_off,
)
from adacos.deciders.recall import RecallDecider
from adacos.exceptions import InvalidInputError
from adacos.rivals import DWSMClassifier, OptimalPolicyClassifier
from tests.deciders.round_oracle import Oracle, draw, waiting
from tests.policies.budget_table import QUICK, draw_rows
from tests.policy_checks import check_consultation, check_no_peeking, same, with_missing
from tests.providers.sources import NAMES, emptied, sources
from tests.rivals.problems import MIXED_COSTS, mixed_table

pytestmark = pytest.mark.filterwarnings("ignore:The positive class")


# The oracle: exact dynamic programming over what was acquired, with batches as actions


def naive_bayes(shares: list[tuple[float, float]], prior: float) -> np.ndarray:
    """P(y, x) of binary covariates that are independent given the class."""
    joint = np.array([1 - prior, prior])
    for negative, positive in shares:
        likely = np.array([[1 - negative, negative], [1 - positive, positive]])
        joint = joint[..., None] * likely.reshape(2, *[1] * (joint.ndim - 1), 2)
    return joint


SHARES = [(0.15, 0.8), (0.2, 0.8), (0.25, 0.75), (0.3, 0.7)]
ERRORS = [[0, 100], [100, 0]]


def realised(policy: Any, joint: np.ndarray) -> float:
    """Expected total cost of a policy under the true joint distribution, exactly."""
    cells = np.array(list(np.ndindex(*joint.shape[1:])), dtype=float)
    result = policy.acquire(cells)
    mass = joint.reshape(2, -1)
    wrong = np.asarray(ERRORS)[:, result.label]
    return float((mass.sum(axis=0) * result.cost).sum() + (mass * wrong).sum())


def test_the_oracle_without_delay_is_the_optimal_policy() -> None:
    """Batches gain nothing where waiting costs nothing: two exact solvers agree."""
    joint, prices = naive_bayes(SHARES, 0.4), [2.0, 3.0, 1.0, 2.5]
    costs = Costs(prices, misclassification=ERRORS)
    optimal = OptimalPolicyClassifier(costs, joint=joint).fit(*draw(joint, 50, 0))
    assert Oracle(joint, prices, ERRORS, 0.0).value(()) == pytest.approx(optimal.expected_cost_)


@pytest.mark.parametrize("round_cost", [0.01, 1.0, 2.0, 4.0, 8.0])
def test_total_cost_is_near_the_least_with_rounds(round_cost: float) -> None:
    joint, prices = naive_bayes(SHARES, 0.4), [2.0, 3.0, 1.0, 2.5]
    oracle = Oracle(joint, prices, ERRORS, round_cost)
    costs = Costs(prices, misclassification=ERRORS, round_cost=round_cost)
    policy = AdaCOSClassifier(costs, **QUICK).fit(*draw(joint, 4000, 0))
    least, found = oracle.value(()), realised(policy, joint)
    assert least - 1e-9 <= found <= 1.04 * least
    ignoring = AdaCOSClassifier(Costs(prices, misclassification=ERRORS), **QUICK)
    ignoring.fit(*draw(joint, 4000, 0))
    # Charged for waiting, deciding without it.
    ignoring.decider_ = RecallDecider(policy.decider_.terms, ignoring.decider_, 0.0)
    assert found <= realised(ignoring, joint) + 1e-9
    if round_cost >= 1:
        assert found < 0.95 * realised(ignoring, joint)


def test_a_large_cost_of_rounds_gives_the_best_single_batch() -> None:
    """By brute force over all sets; beyond that cost nothing is ordered at all."""
    joint, prices = naive_bayes(SHARES, 0.45), [0.5, 0.6, 0.7, 4.0]
    X, y = draw(joint, 4000, 0)
    for round_cost in (15.0, 20.0):
        cost, best = Oracle(joint, prices, ERRORS, round_cost).best_single_batch()
        assert 1 < len(best) < 4
        costs = Costs(prices, misclassification=ERRORS, round_cost=round_cost)
        policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
        result = policy.acquire(np.array(list(np.ndindex(2, 2, 2, 2)), dtype=float))
        assert {tuple(np.flatnonzero(row)) for row in result.acquired} == {best}
        assert realised(policy, joint) == pytest.approx(cost, rel=1e-6)
    costs = Costs(prices, misclassification=ERRORS, round_cost=60.0)
    assert not AdaCOSClassifier(costs, **QUICK).fit(X, y).acquire(X).acquired.any()


# What stays as it is


@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier, FullModelClassifier])
def test_without_a_cost_of_rounds_nothing_changes(kind: Any) -> None:
    X, y = mixed_table()
    plain = kind(MIXED_COSTS, **QUICK).fit(X, y).acquire(X)
    same(kind(waiting(MIXED_COSTS, 0.0, "blood"), **QUICK).fit(X, y).acquire(X), plain)
    # Nor does it where nothing is waited for; AdaCOS then counts the freedom to stop.
    at_once = kind(waiting(MIXED_COSTS, 5.0, *NAMES), **QUICK).fit(X, y).acquire(X)
    if kind is AdaCOSClassifier:
        plain = kind(MIXED_COSTS, lookahead="dynamic", **QUICK).fit(X, y).acquire(X)
    for field in ("label", "probability", "order", "cost"):
        np.testing.assert_array_equal(getattr(at_once, field), getattr(plain, field))


EXPENSIVE = Costs(
    MIXED_COSTS.covariates, misclassification=[[0, 300], [900, 0]], panels=MIXED_COSTS.panels
)


@pytest.mark.parametrize("lookahead", ["coherent", "paper", "dynamic"])
def test_rounds_are_counted_and_paid(lookahead: str) -> None:
    """By replaying every row as a consultation, batch by batch."""
    X, y = mixed_table()
    policy = AdaCOSClassifier(waiting(EXPENSIVE, 4.0, "kind"), lookahead=lookahead, **QUICK)
    policy.fit(X, y)
    check_consultation(policy, X.head(25))
    check_no_peeking(policy, with_missing(X, np.random.default_rng(0).random(X.shape) < 0.2))
    X = X.dropna().reset_index(drop=True)
    result, batches = policy.acquire(X), set()
    for row in range(0, len(X), 5):
        consultation, rounds = policy.consultation(), 0
        while isinstance(step := consultation.next(), Acquire):
            late = set(step.covariates) - {"kind", "age"}
            rounds += bool(late)
            batches.add(len(step.covariates))
            if "kind" in step.covariates[:1]:
                assert not late, "what is there at once is looked at first"
            paid = consultation.paid
            consultation.observe({name: X[name][row] for name in step.covariates})
            assert consultation.paid == pytest.approx(paid + step.cost)
        assert consultation.rounds == rounds
        price = policy.cost_table_.of_order(result.order[row])
        assert result.cost[row] == pytest.approx(price + 4.0 * rounds)
    assert max(batches) > 1


def test_one_set_for_all_is_one_round() -> None:
    X, y = draw_rows(400, 0)
    costs = Costs([1.0, 2.0, 3.0, 4.0], false_positive=500, false_negative=800, round_cost=3.0)
    full = FullModelClassifier(costs, **QUICK).fit(X, y)
    np.testing.assert_allclose(full.acquire(X).cost, 13.0)
    assert full.consultation().next().covariates == full.sets_[-1]
    cos = COSClassifier(costs, **QUICK).fit(X, y)
    paid = 3.0 + float(cos.cost_table_.of_order(cos.model_.sequence.set(cos.stage_)))
    np.testing.assert_allclose(cos.acquire(X).cost, paid)
    # A rival that asks one by one waits each time.
    rival = DWSMClassifier(costs, n_rounds=2, n_states=400).fit(X, y)
    result = rival.acquire(X)
    expected = rival.cost_table_.of_order(result.order) + 3.0 * result.acquired.sum(axis=1)
    np.testing.assert_allclose(result.cost, expected)


def test_waits_are_part_of_what_more_spending_pays_for() -> None:
    X, y = draw_rows(600, 0)
    costs = Costs([1.0, 2.0, 3.0, 4.0], false_positive=500, false_negative=800, round_cost=5.0)
    curve = trade_off(AdaCOSClassifier(costs, **QUICK).fit(X, y), *draw_rows(2000, 1), points=10)
    paid = [point.covariate_cost for point in curve.points]
    assert len(paid) > 3
    assert paid == sorted(paid, reverse=True)
    assert paid[-1] == 0


def test_providers_are_called_batch_by_batch() -> None:
    X, y = mixed_table()
    policy = AdaCOSClassifier(waiting(EXPENSIVE, 4.0), **QUICK).fit(X, y)
    X = X.dropna().reset_index(drop=True)
    fetch = sources(X)
    # Matrix products of fewer rows round otherwise.
    same(policy.acquire(emptied(X), providers=fetch), policy.acquire(X), rounding=1e-12)


def test_files_and_what_is_refused(tmp_path: Any) -> None:
    X, y = mixed_table()
    costs = waiting(MIXED_COSTS, 2.0, "kind")
    assert eval(repr(costs), {"Costs": Costs}) != MIXED_COSTS
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    save(policy, tmp_path / "m.adacos")
    same(load(tmp_path / "m.adacos").acquire(X), policy.acquire(X))
    for kind in (BranchingClassifier, AutoPolicyClassifier):
        with pytest.raises(InvalidInputError, match="round cost"):
            kind(costs).fit(X, y)
    for name in ("budget", "mean_budget"):
        with pytest.raises(InvalidInputError, match="round cost"):
            AdaCOSClassifier(costs, **{name: 3.0}).fit(X, y)
    with pytest.raises(InvalidInputError, match="immediate"):
        AdaCOSClassifier(waiting(MIXED_COSTS, 2.0, "mri")).fit(X, y)
    with pytest.raises(InvalidInputError, match="round_cost"):
        Costs(round_cost=-1.0)


def test_the_service_counts_rounds_in_which_something_was_unavailable() -> None:
    """A wait for each batch, as in the consultation that tells what is unavailable when asked."""
    pytest.importorskip("fastapi")
    from adacos.service.answers import Answers
    from adacos.service.schemas import StepRequest

    X, y = mixed_table()
    policy = AdaCOSClassifier(waiting(EXPENSIVE, 0.5), **QUICK).fit(X, y)
    answers, counted = Answers(policy), set()
    for row, values in enumerate(X.dropna().head(30).to_dict("records")):
        consultation, gone = policy.consultation(), {NAMES[row % 5], NAMES[(row // 5) % 5]}
        acquired: dict[str, Any] = {}
        while isinstance(step := consultation.next(), Acquire):
            batch = {name: values[name] for name in step.covariates if name not in gone}
            absent = [name for name in step.covariates if name in gone]
            if batch:
                consultation.observe(batch)
            if absent:
                consultation.unavailable(*absent)
            acquired |= batch
            missing = list(consultation.missing)
            replayed = answers.consultation(StepRequest(acquired=acquired, unavailable=missing))
            assert replayed.rounds == consultation.rounds
            assert replayed.paid == pytest.approx(consultation.paid)
        counted.add(consultation.rounds)
    assert max(counted) > 1


def test_the_service_asks_for_a_batch_and_counts_its_rounds() -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from adacos.service.app import create_app

    X, y = mixed_table()
    policy = AdaCOSClassifier(waiting(EXPENSIVE, 4.0), **QUICK).fit(X, y)
    X = X.dropna().reset_index(drop=True).head(12)
    result = policy.acquire(X)
    client, longest = TestClient(create_app(policy), base_url="http://127.0.0.1"), 0
    for row, values in enumerate(X.to_dict("records")):
        acquired: dict[str, Any] = {}
        while True:
            step = client.post("/v1/step", json={"acquired": acquired, "unavailable": []}).json()
            if step["action"] == "classify":
                break
            longest = max(longest, len(step["covariates"]))
            acquired |= {name: values[name] for name in step["covariates"]}
        assert tuple(acquired) == result.covariates(row)
        assert step["cost"] == pytest.approx(result.cost[row])
    assert longest > 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reasons_are_about_what_is_available_of_a_batch(n_classes: int) -> None:
    """The values that would change the label are those of the first covariate that is ordered."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.digitize(X @ [3.0, 2.0, 1.0] + rng.normal(size=400), [-1.0, 1.0][: n_classes - 1])
    costs = Costs([1.0, 1.0, 1.0], misclassification=30.0 * (1 - np.eye(n_classes)), round_cost=2.0)
    consultation = AdaCOSClassifier(costs, **QUICK).fit(X, y).consultation()
    first = consultation.next()
    assert len(first.covariates) > 1
    assert {flip.covariate for flip in first.explanation.flips} == {"x0"}
    second = consultation.unavailable("x0").next()
    assert second.covariates[0] == "x1"
    assert {flip.covariate for flip in second.explanation.flips} == {"x1"}

"""The model card of every policy: plain values, one set of keys, and the figures behind it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import adacos
from adacos import (
    AdaCOSClassifier,
    Costs,
    PlanningClassifier,
    TargetRecallClassifier,
)
from adacos.card import headline, model_card, rule_in_words, threshold_reason
from adacos.consultation import fingerprint
from adacos.consultation.cut_off import cut_off_of, percent
from adacos.kernels.groups import standard_error
from adacos.policies.estimates import cost_doubt, cost_estimates, estimate_costs
from adacos.policies.nested import nested_cost
from adacos.rivals import OptimalPolicyClassifier
from tests.report.every_policy import COSTS, build, registered, table

OWN = "this policy, nested cross-validation"
MANY_ROWS = "this policy, stops chosen with these rows"


@pytest.mark.parametrize("kind", registered(), ids=lambda kind: kind.__name__)
def test_every_policy_has_a_card_and_a_service(kind, tmp_path):
    X, y = table()
    policy = build(kind).fit(X, y)
    card = model_card(policy)
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert set(card) == set(model_card(AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)))
    assert [c["cost"] for c in card["covariates"]] == [1.0, 2.0, 3.0]
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from adacos.service.app import create_app

    client = TestClient(create_app(policy), base_url="http://127.0.0.1")
    shown = client.get("/v1/model").json()
    assert {name: shown[name] for name in card} == card
    assert client.post("/v1/step", json={"acquired": {}}).status_code == 200


def test_the_cost_estimates_by_hand():
    X, y = table(1000)
    adaptive = AdaCOSClassifier(COSTS, cv=5, strengths="common").fit(X, y)
    assert next(item.name for item in cost_estimates(adaptive)) != MANY_ROWS
    estimate_costs(adaptive, X, y)
    found = {item.name: item for item in cost_estimates(adaptive)}
    positive = y.mean()
    assert found["everyone positive"].cost == pytest.approx(20 * (1 - positive))
    assert found["everyone negative"].cost == pytest.approx(60 * positive)
    error = 60 * np.sqrt(positive * (1 - positive) / (len(y) - 1))
    assert found["everyone negative"].error == pytest.approx(error)
    log_odds = adaptive.model_.out_of_fold_log_odds
    label = log_odds[:, -1] >= np.log(20 / 60)
    wrong = np.where(y == 1, 60 * ~label, 20 * label)
    assert found["full model"].cost == pytest.approx(6 + wrong.mean())
    result = adaptive.acquire(X)
    label = log_odds[np.arange(len(y)), result.stage] >= np.log(20 / 60)
    own = result.cost + np.where(y == 1, 60 * ~label, 20 * label)
    assert found[MANY_ROWS].cost == pytest.approx(own.mean())
    assert found[MANY_ROWS].error == pytest.approx(own.std(ddof=1) / np.sqrt(len(y)))


def test_with_few_rows_the_cost_is_that_of_fits_without_them():
    """What stops chosen with the same rows cost is 5% too low with 200 rows and more."""
    X, y = table()
    policy = AdaCOSClassifier(COSTS, cv=5, strengths="common").fit(X, y)
    estimate_costs(policy, X, y)
    expected = nested_cost(AdaCOSClassifier(COSTS, cv=3, strengths="common"), X, y)
    assert cost_estimates(policy)[0] == (OWN, expected.mean, expected.error)


def test_every_policy_has_a_cost_of_its_own_on_rows_it_was_not_fitted_on():
    X, y = table()
    policy = build(OptimalPolicyClassifier).fit(X, y)
    estimate_costs(policy, X, y)
    expected = nested_cost(build(OptimalPolicyClassifier), X, y)
    assert cost_estimates(policy)[0][1:] == pytest.approx((expected.mean, expected.error))


def test_a_policy_that_costs_more_than_asking_nothing_is_doubted():
    """Compared row by row: half of the rows are positive, FP 20 and FN 60."""
    X, y = table()
    policy = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)
    true = np.arange(100) % 2
    alike = np.where(true == 1, 0.0, 20.0)
    noise = np.random.default_rng(0).normal(0, 5, 100)
    noise -= noise.mean()
    for more, doubted in ((0.1, True), (-0.1, False), (-5.0, False)):
        assert (cost_doubt(policy, alike + noise + more, true) is not None) == doubted
    assert cost_doubt(policy, alike, true) is None
    own, true = np.append(alike + 3.0 + noise, np.nan), np.append(true, 1)
    reported = cost_doubt(policy, own, true)
    assert "costs 13.00 a row, everyone positive 10.00" in reported
    error = noise.std(ddof=1) / 10
    assert f"3.00 ± {error:.2f}" in reported
    groups = np.append(np.arange(100) // 10, 10)
    assert f"3.00 ± {standard_error(noise, groups[:-1]):.2f}" in cost_doubt(
        policy, own, true, groups=groups
    )


@pytest.mark.parametrize("kind", [AdaCOSClassifier, OptimalPolicyClassifier])
def test_a_nested_estimate_takes_its_place(kind):
    X, y = table()
    policy = build(kind).fit(X, y)
    before = fingerprint(policy)
    estimate_costs(policy, X, y, nested=True)
    assert fingerprint(policy) == before
    own = cost_estimates(policy)[0]
    expected = nested_cost(build(kind), X, y)
    assert own[1:] == pytest.approx((expected.mean, expected.error))
    assert {"everyone positive", "everyone negative"} <= {i.name for i in cost_estimates(policy)}


def test_the_threshold_is_reported_with_its_reason():
    X, y = table(80)
    policy = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)

    def reported(false_positive: float, false_negative: float) -> tuple[str, str]:
        costs = Costs([1.0, 2.0, 3.0], false_positive=false_positive, false_negative=false_negative)
        other = AdaCOSClassifier(costs).from_model(policy)
        return percent(cut_off_of(other.rule_)), threshold_reason(other)

    assert reported(100, 1000) == (
        "9.1%",
        "missing a case counts as much as ten false alarms",
    )
    assert reported(5, 5)[1] == "missing a case counts as much as a false alarm"
    assert reported(40, 10)[1] == "a false alarm counts as much as four missed cases"
    assert reported(10, 25)[1] == "missing a case counts as much as 2.5 false alarms"
    assert reported(1, 999)[0] == "0.1%"
    recall = TargetRecallClassifier(
        AdaCOSClassifier(Costs([1.0, 2.0, 3.0], false_positive=5)), target_recall=0.9
    ).from_model(policy)
    assert cut_off_of(recall.rule_) == pytest.approx(recall.threshold_, rel=1e-12)
    assert threshold_reason(recall) == "chosen to find about 90.0% of cases"


def test_the_cut_off_claims_no_more_than_the_certificate():
    """Where the requested recall is refused, the sentence is about the recall that is proved."""
    X, y = table()
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs([1.0, 2.0, 3.0], false_positive=20), cv=2, strengths="common"),
        target_recall=0.99,
        recall_confidence=0.95,
        on_uncertifiable="largest",
    ).fit(X, y)
    bound = policy.certificate_.bound
    assert bound < 0.99
    proved = f"{np.floor(1000 * bound) / 10:g}%"
    reason = f"certified to find at least {proved} of cases with 95% confidence"
    assert threshold_reason(policy) == reason
    sentence = f"Called positive at {percent(policy.threshold_)} or above: {reason}."
    assert rule_in_words(policy) == sentence


def test_a_certificate_that_says_nothing_says_so_first():
    X, y = table()
    costs = Costs([1.0, 2.0, 3.0], false_positive=20)
    silent = TargetRecallClassifier(
        AdaCOSClassifier(costs, cv=2, strengths="common"),
        target_recall=0.99,
        recall_confidence=0.99,
        on_uncertifiable="always_positive",
    ).fit(X, y)
    assert silent.always_positive_
    assert headline(silent).startswith("The model calls everyone positive and acquires nothing;")
    assert model_card(silent)["threshold"] == 0
    names = [item["name"] for item in model_card(silent)["cost_estimates"]]
    assert "everyone positive" in names
    assert "everyone negative" not in names
    assert headline(AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)) is None
    data = adacos.load_pima()
    useful = TargetRecallClassifier(
        AdaCOSClassifier(Costs(data.prices, false_positive=400), cv=5, strengths="common"),
        target_recall=0.85,
        recall_confidence=0.9,
    ).fit(data.X, data.y)
    assert headline(useful) is None


def test_a_certified_policy_that_calls_everyone_positive_says_so_first():
    """It was certified by a cut-off that calibration rows of noise all reach."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), (rng.random(400) < 0.5).astype(int)
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs([10.0, 10.0, 10.0], false_positive=10), cv=3, strengths="common"),
        target_recall=0.7,
        recall_confidence=0.9,
    ).fit(X, y)
    result = policy.acquire(X)
    assert (result.label == 1).all()
    assert not result.acquired.any()
    assert not policy.always_positive_
    assert headline(policy).startswith("The model calls everyone positive and acquires nothing;")
    assert headline(policy).endswith("The certificate says no more than that.")


@pytest.mark.parametrize("around", [False, True])
def test_a_recall_that_calls_everyone_positive_is_said_first(around):
    """Covariates of noise that cost as much as a false alarm."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), (rng.random(300) < 0.4).astype(int)
    costs = Costs([10.0, 10.0, 10.0], false_positive=10)
    policy = TargetRecallClassifier(
        AdaCOSClassifier(costs, cv=3, strengths="common"), target_recall=0.95
    )
    if around:
        inner = PlanningClassifier(COSTS)
        policy = TargetRecallClassifier(inner, target_recall=0.95)
    policy.fit(X, y)
    result = policy.acquire(X)
    if (result.label == 1).all() and not result.acquired.any():
        reported = model_card(policy)["headline"]
        assert "calls everyone positive" in reported
        assert "does not discriminate" in reported
        assert "not reached at a lower cost" not in reported
    else:
        assert around
        assert model_card(policy)["headline"] is None
    X[:, 0] += 4 * y
    cheap = Costs([0.1, 0.1, 0.1], false_positive=10)
    other = TargetRecallClassifier(
        AdaCOSClassifier(cheap, cv=3, strengths="common"), target_recall=0.95
    ).fit(X, y)
    assert model_card(other)["headline"] is None

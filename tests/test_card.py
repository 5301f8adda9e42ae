"""The model card of every policy: plain values, one set of keys, and the figures behind it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import adacos
from adacos import (
    AdaCOSClassifier,
    Costs,
)
from adacos.card import headline, model_card, rule_in_words, threshold_reason
from adacos.consultation import fingerprint
from adacos.consultation.cut_off import cut_off_of, percent
from adacos.policies.estimates import cost_doubt, estimate_leave_out, leave_out_costs
from adacos.policies.leave_out import leave_out_cost
from adacos.rivals import OptimalPolicyClassifier
from tests.report.every_policy import COSTS, build, registered, table

OWN = "this policy, stops chosen with these rows"


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


def test_the_leave_out_costs_by_hand():
    X, y = table()
    adaptive = AdaCOSClassifier(COSTS, cv=5, strengths="common").fit(X, y)
    assert next(item.name for item in leave_out_costs(adaptive)) != OWN
    estimate_leave_out(adaptive, X, y)
    found = {item.name: item for item in leave_out_costs(adaptive)}
    positive = y.mean()
    assert found["everyone positive"].cost == pytest.approx(20 * (1 - positive))
    assert found["everyone negative"].cost == pytest.approx(60 * positive)
    error = 60 * np.sqrt(positive * (1 - positive) / (len(y) - 1))
    assert found["everyone negative"].error == pytest.approx(error)
    log_odds = adaptive.model_.leave_out_log_odds
    label = log_odds[:, -1] >= np.log(20 / 60)
    wrong = np.where(y == 1, 60 * ~label, 20 * label)
    assert found["full model"].cost == pytest.approx(6 + wrong.mean())
    result = adaptive.acquire(X)
    label = log_odds[np.arange(len(y)), result.stage] >= np.log(20 / 60)
    own = result.cost + np.where(y == 1, 60 * ~label, 20 * label)
    assert found[OWN].cost == pytest.approx(own.mean())
    assert found[OWN].error == pytest.approx(own.std(ddof=1) / np.sqrt(len(y)))


def test_every_policy_has_a_cost_of_its_own_on_rows_it_was_not_fitted_on():
    X, y = table()
    policy = build(OptimalPolicyClassifier).fit(X, y)
    estimate_leave_out(policy, X, y)
    expected = leave_out_cost(build(OptimalPolicyClassifier), X, y)
    assert leave_out_costs(policy)[0][1:] == pytest.approx((expected.mean, expected.error))


def test_a_policy_that_costs_more_than_asking_nothing_is_doubted():
    X, y = table()
    policy = build(OptimalPolicyClassifier).fit(X, y)
    own, alike = "this policy, nested cross-validation", ("everyone negative", 30.0, 1.0)
    for cost, doubted in ((34.0, True), (32.0, False), (20.0, False)):
        policy.leave_out_ = ((own, cost, 1.0), ("everyone positive", 50.0, 1.0), alike)
        assert (cost_doubt(policy) is not None) == doubted
    policy.leave_out_ = ((own, 34.0, 1.0), alike)
    assert "costs 34.00 a row, everyone negative 30.00" in cost_doubt(policy)
    assert cost_doubt(AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)) is None


@pytest.mark.parametrize("kind", [AdaCOSClassifier, OptimalPolicyClassifier])
def test_a_nested_estimate_takes_its_place(kind):
    X, y = table()
    policy = build(kind).fit(X, y)
    before = fingerprint(policy)
    estimate_leave_out(policy, X, y, nested=True)
    assert fingerprint(policy) == before
    own = leave_out_costs(policy)[0]
    expected = leave_out_cost(build(kind), X, y)
    assert own[1:] == pytest.approx((expected.mean, expected.error))
    assert {"everyone positive", "everyone negative"} <= {i.name for i in leave_out_costs(policy)}


def test_the_threshold_is_told_with_its_reason():
    X, y = table(80)
    policy = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)

    def told(false_positive: float, false_negative: float) -> tuple[str, str]:
        costs = Costs([1.0, 2.0, 3.0], false_positive=false_positive, false_negative=false_negative)
        other = AdaCOSClassifier(costs).from_model(policy)
        return percent(cut_off_of(other.rule_)), threshold_reason(other)

    assert told(100, 1000) == (
        "9.1%",
        "missing a case counts as much as ten false alarms",
    )
    assert told(5, 5)[1] == "missing a case counts as much as a false alarm"
    assert told(40, 10)[1] == "a false alarm counts as much as four missed cases"
    assert told(10, 25)[1] == "missing a case counts as much as 2.5 false alarms"
    assert told(1, 999)[0] == "0.1%"
    recall = AdaCOSClassifier(
        Costs([1.0, 2.0, 3.0], false_positive=5), target_recall=0.9
    ).from_model(policy)
    assert cut_off_of(recall.rule_) == pytest.approx(recall.threshold_, rel=1e-12)
    assert threshold_reason(recall) == "chosen to find about 90.0% of cases"


def test_the_cut_off_claims_no_more_than_the_certificate():
    """Where the requested recall is refused, the sentence is about the recall that is proved."""
    X, y = table()
    policy = AdaCOSClassifier(
        Costs([1.0, 2.0, 3.0], false_positive=20),
        target_recall=0.99,
        recall_confidence=0.95,
        on_uncertifiable="largest",
        cv=2,
        strengths="common",
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
    silent = AdaCOSClassifier(
        costs,
        target_recall=0.99,
        recall_confidence=0.99,
        on_uncertifiable="always_positive",
        cv=2,
        strengths="common",
    ).fit(X, y)
    assert silent.always_positive_
    assert headline(silent).startswith("The model calls everyone positive and acquires nothing;")
    assert model_card(silent)["threshold"] == 0
    names = [item["name"] for item in model_card(silent)["leave_out"]]
    assert "everyone positive" in names
    assert "everyone negative" not in names
    assert headline(AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)) is None
    data = adacos.load_pima()
    useful = AdaCOSClassifier(
        Costs(data.prices, false_positive=400),
        target_recall=0.85,
        recall_confidence=0.9,
        cv=5,
        strengths="common",
    ).fit(data.X, data.y)
    assert headline(useful) is None

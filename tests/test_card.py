"""The model card of every policy: plain values, one set of keys, and the figures behind it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import adacos
from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
    rivals,
)
from adacos.card import (
    estimate_leave_out_cost,
    headline,
    leave_out_costs,
    model_card,
    percent,
    threshold_of,
    threshold_reason,
)

QUICK = {
    "AdaptGbrtClassifier": {"n_rounds": 2},
    "GreedyMiserClassifier": {"n_trees": 5, "n_lambdas": 2, "cv": 2},
    "POMDPClassifier": {},
    "DWSMClassifier": {},
    "OptimalPolicyClassifier": {},
}


def table(n: int = 200):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, size=(n, 3)).astype(float)
    y = (rng.random(n) < 0.15 + 0.3 * X[:, 0] + 0.3 * X[:, 1]).astype(int)
    return X, y


COSTS = Costs([1.0, 2.0, 3.0], false_positive=20, false_negative=60)


def registered() -> list[type]:
    """Every policy that can be fitted without an extra."""
    ours = [AdaCOSClassifier, COSClassifier, FullModelClassifier]
    literature = [getattr(rivals, name) for name in rivals.__all__ if name in QUICK]
    return [*ours, *literature, TargetRecallClassifier]


def build(kind: type):
    if kind is TargetRecallClassifier:
        return TargetRecallClassifier(COSClassifier(COSTS), target_recall=0.8)
    parameters = dict(QUICK.get(kind.__name__, {}))
    known = kind(COSTS).get_params()
    return kind(COSTS, **{k: v for k, v in parameters.items() if k in known})


@pytest.mark.parametrize("kind", registered(), ids=lambda kind: kind.__name__)
def test_every_policy_has_a_card_and_a_service(kind, tmp_path):
    X, y = table()
    policy = build(kind).fit(X, y)
    card = model_card(policy)
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert set(card) == set(model_card(AdaCOSClassifier(COSTS, cv=2).fit(X, y)))
    assert [c["cost"] for c in card["covariates"]] == [1.0, 2.0, 3.0]
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from adacos.service.app import create_app

    client = TestClient(create_app(policy))
    shown = client.get("/v1/model").json()
    assert {name: shown[name] for name in card} == card
    assert client.post("/v1/step", json={"acquired": {}}).status_code == 200


def test_the_leave_out_costs_by_hand():
    X, y = table()
    adaptive = AdaCOSClassifier(COSTS, cv=5, strengths="common").fit(X, y)
    assert next(item.name for item in leave_out_costs(adaptive)) != "this policy"
    estimate_leave_out_cost(adaptive, X)
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
    assert found["this policy"].cost == pytest.approx(own.mean())
    assert found["this policy"].error == pytest.approx(own.std(ddof=1) / np.sqrt(len(y)))


def test_the_threshold_is_told_with_its_reason():
    X, y = table(80)
    policy = AdaCOSClassifier(COSTS, cv=2, strengths="common").fit(X, y)

    def told(false_positive: float, false_negative: float) -> tuple[str, str]:
        costs = Costs([1.0, 2.0, 3.0], false_positive=false_positive, false_negative=false_negative)
        other = AdaCOSClassifier(costs).from_model(policy)
        return percent(threshold_of(other)), threshold_reason(other)

    assert told(100, 1000) == (
        "9.1\N{NO-BREAK SPACE}%",
        "because a missed case costs ten false alarms",
    )
    assert told(5, 5)[1] == "because a missed case and a false alarm cost the same"
    assert told(40, 10)[1] == "because a false alarm costs four missed cases"
    assert told(10, 25)[1] == "because a missed case costs 2.5 false alarms"
    assert told(1, 999)[0] == "0.1\N{NO-BREAK SPACE}%"
    recall = AdaCOSClassifier(
        Costs([1.0, 2.0, 3.0], false_positive=5), target_recall=0.9
    ).from_model(policy)
    assert threshold_of(recall) == recall.threshold_
    assert threshold_reason(recall) == "so that at least 90.0% of the cases are found"


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
    assert headline(silent).startswith("Everyone is answered positive")
    assert model_card(silent)["threshold"] == 0
    names = [item["name"] for item in model_card(silent)["leave_out"]]
    assert "everyone positive" in names
    assert "everyone negative" not in names
    assert headline(AdaCOSClassifier(COSTS, cv=2).fit(X, y)) is None
    data = adacos.load_pima()
    useful = AdaCOSClassifier(
        Costs(data.prices, false_positive=400),
        target_recall=0.85,
        recall_confidence=0.9,
        cv=5,
        strengths="common",
    ).fit(data.X, data.y)
    assert headline(useful) is None

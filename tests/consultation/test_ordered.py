"""Results that arrive later: what was ordered together is paid and waited for once."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import adacos
from adacos import AdaCOSClassifier, Classify, Costs, InvalidInputError
from adacos.consultation import Consultation
from adacos.consultation.steps import Acquire
from adacos.service.app import create_app
from adacos.service.settings import Settings

IMMEDIATE = ["age", "sex", "cp", "trestbps"]


@pytest.fixture(scope="module")
def heart() -> Any:
    """Heart with waits, its complete rows, and what `acquire` does with them."""
    data = adacos.load_heart()
    costs = Costs(
        data.prices,
        false_positive=4000,
        false_negative=4000,
        panels=data.panels,
        round_cost=50,
        immediate=IMMEDIATE,
    )
    policy = AdaCOSClassifier(costs, cv=3, strengths="common").fit(data.X, data.y)
    rows = data.X.dropna()
    return policy, rows, policy.acquire(rows)


def test_results_in_any_order_of_arrival_cost_what_acquire_pays(heart: Any) -> None:
    policy, rows, result = heart
    rng, parts = np.random.default_rng(0), 0
    for number, (_, row) in enumerate(rows.iterrows()):
        consultation = policy.consultation()
        while isinstance(step := consultation.next(), Acquire):
            consultation.order()
            for name in rng.permutation(step.covariates):
                waiting = consultation.next()
                assert waiting.ordered
                assert waiting.cost == 0
                assert name in waiting.covariates
                consultation.observe({name: row[name]})
            parts += len(step.covariates) > 1
        assert (step.label, step.cost) == (result.label[number], pytest.approx(result.cost[number]))
        assert step.probability == pytest.approx(result.probability[number], abs=1e-12)
    assert parts > 100


def first_batch(policy: Any, row: Any) -> tuple[Consultation, Acquire]:
    """A consultation at its first order of several covariates."""
    consultation = policy.consultation()
    while len((step := consultation.next()).covariates) < 3:
        consultation.observe({name: row[name] for name in step.covariates})
    return consultation, step


def test_every_order_of_arrival_ends_alike(heart: Any) -> None:
    policy, rows, _ = heart
    row = rows.iloc[0]
    _, step = first_batch(policy, row)
    ends = set()
    for arrival in permutations(step.covariates[:4]):
        consultation, _ = first_batch(policy, row)
        consultation.order()
        for name in (*step.covariates[4:], *arrival):
            consultation.observe({name: row[name]})
        ends.add((consultation.paid, consultation.rounds, str(consultation.next())))
    assert len(ends) == 1


def test_what_was_ordered_and_is_unavailable_is_not_paid(heart: Any) -> None:
    policy, rows, _ = heart
    row = rows.iloc[0]
    consultation, step = first_batch(policy, row)
    before, (gone, *others) = consultation.paid, step.covariates
    consultation.order()
    assert consultation.paid == pytest.approx(before + step.cost)
    assert set(consultation.ordered) == set(step.covariates)
    consultation.unavailable(gone)
    assert consultation.paid == pytest.approx(
        before + policy.costs.of(others, given=[*consultation.values]) + 50
    )
    consultation.unavailable(*others)
    # Nothing is left to wait for.
    assert (consultation.paid, consultation.ordered) == (pytest.approx(before), ())


def test_stopping_with_results_on_their_way_pays_for_them(heart: Any) -> None:
    policy, rows, _ = heart
    consultation, step = first_batch(policy, rows.iloc[0])
    before = consultation.paid
    stopped = consultation.order().stop().next()
    assert isinstance(stopped, Classify)
    assert stopped.cost == pytest.approx(before + step.cost)
    assert not consultation.undo().stopped


def test_an_order_goes_into_another_process_and_back(heart: Any) -> None:
    policy, rows, _ = heart
    row = rows.iloc[0]
    consultation, step = first_batch(policy, row)
    name = step.covariates[1]
    consultation.order().observe({name: row[name]})
    again = Consultation.from_state(policy, json.loads(json.dumps(consultation.state())))
    assert (again.paid, again.ordered) == (consultation.paid, consultation.ordered)
    assert again.next() == consultation.next()
    assert "Wait for" in str(again.next())
    assert "when the results" in str(again.next().explanation)
    assert again.next().to_dict()["ordered"] is True
    assert "ordered" not in policy.consultation().next().to_dict()
    # Both events can be taken back.
    assert again.undo().undo().next() == step


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("age",), "must name covariates without a value that were not ordered before"),
        (("thal", "thal"), "must name covariates without a value that were not ordered before"),
        (("pulse",), "must name covariates of the model"),
    ],
)
def test_mistakes_are_named(heart: Any, names: tuple[str, ...], message: str) -> None:
    consultation = heart[0].consultation(known={"age": 50})
    with pytest.raises(InvalidInputError, match=message):
        consultation.order(*names)
    with pytest.raises(InvalidInputError, match="needs a covariate"):
        consultation.order("thal").order()
    with pytest.raises(InvalidInputError, match="is impossible after stop"):
        consultation.stop().order("ca")


def test_requests_name_what_is_ordered_and_cost_what_acquire_pays(heart: Any) -> None:
    policy, rows, result = heart
    rng = np.random.default_rng(1)
    with TestClient(create_app(policy, Settings()), base_url="http://localhost") as client:
        for number in range(0, len(rows), 12):
            row, acquired = rows.iloc[number], {}
            while (step := ask(client, acquired, []))["action"] == "acquire":
                due = list(rng.permutation(step["covariates"]))
                while due:
                    waiting = ask(client, acquired, due)
                    assert waiting["ordered"]
                    assert set(waiting["covariates"]) == set(due)
                    assert waiting["explanation"]["paid"] == pytest.approx(
                        step["explanation"]["paid"] + step["cost"]
                    )
                    name = due.pop()
                    acquired[name] = float(row[name])
            assert step["label"] == result.label[number]
            assert step["cost"] == pytest.approx(result.cost[number])
        for wrong, reported in (
            ({"acquired": {"ca": 1.0}, "ordered": ["ca"]}, "has a value"),
            ({"unavailable": ["ca"], "ordered": ["ca"]}, "is listed twice"),
            ({"ordered": ["ca", "ca"]}, "is listed twice"),
        ):
            answer = client.post("/v1/step", json=wrong)
            assert answer.status_code == 422
            assert reported in answer.text


def ask(client: Any, acquired: dict[str, float], ordered: list[str]) -> Any:
    answer = client.post("/v1/step", json={"acquired": acquired, "ordered": ordered})
    assert answer.status_code == 200, answer.text
    return answer.json()

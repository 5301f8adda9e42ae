"""`adacos ask` where results arrive later, and what it says was paid already."""

from __future__ import annotations

import json
from typing import Any

import pytest

import adacos
from adacos import AdaCOSClassifier, Costs
from adacos.consultation.steps import Acquire

IMMEDIATE = ["age", "sex", "cp", "trestbps"]


@pytest.fixture(scope="module")
def heart(tmp_path_factory: Any) -> Any:
    data = adacos.load_heart()
    wrong = {"false_positive": 4000, "false_negative": 4000}
    waits = {"round_cost": 50, "immediate": IMMEDIATE}
    costs = Costs(data.prices, panels=data.panels, **wrong, **waits)
    policy = AdaCOSClassifier(costs, cv=3, strengths="common").fit(data.X, data.y)
    path = tmp_path_factory.mktemp("ask") / "heart.adacos"
    adacos.save(policy, path)
    return policy, path, data.X.loc[278]


def single_answers(policy: Any, row: Any, spoken: bool) -> tuple[list[str], Any]:
    """Answers to a consultation in which every result comes alone, and its last step."""
    consultation, answers = policy.consultation(), []
    while isinstance(step := consultation.next(), Acquire):
        several = len(step.covariates) > 1
        answers += ["order"] if several and spoken else []
        # The last of several is asked for alone.
        last = [f"{name}={row[name]:g}" for name in step.covariates]
        answers += last if several else [f"{row[step.covariates[0]]:g}"]
        consultation.observe({name: row[name] for name in step.covariates})
    return answers, step


@pytest.mark.parametrize("spoken", [True, False])
def test_results_one_by_one_cost_one_wait(run: Any, heart: Any, spoken: bool) -> None:
    """Said by `order`, or by the first result of several that were asked for."""
    policy, path, row = heart
    answers, last = single_answers(policy, row, spoken)
    code, out, err = run("ask", path, "--json", answers="\n".join(answers))
    assert code == 0, out + err
    final = json.loads(out.splitlines()[-1])
    assert final["action"] == "classify"
    assert final["cost"] == pytest.approx(last.cost)


def test_the_terminal_says_what_is_ordered(run: Any, heart: Any) -> None:
    policy, path, row = heart
    answers, _ = single_answers(policy, row, True)
    first = answers.index("order")
    code, out, _ = run("ask", path, answers="\n".join([*answers[: first + 2], "quit"]))
    assert code == 1
    assert out.count("ordered, and paid for") == 2
    assert "when the results of what was ordered are in" not in out


def test_what_is_said_to_be_paid_already_is_the_share(run: Any, heart: Any) -> None:
    """With cholesterol, 2.10 of its panel are paid; discounts among what is asked are another."""
    _, path, _ = heart
    known = "age=63,sex=1,cp=1,trestbps=145,chol=233"
    _, out, _ = run("ask", path, "--known", known, answers="quit")
    assert "2.10 of the list price already paid with chol" in " ".join(out.split())

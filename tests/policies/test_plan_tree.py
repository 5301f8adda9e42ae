"""The picture of a plan says what the plan does."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from adacos import (
    AutoPolicyClassifier,
    Costs,
    PlanningClassifier,
    TargetRecallClassifier,
    describe,
    load,
    save,
)
from adacos.card import model_card
from adacos.cli.info import show
from adacos.policies import plan_tree
from adacos.policies.plan_tree import MOST_QUESTIONS
from adacos.report import write_report
from adacos.tables.description import CovariateDescription, Description

PRICES = {"ward": 0.5, "fever": 1.0, "blood": 2.0, "scan": 2.5}


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A category, a binary covariate and two numbers; what they say depends on each other."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "ward": rng.choice(["east", "north", "south", "west"], n),
            "fever": rng.integers(0, 2, n).astype(float),
            "blood": rng.normal(10, 3, n),
            "scan": rng.normal(0, 1, n),
        }
    )
    east = X["ward"].isin(["east", "north"])
    log_odds = np.where(east, X["blood"] - 10, 3 * X["scan"]) + 2 * X["fever"] - 1
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


def costs(n_classes: int = 2) -> Costs:
    return Costs(PRICES, misclassification=40 * (1 - np.eye(n_classes)))


def holds(condition: str, X: pd.DataFrame) -> np.ndarray:
    """Which rows a condition holds for, read as a person would."""
    true = np.zeros(len(X), dtype=bool)
    if " = " in condition:
        name, values = condition.split(" = ")
        wanted = values.split(" or ")
        texts = X[name].map(lambda value: value if isinstance(value, str) else f"{value:g}")
        return texts.isin(wanted).to_numpy()
    for part in condition.split(" or "):
        if " ≤ " in part:
            low, rest = part.split(" ≤ ")
            name, high = rest.split(" < ")
            true |= ((X[name] >= float(low)) & (X[name] < float(high))).to_numpy()
        elif " ≥ " in part:
            name, low = part.split(" ≥ ")
            true |= (X[name] >= float(low)).to_numpy()
        else:
            name, high = part.split(" < ")
            true |= (X[name] < float(high)).to_numpy()
    return true


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_are_asked_what_the_picture_says(n_classes: int) -> None:
    """Each row satisfies one condition at every place, and is asked the questions on its way."""
    X, y = table(600, 0)
    X = X.round({"blood": 2, "scan": 2})
    if n_classes == 3:
        y = y + (X["blood"] > 13).to_numpy()
    policy = PlanningClassifier(costs(n_classes)).fit(X, y)
    result, tree = policy.acquire(X), policy.tree_
    names = np.append(list(PRICES), "")
    seen = np.zeros(len(X), dtype=int)

    def follow(number: int, rows: np.ndarray, depth: int) -> None:
        place = tree.places[number]
        assert place.share == pytest.approx(len(rows) / len(X))
        asked = names[result.order[rows]]
        if not place.question:
            seen[rows] += 1
            assert place.cost == pytest.approx(result.cost[rows].mean() if len(rows) else 0)
            # After a number its value decides whether more is asked, and the picture ends.
            if depth < MOST_QUESTIONS and not np.isin(asked[:, :depth], ["blood", "scan"]).any():
                assert (result.acquired[rows].sum(axis=1) == depth).all()
            further = {name: np.mean((asked[:, depth:] == name).any(axis=1)) for name in PRICES}
            reported = {name: share for name, share in further.items() if share > 0}
            assert dict(place.acquired) == pytest.approx(reported)
            return
        assert (asked[:, depth] == place.question).all()
        inside = [holds(tree.places[below].condition, X.iloc[rows]) for below in place.below]
        np.testing.assert_array_equal(np.sum(inside, axis=0), 1)
        for below, part in zip(place.below, inside, strict=True):
            follow(below, rows[part], depth + 1)

    follow(0, np.arange(len(X)), 0)
    assert (seen == 1).all()
    # There is something to follow, and values from which all goes on alike stand together.
    assert len(tree.places) >= 5
    assert n_classes == 2 or " or " in str(tree)


def test_rows_with_missing_values_follow_other_plans_and_are_not_counted() -> None:
    X, y = table(400, 1)
    X.loc[X.index[:100], "blood"] = np.nan
    policy = PlanningClassifier(costs()).fit(X, y)
    assert "blood" in np.array(list(PRICES))[policy.planned_]
    assert policy.tree_.rows == 300
    # Where nobody has everything all rows are counted.
    X["blood"] = np.where(np.arange(400) % 2, np.nan, X["blood"])
    X["scan"] = np.where(np.arange(400) % 2, X["scan"], np.nan)
    assert PlanningClassifier(costs()).fit(X, y).tree_.rows == 400


def test_of_many_categories_fewer_questions_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(500, 3)
    X["blood"], X["scan"] = np.clip(X["blood"] // 3, 1, 5), np.clip(X["scan"].round(), -1, 1)
    policy = PlanningClassifier(costs()).fit(X, y)
    sizes = policy.table_.sizes
    deepest = max(len(node.path) for node in policy.nodes_)
    assert deepest == MOST_QUESTIONS
    for most, depth in ((int(sizes.max()) ** 2, 2), (1, 1)):
        monkeypatch.setattr(plan_tree, "MOST_COMBINATIONS", most)
        assert max(len(node.path) for node in policy.nodes_) == depth


def test_nothing_asked_is_no_picture() -> None:
    X, y = table(200, 2)
    expensive = Costs(dict.fromkeys(PRICES, 1e3), false_positive=1, false_negative=1)
    policy = PlanningClassifier(expensive).fit(X, y)
    assert "no branches" in str(policy.tree_)
    assert model_card(policy)["tree"] is None
    constant = PlanningClassifier(Costs([1.0, 1.0])).fit(np.ones((40, 2)), np.arange(40) % 2)
    assert "no branches" in str(constant.tree_)


def test_card_info_and_file(tmp_path: Path) -> None:
    X, y = table(500, 3)
    policy = PlanningClassifier(costs()).fit(X, y)
    words: dict[str, Any] = {
        "ward": CovariateDescription(label="Ward", values={"east": "East wing"}),
        "blood": CovariateDescription(label="Blood test", unit="g/l"),
    }
    describe(policy, Description(currency="USD", classes={"1": "ill"}, covariates=words))
    save(policy, tmp_path / "plan.adacos")
    loaded = load(tmp_path / "plan.adacos")
    assert loaded.tree_ == policy.tree_
    reported = model_card(loaded)["tree"]
    assert json.loads(json.dumps(reported)) == json.loads(json.dumps(model_card(policy)["tree"]))
    assert "East wing" in reported["text"]
    assert "answered ill: " in reported["text"]
    console = Console(file=io.StringIO(), width=120)
    show(loaded, console)
    shown = console.file.getvalue()
    assert reported["text"].splitlines()[1] in shown


def test_a_policy_wrapped_for_a_recall_is_named(tmp_path: Path) -> None:
    """What is acquired, and how it was chosen, is that of the policy inside."""
    X, y = table(400, 4)
    X = X[["ward", "fever"]]
    few = Costs({"ward": 0.5, "fever": 1.0}, false_positive=20, false_negative=40)
    policy = TargetRecallClassifier(AutoPolicyClassifier(few, cv=2), target_recall=0.8).fit(X, y)
    card = model_card(policy)
    assert card["wraps"] == "AutoPolicyClassifier"
    assert card["choice"]["policy"] == policy.policy_.choice_
    console = Console(file=io.StringIO(), width=120)
    show(policy, console)
    assert "TargetRecallClassifier around AutoPolicyClassifier" in console.file.getvalue()
    write_report(policy, X, y, tmp_path / "r.html", "Report")
    page = (tmp_path / "r.html").read_text()
    assert "TargetRecallClassifier around AutoPolicyClassifier, which chose" in page
    assert "How the policy was chosen" in page
    assert model_card(PlanningClassifier(few).fit(X, y))["wraps"] is None


def test_the_report_draws_the_plan(tmp_path: Path) -> None:
    X, y = table(500, 5)
    policy = PlanningClassifier(costs()).fit(X, y)
    write_report(policy, X, y, tmp_path / "r.html", "Report")
    page = (tmp_path / "r.html").read_text()
    assert f"Every row is asked {policy.tree_.places[0].question}; what comes next" in page

"""Of two orders the one that costs less, by rows whose models did not see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    InvalidInputError,
    TargetRecallClassifier,
)
from adacos.metrics import total_costs
from adacos.models.sequence_model import build_sequence_model
from adacos.policies import orders
from adacos.policies.budgets import out_of_fold_totals
from tests.policy_checks import same

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}
KINDS = [AdaCOSClassifier, BranchingClassifier, COSClassifier, FullModelClassifier]


def weak_before_strong(n: int, seed: int) -> tuple[Any, Any, Costs]:
    """Four classes: five weak covariates for 1 each, and an expensive one that says nearly all."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    weak = [rng.normal(size=n) + 0.3 * (y == k % 4) for k in range(5)]
    strong = np.where(rng.random(n) < 0.85, y, rng.integers(0, 4, n)) + 0.1 * rng.normal(size=n)
    costs = Costs([1.0] * 5 + [10.0], misclassification=60 * (1 - np.eye(4)))
    return np.column_stack([*weak, strong]), y, costs


def noise_and_one(n: int, seed: int) -> tuple[Any, Any, Costs]:
    """Two classes, and one covariate worth its cost, which either order begins with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    return X, y, Costs([1.0, 3.0, 3.0, 3.0], false_positive=30, false_negative=60)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_either_order_is_that_of_its_own_fit(kind: Any) -> None:
    """Bit for bit, whichever is taken; where nothing is gained, the group lasso."""
    for X, y, costs in (weak_before_strong(300, 0), noise_and_one(300, 1)):
        auto = kind(costs, sequence="auto", **QUICK).fit(X, y)
        own = kind(costs, sequence=auto.sequence_, **QUICK).fit(X, y)
        same(auto.acquire(X), own.acquire(X))
        gains = len(auto.classes_) == 4 and kind is not FullModelClassifier
        assert auto.sequence_ == ("forward" if gains else "group_lasso")


@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_both_orders_are_compared_only_where_a_short_plan_costs_less(
    kind: Any, monkeypatch: Any
) -> None:
    """Forward selection is not even tried where neither one covariate nor two would be cheaper."""
    ways: list[str] = []

    def counted(fits: Any, costs: Any, way: str, budget: Any) -> Any:
        ways.append(way)
        return build_sequence_model(fits, costs, way, budget)

    monkeypatch.setattr(orders, "build_sequence_model", counted)
    for (X, y, costs), tried in (
        (weak_before_strong(300, 0), ["group_lasso", "forward"]),
        (noise_and_one(300, 1), ["group_lasso"]),
    ):
        ways.clear()
        auto = kind(costs, sequence="auto", **QUICK).fit(X, y)
        assert ways == tried
        with pytest.warns(FutureWarning, match='sequence="both" is deprecated'):
            both = kind(costs, sequence="both", **QUICK).fit(X, y)
        assert ways[-2:] == ["group_lasso", "forward"]
        assert both.sequence_ == auto.sequence_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
@pytest.mark.parametrize(
    "case", ["weights", "groups", "splits", "missing", "budget", "mean budget", "rounds", "panel"]
)
def test_the_better_order_is_found_with_everything_else_too(kind: Any, case: str) -> None:
    X, y, costs = weak_before_strong(400, 6)
    policy, given = kind(costs, sequence="auto", **QUICK), {}
    if case == "weights":
        given["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    elif case == "groups":
        given["groups"] = np.arange(len(y)) // 2
    elif case == "splits":
        policy.set_params(cv=StratifiedKFold(3))
    elif case == "missing":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    elif case == "budget":
        policy.set_params(budget=12.0)
    elif case == "mean budget":
        policy.set_params(mean_budget=11.0)
    else:
        more: Any = {"round_cost": 0.5} if case == "rounds" else {"panels": {"p": (0.5, [0, 1])}}
        matrix = 60 * (1 - np.eye(4))
        policy.set_params(costs=Costs(costs.covariates, misclassification=matrix, **more))
    policy.fit(X, y, **given)
    assert policy.sequence_ == "forward"
    assert policy.sets_[-1][0] == "x5"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_a_ceiling_below_the_strong_covariate_keeps_the_group_lasso(kind: Any) -> None:
    X, y, costs = weak_before_strong(400, 6)
    assert kind(costs, sequence="auto", budget=8.0, **QUICK).fit(X, y).sequence_ == "group_lasso"


@pytest.mark.filterwarnings("ignore")
def test_with_a_target_recall_the_order_is_that_of_the_group_lasso() -> None:
    """Forward selection needs the cost that the recall replaces."""
    X, y, costs = weak_before_strong(400, 6)
    cheap = Costs(costs.covariates, false_positive=60)
    policy = TargetRecallClassifier(
        AdaCOSClassifier(cheap, sequence="auto", **QUICK), target_recall=0.9
    )
    assert policy.fit(X, (y > 1).astype(int)).policy_.sequence_ == "group_lasso"


@pytest.mark.filterwarnings("ignore")
def test_another_policy_takes_over_the_order_that_was_found() -> None:
    X, y, costs = weak_before_strong(300, 0)
    fitted = AdaCOSClassifier(costs, sequence="auto", **QUICK).fit(X, y)
    assert fitted.sequence_ == "forward"
    for sequence in ("auto", "group_lasso"):
        # What is left at its default is taken over.
        shared = COSClassifier(costs, sequence=sequence, **QUICK).from_model(fitted)
        assert shared.model_ is fitted.model_
        assert shared.sequence_ == "forward"
    with pytest.raises(InvalidInputError, match="fitted in this process with sequence"):
        COSClassifier(costs, sequence="forward", **QUICK).from_model(fitted)
    X, y, costs = noise_and_one(300, 1)
    plain = AdaCOSClassifier(costs, sequence="group_lasso", **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match="It was fitted with sequence='group_lasso'"):
        COSClassifier(costs, sequence="auto", **QUICK).from_model(plain)


@pytest.mark.filterwarnings("ignore")
def test_the_better_order_is_cheaper_on_new_rows_too() -> None:
    X, y, costs = weak_before_strong(600, 2)
    new, true, _ = weak_before_strong(5000, 3)
    cost = {
        way: total_costs(
            AdaCOSClassifier(costs, sequence=way, **QUICK).fit(X, y).acquire(new), true, costs
        ).mean()
        for way in ("group_lasso", "auto")
    }
    assert cost["auto"] < 0.9 * cost["group_lasso"]


@pytest.mark.filterwarnings("ignore")
def test_what_is_compared_is_the_cost_of_each_row_out_of_fold() -> None:
    """By hand along the group lasso: what was paid, and the answer at the stop."""
    X, y, costs = noise_and_one(200, 4)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    totals = out_of_fold_totals(policy.decider_, policy._kept_rows())
    model, table = policy.model_, policy.cost_table_
    possible = table.of(model.sequence.masks())[None] + np.stack(
        [table.matrix[y, label] for label in policy.rule_.label(model.out_of_fold_log_odds).T],
        axis=1,
    )
    assert np.all(np.isclose(totals[:, None], possible).any(axis=1))
    assert totals.mean() < possible.mean(axis=0).min() * 1.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_for_new_costs_the_orders_are_compared_again(kind: Any) -> None:
    """Where an error costs little the strong covariate never pays, and nothing is gained."""
    X, y, costs = weak_before_strong(300, 5)
    fitted, taken = None, []
    for error in (60.0, 5.0):
        own = Costs(costs.covariates, misclassification=error * (1 - np.eye(4)))
        policy = kind(own, sequence="both", **QUICK)
        fitted = policy.fit(X, y) if fitted is None else policy.from_model(fitted)
        totals = []
        for way in ("group_lasso", "forward"):
            along = kind(own, sequence=way, **QUICK).fit(X, y)
            totals.append(out_of_fold_totals(along.decider_, along._kept_rows()))
        less = totals[0] - totals[1]
        cheaper = less.mean() > less.std(ddof=1) / np.sqrt(len(less))
        assert policy.sequence_ == ("forward" if cheaper else "group_lasso")
        taken.append(policy.sequence_)
    assert taken == ["forward", "group_lasso"]

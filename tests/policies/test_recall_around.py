"""A target recall around a policy that stops by its rule: as if the policy had it itself."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    ParquetTable,
    PlanningClassifier,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.card import model_card
from adacos.exceptions import InvalidInputError, NotCertifiableError, UnusedCostWarning
from adacos.policies.estimates import estimate_costs
from adacos.policies.recall_choices import recall_choices
from tests.policy_checks import check_parameters_of_the_fit, same

pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common", "random_state": 3}
OF_TWO = Costs([1.0, 2.0, 4.0], false_positive=20)
BOTH = Costs([1.0, 2.0, 4.0], false_positive=20, false_negative=60)
OF_THREE = Costs(
    [1.0, 2.0, 4.0], misclassification=[[0.0, 20.0, 30.0], [25.0, 0.0, 45.0], [40.0, 15.0, 0.0]]
)
CERTIFIED = {"recall_confidence": 0.8, "on_uncertifiable": "largest"}
KINDS = [AdaCOSClassifier, BranchingClassifier, COSClassifier, FullModelClassifier]
FOUND = (
    "threshold_",
    "false_negative_cost_",
    "surcharges_",
    "recall_estimate_",
    "certificate_",
    "always_positive_",
    "classes_",
    "feature_names_in_",
)


def rows(n_classes: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three numbers of which each tells a little of the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + np.eye(3)[y] * [1.0, 1.5, 2.0], y


def alike(around: Any, own: Any, X: np.ndarray) -> None:
    """Both decide the same bit for bit, and say the same of it."""
    same(around.acquire(X), own.acquire(X))
    for name in FOUND:
        np.testing.assert_equal(getattr(around, name, None), getattr(own, name, None))
    each = [policy.consultation().next() for policy in (around, own)]
    assert str(each[0]) == str(each[1])
    assert str(each[0].explanation) == str(each[1].explanation)
    cards = [model_card(policy) for policy in (around, own)]
    assert cards[0].pop("wraps") == cards[1]["policy"]
    assert cards[1].pop("wraps") is None
    cards[0]["policy"] = cards[1]["policy"]
    assert cards[0] == cards[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"recall_at": "every_set"}, CERTIFIED], ids=str)
def test_of_two_classes_it_decides_as_the_policy_with_the_recall(
    kind: Any, options: Any, tmp_path: Any
) -> None:
    X, y = rows(2, 300, 0)
    own = kind(OF_TWO, target_recall=0.85, **options, **QUICK).fit(X, y)
    inner = kind(OF_TWO, **QUICK)
    around = TargetRecallClassifier(inner, target_recall=0.85, **options).fit(X, y)
    alike(around, own, rows(2, 200, 1)[0])
    assert inner.recall_aim.target_recall is None
    save(around, tmp_path / "m")
    alike(load(tmp_path / "m"), own, X)
    for policy in (around, own):
        policy.calibrate(*rows(2, 200, 2), target_recall=0.6, confidence=0.8)
    alike(around, own, X)
    assert around.certificate_.recall == 0.6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, CERTIFIED], ids=str)
def test_of_three_classes_it_decides_as_the_policy_with_the_recalls(
    kind: Any, options: Any
) -> None:
    (X, y), wanted = rows(3, 300, 0), {2: 0.8, 1: 0.6}
    own = kind(OF_THREE, target_recall=wanted, **options, **QUICK).fit(X, y)
    around = TargetRecallClassifier(kind(OF_THREE, **QUICK), target_recall=wanted, **options).fit(
        X, y
    )
    alike(around, own, rows(3, 200, 1)[0])
    for policy in (around, own):
        policy.calibrate(*rows(3, 300, 2), target_recall={2: 0.5}, confidence=0.8)
    alike(around, own, X)


def test_rows_stop_by_the_recall() -> None:
    """A higher recall is worth more covariates; the answers alone would acquire the same."""
    (X, y), wanted = rows(3, 300, 0), {2: 0.95}
    inner = AdaCOSClassifier(OF_THREE, **QUICK)
    around = TargetRecallClassifier(inner, target_recall=wanted).fit(X, y)
    assert around.acquire(X).cost.mean() != inner.fit(X, y).acquire(X).cost.mean()
    two = rows(2, 300, 0)
    cost = [
        TargetRecallClassifier(AdaCOSClassifier(OF_TWO, **QUICK), target_recall=recall)
        .fit(*two)
        .acquire(two[0])
        .cost.mean()
        for recall in (0.6, 0.99)
    ]
    assert cost[0] != cost[1]


def test_with_a_mean_budget_it_decides_as_the_policy_with_the_recall() -> None:
    X, y = rows(2, 300, 0)
    own = AdaCOSClassifier(OF_TWO, target_recall=0.8, mean_budget=2.0, **QUICK).fit(X, y)
    inner = AdaCOSClassifier(OF_TWO, mean_budget=2.0, **QUICK)
    alike(TargetRecallClassifier(inner, target_recall=0.8).fit(X, y), own, X)


@pytest.mark.parametrize(
    ("costs", "n_classes", "options", "recalls"),
    [
        (BOTH, 2, {"sequence": "forward"}, {"target_recall": 0.9}),
        (BOTH, 2, {"mean_budget": 2.0}, {"target_recall": 0.9, **CERTIFIED}),
        (OF_THREE, 3, {"mean_budget": 2.0}, {"target_recall": {2: 0.8}}),
    ],
    ids=[
        "forward selection",
        "a certificate with a budget",
        "a recall by class with a budget",
    ],
)
def test_elsewhere_the_answers_alone_change(
    costs: Costs, n_classes: int, options: Any, recalls: Any
) -> None:
    X, y = rows(n_classes, 300, 0)
    inner = AdaCOSClassifier(costs, **options, **QUICK)
    around = TargetRecallClassifier(inner, **recalls).fit(X, y)
    np.testing.assert_array_equal(around.acquire(X).acquired, around.policy_.acquire(X).acquired)
    assert model_card(around)["wraps"] == "AdaCOSClassifier"
    with pytest.raises(InvalidInputError, match="recall_at: must be 'stop' where"):
        clone(around).set_params(recall_at="every_set").fit(X, y)


def test_a_fit_leaves_nothing_of_another() -> None:
    """With a mean budget and a certificate the answers alone change; without the budget not."""
    X, y = rows(2, 300, 0)
    inner = AdaCOSClassifier(BOTH, mean_budget=2.0, **QUICK)
    around = TargetRecallClassifier(inner, target_recall=0.8, **CERTIFIED).fit(X, y)
    assert around.prior_ is not None
    around.set_params(policy__costs=OF_TWO, policy__mean_budget=None).fit(X, y)
    fresh = TargetRecallClassifier(
        AdaCOSClassifier(OF_TWO, **QUICK), target_recall=0.8, **CERTIFIED
    )
    assert set(vars(around)) == set(vars(fresh.fit(X, y)))
    same(around.acquire(X), fresh.acquire(X))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stated_false_negative_cost_is_not_used_and_this_is_said(
    kind: Any, tmp_path: Any
) -> None:
    X, y = rows(2, 300, 0)
    around = TargetRecallClassifier(kind(BOTH, **QUICK), target_recall=0.85)
    with pytest.warns(UnusedCostWarning, match="cost of 60 is not used: the target recall takes"):
        around.fit(X, y)
    without = TargetRecallClassifier(kind(OF_TWO, **QUICK), target_recall=0.85).fit(X, y)
    same(around.acquire(X), without.acquire(X))
    assert model_card(around)["false_negative_implied"]
    assert around.costs == OF_TWO
    assert around.policy.costs == BOTH
    save(around, tmp_path / "m")
    same(load(tmp_path / "m").acquire(X), without.acquire(X))


def test_whoever_acquires_by_both_costs_keeps_both() -> None:
    """Planning and the like stop by their costs, so that a stated cost is used."""
    X, y = rows(2, 200, 0)
    around = TargetRecallClassifier(PlanningClassifier(BOTH), target_recall=0.8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedCostWarning)
        around.fit(X, y)
    assert around.costs == BOTH


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("costs", "recall"), [(OF_TWO, 0.8), (OF_THREE, {2: 0.8})])
def test_it_is_stated_to_cost_what_the_policy_costs(
    costs: Costs, recall: Any, nested: bool
) -> None:
    X, y = rows(len(costs.matrix), 200, 0)
    own = AdaCOSClassifier(costs, target_recall=recall, **QUICK).fit(X, y)
    around = TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK), target_recall=recall)
    for policy in (own, around.fit(X, y)):
        estimate_costs(policy, X, y, nested=nested)
    assert around.cost_estimates_ == own.cost_estimates_
    assert around.misfit_ == own.misfit_
    assert around.misfit_states_ == own.misfit_states_
    assert [*map(str, around.check(X, y))] == [*map(str, own.check(X, y))]


@pytest.mark.parametrize("options", [{}, {"mean_budget": 2.0}], ids=str)
def test_it_learns_from_a_table_in_files(options: Any, tmp_path: Any) -> None:
    X, y = rows(2, 300, 0)
    pd.DataFrame(X, columns=[*"abc"]).assign(y=y).to_parquet(tmp_path / "t.parquet")
    table = ParquetTable(tmp_path / "t.parquet")
    own = AdaCOSClassifier(OF_TWO, target_recall=0.8, **options, **QUICK).fit(table, "y")
    inner = AdaCOSClassifier(OF_TWO, **options, **QUICK)
    alike(
        TargetRecallClassifier(inner, target_recall=0.8).fit(table, "y"),
        own,
        pd.DataFrame(X, columns=[*"abc"]),
    )


def test_choosing_a_recall_leaves_the_policy_as_it_is() -> None:
    X, y = rows(2, 300, 0)
    around = TargetRecallClassifier(AdaCOSClassifier(OF_TWO, **QUICK), target_recall=0.8).fit(X, y)
    before, inside = around.acquire(X), around.policy_
    recall_choices(around, *rows(2, 300, 1), recalls=[0.7, 0.999])
    same(around.acquire(X), before)
    assert around.policy_ is inside
    assert inside.certificate_ is None
    assert inside.recall_aim.on_uncertifiable == "error"


def test_a_recall_is_given_once() -> None:
    X, y = rows(2, 100, 0)
    with pytest.raises(InvalidInputError, match="policy: must have no target recall of its own"):
        TargetRecallClassifier(AdaCOSClassifier(OF_TWO, target_recall=0.8)).fit(X, y)


def test_where_all_rows_stop_alike_nobody_is_answered_negative_for_want_of_a_proof() -> None:
    """No threshold divides the rows, and one above them all would miss every positive."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), (rng.random(400) < 0.3).astype(int)
    costs = Costs([50.0, 50.0], false_positive=1, false_negative=10)
    for outcome in ("largest", "error"):
        policy = TargetRecallClassifier(
            PlanningClassifier(costs),
            target_recall=0.85,
            recall_confidence=0.9,
            on_uncertifiable=outcome,
        ).fit(X, y)
        assert policy.predict(X).all()
        assert policy.certificate_.recall >= 0.85


def test_more_rows_are_not_asked_for_where_they_could_not_help() -> None:
    error = NotCertifiableError(0.9, 0.9, 200, 60, 0.6, 900)
    assert "more rows like these would not prove it" in str(error)
    assert "Add calibration rows" not in str(error)
    assert "needs at least 230 positives" in str(NotCertifiableError(0.99, 0.9, 134, 2, 0.9, 230))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_aim_that_was_reached_is_that_of_the_fit(n_classes: int, tmp_path: Path) -> None:
    """Not what `set_params` asks for afterwards, which no file takes; `calibrate` reaches it."""
    X, y = rows(n_classes, 900, seed=4)
    costs, target = (OF_TWO, 0.9) if n_classes == 2 else (OF_THREE, {2: 0.8})
    for kind, own in ((AdaCOSClassifier, costs), (PlanningClassifier, BOTH)):
        own = own if n_classes == 2 else OF_THREE
        inner = kind(own, **QUICK) if kind is AdaCOSClassifier else kind(own)
        policy = TargetRecallClassifier(inner, target_recall=target).fit(X[:400], y[:400])
        check_parameters_of_the_fit(policy, X[400:])
        asked = 0.7 if n_classes == 2 else {2: 0.6}
        policy.calibrate(X[400:], y[400:], target_recall=asked, confidence=0.8)
        card = model_card(policy)
        assert card["target_recall"] == (0.7 if n_classes == 2 else {"2": 0.6})
        save(policy, tmp_path / "model.adacos")
        assert json.dumps(model_card(load(tmp_path / "model.adacos"))) == json.dumps(card)
        # A parameter that is set for the purpose is asked for like an argument.
        policy.set_params(target_recall=target).calibrate(X[400:], y[400:], confidence=0.8)
        assert model_card(policy)["target_recall"] == (0.9 if n_classes == 2 else {"2": 0.8})
        save(policy, tmp_path / "model.adacos")

"""Branches and the choice of a policy with three classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adacos import AutoPolicyClassifier, BranchingClassifier, Costs, load, save
from adacos.card import model_card
from adacos.kernels.multinomial import contrasts, to_reference
from adacos.metrics import total_cost
from adacos.models.quick import central_fit
from adacos.policies.many_classes import max_error_cost
from adacos.report import figures, write_report
from tests.policy_checks import check_consultation, check_policy

# The ward says which of two tests holds the class. Asking it and the right test costs 4 and is
# never wrong; in one order for everybody one needs all three, for 7.
COSTS = Costs({"ward": 1.0, "blood": 3.0, "urine": 3.0}, misclassification=20 * (1 - np.eye(3)))
OPTIMUM = 4.0
QUICK = {"cv": 3, "strengths": "common"}


def table(n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    ward = rng.choice(["east", "west"], size=n)
    blood, urine = rng.choice(["high", "low", "none"], size=(2, n))
    y = np.where(ward == "east", blood, urine)
    return pd.DataFrame({"ward": ward, "blood": blood, "urine": urine}), y


@pytest.fixture(scope="module")
def policy() -> BranchingClassifier:
    return BranchingClassifier(COSTS, **QUICK).fit(*table())


def test_it_reaches_the_optimum_that_no_order_reaches(policy: BranchingClassifier) -> None:
    X, y = table(400, seed=1)
    result = policy.acquire(X)
    assert total_cost(result, y, COSTS) == OPTIMUM
    at_blood = (X["ward"] == "east").to_numpy()
    np.testing.assert_array_equal(result.acquired[:, 1], at_blood)
    np.testing.assert_array_equal(result.acquired[:, 2], ~at_blood)
    # Without the question a row would pay for all three, or be wrong.
    assert policy.nodes_[0].gain > 1.0


def test_a_ceiling_is_kept_on_the_way() -> None:
    X, y = table(100, seed=3)
    rich = BranchingClassifier(COSTS, budget=OPTIMUM, **QUICK).fit(*table(160))
    assert total_cost(rich.acquire(X), y, COSTS) == OPTIMUM
    poor = BranchingClassifier(COSTS, budget=3.5, **QUICK).fit(*table(160)).acquire(X)
    assert poor.cost.max() <= 3.5


def test_contract_and_consultation() -> None:
    X, y = table(90)
    X = X.mask(np.random.default_rng(2).random(X.shape) < 0.05)
    check_policy(BranchingClassifier(COSTS, **QUICK, max_depth=1), X, y)
    fitted = BranchingClassifier(COSTS, **QUICK, max_depth=1).fit(X, y)
    assert not fitted.in_one_order
    check_consultation(fitted, X.head(8))
    step = fitted.consultation().next()
    assert step.covariates == ("ward",)
    assert "In cross-validation each cost" in step.explanation.because
    assert sum(step.explanation.probabilities.values()) == pytest.approx(1.0)


def test_the_tree_counts_every_answer(
    policy: BranchingClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    for place in policy.tree_.places:
        assert sum(place.answers) == pytest.approx(1.0)
    east = next(p for p in policy.tree_.places if p.condition == "ward = east")
    own = y[X["ward"] == "east"]
    assert east.answers == pytest.approx([np.mean(own == name) for name in policy.classes_])
    card = model_card(policy)
    assert "none: " in card["tree"]["text"]
    assert "positive" not in card["tree"]["places"][0]
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "_svg", lambda figure: b"")
    reported = write_report(policy, X, y, tmp_path / "r.html", "Report")
    assert reported["recall"] == {"high": 1.0, "low": 1.0, "none": 1.0}


@pytest.mark.parametrize(("title", "budget"), [("Branching", 1000.0), ("Planning", None)])
def test_auto_chooses_it(title: str, budget: float | None, tmp_path: Path) -> None:
    """A fourth class has a single row, which stays in every fit; budgets rule Planning out."""
    X, y = table(120)
    y = np.where(np.arange(len(y)) == 5, "odd", y)
    costs = COSTS.with_misclassification(20 * (1 - np.eye(4)))
    chosen = AutoPolicyClassifier(costs, budget=budget, **QUICK).fit(X, y)
    assert chosen.choice_ == title
    cheapest = min(chosen.compared_, key=lambda item: item.cost)
    assert cheapest.title == title
    save(chosen, tmp_path / "model.adacos")
    again = load(tmp_path / "model.adacos").acquire(X)
    np.testing.assert_array_equal(again.label, chosen.acquire(X).label)


def test_the_quick_fit_is_at_its_optimum() -> None:
    """Residuals balance the penalty, and probabilities those of the coefficients."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(90), rng.normal(size=(90, 2))])
    y, weight = rng.integers(0, 3, 90).astype(float), rng.uniform(0.5, 2, 90)
    penalty = np.array([0.0, 2.0, 3.0])
    coef, residual = central_fit(design, y, weight, penalty, np.zeros((2, 3)))
    np.testing.assert_allclose(residual @ design, penalty * coef, atol=2e-2)
    log_odds = design @ to_reference(coef, contrasts(3)).T
    odds = np.column_stack([np.ones(90), np.exp(log_odds)])
    p = odds / odds.sum(axis=1, keepdims=True)
    expected = (weight[:, None] * (np.eye(3)[y.astype(int)] - p)) @ contrasts(3)
    np.testing.assert_allclose(residual.T, expected, atol=1e-9)


def test_the_most_expensive_error_of_many_classes_is_a_mean_over_rows() -> None:
    matrix = np.array([[0.0, 5.0, 9.0], [2.0, 0.0, 1.0], [1000.0, 800.0, 0.0]])
    y = np.array([0.0, 0.0, 1.0, 2.0])
    assert max_error_cost(matrix, y) == (9 + 9 + 2 + 1000) / 4
    assert max_error_cost(matrix[:2, :2], y[:3]) == 5.0

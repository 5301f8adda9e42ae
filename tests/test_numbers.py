"""Numbers at the edge: refused by name and bound, or answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    LogisticGAM,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.decision import DecisionRule
from adacos.exceptions import InvalidInputError
from adacos.kernels.bayes_risk import decision_threshold, label_of
from adacos.kernels.class_risk import label_at
from adacos.tables.columns import ColumnTable
from adacos.validation import LARGEST_COST, SMALLEST_COST

QUICK: dict[str, Any] = {"cv": 2, "strengths": "common", "n_splines": 4}
OVER_SEQUENCES = (AdaCOSClassifier, COSClassifier, FullModelClassifier, BranchingClassifier)
THREE = 10 * (1 - np.eye(3))
LONG, LONGER = pytest.param(10**400, id="long"), pytest.param(10**5000, id="longer")


def rows(n_classes: int = 2, n: int = 90) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + rng.normal(size=n) / 2, np.linspace(-0.5, 0.5, n_classes - 1))
    return X, y


@pytest.mark.parametrize("cls", OVER_SEQUENCES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_that_hold_constants_only(cls: Any, n_classes: int, tmp_path: Path) -> None:
    _, y = rows(n_classes)
    costs = Costs([1.0, 2.0], misclassification=THREE[:n_classes, :n_classes])
    policy = cls(costs, **QUICK).fit(np.ones((90, 2)), y)
    save(policy, tmp_path / "m.adacos")
    probability = load(tmp_path / "m.adacos").predict_proba([[1.0, 1.0], [1.0, np.nan]])
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(probability, [shares, shares], atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_useless_category_alone_in_branching(n_classes: int) -> None:
    _, y = rows(n_classes)
    table = ColumnTable({"useless": np.random.default_rng(1).choice(list("abc"), 90)})
    costs = Costs({"useless": 0.0}, misclassification=THREE[:n_classes, :n_classes])
    policy = BranchingClassifier(costs, **QUICK).fit(table, y)
    assert [node.split for node in policy.nodes_] == [None]
    assert np.isfinite(policy.acquire(table).expected_cost).all()


@pytest.mark.parametrize("cls", OVER_SEQUENCES)
@pytest.mark.parametrize("recall", [1e-300, 1e-12, 1e-9])
def test_recalls_so_small_that_no_row_is_needed(cls: Any, recall: float) -> None:
    X, y = rows()
    costs = Costs([1.0, 2.0], false_positive=3.0)
    result = TargetRecallClassifier(cls(costs, **QUICK), target_recall=recall).fit(X, y).acquire(X)
    assert np.isfinite(result.expected_cost).all()


@pytest.mark.parametrize("weight", [1e13, 1e150, 1e300, 1e-3, 1e-300, LONG])
def test_weights_beyond_their_bounds(weight: Any) -> None:
    X, y = rows()
    with pytest.raises(InvalidInputError, match=r"sample_weight: .* at most 1e\+12 .* 0\.5 at"):
        AdaCOSClassifier(Costs([1.0, 2.0]), **QUICK).fit(X, y, sample_weight=[weight] * len(y))


@pytest.mark.parametrize(
    ("first", "reported"),
    [
        (np.inf, "inf for row 0"),
        (np.nan, "nan for row 0"),
        (None, "nan for row 0"),
        ("twice", "could not convert string to float: 'twice'"),
        (1j, "not 'complex'"),
        ([1.0], "inhomogeneous"),
    ],
)
def test_weights_that_are_no_finite_numbers(first: Any, reported: str) -> None:
    X, y = rows()
    message = (
        rf"sample_weight: must be {len(y)} finite numbers, one for each row; received .*{reported}"
    )
    weight = [first, *[1.0] * (len(y) - 1)]
    for estimator in (AdaCOSClassifier(Costs([1.0, 2.0]), **QUICK), LogisticGAM()):
        with pytest.raises(InvalidInputError, match=message):
            estimator.fit(X, y, sample_weight=weight)


def test_weights_of_other_shapes() -> None:
    X, y = rows()
    for weight, shape in (([1.0], r"\(1,\)"), (np.ones((len(y), 1)), rf"\({len(y)}, 1\)")):
        with pytest.raises(InvalidInputError, match=f"sample_weight: .* of shape {shape}"):
            LogisticGAM().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("weight", [1e12, 1.0, 1 / 90])
def test_weights_within_their_bounds(weight: float) -> None:
    X, y = rows()
    policy = AdaCOSClassifier(Costs([1.0, 2.0]), **QUICK)
    result = policy.fit(X, y, sample_weight=np.full(len(y), weight)).acquire(X)
    assert np.isfinite(result.expected_cost).all()


@pytest.mark.parametrize("amount", [1e51, 1e300, -1e51, 1e-51, LONG, LONGER])
@pytest.mark.parametrize(
    "made",
    [
        lambda amount: Costs({"a": amount}),
        lambda amount: Costs([amount]),
        lambda amount: Costs(false_positive=amount),
        lambda amount: Costs(misclassification=[[0, amount], [1, 0]]),
        lambda amount: Costs([1, 1], panels={"p": (amount, [0, 1])}),
        lambda amount: Costs([1, 1], panels={"p": {0: amount, 1: 1}}),
        lambda amount: Costs(round_cost=amount),
    ],
)
def test_costs_beyond_their_bounds(made: Any, amount: Any) -> None:
    with pytest.raises(InvalidInputError):
        made(amount)


@pytest.mark.parametrize("cls", OVER_SEQUENCES)
@pytest.mark.parametrize("amounts", [[LARGEST_COST, SMALLEST_COST], [SMALLEST_COST] * 2])
def test_costs_within_their_bounds(cls: Any, amounts: list[float]) -> None:
    X, y = rows()
    costs = Costs(amounts, false_positive=amounts[0], false_negative=amounts[0])
    result = cls(costs, **QUICK).fit(X, y).acquire(X)
    assert np.isfinite(result.expected_cost).all()
    assert np.isfinite(result.cost).all()


def test_equal_costs_are_decided_alike_however_they_were_rounded() -> None:
    """Of equal labels the last, also where a sum differs in its last digits."""
    rounded = np.array([0.35, 0.35 * (1 - 1e-15), 0.35 * (1 + 1e-15)])
    probability = np.column_stack([rounded, np.full(3, 0.35), np.full(3, 0.3)])
    for matrix in (THREE, THREE - 50 * np.eye(3)):
        assert label_at(probability, matrix).tolist() == [1, 1, 1]
    assert label_at(np.array([0.35 + 1e-6, 0.35 - 1e-6, 0.3]), THREE) == 0
    matrix = [[0.0, 3.0], [7.0, 0.0]]
    threshold = decision_threshold(matrix)
    near = threshold * np.array([1 - 1e-15, 1.0, 1 + 1e-15])
    assert label_of(near, matrix).tolist() == [1, 1, 1]
    assert label_of(threshold - 1e-6, matrix) == 0
    for share in (1e-20, 0.2, 1 - 1e-12):
        rule = DecisionRule(np.array(matrix), share)
        at = np.log(share) - np.log1p(-share)
        assert rule.label(at + np.array([-1e-14, 0.0, 1e-14]) * abs(at)).tolist() == [1, 1, 1]
        assert rule.label(np.array([at - 1e-3])).tolist() == [0]


def test_a_value_beyond_floats_is_refused() -> None:
    X, y = rows()
    policy = COSClassifier(Costs([1.0, 2.0]), **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match="x0: needs a finite number"):
        policy.consultation({"x0": 10**400})
    with pytest.raises(InvalidInputError, match="budget: must be a finite number"):
        COSClassifier(Costs([1.0, 2.0]), budget=10**400, **QUICK).fit(X, y)


def test_very_many_classes_are_refused_by_size() -> None:
    X = np.random.default_rng(0).normal(size=(300, 8))
    costs = Costs(np.ones(8), misclassification=1 - np.eye(60))
    with pytest.raises(InvalidInputError, match=r"y: classes less one, times .* at most 2,000"):
        AdaCOSClassifier(costs, **{**QUICK, "n_splines": 10}).fit(X, np.arange(300) % 60)

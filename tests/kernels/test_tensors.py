"""Rows given as torch tensors: the same decisions and the same fit, from the same kernels.

Tensors of the processor stand for those of a GPU, which `python -m benchmarks.gpu` compares.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
)
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.models import large_fits

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")

PRICES = [1.0, 2.0, 0.0, 3.0, 1.0]
COSTS = Costs(PRICES, false_positive=10, false_negative=30)
QUICK: dict[str, Any] = {"strengths": "common", "n_splines": 5, "cv": 3}


def draw_rows(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in curves, a whole number, a truth value and one that never changes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 5))
    X[:, 2], X[:, 3], X[:, 4] = np.round(X[:, 2]), X[:, 3] > 0, 7.0
    log_odds = np.sin(2 * X[:, 0]) + X[:, 1] + X[:, 3] - 1
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


def same(tensors: AcquisitionResult, arrays: AcquisitionResult) -> None:
    for name in (f.name for f in fields(AcquisitionResult) if f.name != "names"):
        own, other = getattr(tensors, name), getattr(arrays, name)
        assert isinstance(own, torch.Tensor)
        np.testing.assert_allclose(own.numpy(), other, rtol=0, atol=1e-12, err_msg=name)
        if name in ("label", "acquired", "order", "stage"):
            np.testing.assert_array_equal(own.numpy(), other, err_msg=name)


@pytest.fixture(scope="module")
def fitted() -> AdaCOSClassifier:
    return AdaCOSClassifier(COSTS, **QUICK).fit(*draw_rows())


@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier, FullModelClassifier])
def test_decisions_are_those_of_numpy(kind: Any, fitted: AdaCOSClassifier) -> None:
    X, policy = draw_rows(1000)[0], kind(COSTS, **QUICK).from_model(fitted)
    rows = torch.from_numpy(X)
    assert policy.decider_.takes_tensors
    same(policy.acquire(rows), policy.acquire(X))
    same(policy.acquire(rows.float()), policy.acquire(X.astype(np.float32)))
    np.testing.assert_array_equal(policy.predict(rows).numpy(), policy.predict(X))
    np.testing.assert_allclose(policy.predict_proba(rows).numpy(), policy.predict_proba(X))
    known = np.array([False, True, False, False, False])
    same(policy.acquire(rows, known=torch.from_numpy(known)), policy.acquire(X, known=known))
    same(policy.acquire(rows[:1]), policy.acquire(X[:1]))


def test_rows_walk_in_pieces(fitted: AdaCOSClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    X = draw_rows(1000)[0]
    monkeypatch.setattr("adacos.engine.TENSOR_VALUES_AT_ONCE", 5 * 64)
    same(fitted.acquire(torch.from_numpy(X)), fitted.acquire(X))


def test_rows_that_miss_something_are_answered_too(fitted: AdaCOSClassifier) -> None:
    X = draw_rows(200)[0]
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    same(fitted.acquire(torch.from_numpy(X)), fitted.acquire(X))


@pytest.mark.parametrize(
    "policy",
    [
        AdaCOSClassifier(COSTS, lookahead="coherent", **QUICK),
        AdaCOSClassifier(COSTS, budget=3.0, **QUICK),
        AdaCOSClassifier(Costs(PRICES, false_positive=9, false_negative=9, round_cost=1), **QUICK),
        BranchingClassifier(COSTS, **QUICK),
    ],
)
def test_what_walks_in_numpy_answers_in_tensors(policy: Any) -> None:
    X, y = draw_rows()
    policy.fit(torch.from_numpy(X), torch.from_numpy(y))
    same(policy.acquire(torch.from_numpy(X)), policy.acquire(X))


def test_panels_and_a_recall_by_threshold() -> None:
    X, y = draw_rows()
    panels = {"blood": (1.0, ["x0", "x1", "x3"])}
    names = {f"x{k}": price for k, price in enumerate(PRICES)}
    costs = Costs(names | {"x0": 2.0}, false_positive=10, false_negative=30, panels=panels)
    for policy in (
        AdaCOSClassifier(costs, **QUICK),
        TargetRecallClassifier(
            AdaCOSClassifier(Costs(PRICES, false_positive=10), **QUICK), target_recall=0.9
        ),
    ):
        policy.fit(X, y)
        same(policy.acquire(torch.from_numpy(X)), policy.acquire(X))


def test_categories_and_words() -> None:
    import pandas as pd

    X, y = draw_rows()
    kinds = np.where(X[:, 0] > 0.5, "2.0", np.where(X[:, 0] > 0, "1.0", "0.0"))
    table = pd.DataFrame({"kind": kinds, "x": X[:, 1]})
    costs = Costs([1.0, 2.0], false_positive=10, false_negative=10)
    policy = AdaCOSClassifier(costs, **QUICK).fit(table, np.array(["ill", "well"])[y])
    numbers = np.column_stack([kinds.astype(float), X[:, 1]])
    result = policy.acquire(torch.from_numpy(numbers))
    other = policy.acquire(table)
    np.testing.assert_array_equal(result.label, other.label)
    np.testing.assert_allclose(result.probability.numpy(), other.probability, atol=1e-12)
    assert list(result.to_frame().columns) == list(other.to_frame().columns)


def test_a_tensor_of_another_shape_is_refused(fitted: AdaCOSClassifier) -> None:
    for wrong in (torch.zeros(3, 4), torch.zeros(5), torch.zeros(0, 5)):
        with pytest.raises(InvalidInputError, match="a column for each of 5 covariates"):
            fitted.acquire(wrong)
    with pytest.raises(InvalidInputError, match="infinite"):
        fitted.acquire(torch.full((2, 5), torch.inf))


@pytest.mark.parametrize("strengths", ["auto", "common"])
def test_a_fit_on_very_many_rows(strengths: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 1000)
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 800)
    monkeypatch.setattr("adacos.kernels.binned.TENSOR_ROWS_AT_ONCE", 300)
    X, y = draw_rows(3000)
    settings = QUICK | {"strengths": strengths}
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    for given in ({}, {"sample_weight": weight}):
        one = AdaCOSClassifier(COSTS, **settings).fit(X, y, **given).model_
        rows = torch.from_numpy(X), torch.from_numpy(y)
        other = AdaCOSClassifier(COSTS, **settings).fit(*rows, **given).model_
        np.testing.assert_array_equal(one.sequence.order, other.sequence.order)
        for name in ("intercepts", "coefs", "out_of_fold_log_odds", "moments"):
            own = getattr(other, name)
            assert isinstance(own, np.ndarray)
            np.testing.assert_allclose(own, getattr(one, name), rtol=1e-8, atol=1e-8)

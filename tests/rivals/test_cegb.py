"""CEGB: what every policy promises, and that its copied trees are LightGBM's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import Costs, load_pima, save
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.rivals import CEGBClassifier
from adacos.rivals.cegb import forest_of, train_lightgbm
from adacos.rivals.trees import NEVER
from tests.rivals.problems import MIXED_COSTS, mixed_table

pytest.importorskip("lightgbm")

SMALL = {"n_trees": 8, "n_tradeoffs": 3, "cv": 3}


def trained(X: Any, y: Any, **parameters: Any) -> Any:
    given = {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    return train_lightgbm(X, y, given | parameters, 40)


@pytest.mark.parametrize("missing_in_training", [True, False])
@pytest.mark.parametrize("max_depth", [-1, 1, 4])
def test_copied_trees_predict_as_lightgbm(missing_in_training: bool, max_depth: int) -> None:
    X, y, *_ = load_pima(as_frame=False)
    rng = np.random.default_rng(0)
    # Thresholds on both sides of zero, where LightGBM puts unknown values of complete columns.
    X = X - np.median(X, axis=0) * rng.integers(0, 2, X.shape[1])
    incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    incomplete[:5] = np.nan
    train = np.where(np.arange(8) % 2, incomplete, X) if missing_in_training else X
    booster = trained(train, y, max_depth=max_depth, cegb_penalty_feature_lazy=[1e-3] * 8)
    forest = forest_of(booster, np.arange(8))
    for table in (X, incomplete, np.zeros_like(X), -X):
        values, _ = forest.walk(table)
        expected = booster.predict(table, raw_score=True)
        np.testing.assert_allclose(values.sum(axis=1), expected, rtol=0, atol=1e-10)


def test_rows_pay_for_the_paths_that_lightgbm_takes() -> None:
    X, y, *_ = load_pima(as_frame=False)
    booster = trained(X, y, max_depth=3, cegb_penalty_feature_lazy=[5e-3] * 8)
    _, first_use = forest_of(booster, np.arange(8)).walk(X)
    leaves = booster.predict(X, pred_leaf=True)
    used = np.zeros_like(X, dtype=bool)

    def descend(node: dict[str, Any], path: set[int], tree: int) -> None:
        if "leaf_value" in node:
            rows = leaves[:, tree] == node.get("leaf_index", 0)
            used[np.ix_(rows, sorted(path))] = True
            return
        for child in ("left_child", "right_child"):
            descend(node[child], path | {node["split_feature"]}, tree)

    for number, tree in enumerate(booster.dump_model()["tree_info"]):
        descend(tree["tree_structure"], set(), number)
    np.testing.assert_array_equal(first_use < NEVER, used)
    assert not used.all()


def test_probability_is_lightgbms_and_the_label_its_bayes_decision() -> None:
    X, y, *_ = load_pima(as_frame=False)
    positives = []
    for false_negative in (20.0, 100.0, 500.0):
        costs = Costs([1.0] * 8, false_positive=100, false_negative=false_negative)
        policy = CEGBClassifier(costs, **SMALL).fit(X, y)
        p = policy.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(policy.predict(X), (p >= 100 / (100 + false_negative)) * 1)
        positives.append(policy.predict(X).mean())
    assert positives[0] < positives[1] < positives[2]


def test_expensive_covariates_are_not_acquired() -> None:
    X, y, *_ = load_pima(as_frame=False)
    expensive = CEGBClassifier(Costs([1e6] * 8, false_positive=10, false_negative=1), **SMALL).fit(
        X, y
    )
    assert expensive.acquire(X).cost.max() == 0
    np.testing.assert_allclose(expensive.predict_proba(X)[:, 1], y.mean(), atol=1e-6)
    costs = Costs([1.0] * 4 + [1e6] * 4, false_positive=100, false_negative=100)
    mixed = CEGBClassifier(costs, **SMALL).fit(X, y)
    assert not mixed.acquire(X).acquired[:, 4:].any()
    assert mixed.acquire(X).acquired[:, :4].any()


def test_a_saved_model_needs_no_lightgbm(tmp_path: Path) -> None:
    X, y = mixed_table()
    policy = CEGBClassifier(MIXED_COSTS, **SMALL).fit(X, y)
    save(policy, tmp_path / "model.adacos")
    X.to_pickle(tmp_path / "rows.pkl")
    program = (
        "import sys; sys.modules['lightgbm'] = None\n"
        "import adacos, pandas\n"
        "X = pandas.read_pickle(sys.argv[2])\n"
        "print(adacos.load(sys.argv[1]).predict_proba(X)[:, 1].sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "model.adacos", tmp_path / "rows.pkl"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) == pytest.approx(policy.predict_proba(X)[:, 1].sum(), rel=1e-12)


def test_without_lightgbm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    X, y = mixed_table(40)
    with pytest.raises(MissingExtraError, match=r"\.\[rivals\]"):
        CEGBClassifier(MIXED_COSTS, **SMALL).fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("depth", 0),
        ("learning_rate", 0.0),
        ("n_trees", 0),
        ("n_tradeoffs", 0),
        ("min_rows", 0),
        ("cv", 1),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(parameter: str, value: Any) -> None:
    X, y = mixed_table(40)
    with pytest.raises(InvalidInputError, match=parameter):
        CEGBClassifier(MIXED_COSTS, **{parameter: value}).fit(X, y)

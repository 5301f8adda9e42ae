"""STreeD: the solver's trees against all trees there are, and what every policy promises."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import Costs, load_pima, save
from adacos.exceptions import MissingExtraError
from adacos.kernels.class_risk import class_label
from adacos.rivals import STreeDClassifier
from adacos.rivals.streed import answers, ask_about, grow
from adacos.rivals.trees import NEVER
from tests.rivals.problems import MIXED_COSTS, mixed_table

pytest.importorskip("pystreed")


def cheapest_tree(
    X: Any, y: Any, source: Any, costs: Any, depth: int, path: tuple[int, ...] = ()
) -> float:
    """Least sum of total costs of any tree over these rows, by trying every one."""
    counts = np.bincount(y.astype(int), minlength=len(costs.matrix))
    best = float((counts @ costs.matrix).min())
    if depth == 0 or len(y) == 0:
        return best
    have = np.isin(np.arange(len(costs.names)), path)
    price = np.where(have, 0.0, costs.of_next(have))
    for column, k in enumerate(source):
        below = X[:, column] == 0
        if below.any() and not below.all():
            split = sum(
                cheapest_tree(X[side], y[side], source, costs, depth - 1, (*path, k))
                for side in (below, ~below)
            )
            best = min(best, float(price[k]) * len(y) + split)
    return best


@pytest.mark.parametrize(("seed", "depth"), [*product(range(4), (1, 2, 3))])
def test_no_tree_is_cheaper(seed: int, depth: int) -> None:
    """A category of three levels, a panel whose members have their own discounts, gains."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, 120)
    X = np.column_stack([rng.integers(0, 2, (120, 4)), *(level == k for k in range(3))]) * 1.0
    source = np.array([0, 1, 2, 3, 4, 4, 4])
    score = X[:, 0] + 2 * X[:, 1] * X[:, 2] - X[:, 3] + level * X[:, 0]
    y = (score + rng.normal(size=120) > 0.8).astype(float)
    costs = Costs(
        [2.0, 3.0, 5.0, 0.0, 1.5],
        misclassification=[[-5, 30], [40, -10]],
        panels={"p": {0: 0.5, 1: 2.5, 2: 0.0}},
    ).bind([f"x{k}" for k in range(5)])
    found = grow(ask_about(X, source, 5), X, y, source, costs, depth, 1, 60.0)
    assert found.optimal
    log_odds, paid = answers(found.forest, X, costs)
    label = (log_odds >= np.log(35 / 50)).astype(int)
    total = paid.sum() + costs.matrix[y.astype(int), label].sum()
    assert total == pytest.approx(cheapest_tree(X, y, source, costs, depth), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_tree_of_three_classes_is_cheaper(seed: int) -> None:
    """The same with a third class, which in the last case does not occur."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (90, 5)) * 1.0
    source = np.array([0, 1, 2, 3, 3])
    score = X[:, 0] + 2 * X[:, 1] * X[:, 2] - X[:, 3] + rng.normal(size=90)
    y = np.digitize(score, [0.3, 1.5] if seed < 2 else [0.3]).astype(float)
    costs = Costs(
        [2.0, 3.0, 5.0, 1.5],
        misclassification=[[-5, 30, 20], [40, -10, 25], [90, 35, 0]],
        panels={"p": {0: 0.5, 1: 2.5, 2: 0.0}},
    ).bind([f"x{k}" for k in range(4)], 3)
    found = grow(ask_about(X, source, 5), X, y, source, costs, 2, 1, 60.0)
    assert found.optimal
    log_odds, paid = answers(found.forest, X, costs)
    assert log_odds.shape == (90, 2)
    label = class_label(log_odds, costs.matrix)
    total = paid.sum() + costs.matrix[y.astype(int), label].sum()
    assert total == pytest.approx(cheapest_tree(X, y, source, costs, 2), abs=1e-6)


def test_thresholds_are_quantiles_and_indicators() -> None:
    rng = np.random.default_rng(0)
    number = rng.normal(size=200)
    level = rng.integers(0, 3, 200)
    encoded = np.column_stack([number, *(level == k for k in range(3)), np.ones(200), level])
    encoded[:20, 0] = np.nan
    questions = ask_about(encoded, np.array([0, 1, 1, 1, 2, 3]), 3)
    assert questions.column.tolist() == [0, 0, 0, 1, 2, 3, 5, 5]
    shares = [np.mean(number[20:] > edge) for edge in questions.threshold[:3]]
    np.testing.assert_allclose(shares, [0.75, 0.5, 0.25], atol=0.01)
    assert questions.threshold[3:].tolist() == [0.5, 0.5, 0.5, 0.5, 1.5]
    answered = questions.answered(encoded)
    np.testing.assert_array_equal(answered[20:, 1], encoded[20:, 0] > questions.threshold[1])
    # What is unknown counts as the more frequent side.
    assert np.all(answered[:20, :3] == (np.array(shares) > 0.5))


def test_labels_and_paths_are_the_trees_own() -> None:
    """A row is answered by its leaf's cheapest label, and pays for its path and nothing else."""
    X, y, *_ = load_pima(as_frame=False)
    costs = Costs([1.0] * 8, false_positive=40, false_negative=100)
    policy = STreeDClassifier(costs, max_depth=2, cv=2).fit(X, y)
    assert policy.optimal_
    assert policy.depth_ <= 2
    _, first_use = policy.forest_.walk(policy._encode(X))
    result = policy.acquire(X)
    np.testing.assert_array_equal(result.acquired, first_use < NEVER)
    assert policy.cv_cost_[policy.depth_, policy.min_rows_] == min(policy.cv_cost_.values())
    for leaf in np.unique(result.probability):
        rows = result.probability == leaf
        counts = np.array([np.sum(y[rows] == 0), np.sum(y[rows] == 1)])
        assert np.all(result.label[rows] == np.argmin(counts @ policy.cost_table_.matrix))


def test_expensive_covariates_are_not_acquired() -> None:
    X, y, *_ = load_pima(as_frame=False)
    expensive = STreeDClassifier(
        Costs([1e6] * 8, false_positive=10, false_negative=1), max_depth=2, cv=2
    ).fit(X, y)
    assert expensive.acquire(X).cost.max() == 0
    np.testing.assert_allclose(expensive.predict_proba(X)[:, 1], y.mean(), atol=1e-3)


def test_deeper_trees_are_not_tried_once_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from adacos.rivals import streed

    def slow(*arguments: Any) -> tuple[Any, bool]:
        return solved(*arguments)[0], False

    solved = streed.solve
    monkeypatch.setattr(streed, "solve", slow)
    X, y, *_ = load_pima(as_frame=False)
    policy = STreeDClassifier(Costs([1.0] * 8, false_positive=9, false_negative=1), cv=2).fit(X, y)
    assert {depth for depth, _ in policy.cv_cost_} == {0, 1}


def test_a_saved_model_needs_no_pystreed(tmp_path: Path) -> None:
    X, y = mixed_table()
    policy = STreeDClassifier(MIXED_COSTS, max_depth=2, cv=2).fit(X, y)
    save(policy, tmp_path / "model.adacos")
    X.to_pickle(tmp_path / "rows.pkl")
    program = (
        "import sys; sys.modules['pystreed'] = None\n"
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


def test_without_pystreed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pystreed", None)
    X, y = mixed_table(40)
    with pytest.raises(MissingExtraError, match=r"\.\[rivals\]"):
        STreeDClassifier(MIXED_COSTS, cv=2).fit(X, y)

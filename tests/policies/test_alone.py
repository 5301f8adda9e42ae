"""Where one covariate alone costs less than the policy, another order is advised."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    load_heart,
    load_pima,
    load_wisconsin,
)
from adacos.cli.app import app
from adacos.exceptions import TableWarning
from adacos.metrics import total_cost
from adacos.policies.alone import cheaper_alone
from adacos.policies.estimates import out_of_fold_cost

QUICK: dict[str, Any] = {"strengths": "common", "n_splines": 5, "cv": 5}
NAMES = [*(f"weak{k}" for k in range(6)), "strong"]
COSTS = Costs([1.0] * 6 + [10.0], misclassification=60 * (1 - np.eye(4)))


def drawn(seed: int, n: int, strength: float = 2.0) -> tuple[Any, Any]:
    """Four classes, of which six cheap covariates say a little and a dear one much."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    up = np.array(
        [[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0]]
    )
    weak = rng.normal(size=(n, 6)) + 0.5 * up[:, y].T
    return np.c_[weak, strength * y + rng.normal(size=n)], y


def advice(policy: Any, X: Any, y: Any) -> list[Any]:
    return [item for item in policy.check(X, y) if item.kind == "other_order"]


def test_a_strong_expensive_covariate_that_comes_late_is_named_and_the_other_order_is_cheaper() -> (
    None
):
    X, y = drawn(0, 800)
    policy = AdaCOSClassifier(COSTS, sequence="group_lasso", **QUICK)
    with pytest.warns(TableWarning, match='Try sequence="auto"'):
        policy.fit(X, y)
    (item,) = advice(policy, X, y)
    assert item.covariates == ("x6",)
    assert "answering by x6 alone costs" in item.message.lower()
    fresh, classes = drawn(1, 4000)
    auto = AdaCOSClassifier(COSTS, sequence="auto", **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        auto.fit(X, y)
    assert auto.sequence_ == "forward"
    assert advice(auto, X, y) == []
    ours, other = (total_cost(one.acquire(fresh), classes, COSTS) for one in (policy, auto))
    assert other < ours - 2


def test_what_is_said_to_cost_less_does_on_fresh_rows() -> None:
    """The cost of a covariate alone is that of new rows answered by shares in its cells."""
    X, y = drawn(2, 3000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        policy = AdaCOSClassifier(COSTS, sequence="group_lasso", **QUICK).fit(X, y)
    own = out_of_fold_cost(policy, X, y)
    assert own is not None
    found = cheaper_alone(policy, X, own, y)
    assert found is not None
    reported = float(found[1].split(" alone costs ")[1].split()[0])
    fresh, classes = drawn(3, 40_000)
    # By the true density of the class given the covariate.
    distance = (fresh[:, 6:] - 2.0 * np.arange(4)) ** 2
    best = 10 + 60 * np.mean(distance.argmin(axis=1) != classes)
    assert best - 0.5 < reported < best + 2.0


@pytest.mark.parametrize("load", [load_pima, load_wisconsin, load_heart])
@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier, FullModelClassifier])
def test_nothing_is_advised_where_no_order_is_better(load: Any, kind: Any) -> None:
    data = load(as_frame=False)
    costs = Costs([data.prices[n] for n in data.names], false_positive=100, false_negative=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        policy = kind(costs, sequence="group_lasso", **QUICK).fit(data.X, data.y)
    assert advice(policy, data.X, data.y) == []


def test_nothing_is_advised_where_rows_are_not_stopped_by_what_they_cost() -> None:
    X, y = drawn(0, 800)
    weight = np.where(np.arange(800) < 400, 2.0, 1.0)
    order = {"sequence": "group_lasso", **QUICK}
    policy: Any
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        for policy, more in (
            (AdaCOSClassifier(COSTS, **order), {"sample_weight": weight}),
            (AdaCOSClassifier(COSTS, mean_budget=8.0, **order), {}),
            (FullModelClassifier(COSTS, **order), {}),
        ):
            policy.fit(X, y, **more)
            assert advice(policy, X, y) == []


def test_categories_and_missing_values_are_cells() -> None:
    """A dear category says all; where it is missing its cost is not paid."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 900)
    word = np.array(["no", "yes"])[y].astype(object)
    word[rng.random(900) < np.where(y == 1, 0.1, 0.3)] = None
    weak = {f"weak{k}": rng.normal(size=900) + 0.4 * y for k in range(5)}
    X = pd.DataFrame({**weak, "word": word})
    costs = Costs(dict.fromkeys(weak, 1.0) | {"word": 4.0}, false_positive=30, false_negative=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        policy = COSClassifier(costs, sequence="group_lasso", **QUICK).fit(X, y)
    # As if it had paid for everything.
    own = np.full(900, 9.0)
    found = cheaper_alone(policy, X, own, y)
    assert found is not None
    reported = float(found[1].split(" alone costs ")[1].split()[0])
    missing = pd.isna(X["word"]).to_numpy()
    wrong = 30 * min(np.mean(y[missing] == 0), np.mean(y[missing] == 1)) * missing.mean()
    assert reported == pytest.approx(4 * np.mean(~missing) + wrong, abs=0.5)
    assert cheaper_alone(policy, X, own - 5, y) is None


def test_the_command_line_names_its_option(tmp_path: Path) -> None:
    X, y = drawn(0, 800)
    pd.DataFrame(X, columns=NAMES).assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    prices = "\n".join(f"{name} = {10 if name == 'strong' else 1}" for name in NAMES)
    rows = ", ".join(str([0 if k == c else 60 for k in range(4)]) for c in range(4))
    listed = f"[prices]\n{prices}\n[errors]\nmisclassification = [{rows}]\n"
    (tmp_path / "p.toml").write_text(listed)
    given = ["--target", "y", "--prices", str(tmp_path / "p.toml"), "--policy", "cos"]
    given += ["--sequence", "group-lasso"]
    out = ["--out", str(tmp_path / "m.adacos"), "--json"]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), *given, *out])
    assert result.exit_code == 0, result.output
    doubts = " ".join(json.loads(result.stdout)["warnings"])
    assert "answering by strong alone costs" in doubts
    assert "--sequence auto" in doubts

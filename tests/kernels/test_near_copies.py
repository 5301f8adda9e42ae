"""Visits of one patient are seen by what they share; different cases that agree are not."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from typer.testing import CliRunner

from adacos import COSClassifier, Costs, load_heart, load_pima, load_wisconsin
from adacos.cli.app import app
from adacos.exceptions import TableWarning
from adacos.kernels.near_copies import NearCopies, near_copies
from adacos.tables.suspicions import suspicions
from tests.policies.tables import drawn, repeated, tables_of_different_cases

COSTS = Costs([1.0] * 4, false_positive=10.0, false_negative=10.0)


def visits(seed: int, changing: tuple[int, ...] = (0,), times: int = 6) -> tuple[Any, Any, Any]:
    """200 patients of whom some covariates move a little from visit to visit, and who is who."""
    X, y = drawn(seed, 200)
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(200), times))
    X, y = X[who], y[who]
    for k in changing:
        X[:, k] += rng.normal(0, 0.3, len(X))
    return X, y.astype(float), who


@pytest.mark.parametrize("changing", [(0,), (3,), (0, 2)])
def test_visits_are_found(changing: tuple[int, ...]) -> None:
    X, y, _ = visits(0, changing)
    assert near_copies(X, y) == NearCopies(1200, changing)


def test_some_patients_that_came_twice_are_counted() -> None:
    X, y = drawn(1, 1000)
    again = np.random.default_rng(1).choice(1000, 60, replace=False)
    second = X[again] + [0.3, 0, 0, 0]
    found = near_copies(np.r_[X, second], np.r_[y, y[again]].astype(float))
    assert found == NearCopies(120, (0,))


def test_visits_with_whole_numbers_and_missing_values_are_found() -> None:
    """No covariate of Pima names a patient alone, and many values are missing."""
    X, y, *_ = load_pima(zeros="missing", as_frame=False)
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.choice(len(y), 200, replace=False), 6)
    for k in range(X.shape[1]):
        moved = X[rows].copy()
        moved[:, k] += rng.normal(0, 0.3 * np.nanstd(X[:, k]), len(rows))
        found = near_copies(moved, y[rows].astype(float))
        assert found is not None
        assert found.changing == (k,)
        frame = pd.DataFrame(moved).drop(columns=k).assign(y=y[rows])
        assert found.rows == frame.duplicated(keep=False).sum()


@pytest.mark.parametrize("name", tables_of_different_cases())
def test_different_cases_that_agree_are_no_visits(name: str) -> None:
    X = tables_of_different_cases()[name].astype(float)
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(len(X), 2))
    for table in (X, np.c_[X, noise[:, :1]], np.c_[X, noise]):
        score = np.nansum(table, axis=1) + rng.normal(size=len(table))
        of_first = table[:, 0] > np.nanmedian(table[:, 0])
        for y in (rng.random(len(X)) < 0.3, of_first, score > np.median(score)):
            assert near_copies(table, y.astype(float)) is None


def test_rounded_values_of_different_cases_are_hardly_ever_called_visits() -> None:
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, p = rng.integers(200, 2000), rng.integers(2, 8)
        X = (rng.normal(size=(n, p)) @ rng.normal(size=(p, p))).round(rng.integers(0, 3))
        score = X @ rng.normal(size=p) + rng.normal(size=n) * rng.choice([0.1, 1.0, 3.0])
        alarms += near_copies(X, (score > np.median(score)).astype(float)) is not None
    assert alarms == 0


def test_units_and_classes_of_a_value_are_no_second_value() -> None:
    """Temperature in Celsius, Fahrenheit and classes, with a class that follows from it."""
    rng = np.random.default_rng(0)
    celsius = rng.normal(38, 1, 5000).round(2)
    X = np.c_[celsius, celsius * 1.8 + 32, celsius // 0.5, rng.normal(size=5000)]
    assert near_copies(X, (celsius > 38).astype(float)) is None


@pytest.mark.parametrize(
    "load", [load_pima, load_wisconsin, load_heart, load_iris, load_wine, load_breast_cancer]
)
def test_nothing_is_said_of_well_known_tables(load: Any) -> None:
    data = load()
    X, y = (data.X, data.y) if hasattr(data, "X") else (data.data, data.target)
    assert "near_copies" not in {item.kind for item in suspicions(X, y)}


def test_covariates_of_few_values_say_nothing() -> None:
    X, y = load_digits(return_X_y=True)
    assert near_copies(X, y.astype(float)) is None
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (300, 5)).astype(float)
    X, y = repeated(X, rng.integers(0, 2, 300).astype(float), 6)
    X[:, 0] += rng.normal(0, 0.3, len(X))
    assert near_copies(X, y) is None


def test_fit_and_check_ask_for_groups_once() -> None:
    X, y, who = visits(3)
    policy = COSClassifier(COSTS, strengths="common", n_splines=5, cv=3)
    with pytest.warns(
        TableWarning, match="1,200 of 1,200 rows are equal to another row"
    ) as reported:
        policy.fit(X, y)
    (message,) = [str(item.message) for item in reported if item.category is TableWarning]
    assert "all covariates but x0" in message
    assert "groups=patient" in message
    assert [item.covariates for item in policy.check(X, y) if item.kind == "near_copies"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        policy.fit(X, y, groups=who)
    # Equal rows are copies, and told as such.
    kinds = {item.kind for item in suspicions(*repeated(*drawn(0, 200), 6))}
    assert "copies" in kinds
    assert "near_copies" not in kinds


def test_the_command_line_names_its_option(tmp_path: Path) -> None:
    X, y, who = visits(4)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y.astype(int), who=who)
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = ["--target", "y", "--default-price", "1", "--false-positive", "9", "--policy", "cos"]
    given += ["--false-negative", "9", "--out", str(tmp_path / "m.adacos"), "--json"]
    for option, expected in (("--drop", True), ("--groups", False)):
        command = ["fit", str(tmp_path / "t.csv"), *given, option, "who"]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        doubts = " ".join(json.loads(result.stdout)["warnings"])
        assert ("all covariates but a" in doubts) is expected
        assert ("--groups COLUMN" in doubts) is expected
        assert "groups=patient" not in doubts

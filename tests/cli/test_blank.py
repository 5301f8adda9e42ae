"""`adacos score` counts the blank cells that it takes as unavailable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from adacos import COSClassifier, Costs, save
from adacos.cli.app import app

N = 300


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Rows of two covariates with a cost and a free one, and a model of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    word = np.array(["u", "v", "w"])[(y + rng.integers(0, 2, N)) % 3]
    X = pd.DataFrame({"crp": rng.normal(size=N) + y, "kind": word, "age": rng.normal(size=N)})
    costs = Costs({"crp": 1, "kind": 2, "age": 0}, false_positive=9, false_negative=9)
    policy = COSClassifier(costs, strengths="common", n_splines=5, cv=3).fit(X, y)
    save(policy, tmp_path / "m.adacos")
    return X


def scored(folder: Path, table: Any, *more: str) -> Any:
    table.to_csv(folder / "new.csv", index=False)
    files = [str(folder / name) for name in ("m.adacos", "new.csv", "out.csv")]
    result = CliRunner().invoke(app, ["score", *files, "--chunk-rows", "70", *more])
    assert result.exit_code == 0, result.output
    return result


def test_blank_cells_are_counted_in_one_line(tmp_path: Path, table: Any) -> None:
    table.loc[:99, "crp"] = np.nan
    table["crp"] = table["crp"].astype(object)
    table.loc[200:219, "crp"] = "unavailable"
    table.loc[100:104, ["kind", "age"]] = None
    lines = [line for line in scored(tmp_path, table).stderr.splitlines() if "lank" in line]
    assert lines == [
        "Blank cells of covariates with a cost, taken as unavailable: crp 100, kind 5 (of 300 "
        "rows). Where values are only not acquired yet, `adacos next` says which to acquire."
    ]
    assert json.loads(scored(tmp_path, table, "--json").stdout)["blank"] == {"crp": 100, "kind": 5}


def test_nothing_is_said_of_complete_rows_and_of_absent_columns(tmp_path: Path, table: Any) -> None:
    assert "lank" not in scored(tmp_path, table).stderr
    reported = scored(tmp_path, table.drop(columns="crp")).stderr
    assert "lank" not in reported
    assert "has no column crp" in reported

"""`adacos bench table`: what it says of a table of one's own is what the policies do there."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from adacos import AdaCOSClassifier, COSClassifier, Costs
from adacos.cli.app import app
from adacos.datasets import paper_folds
from adacos.registry import forgetting, register_method

QUICK: dict[str, Any] = {"cv": 2, "strengths": "common"}
PRICES = {"bmi": 3.0, "town": 1.0, "crp": 5.0}
PANEL = ("--panel", "blood=2:bmi,crp")


@pytest.fixture
def methods() -> Any:
    """Two quick methods, the second of which is for two classes and the third for none."""
    with forgetting():
        register_method("walks", lambda costs: AdaCOSClassifier(costs, **QUICK))
        register_method("one set", lambda costs: COSClassifier(costs, **QUICK))
        yield


def frame(classes: int) -> Any:
    """Numbers, categories, missing values, and a class in words."""
    rng = np.random.default_rng(classes)
    n = 200
    y = rng.integers(0, classes, n)
    table = pd.DataFrame(
        {
            "id": [f"P{k}" for k in range(n)],
            "bmi": rng.normal(size=n) + y,
            "town": np.array(["north", "south", "west"])[(y + rng.integers(0, 2, n)) % 3],
            "crp": rng.normal(size=n) + 2 * y,
        }
    )
    table.loc[rng.random(n) < 0.4, "crp"] = np.nan
    return table.assign(state=np.array(["a well", "b ill", "c dead"])[y])


def invoked(path: Path, *more: Any) -> Any:
    given = [f"{name}={cost}" for name, cost in PRICES.items()]
    prices = [part for one in given for part in ("--prices", one)]
    options = ["--target", "state", "--drop", "id", *prices, *PANEL, "--jobs", "1", *more]
    command = ["bench", "table", str(path), *map(str, options)]
    return CliRunner().invoke(app, command)


@pytest.mark.usefixtures("methods")
def test_the_costs_are_those_of_the_policies(tmp_path: Path) -> None:
    table = frame(2)
    path, out = tmp_path / "own table.csv", tmp_path / "out"
    table.to_csv(path, index=False)
    errors = ("--false-positive", 20, "--false-negative", 50)
    common = (*errors, "--methods", "walks,one set", "--splits", 1, "--seed", 3, "--out", out)
    reported = invoked(path, *common, "--json")
    assert reported.exit_code == 0, reported.output
    records = {line["method"]: line for line in json.loads(reported.stdout)["table"]}
    # By hand: the same folds, of all rows.
    X, y = table[["bmi", "town", "crp"]], table["state"].to_numpy()
    costs = Costs(
        PRICES, false_positive=20, false_negative=50, panels={"blood": (2.0, ["bmi", "crp"])}
    )
    fold = paper_folds(np.zeros((len(y), 1)), y, seed=3000)
    total, paid = np.zeros(len(y)), np.zeros(len(y))
    for k in range(5):
        inside = fold == k
        policy = COSClassifier(costs, **QUICK).fit(X[~inside], y[~inside])
        result = policy.acquire(X[inside])
        paid[inside] = result.cost
        truth = y[inside]
        wrong = np.where(truth == "b ill", 50, 20) * (result.label != truth)
        total[inside] = result.cost + wrong
    own = records["one set"]
    assert own["covariate_cost"] == pytest.approx(paid.mean())
    assert own["total_cost"] == pytest.approx(total.mean())
    assert own["total_cost_error"] == pytest.approx(total.std(ddof=1) / np.sqrt(len(y)))
    with open(out / "tables" / "comparisons.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["first"], line["second"]) == ("walks", "one set")
    by_fold = np.mean([total[fold == k].mean() for k in range(5)])
    assert float(line["mean_second"]) == pytest.approx(by_fold)
    assert float(line["difference"]) == pytest.approx(float(line["mean_first"]) - by_fold)
    assert int(line["n_rows"]) == len(y)
    # What is there is not computed again; one more split adds to it.
    before = {unit: unit.stat().st_mtime_ns for unit in (out / "units").iterdir()}
    again = invoked(path, *common)
    assert again.exit_code == 0
    assert before == {unit: unit.stat().st_mtime_ns for unit in (out / "units").iterdir()}
    assert re.search(r"walks\s+│ +[\d.]+ ± ", again.output)
    assert re.search(r"walks less( one)?\s+│ +-?[\d.]+", again.output), again.output
    assert invoked(path, *common, "--splits", 2).exit_code == 0
    assert len(list((out / "units").iterdir())) > len(before)
    page = (out / "index.html").read_text()
    assert "own table: methods side by side" in page
    assert (out / "figures" / "methods.png").is_file()


@pytest.mark.usefixtures("methods")
def test_three_classes_with_a_matrix_and_methods_that_cannot(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out"
    frame(3).to_csv(path, index=False)
    errors = tmp_path / "errors.toml"
    errors.write_text("[errors]\nmisclassification = [[0, 9, 30], [20, 0, 20], [60, 40, 0]]\n")
    common = ("--prices", errors, "--splits", 1, "--out", out)
    reported = invoked(path, *common, "--methods", "walks,dwsm")
    assert reported.exit_code == 0, reported.output
    assert "skipped: DWSM: it takes two classes, and the table has 3" in reported.output
    assert re.search(r"walks\s+│\s+[\d.]+ ± ", reported.output)


@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize(
    ("more", "reported"),
    [
        (["--methods", "walk"], "Did you mean walks"),
        (["--false-negative", 0], "must be a finite number > 0"),
        (["--splits", 0], "splits: must be"),
        (["--out", __file__ + "/out"], "must be a folder that can be written"),
        (["--drop", "nobody"], "--drop: must name columns"),
        (["--positive", "ill"], "--positive: must be a value of the target"),
    ],
)
def test_mistakes(tmp_path: Path, more: list[Any], reported: str) -> None:
    path = tmp_path / "t.csv"
    frame(2).to_csv(path, index=False)
    errors = ("--false-positive", 20, "--false-negative", 50, "--out", tmp_path / "out")
    result = invoked(path, *errors, *more)
    assert result.exit_code != 0
    assert reported in " ".join(f"{result.output} {result.exception}".split())
    assert not (tmp_path / "out").exists()

"""More than two classes from the command line: fit, info, score, explain, ask; the rest refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from adacos import load
from adacos.cli.app import app

NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
PRICES = """
[prices]
sepal_length = 1
sepal_width = 2
petal_length = 4
petal_width = 5
[errors]
misclassification = [[0, 20, 30], [20, 0, 25], [40, 40, 0]]
"""


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> dict[str, Path]:
    """Iris as a file, its prices, and a fitted model."""
    folder = tmp_path_factory.mktemp("classes")
    found = {name: folder / name for name in ("iris.csv", "prices.toml", "model.adacos")}
    iris = load_iris()
    table = pd.DataFrame(iris.data, columns=NAMES)
    table["species"] = np.array(iris.target_names)[iris.target]
    table.to_csv(found["iris.csv"], index=False)
    found["prices.toml"].write_text(PRICES)
    given = ("--target", "species", "--prices", found["prices.toml"])
    done = run("fit", found["iris.csv"], *given, "--out", found["model.adacos"])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    assert "33.3% setosa, 33.3% versicolor, 33.3% virginica" in done.output
    assert "versicolor costs 20 if called setosa, 25 if called virginica" in " ".join(
        done.output.split()
    )
    assert "everyone virginica" in done.output
    return found


def test_the_card_has_no_positive_class(files: dict[str, Path]) -> None:
    card = json.loads(run("info", files["model.adacos"], "--json").stdout)
    assert card["classes"] == ["setosa", "versicolor", "virginica"]
    assert card["positive_class"] is card["threshold"] is card["training_positives"] is None
    assert card["training_classes"] == [50, 50, 50]
    assert card["misclassification_costs"] == [[0, 20, 30], [20, 0, 25], [40, 40, 0]]


def test_score_writes_a_probability_for_each_class(files: dict[str, Path]) -> None:
    out = files["model.adacos"].with_name("scored.csv")
    done = run("score", files["model.adacos"], files["iris.csv"], out)
    assert done.exit_code == 0, done.output
    scored = pd.read_csv(out)
    result = load(files["model.adacos"]).acquire(pd.read_csv(files["iris.csv"])[NAMES])
    assert scored["label"].tolist() == result.label.tolist()
    columns = [f"probability of {name}" for name in ("setosa", "versicolor", "virginica")]
    np.testing.assert_allclose(scored[columns], result.probability)


def test_explain_and_ask(files: dict[str, Path]) -> None:
    row = "sepal_length=6.3,sepal_width=3.3,petal_length=6.0,petal_width=2.5"
    done = run("explain", files["model.adacos"], "--row", row, "--json")
    assert done.exit_code == 0, done.output
    last = json.loads(done.stdout)["steps"][-1]
    assert last["label"] == "virginica"
    each = last["explanation"]["probabilities"]
    assert sum(each.values()) == pytest.approx(1.0)
    assert last["probability"] == each["virginica"]
    reported = run("explain", files["model.adacos"], "--row", row).output
    assert "setosa" in reported
    asked = CliRunner().invoke(app, ["ask", str(files["model.adacos"])], input="6.3\n3.3\n6\n2.5\n")
    assert asked.exit_code == 0, f"{asked.output}\n{asked.exception!r}"
    assert "virginica" in asked.output


def test_report(files: dict[str, Path]) -> None:
    out = files["model.adacos"].with_name("report.html")
    given = ("--data", files["iris.csv"], "--target", "species", "--out", out)
    pytest.importorskip("matplotlib")
    done = run("report", files["model.adacos"], *given, "--json")
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["recall"]) == ["setosa", "versicolor", "virginica"]


def test_recalls_by_class(files: dict[str, Path]) -> None:
    out = files["model.adacos"].with_name("recalls.adacos")
    data = ("fit", files["iris.csv"], "--target", "species", "--prices", files["prices.toml"])
    data = (*data, "--policy", "cos", "--out", out)
    asked = ("--target-recall", "versicolor=0.9", "--target-recall", "virginica=0.9")
    done = run(*data, *asked)
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    reported = " ".join(run("info", out).output.split())
    assert "Recall of versicolor: target 90.0%" in reported
    card = json.loads(run("info", out, "--json").stdout)
    assert card["target_recall"] == {"versicolor": 0.9, "virginica": 0.9}
    assert card["recall_estimate"]["versicolor"] >= 0.9
    for given, words in (
        (("versicolour=0.98",), "Did you mean versicolor?"),
        (("0.98",), "must name the class it protects"),
        (("versicolor=98",), "between 0 and 1"),
        (("0.9", "virginica=0.9"), "CLASS=RECALL"),
        (("virginica=0.9", "virginica=0.8"), "once"),
    ):
        options = [part for one in given for part in ("--target-recall", one)]
        assert words in str(run(*data, *options).exception)
    one = (*data, "--positive", "virginica", "--false-positive", 1)
    one = ("fit", files["iris.csv"], "--target", "species", "--default-price", 1, *one[6:])
    assert run(*one, "--target-recall", "virginica=0.9").exit_code == 0
    refused = run(*one, "--target-recall", "not virginica=0.9")
    assert "recall of the positive one, virginica" in str(refused.exception)


def test_recalls_by_class_of_other_policies(files: dict[str, Path]) -> None:
    out = files["model.adacos"].with_name("wrapped.adacos")
    data = ("fit", files["iris.csv"], "--target", "species", "--prices", files["prices.toml"])
    data, recall = (*data, "--out", out), ("--target-recall", "virginica=0.7")
    done = run(*data, "--policy", "planning", *recall)
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    policy = load(out)
    assert type(policy.policy_).__name__ == "PlanningClassifier"
    assert "Recall of virginica: target 70.0%" in " ".join(run("info", out).output.split())
    done = run(*data, "--policy", "planning", *recall, "--recall-confidence", 0.8, "--json")
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    reported = json.loads(done.stdout)
    assert reported["calibration_rows"] == 75
    assert reported["card"]["certificate"]["classes"] == ["virginica"]
    done = run(*data, *recall, "--mean-budget", 3, "--json")
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    assert json.loads(done.stdout)["card"]["mean_budget"] == 3
    refused = str(run(*data, "--policy", "planning", "--target-recall", "0.9").exception)
    assert "--target-recall virginica=0.9" in refused


def test_what_needs_two_classes_says_so(files: dict[str, Path]) -> None:
    out = files["model.adacos"].with_name("other.adacos")
    data = ("fit", files["iris.csv"], "--target", "species", "--default-price", 1)
    done = run(*data, "--false-positive", 1, "--false-negative", 2, "--out", out)
    assert "misclassification" in str(done.exception)
    assert "setosa, versicolor" in str(done.exception)
    done = run(*data, "--prices", files["prices.toml"], "--policy", "dwsm", "--out", out)
    assert "a policy for three or more classes: adacos" in str(done.exception)

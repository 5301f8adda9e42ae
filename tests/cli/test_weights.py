"""`adacos fit --weights` and `--prevalence`: rows that count differently, against known truths."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import prevalence_weights
from adacos.exceptions import InvalidInputError
from tests.cli.conftest import read_rows

NAMES = ["id", "a", "b", "c", "w", "ill"]
OPTIONS = ("--target", "ill", "--default-price", 0.2, "--false-positive", 10)
BOTH = (*OPTIONS, "--false-negative", 60)


def population(n: int, seed: int, share: float = 0.05) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None] * [1.2, 0.8, 0.5], y


def write(path: Path, X: Any, y: Any, weight: Any) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        for k, (row, w, label) in enumerate(zip(X.tolist(), weight, y.tolist(), strict=True)):
            writer.writerow([k, *row, w, label])
    return path


@pytest.fixture(scope="module")
def cases(tmp_path_factory: Any) -> Path:
    """As many cases as controls, in a population with 5% cases; weights for one, and new rows."""
    path = tmp_path_factory.mktemp("cases")
    X, y = population(30_000, 0)
    rows = np.concatenate([np.flatnonzero(y == k)[:400] for k in (0, 1)])
    rows = np.random.default_rng(1).permutation(rows)
    write(path / "train.csv", X[rows], y[rows], np.where(y[rows] == 1, 0.1, 1.9).tolist())
    new = population(4000, 2)
    write(path / "new.csv", *new, [1] * 4000)
    return path


@pytest.mark.parametrize("weighted", [["--prevalence", 0.05, "--drop", "id,w"], ["--weights", "w"]])
def test_a_case_control_sample_speaks_of_new_rows(run, cases, tmp_path, weighted) -> None:
    model, out = tmp_path / "m.adacos", tmp_path / "a.csv"
    weighted = [*weighted, *([] if "--drop" in weighted else ["--drop", "id"])]
    code, printed, reported = run(
        "fit", cases / "train.csv", *BOTH, *weighted, "--out", model, "--json"
    )
    assert code == 0, reported
    assert "looks designed" not in reported
    card = json.loads(printed)["card"]
    np.testing.assert_allclose(card["weighted_shares"], [0.95, 0.05])
    stated = {item["name"]: item["cost"] for item in card["cost_estimates"]}
    assert stated["everyone positive"] == pytest.approx(9.5)
    assert stated["everyone negative"] == pytest.approx(3.0)
    assert run("score", model, cases / "new.csv", out, "--keep", "ill")[0] == 0
    rows = read_rows(out)
    p, y, label, cost = (
        np.array([float(row[name]) for row in rows])
        for name in ("probability", "ill", "label", "cost")
    )
    assert p.mean() == pytest.approx(y.mean(), abs=0.012)
    realised = (cost + 10 * ((label == 1) & (y == 0)) + 60 * ((label == 0) & (y == 1))).mean()
    own = next(cost for name, cost in stated.items() if name.startswith("this policy"))
    assert own == pytest.approx(realised, rel=0.2)
    assert "by weight 5.0%" in run("info", model)[1]


def test_without_weights_the_options_are_named(run, cases, tmp_path) -> None:
    train, out = cases / "train.csv", tmp_path / "m.adacos"
    code, _, reported = run("fit", train, *BOTH, "--drop", "id", "--drop", "w", "--out", out)
    assert code == 0
    assert "--prevalence" in reported
    assert "sample_weight" not in reported
    rows = read_rows(train)
    again = tmp_path / "copies.csv"
    with open(again, "w", newline="") as file:
        writer = csv.DictWriter(file, NAMES)
        writer.writeheader()
        writer.writerows([*rows, *rows])
    reported = run("fit", again, *BOTH, "--drop", "id,w", "--out", out)[2]
    assert "--groups COLUMN" in reported
    assert "groups=" not in reported


def test_weights_are_counts_of_rows_also_nested(run, tmp_path) -> None:
    """Weight 2 is the row twice: the same costs, of rows that are grouped to be split alike."""
    X, y = population(200, 3, 0.4)
    out, costs = tmp_path / "m.adacos", []
    none = np.zeros(20)
    X, y = np.vstack([X, X[:20]]), np.concatenate([y, 1 - y[:20]])
    weighted = write(tmp_path / "w.csv", X, y, [*([2] * 200), *none])
    plain = write(tmp_path / "p.csv", X[:200], y[:200], [1] * 200)
    for path in (weighted, plain):
        code, printed, reported = run(
            "fit", path, *BOTH, "--weights", "w", "--drop", "id", "--nested", "--out", out, "--json"
        )
        assert code == 0, reported
        card = json.loads(printed)["card"]
        costs.append({item["name"]: item["cost"] for item in card["cost_estimates"]})
        assert card["training_rows"] == 200
    assert (
        "20 of 220 rows have weight 0"
        in run("fit", weighted, *BOTH, "--weights", "w", "--drop", "id", "--out", out)[2]
    )
    everyone = [name for name in costs[0] if name.startswith("everyone")]
    for name in everyone:
        assert costs[0][name] == pytest.approx(costs[1][name])
    nested = next(name for name in costs[0] if "nested" in name)
    assert costs[0][nested] == pytest.approx(costs[1][nested], rel=0.15)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ([*BOTH, "--weights", "W"], "Did you mean w"),
        ([*BOTH, "--weights", "ill"], "must be another column than the target"),
        ([*BOTH, "--weights", "w", "--groups", "w"], "must be another column than that of"),
        ([*BOTH, "--weights", "w", "--prevalence", 0.1], "cannot be given with weights"),
        ([*BOTH, "--weights", "w", "--policy", "auto"], "goes with --policy adacos, branching"),
        ([*BOTH, "--prevalence", 5], "prevalence: must be a finite number > 0 and < 1"),
        ([*BOTH, "--weights", "a"], "must hold a weight in every row"),
        ([*BOTH, "--drop", "id, z"], "--drop: must name columns; received z"),
        (
            [*OPTIONS, "--target-recall", 0.8, "--recall-confidence", 0.9, "--prevalence", 0.1],
            "cannot be given with --recall-confidence",
        ),
    ],
)
def test_mistakes_with_weights(run, cases, tmp_path, options, reported) -> None:
    code, _, err = run("fit", cases / "train.csv", *options, "--out", tmp_path / "m.adacos")
    assert code != 0
    assert reported in " ".join(err.split())


def test_prevalence_weights_give_each_class_its_share() -> None:
    y = np.array(["b", "a", "b", "c", "a", "b"])
    weight = prevalence_weights(y, {"a": 0.2, "b": 0.7, "c": 0.1})
    assert weight.mean() == pytest.approx(1)
    for name, share in (("a", 0.2), ("b", 0.7), ("c", 0.1)):
        assert weight[y == name].sum() / 6 == pytest.approx(share)
    for wrong, reported in (
        (0.5, "three or more"),
        ({"a": 0.5, "b": 0.5}, "must name every class"),
        ({"a": 0.5, "b": 0.5, "c": 0.5}, "must add up to 1"),
    ):
        with pytest.raises(InvalidInputError, match=reported):
            prevalence_weights(y, wrong)

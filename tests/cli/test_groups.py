"""`adacos fit --groups`: rows of a patient or site stay together."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import numpy as np

from adacos import load_pima
from tests.policies.tables import patients


def test_groups_are_a_column_that_is_no_covariate(run: Any, tmp_path: Any) -> None:
    X, y, who = patients(3)
    with open(tmp_path / "visits.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "a", "b", "c", "ill"])
        writer.writerows([f"P{k}", *row, label] for k, row, label in zip(who, X, y, strict=True))
    out = tmp_path / "m.adacos"
    common = ("fit", tmp_path / "visits.csv", "--target", "ill", "--default-price", 1, "--out", out)
    errors = ("--false-positive", 10, "--false-negative", 10)
    code, printed, reported = run(*common, *errors, "--groups", "patient", "--json")
    assert code == 0, reported
    assert '"patient"' not in printed
    code, _, reported = run(*common, *errors, "--groups", "patient", "--policy", "dwsm")
    assert code != 0
    assert "--groups: goes with --target-recall or --policy adacos" in reported
    code, _, reported = run(*common, *errors, "--groups", "ill")
    assert code != 0
    assert "must be another column than the target" in reported
    code, _, reported = run(*common, *errors, "--groups", "who")
    assert code != 0
    assert "must name a column" in reported
    certified = ("--target-recall", 0.6, "--recall-confidence", 0.8, "--largest")
    code, printed, reported = run(
        *common, "--false-positive", 10, *certified, "--groups", "patient", "--json"
    )
    assert code == 0, reported
    assert '"n_positives": 6' in printed


def visits(path: Any, copies: int) -> Any:
    """Rows of patients, who each have a row as often as given."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 3))
    y = (rng.random(150) < 1 / (1 + np.exp(-1.5 * X[:, 0]))).astype(int)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "a", "b", "c", "ill"])
        for k, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            writer.writerows([[f"P{k}", *row, label]] * copies)
    return path


def test_report_and_tradeoff_know_groups(run: Any, tmp_path: Any) -> None:
    """Five visits of a patient that are alike say as much as one."""
    once, often = (visits(tmp_path / f"{k}.csv", k) for k in (1, 5))
    model, page = tmp_path / "m.adacos", tmp_path / "r.html"
    data = load_pima(as_frame=False).X[:300, :3]
    train = tmp_path / "train.csv"
    lines = [",".join(map(str, (*row, int(row[0] > 3)))) for row in data.tolist()]
    train.write_text("\n".join(["a,b,c,ill", *lines]) + "\n")
    costs = ("--default-price", 1, "--false-positive", 10, "--false-negative", 10)
    assert run("fit", train, "--target", "ill", *costs, "--out", model)[0] == 0
    common = ("--target", "ill", "--json")
    curves, found = [], []
    for data, options in ((once, ()), (often, ("--groups", "patient")), (often, ())):
        code, printed, reported = run("tradeoff", model, "--data", data, *common, *options)
        assert code == 0, reported
        curves.append(json.loads(printed))
        code, _, reported = run("report", model, "--data", data, *common, *options, "--out", page)
        assert code == 0, reported
        text = page.read_text()
        found.append(re.search(r"interval[ a-z]* ([\d.]+)% to ([\d.]+)%", text).groups())
        assert ("in 150 groups" in text) == (options != ())
    np.testing.assert_allclose(curves[0]["total_error"], curves[1]["total_error"])
    assert curves[2]["total_error"][0] < 0.5 * curves[0]["total_error"][0]
    ends = np.array(found, dtype=float)
    np.testing.assert_allclose(ends[0], ends[1], atol=1.0)
    assert np.ptp(ends[2]) < 0.6 * np.ptp(ends[0])
    for name, reported in (("a", "must be another column"), ("Patient", "Did you mean patient")):
        code, _, err = run("tradeoff", model, "--data", often, *common, "--groups", name)
        assert code != 0
        assert reported in err

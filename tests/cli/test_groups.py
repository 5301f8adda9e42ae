"""`adacos fit --groups`: rows of a patient or site stay together."""

from __future__ import annotations

import csv
from typing import Any

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
    code, printed, told = run(*common, *errors, "--groups", "patient", "--json")
    assert code == 0, told
    assert '"patient"' not in printed
    code, _, told = run(*common, *errors, "--groups", "patient", "--policy", "dwsm")
    assert code != 0
    assert "--groups: goes with --target-recall or --policy adacos" in told
    code, _, told = run(*common, *errors, "--groups", "ill")
    assert code != 0
    assert "must be another column than the target" in told
    code, _, told = run(*common, *errors, "--groups", "who")
    assert code != 0
    assert "must name columns" in told
    certified = ("--target-recall", 0.6, "--recall-confidence", 0.8, "--largest")
    code, printed, told = run(
        *common, "--false-positive", 10, *certified, "--groups", "patient", "--json"
    )
    assert code == 0, told
    assert '"n_positives": 6' in printed

"""`adacos restrict`: questions that are always asked, or never, and mistakes about them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from adacos import load


@pytest.fixture
def model(run, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"]).round(3)
    table["outcome"] = np.where(rng.random(200) < 1 / (1 + np.exp(-2 * table.a)), "ill", "well")
    table.to_csv(tmp_path / "table.csv", index=False)
    code, _, reported = run(
        "fit", tmp_path / "table.csv", "--target", "outcome", "--positive", "ill", "--prices",
        "a=1,b=2,c=2", "--false-positive", 50, "--false-negative", 90,
        "--out", tmp_path / "model.adacos",
    )  # fmt: skip
    assert code == 0, reported
    return tmp_path / "model.adacos"


def test_lists_are_kept_and_asked(run, model, tmp_path):
    out = tmp_path / "ours.adacos"
    code, printed, reported = run("restrict", model, "--must", "c", "--never", "b", "--out", out)
    assert code == 0, reported
    assert "Every row is asked first: c. No row is asked: b." in printed
    assert load(out).restriction_.never == ("b",)
    code, printed, _ = run("info", out, "--json")
    assert json.loads(printed)["restriction"]["must"] == ["c"]
    report = tmp_path / "report.html"
    data = ("--data", tmp_path / "table.csv", "--target", "outcome", "--positive", "ill")
    assert run("report", out, *data, "--out", report)[0] == 0
    assert "No row is asked: b." in report.read_text(encoding="utf-8")


def test_mistakes_write_nothing(run, model, tmp_path):
    out = tmp_path / "ours.adacos"
    for given, said in (
        ([], "must be given"),
        (["--never", "d"], "must name covariates"),
        (["--must", "a", "--never", "a,b"], "cannot name a covariate that is never asked"),
    ):
        code, _, reported = run("restrict", model, *given, "--out", out)
        assert code == 2
        assert said in " ".join(reported.split())
        assert not out.exists()

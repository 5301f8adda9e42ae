"""Budgets and the curve of spending on the command line."""

from __future__ import annotations

import json

import pytest

ERRORS = ("--false-positive", 500, "--false-negative", 500)


@pytest.fixture(scope="module")
def heart(tmp_path_factory):
    from typer.testing import CliRunner

    from adacos.cli.app import app

    folder = tmp_path_factory.mktemp("heart")
    CliRunner().invoke(app, ["datasets", "export", "heart", "--out", str(folder)])
    return folder


def fit(run, heart, out, *options):
    return run(
        "fit", heart / "heart.csv", "--target", "y", "--prices", heart / "heart.toml", *ERRORS,
        "--out", out, *options,
    )  # fmt: skip


def test_fit_info_report_and_curve(run, heart, tmp_path):
    model = tmp_path / "m.adacos"
    code, out, err = fit(run, heart, model, "--budget", 20, "--mean-budget", 2, "--json")
    assert code == 0, err
    card = json.loads(out)["card"]
    assert (card["budget"], card["mean_budget"]) == (20, 2)
    assert card["multiplier"] > 0
    code, out, _ = run("info", model)
    assert "No row pays more than 20.00 for covariates." in out
    rows = ("--data", heart / "heart.csv", "--target", "y")
    code, out, _ = run("tradeoff", model, *rows, "--json")
    assert code == 0
    curve = json.loads(out)
    assert curve["rows"] == 303
    assert curve["covariate_cost"] == sorted(curve["covariate_cost"], reverse=True)
    for ending in ("png", "svg", "pdf"):
        plot = tmp_path / f"curve.{ending}"
        code, out, _ = run("tradeoff", model, *rows, "--plot", plot)
        assert code == 0
        assert "errors" in out
        assert plot.stat().st_size > 5000
    code, _, err = run("tradeoff", model, *rows, "--plot", tmp_path / "curve.doc")
    assert code == 2
    assert "--plot" in err
    code, _, _ = run("report", model, *rows, "--out", tmp_path / "r.html")
    assert code == 0
    page = (tmp_path / "r.html").read_text()
    assert "What more spending saves" in page
    assert "No row pays more than 20.00" in page


def test_what_a_policy_cannot_keep_is_refused(run, heart, tmp_path):
    model = tmp_path / "m.adacos"
    code, _, err = fit(run, heart, model, "--policy", "dwsm", "--mean-budget", 3)
    assert code == 2
    assert "--mean-budget" in err
    code, _, err = fit(run, heart, model, "--policy", "full", "--budget", 3)
    assert code == 2
    assert "what all covariates cost" in err
    assert not model.exists()

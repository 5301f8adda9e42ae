"""Uncertain costs and the worth of covariates on the command line."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def held(folder):
    return "--data", folder / "held_out.csv", "--target", "diabetes"


def test_sensitivity_from_pairs_and_price_lists(run, folder, held, tmp_path):
    model = folder / "model.adacos"
    text = (folder / "prices.toml").read_text()
    prices = tmp_path / "prices.toml"
    prices.write_text(text + "[uncertain]\nGlucose = [10.0, 25.0]\nAge = {mean = 1, sd = 0.2}\n")
    given = "--uncertain", "false_negative=200:600", "--uncertain", prices, "--draws", 2
    code, out, err = run("sensitivity", model, *held, *given, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert {cost["name"] for cost in found["costs"]} == {"Glucose", "Age", "false_negative"}
    assert found["draws"] == 2
    plot = tmp_path / "tornado.svg"
    quick = "--uncertain", "Age=0.5:2,BMI=0.5:1:2", "--draws", 0
    code, out, err = run("sensitivity", model, *held, *quick, "--plot", plot)
    assert code == 0, err
    assert "same questions" in out
    assert plot.stat().st_size > 5000


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("Glucos=1:2", "Did you mean Glucose"),
        ("Glucose=2:1", "rise"),
        ("Glucose=a:2", "must be a number"),
        ("nothing.toml", "NAME=LOW:HIGH"),
    ],
)
def test_wrong_costs_are_reported(run, folder, held, given, reported):
    code, _, err = run("sensitivity", folder / "model.adacos", *held, "--uncertain", given)
    assert code == 2
    assert reported in err


def test_the_report_has_sections_about_uncertain_costs(run, folder, held, tmp_path):
    page = tmp_path / "r.html"
    given = "--uncertain", "false_negative=200:600,Age=0.5:2"
    code, _, err = run("report", folder / "model.adacos", *held, "--out", page, *given)
    assert code == 0, err
    text = page.read_text()
    for part in ("Uncertain costs", "Prices of the covariates", "EVPI", 'id="tornado"'):
        assert part in text


def test_a_price_list_without_the_table_is_reported(run, folder, held):
    code, _, err = run(
        "sensitivity", folder / "model.adacos", *held, "--uncertain", folder / "prices.toml"
    )
    assert code == 2
    assert "[uncertain]" in err


def test_worth_of_covariates_and_of_a_new_test(run, folder, held):
    model = folder / "model.adacos"
    code, out, err = run("worth", model, *held)
    assert code == 0, err
    assert "dropping it costs" in out
    code, out, _ = run("worth", model, *held, "--new-test", "0.95:0.9", "--json")
    assert code == 0
    assert json.loads(out)["price_for_some"] > 0
    code, _, err = run("worth", model, *held, "--new-test", "95")
    assert code == 2
    assert "SENSITIVITY:SPECIFICITY" in err


def test_the_help_names_the_table_of_a_price_list(run):
    code, out, _ = run("sensitivity", "--help")
    assert code == 0
    assert "[uncertain]" in out


def test_a_single_draw_is_refused(run, folder, held):
    code, _, err = run("sensitivity", folder / "model.adacos", *held, "--draws", 1)
    assert code == 2
    assert "one draw has no error" in err


@pytest.mark.parametrize(
    ("confidence", "reported"),
    [(95, "Did you mean 0.95?"), (-1, "> 0 and < 1"), (0, "> 0 and < 1")],
)
def test_a_confidence_that_is_no_share_is_refused(run, folder, held, confidence, reported):
    model = folder / "model.adacos"
    code, out, err = run("compare", model, model, *held, "--confidence", confidence)
    assert code == 2
    assert not out
    assert "--confidence: must be a finite number" in err
    assert reported in err

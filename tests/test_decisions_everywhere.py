"""Decisions in place of labels: model files, service, page, report, batch files, command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import AdaCOSClassifier, Costs, PlanningClassifier
from adacos.card import model_card, rule_in_words
from adacos.cli.app import app
from adacos.exceptions import InvalidInputError
from adacos.persistence import load, save
from adacos.report.page import write_report

NAMES = ["age", "glucose", "scan"]
PRICES = dict(zip(NAMES, [1.0, 4.0, 12.0], strict=True))
REFER = [[0, 20, 100], [1000, 120, 50]]
DECISIONS = ("discharge", "refer", "treat")
TOML = """
[prices]
age = 1.0
glucose = 4.0
scan = 12.0

[errors]
decisions = ["discharge", "refer", "treat"]
misclassification = [[0, 20, 100], [1000, 120, 50]]
"""


def rows(n: int, seed: int = 0):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = y[:, None] * np.array([0.6, 1.0, 1.6]) + rng.normal(size=(n, 3))
    return pandas.DataFrame(X, columns=NAMES), y


@pytest.fixture(scope="module")
def policy() -> AdaCOSClassifier:
    costs = Costs(PRICES, misclassification=REFER, decisions=DECISIONS)
    return AdaCOSClassifier(costs, cv=3, strengths="common").fit(*rows(300))


def test_a_model_file_keeps_decisions(policy, tmp_path):
    save(policy, tmp_path / "model.adacos")
    loaded = load(tmp_path / "model.adacos")
    X, _ = rows(50, seed=1)
    np.testing.assert_array_equal(loaded.predict(X), policy.predict(X))
    assert loaded.decisions_.tolist() == list(DECISIONS)
    assert loaded.costs == policy.costs
    assert loaded.decider_.digest == policy.decider_.digest
    plan = PlanningClassifier(policy.costs, cv=3).fit(*rows(200))
    save(plan, tmp_path / "plan.adacos")
    np.testing.assert_array_equal(load(tmp_path / "plan.adacos").predict(X), plan.predict(X))


def test_the_card_says_when_what_is_decided(policy):
    card = model_card(policy)
    assert [one["decision"] for one in card["decisions"]] == list(DECISIONS)
    assert card["threshold"] is None
    assert card["decisions"][0]["below"] == card["decisions"][1]["above"]
    assert "refer between 2.2% and 53.3%" in rule_in_words(policy)
    json.dumps(card, allow_nan=False)


def test_the_service_answers_with_decisions(policy, tmp_path):
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from adacos.service.app import create_app
    from adacos.service.settings import Settings

    settings = Settings(case_log=f"sqlite:///{tmp_path / 'cases.db'}")
    client = TestClient(create_app(policy, settings), base_url="http://127.0.0.1")
    assert client.get("/openapi.json").status_code == 200
    step = client.post("/v1/step", json={"known": {"age": 0.2}, "stop": True}).json()
    own = policy.consultation({"age": 0.2}).stop().next().to_dict()
    assert step["label"] == own["label"]
    assert step["explanation"]["decisions"] == own["explanation"]["decisions"]
    X, y = rows(30, seed=2)
    scored = client.post("/v1/score", json={"rows": X.to_dict("records")}).json()["results"]
    assert [one["label"] for one in scored] == policy.predict(X).tolist()
    for number, (row, true) in enumerate(zip(X.to_dict("records"), y.tolist(), strict=True)):
        consultation = policy.consultation()
        acquired = {}
        while hasattr(step := consultation.next(), "covariates"):
            acquired |= {name: row[name] for name in step.covariates}
            consultation.observe({name: row[name] for name in step.covariates})
        case = {"id": f"case-{number}", "acquired": acquired}
        shown = client.post("/v1/cases", json=case).json()
        assert shown["label"] == scored[number]["label"]
        client.post(f"/v1/cases/case-{number}/outcome", json={"outcome": true})
    summary = client.get("/v1/cases/summary").json()
    label = [DECISIONS.index(one["label"]) for one in scored]
    paid = np.array([one["cost"] for one in scored]) + np.array(REFER)[y, label]
    assert summary["total_cost"]["observed"] == pytest.approx(paid.mean())
    assert summary["total_cost"]["low"] <= paid.mean() <= summary["total_cost"]["high"]
    assert "recall" not in summary


def test_the_report_counts_decisions(policy, tmp_path):
    pytest.importorskip("matplotlib")
    X, y = rows(120, seed=3)
    reported = write_report(policy, X, y, tmp_path / "report.html", "Report")
    label = policy.predict(X)
    assert reported["decisions"] == {name: float(np.mean(label == name)) for name in DECISIONS}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Classes and decisions" in page
    assert "everyone refer" in page
    assert "specificity" not in page


def write(path: Path, X, y=None) -> Path:
    table = X.copy()
    if y is not None:
        table["sick"] = y
    table.to_csv(path, index=False)
    return path


def test_the_command_line_fits_scores_and_asks_with_decisions(tmp_path):
    runner, model = CliRunner(), tmp_path / "model.adacos"
    prices = tmp_path / "prices.toml"
    prices.write_text(TOML, encoding="utf-8")
    data = write(tmp_path / "train.csv", *rows(150))
    said = ["fit", str(data), "--target", "sick", "--prices", str(prices), "--out", str(model)]
    result = runner.invoke(app, said)
    assert result.exit_code == 0, result.output
    info = runner.invoke(app, ["info", str(model)]).output
    assert "refer 20" in info.replace("\n", " ")
    X, _ = rows(20, seed=4)
    new, out = write(tmp_path / "new.csv", X), tmp_path / "out.csv"
    assert runner.invoke(app, ["score", str(model), str(new), str(out)]).exit_code == 0
    with out.open(encoding="utf-8") as file:
        labels = [line["label"] for line in csv.DictReader(file)]
    assert labels == load(model).predict(X).tolist()
    asked = runner.invoke(app, ["ask", str(model)], input="0.1\nstop\n").output
    assert "refer between" in asked.replace("\n", " ")


def test_a_price_list_with_wrong_decisions_is_refused(tmp_path):
    prices, out = tmp_path / "prices.toml", tmp_path / "model.adacos"
    prices.write_text(TOML.replace('"refer", ', ""), encoding="utf-8")
    data = write(tmp_path / "train.csv", *rows(60))
    said = ["fit", str(data), "--target", "sick", "--prices", str(prices), "--out", str(out)]
    result = CliRunner().invoke(app, said)
    assert result.exit_code != 0
    assert "2 names for 3 columns" in str(result.exception)
    assert not out.exists()


def test_accuracy_is_refused_where_nothing_is_a_label(policy):
    with pytest.raises(InvalidInputError, match="a decision is no class"):
        policy.score(*rows(20))

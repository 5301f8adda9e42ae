"""`adacos recalibrate`: a model for another place, and what it is told wrong."""

import html
import json

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier, load, save
from adacos.card import model_card
from adacos.service.app import create_app
from adacos.service.settings import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    rng = np.random.default_rng(0)
    for name, n, share in (("there", 500, 0.35), ("local", 250, 0.1)):
        ill = rng.random(n) < share
        frame = pd.DataFrame(rng.normal(size=(n, 3)) + ill[:, None], columns=["a", "b", "c"])
        frame["outcome"] = np.where(ill, "ill", "well")
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture
def model(run, folder):
    out = folder / "model.adacos"
    if out.exists():
        return out
    costs = ("--prices", "a=1", "--prices", "b=2", "--prices", "c=2", "--false-positive", 100)
    code, _, reported = run(
        "fit", folder / "there.csv", "--target", "outcome", "--positive", "ill",
        *costs, "--false-negative", 1000, "--out", out,
    )  # fmt: skip
    assert code == 0, reported
    return out


def test_a_known_prevalence(run, folder, model):
    out = folder / "here.adacos"
    code, printed, reported = run("recalibrate", model, "--prevalence", 0.04, "--out", out)
    assert code == 0, reported
    assert "Recalibrated from a prevalence of" in printed
    moved, policy = load(out), load(model)
    assert moved.recalibration_.after[1] == pytest.approx(0.04)
    assert moved.expected_cost_ < policy.expected_cost_
    assert policy.recalibration_ is None
    code, printed, _ = run("info", out, "--json")
    assert json.loads(printed)["recalibration"]["after"][1] == pytest.approx(0.04)
    report = folder / "report.html"
    data = ("--data", folder / "local.csv", "--target", "outcome", "--positive", "ill")
    assert run("report", out, *data, "--out", report)[0] == 0
    assert "Recalibrated from a prevalence" in report.read_text(encoding="utf-8")


def test_local_rows(run, folder, model):
    out = folder / "local.adacos"
    data = ("--data", folder / "local.csv", "--target", "outcome")
    code, printed, reported = run("recalibrate", model, *data, "--out", out, "--json")
    assert code == 0, reported
    found = json.loads(printed)["card"]["recalibration"]
    assert found["rows"] == 250
    assert 0.05 < found["after"][1] < 0.16
    assert f"± {found['shift_error'][0]:.2f}" in found["text"]


def test_what_is_reported_wrong(run, folder, model):
    data = ("--data", folder / "local.csv", "--target", "outcome")
    there = ("--data", folder / "there.csv", "--target", "outcome")
    out = folder / "none.adacos"
    for given, message in (
        ((), "--prevalence: must be given, or --data"),
        ((*data, "--prevalence", 0.1), "not both"),
        (("--prevalence", 0.1, "--target", "outcome"), "must be given with --data"),
        (("--prevalence", 5), "must be"),
        (("--prevalence", "5%"), "Did you mean 0.05?"),
        (("--prevalence", "five"), "must be a share between 0 and 1"),
        (("--prevalence", "1=0.2,sick=0.8"), "must name classes"),
        (there, "must not be rows that the policy was trained on"),
    ):
        code, _, reported = run("recalibrate", model, *given, "--out", out)
        assert code == 2, given
        assert message in reported, (given, reported)
        assert not out.exists()
    code, _, reported = run("recalibrate", model, "--prevalence", 0.1, "--out", model)
    assert code == 2
    assert load(model).recalibration_ is None


def test_a_certificate_from_before_is_shown_nowhere(run, tmp_path):
    """In the card, info, a consultation, the service and the report, after a shift or lists."""
    rng = np.random.default_rng(0)
    y = rng.random(1200) < 0.4
    table = pd.DataFrame(rng.normal(size=(1200, 2)) + y[:, None], columns=["a", "b"]).round(4)
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs({"a": 1.0, "b": 2.0}, false_positive=50), cv=3, strengths="common"),
        target_recall=0.8,
        recall_confidence=0.9,
    ).fit(table[:800], y[:800].astype(int))
    promised = str(policy.certificate_)
    table.assign(outcome=y.astype(int))[800:].to_csv(tmp_path / "new.csv", index=False)
    models = {
        "as it was": policy,
        "recalibrated": policy.recalibrate(prevalence=0.1),
        "restricted": policy.restrict(never=["b"]),
    }
    for name, model in models.items():
        path, report = tmp_path / f"{name}.adacos", tmp_path / f"{name}.html"
        save(model, path)
        client = TestClient(create_app(load(path), Settings()), base_url="http://127.0.0.1")
        data = ("--data", tmp_path / "new.csv", "--target", "outcome")
        assert run("report", path, *data, "--out", report)[0] == 0
        shown = {
            "card": json.dumps(model_card(load(path))),
            "info": run("info", path)[1],
            "info --json": run("info", path, "--json")[1],
            "ask": run("ask", path, "--known", "a=0.3,b=0.2")[1],
            "model of the service": client.get("/v1/model").text,
            "report": html.unescape(report.read_text(encoding="utf-8")),
        }
        first = promised.split(".")[0][:60]
        found = [where for where, text in shown.items() if first in " ".join(text.split())]
        expected = [] if name != "as it was" else list(shown)
        assert found == expected, name
        if name != "as it was":
            assert client.get("/v1/model").json()["certificate"] is None

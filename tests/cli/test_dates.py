"""`--date COLUMN=PART`: what fit was told holds for every other command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adacos import load
from tests.cli.conftest import read_rows

OPTIONS = ("--target", "ill", "--default-price", 1, "--false-positive", 20, "--false-negative", 20)


def visits(n: int, seed: int) -> Any:
    """Ill in winter, mostly; the date is missing now and then."""
    rng = np.random.default_rng(seed)
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    winter = (when.month < 4) | (when.month > 10)
    ill = np.where(rng.random(n) < np.where(winter, 0.85, 0.15), "yes", "no")
    table = pd.DataFrame({"when": when, "x": rng.normal(size=n).round(4), "ill": ill})
    table.loc[rng.random(n) < 0.05, "when"] = pd.NaT
    return table


@pytest.fixture(scope="module")
def tables(tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("dates")
    table = visits(400, 0)
    for name, form in (("iso", "%Y-%m-%d"), ("point", "%d.%m.%Y"), ("us", "%m/%d/%Y")):
        table.assign(when=table["when"].dt.strftime(form)).to_csv(path / f"{name}.csv", index=False)
    table.to_parquet(path / "table.parquet")
    return path


@pytest.fixture(scope="module")
def expected(tables: Path) -> Any:
    """The same with the month as a number."""
    table = pd.read_parquet(tables / "table.parquet")
    table.assign(when=table["when"].dt.month).to_csv(tables / "month.csv", index=False)
    return tables / "month.csv"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("iso.csv", "month"),
        ("point.csv", "month"),
        ("us.csv", "month:month-first"),
        ("table.parquet", "month"),
    ],
)
def test_every_command_reads_dates_as_fit_did(run, tables, expected, tmp_path, name, form) -> None:
    model, plain = tmp_path / "m.adacos", tmp_path / "plain.adacos"
    code, _, reported = run(
        "fit", tables / name, *OPTIONS, "--date", f"when={form}", "--out", model
    )
    assert code == 0, reported
    assert "looks like dates" not in reported
    assert run("fit", expected, *OPTIONS, "--out", plain)[0] == 0
    assert load(model).encoder_.date_forms == {"when": form}
    answers = []
    for own, source in ((model, tables / name), (plain, expected)):
        for command in ("score", "next"):
            out = tmp_path / "out.csv"
            assert run(command, own, source, out, "--known", "when")[0] == 0
            answers.append([row["probability"] for row in read_rows(out)])
        curve = run("tradeoff", own, "--data", source, "--target", "ill", "--json")
        answers.append(json.loads(curve[1])["total_cost"])
        out = tmp_path / "r.html"
        reported = run("report", own, "--data", source, "--target", "ill", "--out", out, "--json")
        answers.append(json.loads(reported[1])["total_cost"])
        # A Parquet file has no line with names.
        line = 3 if source.suffix == ".parquet" else 4
        reported = run("explain", own, "--data", source, "--line", line, "--json")
        answers.append(json.loads(reported[1])["steps"][-1]["probability"])
    half = len(answers) // 2
    assert answers[:half] == answers[half:]


def test_a_date_is_typed_as_a_date(run, tables, tmp_path) -> None:
    model = tmp_path / "m.adacos"
    date = ("--date", "when=month", "--drop", "x")
    assert run("fit", tables / "iso.csv", *OPTIONS, *date, "--out", model)[0] == 0
    _, printed, _ = run("ask", model, answers="soon\n2026-01-31\n\n")
    assert "must be a date" in printed
    assert "a date such as 2026-01-31 (month, 1 to 12: 1 to 12)" in printed
    assert "yes" in printed
    steps = json.loads(run("explain", model, "--row", "when=31.01.2026", "--json")[1])["steps"]
    assert steps == json.loads(run("explain", model, "--row", "when=1", "--json")[1])["steps"]
    assert "when" in run("info", model)[1]


def test_mistakes_with_dates(run, tables, tmp_path) -> None:
    out = ("--out", tmp_path / "m.adacos")
    for form, reported in (
        ("when=months", "must say what is taken of a date"),
        ("when", "must be NAME=VALUE"),
        ("wen=month", "Did you mean when"),
        ("ill=month", "that no other option names"),
        ("x=month", "is no date, such as 2026-01-31"),
    ):
        code, _, err = run("fit", tables / "iso.csv", *OPTIONS, "--date", form, *out)
        assert code != 0
        assert reported in " ".join(err.split()), form
    code, _, err = run("fit", tables / "us.csv", *OPTIONS, "--date", "when=month", *out)
    assert code != 0
    assert "day or month first? Add :day-first" in " ".join(err.split())
    code, _, err = run("fit", tables / "iso.csv", *OPTIONS, *out)
    assert "--date when=month" in " ".join(err.split())
    assert run("fit", tables / "table.parquet", *OPTIONS, *out)[2].count("--date when=month") == 1


def test_the_service_takes_dates(run, tables, tmp_path) -> None:
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from adacos.service.app import create_app

    model = tmp_path / "m.adacos"
    date = ("--date", "when=month", "--drop", "x")
    assert run("fit", tables / "iso.csv", *OPTIONS, *date, "--out", model)[0] == 0
    client = TestClient(create_app(load(model)), base_url="http://localhost")
    reported = [
        client.post("/v1/step", json={"known": {"when": w}}).json() for w in ("2026-01-31", 1)
    ]
    assert reported[0]["explanation"] == reported[1]["explanation"]
    assert client.post("/v1/step", json={"known": {"when": "soon"}}).status_code == 422
    rows = {"rows": [{"when": "2026-01-31"}, {"when": 1}]}
    first, second = client.post("/v1/score", json=rows).json()["results"]
    assert first["probability"] == second["probability"]


def test_a_file_of_the_model_keeps_dates(run, tables, tmp_path) -> None:
    model, out = tmp_path / "m.adacos", tmp_path / "a.csv"
    days = ("--date", "when=days", "--out", model)
    assert run("fit", tables / "iso.csv", *OPTIONS, *days)[0] == 0
    source = tmp_path / "new.csv"
    with open(source, "w", newline="") as file:
        csv.writer(file).writerows([["when", "x"], ["2023-05-01", "0"], ["2029-05-01", "0"]])
    _, _, printed = run("score", model, source, out, "--known", "when", "--flag-unusual")
    assert [row["unusual"] for row in read_rows(out)] == ["", "when:implausible"]
    assert "implausible" in printed

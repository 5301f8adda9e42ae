"""The commands as a user runs them: output, exit codes, files, and messages without tracebacks."""

from __future__ import annotations

import csv
import json
import os
import re
import tomllib

import numpy as np
import pytest

import adacos
from adacos.tables.columns import ColumnTable
from adacos.tables.description import read_description
from tests.cli.conftest import read_rows


@pytest.mark.usefixtures("written_figures")
def test_from_export_to_decision(run, tmp_path):
    """The path of a new user: export, fit, info, ask, score, report."""
    assert run("datasets", "export", "heart", "--out", tmp_path)[0] == 0
    code, out, _ = run(
        "fit", tmp_path / "heart.csv", "--target", "y", "--prices", tmp_path / "heart.toml",
        "--false-positive", 100, "--false-negative", 1000, "--out", tmp_path / "m.adacos",
        "--json",
    )  # fmt: skip
    assert code == 0
    fitted = json.loads(out)
    assert fitted["rows"] == 303
    assert len(fitted["card"]["order"]) == 13
    code, out, _ = run("info", tmp_path / "m.adacos", "--json")
    assert code == 0
    assert json.loads(out) == fitted["card"]
    code, out, _ = run("ask", tmp_path / "m.adacos", answers="4\n1\n60\nskip\nskip\nskip\nstop")
    assert code == 0
    assert "Result: 1" in out
    arguments = ("score", tmp_path / "m.adacos", tmp_path / "heart.csv", tmp_path / "o.csv")
    assert run(*arguments)[0] == 0
    expected = adacos.load(tmp_path / "m.adacos").acquire(_table(adacos.load_heart(as_frame=False)))
    found = read_rows(tmp_path / "o.csv")
    assert [int(row["label"]) for row in found] == expected.label.tolist()
    assert [float(row["probability"]) for row in found] == expected.probability.tolist()
    assert found[0]["acquired"] == ";".join(expected.covariates(0))
    code, out, _ = run(
        "report", tmp_path / "m.adacos", "--data", tmp_path / "heart.csv", "--target", "y",
        "--out", tmp_path / "r.html",
    )  # fmt: skip
    assert code == 0
    assert (tmp_path / "r.html").stat().st_size > 50_000


def _table(data):
    return ColumnTable({name: data.X[:, k] for k, name in enumerate(data.names)})


def test_discounted_costs_of_a_panel(run, folder, tmp_path):
    prices = tmp_path / "prices.toml"
    text = (folder / "prices.toml").read_text()
    common = 'shared = 2.10\nmembers = ["Glucose", "Insulin"]\n'
    assert common in text
    prices.write_text(text.replace(common, "discounted = {Glucose = 15.51, Insulin = 2.78}\n"))
    arguments = ("--target", "diabetes", "--drop", "id", "--prices", prices, "--policy", "cos")
    model = tmp_path / "m.adacos"
    assert run("fit", folder / "train.csv", *arguments, "--out", model)[0] == 0
    code, out, _ = run("info", model, "--json")
    assert code == 0
    (panel,) = json.loads(out)["panels"]
    assert panel == {
        "name": "blood",
        "shared": None,
        "members": ["Glucose", "Insulin"],
        "discounted": {"Glucose": 15.51, "Insulin": 2.78},
    }
    said = " ".join(run("info", model)[1].split())
    assert re.search(r"the others cost less: Glucose 15.51\W.*Insulin 2.78", said)
    out = tmp_path / "report.html"
    data = ("--data", folder / "train.csv", "--target", "diabetes")
    assert run("report", model, *data, "--out", out)[0] == 0
    assert "Insulin 2.78" in out.read_text()
    prices.write_text(text.replace(common, "discounted = {Glucose = 15.51, Insuline = 2.78}\n"))
    code, _, error = run("fit", folder / "train.csv", *arguments, "--out", model)
    assert code != 0
    assert "Insulin" in error
    prices.write_text(text.replace(common, "discounted = 3\n"))
    code, _, error = run("fit", folder / "train.csv", *arguments, "--out", model)
    assert code != 0
    assert "discounted" in error


def test_fit_options(run, folder, tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text("covariate,cost\nGlucose,17.61\nInsulin,22.78\n")
    code, out, _ = run(
        "fit", folder / "train.csv", "--target", "diabetes", "--drop", "id", "--prices", prices,
        "--prices", "Age=2", "--default-price", 1, "--panel", "blood=2.10:Glucose,Insulin",
        "--target-recall", 0.9, "--false-positive", 100, "--policy", "cos",
        "--out", tmp_path / "m.adacos", "--json",
    )  # fmt: skip
    assert code == 0
    card = json.loads(out)["card"]
    cost = {item["name"]: item["cost"] for item in card["covariates"]}
    assert cost["Age"] == 2
    assert cost["Glucose"] == 17.61
    assert cost["BMI"] == 1
    assert (card["policy"], card["wraps"]) == ("TargetRecallClassifier", "COSClassifier")
    assert card["target_recall"] == 0.9
    assert card["panels"] == [
        {
            "name": "blood",
            "shared": 2.1,
            "members": ["Glucose", "Insulin"],
            "discounted": {"Glucose": 15.51, "Insulin": 20.68},
        }
    ]


def test_text_columns_and_classes(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["colour,size,state"]
    for _ in range(300):
        colour, size = rng.choice(["red", "blue", "NA"]), rng.normal()
        ill = rng.random() < (0.8 if colour == "red" else 0.3)
        lines.append(f"{colour},{size:.3f},{'case' if ill else 'control'}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    arguments = ("fit", tmp_path / "t.csv", "--target", "state", "--default-price", 1,
                 "--false-positive", 100, "--false-negative", 100)  # fmt: skip
    code, out, _ = run(*arguments, "--out", tmp_path / "a", "--json")
    card = json.loads(out)["card"]
    assert code == 0
    assert card["classes"] == ["case", "control"]
    assert card["covariates"][0]["categories"] == ["blue", "red"]
    _, out, _ = run(*arguments, "--positive", "case", "--out", tmp_path / "b", "--json")
    assert json.loads(out)["card"]["classes"] == [0, 1]
    code, out, _ = run("ask", tmp_path / "b", answers="green\nquit")
    assert "was never seen in training" in out


def test_ask_with_undo_why_and_another_covariate(run, folder):
    answers = "why\nnonsense\n33.5\nundo\n33.5\nhelp\nGlucose=170\nstop"
    code, out, _ = run("ask", folder / "model.adacos", "--known", "Age=50", answers=answers)
    assert code == 0
    assert "Expected total cost: " in out
    assert "must be a number" in out
    assert "NAME=VALUE" in out
    assert "Result: 1" in out
    code, out, _ = run("ask", folder / "model.adacos", answers="quit")
    assert code == 1


def test_a_decision_can_be_taken_back(run, folder):
    answers = "3350\n3350\nundo\n33.5\nstop\n\n"
    code, out, _ = run("ask", folder / "model.adacos", "--known", "Age=50", answers=answers)
    assert code == 0
    assert " ".join(out.split()).count("the unit may be wrong") == 1
    assert out.count("Result:") == 2


def test_ask_in_json(run, folder):
    code, out, _ = run("ask", folder / "model.adacos", "--json", answers="33\nskip\nstop")
    steps = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert steps[0]["action"] == "acquire"
    assert steps[-1]["action"] == "classify"
    assert steps[-1]["state"]["events"][0] == {"observe": {steps[0]["covariates"][0]: 33.0}}


def test_explain(run, folder):
    row = "Age=50,BMI=33,Glucose=150,Insulin=0,Pregnancies=2,SkinThickness=20"
    code, out, _ = run("explain", folder / "model.adacos", "--row", row)
    assert code == 0
    assert "Classify as" in out
    code, out, _ = run(
        "explain", folder / "model.adacos", "--data", folder / "held_out.csv", "--line", 5, "--json"
    )
    content = json.loads(out)
    assert code == 0
    assert content["steps"][-1]["action"] == "classify"
    held_out = (folder / "held_out.csv").read_text().splitlines()[4].split(",")
    assert content["values"]["Pregnancies"] == float(held_out[1])


def test_score_with_known_and_kept_columns(run, folder, tmp_path):
    out = tmp_path / "answers.csv"
    code, printed, _ = run(
        "score", folder / "model.adacos", folder / "held_out.csv", out, "--keep", "id",
        "--known", "Age", "--chunk-rows", 37, "--json",
    )  # fmt: skip
    assert code == 0
    rows = read_rows(out)
    assert json.loads(printed)["rows"] == len(rows) == 268
    assert rows[0]["id"].startswith("p")
    assert not any("Age" in row["acquired"].split(";") for row in rows)


def test_parquet_goes_in_and_out(run, folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from pyarrow import csv as arrow_csv

    parquet.write_table(arrow_csv.read_csv(folder / "held_out.csv"), tmp_path / "in.parquet")
    for source, out in ((folder / "held_out.csv", "a.csv"), (tmp_path / "in.parquet", "b.parquet")):
        assert run("score", folder / "model.adacos", source, tmp_path / out)[0] == 0
    found = parquet.read_table(tmp_path / "b.parquet").to_pydict()
    rows = read_rows(tmp_path / "a.csv")
    assert found["probability"] == [float(row["probability"]) for row in rows]


def test_malformed_rows_are_reported_with_their_lines(run, folder, tmp_path):
    lines = (folder / "held_out.csv").read_text().splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[6], "tall", 1)
    lines[7] += ",9"
    lines[9] = lines[9].rsplit(",", 2)[0]
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "o.csv"
    code, _, err = run("score", folder / "model.adacos", tmp_path / "bad.csv", out)
    assert code == 2
    for text in ("line 4: 'tall' in column", "line 8: cells: 11 instead of 10", "line 10: cells"):
        assert text in err
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.csv"]
    code, printed, err = run(
        "score", folder / "model.adacos", tmp_path / "bad.csv", out, "--skip-malformed", "--json"
    )
    assert code == 0
    assert [bad["line"] for bad in json.loads(printed)["malformed"]] == [4, 8, 10]
    assert json.loads(printed)["rows"] == 265
    assert "line 8" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere.adacos"], "must be an existing file"),
        (["fit", "nowhere.csv", "--target", "y"], "must exist"),
        (["fit", "{train}", "--target", "nowhere"], "must name a column"),
        (["fit", "{train}", "--target", "diabetes", "--prices", "Age=dear"], "must be a number"),
        (["fit", "{train}", "--target", "diabetes", "--prices", "Age=1"], "every column needs"),
        (["fit", "{train}", "--target", "diabetes", "--panel", "blood"], "NAME=SHARED"),
        (
            [
                "fit",
                "{train}",
                "--target",
                "id",
                "--default-price",
                "1",
                "--false-positive",
                "1",
                "--false-negative",
                "1",
            ],
            "must hold two classes",
        ),
        (["fit", "{train}", "--target", "diabetes", "--policy", "luck"], "must be one of"),
        (["explain", "{model}"], "one of the two is needed"),
        (["explain", "{model}", "--row", "Age"], "NAME=VALUE"),
        (["explain", "{model}", "--row", "Height=3"], "must be a covariate"),
        (["explain", "{model}", "--row", "Age=3", "--known", "BMI"], "needs a value"),
        (["score", "{model}", "{prices}", "o.csv"], "must have a covariate of the model"),
        (["score", "{model}", "{train}", "o.csv", "--known", "Height"], "must name covariates"),
        (["score", "{model}", "{train}", "nowhere/o.csv"], "its folder must exist"),
        (["score", "{train}", "{train}", "o.csv"], "is not an adacos model; create one"),
        (["report", "{model}", "--data", "{train}", "--target", "id"], "classes must be"),
        (["score", "{model}", "{train}", "o.xlsx"], "must end in .csv, .parquet or .pq"),
        (["score", "{model}", "{train}", "o.csv", "--keep", "Id"], "Did you mean id?"),
        (["datasets", "export", "nowhere"], "must be a bundled table"),
        (["nonsense"], "No such command"),
        (["fit", "--target"], ""),
    ],
)
def test_mistakes_end_with_code_2_and_one_message(run, folder, tmp_path, arguments, message):
    files = {
        "train": folder / "train.csv",
        "model": folder / "model.adacos",
        "prices": folder / "prices.toml",
    }
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        code, out, err = run(*(str(a).format(**files) for a in arguments))
    finally:
        os.chdir(before)
    assert code == 2
    assert message in " ".join(err.split())
    assert out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [["fit"], ["ask"], ["score"], ["next"], ["explain"], ["report"], ["info"], ["datasets"],
     ["datasets", "list"], ["datasets", "export"]],
)  # fmt: skip
def test_every_help_has_an_example(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "Example:" in out
    assert f"adacos {command[0]}" in out


def test_version_and_list(run):
    assert run("--version")[1].strip() == adacos.__version__
    for command in (["datasets"], ["datasets", "list"]):
        _, out, _ = run(*command, "--json")
        assert {item["name"] for item in json.loads(out)} == {"pima", "wisconsin", "heart"}


def test_the_list_of_data_sets(run):
    code, out, _ = run("datasets", "list", "--json")
    assert code == 0
    found = {item["name"]: item for item in json.loads(out)}
    assert found["pima"]["rows"] == 768
    assert found["pima"]["positives"] == 268
    assert "physionet" not in found, "its file is the user's to bring"
    _, text, _ = run("datasets", "list")
    assert [line.split()[0] for line in text.splitlines()] == list(found)


def test_the_exported_pima_has_no_zero_that_was_not_recorded(run, tmp_path):
    """A page must not offer a body mass index of 0, nor a demo advise on one of 0.55."""
    code, out, _ = run("datasets", "export", "pima", "--out", tmp_path, "--json")
    assert code == 0
    reported = json.loads(out)
    with open(reported["table"], newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI"):
        assert min(float(row[name]) for row in rows if row[name]) > 0
    description = read_description(reported["description"])
    assert set(description.covariates) == set(rows[0]) - {"y"}
    for name, own in description.covariates.items():
        low, high = own.range
        values = [float(row[name]) for row in rows if row[name]]
        assert low <= min(values)
        assert max(values) <= high


def test_an_exported_table_is_read_back_as_it_was(run, tmp_path):
    code, out, _ = run("datasets", "export", "heart", "--out", tmp_path, "--json")
    assert code == 0
    reported = json.loads(out)
    data = adacos.load_heart(as_frame=False)
    with open(reported["table"], newline="") as file:
        header, *lines = csv.reader(file)
    assert header == [*data.names, reported["target"]]
    values = np.array([[float(cell or "nan") for cell in line[:-1]] for line in lines])
    np.testing.assert_allclose(values, data.X, rtol=1e-11)
    assert [int(line[-1]) for line in lines] == data.y.tolist()
    with open(reported["prices"], "rb") as file:
        prices = tomllib.load(file)
    assert prices["prices"] == data.prices
    panels = {name: (p["shared"], p["members"]) for name, p in prices["panels"].items()}
    assert panels == {name: (shared, list(who)) for name, (shared, who) in data.panels.items()}


@pytest.mark.parametrize(
    ("line", "message"), [(3, "must be readable"), (9, "rows.csv has rows on lines 2 to 4")]
)
def test_explain_refuses_a_line_that_is_no_row(run, folder, tmp_path, line, message):
    header, first, second = (folder / "held_out.csv").read_text().splitlines()[:3]
    data = tmp_path / "rows.csv"
    data.write_text(f"{header}\n{first}\n{second},one,too,many\n{first}\n")
    code, _, err = run("explain", folder / "model.adacos", "--data", data, "--line", line)
    assert code == 2
    assert message in err
    assert run("explain", folder / "model.adacos", "--data", data, "--line", 4)[0] == 0


def test_the_terminal_shows_how_far_a_fit_is(monkeypatch):
    from contextlib import contextmanager

    from adacos.cli import fit as command
    from adacos.cli.training import TrainingRows

    reported = []

    @contextmanager
    def terminal(what, quiet, unit="rows"):
        yield lambda done, share: reported.append((unit, done, share))

    monkeypatch.setattr(command, "progress", terminal)
    rng = np.random.default_rng(0)
    table = ColumnTable({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    y = (table.column("a") > 0).astype(int)
    rows = TrainingRows(table, y, 80, [], {}, {})
    policy = adacos.AdaCOSClassifier(adacos.Costs([1.0, 1.0]), cv=2, strengths="common")
    command._learn(policy, rows, 0.0, nested=False, as_json=False)
    assert [(unit, done) for unit, done, _ in reported] == [("sets", k) for k in (1, 2, 3)]
    shares = [share for *_, share in reported]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_progress_is_silent_in_a_pipe(capsys):
    from adacos.cli.common import progress

    with progress("fitting", False, "sets") as report:
        report(1, 0.5)
    assert capsys.readouterr() == ("", "")

"""A table as a clinic would export it: brackets and commas in names, true and false, none."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import adacos

NAMES = ["Age", "Systolic BP [mmHg]", "Chest pain", "Smoker", "CRP mg/L", "Troponin, ng/L"]
PRICES = """\
[prices]
Age = 0.5
"Systolic BP [mmHg]" = 2
"Chest pain" = 1
Smoker = 1
"CRP mg/L" = 15
"Troponin, ng/L" = 45

[panels."blood [draw]"]
shared = 8
members = ["CRP mg/L", "Troponin, ng/L"]
"""
ROW = (
    "Age=50,Chest pain=mild, at rest,Smoker=True,CRP mg/L=2,Troponin, ng/L=7,Systolic BP [mmHg]=130"
)


def patients(n: int = 400) -> list[list[object]]:
    rng = np.random.default_rng(1)
    pains = {"none": -0.6, "typical": 0.9, "mild, at rest": 0.2, "crushing [severe]": 1.6}
    rows = []
    for _ in range(n):
        age, pressure, smoker = rng.integers(30, 85), round(rng.normal(135, 18)), rng.random() < 0.4
        pain = rng.choice(list(pains), p=[0.5, 0.2, 0.2, 0.1])
        crp, troponin = (round(float(np.exp(x)), 1) for x in rng.normal([1.2, 2], [0.9, 0.8]))
        score = 0.03 * (age - 57) + 0.8 * smoker + pains[pain] + 0.02 * (pressure - 135)
        score += 0.8 * (np.log(crp) - 1.2) + 1.5 * (np.log(troponin) - 2) - 0.3
        state = "sick" if rng.random() < 1 / (1 + np.exp(-score)) else "healthy"
        shown = "n/a" if rng.random() < 0.06 else crp
        rows.append([age, pressure, str(pain), bool(smoker), shown, troponin, state])
    return rows


@pytest.fixture(scope="module")
def clinic(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clinic")
    with open(path / "t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([[*NAMES, "state"], *patients()])
    (path / "prices.toml").write_text(PRICES)
    return path


@pytest.fixture
def fit(run, clinic):
    def call(*more: object, table: str = "t.csv", prices: bool = True):
        listed = ["--prices", clinic / "prices.toml"] if prices else []
        return run("fit", clinic / table, "--target", "state", *listed,
                   "--out", clinic / "new.adacos", *more)  # fmt: skip

    return call


@pytest.fixture
def model(fit, clinic) -> Path:
    """Fitted once: errors dear enough that everything may be asked for."""
    path = clinic / "model.adacos"
    if not path.exists():
        assert fit("--false-positive", 500, "--false-negative", 600, "--out", path)[0] == 0
    return path


def words(text: str) -> str:
    """Text without its line breaks."""
    return " ".join(text.split())


def test_names_in_brackets_are_printed_as_they_are(run, fit, model):
    _, out, _ = fit("--false-positive", 500, "--false-negative", 600)
    for text in ("[mmHg]", "crushing", "[severe]", "Panel blood [draw]"):
        assert text in out
    _, out, _ = run("ask", model, "--known", "Age=60,Chest pain=typical,Smoker=no", answers="why")
    assert "Systolic BP [mmHg]?" in out
    assert "Worth asking Systolic BP [mmHg]" in out
    _, out, _ = run("explain", model, "--row", ROW)
    assert "Acquire Systolic BP [mmHg] for 2.00." in out
    lines = out.splitlines()
    start = max(k for k, line in enumerate(lines) if line.startswith("Contributions")) + 1
    table = [line for line in lines[start:] if line.startswith("  ")]
    assert len(table) == 6
    signs = {max(line.rfind(" +"), line.rfind(" -")) for line in table}
    assert len(signs) == 1


def test_costs_of_errors_must_be_given(fit, clinic):
    for given, absent in (
        ([], "--false-positive and --false-negative: what a wrong answer costs must be given"),
        (["--false-positive", 100], "--false-negative: what a wrong answer costs"),
        (["--false-negative", 100], "--false-positive: what a wrong answer costs"),
        (["--target-recall", 0.9], "--false-positive: what a wrong answer costs"),
    ):
        code, out, err = fit(*given)
        assert code == 2
        assert out == ""
        assert absent in err
        assert "under [errors]" in err
        assert ("--target-recall" in err) == ("--false-negative" in absent)
    (clinic / "errors.toml").write_text("[prices]\n[errors]\nfalse_positive = 7\n")
    code, out, _ = fit("--prices", clinic / "errors.toml", "--false-negative", 100, "--json")
    assert code == 0
    card = json.loads(out)["card"]
    assert card["misclassification_costs"] == [[0, 7], [100, 0]]
    assert not card["false_negative_implied"]


def test_prices_must_be_given(fit):
    code, _, err = fit("--false-positive", 100, "--false-negative", 100, prices=False)
    assert code == 2
    assert "every column needs a covariate cost" in err
    assert "--default-price" in err


def test_a_target_recall_implies_the_false_negative_cost(fit):
    arguments = ("--target-recall", 0.9, "--false-positive", 500)
    code, out, err = fit(*arguments)
    assert code == 0
    assert "it follows from the target recall" in words(out)
    assert err == ""
    code, out, err = fit(*arguments, "--false-negative", 700)
    assert code == 2
    assert "--target-recall: cannot be combined with a false-negative cost" in words(err)


def test_none_is_a_category_and_missing_values_are_reported(run, fit):
    arguments = ("--false-positive", 500, "--false-negative", 600)
    _, out, _ = fit(*arguments, "--json")
    fitted = json.loads(out)
    assert "none" in fitted["card"]["covariates"][2]["categories"]
    assert list(fitted["missing"]) == ["CRP mg/L"]
    assert 0.03 < fitted["missing"]["CRP mg/L"] < 0.1
    _, out, _ = fit(*arguments)
    assert f"Missing values: CRP mg/L {fitted['missing']['CRP mg/L']:.1%}" in out
    _, out, _ = run("fit", "--help")
    assert "NA, N/A, NaN, null and ?" in words(out)
    assert "none is a category" in words(out)


def test_names_with_commas_in_pairs(run, fit, model):
    code, out, _ = run("explain", model, "--row", ROW, "--json")
    assert code == 0
    values = json.loads(out)["values"]
    assert values["Troponin, ng/L"] == 7
    assert values["Chest pain"] == "mild, at rest"
    assert len(values) == 6
    known = '"Troponin, ng/L"=7,Chest pain="mild, at rest",Age=50'
    code, out, _ = run("ask", model, "--known", known, "--json", answers="quit")
    assert code == 1
    assert json.loads(out.splitlines()[0])["covariates"] == ["Smoker"]
    code, out, _ = run("ask", model, "--json", answers="Troponin, ng/L=7, Smoker = no\nstop")
    assert code == 0
    events = json.loads(out.splitlines()[-1])["state"]["events"]
    assert events == [{"observe": {"Troponin, ng/L": 7.0, "Smoker": 0.0}}, {"stop": True}]
    code, out, _ = fit(
        "--prices", "Troponin, ng/L=40,Age=2", "--default-price", 1, "--false-positive", 100,
        "--panel", "blood=0.5:Troponin, ng/L, CRP mg/L", "--false-negative", 100, "--json",
        prices=False,
    )  # fmt: skip
    assert code == 0
    card = json.loads(out)["card"]
    assert [item["cost"] for item in card["covariates"]] == [2, 1, 1, 1, 1, 40]
    assert card["panels"][0]["members"] == ["CRP mg/L", "Troponin, ng/L"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "{model}", "--known", "Age"], "For example --known Age=30."),
        (["ask", "{model}", "--known", "Age=4,Age=5"], "For example --known Age=30."),
        (["ask", "{model}", "--known", "Age="], "For example --known Age=30."),
        (["ask", "{model}", "--known", "Agee=4"], "Age? The covariates are Age, Systolic BP"),
        (["explain", "{model}", "--row", "Age"], "For example --row Age=30."),
        (["explain", "{model}", "--row", "Age=4,Smoke=no"], "Did you mean Smoker?"),
        (["explain", "{model}", "--row", "Troponon, ng/L=4"], 'mean "Troponin, ng/L"?'),
        (["explain", "{model}", "--row", "Age=31,2"], "Use a decimal point"),
        (["explain", "{model}", "--row", "Age=nan"], "Leave it out if there is no value"),
        (["explain", "{model}", "--row", "Age=yes"], "must be a number"),
        (["fit", "{table}", "--target", "State"], "Did you mean state?"),
        (["fit", "{table}", "--target", "state", "--drop", "Smokr"], "Did you mean Smoker?"),
        (["fit", "{table}", "--target", "state", "--drop", "Age,Smokr"], "received Smokr. Did you"),
        (["fit", "{table}", "--target", "state", "--drop", "state"], "must leave the target"),
        (["fit", "{table}", "--target", "state", "--prices", "Age="], "For example --prices Age="),
        (["fit", "{table}", "--target", "state", "--prices", "age=3"], "Did you mean Age?"),
        (["fit", "{table}", "--target", "state", "--panel", "b=1:age,Smoker"], "Did you mean Age?"),
        (
            ["fit", "{table}", "--target", "state", "--default-price", "1", "--false-positive", "1",
             "--false-negative", "1", "--positive", "Sick"],
            "received Sick. Did you mean sick? It has healthy, sick.",
        ),
        (
            ["fit", "{table}", "--target", "state", "--recall-confidence", "0.9"],
            "For example --target-recall 0.95.",
        ),
        (
            ["fit", "{table}", "--target", "state", "--target-recall", "0.9", "--always-positive"],
            "Add --recall-confidence",
        ),
        (
            ["fit", "{table}", "--target", "state", "--target-recall", "0.9", "--largest"],
            "--largest: is for a recall that cannot be certified",
        ),
        (
            ["fit", "{table}", "--target", "state", "--target-recall", "0.9",
             "--recall-confidence", "0.9", "--largest", "--always-positive"],
            "cannot be given with --always-positive",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_what_was_meant(run, model, clinic, arguments, message):
    code, out, err = run(*(a.format(model=model, table=clinic / "t.csv") for a in arguments))
    assert code == 2
    assert out == ""
    assert message in words(err)


def test_true_and_false_are_the_same_in_csv_and_parquet(run, fit, clinic, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    columns = dict(zip([*NAMES, "state"], map(list, zip(*patients(), strict=True)), strict=True))
    columns["CRP mg/L"] = [None if cell == "n/a" else cell for cell in columns["CRP mg/L"]]
    parquet.write_table(pyarrow.table(columns), clinic / "t.parquet")
    prints = []
    for table in ("t.csv", "t.parquet"):
        path = tmp_path / f"{table}.adacos"
        code, out, _ = fit("--false-positive", 500, "--false-negative", 600, "--out", path,
                           "--json", table=table)  # fmt: skip
        assert code == 0
        prints.append(json.loads(out)["card"]["model"])
        answers = []
        for source in ("t.csv", "t.parquet"):
            assert run("score", path, clinic / source, tmp_path / "o.csv")[0] == 0
            answers.append((tmp_path / "o.csv").read_text())
        assert answers[0] == answers[1]
    assert prints[0] == prints[1]


@pytest.mark.parametrize("word", ["yes", "True", "1", "no", "false", "0"])
def test_words_for_a_binary_covariate(run, model, word):
    _, out, _ = run("explain", model, "--row", f"Smoker={word}", "--json")
    assert json.loads(out)["values"] == {"Smoker": float(word in ("yes", "True", "1"))}


def test_an_answer_never_seen_is_asked_for_again(run, model):
    code, out, _ = run("ask", model, answers="crushing\nnone\n200\nquit")
    assert code == 1
    assert 'one of: crushing [severe], "mild, at rest", none, typical' in out
    assert "Did you mean crushing [severe]? Type it again" in words(out)
    assert out.count("Chest pain?") == 2
    assert "in training: 0 or 1 (no or yes)" in out
    assert "only 0 or 1. Type it again" in words(out)
    assert out.rindex("paid so far 1.00") == out.rindex("paid so far")
    answers = "foo\nfoo\nAge=550\nAge=55\nstop"
    code, out, _ = run("ask", model, "--json", answers=answers)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    repeated = [line["message"] for line in lines if line["action"] == "repeat"]
    assert [text.split(" = ")[0] for text in repeated] == ["Chest pain", "Age"]
    events = [event.get("observe") for event in lines[-1]["state"]["events"]]
    assert events[:2] == [{"Chest pain": "foo"}, {"Age": 55.0}]


def test_a_warning_is_reported_once(run, model):
    _, out, _ = run("ask", model, answers="Age=20\nnone\nno\nquit")
    assert out.count("Age = 20 lies outside the training range") == 1
    _, out, _ = run("ask", model, answers="foo\nfoo\nSmoker=no\nstop")
    assert out.count("never seen in training") == 1
    assert "none of the categories" not in out


def test_hints_of_a_consultation_name_its_own_words(run, model):
    _, out, _ = run("ask", model, answers="Age=55\nAge=33\nFoo=3\nSmoker=\nNA\nquit")
    text = words(out)
    assert "undo takes the last answer back" in text
    assert "undo()" not in text
    assert "For example Age=30" in text
    assert "Type skip if there is no value" in text
    assert "--" not in text


def test_a_lowered_price_is_explained(run, fit, model):
    note = "8.00 of the list price already paid with CRP mg/L"
    first = "Age=50,Chest pain=mild, at rest,Smoker=yes,Systolic BP [mmHg]=130"
    _, out, _ = run("ask", model, "--known", first, answers="2\nquit")
    assert f"costs 37.00 ({note}), paid so far 15.00" in words(out)
    _, out, _ = run("explain", model, "--row", ROW)
    assert f"Acquire Troponin, ng/L for 37.00 ({note})." in words(out)
    _, out, _ = run("info", model)
    panel = 'Panel blood [draw]: CRP mg/L, "Troponin, ng/L" share 8 of their cost, paid once'
    assert panel in words(out)


def test_certificates_speak_the_command_line(run, fit, clinic):
    arguments = ("--target-recall", 0.995, "--recall-confidence", 0.95, "--false-positive", 500)
    code, _, err = fit(*arguments)
    assert code == 2
    assert "with --always-positive" in err
    assert "in this same attempt with --largest" in err
    assert "on_uncertifiable" not in err
    code, out, _ = fit(*arguments, "--always-positive")
    assert code == 0
    assert "false negative never." in out
    assert "training rows (200 more for calibration)" in words(out)
    _, out, _ = fit(*arguments, "--always-positive", "--json")
    fitted = json.loads(out)
    assert fitted["calibration_rows"] == 400 - fitted["card"]["training_rows"] > 190
    _, out, _ = run("info", clinic / "new.adacos")
    assert "(others for calibration)" in words(out)


def test_the_largest_recall_is_certified_where_the_one_asked_for_is_not(run, fit, clinic):
    arguments = ("--target-recall", 0.995, "--recall-confidence", 0.95, "--false-positive", 500)
    _, _, refusal = fit(*arguments)
    code, _, err = fit(*arguments, "--largest")
    assert code == 0, err
    policy = adacos.load(clinic / "new.adacos")
    assert policy.recall_aim.on_uncertifiable == "largest"
    assert 0 < policy.certificate_.bound < 0.995
    assert not policy.always_positive_
    offered = float(words(refusal).partition("A recall of ")[2].partition(" ")[0])
    assert offered == pytest.approx(policy.certificate_.bound, abs=1e-4)


def test_stopping_at_once_is_among_the_stops(run, model):
    _, out, _ = run("info", model)
    _, printed, _ = run("info", model, "--json")
    cost = json.loads(printed)["out_of_fold_cost_by_set"][0]
    (line,) = [line for line in out.splitlines() if "nothing acquired" in line]
    assert f"{cost:.2f}" in line


WORDS = """\
[classes]
0 = "healthy"
1 = "needs a bed"
[covariates."CRP mg/L"]
label = "C-reactive protein"
[covariates."Chest pain".values]
none = "no pain"
typical = "typical pain"
"""


def test_every_command_speaks_the_description(run, fit, clinic):
    (clinic / "words.toml").write_text(f'currency = "EUR"\n{WORDS}')
    errors = "--false-positive", 500, "--false-negative", 600, "--positive", "sick"
    described = *errors, "--describe", clinic / "words.toml"
    model = clinic / "described.adacos"
    assert fit(*described, "--out", model)[0] == 0
    code, out, _ = run("explain", model, "--row", ROW)
    text = words(out)
    assert code == 0
    assert "Acquire C-reactive protein for 15.00 EUR." in text
    assert not re.findall(r"\d\.\d\d(?! EUR|\d|%)", text.partition("Contributions")[0])
    assert "Classify as needs a bed (" in text or "Classify as healthy (" in text
    assert "already paid with C-reactive protein" in text
    assert "CRP" not in text
    known = "Age=50,Smoker=yes,Systolic BP [mmHg]=130"
    _, out, _ = run("ask", model, "--known", known, answers="No pain\nquit")
    assert "Did you mean no pain?" in words(out)
    code, out, _ = run("score", model, clinic / "t.csv", clinic / "answers.csv")
    assert code == 0
    assert " x healthy, " in words(out)
    assert re.search(r"mean expected total cost \d+\.\d\d EUR", words(out))


def test_several_free_questions_ask_for_names(run, fit, clinic):
    errors = "--false-positive", 500, "--false-negative", 600
    prices = "--prices", "Age=0,Smoker=0", "--default-price", 5
    model = clinic / "free.adacos"
    assert fit(*prices, *errors, "--out", model, prices=False)[0] == 0
    _, out, _ = run("ask", model, answers="50\nAge=50, Smoker=yes\nquit")
    assert "Age and Smoker? costs" in words(out)
    assert "Age, in training: 30 to 84 Smoker, in training: 0 or 1" in words(out)
    assert "Age=, Smoker=> ! needs a name; received 50" in words(out)
    assert out.count("Age=, Smoker=> ") == 2


def test_names_of_classes_follow_the_positive_class(fit, clinic):
    (clinic / "words.toml").write_text('[classes]\nsick = "needs a bed"\nhealthy = "goes home"\n')
    described = (
        "--false-positive",
        500,
        "--false-negative",
        600,
        "--describe",
        clinic / "words.toml",
    )
    code, out, _ = fit(*described)
    assert code == 0
    assert "Positive class: sick, the second in order (for the other --positive healthy)" in words(
        out
    )
    # With --positive the classes of the model are 0 and 1; the file may name those of the table.
    model = clinic / "named.adacos"
    assert fit(*described, "--positive", "healthy", "--out", model)[0] == 0
    assert adacos.load(model).description_.classes == {"0": "needs a bed", "1": "goes home"}
    (clinic / "words.toml").write_text('[classes]\nsick = "needs a bed"\nfine = "goes home"\n')
    code, _, err = fit(*described, "--positive", "sick")
    assert code == 2
    assert "must name 0 and 1, or healthy and sick; received sick, fine." in words(err)


def test_a_column_that_is_refused_takes_no_time(fit, clinic):
    rows = [[*NAMES, "visit", "file", "state"]]
    rows += [[*row[:-1], f"day {k}", f"no {k}", row[-1]] for k, row in enumerate(patients())]
    with open(clinic / "visits.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    errors = "--default-price", 1, "--false-positive", 500, "--false-negative", 600
    code, _, err = fit(*errors, table="visits.csv")
    assert code == 2
    assert "received 400 categories, none of 5 rows" in err
    assert "minutes" not in err

"""What people see in the terminal: descriptions, doubts, additions after the decision, the card."""

from __future__ import annotations

import json

import numpy as np
import pytest

import adacos
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier

DESCRIPTION = """
title = "Diabetes in Pima women"
outcome = "diabetes within five years"
currency = "USD"
intended_use = "Trying the program out."
[classes]
0 = "no diabetes"
1 = "diabetes"
[covariates.BMI]
label = "Body mass index"
unit = "kg/m²"
help = "weight over squared height"
range = [12, 70]
"""


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def pima(tmp_path_factory):
    """A model of Pima as in the operator's tutorial, and a description."""
    folder = tmp_path_factory.mktemp("pima")
    data = adacos.load_pima()
    costs = Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
    policy = AdaCOSClassifier(costs, strengths="common").fit(data.X, data.y)
    adacos.save(policy, folder / "m.adacos")
    (folder / "d.toml").write_text(DESCRIPTION, encoding="utf-8")
    return folder


@pytest.mark.parametrize("age", ["90", "-5", "3"])
def test_no_value_outside_the_range_ends_a_consultation_unconfirmed(run, pima, age):
    code, out, _ = run("ask", pima / "m.adacos", answers=f"{age}\nquit")
    assert code == 1
    assert "Result" not in out
    assert out.count("Age?") == 2
    assert "paid so far 1.00" not in out
    doubt, _, rest = words(out).partition("Type it again if it is right.")
    assert rest
    assert f"Age = {age} lies outside the training range 21 to 81" in doubt
    assert doubt.count("negative") == age.startswith("-")
    _, out, _ = run("ask", pima / "m.adacos", answers=f"{age}\n{age}\nquit")
    assert "paid so far 1.00" in out or "paid 1.00" in out
    code, out, _ = run("ask", pima / "m.adacos", "--json", answers=f"{age}\n{age}\nstop")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["action"] for line in lines][:2] == ["acquire", "repeat"]
    assert lines[-1]["state"]["events"][0] == {"observe": {"Age": float(age)}}


def test_a_doubtful_known_value_is_typed_a_second_time(run, pima):
    arguments = ("ask", pima / "m.adacos", "--known", "Age=90,BMI=30")
    code, out, _ = run(*arguments)
    assert code == 1
    assert "Age = 90 lies outside" in words(out)
    _, out, _ = run(*arguments, "--json", answers="90\nstop")
    assert json.loads(out.splitlines()[-1])["state"]["known"] == {"Age": 90.0, "BMI": 30.0}
    _, out, _ = run(*arguments, "--json", answers="x\n50\nstop")
    assert json.loads(out.splitlines()[-1])["state"]["known"]["Age"] == 50.0


def test_findings_are_added_after_the_decision(run, pima):
    policy = adacos.load(pima / "m.adacos")
    code, out, _ = run("ask", pima / "m.adacos", answers="21\n22\nGlucose=60\n\n")
    assert code == 0
    first = policy.consultation().observe(Age=21.0).observe(BMI=22.0)
    assert first.next().to_dict()["action"] == "classify"
    second = first.observe(Glucose=60.0).next()
    assert out.count("Result: 0") == 2
    assert f"probability {second.probability:.1%}" in out
    assert f"paid {second.cost:.2f}" in out
    # After an early stop more may be added too; nonsense and repetitions change nothing.
    answers = "stop\nhello\nAge=24\nAge=25\nquit"
    code, out, _ = run("ask", pima / "m.adacos", answers=answers)
    assert "needs a name; received hello" in words(out)
    assert "BMI?" in out
    code, out, _ = run("ask", pima / "m.adacos", answers="stop\n")
    assert code == 0
    assert out.count("Result") == 1


def test_ask_speaks_the_words_of_the_description(run, pima):
    arguments = ("ask", pima / "m.adacos", "--describe", pima / "d.toml")
    code, out, _ = run(*arguments, answers="24\n75\n22\nstop\n\n")
    text = words(out)
    assert code == 0
    assert "Diabetes in Pima women" in text
    assert "Probabilities are those of diabetes within five years" in text
    assert "Body mass index? costs 1.00 USD, paid so far 1.00 USD" in text
    assert "kg/m² weight over squared height" in text
    assert "Body mass index = 75 lies outside what is plausible" in text or "lies outside" in text
    assert "at 9.1% or above: missing a case counts as much as ten false alarms." in text
    assert "BMI" not in text.partition("Result")[2]
    assert "Body mass index 22 kg/m²" in text
    assert "Result: " in text
    assert "diabetes probability" in text
    code, out, _ = run(*arguments, "--json", answers="Body mass index=30\nstop")
    assert json.loads(out.splitlines()[-1])["state"]["events"][0] == {"observe": {"BMI": 30.0}}
    (pima / "wrong.toml").write_text("[covariates.Bmi]\nlabel = 'x'\n")
    code, _, err = run("ask", pima / "m.adacos", "--describe", pima / "wrong.toml")
    assert code == 2
    assert "Did you mean BMI?" in err


def test_fit_keeps_the_description_and_compares(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = ["pain,age,state"]
    for _ in range(200):
        pain, age = rng.integers(1, 4), rng.integers(20, 90)
        rows.append(f"{pain},{age},{int(rng.random() < 0.1 + 0.2 * pain)}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "d.toml").write_text(
        'title = "Chest pain"\ncurrency = "EUR"\n[classes]\n1 = "ill"\n'
        '[covariates.pain.values]\n1 = "none"\n2 = "some"\n3 = "much"\n',
        encoding="utf-8",
    )
    arguments = ("fit", tmp_path / "t.csv", "--target", "state", "--default-price", 1,
                 "--false-positive", 1000, "--false-negative", 3000,
                 "--out", tmp_path / "m.adacos")  # fmt: skip
    code, out, _ = run(*arguments, "--describe", tmp_path / "d.toml")
    assert code == 0
    text = words(out)
    assert text.startswith("Chest pain")
    for name in ("this policy", "one set for all", "full model", "everyone positive"):
        assert name in text
    assert "everyone negative" in text
    assert "EUR ±" in text
    assert "at 25.0% or above: missing a case counts as much as three false alarms." in text
    code, out, _ = run("info", tmp_path / "m.adacos", "--json")
    card = json.loads(out)
    assert card["title"] == "Chest pain"
    assert card["cost_estimates"][0]["name"] == "this policy, nested cross-validation"
    code, out, _ = run("ask", tmp_path / "m.adacos", "--json", answers="pain=much\nstop")
    assert json.loads(out.splitlines()[-1])["state"]["events"][0] == {"observe": {"pain": 3.0}}
    _, out, _ = run("ask", tmp_path / "m.adacos", "--known", "age=40", answers="quit")
    assert "1 = none, 2 = some, 3 = much" in out
    (tmp_path / "d.toml").write_text('[classes]\n7 = "ill"\n')
    code, _, err = run(*arguments, "--describe", tmp_path / "d.toml")
    assert code == 2
    assert "must name classes of the model; received 7" in err


def test_everyone_positive_is_the_first_line_of_the_card(run, tmp_path, pima):
    data = adacos.load_pima()
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs(data.prices, false_positive=100), strengths="common", cv=5),
        target_recall=0.999,
        recall_confidence=0.95,
        on_uncertifiable="always_positive",
    ).fit(data.X, data.y)
    adacos.save(policy, tmp_path / "m.adacos")
    _, out, _ = run("info", tmp_path / "m.adacos")
    assert out.startswith("The model calls everyone positive and acquires nothing;")
    _, out, _ = run("ask", tmp_path / "m.adacos", answers="\n")
    assert out.startswith("The model calls everyone positive")


@pytest.mark.parametrize("policy", ["optimal", "adacos"])
def test_any_policy_goes_from_fit_to_report(run, tmp_path, policy):
    rng = np.random.default_rng(0)
    rows = ["a,b,state"]
    for _ in range(120):
        a, b = rng.integers(0, 2, 2)
        rows.append(f"{a},{b},{int(rng.random() < 0.2 + 0.5 * a)}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    arguments = ("--target", "state", "--default-price", 1, "--false-positive", 100,
                 "--false-negative", 100, "--policy", policy, "--nested",
                 "--out", tmp_path / "m.adacos")  # fmt: skip
    code, out, err = run("fit", tmp_path / "t.csv", *arguments)
    assert code == 0, err
    assert "this policy, nested cross-validation" in words(out)
    assert "everyone positive" in out
    _, again, _ = run("info", tmp_path / "m.adacos")
    assert "nested cross-validation" in words(again)
    pytest.importorskip("matplotlib")
    report = ("report", tmp_path / "m.adacos", "--data", tmp_path / "t.csv", "--target", "state")
    assert run(*report, "--out", tmp_path / "r.html")[0] == 0
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_help_and_why_at_a_value_that_is_typed_again(run, pima):
    arguments = ("ask", pima / "m.adacos", "--known", "Age=90")
    for word in ("help", "why", ""):
        code, out, _ = run(*arguments, answers=f"{word}\nquit")
        assert code == 1
        assert "must be a number" not in out
        assert out.count("Age = 90 lies outside the training range") == 2
        assert "the same value   it is right" in out

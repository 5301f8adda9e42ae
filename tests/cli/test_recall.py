"""A target recall of two classes on the command line, by policies that take none themselves."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import adacos
from adacos import AdaCOSClassifier, Costs, PlanningClassifier, TargetRecallClassifier, load
from adacos.tables.columns import ColumnTable

NAMES = ("age", "fever", "lab")
PRICES = {"age": 1.0, "fever": 2.0, "lab": 6.0}
BOTH = ("--false-positive", 50, "--false-negative", 80)


def patients(n: int, seed: int) -> tuple[list[list[float]], list[str]]:
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.35
    age, lab = rng.normal(50 + 6 * sick, 10).round(), rng.normal(1.5 * sick, 1).round(2)
    fever = rng.random(n) < np.where(sick, 0.7, 0.25)
    return np.column_stack([age, fever, lab]).tolist(), np.where(sick, "sick", "healthy").tolist()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """Rows to learn from and rows held out, and their prices."""
    path = tmp_path_factory.mktemp("recall")
    for name, n, seed in (("train", 600, 0), ("held_out", 300, 1)):
        with open(path / f"{name}.csv", "w", newline="") as file:
            X, y = patients(n, seed)
            rows = [[*row, label] for row, label in zip(X, y, strict=True)]
            csv.writer(file).writerows([[*NAMES, "state"], *rows])
    lines = "".join(f"{name} = {price}\n" for name, price in PRICES.items())
    (path / "prices.toml").write_text(f"[prices]\n{lines}")
    (path / "errors.toml").write_text(
        f"[prices]\n{lines}[errors]\nfalse_positive = 50\nfalse_negative = 80\n"
    )
    return path


@pytest.fixture
def fit(run, clinic):
    def call(*options: object, prices: str = "prices.toml"):
        given = ("fit", clinic / "train.csv", "--target", "state", "--prices", clinic / prices)
        return run(*given, "--out", clinic / "m.adacos", *options)

    return call


def words(text: str) -> str:
    """Text without its line breaks."""
    return " ".join(text.split())


def test_the_answers_of_the_wrapped_policy_reach_the_recall(run, fit, clinic):
    code, out, err = fit("--policy", "planning", "--target-recall", "sick=0.9", *BOTH)
    assert (code, err) == (0, "")
    assert "PlanningClassifier learned from 300 rows and acquires by these costs" in words(out)
    assert "decided on 300 calibration rows" in words(out)
    assert "false negative 80." in words(out)
    assert "implied" not in out
    policy = load(clinic / "m.adacos")
    X, y = patients(600, 0)
    costs = Costs(PRICES, false_positive=50, false_negative=80)
    table = ColumnTable(dict(zip(NAMES, np.array(X).T, strict=True)))
    direct = TargetRecallClassifier(PlanningClassifier(costs), target_recall=0.9).fit(table, y)
    assert policy.threshold_ == direct.threshold_
    assert policy.recall_estimate_ == direct.recall_estimate_ >= 0.9
    assert "Target recall 90.0%" in run("info", clinic / "m.adacos")[1]
    # A price list may state both costs, and --json tells the same.
    code, out, err = fit(
        "--policy", "planning", "--target-recall", 0.9, "--json", prices="errors.toml"
    )
    assert (code, err) == (0, "")
    reported = json.loads(out)
    assert reported["calibration_rows"] == 300
    assert reported["card"]["threshold"] == direct.threshold_
    assert reported["card"]["misclassification_costs"] == [[0, 50], [80, 0]]


@pytest.mark.parametrize("policy", ["planning", "dwsm"])
def test_a_certified_recall_goes_through_every_command(run, fit, clinic, policy):
    recall = ("--target-recall", 0.9, "--recall-confidence", 0.9)
    code, out, err = fit("--policy", policy, *recall, *BOTH)
    assert code == 0, err
    model, held_out = clinic / "m.adacos", clinic / "held_out.csv"
    assert "at 90% confidence (requested: 90%)" in words(run("info", model)[1])
    code, out, _ = run("score", model, held_out, clinic / "answers.csv", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 300
    rows = ("--data", held_out, "--target", "state")
    code, out, _ = run("report", model, *rows, "--out", clinic / "r.html", "--json")
    assert code == 0
    assert json.loads(out)["recall"] >= 0.85
    code, out, _ = run("explain", model, "--row", "age=60,fever=1,lab=2.5")
    assert "Classify as sick" in out
    row = {"age": 60.0, "fever": 1.0, "lab": 2.5}
    table = ColumnTable({name: np.array([value]) for name, value in row.items()})
    asked = load(model).acquire(table).covariates(0)
    code, out, _ = run("ask", model, answers="\n".join(f"{row[name]:g}" for name in asked))
    assert "Result: sick" in out


def test_what_is_not_certified_is_refused_or_as_the_options_say(fit, clinic):
    asked = ("--policy", "planning", "--target-recall", 0.999, "--recall-confidence", 0.9, *BOTH)
    (clinic / "m.adacos").unlink(missing_ok=True)
    code, _, err = fit(*asked)
    assert code == 2
    assert "is certified in this same attempt with --largest" in err
    assert not (clinic / "m.adacos").exists()
    code, out, _ = fit(*asked, "--largest", "--json")
    assert code == 0
    assert 0.8 < json.loads(out)["card"]["certificate"]["bound"] < 0.999
    code, out, _ = fit(*asked, "--always-positive")
    assert code == 0
    assert "it does not discriminate." in words(out)


def test_both_costs_are_asked_for_and_none_is_invented(fit):
    recall = ("--target-recall", 0.9)
    for options, messages in (
        (
            ("--policy", "planning", "--false-positive", 50),
            ("--false-negative: what a wrong answer costs", "planning acquires by both costs"),
        ),
        (("--policy", "auto"), ("--false-positive and --false-negative: what a wrong answer",)),
        (
            ("--false-positive", 50, "--mean-budget", 3, "--recall-confidence", 0.9),
            ("--false-negative: what", "leave --mean-budget or --recall-confidence out"),
        ),
        (("--false-positive", 50, "--false-negative", 80), ("cannot be combined",)),
        (
            ("--policy", "planning", "--mean-budget", 3, *BOTH),
            ("--mean-budget: is not supported by --policy planning",),
        ),
    ):
        code, _, err = fit(*recall, *options)
        assert code == 2
        for message in messages:
            assert message in words(err)
    # Without a recall too, nothing is offered that the policy does not do.
    _, _, err = fit("--policy", "planning", "--false-positive", 50)
    assert "--policy adacos and branching take --target-recall in its place" in words(err)


def test_the_positive_class_is_reported_once(fit, recwarn):
    recall = ("--policy", "planning", "--target-recall", 0.9, *BOTH)
    code, out, _ = fit(*recall, "--nested")
    assert code == 0
    assert "this policy, nested cross-validation" in words(out)
    assert out.count("Positive class: sick") == 1
    assert not recwarn.list


def test_budgets_are_those_of_the_wrapped_policy(fit, clinic):
    asked = ("--target-recall", 0.6, "--recall-confidence", 0.9, "--mean-budget", 5, "--json")
    for more in (("--policy", "auto"), ("--policy", "adacos", "--budget", 7)):
        code, out, err = fit(*asked, *more, *BOTH)
        assert code == 0, err
        card = json.loads(out)["card"]
        assert card["policy"] == "TargetRecallClassifier"
        assert card["mean_budget"] == 5
        assert card["certificate"]["bound"] >= 0.6
    assert card["budget"] == 7
    assert load(clinic / "m.adacos").policy_.mean_spent_ <= 5.01
    # Without a certificate rows stop by both.
    code, out, _ = fit("--target-recall", 0.9, "--mean-budget", 3, "--false-positive", 50, "--json")
    assert json.loads(out)["card"]["wraps"] == "AdaCOSClassifier"
    assert load(clinic / "m.adacos").chosen.false_negative_cost_ > 0


def test_the_terminal_says_where_the_certificate_does_not_hold(run, clinic):
    X, y = patients(600, 0)
    table = ColumnTable({name: np.array(X)[:, k] for k, name in enumerate(NAMES)})
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs(PRICES, false_positive=50), strengths="common", cv=3),
        target_recall=0.85,
        recall_confidence=0.9,
    ).fit(table, np.array(y))
    adacos.save(policy, clinic / "certified.adacos")
    consultation, answers = policy.consultation(), []
    while isinstance(step := consultation.next(), adacos.Acquire):
        answers += [f"{X[0][NAMES.index(name)]:g}" for name in step.covariates]
        consultation.observe({name: X[0][NAMES.index(name)] for name in step.covariates})
    caveat = "The certificate does not cover this consultation"

    def reported(*options, lines):
        _, out, _ = run("ask", clinic / "certified.adacos", *options, answers="\n".join(lines))
        return " ".join(out.split())

    followed = reported(lines=[*answers, ""])
    assert caveat not in followed
    assert str(policy.certificate_).split(".")[0] in followed
    known = reported("--known", "age=52", lines=["stop", ""])
    before, _, after = known.partition("Result")
    assert f"{caveat}: values were known from the start." in before
    assert f"{caveat}: values were known from the start and it was stopped early." in after
    odd = reported(lines=["900", "900", *answers[1:], ""])
    assert f"{caveat}: a value is unlike those in training." in odd
    _, out, _ = run("ask", clinic / "certified.adacos", "--json", answers="stop")
    last = json.loads(out.splitlines()[-1])
    assert last["not_covered"] == f"{caveat}: it was stopped early."

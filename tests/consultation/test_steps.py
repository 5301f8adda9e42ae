"""How an explanation reads."""

from __future__ import annotations

import pytest

from adacos.consultation.steps import (
    COSTS_NOTHING,
    NO_PLAN,
    NO_SINGLE_VALUE,
    OWN_RULE,
    Acquire,
    Classify,
    Explanation,
    ValueWarning,
    reasons_in_words,
    with_reason,
)
from adacos.reasons import Contribution, Flip, Plan


def explanation(**changes) -> Explanation:
    given = {
        "label": 0,
        "probability": 0.3,
        "bayes_risk": 287.77,
        "paid": 0.0,
        "stop_now": 287.77,
        "acquire_next": 288.77,
        "best_plan": Plan(("pain", "thal"), 10.0, 258.87),
        "expected_saving": 28.9,
        "flips": (),
        "intercept": -0.2,
        "contributions": (),
    }
    return Explanation(**{**given, **changes})


def test_contributions_are_in_columns():
    parts = (
        Contribution("pain", "atypical angina with words", 0.25),
        Contribution("resting pressure", 140.0, -0.5),
        Contribution("thal", None, -0.33),
    )
    lines = str(explanation(contributions=parts)).splitlines()[-3:]
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("  resting pressure  ")
    assert lines[2].endswith("unavailable  -0.33")


@pytest.mark.parametrize(
    ("changes", "explained"),
    [
        ({}, True),
        ({"best_plan": Plan(("pain",), 1.0, 258.87)}, True),
        ({"expected_saving": 0.0}, False),
        ({"best_plan": None, "acquire_next": None}, False),
        ({"flips": (Flip("pain", 1, ((2.0, None),), ()),)}, False),
    ],
)
def test_a_saving_without_a_value_that_changes_the_label_is_explained(changes, explained):
    """It must not read as if the answer did not matter."""
    assert (NO_SINGLE_VALUE in str(explanation(**changes))) == explained


def test_the_probability_is_next_to_the_cut_off():
    text = str(explanation(probability=0.14, cut_off=1 / 11, bayes_risk=86.02, label=1))
    assert text.startswith(
        "Probability 14.0% (cut-off 9.1%): positive if you stop now. "
        "Expected cost of being wrong: 86.02.\n"
    )
    assert "Expected total cost: 287.77 if you stop, 258.87 if you continue." in text
    step = Classify(1, 0.14, 1.0, 87.02, explanation(cut_off=1 / 11))
    assert str(step) == "Classify as 1 (probability 14.0%, cut-off 9.1%), paid 1.00."
    classes = explanation(probabilities={"oak": 0.7, "elm": 0.2, "ash": 0.1}, label="oak")
    assert str(classes).startswith("Probability oak 70.0%, elm 20.0%, ash 10.0%: oak if you")
    named = explanation(probability=0.05, cut_off=1 / 11, label="do not refer")
    assert "(cut-off 9.1%): do not refer if you stop now." in str(named)
    assert "(cut-off 9.1%): negative if" in str(explanation(probability=0.05, cut_off=1 / 11))


def test_what_is_worth_asking_is_said_with_its_cost_and_its_saving():
    one = explanation(best_plan=Plan(("pain",), 1.0, 258.87), expected_saving=28.9)
    assert (
        "Worth asking pain: it costs 1.00 and is expected to save 28.90 net by making a wrong "
        "result less likely." in str(one)
    )
    assert "Worth asking pain, thal: together they cost 10.00 and are" in str(explanation())
    small = explanation(expected_saving=0.003)
    assert "expected to save less than 0.01 net" in str(small)
    step = Classify(0, 0.3, 0.0, 287.77, one)
    assert "Asking pain would cost 1.00 and is expected to save 28.90" in reasons_in_words(step)
    assert "Worth asking" not in reasons_in_words(step)


@pytest.mark.parametrize(
    ("changes", "cost", "reason"),
    [
        ({}, 1.0, ""),
        ({"expected_saving": 0.0}, 1.0, OWN_RULE),
        ({"expected_saving": 0.0}, 0.0, COSTS_NOTHING),
        ({"expected_saving": 0.0, "best_plan": None}, 1.0, NO_PLAN),
        ({"expected_saving": 0.0, "because": "Every row is asked."}, 1.0, "Every row is asked."),
    ],
)
def test_what_does_not_save_is_asked_for_a_reason(changes, cost, reason):
    assert with_reason(explanation(**changes), cost).because == reason


def test_a_printed_step_says_what_is_odd_about_the_values() -> None:
    odd = ValueWarning("Age", 900.0, "implausible", "Age = 900 is far outside the training range.")
    for step in (
        Acquire(("BMI",), 1.0, (), explanation(), (odd,)),
        Classify(1, 0.4, 2.0, 30.0, explanation(), (odd,)),
    ):
        assert str(step) == f"{step.text()} Age = 900 is far outside the training range."

"""How an explanation reads."""

from __future__ import annotations

import pytest

from adacos.consultation.steps import Contribution, Explanation, Flip, Plan


def explained(**changes) -> Explanation:
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


def test_contributions_stand_in_columns():
    parts = (
        Contribution("pain", "atypical angina with words", 0.25),
        Contribution("resting pressure", 140.0, -0.5),
        Contribution("thal", None, -0.33),
    )
    lines = str(explained(contributions=parts)).splitlines()[-3:]
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("  resting pressure  ")
    assert lines[2].endswith("unavailable  -0.33")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "No value of pain alone would change the label; the saving comes with what may follow"
             ": thal."),
        ({"best_plan": Plan(("pain",), 1.0, 258.87)}, "the model that includes it and of"),
        ({"expected_saving": 0.0}, None),
        ({"best_plan": None, "acquire_next": None}, None),
        ({"flips": (Flip("pain", 1, ((2.0, None),), ()),)}, None),
    ],
)  # fmt: skip
def test_a_saving_without_a_value_that_turns_the_label_is_explained(changes, told):
    text = str(explained(**changes))
    assert ("No value of" in text) == (told is not None)
    assert told is None or told in text

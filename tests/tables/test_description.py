"""A description: read from TOML, checked, kept with the model, no effect on its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import adacos
from adacos import AdaCOSClassifier, Costs, describe
from adacos.card import model_card
from adacos.consultation import fingerprint
from adacos.exceptions import InvalidInputError
from adacos.tables.description import coded_values, description_of, read_description

DESCRIPTION = """
title = "Chest pain clinic"
outcome = "coronary disease"
currency = "USD"
intended_use = "Adults with chest pain."
citation = "Invented."

[classes]
no = "healthy"
yes = "diseased"

[covariates.age]
label = "Age of the patient"
unit = "years"
help = "at the visit"
range = [18, 100]

[covariates.pain.values]
"1" = "typical"
"2" = "atypical"

[covariates.kind.values]
a = "type A"
"""


@pytest.fixture(scope="module")
def policy():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 80, 150).astype(float),
            "pain": rng.integers(1, 5, 150).astype(float),
            "kind": rng.choice(["a", "b"], 150),
            "smoker": rng.integers(0, 2, 150).astype(float),
        }
    )
    y = np.where(X["age"] + 20 * rng.normal(size=150) > 50, "yes", "no")
    costs = Costs([0.0, 1.0, 1.0, 2.0], false_positive=10, false_negative=100)
    return AdaCOSClassifier(costs, strengths="common", cv=3).fit(X, y)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "d.toml"
    file.write_text(DESCRIPTION, encoding="utf-8")
    return file


def test_words_are_kept_with_the_model(policy, path, tmp_path):
    before = fingerprint(policy)
    describe(policy, path)
    assert fingerprint(policy) == before
    adacos.save(policy, tmp_path / "m.adacos")
    said = description_of(adacos.load(tmp_path / "m.adacos"))
    assert said == read_description(path)
    assert said.money(2) == "2.00\N{NO-BREAK SPACE}USD"
    assert said.money(-1234567.891) == "-1,234,567.89\N{NO-BREAK SPACE}USD"
    assert said.class_name("yes") == "diseased"
    assert said.label("age") == "Age of the patient"
    assert said.label("smoker") == "smoker"
    assert said.shown("age", 31.0) == "31 years"
    assert said.shown("pain", 2.0) == "atypical"
    assert said.shown("pain", 3.0) == "3"
    assert "18 to 100 years" in said.implausible("age", 3.0)
    assert said.implausible("age", 18.0) == said.implausible("pain", -5.0) == ""
    encoder = policy.encoder_
    found = [coded_values(encoder, k, said) for k in range(4)]
    assert found == [[], [1.0, 2.0], ["a", "b"], [0.0, 1.0]]
    card = model_card(policy)
    assert (card["title"], card["currency"]) == ("Chest pain clinic", "USD")
    assert card["class_names"] == ["healthy", "diseased"]
    assert card["covariates"][0]["plausible"] == [18, 100]
    assert card["covariates"][2]["choices"] == [
        {"value": "a", "label": "type A"},
        {"value": "b", "label": "b"},
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "titel =", "Did you mean title"),
        ('currency = "USD"', "currency = 3", "description.currency: must be a text"),
        ('no = "healthy"', 'nope = "healthy"', "must name classes of the model; received nope"),
        ("[covariates.age]", "[covariates.Age]", "Did you mean age"),
        ("range = [18, 100]", "range = [100, 18]", "must begin below its end"),
        ("range = [18, 100]", "range = 18", "must be two numbers"),
        ('unit = "years"', 'colour = "red"', "not known; received colour"),
        ('"1" = "typical"', '"9" = "typical"', "must name values seen in training; received 9"),
        ('"1" = "typical"', '"1.0" = "typical"', "must name values seen in training"),
        ('a = "type A"', 'c = "type C"', "Its categories are a, b"),
        ('a = "type A"', "a = 5", "must be a table of texts"),
        ("[classes]", "[classes", "must be a readable TOML file"),
        ("[covariates.kind.values]", "[covariates.kind]\nrange=[0,1]\n[x]", "description"),
    ],
)
def test_mistakes_are_named(policy, path, old, new, message):
    path.write_text(DESCRIPTION.replace(old, new), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="description") as error:
        describe(policy, path)
    assert message in str(error.value)


def test_a_missing_file_is_reported(policy, tmp_path):
    with pytest.raises(InvalidInputError, match="must be a readable TOML file"):
        describe(policy, tmp_path / "nowhere.toml")

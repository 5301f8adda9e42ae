"""What the page must not lose, drop or leave unsaid, on Pima and on an invented model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import adacos
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier
from tests.browser.conftest import playwright, served
from tests.browser.consulting import answer, discard, finish, start

pytestmark = pytest.mark.browser
expect = playwright.expect

# A covariate may be named like what every object of the browser inherits.
INVENTED = """
title = "Chest pain clinic"
outcome = "coronary disease"
currency = "EUR"
intended_use = "Trying the page out."
[classes]
no = "no disease"
yes = "coronary disease"
[covariates.pain]
label = "Chest pain"
[covariates.pain.values]
"1" = "none"
"2" = "on effort"
"3" = "at rest"
[covariates.marker]
label = "Marker"
unit = "ng/l"
help = "from the blood"
range = [0, 60]
"""


@pytest.fixture(scope="module")
def service(models):
    with served(models["costs"]) as url:
        yield url


@pytest.fixture(scope="module")
def invented(tmp_path_factory):
    """A service with coded values, categories, free covariates and odd names."""
    folder = tmp_path_factory.mktemp("invented")
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "__proto__": rng.normal(size=n),
            "constructor": rng.choice(["left", "right"], n),
            "pain": rng.integers(1, 4, n).astype(float),
            "marker": rng.gamma(2.0, 10.0, n),
        }
    )
    score = X["__proto__"] + X["pain"] - 2 + (X["marker"] - 20) / 8
    y = np.where(score + rng.logistic(size=n) > 0.5, "yes", "no")
    costs = Costs([0.0, 0.0, 1.0, 5.0], false_positive=300, false_negative=600)
    policy = AdaCOSClassifier(costs, strengths="common", cv=5).fit(X, y)
    (folder / "d.toml").write_text(INVENTED, encoding="utf-8")
    adacos.describe(policy, folder / "d.toml")
    adacos.save(policy, folder / "m.adacos")
    with served(folder / "m.adacos") as url:
        yield url, policy


def press(page, name: str) -> None:
    with page.expect_response("**/v1/step"):
        page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator("button:disabled")).to_have_count(0)


def test_a_typed_value_is_not_dropped_by_deciding(service, models, open_page):
    page = open_page(service)
    start(page)
    page.locator("#answers input").fill("24")
    page.locator("summary", has_text="Other questions").click()
    page.get_by_label("Other question").select_option("Glucose")
    page.get_by_label("Value of Glucose (mg/dl)").fill("150")
    page.get_by_role("button", name="Stop now").click()
    page.locator("#decision").wait_for()
    reported = page.locator("#events").inner_text()
    assert "24 years" in reported
    assert "150 mg/dl" in reported
    policy = adacos.load(models["costs"])
    consultation = policy.consultation().observe(Age=24.0, Glucose=150.0)
    if consultation.next().to_dict()["action"] == "acquire":
        consultation.stop()
    probability = consultation.next().probability
    assert f"{100 * probability:.1f}%" in page.locator("#decision-facts").inner_text()

    # A text that is no number stops the decision; a value stops the skipping.
    page.get_by_role("button", name="New consultation").click()
    start(page)
    page.locator("#answers input").fill("old")
    page.get_by_role("button", name="Stop now").click()
    expect(page.locator("#answers .field-problem")).to_have_text("Enter a number.")
    page.locator("#answers input").fill("24")
    page.get_by_role("button", name="Not available").click()
    expect(page.locator("#answers .field-problem")).to_contain_text("press Enter to use it")
    assert page.locator("#nothing-yet").is_visible()


@pytest.mark.parametrize("early", [False, True])
def test_findings_are_added_after_the_decision(service, models, open_page, early):
    page = open_page(service)
    consultation = adacos.load(models["costs"]).consultation()
    low = {"Age": 21.0, "BMI": 20.0, "Pregnancies": 0.0}
    start(page)
    while not early and page.locator("#question").is_visible():
        name = page.evaluate("document.activeElement.dataset.name")
        page.keyboard.type(f"{low[name]:g}")
        consultation.observe({name: low[name]})
        press(page, "Enter")
    if early:
        press(page, "Stop now")
    page.get_by_text("I have a further value").click()
    page.get_by_label("Further question").select_option("SkinThickness")
    page.get_by_label("Value of Skin thickness (mm)").fill("31")
    press(page, "Add it")
    assert "31 mm" in page.locator("#events").inner_text()
    assert "Stopped early" not in page.locator("#events").inner_text()
    step = consultation.observe(SkinThickness=31.0).next()
    asking = step.to_dict()["action"] == "acquire"
    assert page.locator("#question").is_visible() == asking
    if not asking:
        facts = page.locator("#decision-facts").inner_text()
        assert f"{100 * step.probability:.1f}%" in facts
    page.get_by_role("button", name="Undo").click()
    assert "31 mm" not in page.locator("#consultation").inner_text()


def test_a_reload_keeps_the_consultation_of_this_tab(service, open_page):
    page = open_page(service)
    start(page, {"Pregnancies": "3"})
    answer(page)
    question = page.locator("#question-title").inner_text()
    events = page.locator("#events").inner_text()
    assert page.evaluate("localStorage.length") == 0
    page.reload()
    page.locator("#question").wait_for()
    assert page.locator("#question-title").inner_text() == question
    assert page.locator("#events").inner_text() == events
    finish(page)
    decided = page.locator("#decision-facts").inner_text()
    page.reload()
    page.locator("#decision").wait_for()
    assert page.locator("#decision-facts").inner_text() == decided
    page.get_by_role("button", name="Undo").click()
    assert page.locator("#question").is_visible()
    discard(page)
    page.reload()
    page.locator("#start-form").wait_for()
    assert page.locator("#consultation").is_hidden()
    assert page.get_by_label("Pregnancies").input_value() == ""
    other = open_page(service)
    other.locator("#start-form").wait_for()
    assert other.locator("#consultation").is_hidden()


def test_the_contributions_add_up(service, open_page):
    page = open_page(service)
    start(page, {"Pregnancies": "3"})
    answer(page)

    def numbers(place: str) -> list[float]:
        cells = page.locator(f"#contributions {place} td.number").all_inner_texts()
        return [float(cell.replace("−", "-")) for cell in cells]

    parts, (total,) = numbers("tbody"), numbers("tfoot")
    assert len(parts) >= 3
    assert page.locator("#contributions tbody th").first.inner_text().startswith("Start")
    assert sum(parts) == pytest.approx(total, abs=0.005 * (len(parts) + 1))
    share = float(page.locator("#contributions tfoot td").first.inner_text().split()[1].rstrip("%"))
    assert 100 / (1 + np.exp(-total)) == pytest.approx(share, abs=0.2)


def test_a_comma_that_may_mean_thousands_is_asked_about(service, open_page):
    page = open_page(service)
    start(page)
    field, problem = page.locator("#answers input"), page.locator("#answers .field-problem")
    field.fill("1,234")
    page.get_by_role("button", name="Enter", exact=True).click()
    expect(problem).to_contain_text("Enter 1.234 or 1234, without a comma.")
    assert page.locator("#nothing-yet").is_visible()
    field.fill("33,5")
    press(page, "Enter")
    expect(page.locator("#events tbody")).to_contain_text("33.5")


@pytest.mark.parametrize("age", ["90", "-5", "3"])
def test_no_value_outside_the_range_ends_a_consultation_unconfirmed(service, open_page, age):
    page = open_page(service)
    start(page)
    field = page.locator("#answers input")
    field.fill(age)
    press(page, "Enter")
    problem = page.locator("#answers .field-problem")
    expect(problem).to_contain_text(f"Age = {age} lies outside the training range")
    expect(problem).to_contain_text("press Enter again")
    assert problem.inner_text().count("negative") == age.startswith("-")
    assert page.locator("#nothing-yet").is_visible()
    # Deciding is no way around it.
    field.fill("91")
    press(page, "Stop now")
    assert page.locator("#question").is_visible()
    field.fill(age)
    press(page, "Enter")
    press(page, "Enter")
    assert f"{age} years" in page.locator("#events").inner_text()


def test_the_threshold_is_shown_with_the_probability(service, open_page):
    page = open_page(service)
    rule = "Called positive at 50.0% or above: missing a case counts as much as a false alarm."
    expect(page.locator("#title")).to_have_text("Diabetes in Pima women")
    expect(page.locator("#about")).to_have_text(f"Outcome: diabetes within five years. {rule}")
    start(page)
    expect(page.locator("#now")).to_contain_text("(cut-off 50.0%)")
    expect(page.locator("#now")).to_contain_text("diabetes within five years")
    finish(page)
    expect(page.locator("#rule")).to_have_text(rule)


def test_a_value_outside_is_reported_next_to_the_certificate(models, open_page):
    with served(models["recall"]) as url:
        page = open_page(url)
        start(page)
        page.locator("#answers input").fill("90")
        press(page, "Enter")
        press(page, "Enter")
        finish(page)
        reported = page.locator("#certificate").inner_text()
        assert "a value is unlike those in training" in reported
        assert page.locator("#headline").is_hidden()


def test_a_certificate_that_says_nothing_is_reported_first(open_page, tmp_path):
    data = adacos.load_pima()
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs(data.prices, false_positive=100), strengths="common", cv=5),
        target_recall=0.999,
        recall_confidence=0.95,
        on_uncertifiable="always_positive",
    ).fit(data.X, data.y)
    adacos.save(policy, tmp_path / "m.adacos")
    with served(tmp_path / "m.adacos") as url:
        page = open_page(url)
        expect(page.locator("#headline")).to_contain_text("The model calls everyone positive")
        start(page)
        reported = page.locator("#certificate").inner_text()
        assert reported.startswith("The model calls everyone positive")


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_an_invented_model_with_odd_names_and_codes(invented, open_page, width):
    url, policy = invented
    page = open_page(url, width)
    page.locator("#start-form").wait_for()
    assert page.locator("#known .field").count() == 4
    # The free covariates are asked for together, and nothing is said of one of them alone.
    start(page)
    assert page.locator("#answers .field").count() == 2
    assert "cost nothing" in page.locator("#reason").inner_text()
    assert "No single value" not in page.locator("#flips").inner_text()
    assert "not available" not in page.locator("#contributions").inner_text()
    answers = page.locator("#answers")
    answers.get_by_label("__proto__").fill("0.2")
    answers.get_by_role("radio", name="left").check()
    press(page, "Enter")
    assert "0.2" in page.locator("#events").inner_text()
    page.reload()
    page.locator("#question").wait_for()
    consultation = policy.consultation().observe({"__proto__": 0.2, "constructor": "left"})
    assert consultation.next().covariates[0] in ("pain", "marker")
    if consultation.next().covariates == ("marker",):
        answers.get_by_label("Marker (ng/l)").fill("20")
        press(page, "Enter")
        consultation.observe(marker=20.0)
    assert page.locator("#answers .choice").count() == 3
    answers.get_by_role("radio", name="on effort").check()
    press(page, "Enter")
    assert "on effort" in page.locator("#events").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_an_implausible_number_inside_the_range_is_asked_for_twice(invented, open_page):
    page = open_page(invented[0])
    page.locator("#start-form").wait_for()
    high = invented[1].encoder_.high[3]
    assert high > 60
    page.get_by_label("Marker (ng/l)").fill(f"{high - 1:.0f}")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#known")).to_contain_text("outside what is plausible, 0 to 60")
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("#consultation").wait_for()

"""Consultations on the web page in Chromium: by keyboard, on a phone, printed, and for everyone."""

from __future__ import annotations

import json
import sqlite3

import pytest

import adacos
from adacos.consultation.steps import NO_SINGLE_VALUE, Acquire
from adacos.tables.description import read_description
from tests.browser.conftest import AXE, DESCRIPTIONS, served
from tests.browser.consulting import ROW, answer, discard, expect, finish, start

pytestmark = pytest.mark.browser

SAID = read_description(DESCRIPTIONS)


@pytest.fixture(scope="module")
def service(models, tmp_path_factory):
    """Address and case log of a service."""
    log = tmp_path_factory.mktemp("log") / "cases.db"
    with served(models["costs"], "--case-log", f"sqlite:///{log}") as url:
        yield url, log


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_a_consultation_with_undo_and_skip(service, models, open_page, width):
    page = open_page(service[0], width)
    start(page, {"Pregnancies": "3"})
    consultation = adacos.load(models["costs"]).consultation({"Pregnancies": 3.0})
    title = page.locator("#question-title")
    first = title.inner_text()
    assert first == f"Age – costs {SAID.money(consultation.next().cost)}"

    assert answer(page) == "Age"
    second = title.inner_text()
    assert second != first
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("button:disabled")).to_have_count(0)
    assert title.inner_text() == first
    assert answer(page) == "Age"
    assert title.inner_text() == second
    consultation.observe(Age=52.0)

    skipped = consultation.next().covariates[0]
    with page.expect_response("**/v1/step"):
        page.get_by_role("button", name="Not available").click()
    expect(page.locator("button:disabled")).to_have_count(0)
    consultation.unavailable(skipped)

    asked = finish(page)
    while isinstance(step := consultation.next(), Acquire):
        consultation.observe({name: ROW[name] for name in step.covariates})
    assert list(consultation.values)[2:] == asked
    verdict = "Positive: diabetes" if step.label == 1 else "Negative: no diabetes"
    assert page.locator("#decision-title").inner_text() == verdict
    facts = page.locator("#decision-facts").inner_text()
    assert f"{100 * step.probability:.1f}%" in facts
    assert f"{step.cost:.2f}" in facts
    assert f"{step.expected_cost:.2f}" in facts
    assert page.locator("#paid").inner_text() == SAID.money(step.cost)
    assert "not available" in page.locator("#events").inner_text()
    assert page.evaluate("document.activeElement.id") == "decision-title"
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_the_next_question_is_announced(service, open_page):
    page = open_page(service[0])
    start(page)
    assert page.locator("[aria-live=polite]").inner_text().startswith("Next question: Age, cost")
    finish(page)
    assert page.locator("[aria-live=polite]").inner_text().startswith("Result: ")


def test_undo_goes_back_to_what_was_known(service, open_page):
    page = open_page(service[0])
    start(page, {"Pregnancies": "3"})
    page.get_by_role("button", name="Undo").click()
    assert page.get_by_label("Pregnancies").input_value() == "3"
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("#question").wait_for()


def test_wrong_and_odd_values(service, open_page):
    page = open_page(service[0])
    start(page)
    page.get_by_role("button", name="Enter", exact=True).click()
    field = page.locator("#answers input")
    assert "Enter a value" in page.locator("#answers .field-problem").inner_text()
    field.fill("old")
    field.press("Enter")
    assert page.locator("#answers .field-problem").inner_text() == "Enter a number."
    assert field.get_attribute("aria-invalid") == "true"
    for _ in range(2):
        field.fill("90")
        with page.expect_response("**/v1/step"):
            field.press("Enter")
    page.locator("#warnings").wait_for()
    assert "outside the training range" in page.locator("#warnings").inner_text()
    assert "outside the training range" in page.locator("[aria-live=polite]").inner_text()


def test_an_implausible_value_needs_a_second_press(service, open_page):
    page = open_page(service[0])
    start(page)
    field = page.locator("#answers input")
    problem = page.locator("#answers .field-problem")
    for doubted in ("240", "250"):
        field.fill(doubted)
        with page.expect_response("**/v1/step"):
            field.press("Enter")
        expect(problem).to_contain_text(f"{doubted} lies outside")
        expect(problem).to_contain_text("press Enter again")
        assert field.get_attribute("aria-invalid") == "true"
        assert page.locator("#nothing-yet").is_visible()
        assert "press Enter again" in page.locator("[aria-live=polite]").inner_text()
    assert page.evaluate("document.activeElement.dataset.name") == "Age"
    field.press("Enter")
    page.locator("#warnings").wait_for()
    assert "25 would lie inside" in page.locator("#warnings").inner_text()
    assert "250 years" in page.locator("#events").inner_text()


@pytest.mark.parametrize("text", ["0x1F", "0b11", "0o17", "1_0", "Infinity", "--5"])
def test_what_is_no_decimal_number_is_refused(service, open_page, text):
    page = open_page(service[0])
    start(page)
    page.locator("#answers input").fill(text)
    page.locator("#answers input").press("Enter")
    expect(page.locator("#answers .field-problem")).to_have_text("Enter a number.")


def test_an_implausible_known_value_needs_a_second_press(service, open_page):
    page = open_page(service[0])
    page.locator("#start-form").wait_for()
    page.get_by_label("Skin thickness (mm)").fill("990")
    button = page.get_by_role("button", name="Start", exact=True)
    button.click()
    expect(page.locator("#known")).to_contain_text("press Start again")
    assert page.locator("#consultation").is_hidden()
    button.click()
    page.locator("#warnings").wait_for()
    discard(page)
    start(page)
    page.locator("summary", has_text="Other questions").click()
    page.get_by_label("Other question").select_option("BMI")
    page.get_by_label("Value of Body mass index").fill("3180")
    page.get_by_role("button", name="Enter it").click()
    expect(page.locator("#other-field")).to_contain_text("press Enter it again")
    page.get_by_role("button", name="Enter it").click()
    expect(page.locator("#events")).to_contain_text("3180")


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_deciding_early_and_back(service, models, open_page, width):
    url, log = service
    page = open_page(url, width)
    start(page)
    assert answer(page) == "Age"
    question = page.locator("#question-title").inner_text()
    consultation = adacos.load(models["costs"]).consultation().observe(Age=52.0)
    asked = consultation.next()
    step = consultation.stop().next()

    for key in ("Tab", "Tab", "Tab"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.textContent") == "Stop now"
    with page.expect_response("**/v1/step"):
        page.keyboard.press("Enter")
    expect(page.locator("#decision-kicker")).to_have_text("Stopped early")
    assert page.evaluate("document.activeElement.id") == "decision-title"
    verdict = "Positive: diabetes" if step.label == 1 else "Negative: no diabetes"
    assert page.locator("#decision-title").inner_text() == verdict
    assert f"{100 * step.probability:.1f}%" in page.locator("#decision-facts").inner_text()
    assert "Result, stopped early" in page.locator("[aria-live=polite]").inner_text()
    why = page.locator("#decision-why").inner_text()
    assert "Stopped early. The next question would have been" in why
    assert f"save {asked.explanation.expected_saving:.2f}" in why
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]

    page.get_by_role("button", name="Undo").click()
    assert page.locator("#question-title").inner_text() == question
    page.get_by_role("button", name="Stop now").click()
    page.get_by_role("button", name="Save case").click()
    page.locator("#recorded").wait_for()
    case = page.locator("#recorded").inner_text().split()[-1].rstrip(".")
    with sqlite3.connect(log) as connection:
        (row,) = connection.execute("select course from adacos_cases where id = ?", [case])
    assert row == ("stopped",)
    page.emulate_media(media="print")
    assert page.locator("#decision-why").is_visible()
    assert page.locator("#decision-kicker").is_visible()


def test_a_saving_that_no_single_value_brings_is_explained(service, models, open_page):
    consultation = adacos.load(models["costs"]).consultation()
    page = open_page(service[0])
    start(page)
    explained = 0
    while isinstance(step := consultation.next(), Acquire):
        reported = page.locator("#flips").inner_text()
        assert (NO_SINGLE_VALUE in reported) == (not step.explanation.flips)
        explained += not step.explanation.flips
        consultation.observe({name: ROW[name] for name in step.covariates})
        answer(page)
    assert explained > 0


def test_shared_costs_are_shown(models, open_page, tmp_path):
    policy = adacos.load(models["costs"])
    full = adacos.FullModelClassifier(policy.costs).from_model(policy)
    adacos.describe(full, DESCRIPTIONS)
    adacos.save(full, tmp_path / "full.adacos")
    with served(tmp_path / "full.adacos") as url:
        page = open_page(url)
        start(page, {"Glucose (mg/dl)": "150"})
        while page.evaluate("document.activeElement.dataset.name") != "Insulin":
            assert page.locator("#lowered").is_hidden()
            answer(page)
        assert (
            page.locator("#question-title").inner_text() == f"Insulin – costs {SAID.money(20.68)}"
        )
        reported = page.locator("#lowered").inner_text()
        assert reported.startswith(f"Insulin: {SAID.money(2.1)} less than alone")
        assert "because the shared cost of panel blood was paid with Glucose" in reported
        answer(page)
        assert (
            f"{SAID.money(20.68)} (alone {SAID.money(22.78)})"
            in page.locator("#events").inner_text()
        )


def test_another_value_instead(service, open_page):
    page = open_page(service[0])
    start(page)
    page.locator("summary", has_text="Other questions").click()
    page.get_by_label("Other question").select_option("Glucose")
    page.get_by_label("Value of Glucose (mg/dl)").fill("150")
    page.get_by_role("button", name="Enter it").click()
    page.locator("#events").wait_for()
    assert "17.61" in page.locator("#events").inner_text()


def test_a_case_is_recorded(service, open_page):
    url, log = service
    page = open_page(url)
    start(page)
    finish(page)
    page.get_by_role("button", name="Save case").click()
    page.locator("#recorded").wait_for()
    case = page.locator("#recorded").inner_text().split()[-1].rstrip(".")
    with sqlite3.connect(log) as connection:
        (row,) = connection.execute("select consultation from adacos_cases where id = ?", [case])
    assert json.loads(row[0])["acquired"]["Age"] == ROW["Age"]
    assert page.locator("#record").is_hidden()


def test_the_printed_summary(service, open_page):
    page = open_page(service[0])
    start(page)
    finish(page)
    page.emulate_media(media="print")
    for gone in ("#print", "#undo", "#question"):
        assert page.locator(gone).is_hidden()
    for kept in ("#decision", "#events", "#notice", "#printed"):
        assert page.locator(kept).is_visible()
    assert "Research use" in page.locator("#printed").inner_text()


def test_the_certificate_is_shown(models, open_page):
    with served(models["recall"]) as url:
        page = open_page(url)
        start(page)
        finish(page)
        text = page.locator("#certificate").inner_text()
        assert text == str(adacos.load(models["recall"]).certificate_)

        def reported() -> str:
            finish(page)
            page.locator("#decision").wait_for()
            # The caveat is drawn with the answer, which may still be on its way.
            expect(page.locator("#certificate")).to_contain_text("does not cover")
            found = page.locator("#certificate").inner_text()
            page.get_by_role("button", name="New consultation").click()
            caveat, _, promised = found.partition("\n")
            assert promised == text
            return caveat.removeprefix("The certificate does not cover this consultation: ")

        page.get_by_role("button", name="New consultation").click()
        start(page, {"Age (years)": "52"})
        assert reported() == "values were known from the start."
        start(page)
        with page.expect_response("**/v1/step"):
            page.get_by_role("button", name="Not available").click()
        expect(page.locator("button:disabled")).to_have_count(0)
        assert reported() == "a question was skipped."
        start(page)
        with page.expect_response("**/v1/step"):
            page.get_by_role("button", name="Stop now").click()
        expect(page.locator("button:disabled")).to_have_count(0)
        assert reported() == "it was stopped early."
        start(page, {"Pregnancies": "3"})
        page.locator("summary", has_text="Other questions").click()
        page.get_by_label("Other question").select_option("Glucose")
        page.get_by_label("Value of Glucose (mg/dl)").fill("150")
        with page.expect_response("**/v1/step"):
            page.get_by_role("button", name="Enter it").click()
        expect(page.locator("button:disabled")).to_have_count(0)
        assert reported() == (
            "values were known from the start and a value was entered that was not asked for."
        )


def test_a_new_consultation_waits_for_the_model(service, open_page):
    page = open_page(service[0])
    start(page)
    held = []
    page.route("**/v1/model", lambda route: held.append(route))
    with page.expect_request("**/v1/model"):
        page.get_by_role("button", name="New consultation").click()
    # A field shown before the model is there would be drawn again, empty.
    assert page.locator("#start-form").is_hidden()
    held[0].abort()
    expect(page.locator("#problem")).to_contain_text("cannot be reached")
    page.unroute("**/v1/model")
    page.get_by_role("button", name="New consultation").click()
    page.locator("#start-form").wait_for()
    assert page.locator("#consultation").is_hidden()


def test_the_key_is_asked_for(models, open_page):
    with served(models["costs"], "--api-key", "secret-of-16-chars") as url:
        page = open_page(url)
        field = page.get_by_label("This service asks for a key")
        field.wait_for()
        assert page.locator("#problem").is_hidden()
        assert "Loading" not in page.locator("#model").inner_text()
        field.fill("wrong")
        with page.expect_response("**/v1/model"):
            field.press("Enter")
        expect(page.locator("#problem")).to_contain_text("did not accept this key")
        assert "Loading" not in page.locator("#model").inner_text()
        field.fill("schlüssel")
        field.press("Enter")
        expect(page.locator("#problem")).to_contain_text("did not accept this key")
        field.fill("secret-of-16-chars")
        with page.expect_response("**/v1/model"):
            field.press("Enter")
        page.locator("#start-form").wait_for()
        assert page.locator("#problem").is_hidden()
        page.reload()
        page.locator("#start-form").wait_for()
        assert field.is_hidden()
        page.evaluate("sessionStorage.setItem('adacos-key', 'old')")
        page.reload()
        expect(page.locator("#problem")).to_contain_text("did not accept this key")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_no_serious_violation_of_accessibility(service, open_page, width, scheme):
    if not AXE.is_file():
        pytest.skip(f"there is no {AXE}: npm install axe-core, or name it in ADACOS_AXE")
    page = open_page(service[0], width, color_scheme=scheme)
    page.locator("#start-form").wait_for()
    page.evaluate(AXE.read_text(encoding="utf-8"))

    def check() -> None:
        found = page.evaluate("axe.run().then((result) => result.violations)")
        grave = [item for item in found if item["impact"] in ("serious", "critical")]
        assert [(item["id"], item["nodes"][0]["html"]) for item in grave] == []

    check()
    start(page, {"Pregnancies": "3"})
    page.locator("summary", has_text="Other questions").click()
    check()
    page.locator("#answers input").fill("240")
    page.locator("#answers input").press("Enter")
    expect(page.locator("#answers .field-problem")).to_contain_text("again")
    check()
    page.locator("#answers input").press("Enter")
    page.locator("#warnings").wait_for()
    check()
    page.get_by_role("button", name="Undo").click()
    page.locator("#answers input").focus()
    finish(page)
    check()


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_a_person_asks_another_question_and_rules_one_out(service, open_page, width, tmp_path):
    page = open_page(service[0], width)
    start(page)
    title = page.locator("#question-title")

    def choose(name: str, button: str) -> None:
        page.locator("summary", has_text="Other questions").click()
        page.locator("#other-name").select_option(name)
        with page.expect_response("**/v1/step"):
            page.get_by_role("button", name=button).click()
        expect(page.locator("button:disabled")).to_have_count(0)

    first = title.inner_text()
    choose("BMI", "Ask it next")
    expect(title).to_contain_text(SAID.label("BMI"))
    expect(page.locator("#reason")).to_contain_text(
        "Asked in any case, whatever it is worth: Body mass index."
    )
    expect(page.locator("#bars dt")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(title).to_have_text(first)
    choose("BMI", "Ask it next")
    choose("Glucose", "Never ask it")
    expect(page.locator("#events")).to_contain_text("never asked")
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    page.locator("summary", has_text="Other questions").click()
    expect(page.locator("#alternatives tbody")).not_to_contain_text(SAID.label("Glucose"))
    page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
    page.locator("summary", has_text="Other questions").click()
    page.reload()
    page.locator("#answers input").focus()
    asked = finish(page)
    assert asked[0] == "BMI"
    assert "Glucose" not in asked
    page.locator("#reason-input").fill("The glucose meter is broken.")
    page.get_by_role("button", name="Save case").click()
    page.locator("#recorded").wait_for()
    with sqlite3.connect(service[1]) as log:
        rows = log.execute("select consultation from adacos_cases").fetchall()
    kept = [json.loads(row[0]) for row in rows]
    own = [case for case in kept if case.get("reason") == "The glucose meter is broken."][-1]
    assert own["must"] == ["BMI"]
    assert own["never"] == ["Glucose"]

"""A consultation in which several covariates are ordered together, on the web page."""

from __future__ import annotations

import pytest

import adacos
from adacos import AdaCOSClassifier, Costs
from adacos.consultation.steps import Acquire
from tests.browser.conftest import playwright, served

pytestmark = pytest.mark.browser
expect = playwright.expect
IMMEDIATE = ["age", "sex", "cp", "trestbps"]


@pytest.fixture(scope="module")
def heart(tmp_path_factory):
    """A model that orders batches, its file, and a row that needs two orders."""
    data = adacos.load_heart()
    costs = Costs(
        data.prices,
        false_positive=4000,
        false_negative=4000,
        panels=data.panels,
        round_cost=50,
        immediate=IMMEDIATE,
    )
    policy = AdaCOSClassifier(costs, cv=3, strengths="common").fit(data.X, data.y)
    path = tmp_path_factory.mktemp("rounds") / "heart.adacos"
    adacos.save(policy, path)
    for number in data.X.dropna().index:
        row, consultation = data.X.loc[number], policy.consultation()
        while isinstance(step := consultation.next(), Acquire):
            consultation.observe({name: row[name] for name in step.covariates})
        if consultation.rounds == 2:
            return policy, path, row
    raise AssertionError("no row needs two rounds")


def enter(page, row, name) -> None:
    """Fill the field of a covariate."""
    place = page.locator(f'#answers [data-name="{name}"]').first
    control = place.locator("input, select").first
    if control.get_attribute("type") == "radio":
        place.get_by_label(f"{row[name]:g}", exact=True).check()
    elif control.evaluate("own => own.tagName") == "SELECT":
        control.select_option(label=f"{row[name]:g}")
    else:
        control.fill(f"{row[name]:g}")


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_a_batch_is_asked_for_together(heart, open_page, width):
    policy, path, row = heart
    consultation, batches = policy.consultation(), 0
    with served(path) as url:
        page = open_page(url, width)
        page.locator("#start-form").wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator("#consultation").wait_for()
        while isinstance(step := consultation.next(), Acquire):
            asked = page.locator("#answers [data-name]").evaluate_all(
                "fields => [...new Set(fields.map((own) => own.dataset.name))]"
            )
            assert asked == list(step.covariates)
            batches += len(asked) > 1
            wait = "50.00 of the cost is for the wait"
            assert (wait in page.locator("#lowered").inner_text()) == (asked[0] not in IMMEDIATE)
            for name in step.covariates:
                enter(page, row, name)
            inside = "document.documentElement.scrollWidth <= window.innerWidth"
            assert page.evaluate(inside)
            with page.expect_response("**/v1/step"):
                page.get_by_role("button", name="Enter", exact=True).click()
            expect(page.locator("button:disabled")).to_have_count(0)
            consultation.observe({name: row[name] for name in step.covariates})
        assert batches >= 1
        # The waits stand by themselves among what was paid.
        events = page.locator("#events").inner_text()
        assert events.count("Wait") == 2
        assert events.count("50.00") >= 2
        facts = page.locator("#decision-facts").inner_text()
        assert f"{step.cost:.2f}" in facts
        shown = page.locator("body").inner_text()
        assert "undefined" not in shown
        assert "NaN" not in shown.split()


def press(page, name) -> None:
    with page.expect_response("**/v1/step"):
        page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator("button:disabled")).to_have_count(0)


@pytest.mark.parametrize("spoken", [True, False])
def test_results_come_one_by_one_after_a_reload(heart, open_page, spoken):
    """Ordered together, by the button or with the first result, and paid once.

    The order is on the page and on paper, and survives a reload.
    """
    policy, path, row = heart
    consultation, parts = policy.consultation(), 0
    with served(path) as url:
        page = open_page(url)
        page.locator("#start-form").wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator("#consultation").wait_for()
        while isinstance(step := consultation.next(), Acquire):
            if len(step.covariates) == 1:
                enter(page, row, *step.covariates)
                press(page, "Enter")
            else:
                parts += 1
                if spoken:
                    press(page, "Mark as ordered")
                    expect(page.locator("#question-kicker")).to_have_text("Ordered")
                    expect(page.locator("#order")).to_be_hidden()
                for number, name in enumerate(reversed(step.covariates)):
                    enter(page, row, name)
                    press(page, "Enter")
                    if number == 0:
                        page.reload()
                        page.locator("#consultation").wait_for()
                        paid = f"{consultation.paid + step.cost:.2f}"
                        expect(page.locator("#paid")).to_have_text(paid)
                        page.emulate_media(media="print")
                        assert page.locator("#events").inner_text().count("ordered") >= 2
                        assert page.locator("#events").is_visible()
                        page.emulate_media(media="screen")
            consultation.observe({name: row[name] for name in step.covariates})
        assert parts
        assert f"{step.cost:.2f}" in page.locator("#decision-facts").inner_text()
        assert page.locator("#events").inner_text().count("Wait") == 2


def test_what_was_ordered_and_is_not_available_is_not_paid(heart, open_page):
    policy, path, row = heart
    consultation = policy.consultation()
    with served(path) as url:
        page = open_page(url)
        page.locator("#start-form").wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator("#consultation").wait_for()
        while len((step := consultation.next()).covariates) == 1:
            enter(page, row, *step.covariates)
            press(page, "Enter")
            consultation.observe({name: row[name] for name in step.covariates})
        before = consultation.paid
        press(page, "Mark as ordered")
        press(page, "Not available")
        expect(page.locator("#paid")).to_have_text(f"{before:.2f}")

"""A consultation on the page, by keyboard."""

from __future__ import annotations

from tests.browser.conftest import playwright

expect = playwright.expect


ROW = {
    "Pregnancies": 3.0,
    "Glucose": 150.0,
    "BloodPressure": 74.0,
    "SkinThickness": 31.0,
    "Insulin": 200.0,
    "BMI": 33.0,
    "DiabetesPedigreeFunction": 0.6,
    "Age": 52.0,
}


def start(page, known: dict[str, str] | None = None) -> None:
    page.locator("#start-form").wait_for()
    for label, value in (known or {}).items():
        page.locator("#known").get_by_label(label).fill(value)
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("#consultation").wait_for()


def answer(page) -> str:
    """Answer the question with the keyboard; the covariate."""
    name = page.evaluate("document.activeElement.dataset.name")
    page.keyboard.type(f"{ROW[name]:g}")
    with page.expect_response("**/v1/step"):
        page.keyboard.press("Enter")
    expect(page.locator("button:disabled")).to_have_count(0)
    return name


def finish(page) -> list[str]:
    asked = []
    while page.locator("#question").is_visible():
        asked.append(answer(page))
    return asked


def discard(page) -> None:
    """Begin again with something entered that is in no case: pressed twice."""
    for _ in range(2):
        page.get_by_role("button", name="New consultation").click()
        expect(page.locator("button:disabled")).to_have_count(0)
    page.locator("#start-form").wait_for()

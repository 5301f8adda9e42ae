"""What was entered is not lost, and what was saved is not changed: reloads, new models, saving."""

from __future__ import annotations

import shutil
import signal
import sqlite3

import pytest

import adacos
from adacos.consultation import fingerprint
from tests.browser.conftest import playwright
from tests.browser.consulting import answer, expect, finish, start
from tests.service.running import ask, running, until

pytestmark = pytest.mark.browser
__all__ = ["playwright"]


@pytest.fixture
def replaced(models, tmp_path):
    """A service whose model file may be replaced."""
    model = tmp_path / "model.adacos"
    shutil.copy(models["costs"], model)
    with running(model, case_log=f"sqlite:///{tmp_path}/cases.db") as service:
        yield service, model, models


def renew(service, model, new) -> None:
    shutil.copy(new, model)
    service.process.send_signal(signal.SIGHUP)
    expected = fingerprint(adacos.load(new))
    assert until(lambda: expected in ask(service.url, "/v1/health")[1])


def test_a_consultation_continues_with_its_model_after_a_reload(replaced, open_page):
    service, model, models = replaced
    page = open_page(service.url)
    start(page, {"Pregnancies": "3"})
    answer(page)
    question = page.locator("#question-title").inner_text()
    shown = page.locator("#model").inner_text()
    renew(service, model, models["recall"])
    page.reload()
    page.locator("#question").wait_for()
    assert page.locator("#question-title").inner_text() == question
    assert page.locator("#model").inner_text() == shown
    finish(page)
    page.get_by_role("button", name="Save case").click()
    page.locator("#recorded").wait_for()
    # What is saved is discarded without asking, and the next one has the new model.
    page.get_by_role("button", name="New consultation").click()
    page.locator("#start-form").wait_for()
    assert page.locator("#model").inner_text() != shown


def test_what_was_entered_is_there_when_its_model_is_gone(replaced, open_page):
    service, _, models = replaced
    page = open_page(service.url)
    start(page, {"Pregnancies": "3", "Pedigree function": "0.123456"})
    asked = answer(page)
    service.stop()
    with running(models["recall"], port=service.port):
        page.reload()
        expect(page.locator("#problem")).to_contain_text("The model was replaced")
        page.locator("#start-form").wait_for()
        assert page.get_by_label("Pregnancies").input_value() == "3"
        assert page.get_by_label("Pedigree function").input_value() == "0.123456"
        assert page.locator(f"#known input[data-name={asked}]").input_value() != ""


def test_a_new_consultation_asks_before_it_discards(replaced, open_page):
    page = open_page(replaced[0].url)
    start(page, {"Pregnancies": "3"})
    answer(page)
    page.get_by_role("button", name="New consultation").click()
    expect(page.locator("#problem")).to_contain_text("Press New consultation again to discard it")
    assert page.locator("#consultation").is_visible()
    # Whoever does something else is asked again.
    page.locator("#answers input").first.focus()
    answer(page)
    assert page.locator("#problem").is_hidden()
    page.get_by_role("button", name="New consultation").click()
    expect(page.locator("#problem")).to_contain_text("Press New consultation again to discard it")
    page.get_by_role("button", name="New consultation").click()
    page.locator("#start-form").wait_for()
    start(page)
    # Nothing was entered.
    page.get_by_role("button", name="New consultation").click()
    page.locator("#start-form").wait_for()


def test_what_was_saved_is_one_case_and_is_not_changed(replaced, open_page, tmp_path):
    page = open_page(replaced[0].url)
    start(page)
    answer(page)
    page.get_by_role("button", name="Stop now").click()
    page.locator("#decision").wait_for()
    # The first answer gets lost on its way, and a value is added before the case is saved again.
    page.route("**/v1/cases", lambda route: (route.fetch(), route.abort()))
    page.get_by_role("button", name="Save case").click()
    expect(page.locator("#problem")).to_contain_text("cannot be reached")
    page.unroute("**/v1/cases")
    page.get_by_role("button", name="Undo").click()
    answer(page)
    page.get_by_role("button", name="Stop now").click()
    page.locator("#decision").wait_for()
    page.get_by_role("button", name="Save case").click()
    expect(page.locator("#problem")).to_contain_text("recorded already, with other values")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Stop now").click()
    page.locator("#decision").wait_for()
    page.get_by_role("button", name="Save case").click()
    page.locator("#recorded").wait_for()
    saved = page.locator("#recorded").inner_text()
    for reloaded in (False, True):
        if reloaded:
            page.reload()
            page.locator("#decision").wait_for()
        for gone in ("#undo", "#more", "#record"):
            assert page.locator(gone).is_hidden()
        assert page.locator("#recorded").inner_text() == saved
    with sqlite3.connect(tmp_path / "cases.db") as connection:
        assert connection.execute("select count(*) from adacos_cases").fetchone() == (1,)

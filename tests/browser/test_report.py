"""The report in a narrow window, and for everyone."""

from __future__ import annotations

import pytest

import adacos
from adacos.report import write_report
from tests.browser.conftest import AXE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(models, tmp_path_factory):
    data = adacos.load_pima()
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(adacos.load(models["costs"]), data.X[:200], data.y[:200], path, "Report")
    return path


def test_a_narrow_window_reaches_every_column(report, chromium):
    page = chromium.new_page(viewport={"width": 500, "height": 900})
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    for name in ("sensitivity", "specificity"):
        box = page.locator("th", has_text=name).first.bounding_box()
        assert box["x"] + box["width"] <= 500
    last = page.locator("th", has_text="more than this policy")
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert box["x"] + box["width"] <= 500
    page.close()


def test_figures_are_drawn_for_a_phone(report, chromium):
    """Text of a figure is at least 9 pixels high, and a table that goes on has a shadow."""
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    scales = page.evaluate(
        "[...document.querySelectorAll('figure img')].map((i) => i.clientWidth / i.naturalWidth)"
    )
    assert len(scales) >= 6
    # The smallest text is 8.5 points, 11.3 pixels at scale 1.
    assert min(scales) * 11.3 >= 9
    captions = page.evaluate(
        "[...document.querySelectorAll('caption')].map((c) => c.getBoundingClientRect().width)"
    )
    assert max(captions) <= 390
    shadows = page.evaluate("getComputedStyle(document.querySelector('.scroll')).backgroundImage")
    assert shadows.count("gradient") == 4
    source = "document.querySelector('#policy img').currentSrc"
    narrow = page.evaluate(source)
    page.set_viewport_size({"width": 1000, "height": 800})
    page.wait_for_function(f"(narrow) => {source} !== narrow", arg=narrow)
    page.close()


@pytest.mark.parametrize("width", [390, 1000])
def test_the_report_can_be_read_by_everyone(report, chromium, width):
    if not AXE.is_file():
        pytest.skip(f"there is no {AXE}: npm install axe-core, or name it in ADACOS_AXE")
    page = chromium.new_page(viewport={"width": width, "height": 844})
    page.goto(report.as_uri())
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then((result) => result.violations)")
    assert [(item["id"], item["nodes"][0]["html"]) for item in found] == []
    page.close()

"""The report in a narrow window."""

from __future__ import annotations

import pytest

import adacos
from adacos.report import write_report

pytestmark = pytest.mark.browser


def test_a_narrow_window_reaches_every_column(models, chromium, tmp_path):
    data = adacos.load_pima()
    path = tmp_path / "report.html"
    write_report(adacos.load(models["costs"]), data.X[:200], data.y[:200], path, "Report")
    page = chromium.new_page(viewport={"width": 500, "height": 900})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    for name in ("recall", "specificity"):
        box = page.locator("th", has_text=name).first.bounding_box()
        assert box["x"] + box["width"] <= 500
    last = page.locator("th", has_text="more than this policy")
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert box["x"] + box["width"] <= 500
    page.close()

"""Take the pictures of the page for the docs: python -m tests.browser.screenshots docs/images"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, WIDTHS, fitted, served
from tests.browser.test_page import answer, finish, start


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        models = fitted(Path(temporary))
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for width, (across, down) in WIDTHS.items():
            page = browser.new_page(viewport={"width": across, "height": down})
            with served(models["costs"]) as url:
                page.goto(url)
                page.locator("#start-form").wait_for()
                page.screenshot(path=folder / f"page-start-{width}.png", full_page=True)
                start(page)
                answer(page)
                answer(page)
                page.screenshot(path=folder / f"page-question-{width}.png", full_page=True)
            log = f"sqlite:///{temporary}/cases.db"
            with served(models["recall"], "--case-log", log) as url:
                page.goto(url)
                start(page)
                finish(page)
                page.screenshot(path=folder / f"page-decision-{width}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

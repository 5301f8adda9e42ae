"""The service in a process of its own, and Debian's Chromium without a window."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import adacos
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the extra 'service' is not installed")

CHROMIUM = os.environ.get("ADACOS_CHROMIUM") or shutil.which("chromium")
AXE = Path(os.environ.get("ADACOS_AXE", "node_modules/axe-core/axe.min.js"))
DESCRIPTIONS = Path(__file__).with_name("pima.toml")
WIDTHS = {"desktop": (1200, 900), "phone": (390, 844)}


@contextmanager
def served(model: Path, *options: str):
    """`adacos serve` with a model; its address."""
    command = [sys.executable, "-m", "adacos.cli.app", "serve", str(model), "--port", "0"]
    command += ["--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait()


def fitted(folder: Path) -> dict[str, Path]:
    """Files of a model with a false-negative cost and of one with a certificate."""
    data = adacos.load_pima()
    by_cost = Costs(data.prices, false_positive=400, false_negative=400, panels=data.panels)
    by_recall = Costs(data.prices, false_positive=400, panels=data.panels)
    models = {
        "costs": AdaCOSClassifier(by_cost),
        "recall": TargetRecallClassifier(
            AdaCOSClassifier(by_recall), target_recall=0.85, recall_confidence=0.9
        ),
    }
    for name, model in models.items():
        adacos.describe(model.fit(data.X, data.y), DESCRIPTIONS)
        adacos.save(model, folder / f"{name}.adacos")
    return {name: folder / f"{name}.adacos" for name in models}


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> dict[str, Path]:
    return fitted(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium, or name it in ADACOS_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Open a page of some width; it may not err, nor load anything from elsewhere."""
    pages, wrong = [], []

    def opened(url: str, width: str = "desktop", **options):
        across, down = WIDTHS[width]
        page = chromium.new_page(viewport={"width": across, "height": down}, **options)
        pages.append(page)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((url, "data:"))
                else wrong.append(f"loads {request.url}")
            ),
        )
        page.goto(url)
        return page

    yield opened
    for page in pages:
        page.close()
    assert wrong == []

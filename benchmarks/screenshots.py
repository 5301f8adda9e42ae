"""Take the pictures of the docs: python -m benchmarks.screenshots docs/images [part ...]

The parts are page (the web page), report and ask (the commands of the tutorials). Pictures that no
page of the docs shows are for looking at.
"""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.text import Text

import adacos
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier
from tests.browser.conftest import CHROMIUM, DESCRIPTIONS, WIDTHS, served
from tests.browser.consulting import finish, start

# As in the tutorial for the data scientist.
TUTORIAL = """
adacos() { "$PYTHON" -m adacos.cli.app "$@"; }
adacos datasets export pima
awk 'NR == 1 || NR % 3 != 0' pima.csv > train.csv
awk 'NR == 1 || NR % 3 == 0' pima.csv > held_out.csv
adacos fit train.csv --target y --prices pima.toml --describe pima-words.toml \
    --false-positive 100 --false-negative 1000 --out model.adacos
adacos report model.adacos --data held_out.csv --target y --out report.html
"""
ANSWERS = ("why", "34", "")


def certified(folder: Path) -> Path:
    """The model of the tutorial for operators; zeros are missing values."""
    data = adacos.load_pima(zeros="missing")
    costs = Costs(data.prices, false_positive=100, panels=data.panels)
    policy = AdaCOSClassifier(costs)
    model = TargetRecallClassifier(policy, target_recall=0.85, recall_confidence=0.9)
    adacos.describe(model.fit(data.X, data.y), DESCRIPTIONS)
    adacos.save(model, folder / "certified.adacos")
    return folder / "certified.adacos"


def page(browser: Browser, folder: Path, temporary: Path) -> None:
    log = ("--case-log", f"sqlite:///{temporary}/cases.db")
    for width, (across, down) in WIDTHS.items():
        view = browser.new_page(viewport={"width": across, "height": down})
        for name, model, options, known in (
            ("page", temporary / "model.adacos", (), {"Age": "24"}),
            ("operator", certified(temporary), log, {}),
        ):
            with served(model, *options) as url:
                view.goto(url)
                view.locator("#start-form").wait_for()
                view.screenshot(path=folder / f"{name}-start-{width}.png", full_page=True)
                start(view, known)
                view.screenshot(path=folder / f"{name}-question-{width}.png", full_page=True)
                finish(view)
                view.screenshot(path=folder / f"{name}-decision-{width}.png", full_page=True)


def report(browser: Browser, folder: Path, temporary: Path) -> None:
    for name, across in (("report", 1000), ("report-phone", WIDTHS["phone"][0])):
        view = browser.new_page(viewport={"width": across, "height": 900})
        view.goto((temporary / "report.html").as_uri())
        down = view.locator("#policy").bounding_box()
        assert down is not None
        clip = {"x": 0, "y": 0, "width": across, "height": down["y"] + down["height"] + 20}
        view.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip)


def ask(browser: Browser, folder: Path, temporary: Path) -> None:
    typed = "adacos ask model.adacos --known Age=24"
    shown = f"$ {typed}\n" + _in_a_terminal(typed.split()[1:], temporary)
    console = Console(record=True, width=110, file=io.StringIO())
    console.print(Text.from_ansi(shown))
    (temporary / "ask.svg").write_text(console.export_svg(title="adacos ask"), encoding="utf-8")
    # As an image the drawing cannot fetch the fonts on the web that it names.
    (temporary / "ask.html").write_text('<body><img src="ask.svg" width="1180">', encoding="utf-8")
    view = browser.new_page(viewport={"width": 1200, "height": 900})
    view.goto((temporary / "ask.html").as_uri())
    view.locator("img").screenshot(path=folder / "ask.png")


def _in_a_terminal(arguments: list[str], folder: Path) -> str:
    """What a terminal shows while the answers are typed."""
    own, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "adacos.cli.app", *arguments],
        cwd=folder,
        stdin=other,
        stdout=other,
        stderr=other,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "110"},
    )
    os.close(other)
    shown, answers = "", list(ANSWERS)
    try:
        while True:
            shown += os.read(own, 4096).decode()
            # A prompt is the last thing that was written.
            if answers and shown.endswith("> "):
                os.write(own, f"{answers.pop(0)}\n".encode())
    except OSError:
        # The other end is closed: the command has ended.
        process.wait()
    os.close(own)
    return shown.replace("\r\n", "\n").rstrip()


def main(folder: Path, *parts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    drawing = {"page": page, "report": report, "ask": ask}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        temporary = Path(name)
        environment = {**os.environ, "PYTHON": sys.executable, "WORDS": str(DESCRIPTIONS)}
        subprocess.run(["bash", "-ec", TUTORIAL], cwd=name, env=environment, check=True)
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for part in parts or drawing:
            drawing[part](browser, folder, temporary)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

"""README and documentation hold: their Python runs and prints what is shown, their commands run.

Commands that ask, that do not end or that take minutes are parsed instead, so that a renamed option
is noticed all the same.
"""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from adacos import AdaCOSClassifier, Costs, demo, describe, load_pima
from adacos.cli.app import app
from adacos.exceptions import AdacosError
from adacos.registry import forgetting

ROOT = Path(__file__).parents[1]
PYTHON_PAGES = (
    "README.md",
    "docs/architecture.md",
    "docs/budgets.md",
    "docs/choosing.md",
    "docs/churn.md",
    "docs/howto-audit.md",
    "docs/howto-export.md",
    "docs/index.md",
    "docs/howto-person.md",
    "docs/howto-protocol.md",
    "docs/prevalence.md",
    "docs/providers.md",
    "docs/quickstart.md",
    "docs/reproduce.md",
    "docs/rounds.md",
    "docs/howto-sklearn.md",
    "docs/howto-values.md",
    "docs/howto-classes.md",
    "docs/howto-refer.md",
    "docs/howto-files.md",
    "docs/rivals.md",
    "docs/recall.md",
    "docs/scale.md",
    "docs/tutorial-data-scientist.md",
    "docs/uncertain-costs.md",
)
SHELL_PAGES = (
    "README.md",
    "docs/budgets.md",
    "docs/choosing.md",
    "docs/evidence.md",
    "docs/howto-audit.md",
    "docs/howto-export.md",
    "docs/howto-files.md",
    "docs/howto-monitor.md",
    "docs/howto-person.md",
    "docs/howto-secure.md",
    "docs/install.md",
    "docs/howto-protocol.md",
    "docs/prevalence.md",
    "docs/reproduce.md",
    "docs/rivals.md",
    "docs/scale.md",
    "docs/tutorial-clinician.md",
    "docs/tutorial-data-scientist.md",
    "docs/tutorial-operator.md",
    "docs/uncertain-costs.md",
)
# A block of Python and, if one follows at once, the block of what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
# A block of commands likewise.
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$(?:\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
# Commands whose options are checked only: they ask, do not end, take minutes, or need a service.
PARSED = ("ask", "serve", "bench", "cases", "monitor")
# Pages whose commands need files that nobody has here: their options are checked only.
PARSED_PAGES = (
    "docs/howto-export.md",
    "docs/howto-person.md",
    "docs/howto-protocol.md",
    "docs/scale.md",
    "docs/uncertain-costs.md",
)
# Other programs that the pages call; tests/service/test_tutorial.py sends what `curl` does.
FOREIGN = ("pip", "make", "curl", "export")
# Others that are run.
TOOLS = ("awk", "head")


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    with forgetting():  # what a page registers
        for code, printed in blocks:
            output = StringIO()
            with redirect_stdout(output):
                try:
                    exec(compile(code, page, "exec"), names)
                except AdacosError as error:
                    if not printed:
                        raise
                    print(f"{type(error).__name__}: {error}")
            assert not printed or output.getvalue().split() == printed.split()


def commands(page: str) -> Iterator[tuple[str, str]]:
    """Lines of the shell blocks of a page, continued lines joined, and what the last one prints."""
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    for language, block, shown in FENCE.findall((ROOT / page).read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        first = (lines or [""])[0].split()
        ours = first[:1] == ["adacos"] and first[1:2] and first[1] in known
        shell = first and (ours or first[0] in (*FOREIGN, *TOOLS))
        if language in ("", "sh", "bash") and shell:
            lines = [line for line in lines if line.strip()]
            yield from ((line, "") for line in lines[:-1])
            yield lines[-1], shown


def assert_printed(printed: str, shown: str) -> None:
    """What was printed is what the page shows, but for spaces; three dots stand for anything."""
    pattern = ".*".join(re.escape(part) for part in " ".join(shown.split()).split("..."))
    assert not shown or re.fullmatch(pattern, " ".join(printed.split())), printed


def parse(words: list[str]) -> None:
    """Check the arguments of a command as the command line itself does, without running it."""
    command, context = get_command(app), None
    name = "adacos"
    while True:
        context = command.make_context(name, list(words), parent=context)
        if not hasattr(command, "commands"):
            return
        name, words = words[0], words[1:]
        command = command.commands[name]


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("model.adacos", "mine.py"):  # what a page begins with, where it does
        (tmp_path / name).touch()
    (tmp_path / "visits").mkdir()
    lines = list(commands(page))
    assert lines
    for line, shown in lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["adacos"] and (words[1] in PARSED or page in PARSED_PAGES):
            parse(words[1:])
        elif words[:1] == ["adacos"]:
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, (line, result.output, result.exception)
            assert_printed(result.stdout, shown)
        elif words and words[0] not in FOREIGN:
            done = subprocess.run(["bash", "-c", line], check=True, capture_output=True, timeout=60)
            assert_printed(done.stdout.decode(), shown)


def test_the_consultation_of_the_clinician_is_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for line, _ in commands("docs/tutorial-data-scientist.md"):
        if line.startswith("awk"):
            subprocess.run(["bash", "-c", line], check=True, timeout=60)
        elif line.startswith(("adacos datasets", "adacos fit")):
            CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
    page = "docs/tutorial-clinician.md"
    sessions = [(line, shown) for line, shown in commands(page) if line.startswith("adacos ask")]
    assert [bool(shown) for _, shown in sessions] == [True, True]
    for line, shown in sessions:
        typed = re.findall(r"^[A-Za-z ,=]+> ?(.*)$", shown, re.MULTILINE)
        result = CliRunner().invoke(app, shlex.split(line)[1:], input="\n".join(typed) + "\n")
        assert_printed(result.stdout, re.sub(r"^([A-Za-z ,=]+> ).*\n", r"\1", shown, flags=re.M))


def test_the_words_of_the_tutorial_describe_its_model(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto-fit.md").read_text()
    words = tmp_path / "words.toml"
    words.write_text(re.findall(r"```toml\n(title.*?)```", page, re.DOTALL)[0])
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=100, false_negative=1000)
    policy = AdaCOSClassifier(costs, n_splines=5, strengths="common", cv=3).fit(X, y)
    describe(policy, words)
    assert policy.description_.covariates["BMI"].label == "Body mass index"


def test_a_mistaken_option_is_noticed() -> None:
    with pytest.raises(Exception, match="--knwon"):
        parse(["ask", "model.adacos", "--knwon", "Age=24"])


def test_commands_are_described_in_full_sentences() -> None:
    """The list of commands cuts a first line that is too long, and ends it in dots."""
    words = [sys.executable, "-m", "typer", "adacos.cli.app", "utils", "docs", "--name", "adacos"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^\* `(\w+)`: (.*)$", text, re.MULTILINE)
    assert len(listed) > 12
    assert [name for name, help in listed if not help.endswith(".") or "..." in help] == []


def test_every_exported_name_is_in_the_reference() -> None:
    """docs/api.md lists what the checked modules export; the page of each is then generated."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for module in project["tool"]["adacos"]["docstrings"]["modules"]:
        for name in importlib.import_module(module).__all__:
            listed = re.search(rf"^   {name}$", page, re.MULTILINE)
            assert listed or name.startswith("__") or f"`{name}`" in page, f"{module}.{name}"


def test_the_savings_on_the_first_pages_are_those_of_the_demo(capsys: Any) -> None:
    demo.main()
    shown = capsys.readouterr().out
    saved = re.findall(r"compared with .*: (-?\d+%) \((-?\d+%) to (-?\d+%)\)", shown)
    assert len(saved) == 3
    for page in ("README.md", "docs/index.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").replace("−", "-").split())
        (best, *ends), *others = saved
        assert f"costs {best} less in total than asking everything" in text
        assert f"95% interval over folds: {ends[0]} to {ends[1]}" in text
        for estimate, low, high in others:
            assert f"{estimate} ({low} to {high})" in text


def test_every_page_is_reached() -> None:
    """Each page of docs/ stands in a table of contents, and nothing is linked that is not there."""
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/*.md")}
    listed = set()
    for page in pages:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            listed |= {f"{name}.md" for name in re.findall(r"(?:^|<)([\w/-]+)>?$", block, re.M)}
    assert pages - listed == {"index.md"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r'\]\(([^)#]+?)(?:#[^)]*)?\)|src="([^"]+)"', text):
        link = "".join(target)
        assert link.startswith("http") or (ROOT / link).exists(), link


def test_nothing_is_installed_from_an_index() -> None:
    """The package is on no index: `pip install adacos` would fetch something else, or nothing."""
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install ['\"]?adacos\b(?!-)", text), path

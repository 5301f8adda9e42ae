"""What is handed out: one version, honest metadata, and distributions that install and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

import adacos

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

TRIAL = """
import adacos
from importlib.metadata import version
from adacos import AdaCOSClassifier, Costs, load_pima, load, save
assert version("adacos") == adacos.__version__, version("adacos")
X, y, prices, *_ = load_pima()  # an array: no data frame library comes along
costs = Costs(list(prices.values()), false_positive=100, false_negative=1000)
clf = AdaCOSClassifier(costs, strengths="common")
save(clf.fit(X[:200], y[:200]), "model.adacos")
assert (load("model.adacos").predict(X[200:]) == clf.predict(X[200:])).all()
print(adacos.__file__)
"""


def test_the_version_is_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    source = (ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'__version__ = "{adacos.__version__}"' in source


def test_citation_and_changelog_are_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE).group(1) == adacos.__version__
    assert f"## {adacos.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_dependency_states_a_lower_bound() -> None:
    """And `make test-lowest` reads it."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "lowest_versions.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "numpy==2.0" in done.stdout.split()
    # 2.10 refuses the schemas of the service, which have a base and a configuration.
    assert "pydantic==2.11" in done.stdout.split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in done.stdout.split())


def test_the_missing_extra_command_names_an_extra() -> None:
    """The message of MissingExtraError is for a clone or a wheel: there is no index to name."""
    extras = PROJECT["project"]["optional-dependencies"]
    raised = re.compile(r'MissingExtraError\("[\w.]+", "(\w+)"\)')
    named = {
        extra
        for path in (ROOT / "src" / "adacos").rglob("*.py")
        for extra in raised.findall(path.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= set(extras)


@pytest.mark.parametrize("name", ["checks", "study", "release"])
def test_actions_are_pinned_by_commit(name: str) -> None:
    """A tag can be moved to other code; the comment tells people and Dependabot the version."""
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used)
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


@pytest.mark.parametrize(
    ("lock", "extras"),
    [
        ("service", ["service"]),
        ("dev", ["dev", "docs"]),
        ("all", ["rivals", "gpu"]),
        ("lowest", ["dev", "parquet"]),
        ("build", []),
        ("release", []),
        ("lock", []),
    ],
)
def test_locked_packages_are_those_of_the_project(lock: str, extras: list[str]) -> None:
    """Each is pinned with hashes, and none that the project needs is left out (`make lock`)."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    lines = text.splitlines()
    pinned = [k for k, line in enumerate(lines) if line and line[0] not in "# "]
    assert all(re.match(r"[\w.-]+==[\w.]+ (; .* )?\\$", lines[k]) for k in pinned)
    assert all(lines[k + 1].startswith("    --hash=sha256:") for k in pinned)
    wanted = list(PROJECT["project"]["dependencies"]) if extras else []
    for extra in extras:
        wanted += PROJECT["project"]["optional-dependencies"][extra]
    # torch comes without a hash: its builds for CPUs and GPUs share a version.
    names = {lines[k].partition("==")[0] for k in pinned} | {"adacos", "torch"}
    for one in wanted:
        assert re.match(r"[\w.-]+", one)[0].lower() in names, one


def test_the_lowest_versions_are_locked() -> None:
    """As `tools/lowest_versions.py` prints them; `make lock` after a bound was raised."""
    text = (ROOT / "requirements" / "lowest.txt").read_text(encoding="utf-8")
    tool = [sys.executable, ROOT / "tools" / "lowest_versions.py"]
    printed = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
    asked, locked = (dict(re.findall(r"^([\w.-]+)==([\w.]+)", t, re.M)) for t in (printed, text))
    both = asked.keys() & locked.keys()
    assert all(Version(locked[name]) == Version(asked[name]) for name in both)
    assert {"numpy", "scipy", "scikit-learn", "pandas", "polars", "pyarrow"} <= both


def test_what_npm_brings_is_locked() -> None:
    lock = json.loads((ROOT / "requirements" / "package-lock.json").read_text(encoding="utf-8"))
    brought = {name: one for name, one in lock["packages"].items() if name}
    assert all(one["integrity"].startswith("sha512-") for one in brought.values())
    named = json.loads((ROOT / "requirements" / "package.json").read_text(encoding="utf-8"))
    assert {f"node_modules/{name}" for name in named["dependencies"]} <= brought.keys()


def built(pattern: str) -> Path:
    """The distribution under dist/, which `make wheel` has just made."""
    found = sorted((ROOT / "dist").glob(pattern))
    if not found:
        pytest.skip("nothing under dist/: make wheel builds it first")
    return found[-1]


@pytest.mark.wheel
def test_the_wheel_holds_the_library_and_nothing_else() -> None:
    with zipfile.ZipFile(built("*.whl")) as archive:
        names = set(archive.namelist())
    source = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "adacos").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert source <= names
    assert "adacos/py.typed" in names
    assert {name.partition("/")[0] for name in names - source} == {
        f"adacos-{adacos.__version__}.dist-info"
    }


@pytest.mark.wheel
def test_the_sdist_holds_what_builds_and_tests_it() -> None:
    with tarfile.open(built("*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "Makefile",
        "LICENSE",
        "src/adacos/py.typed",
        "tests/conftest.py",
    } <= names
    assert not [
        name for name in names if "__pycache__" in name or name.startswith((".venv", "build"))
    ]


@pytest.mark.wheel
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_it_installs_and_runs_alone(pattern: str, tmp_path: Path) -> None:
    """In a fresh environment without extras, away from the checkout: fit, save, load, command."""
    archive = built(pattern)
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}

    def call(*command: object) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env=clean,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call(programs / "python", "-m", "pip", "install", "--quiet", archive)
    assert str(home) in call(programs / "python", "-c", TRIAL)
    assert call(programs / "adacos", "--version").strip() == adacos.__version__
    assert "x7" in call(programs / "adacos", "info", "model.adacos")
    shutil.rmtree(home)

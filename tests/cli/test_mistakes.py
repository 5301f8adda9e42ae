"""Mistakes that people make, and the text that each of them gets.

The texts stand in mistakes.toml, one for each mistake. `python -m tests.cli.test_mistakes` prints
them anew, to be read before they are put there.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adacos
from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    TargetRecallClassifier,
)
from adacos.cli import app as cli
from adacos.exceptions import AdacosError

FILE = Path(__file__).with_name("mistakes.toml")
MISTAKES: dict[str, str] = tomllib.loads(FILE.read_text(encoding="utf-8"))


def prepared(folder: Path) -> dict[str, Any]:
    """A table, costs, a fitted policy, and the files of a user in a folder."""
    X, y, prices, *_ = adacos.load_pima()
    X, y = X[:240], y[:240]
    costs = Costs(prices, false_positive=100, false_negative=1000)
    quick = {"n_splines": 5, "strengths": "common", "cv": 3}
    policy = AdaCOSClassifier(costs, **quick).fit(X, y)
    adacos.save(policy, folder / "model.adacos")
    X.assign(diabetes=y).to_csv(folder / "pima.csv", index=False)
    X.rename(columns={"BMI": "bmi"}).to_csv(folder / "new.csv", index=False)
    lines = [f"{name} = {price}" for name, price in prices.items()]
    (folder / "prices.toml").write_text("[prices]\n" + "\n".join(lines))
    names = {"adacos": adacos, "np": np, "pd": pd, "X": X, "y": y, "prices": prices}
    kinds = (AdaCOSClassifier, BranchingClassifier, COSClassifier, Costs, TargetRecallClassifier)
    return {
        **names,
        **{kind.__name__: kind for kind in kinds},
        "costs": costs,
        "quick": quick,
        "policy": policy,
    }


def text_of(mistake: str, names: dict[str, Any]) -> str:
    """What is said of a mistake, in Python or on the command line, on one line."""
    if not mistake.startswith("adacos "):
        try:
            exec(mistake, dict(names))
        except (AdacosError, AttributeError, TypeError, ValueError) as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        return "no error"
    said, before = io.StringIO(), sys.argv
    sys.argv = mistake.split()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            cli.main()
    except SystemExit as stopped:
        _, _, usage = said.getvalue().partition(" Error ")
        words = (usage or said.getvalue()).translate(dict.fromkeys(map(ord, "│─╭╮╰╯"), " ")).split()
        return f"[{stopped.code}] {' '.join(words)}"
    finally:
        sys.argv = before
    return "no error"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("mistakes")
    return {**prepared(folder), "folder": folder}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_said(mistake: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(names["folder"])
    monkeypatch.setenv("COLUMNS", "200")
    assert text_of(mistake, names) == MISTAKES[mistake]


def test_there_are_sixty_and_each_is_answered() -> None:
    assert len(MISTAKES) >= 60
    for text in MISTAKES.values():
        assert "received nothing" not in text
        assert text != "no error"
        assert len(text) < 700


def _print_again() -> None:
    """The texts of all mistakes as they are, in the form of mistakes.toml."""
    import tempfile

    os.environ["COLUMNS"] = "200"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        names = prepared(Path(folder))
        for mistake in MISTAKES:
            print(f"'{mistake}' = '''{text_of(mistake, names)}'''")


if __name__ == "__main__":
    _print_again()

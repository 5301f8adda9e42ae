"""How the tests run a command, and the files they run it on."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

import adacos
from adacos.cli import app as cli
from adacos.tables.columns import ColumnTable


@pytest.fixture(autouse=True)
def unwritten_figures(request, monkeypatch):
    """Figures of a report are drawn, not laid out as SVG: that is half of its time.

    A test marked `usefixtures("written_figures")` has them whole.
    """
    if "written_figures" in request.fixturenames:
        return
    monkeypatch.setattr("adacos.report.figures._svg", lambda figure: b"<svg/>")


@pytest.fixture
def written_figures():
    """The report has its figures."""


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process; returns exit code, output and errors."""

    def call(*arguments: object, answers: str = "") -> tuple[int, str, str]:
        lines = iter(answers.splitlines())

        def answer(prompt: str = "") -> str:
            print(prompt, end="")
            try:
                return next(lines)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr("builtins.input", answer)
        monkeypatch.setattr(sys, "argv", ["adacos", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return int(stopped.value.code or 0), out, err

    return call


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Pima as files, split in two, and a model of the first part."""
    path = tmp_path_factory.mktemp("cli")
    data = adacos.load_pima(as_frame=False)
    rows = np.random.default_rng(0).permutation(len(data.y))
    for name, part in (("train", rows[:500]), ("held_out", rows[500:])):
        with open(path / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *data.names, "diabetes"])
            for row in part:
                writer.writerow([f"p{row}", *data.X[row], int(data.y[row])])
    (path / "prices.toml").write_text(
        "[prices]\n"
        + "".join(f"{name} = {cost}\n" for name, cost in data.prices.items())
        + '[panels.blood]\nshared = 2.10\nmembers = ["Glucose", "Insulin"]\n'
        + "[errors]\nfalse_positive = 400\nfalse_negative = 400\n"
    )
    costs = adacos.Costs(data.prices, false_positive=400, false_negative=400, panels=data.panels)
    table = ColumnTable({n: data.X[rows[:500], k] for k, n in enumerate(data.names)})
    policy = adacos.AdaCOSClassifier(costs, strengths="common").fit(table, data.y[rows[:500]])
    adacos.save(policy, path / "model.adacos")
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))

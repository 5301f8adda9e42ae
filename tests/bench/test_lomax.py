"""Lomax's sets: reading, discounts in the costs, resuming, ratios by hand, the report."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import Costs
from adacos.bench.lomax import LomaxOptions, default_methods, run_lomax
from adacos.bench.lomax_sets import LEVELS, find_sets, read_set
from adacos.cli.app import app
from adacos.exceptions import InvalidInputError
from adacos.registry import forgetting, register_method

PRICES = {"a": 2.0, "b": 3.0, "kind": 1.0}
DISCOUNTED = {"g": {"a": 0.5, "b": 2.5}}
ERRORS = {"low": 10.0, "middle": 20.0, "high": 60.0}


class Fixed:
    """Acquires what it is told to, in this order, and answers 1 where `a` is 1."""

    fits = 0

    def __init__(self, costs: Costs, order: tuple[str, ...] = ("a", "b")) -> None:
        self.costs, self.order = costs, order

    def fit(self, X: Any, y: Any) -> Fixed:
        Fixed.fits += 1
        return self

    def acquire(self, X: Any) -> Any:
        label = X.column("a").astype(int)
        return SimpleNamespace(
            label=label,
            probability=np.where(label == 1, 0.7, 0.2),
            cost=np.full(len(X), self.costs.of(self.order)),
            acquired=np.tile(np.isin(X.columns, self.order), (len(X), 1)),
        )


class Other(Fixed):
    """Acquires the dearer one first."""

    def __init__(self, costs: Costs) -> None:
        super().__init__(costs, ("b", "a"))


@pytest.fixture
def registered() -> Iterator[None]:
    with forgetting():
        register_method("fixed", Fixed)
        register_method("other", Other)
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set with two classes and one with three."""
    rng = np.random.default_rng(0)
    home = tmp_path / "sets"
    home.mkdir()
    for name, n_classes in (("tiny", 2), ("three", 3)):
        a, b = rng.integers(0, 2, (2, 60))
        kind = rng.choice(["c0", "c1", "c2"], 60)
        y = np.where(rng.random(60) < 0.8, a, 1 - a) if n_classes == 2 else np.arange(60) % 3
        with (home / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "kind", "y"])
            writer.writerows(zip(a, b, kind, y, strict=True))
        levels = {
            level: {
                "misclassification": [
                    [0.0 if i == j else error for j in range(n_classes)] for i in range(n_classes)
                ],
                "prices": PRICES,
                "discounted": DISCOUNTED,
            }
            for level, error in ERRORS.items()
        }
        (home / f"{name}.json").write_text(json.dumps(levels))
    return home


def options(folder: Path, **given: Any) -> LomaxOptions:
    chosen = {"methods": ("fixed", "other"), "against": "fixed", "splits": 3} | given
    return LomaxOptions(folder, out=folder.parent / "out", **chosen)


def test_a_set_is_read_with_its_costs(folder: Path) -> None:
    assert find_sets(folder) == ["three", "tiny"]
    found = read_set(folder, "tiny")
    assert found.table.names == ("a", "b", "kind")
    assert found.table.X.column("kind").dtype.kind == "U"
    assert set(found.table.X.column("a").tolist()) == {0.0, 1.0}
    assert [setting.name for setting in found.settings] == list(LEVELS)
    costs = found.settings[0].costs(found.table.prices, found.table.panels)
    assert costs.of(["a", "b"]) == 4.5
    assert costs.of(["b", "a"]) == 3.5
    assert costs.matrix.tolist() == [[0, 10], [10, 0]]
    three = read_set(folder, "three")
    assert three.n_classes == 3
    costs = three.settings[1].costs(three.table.prices, three.table.panels)
    assert costs.matrix.tolist() == [[0, 20, 20], [20, 0, 20], [20, 20, 0]]


def test_ratios_are_those_of_the_rows(folder: Path, registered: None) -> None:
    report = run_lomax(options(folder), progress=False)
    assert not report.failures
    assert [line.split(":")[0] for line in report.not_run] == ["three"]
    wrong = []
    with (folder.parent / "out" / "tables" / "folds.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    for level, error in ERRORS.items():
        own = [r for r in records if r["method"] == "fixed" and r["setting"] == level]
        assert len(own) == 3
        assert {int(r["n_rows"]) for r in own} <= {12, 13}
        wrong.append(np.mean([float(r["misclassification_cost"]) for r in own]) / error)
    # Errors are the same at all levels: they do not depend on the costs.
    np.testing.assert_allclose(wrong, wrong[0])
    assert 0 < wrong[0] < 0.6
    expected = [(3.5 + e * wrong[0]) / (4.5 + e * wrong[0]) for e in ERRORS.values()]
    assert [r.ratio for r in report.cells] == pytest.approx(expected)
    (overall,) = report.overall
    assert overall.ratio == pytest.approx(np.exp(np.mean(np.log(expected))))
    assert overall.by_splits is not None
    assert overall.by_splits.low < overall.ratio < overall.by_splits.high
    assert overall.by_rows.low < overall.ratio < overall.by_rows.high < 1
    assert all(r.method == "other" for r in report.cells)


def test_a_stopped_run_resumes_and_costs_count(folder: Path, registered: None) -> None:
    Fixed.fits = 0
    run_lomax(options(folder), progress=False)
    first = Fixed.fits
    assert first == 2 * 3 * 3
    again = run_lomax(options(folder, splits=4), progress=False)
    assert Fixed.fits == first + 2 * 3
    # Other discounts are another problem.
    path = folder / "tiny.json"
    path.write_text(path.read_text().replace("2.5", "1.5"))
    changed = run_lomax(options(folder, splits=4), progress=False)
    assert Fixed.fits == first + 2 * 3 + 2 * 3 * 4
    assert changed.cells[0].other_mean == pytest.approx(again.cells[0].other_mean - 1.0)


def test_the_command(folder: Path, registered: None) -> None:
    out = folder.parent / "report"
    arguments = ["bench", "lomax", "--data", str(folder), "--splits", "1", "--jobs", "1"]
    arguments += ["--methods", "fixed,other", "--against", "other", "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "three" in done.output
    page = (out / "index.html").read_text()
    for part in ("Total cost as a ratio to other", "tiny, high", "it has 3 classes, and fixed"):
        assert part in page
    assert (out / "summary.md").exists()
    done = CliRunner().invoke(app, [*arguments, "--json"])
    summary = json.loads(done.stdout)
    assert summary["against"] == "other"
    assert summary["ratio"]["fixed"]["splits_low"] is None
    assert len(summary["cells"]) == 3


def test_three_classes_are_run_by_what_takes_them(folder: Path, registered: None) -> None:
    """Ratios of policies that take more than two classes, and a class too rare to be tested."""
    with (folder / "three.csv").open("a") as file:
        file.write("1,1,c0,3\n")
    levels = json.loads((folder / "three.json").read_text())
    for level, error in ERRORS.items():
        levels[level]["misclassification"] = (error * (1 - np.eye(4))).tolist()
    (folder / "three.json").write_text(json.dumps(levels))
    chosen = {"methods": ("Full Model", "COS (group lasso)", "fixed"), "against": "Full Model"}
    report = run_lomax(options(folder, datasets=("three",), splits=2, **chosen), progress=False)
    assert not report.failures
    assert [(r.dataset, r.method) for r in report.cells] == [("three", "COS (group lasso)")] * 3
    assert report.not_run == ("three: it has 4 classes, and fixed takes two",)
    tables = folder.parent / "out" / "tables"
    with (tables / "folds.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    assert {r["n_rows"] for r in records} == {"12"}
    assert {r["recall"] for r in records} == {""}
    # Three classes that nothing tells apart: a third of the answers is right, on average.
    losses = [float(r["log_loss"]) for r in records if r["method"] == "Full Model"]
    assert np.log(3) - 0.1 < np.mean(losses) < np.log(3) + 0.6
    own = [r for r in records if r["method"] != "Full Model" and r["setting"] == "high"]
    total = np.mean([float(r["total_cost"]) for r in own])
    (cell,) = (r for r in report.cells if r.level == "high")
    assert cell.mean == pytest.approx(total)


def test_what_is_absent_is_reported(folder: Path, registered: None, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no folder"):
        run_lomax(options(tmp_path / "nowhere"), progress=False)
    with pytest.raises(InvalidInputError, match="tiny"):
        run_lomax(options(folder, datasets=("tiney",)), progress=False)
    with pytest.raises(InvalidInputError, match="two classes"):
        run_lomax(options(folder, datasets=("three",)), progress=False)
    with pytest.raises(InvalidInputError, match="registered"):
        run_lomax(options(folder, against="nobody"), progress=False)
    found = run_lomax(options(folder, against="Full Model", splits=1), progress=False)
    assert found.against == "fixed"
    assert "Full Model" in found.not_run[-1]
    levels = json.loads((folder / "tiny.json").read_text())
    del levels["low"]["prices"]["a"]
    (folder / "tiny.json").write_text(json.dumps(levels))
    with pytest.raises(InvalidInputError, match="price every covariate"):
        run_lomax(options(folder), progress=False)


def test_the_usual_methods_are_run_by_default() -> None:
    assert {"AdaCOS (group lasso)", "COS (group lasso)", "STreeD"} <= set(default_methods())
    assert "Full Model" not in default_methods()
    assert len(set(default_methods())) == len(default_methods())


def test_the_shared_sets(shared_dir: Path) -> None:
    folder = shared_dir / "data" / "lomax"
    if not folder.is_dir():
        pytest.skip(f"no Lomax sets in {folder}")
    sets = {name: read_set(folder, name) for name in find_sets(folder)}
    two = {name for name, one in sets.items() if one.settings}
    assert two >= {"breast", "diabetes", "heart", "tictactoe"}
    heart = sets["heart"]
    costs = heart.settings[0].costs(heart.table.prices, heart.table.panels)
    assert costs.of(["thal", "thalach"]) == pytest.approx(103.9)

"""Rows that belong together are in one fold of a benchmark, and count once in its intervals."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from adacos.bench import BenchConfig, asymmetric, register_dataset, register_method, run
from adacos.bench.comparisons import OutcomeIndex, compare_cells
from adacos.bench.folds import fold_of_rows, with_groups
from adacos.bench.own_table import TableOptions, grouped
from adacos.bench.settings import CrossValidation
from adacos.cli.app import app
from adacos.datasets import Dataset, load_heart, load_pima, load_wisconsin, paper_folds
from adacos.exceptions import InvalidInputError, TableWarning
from adacos.kernels.intervals import row_interval
from adacos.registry import METHODS, forgetting
from tests.bench.toy import toy_dataset

RANDOM = CrossValidation("random-1", 7)


def numbers(X: Any) -> Any:
    """An array of what `fit` and `acquire` are given."""
    return X if isinstance(X, np.ndarray) else np.column_stack([X.column(c) for c in X.columns])


class First:
    """Acquires the first covariate and answers 1 where it is high."""

    n_acquired = 1

    def __init__(self, costs: Any) -> None:
        self.costs = costs

    def fit(self, X: Any, y: Any) -> Any:
        rows = numbers(X)
        plain = isinstance(X, np.ndarray)
        self.table_ = self.costs.bind(["0", "1"] if plain else list(X.columns), 2)
        self.rows_, self.labels_ = rows, np.asarray(y)
        return self

    def label(self, rows: Any) -> Any:
        return np.unique(self.labels_)[(rows[:, 0] > 0.25).astype(int)]

    def acquire(self, X: Any) -> Any:
        rows = numbers(X)
        acquired = np.broadcast_to(np.arange(rows.shape[1]) < self.n_acquired, rows.shape).copy()
        half = np.full(len(rows), 0.5)
        paid = self.table_.of(acquired)
        return SimpleNamespace(
            label=self.label(rows), probability=half, acquired=acquired, cost=paid
        )


class Remembers(First):
    """Acquires both and answers as the nearest training row, which a copy of the row betrays."""

    n_acquired = 2

    def label(self, rows: Any) -> Any:
        distance = ((rows[:, None] - self.rows_) ** 2).sum(axis=2)
        return self.labels_[distance.argmin(axis=1)]


@pytest.fixture
def methods() -> Any:
    with forgetting():
        register_method("toy", First)
        register_method("remembers", Remembers)
        yield


def copied(times: int, n: int = 120) -> tuple[Dataset, Any]:
    """Rows of two covariates that say a little, each of them `times` times, and which is which."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + 0.5 * y[:, None]
    row = rng.permutation(np.repeat(np.arange(n), times))
    return Dataset(X[row], y[row], {"a": 2.0, "b": 3.0}, {}, "made up", ("a", "b")), row


def command(table: Dataset, path: Path, *more: Any, **columns: Any) -> Any:
    frame = pd.DataFrame(table.X, columns=list(table.names)).assign(y=table.y, **columns)
    frame.to_csv(path / "t.csv", index=False)
    given = ["--target", "y", "--prices", "a=2", "--prices", "b=3", "--jobs", 1, "--splits", 1]
    given += ["--false-positive", 10, "--false-negative", 10, "--methods", "toy,remembers"]
    options = [*given, "--out", path / "out", "--json", *more]
    return CliRunner().invoke(app, ["bench", "table", str(path / "t.csv"), *map(str, options)])


@pytest.mark.usefixtures("methods")
def test_copies_do_not_help_a_method_that_remembers_rows(tmp_path: Path) -> None:
    once, six = (tmp_path / name for name in ("once", "six"))
    reported = []
    for path, times in ((once, 1), (six, 6)):
        path.mkdir()
        result = command(copied(times)[0], path)
        assert result.exit_code == 0, result.output
        reported.append(json.loads(result.stdout))
    assert reported[0]["warnings"] == []
    (doubt,) = reported[1]["warnings"]
    assert doubt.startswith("720 of 720 rows are equal to another row")
    assert "--groups COLUMN" in doubt
    first, second = ({line["method"]: line for line in one["table"]} for one in reported)
    # With copies on both sides it was never wrong: 5 in all.
    assert second["remembers"]["total_cost"] > 8
    for name in ("toy", "remembers"):
        assert second[name]["total_cost"] == pytest.approx(first[name]["total_cost"], abs=0.8)
        assert second[name]["total_cost_error"] == pytest.approx(
            first[name]["total_cost_error"], rel=0.1
        )
    page = (six / "out" / "summary.md").read_text()
    assert "720 rows in 120 groups" in page
    assert doubt.split(".")[0] in page


@pytest.mark.usefixtures("methods")
def test_groups_named_on_the_command_line_are_kept(tmp_path: Path) -> None:
    """Visits differ in all values, so that nothing tells of them but their column."""
    table, row = copied(6)
    moved = table.X + 0.01 * np.random.default_rng(1).normal(size=table.X.shape)
    visits = table._replace(X=moved)
    patient = [f"P{k}" for k in row]
    alone = command(visits, tmp_path, "--drop", "who", who=patient)
    kept = command(visits, tmp_path, "--groups", "who", who=patient)
    assert kept.exit_code == 0, kept.output
    costs = []
    for result in (alone, kept):
        lines = {line["method"]: line for line in json.loads(result.stdout)["table"]}
        assert json.loads(result.stdout)["warnings"] == []
        costs.append(lines["remembers"]["total_cost"])
    assert costs[0] < 5.5
    assert costs[1] > 8
    few = command(visits, tmp_path, "--groups", "who", who=np.array(list("abcd"))[row % 4])
    assert "groups: must be at least 5 with rows of each class" in str(few.exception)


def test_rows_that_look_like_visits_are_asked_about() -> None:
    rng = np.random.default_rng(2)
    row = np.repeat(np.arange(200), 6)
    X = rng.normal(size=(200, 4))[row]
    X[:, 1] += rng.normal(0, 0.3, len(X))
    prices = dict.fromkeys("abcd", 1.0)
    table = Dataset(X, rng.integers(0, 2, 200)[row], prices, {}, "made up", tuple("abcd"))
    options, doubts = grouped(TableOptions("t", table, ((0.0, 1.0), (1.0, 0.0))))
    assert options.table.groups is None
    assert "1,200 of 1,200 rows are equal" in doubts[0]
    assert "all covariates but b" in doubts[0]
    assert "--groups COLUMN" in doubts[0]
    assert (
        grouped(TableOptions("t", table._replace(groups=row), options.misclassification))[1] == []
    )


@pytest.mark.usefixtures("methods")
def test_registered_data_sets_are_looked_at_too(tmp_path: Path) -> None:
    table, row = copied(6)
    register_dataset("copied", lambda: table)
    settings = (asymmetric(10.0),)
    config = BenchConfig(("copied",), ("toy", "remembers"), settings, tmp_path / "a", splits=1)
    with pytest.warns(TableWarning, match="copied: 720 of 720 rows are equal") as reported:
        result = run(config, progress=False)
    assert "run with paper_folds=False" in str(reported[0].message)
    own = [outcome for outcome in result.outcomes if outcome.method == "remembers"]
    paper = [outcome for outcome in own if outcome.split == "paper"]
    random = [outcome for outcome in own if outcome.split != "paper"]
    folds = paper_folds(table.X, table.y)
    for outcome in paper:
        np.testing.assert_array_equal(outcome.rows, np.flatnonzero(folds == outcome.fold))
    for outcome in random:
        assert not set(row[outcome.rows]) & set(np.delete(row, outcome.rows))
    assert np.mean([o.total.mean() for o in paper]) == pytest.approx(5.0)
    assert np.mean([o.total.mean() for o in random]) > 8
    others = [o for o in result.outcomes if o.split != "paper"]
    (cell,) = compare_cells(OutcomeIndex(others), "toy", "remembers")
    half = (cell.rows.high - cell.rows.low) / 2
    # Of 720 independent rows it would be 2.4 times as small.
    assert half > 0.8
    register_dataset("named", lambda: table._replace(groups=[f"P{k}" for k in row]))
    named = BenchConfig(("named",), ("toy",), settings, tmp_path / "b", paper_folds=False, splits=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        assert not run(named, progress=False).failures


@pytest.mark.usefixtures("methods")
def test_methods_are_fitted_with_the_groups_they_take(tmp_path: Path) -> None:
    given = []

    class Takes(First):
        def fit(self, X: Any, y: Any, groups: Any = None) -> Any:
            given.append(groups)
            return super().fit(X, y)

    register_method("takes", Takes)
    table, row = copied(6)
    register_dataset("named", lambda: table._replace(groups=row))
    config = BenchConfig(
        ("named",), ("takes",), (asymmetric(10.0),), tmp_path, paper_folds=False, splits=1
    )
    assert not run(config, progress=False).failures
    assert [len(np.unique(groups)) for groups in given] == [96] * 5
    assert METHODS["takes"].name == "takes"


@pytest.mark.parametrize("load", [load_pima, load_wisconsin, load_heart])
def test_the_bundled_tables_have_no_groups(load: Any) -> None:
    table = load(as_frame=False)
    assert with_groups(table) == (table, "")


def test_a_row_that_is_not_tested_is_kept_out_with_its_group() -> None:
    table = toy_dataset(n=60)
    table.X[::7, 1] = np.nan
    groups = np.arange(60) // 2
    fold, tested = fold_of_rows(table._replace(groups=groups), RANDOM)
    assert not tested[::7].any()
    assert tested.sum() == 60 - len(range(0, 60, 7))
    for k in range(30):
        assert len(np.unique(fold[groups == k])) == 1
    assert sorted(np.bincount(fold // 1)) == [12] * 5
    alone, _ = fold_of_rows(table, RANDOM)
    assert (alone == -1).sum() == len(range(0, 60, 7))


def test_a_rare_class_of_three_is_in_training_only() -> None:
    table = toy_dataset(n=80)
    y = table.y.copy()
    y[:4] = 2
    groups = np.r_[0, 0, 1, 1, np.arange(4, 80)]
    fold, tested = fold_of_rows(table._replace(y=y, groups=groups), RANDOM)
    assert np.all(fold[:4] == -1)
    assert not tested[:4].any()
    assert tested[4:].all()
    with pytest.raises(InvalidInputError, match="at least 5 with rows of each class"):
        fold_of_rows(toy_dataset(n=80)._replace(groups=np.arange(80) // 20), RANDOM)


def test_the_interval_over_groups_is_that_of_their_means() -> None:
    rng = np.random.default_rng(3)
    means = rng.normal(size=30)
    groups = np.repeat(np.arange(30), 4)
    reported = row_interval(means[groups], groups)
    half = stats.t.ppf(0.975, 29) * means.std(ddof=1) / np.sqrt(30)
    assert reported.high - reported.estimate == pytest.approx(half)
    assert reported.estimate == pytest.approx(means.mean())

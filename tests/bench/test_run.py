from __future__ import annotations

import csv
import gzip
import itertools
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adacos.bench import BenchConfig, FoldTable, RunResult, asymmetric, draw_costs, recall, run
from adacos.bench import units as units_module
from adacos.bench.comparisons import OutcomeIndex, compare_cells, compare_overall
from adacos.bench.folds import fold_of_rows
from adacos.bench.methods import build, can_share
from adacos.bench.settings import CrossValidation
from adacos.bench.tables import Cell, write_csv, write_rows
from adacos.costs import Costs
from adacos.datasets import paper_folds
from adacos.exceptions import InvalidInputError
from adacos.registry import METHODS, Method, Source
from tests.bench.toy import Thresholder, toy_dataset

SETTINGS = (asymmetric(1.0), asymmetric(10.0))


def toy_config(out, **changes):
    return BenchConfig(
        **{
            "datasets": ("made up",),
            "methods": ("toy", "noisy"),
            "settings": SETTINGS,
            "out": out,
            "splits": 1,
            **changes,
        }
    )


def table_of(result, path):
    write_csv(path, list(FoldTable(result.outcomes).records()))
    return path.read_bytes()


def test_measures_of_a_method_known_by_hand(tmp_path, registry):
    result = run(toy_config(tmp_path / "out", methods=("toy",), splits=0), progress=False)
    assert not result.failures
    folds = FoldTable(result.outcomes)
    cell = Cell("made up", "toy", "asymmetric", 10.0)
    table = toy_dataset()
    tested = paper_folds(table.X, table.y)
    label = (table.X[:, 0] > 0).astype(int)
    for fold in range(5):
        rows = tested == fold
        y, guess = table.y[rows], label[rows]
        wrong = 10 * np.mean((y == 0) & (guess == 1)) + 100 * np.mean((y == 1) & (guess == 0))
        assert folds.folds(cell, "total_cost")[fold] == pytest.approx(2.0 + wrong)
        assert folds.folds(cell, "covariate_cost")[fold] == pytest.approx(2.0)
        assert folds.folds(cell, "misclassification_cost")[fold] == pytest.approx(wrong)
        assert folds.folds(cell, "n_acquired")[fold] == 1.0
        false_positive = np.sum((y == 0) & (guess == 1))
        assert folds.folds(cell, "fdr")[fold] == pytest.approx(false_positive / guess.sum())
        operation = 2.0 + 10 * false_positive / len(y)
        assert folds.folds(cell, "operation_cost")[fold] == pytest.approx(operation)
        true_positive, true_negative = np.sum(y & guess), np.sum((1 - y) & (1 - guess))
        accuracy = (10 * true_positive + true_negative) / (10 * y.sum() + (1 - y).sum())
        assert folds.folds(cell, "weighted_accuracy")[fold] == pytest.approx(accuracy)
        assert folds.folds(cell, "recall")[fold] == pytest.approx(true_positive / y.sum())
    assert folds.std(cell, "total_cost") == pytest.approx(np.std(folds.folds(cell, "total_cost")))


def test_figures_of_any_run(tmp_path, registry):
    pytest.importorskip("matplotlib")
    settings = (*SETTINGS, recall(0.9, 10.0))
    registry.METHODS["toy"] = replace(registry.METHODS["toy"], recall=True)
    result = run(toy_config(tmp_path / "out", settings=settings), progress=False)
    drawn = draw_costs(result, tmp_path / "figures")
    names = [f"made-up-{s}-{k}" for k in ("paper", "random") for s in ("asymmetric", "recall-0-9")]
    assert sorted(path.stem for path in drawn) == sorted(names)
    endings = {path.suffix for path in (tmp_path / "figures").iterdir()}
    assert endings == {".png", ".pdf"}
    assert all(path.stat().st_size > 5_000 for path in drawn)
    with pytest.raises(InvalidInputError, match="result: must have outcomes"):
        draw_costs(RunResult((), {}, (), 0), tmp_path)


def test_finished_units_are_not_run_again(tmp_path, registry):
    first = run(toy_config(tmp_path / "out"), progress=False)
    fits = Thresholder.fits
    second = run(toy_config(tmp_path / "out"), progress=False)
    assert Thresholder.fits == fits
    assert second.n_reused == 2 * 2 * 10
    assert table_of(first, tmp_path / "a.csv") == table_of(second, tmp_path / "b.csv")


def test_other_settings_or_data_do_not_reuse_results(tmp_path, registry, monkeypatch):
    run(toy_config(tmp_path / "out"), progress=False)
    other = (SETTINGS[0], asymmetric(10.0, ratio=5.0))
    assert run(toy_config(tmp_path / "out", settings=other), progress=False).n_reused == 20
    monkeypatch.setitem(
        registry.DATASETS, "made up", Source("made up", lambda: toy_dataset(seed=1))
    )
    assert run(toy_config(tmp_path / "out"), progress=False).n_reused == 0


def test_interrupted_at_ten_random_points_gives_the_same_table(tmp_path, registry, monkeypatch):
    whole = table_of(run(toy_config(tmp_path / "whole"), progress=False), tmp_path / "whole.csv")
    rng = np.random.default_rng(0)
    genuine = np.savez_compressed
    for trial in range(10):
        out = tmp_path / f"out{trial}"
        left = int(rng.integers(1, 39))
        written = itertools.count()

        def interrupted(file, left=left, written=written, **arrays):
            if next(written) >= left:
                file.write(b"half a unit")
                raise KeyboardInterrupt
            genuine(file, **arrays)

        monkeypatch.setattr(units_module.np, "savez_compressed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(toy_config(out), progress=False)
        monkeypatch.setattr(units_module.np, "savez_compressed", genuine)
        resumed = run(toy_config(out), progress=False)
        assert resumed.n_reused == left
        assert table_of(resumed, tmp_path / "again.csv") == whole
        assert not list(out.rglob("*.tmp"))


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
import adacos.bench.units as units
from adacos.bench import BenchConfig, asymmetric, register_dataset, register_method, run
from tests.bench.toy import Noisy, Thresholder, toy_dataset
units.library_digest = lambda: "fixed"
genuine = units._write
def slow(path, arrays):
    genuine(path, arrays)
    print("done", flush=True)
    time.sleep(0.05)
units._write = slow
register_method("toy", Thresholder)
register_method("noisy", Noisy)
register_dataset("made up", toy_dataset)
run(BenchConfig(("made up",), ("toy", "noisy"), (asymmetric(1.0), asymmetric(10.0)),
                Path({out!r}), splits=1), progress=False)
"""


def test_killed_process_resumes_with_the_same_table(tmp_path, registry, monkeypatch):
    # Both processes must agree on the code even if a file is edited meanwhile.
    monkeypatch.setattr(units_module, "library_digest", lambda: "fixed")
    whole = table_of(run(toy_config(tmp_path / "whole"), progress=False), tmp_path / "whole.csv")
    out = tmp_path / "out"
    root = str(Path(__file__).parents[2])
    code = KILLED.format(root=root, out=str(out))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for after in (2, 5):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        for _ in range(after):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    resumed = run(toy_config(out), progress=False)
    assert 7 <= resumed.n_reused < 40
    assert table_of(resumed, tmp_path / "again.csv") == whole


def test_parallel_run_gives_the_same_table(tmp_path, registry):
    one = run(toy_config(tmp_path / "one"), progress=False)
    two = run(toy_config(tmp_path / "two", jobs=2), progress=False)
    assert table_of(one, tmp_path / "a.csv") == table_of(two, tmp_path / "b.csv")


class Tunable(Thresholder):
    """A method that tells its parameters."""

    def __init__(self, costs, cut):
        super().__init__(costs)
        self.cut = cut

    def get_params(self, deep=True):
        return {"costs": self.costs, "cut": self.cut}


def test_other_parameters_are_run_again(tmp_path, registry, monkeypatch):
    reused = []
    for cut in (0.5, 0.5, 1.5):
        tunable = Method("tunable", lambda costs, cut=cut: Tunable(costs, cut), "tunable")
        monkeypatch.setitem(registry.METHODS, "tunable", tunable)
        config = toy_config(tmp_path / "out", methods=("tunable",), splits=0)
        reused.append(run(config, progress=False).n_reused)
    assert reused == [0, 10, 0]


def test_truncated_unit_is_run_again(tmp_path, registry):
    config = toy_config(tmp_path / "out", splits=0)
    first = table_of(run(config, progress=False), tmp_path / "a.csv")
    victim = sorted((tmp_path / "out" / "units").iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:100])
    again = run(config, progress=False)
    assert again.n_reused == 19
    assert table_of(again, tmp_path / "b.csv") == first


def test_failing_method_is_reported_and_the_others_finish(tmp_path, registry):
    class Fails(Thresholder):
        def acquire(self, X):
            raise RuntimeError("no answer")

    registry.METHODS["noisy"] = Method("noisy", Fails, "noisy")
    result = run(toy_config(tmp_path / "out", splits=0), progress=False)
    assert len(result.failures) == 10
    assert "no answer" in result.failures[0].error
    assert {outcome.method for outcome in result.outcomes} == {"toy"}


def test_policies_of_a_family_share_one_fit(tmp_path, registry, monkeypatch):
    from adacos.policies.sequence_policy import SequencePolicy

    calls = []
    genuine = SequencePolicy.fit
    monkeypatch.setattr(
        SequencePolicy, "fit", lambda self, X, y: calls.append(1) or genuine(self, X, y)
    )
    config = BenchConfig(
        ("made up",),
        ("adacos-group-lasso", "cos-group-lasso", "full-model"),
        SETTINGS,
        tmp_path / "out",
        folds=(0,),
    )
    result = run(config, progress=False)
    assert not result.failures
    assert len(result.outcomes) == 6
    assert len(calls) == 1


def test_random_splits_test_every_complete_row_once():
    table = toy_dataset()
    table.X[3, 1] = np.nan
    first, second = (fold_of_rows(table, CrossValidation("random-1", seed))[0] for seed in (1, 2))
    assert (first == -1).sum() == 1
    assert first[3] == -1
    assert np.any(first != second)
    assert np.array_equal(
        fold_of_rows(table, CrossValidation("paper", None))[0], paper_folds(table.X, table.y)
    )


def test_frames_with_text_columns_run(tmp_path, registry):
    pd = pytest.importorskip("pandas")
    from adacos.bench import register_dataset
    from adacos.datasets import Dataset

    table = toy_dataset(n=100)
    frame = pd.DataFrame({"a": table.X[:, 0], "b": np.where(table.X[:, 1] > 0, "yes", "no")})
    frame.loc[5, "b"] = None
    y = np.where(table.y == 1, "sick", "well")
    register_dataset("frame", lambda: Dataset(frame, y, table.prices, {}, "", ("a", "b")))
    config = BenchConfig(("frame",), ("full-model",), SETTINGS[:1], tmp_path / "out", folds=(0,))
    result = run(config, progress=False)
    assert not result.failures
    # Classes in alphabetical order: "well" is the positive one.
    expected = (y[result.outcomes[0].rows] == "well").astype(int)
    assert np.array_equal(result.outcomes[0].y, expected)


def test_comparisons_of_two_methods(tmp_path, registry):
    result = run(toy_config(tmp_path / "out"), progress=False)
    index = OutcomeIndex(result.outcomes)
    cells = compare_cells(index, "toy", "noisy")
    assert {c.splits for c in cells} == {"paper", "random"}
    for c in cells:
        assert c.n_folds == 5
        assert c.n_rows == 60
        assert c.folds.low < c.folds.estimate < c.folds.high
    overall = compare_overall(index, "toy", "noisy", "asymmetric")
    assert {c.n_cells for c in overall} == {1}


def test_rows_without_pyarrow_are_csv(tmp_path, registry, monkeypatch):
    from adacos.bench import tables

    result = run(toy_config(tmp_path / "out", splits=0), progress=False)
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    path = write_rows(tmp_path, result.outcomes)
    with gzip.open(path, "rt") as file:
        records = list(csv.DictReader(file))
    assert len(records) == 60 * 2 * 2
    mean = np.mean(
        [
            float(r["total_cost"])
            for r in records
            if r["method"] == "toy" and r["false_positive_cost"] == "10.0" and r["fold"] == "0"
        ]
    )
    cell = Cell("made up", "toy", "asymmetric", 10.0)
    assert mean == pytest.approx(FoldTable(result.outcomes).folds(cell, "total_cost")[0])


def test_a_policy_that_branches_is_fitted_in_every_setting(tmp_path, registry):
    """It shares no fit, though it derives from policies that do."""
    config = toy_config(tmp_path / "out", methods=("Branching", "Auto"), splits=0)
    result = run(config, progress=False)
    assert not result.failures
    settings = {(outcome.method, outcome.setting) for outcome in result.outcomes}
    assert len(settings) == 4


def test_a_target_recall_is_put_around_a_policy_and_shares_the_fit_of_others() -> None:
    costs = Costs([1.0, 2.0, 4.0], false_positive=10)
    methods = [METHODS[name] for name in ("AdaCOS (group lasso)", "COS (group lasso)")]
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + y[:, None]
    first, second = (build(method, costs, recall(0.9, 10.0), 0) for method in methods)
    assert [first.target_recall, first.recall_at] == [0.9, "every_set"]
    assert can_share(second)
    second.from_model(first.fit(X, y))
    assert second.wrapped.model_ is first.wrapped.model_
    both = build(
        methods[0],
        Costs([1.0, 2.0, 4.0], false_positive=10, false_negative=10),
        asymmetric(10.0),
        0,
    )
    assert both.from_model(second).model_ is first.wrapped.model_

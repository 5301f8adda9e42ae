"""Rows in a Dask collection: the fit is that in memory, whoever holds the rows."""

from functools import partial

import numpy as np
import pytest
from joblib import parallel_config

from adacos import AdaCOSClassifier, Costs, InvalidInputError
from adacos.bench.tasks import Task, run_tasks
from adacos.models import large_fits, streamed_fits
from tests.test_streaming import COSTS, frame, written

dask = pytest.importorskip("dask")
LocalCluster = pytest.importorskip("dask.distributed").LocalCluster
get_worker = pytest.importorskip("dask.distributed").get_worker
get_client = pytest.importorskip("dask.distributed").get_client
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def large(monkeypatch):
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 2000)
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(streamed_fits, "SAMPLE_ROWS", 1500)


def same(one, other):
    assert one.sets_ == other.sets_
    np.testing.assert_allclose(one.model_.intercepts, other.model_.intercepts, atol=1e-8)
    np.testing.assert_allclose(one.model_.coefs, other.model_.coefs, atol=1e-8)
    np.testing.assert_allclose(
        one.model_.leave_out_log_odds, other.model_.leave_out_log_odds, atol=1e-8
    )
    np.testing.assert_array_equal(one.training_rows_.digests, other.training_rows_.digests)


def test_the_fit_on_a_collection_is_the_fit_in_memory():
    table = frame(3000)
    X, y = table.drop(columns="ill"), table["ill"]
    held = AdaCOSClassifier(COSTS).fit(X, y)
    spread = dd.from_pandas(table, npartitions=7, sort=False)
    with dask.config.set(scheduler="synchronous"):
        same(AdaCOSClassifier(COSTS).fit(spread.drop(columns="ill"), spread["ill"]), held)
        by_name = AdaCOSClassifier(COSTS).fit(spread, "ill")
    np.testing.assert_array_equal(by_name.predict(X[:200]), held.predict(X[:200]))
    answers = spread.drop(columns="ill").map_partitions(held.predict, meta=("label", "i8"))
    np.testing.assert_array_equal(answers.compute(scheduler="synchronous"), held.predict(X))


def test_adacos_fit_with_workers(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from adacos import load
    from adacos.cli import training
    from adacos.cli.app import app

    monkeypatch.setattr(training, "LARGE_ROWS", 2000)
    folder = tmp_path / "rows"
    folder.mkdir()
    written(folder, frame(2500))
    prices = [
        "--default-price",
        "1",
        "--false-positive",
        "30",
        "--false-negative",
        "60",
        "--categorical",
        "b",
    ]
    options = ["fit", str(folder), "--target", "ill", *prices, "--out"]
    assert CliRunner().invoke(app, [*options, str(tmp_path / "alone")]).exit_code == 0
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(dashboard_address=None, **local) as cluster:
        address = cluster.scheduler_address
        done = CliRunner().invoke(app, [*options, str(tmp_path / "many"), "--dask", address])
        get_client().close()
    assert done.exit_code == 0, done.output
    same(load(tmp_path / "many"), load(tmp_path / "alone"))


def test_arrays_few_rows_and_what_is_refused():
    table = frame(2500)
    X, y = table[["a", "b"]].to_numpy(dtype=float), table["ill"].to_numpy()
    costs = Costs([1.0, 2.0], false_positive=30, false_negative=60)
    with dask.config.set(scheduler="synchronous"):
        spread = da.from_array(X, chunks=(900, 1))
        same(
            AdaCOSClassifier(costs).fit(spread, da.from_array(y, chunks=800)),
            AdaCOSClassifier(costs).fit(X, y),
        )
        few = AdaCOSClassifier(costs, cv=3).fit(spread[:300], y[:300])
        held = AdaCOSClassifier(costs, cv=3).fit(X[:300], y[:300])
        np.testing.assert_array_equal(few.model_.coefs, held.model_.coefs)
        frames = dd.from_pandas(table, npartitions=3)
        with pytest.raises(InvalidInputError, match="must name a column"):
            AdaCOSClassifier(COSTS).fit(frames, "sick")
        with pytest.raises(InvalidInputError, match="mean_budget"):
            AdaCOSClassifier(COSTS, mean_budget=1.0).fit(frames, "ill")


def test_forward_selection_and_the_harness_run_where_joblib_is_told_to(tmp_path):
    """`parallel_config("dask")` spreads them unchanged; rows held as codes stay where they are."""
    table = frame(1500)
    X, y = table.drop(columns="ill"), table["ill"]
    parameters = {"sequence": "forward", "strengths": "common", "cv": 3}
    alone = AdaCOSClassifier(COSTS, **parameters).fit(X, y)
    many = frame(2500)
    held = AdaCOSClassifier(COSTS).fit(many.drop(columns="ill"), many["ill"])
    local = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with LocalCluster(dashboard_address=None, **local) as cluster, cluster.get_client():
        with parallel_config("dask"):
            same(AdaCOSClassifier(COSTS, **parameters).fit(X, y), alone)
            same(AdaCOSClassifier(COSTS).fit(many.drop(columns="ill"), many["ill"]), held)
            tasks = [Task(name, 1.0, partial(_note_worker, tmp_path / name)) for name in "ab"]
            assert run_tasks(tasks, jobs=1, progress=False) == ()
        where = {(tmp_path / name).read_text() for name in "ab"}
        assert where == {worker.worker_address for worker in cluster.workers.values()}


def _note_worker(path):
    path.write_text(get_worker().address)

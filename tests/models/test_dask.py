"""Rows in a Dask collection: fit and answers are those in memory, whoever holds the rows."""

import pickle
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    InvalidInputError,
    score_partitions,
)
from adacos.bench.tasks import Task, run_tasks
from adacos.models import large_fits, sequence_model, streamed_fits
from adacos.policies import partitions
from tests.models.streamed import COSTS, frame, with_classes, with_missing, written

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
        one.model_.out_of_fold_log_odds, other.model_.out_of_fold_log_odds, atol=1e-8
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


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_fit_of_several_classes_with_weights_is_the_fit_in_memory(share):
    table, costs = with_classes(frame(3000))
    table = with_missing(table, share) if share else table
    weight = np.random.default_rng(0).integers(1, 4, len(table)).astype(float)
    X, y = table.drop(columns="ill"), table["ill"]
    held = AdaCOSClassifier(costs, mean_budget=1.5, cv=3).fit(X, y, sample_weight=weight)
    spread = dd.from_pandas(table, npartitions=5, sort=False)
    policy = AdaCOSClassifier(costs, mean_budget=1.5, cv=3)
    with dask.config.set(scheduler="synchronous"):
        same(policy.fit(spread, "ill", sample_weight=weight), held)
    assert policy.mean_spent_ == pytest.approx(held.mean_spent_)


ANSWERS = ("label", "probability", "cost", "expected_cost", "stage")


def alike(answers, held):
    """The answers are those in memory; pieces of another size may be rounded otherwise."""
    for name in ANSWERS:
        rounding = 1e-12 if name in ("probability", "expected_cost") else 0.0
        np.testing.assert_allclose(answers[name], getattr(held, name), rtol=rounding, atol=0)


@pytest.mark.parametrize(
    "policy",
    [
        AdaCOSClassifier(COSTS, cv=3),
        AdaCOSClassifier(COSTS, cv=3, lookahead="coherent", budget=3.0),
        COSClassifier(COSTS, cv=3),
        FullModelClassifier(COSTS, cv=3),
        BranchingClassifier(COSTS, cv=3),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_partitions_are_answered_as_in_memory(policy):
    table = frame(900).drop(columns="e")
    table.loc[::7, "a"] = np.nan
    table.index = np.arange(900) * 2
    costs = Costs({"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0}, false_positive=30, false_negative=60)
    X, y = table.drop(columns="ill"), table["ill"]
    policy.set_params(costs=costs).fit(X, y)
    held = policy.acquire(X)
    spread = dd.from_pandas(table[["ill", *X.columns[::-1]]], npartitions=2, sort=False)
    lazy = score_partitions(policy, spread)
    answers = lazy.compute(scheduler="synchronous")
    np.testing.assert_array_equal(answers.index, table.index)
    alike(answers, held)
    assert answers.dtypes.equals(lazy.dtypes)
    assert answers.dtypes["label"] == answers.dtypes["stage"] == np.int8


def test_what_a_worker_holds_to_answer_is_bounded(monkeypatch):
    """Neither larger partitions nor more training rows make it more, but for the answers."""
    monkeypatch.setattr(sequence_model, "FOLLOWED_ROWS", 500)
    table = frame(3000)
    X, y = table.drop(columns="ill"), table["ill"]
    few, many = (AdaCOSClassifier(COSTS, cv=3).fit(X[:n], y[:n]) for n in (1000, 3000))
    travels = [len(pickle.dumps(partitions.for_answering(policy))) for policy in (few, many)]
    assert travels[1] < 1.1 * travels[0]
    assert travels[1] < len(pickle.dumps(many)) - 3000 * (8 + 8 * len(many.sets_))
    held, rows, acquire = many.acquire(X), [], AdaCOSClassifier.acquire

    def counted(policy, X, **given):
        rows.append(len(X))
        return acquire(policy, X, **given)

    monkeypatch.setattr(partitions, "PIECE_ROWS", 400)
    monkeypatch.setattr(AdaCOSClassifier, "acquire", counted)
    spread = dd.from_pandas(X, npartitions=1, sort=False)
    answers = score_partitions(many, spread).compute(scheduler="synchronous")
    assert max(rows) == 400
    assert sum(rows) == 3000
    alike(answers, held)


def test_workers_get_the_policy_once():
    table = frame(600)
    X, y = table.drop(columns="ill"), table["ill"]
    policy = _Arriving(COSTS, cv=3).fit(X, y)
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": True}
    with LocalCluster(dashboard_address=None, **local) as cluster, cluster.get_client() as client:
        spread = dd.from_pandas(X, npartitions=6, sort=False)
        answers = score_partitions(policy, spread)["label"].compute()
        assert list(client.run(_arrivals).values()) == [1]
    np.testing.assert_array_equal(answers, policy.predict(X))


class _Arriving(AdaCOSClassifier):
    """A policy that counts how often a fitted one was unpickled in a process."""

    arrivals = 0

    def __setstate__(self, state):
        super().__setstate__(state)
        # The parameters of the fit travel along as an unfitted one.
        _Arriving.arrivals += "decider_" in state


def _arrivals():
    return _Arriving.arrivals


def test_answers_of_words_of_many_classes_of_arrays_and_of_nothing():
    table = frame(900)
    X, y = table[["a", "b"]].to_numpy(dtype=float), table["c"].to_numpy()
    costs = Costs([1.0, 2.0], misclassification=30 * (1 - np.eye(3)))
    policy = AdaCOSClassifier(costs, cv=3).fit(X, y)
    held = policy.acquire(X)
    lazy = score_partitions(policy, da.from_array(X, chunks=(400, 1)))
    answers = lazy.compute(scheduler="synchronous")
    np.testing.assert_array_equal(answers["label"].astype(str), held.label)
    probabilities = answers[[f"probability_{k}" for k in range(3)]]
    np.testing.assert_allclose(probabilities, held.probability, atol=1e-12)
    spread = dd.from_pandas(table, npartitions=3, sort=False)
    named = COSClassifier(COSTS, cv=3).fit(table.drop(columns="ill"), table["ill"])
    nobody = score_partitions(named, spread[spread["b"] < 0])
    assert len(nobody.compute(scheduler="synchronous")) == 0
    with pytest.raises(InvalidInputError, match="must have the columns"):
        score_partitions(named, spread.drop(columns="b"))
    with pytest.raises(InvalidInputError, match="must be a Dask collection"):
        score_partitions(named, table)


def test_answers_with_what_was_acquired_known_and_kept(monkeypatch):
    table = frame(900).assign(id=np.arange(900) + 5000)
    table.loc[::7, "a"] = np.nan
    X, y = table.drop(columns=["ill", "id"]), table["ill"]
    policy = AdaCOSClassifier(COSTS, cv=3).fit(X, y)
    held = policy.acquire(X, known=np.isin(X.columns, ["b"]))
    monkeypatch.setattr(partitions, "PIECE_ROWS", 128)
    spread = dd.from_pandas(table, npartitions=2, sort=False)
    lazy = score_partitions(policy, spread, known=["b"], keep=["id", "c"], acquired=True)
    answers = lazy.compute(scheduler="synchronous")
    assert list(answers.columns) == ["id", "c", *ANSWERS, "acquired"] == list(lazy.columns)
    for name in ("id", "c"):
        np.testing.assert_array_equal(answers[name], table[name])
    for name in ANSWERS:
        np.testing.assert_allclose(answers[name], getattr(held, name), atol=1e-12)
    lists = [";".join(held.covariates(row)) for row in range(900)]
    assert answers["acquired"].tolist() == lists
    assert len(set(lists)) > 2
    strange = table.assign(a=table["a"].where(table["id"] != 5100, 99.0), c=None)
    lazy = score_partitions(
        policy, dd.from_pandas(strange, npartitions=2), known=["a", "c"], unusual=True
    )
    counts = lazy.compute(scheduler="synchronous")
    assert list(counts.columns) == [*ANSWERS, *partitions.UNUSUAL.values()] == list(lazy.columns)
    assert counts["unusual_implausible"].to_numpy().nonzero()[0].tolist() == [100]
    # Nothing is there where every value is missing.
    assert not counts["unusual_unknown_category"].any()
    array = da.from_array(X[["a", "b"]].to_numpy(dtype=float), chunks=(400, 1))
    for rows, given, message in (
        (spread, {"keep": ["Id"]}, "keep: must name columns of X.*Did you mean id"),
        (spread.assign(cost=1.0), {"keep": ["cost"]}, "must not name a column of the answers"),
        (spread, {"known": ["B"]}, "known: must name covariates"),
        (array, {"keep": ["a"]}, "keep: must name columns of X"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            score_partitions(policy, rows, **given)


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


def test_forward_selection_and_the_harness_run_where_joblib_is_reported_to(tmp_path):
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

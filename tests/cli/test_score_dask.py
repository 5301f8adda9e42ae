"""`adacos score --dask`: workers read, answer and write; the answers are those of plain `score`."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, describe, save
from adacos.batch import folders, score_folder
from adacos.exceptions import InvalidInputError
from adacos.tables.description import Description
from adacos.tables.writing import whole_folder_or_absent
from tests.models.streamed import COSTS, frame

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
LocalCluster = pytest.importorskip("dask.distributed").LocalCluster


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A model, and rows in two files of several groups, with gaps and what training did not see."""
    path = tmp_path_factory.mktemp("spread")
    table = frame(1500)
    policy = AdaCOSClassifier(COSTS, cv=3).fit(
        table.drop(columns="ill").astype({"b": str}), table["ill"]
    )
    describe(policy, Description(classes={"0": "well", "1": "ill"}))
    save(policy, path / "model.adacos")
    rows = frame(900, seed=1).drop(columns="ill").astype({"b": "Int64"})
    rows.loc[::7, "a"] = np.nan
    rows.loc[::5, "b"] = pd.NA
    rows.loc[::11, "c"] = None
    rows.loc[3::13, "c"] = "maybe"
    rows.loc[4::50, "a"] = 99.0
    rows.loc[6::40, "b"] = -1
    rows["id"] = np.arange(900)
    (path / "rows").mkdir()
    for number, part in enumerate((rows[:500], rows[500:])):
        file = path / "rows" / f"part{number}.parquet"
        part.to_parquet(file, index=False, row_group_size=200)
    return path


@pytest.fixture(scope="module")
def address():
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(dashboard_address=None, **local) as cluster:
        yield cluster.scheduler_address


def alike(one: Path, other: Path) -> None:
    """The same columns, types and answers; probabilities to rounding."""
    one, other = pq.read_table(one), pq.read_table(other)
    assert one.schema.equals(other.schema)
    for name in one.column_names:
        a, b = one[name].to_pylist(), other[name].to_pylist()
        if one.schema.field(name).type == "double":
            np.testing.assert_allclose(a, b, atol=1e-12)
        else:
            assert a == b


def test_the_answers_are_those_of_one_process(run, place, address, tmp_path, monkeypatch):
    monkeypatch.chdir(place)
    options = ["--keep", "id", "--keep", "c", "--known", "b", "--json"]
    code, out, _ = run("score", "model.adacos", "rows", tmp_path / "plain.parquet", *options)
    plain = json.loads(out)
    to = tmp_path / "answers"
    code, out, _ = run("score", "model.adacos", "rows", to, *options, "--dask", address)
    assert code == 0
    spread = json.loads(out)
    for same in ("rows", "rows_read", "labels", "malformed", "unusual", "unusual_rows"):
        assert spread[same] == plain[same]
    assert spread["rows"] == spread["rows_read"] == 900
    for near in ("mean_cost", "mean_expected_cost"):
        assert spread[near] == pytest.approx(plain[near], abs=1e-12)
    assert set(spread["unusual"]) >= {"implausible", "unknown_category"}
    assert 0 < spread["unusual_rows"] < 900
    assert sorted(path.name for path in to.iterdir()) == [f"part-0000{n}.parquet" for n in range(5)]
    alike(tmp_path / "plain.parquet", to)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers", "plain.parquet"]


def test_what_is_said_in_words(run, place, address, tmp_path):
    arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
    code, out, err = run(*arguments, "--known", "a", "--known", "c", "--dask", address)
    assert code == 0
    assert "900 of 900 rows read" in out
    assert "x ill" in out
    assert "mean covariate cost" in out
    assert "Values unlike those in training: " in err
    assert "implausible" in err
    assert "(--flag-unusual names them without --dask)" in err


def test_rows_like_those_in_training_raise_no_word(run, place, address, tmp_path):
    frame(300).drop(columns="ill").to_parquet(tmp_path / "rows.parquet")
    arguments = ("score", place / "model.adacos", tmp_path / "rows.parquet", tmp_path / "o")
    code, _, err = run(*arguments, "--known", "a", "--known", "c", "--dask", address)
    assert code == 0
    assert not err


def test_a_covariate_without_a_column_is_unavailable(run, place, address, tmp_path):
    rows = frame(50).drop(columns=["ill", "b"])
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ("score", place / "model.adacos", tmp_path / "rows.parquet")
    assert run(*arguments, tmp_path / "plain.parquet")[0] == 0
    code, _, err = run(*arguments, tmp_path / "o", "--dask", address)
    assert code == 0
    assert "has no column b: unavailable for every row" in err
    alike(tmp_path / "plain.parquet", tmp_path / "o")


def test_words_of_many_classes(run, address, tmp_path):
    table = frame(600)
    costs = Costs({"a": 1.0, "b": 2.0}, misclassification=30 * (1 - np.eye(3)))
    policy = AdaCOSClassifier(costs, cv=3).fit(table[["a", "b"]], table["c"])
    save(policy, tmp_path / "model")
    table.to_parquet(tmp_path / "rows.parquet")
    arguments = ("score", tmp_path / "model", tmp_path / "rows.parquet")
    assert run(*arguments, tmp_path / "plain.parquet")[0] == 0
    assert run(*arguments, tmp_path / "o", "--dask", address)[0] == 0
    alike(tmp_path / "plain.parquet", tmp_path / "o")
    assert "probability of some" in pq.read_table(tmp_path / "o").column_names


@pytest.mark.parametrize(
    ("source", "out", "options", "message"),
    [
        ("rows", "rows", [], "must not be a file that is read"),
        ("rows", "rows/o", [], "must not lie in the folder that is read"),
        ("rows", "there", [], "must not exist yet"),
        ("rows", "nowhere/o", [], "its folder must exist"),
        ("rows", "o.csv", [], "workers write a folder"),
        ("there", "o", [], "a folder must hold Parquet files"),
        ("t.csv", "o", [], "workers read Parquet"),
        ("none.parquet", "o", [], "needs at least one row"),
        ("wrong.parquet", "o", [], "line 3: 'much' in column 'a'"),
        ("rows", "o", ["--keep", "Id"], "Did you mean id?"),
        ("rows", "o", ["--keep", "cost"], "must name columns of the input"),
        ("rows", "o", ["--known", "id"], "must name covariates"),
        ("rows", "o", ["--flag-unusual"], "--flag-unusual: cannot be combined with --dask"),
        ("rows", "o", ["--skip-malformed"], "--skip-malformed: cannot be combined"),
        ("rows", "o", ["--escape-formulas"], "--escape-formulas: cannot be combined"),
        ("rows", "o", ["--chunk-rows", "7"], "--chunk-rows: cannot be combined"),
        ("rows", "o", ["--encoding", "latin-1"], "--encoding: cannot be combined"),
        ("rows", "o", ["--decimal", ","], "--decimal: cannot be combined"),
    ],
)
def test_mistakes_are_reported_and_leave_nothing(
    run, place, address, tmp_path, monkeypatch, source, out, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").symlink_to(place / "rows")
    (tmp_path / "there").mkdir()
    rows = frame(5).drop(columns="ill")
    rows.to_csv("t.csv")
    rows[:0].to_parquet("none.parquet")
    rows.assign(a=["1", "2", "much", "4", "5"]).to_parquet("wrong.parquet")
    before = sorted(tmp_path.rglob("*"))
    arguments = ("score", place / "model.adacos", source, out, *options)
    code, _, err = run(*arguments, "--dask", address)
    assert code == 2
    assert message in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("wrong", ["", "tcp://127.0.0.1:1", "http://127.0.0.1:8786"])
def test_no_scheduler(run, place, tmp_path, wrong):
    import dask

    arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
    with dask.config.set({"distributed.comm.timeouts.connect": "300ms"}):
        code, _, err = run(*arguments, "--dask", wrong)
    assert code == 2
    assert "--dask: must be the address of a scheduler that answers" in err


def test_no_dask(run, place, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
    code, _, err = run(*arguments, "--dask", "tcp://127.0.0.1:8786")
    assert code == 1
    assert "pip install '.[dask]'" in err


def test_no_worker_is_said(run, place, monkeypatch, tmp_path):
    """The command goes on: a cluster may start workers when there is work."""
    from adacos.cli import score

    monkeypatch.setattr(score, "score_folder", _gone)
    with _without_workers() as cluster:
        arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
        _, _, err = run(*arguments, "--dask", cluster.scheduler_address)
    assert "yet: waiting for one" in err


def test_no_worker_is_said_at_once_and_given_up(run, place, monkeypatch, tmp_path):
    import dask

    from adacos.models import dask_wait

    monkeypatch.setattr(dask_wait, "SILENCE", 0.2)
    with _without_workers() as cluster, dask.config.set({"adacos.timeout": None}):
        arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
        options = ("--dask", cluster.scheduler_address, "--dask-timeout", "1s")
        code, _, err = run(*arguments, *options)
    assert code == 2
    waiting, given_up = (
        err.index("warning: Dask: no worker for"),
        err.index("adacos: workers: must"),
    )
    assert waiting < given_up
    assert not list(tmp_path.iterdir())


def test_a_timeout_without_workers_to_wait_for(run, place, tmp_path):
    arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
    code, _, err = run(*arguments, "--dask-timeout", "10m")
    assert code == 2
    assert "--dask-timeout: goes with --dask" in err


def test_another_version(run, place, address, tmp_path, monkeypatch):
    from adacos.cli import workers

    monkeypatch.setattr(workers, "_version", lambda: "0.0.1")
    arguments = ("score", place / "model.adacos", place / "rows", tmp_path / "o")
    code, _, err = run(*arguments, "--dask", address)
    assert code == 2
    assert "the scheduler and all workers must have adacos" in err
    assert "0.0.1" in err


def _without_workers(attempts=3):
    """A cluster of a scheduler alone; on a busy machine its thread may not start within 10 s."""
    try:
        return LocalCluster(n_workers=0, processes=False, dashboard_address=None)
    except AssertionError:
        if attempts == 1:
            raise
        return _without_workers(attempts - 1)


def _gone(*_, **__):
    raise InvalidInputError("x", "y", "z", "")


def test_folders_that_a_worker_does_not_see(tmp_path):
    with pytest.raises(InvalidInputError, match="input: must be where every worker"):
        folders._read((str(tmp_path / "absent.parquet"), 0), [], None)
    with pytest.raises(InvalidInputError, match="output: must be where every worker"):
        folders._write(None, None, str(tmp_path / "absent" / "part-00000.parquet"))
    with pytest.raises(InvalidInputError, match="0 rows written of 5"):
        folders._check_written(tmp_path, 5)


def test_what_dead_workers_left_is_not_among_the_answers(place, address, tmp_path, monkeypatch):
    from dask.distributed import Client

    from adacos import load

    def write(answers, form, path):
        Path(path).with_name(".part-0.parquet.half").touch()
        return once(answers, form, path)

    def dies(answers, form, path):
        write(answers, form, path)
        raise ModuleNotFoundError("No module named adacos")

    once, policy = folders._write, load(place / "model.adacos")
    with Client(address) as client:
        monkeypatch.setattr(folders, "_write", write)
        score_folder(policy, place / "rows", tmp_path / "o", client)
        assert len(list((tmp_path / "o").iterdir())) == 5
        monkeypatch.setattr(folders, "_write", dies)
        with pytest.raises(InvalidInputError, match="workers: and their scheduler must live"):
            score_folder(policy, place / "rows", tmp_path / "p", client)
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


def test_a_folder_is_whole_or_absent(tmp_path):
    def interrupted():
        with whole_folder_or_absent(tmp_path / "o") as temporary:
            (temporary / "part").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())
    with whole_folder_or_absent(tmp_path / "o") as temporary:
        (temporary / "part").touch()
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["part"]
    assert (tmp_path / "o").stat().st_mode & 0o700 == 0o700

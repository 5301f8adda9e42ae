"""The data sets hold what the paper used, and foreign files are refused in plain words."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import narwhals
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from adacos.datasets import (
    Dataset,
    load_heart,
    load_physionet2012,
    load_pima,
    load_wisconsin,
    paper_folds,
)
from adacos.exceptions import InvalidInputError

BUNDLED = {"pima": load_pima, "wisconsin": load_wisconsin, "heart": load_heart}
PHYSIONET = "physionet2012.csv.gz"


@pytest.fixture(params=BUNDLED)
def bundled(request) -> Dataset:
    return BUNDLED[request.param](as_frame=False)


def shared_table(shared_dir: Path, file: str) -> dict[str, np.ndarray]:
    """The shared table by column, read apart from the code under test; empty cells are NaN."""
    path = shared_dir / "data" / file
    with gzip.open(path, "rt") if file.endswith(".gz") else path.open() as stream:
        header, *rows = csv.reader(stream)
    values = np.array([[cell or "nan" for cell in row] for row in rows]).astype(float)
    return dict(zip(header, values.T, strict=True))


@pytest.mark.parametrize(
    ("load", "shape", "positive", "missing"),
    [
        (load_pima, (768, 8), 268, {}),
        (load_wisconsin, (683, 9), 239, {}),
        (load_heart, (303, 13), 139, {"ca": 4, "thal": 2}),
    ],
)
def test_size_classes_and_missing_values(load, shape, positive, missing):
    X, y, _, _, _, names, *_ = load(as_frame=False)
    assert X.shape == shape
    assert X.dtype == np.float64
    assert y.dtype.kind == "i"
    assert (len(y), y.sum(), set(y)) == (shape[0], positive, {0, 1})
    counts = dict(zip(names, np.isnan(X).sum(axis=0), strict=True))
    assert {name: count for name, count in counts.items() if count} == missing


def test_zeros_that_were_not_recorded_become_missing_where_asked():
    kept = load_pima(as_frame=False)
    X, y, *_ = load_pima(zeros="missing", as_frame=False)
    unrecorded = ("Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI")
    for k, name in enumerate(kept.names):
        column = kept.X[:, k]
        gone = (column == 0) & (name in unrecorded)
        np.testing.assert_array_equal(np.isnan(X[:, k]), gone)
        np.testing.assert_array_equal(X[~gone, k], column[~gone])
    assert int(np.isnan(X).sum()) == 652
    np.testing.assert_array_equal(y, kept.y)
    with pytest.raises(InvalidInputError, match="zeros: must be one of"):
        load_pima(zeros="drop")


@pytest.mark.parametrize(
    ("file", "load"),
    [
        ("pima.csv", load_pima),
        ("wisconsin.csv", lambda **options: load_wisconsin(sample_code=True, **options)),
        ("heart.csv", load_heart),
    ],
)
def test_bundled_tables_equal_the_shared_ones(shared_dir, file, load):
    expected = shared_table(shared_dir, file)
    data = load(as_frame=False)
    assert [*data.names, "y", "test_fold"] == list(expected)
    np.testing.assert_array_equal(data.y, expected["y"])
    for name, column in zip(data.names, data.X.T, strict=True):
        np.testing.assert_array_equal(column, expected[name], err_msg=name)


@pytest.mark.parametrize("name", ["pima", "heart"])
def test_folds_equal_the_papers(shared_dir, name):
    expected = shared_table(shared_dir, f"{name}.csv")["test_fold"]
    np.testing.assert_array_equal(paper_folds(name), np.nan_to_num(expected, nan=-1))


def test_wisconsin_folds_hold_the_same_cases_as_the_papers(shared_dir):
    """The shared column exchanges the folds of two rows that are equal in every cell."""
    X, y, *_ = load_wisconsin(sample_code=True, as_frame=False)
    folds, expected = paper_folds(X, y), shared_table(shared_dir, "wisconsin.csv")["test_fold"]
    first, second = np.flatnonzero(folds != expected)
    np.testing.assert_array_equal(X[first], X[second])
    assert y[first] == y[second]
    assert (folds[first], folds[second]) == (expected[second], expected[first])


def test_physionet_table_and_its_folds_equal_the_papers(shared_dir):
    expected = shared_table(shared_dir, PHYSIONET)
    data = load_physionet2012(shared_dir / "data" / PHYSIONET, as_frame=False)
    assert [*data.names, "y", "test_fold"] == list(expected)
    assert data.X.shape == (12000, 30)
    assert np.isnan(data.X).sum() == 41_817
    np.testing.assert_array_equal(data.X, np.column_stack([expected[n] for n in data.names]))
    np.testing.assert_array_equal(data.y, expected["y"])
    assert data.prices == dict.fromkeys(data.names, 1.0)
    folds = paper_folds(data.X, data.y)
    np.testing.assert_array_equal(folds, np.nan_to_num(expected["test_fold"], nan=-1))


def test_prices_are_the_papers():
    assert list(load_pima().prices.values()) == [1, 17.61, 1, 1, 22.78, 1, 1, 1]
    heart = [1, 1, 1, 1, 7.27, 5.20, 15.50, 102.90, 87.30, 87.30, 87.30, 100.90, 102.90]
    assert list(load_heart().prices.values()) == heart
    assert set(load_wisconsin().prices.values()) == {1.0}


def test_prices_panels_and_names_belong_together(bundled):
    assert tuple(bundled.prices) == bundled.names
    members = [member for _, group in bundled.panels.values() for member in group]
    assert len(set(members)) == len(members)
    for shared, group in bundled.panels.values():
        assert len(group) > 1
        assert all(0 < shared < bundled.prices[member] for member in group)


def test_panels_leave_turneys_discounted_prices():
    """What the second test of a panel costs, in UCI's heart-disease.expense."""
    data = load_heart()
    later = {
        member: round(data.prices[member] - shared, 2)
        for shared, group in data.panels.values()
        for member in group
    }
    assert later == {
        "chol": 5.17, "fbs": 3.10, "exang": 1, "oldpeak": 1, "slope": 1, "thalach": 1, "thal": 1,
    }  # fmt: skip


def test_provenance_names_source_licence_and_citation(bundled):
    for heading in ("Source:", "Licence:", "Citation:"):
        assert heading in bundled.provenance


def test_unverified_panel_says_so():
    assert "UNVERIFIED" in load_pima().provenance


def test_sample_code_is_kept_on_request_only():
    without, kept = load_wisconsin(as_frame=False), load_wisconsin(sample_code=True, as_frame=False)
    assert kept.names == ("sample_code", *without.names)
    assert kept.prices == {"sample_code": 1.0, **without.prices}
    np.testing.assert_array_equal(kept.X[:, 1:], without.X)
    assert kept.X[0, 0] == 1_000_025


@pytest.mark.parametrize(
    ("hidden", "kind"),
    [
        ([], pandas.DataFrame),
        (["pandas"], polars.DataFrame),
        (["pandas", "polars"], pyarrow.Table),
        (["pandas", "polars", "pyarrow"], np.ndarray),
    ],
)
def test_container_is_the_first_installed(monkeypatch, hidden, kind):
    expected = load_heart(as_frame=False)
    pyarrow.table({"a": np.zeros(1)})  # pyarrow 17 looks for pandas once, and fails if it is hidden
    for package in hidden:
        monkeypatch.setitem(sys.modules, package, None)
    data = load_heart()
    assert isinstance(data.X, kind)
    if kind is not np.ndarray:
        frame = narwhals.from_native(data.X, eager_only=True)
        assert tuple(frame.columns) == data.names
        np.testing.assert_array_equal(frame.to_numpy(), expected.X)
        assert isinstance(load_heart(as_frame=True).X, kind)
    monkeypatch.undo()  # scikit-learn 1.7 takes a hidden pandas for an imported one
    np.testing.assert_array_equal(paper_folds(data.X, data.y), paper_folds("heart"))


def test_frame_on_request_needs_a_package(monkeypatch):
    for package in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInputError, match=r"as_frame: True needs pandas, polars or pyarrow"):
        load_pima(as_frame=True)


def test_callers_do_not_share_their_copies():
    first = load_pima()
    first.panels["blood"][1].clear()
    first.prices.clear()
    assert load_pima().panels == {"blood": (2.10, ["Glucose", "Insulin"])}
    assert len(load_pima().prices) == 8


def test_folds_divide_each_class_evenly_and_leave_incomplete_rows_out():
    X, y, *_ = load_heart(as_frame=False)
    folds = paper_folds(X, y)
    np.testing.assert_array_equal(folds == -1, np.isnan(X).any(axis=1))
    for label in (0, 1):
        sizes = np.bincount(folds[(y == label) & (folds >= 0)], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert (paper_folds(X, y, seed=1) != folds).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("iris",), r"X: a name must be one of .*received iris"),
        ((np.zeros((10, 2)), np.zeros(9)), "y: must hold one class for each of the 10 rows"),
        ((np.zeros((10, 2)),), "y: must hold one class"),
        ((np.zeros((10, 2)), [0] * 6 + [1] * 4), r"at least 5 rows .*received 4 for class 1"),
        (([["a"], ["b"]], [0, 1]), "X: must be a table of numbers"),
        ((np.zeros(10), np.zeros(10)), "X: must be a table of numbers"),
    ],
)
def test_folds_refuse(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        paper_folds(*arguments)


@pytest.fixture
def challenge(tmp_path) -> Path:
    """Two sets of the challenge's layout, three records in all."""
    write_record(
        tmp_path / "set-a" / "11.txt",
        "00:00,RecordID,11",
        "00:00,Age,54",
        "00:00,Gender,-1",
        "00:00,Height,-1",
        "00:00,ICUType,4",
        "00:00,Weight,80.5",
        "00:07,HR,73",
        "00:07,,1",
        "09:50,Weight,-1",
        "10:00,HR,61",
        "10:00,HR,62",
        "09:59,HR,60",
        "11:00,Temp,-1",
        "11:01,RespRate,19",
    )
    write_record(tmp_path / "set-a" / "12.txt", "00:00,RecordID,12", "00:00,Age,70")
    write_record(tmp_path / "set-b" / "5.txt", "00:00,RecordID,5", "47:11,pH,7.4")
    header = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"
    (tmp_path / "Outcomes-a.txt").write_text(f"{header}11,6,1,5,-1,0\n12,16,8,8,3,1\n")
    (tmp_path / "Outcomes-b.txt").write_text(f"{header}5,6,1,5,-1,1\n")
    return tmp_path


def write_record(path: Path, *lines: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["Time,Parameter,Value", *lines, ""]))


def test_challenge_folder_gives_the_last_recorded_values(challenge):
    data = load_physionet2012(challenge, as_frame=False)
    assert data.X.shape == (3, 30)
    assert data.y.tolist() == [0, 1, 1]
    known = [
        {name: value for name, value in zip(data.names, row, strict=True) if not np.isnan(value)}
        for row in data.X
    ]
    first = {"Age": 54, "ICUType": 4, "Weight": 80.5, "HR": 62, "Temp": -1}
    assert known == [first, {"Age": 70}, {"pH": 7.4}]


def test_challenge_folder_and_ready_table_agree(challenge, tmp_path):
    read = load_physionet2012(challenge, as_frame=True)
    table = tmp_path / "table.csv"
    read.X.assign(y=read.y, RecordID=[11, 12, 5])[["RecordID", "y", *read.names[::-1]]].to_csv(
        table, index=False
    )
    again = load_physionet2012(str(table))
    pandas.testing.assert_frame_equal(again.X, read.X)
    assert again.y.tolist() == read.y.tolist()
    assert "'table.csv'" in again.provenance


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("00:07,HR", r"set-a/12.txt: line 2 must be Time,Parameter,Value"),
        ("early,HR,70", r"set-a/12.txt: line 2 must be .* the time as hh:mm"),
        ("00:07,HR,fast", r"set-a/12.txt: line 2 must hold finite numbers.*received fast"),
        ("00:07,HR,inf", r"set-a/12.txt: line 2 must hold finite numbers"),
    ],
)
def test_malformed_record_is_refused_with_its_line(challenge, line, message):
    write_record(challenge / "set-a" / "12.txt", line)
    with pytest.raises(InvalidInputError, match=message):
        load_physionet2012(challenge)


def test_foreign_record_is_refused(challenge):
    (challenge / "set-a" / "12.txt").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"set-a/12.txt: line 1 must be Time,Parameter"):
        load_physionet2012(challenge)


def test_incomplete_challenge_folder_is_refused(challenge):
    with pytest.raises(InvalidInputError, match="must hold set-a, set-b or set-c"):
        load_physionet2012(challenge / "set-a")
    (challenge / "set-a" / "12.txt").unlink()
    with pytest.raises(InvalidInputError, match=r"one file for each RecordID .* 12.txt"):
        load_physionet2012(challenge)
    (challenge / "Outcomes-a.txt").write_text("RecordID,Survival\n11,0\n")
    with pytest.raises(InvalidInputError, match="no In-hospital_death"):
        load_physionet2012(challenge)
    (challenge / "Outcomes-a.txt").unlink()
    with pytest.raises(InvalidInputError, match=r"Outcomes-a.txt must lie next to set-a"):
        load_physionet2012(challenge)


def test_absent_path_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"path: must be a CSV file or the folder .*absent"):
        load_physionet2012(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv: line 1 must hold one different name for each column"),
        ("a,a\n1,2\n", "t.csv: line 1 must hold one different name for each column"),
        ("a,b\n1,2\n3\n", "t.csv: line 3 must hold 2 cells"),
        ("a,b\n1,2\n3,?\n", r"t.csv: line 3 must hold finite numbers.* received \?"),
        ("a,b\n1,2\n", r"must have a column for each covariate and y; received no MAP, DiasABP"),
    ],
)
def test_malformed_table_is_refused_with_its_line(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        load_physionet2012(tmp_path / "t.csv")


def test_class_other_than_0_or_1_is_refused(challenge, tmp_path):
    read = load_physionet2012(challenge, as_frame=True)
    read.X.assign(y=[0, 1, 2]).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InvalidInputError, match=r"t.csv: column y must hold 0 or 1.*received 2.0"):
        load_physionet2012(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("t.csv.gz", b"plain text"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-9]),
        ("t.csv", b"\xff\xfe\x00"),
    ],
    # Compressed bytes hold the time, and names of tests must not change from process to process.
    ids=["not compressed", "cut short", "binary"],
)
def test_binary_or_damaged_table_is_refused(tmp_path, file, content):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InvalidInputError, match="must be text, compressed if it"):
        load_physionet2012(tmp_path / file)

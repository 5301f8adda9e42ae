"""Sheets of Excel are read as CSV files are: the same kinds, lines and refusals."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos.exceptions import InvalidInputError, MalformedRowsError, MissingExtraError
from adacos.tables.pieces import Piece
from adacos.tables.reading import TableFile
from tests.tables.excel_files import book

HEADER = ["id", "age", "smoker", "zip", "since", "note"]
ROWS: list[list[Any]] = [
    [1, 41.5, True, "00501", datetime.datetime(2024, 3, 1), "a, b"],
    [2, None, False, "00502", datetime.datetime(2024, 3, 2, 12, 30), None],
    [3, 1e-7, None, "10003", None, "c"],
]


def read(path: Path | str, **options: Any) -> Piece:
    file = TableFile(path, **options)
    return file.read(file.columns, file.kinds())


@pytest.mark.parametrize("decimal", [".", ","])
def test_cells_are_read_as_in_a_csv_file(tmp_path: Path, decimal: str) -> None:
    table = read(book(tmp_path / "t.xlsx", HEADER, *ROWS), decimal=decimal).table
    assert table.columns == HEADER
    assert table.column("age").tolist()[::2] == [41.5, 1e-7]
    assert np.isnan(table.column("age")[1])
    assert table.column("smoker").tolist()[:2] == [1, 0]
    assert table.column("zip").tolist() == ["00501", "00502", "10003"]
    assert table.column("since").tolist() == ["2024-03-01", "2024-03-02T12:30:00", ""]
    assert table.column("note").tolist() == ["a, b", "", "c"]


def test_the_first_sheet_or_that_which_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", HEADER, *ROWS, Visits=[["x", "y"], [7, 8]])
    assert read(path).table.columns == HEADER
    assert read(f"{path}#Visits").table.column("y").tolist() == [8]
    with pytest.raises(InvalidInputError, match=r"Did you mean Visits\?.*t\.xlsx#Sheet"):
        TableFile(f"{path}#Visit")


def test_what_lies_around_a_table_is_not_read(tmp_path: Path) -> None:
    rows = [["x", "y", None], [1, 2, None], [None, None, None], [3, None, None], [None], [None]]
    path = book(tmp_path / "t.xlsx", *rows)
    file = TableFile(path)
    piece = file.read(file.columns, file.kinds(), skip_malformed=True)
    assert piece.table.column("x").tolist() == [1, 3]
    assert [bad.line for bad in piece.malformed] == [3]


def test_rows_that_are_wrong_are_named_by_line(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", ["x", "y"], *[[k, k] for k in range(30)], [1, 2, 3], ["a", 1])
    with pytest.raises(MalformedRowsError, match="line 32: cells: 3 instead of 2") as caught:
        read(path)
    assert "line 33: 'a' in column 'x' is not a finite number" in str(caught.value)


def test_an_error_in_a_cell_is_no_value(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", ["x", "y"], ["b", 1], ["#REF!", 2])
    with pytest.raises(MalformedRowsError, match="line 3: A3 holds the error #REF!"):
        read(path)


@pytest.mark.parametrize("keep", [0, 40, -40])
def test_damaged_files_are_refused_by_name(tmp_path: Path, keep: int) -> None:
    whole = book(tmp_path / "t.xlsx", HEADER, *ROWS).read_bytes()
    (tmp_path / "u.xlsx").write_bytes(whole[:keep])
    with pytest.raises(InvalidInputError, match=r"u\.xlsx: must be a whole Excel file"):
        TableFile(tmp_path / "u.xlsx")


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("adacos.tables.excel.MOST_BYTES", 1000)
    with pytest.raises(InvalidInputError, match="once unpacked"):
        TableFile(book(tmp_path / "t.xlsx", HEADER, *ROWS))


def test_without_openpyxl_the_command_that_installs_it_is_reported(
    tmp_path: Path, monkeypatch: Any
) -> None:
    path = book(tmp_path / "t.xlsx", HEADER, *ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[excel\]'"):
        TableFile(path)

"""Hostile tables: each case is a name, bytes, and the words of the one error that may follow.

Add a case to `REFUSED` or `READ`. Reading is bounded in memory, and no case may end in anything but
an `InvalidInputError` or a `MalformedRowsError`.
"""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adacos.cli.prices import read_prices
from adacos.exceptions import InvalidInputError, MalformedRowsError
from adacos.tables.reading import TableFile

MEBIBYTE = 1 << 20


def parquet_bytes() -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": np.arange(5000.0), "b": ["x", "y"] * 2500}), buffer)
    return buffer.getvalue()


def same_names() -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    column = pyarrow.array([1.0, 2.0])
    parquet.write_table(pyarrow.Table.from_arrays([column, column], names=["a", "a"]), buffer)
    return buffer.getvalue()


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


HEADER = b"a,b\n"
TABLE = HEADER + b"1,2\n" * 100
PACKED = gzip.compress(TABLE)

# Name of the file -> what it holds -> words of the error.
REFUSED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "nothing": ("t.csv", lambda: b"", "line 1 must hold"),
    "nothing, compressed": ("t.csv.gz", lambda: b"", "line 1 must hold"),
    "only blank lines": ("t.csv", lambda: b"\n\n\n", "line 1 must hold"),
    "zero bytes": ("t.csv", lambda: b"\0" * 1000, "needs at least one row"),
    "an unclosed quote in the header": ("t.csv", lambda: b'a,"b\n1,2\n', "line 1: a quoted cell"),
    "an unclosed quote": ("t.csv", lambda: TABLE + b'"1,2\n' + TABLE, "line 102: a quoted cell"),
    "a cell without end": (
        "t.csv",
        lambda: HEADER + b'"' + b"x" * 2 * MEBIBYTE,
        "line 2: a quoted",
    ),
    "a line without end": ("t.csv", lambda: HEADER + b"x" * 11_000_000, "line 2"),
    "a bomb of one line": (
        "t.csv.gz",
        lambda: gzip.compress(HEADER + b"0" * 300 * MEBIBYTE, 9),
        "no line may hold",
    ),
    "a bomb of delimiters": ("t.csv", lambda: b"," * 2 * MEBIBYTE, "line 1 must hold"),
    "gzip cut short": ("t.csv.gz", lambda: PACKED[:-12], "must be a whole gzip file"),
    "gzip with a wrong checksum": ("t.csv.gz", lambda: flipped(PACKED, -6), "whole gzip file"),
    "gzip with a wrong byte": ("t.csv.gz", lambda: flipped(PACKED, 14), "whole gzip file|utf-8"),
    "gzip in name only": ("t.csv.gz", lambda: TABLE, "must be a whole gzip file"),
    "UTF-16": ("t.csv", lambda: TABLE.decode().encode("utf-16"), "must be utf-8-sig text"),
    "a byte of Latin-1 far down": ("t.csv", lambda: TABLE + b"\xfc,1\n", "after line"),
    "an archive": ("t.csv", lambda: b"PK\x03\x04" + bytes(range(256)) * 9, "utf-8-sig"),
    "an old spreadsheet": ("t.xls", lambda: b"PK", "the sheet as CSV"),
    "Excel in name only": ("t.xlsx", lambda: b"PK", "must be a whole Excel file"),
    "Parquet in name only": ("t.parquet", lambda: TABLE, "must be a whole Parquet file"),
    "empty Parquet": ("t.parquet", lambda: b"", "must be a whole Parquet file"),
    "Parquet cut short": ("t.parquet", lambda: parquet_bytes()[:-40], "whole Parquet file"),
    "Parquet without its head": ("t.parquet", lambda: parquet_bytes()[4000:], "whole Parquet"),
    "Parquet with wrong pages": (
        "t.parquet",
        lambda: b"PAR1" + b"\xff" * 20_000 + parquet_bytes()[20_004:],
        "whole Parquet file",
    ),
    "Parquet with one name twice": ("t.parquet", same_names, "line 1 must hold one different name"),
}


def read_all(path: Path) -> int:
    file = TableFile(path)
    return len(file.read(file.columns, file.kinds()).table)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    name, content, words = REFUSED[case]
    path = tmp_path / name
    path.write_bytes(content())
    tracemalloc.start()
    try:
        with pytest.raises((InvalidInputError, MalformedRowsError), match=words) as caught:
            read_all(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert name in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert peak < 200 * MEBIBYTE


# What is odd but whole: name of the file -> content -> number of rows.
READ: dict[str, tuple[str, bytes, int]] = {
    "a byte-order mark": ("t.csv", b"\xef\xbb\xbfa,b\n1,2\n", 1),
    "line ends of three systems": ("t.csv", b"a,b\r\n1,2\r3,4\n", 2),
    "no last line end": ("t.csv", b"a,b\n1,2", 1),
    "blank lines between": ("t.csv", b"a,b\n\n1,2\n\n\n3,4\n", 2),
    "a quoted header": ("t.csv", b'"a","b, c"\n1,2\n', 1),
    "an inch mark": ("t.csv", b'size,n\n5",1\n7",2\n', 2),
    "doubled quotes": ("t.csv", b'a,b\n"say ""no""",1\n', 1),
    "huge and tiny numbers": ("t.csv", b"a,b\n1e300,5e-324\n-0.0,1e-400\n", 2),
    "two gzip members": ("t.csv.gz", gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"), 2),
    "formulas": ("t.csv", b"a,b\n=1+1,@x\n-x,+y\n", 2),
}


@pytest.mark.parametrize("case", READ)
def test_read(case: str, tmp_path: Path) -> None:
    name, content, rows = READ[case]
    (tmp_path / name).write_bytes(content)
    assert read_all(tmp_path / name) == rows


@pytest.mark.parametrize("encoding", ["nonsense", "hex", "rot13", "utf\0-8", ""])
def test_encodings_that_are_none(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(TABLE)
    with pytest.raises(InvalidInputError, match="encoding: must be a text encoding"):
        TableFile(tmp_path / "t.csv", encoding=encoding)


def test_pipes_and_folders_are_no_tables(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match="file: must be a plain file"):
        TableFile(tmp_path / "pipe.csv")
    with pytest.raises(InvalidInputError, match="file: a folder must hold Parquet files"):
        TableFile(tmp_path / "folder.csv")
    with pytest.raises(InvalidInputError, match="file: must exist"):
        TableFile(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_bytes_never_surprise(seed: int, tmp_path: Path) -> None:
    """Random damage to a good file is read, or refused by one of the two errors."""
    rng = np.random.default_rng(seed)
    good = {"t.csv": TABLE, "t.csv.gz": PACKED, "t.parquet": parquet_bytes()}
    for _ in range(40):
        for name, content in good.items():
            data = bytearray(content)
            for position in rng.integers(0, len(data), 3):
                data[position] = rng.integers(0, 256)
            path = tmp_path / name
            path.write_bytes(data[: rng.integers(len(data) // 2, len(data) + 1)])
            try:
                read_all(path)
            except (InvalidInputError, MalformedRowsError) as error:
                assert name in str(error)  # noqa: PT017


# Price lists: name of the file -> content -> words of the error.
PRICES: dict[str, tuple[str, bytes, str]] = {
    "nested without end": ("p.toml", b"a = " + b"[" * 20_000, "must be TOML"),
    "a number of 5,000 digits": ("p.toml", b"[prices]\na = " + b"9" * 5000, "must be TOML"),
    "a cost beyond floats": ("p.toml", b"[prices]\na = 1" + b"0" * 400, "must be a number"),
    "an infinite cost": ("p.toml", b"[prices]\na = inf", "must be a number"),
    "prices that are a number": ("p.toml", b"prices = 3", "must have tables"),
    "panels that are a list": ("p.toml", b"panels = [1]\n[prices]\na = 1", "must have tables"),
    "errors that are a number": ("p.toml", b"errors = 3\n[prices]\na = 1", "must have tables"),
    "members that are a number": (
        "p.toml",
        b"[prices]\na = 1\n[panels.x]\nshared = 1\nmembers = 3",
        "must hold shared and members",
    ),
    "other bytes as TOML": ("p.toml", b"\xff\xfe\x00", "must be TOML"),
    "other bytes as CSV": ("p.csv", b"\xff\xfe\x00", "must be UTF-8"),
    "an unclosed quote": ("p.csv", b'covariate,cost\na,1\n"b,2\nc,3\n', "line 3: a quoted cell"),
    "a covariate twice": ("p.csv", b"a,1\nb,2\na,3\n", "line 3 must hold a covariate"),
    "an underscore": ("p.csv", b"a,1\nb,1_0\n", "line 2 must hold a covariate"),
}


@pytest.mark.parametrize("case", PRICES)
def test_price_lists(case: str, tmp_path: Path) -> None:
    name, content, words = PRICES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=words) as caught:
        read_prices([str(tmp_path / name)], [], ["a", "b"])
    assert len(str(caught.value)) < 2000

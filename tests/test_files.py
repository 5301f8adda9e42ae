"""Tables in files: what is read, what is refused and by which line, and output that is whole."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from adacos.exceptions import InvalidInputError, MalformedRowsError
from adacos.files import TableFile, whole_or_absent


def write(path, text: str, encoding: str = "utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def read(file: TableFile, **options):
    return file.read(file.columns, file.text_columns(), **options)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_unknown_values_and_types(tmp_path, delimiter):
    text = "a,b,c\n1,red,NA\n,?,2.5\n-3e2, blue ,null\n".replace(",", delimiter)
    file = TableFile(write(tmp_path / "t.csv", text))
    assert file.text_columns() == {"b"}
    piece = read(file)
    np.testing.assert_array_equal(piece.table.column("a"), [1, np.nan, -300])
    assert piece.table.column("b").tolist() == ["red", "", "blue"]
    np.testing.assert_array_equal(piece.table.column("c"), [np.nan, 2.5, np.nan])
    assert piece.lines.tolist() == [2, 3, 4]


def test_compressed_quoted_and_marked_files(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbfa,"b, too"\r\n1,"x\r\ny"\r\n2,z\r\n'))
    piece = read(TableFile(path))
    assert piece.table.columns == ["a", "b, too"]
    assert piece.table.column("b, too").tolist() == ["x\r\ny", "z"]
    assert piece.lines.tolist() == [3, 4]


def test_pieces_are_the_whole(tmp_path):
    text = "a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(100))
    file = TableFile(write(tmp_path / "t.csv", text))
    pieces = list(file.pieces(["b", "a"], (), chunk_rows=7))
    assert len(pieces) == 15
    assert np.concatenate([p.table.column("a") for p in pieces]).tolist() == list(range(100))
    assert np.concatenate([p.lines for p in pieces]).tolist() == list(range(2, 102))


def test_malformed_rows(tmp_path):
    numbers = "".join(f"{i},{i}\n" for i in range(30))
    text = "a,b\n" + numbers + "1\n\nx,2\ninf,3\n4,5,6\n7,8\n"
    file = TableFile(write(tmp_path / "t.csv", text))
    with pytest.raises(MalformedRowsError) as caught:
        read(file)
    message = str(caught.value)
    assert "4 malformed rows" in message
    for part in (
        "line 32: 1 cells instead of 2",
        "line 34: 'x' in column 'a' is not a finite number",
        "line 35: 'inf' in column 'a'",
        "line 36: 3 cells instead of 2",
    ):
        assert part in message
    piece = read(file, skip_malformed=True)
    assert piece.lines.tolist() == [*range(2, 32), 37]
    assert [bad.line for bad in piece.malformed] == [32, 34, 35, 36]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 must hold"),
        ("a,a\n1,2\n", "line 1 must hold"),
        ("a,b\n", "needs at least one row"),
        ('a,b\n1,"2\n' + "3,4\n" * 300_000, "line"),
    ],
)
def test_unreadable_files(tmp_path, text, message):
    with pytest.raises((InvalidInputError, MalformedRowsError), match=message):
        read(TableFile(write(tmp_path / "t.csv", text)))


def test_other_encodings_are_told_and_read(tmp_path):
    path = write(tmp_path / "t.csv", "größe,y\n1,0\n", "latin-1")
    with pytest.raises(InvalidInputError, match="--encoding latin-1"):
        TableFile(path)
    assert TableFile(path, encoding="latin-1").columns == ["größe", "y"]


def test_output_is_whole_or_absent(tmp_path):
    path = tmp_path / "out.txt"
    with whole_or_absent(path) as temporary:
        temporary.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"

    def interrupted():
        with whole_or_absent(path) as temporary:
            temporary.write_text("second")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]

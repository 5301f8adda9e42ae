"""Tables in files: what is read, what is refused and by which line, and output that is whole."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from adacos.exceptions import InvalidInputError, MalformedRowsError
from adacos.tables.reading import Kinds, TableFile
from adacos.tables.writing import refuse_same_file, whole_or_absent
from adacos.validation import choices, listed


def write(path, text: str, encoding: str = "utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def read(file: TableFile, **options):
    return file.read(file.columns, file.kinds(), **options)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_unknown_values_and_types(tmp_path, delimiter):
    text = "a,b,c\n1,red,NA\n,?,2.5\n-3e2, blue ,null\n".replace(",", delimiter)
    file = TableFile(write(tmp_path / "t.csv", text))
    assert file.kinds() == Kinds({"b"}, set())
    piece = read(file)
    np.testing.assert_array_equal(piece.table.column("a"), [1, np.nan, -300])
    assert piece.table.column("b").tolist() == ["red", "", "blue"]
    np.testing.assert_array_equal(piece.table.column("c"), [np.nan, 2.5, np.nan])
    assert piece.lines.tolist() == [2, 3, 4]


def test_none_is_a_category_and_no_number(tmp_path):
    text = "pain,dose\n" + "none,1\nNone,2\nNA,n/a\nnull,NaN\n?,3\n,\nmild,4\n" * 3
    piece = read(TableFile(write(tmp_path / "t.csv", text)))
    assert piece.table.column("pain").tolist() == ["none", "None", "", "", "", "", "mild"] * 3
    assert np.isnan(piece.table.column("dose")).tolist() == [False, False, *[True] * 2, False,
                                                             True, False] * 3  # fmt: skip
    file = TableFile(write(tmp_path / "u.csv", "dose,y\n" + "1,0\n" * 20 + "none,1\n"))
    with pytest.raises(MalformedRowsError, match="line 22: 'none' in column 'dose'"):
        read(file)


def test_true_and_false_are_numbers_as_in_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    text = "smoker,word\nTrue,true\nfalse,maybe\nNA,\n TRUE ,false\n"
    file = TableFile(write(tmp_path / "t.csv", text))
    assert file.kinds() == Kinds({"word"}, {"smoker"})
    values = {"smoker": [True, False, None, True], "word": ["true", "maybe", None, "false"]}
    parquet.write_table(pyarrow.table(values), tmp_path / "t.parquet")
    for table in (read(file).table, read(TableFile(tmp_path / "t.parquet")).table):
        np.testing.assert_array_equal(table.column("smoker"), [1, 0, np.nan, 1])
        assert table.column("word").tolist() == ["true", "maybe", "", "false"]
    late = "smoker,y\n" + "true,1\n" * 10_000 + "perhaps,0\n"
    with pytest.raises(MalformedRowsError, match="line 10002: 'perhaps' in column 'smoker'"):
        read(TableFile(write(tmp_path / "late.csv", late)))


def test_true_in_a_column_of_numbers_is_an_error(tmp_path):
    file = TableFile(write(tmp_path / "t.csv", "bmi,y\n" + "25.5,0\n" * 20 + "true,1\n"))
    with pytest.raises(MalformedRowsError, match="line 22: 'true'"):
        read(file)


def test_text_in_parquet_where_numbers_are_needed(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.table({"a": ["1.5", None, "tall", "NA"]}), tmp_path / "t.parquet")
    file = TableFile(tmp_path / "t.parquet")
    (piece,) = file.pieces(["a"], Kinds(frozenset()))
    np.testing.assert_array_equal(piece.table.column("a"), [1.5, np.nan, np.nan])
    assert [str(bad) for bad in piece.malformed] == [
        "line 3: 'tall' in column 'a' is not a finite number"
    ]


def test_lists_and_near_misses():
    assert listed(["a", "b, c", 1]) == 'a, "b, c", 1'
    names = ["Systolic BP", "Troponin, ng/L"]
    assert choices(["systolic bp"], names, "They are").startswith("Did you mean Systolic BP? They")
    assert choices(["zzz"], names, "They are") == 'They are Systolic BP, "Troponin, ng/L".'


def test_spreadsheets_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="Save the sheet as CSV"):
        TableFile(write(tmp_path / "t.xlsx", "PK"))


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
    pieces = list(file.pieces(["b", "a"], Kinds(frozenset()), chunk_rows=7))
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
        "line 32: cells: 1 instead of 2",
        "line 34: 'x' in column 'a' is not a finite number",
        "line 35: 'inf' in column 'a'",
        "line 36: cells: 3 instead of 2",
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


def rows_of(n: int, stray: dict[int, str]) -> str:
    """A header and n rows of number, text, number; `stray` replaces the text of some lines."""
    lines = [f"{line},{stray.get(line, 'word')},{line % 7}" for line in range(2, n + 2)]
    return "\n".join(["id,note,x", *lines]) + "\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (rows_of(500, {250: '"high'}), 250),  # swallows the rest of the file
        (rows_of(500, {250: '"high', 300: 'low"'}), 250),  # swallows fifty rows
        (rows_of(500, {250: '"high', 251: 'low"'}), 250),  # swallows one row
        (rows_of(500, {250: '"high', 300: '"low'}), 250),
        (rows_of(500, {250: '"a,b', 252: 'c",d'}), 250),  # closed in another column
        ("note\n" + '"\n' + "word\n" * 400 + '"\n', 2),  # nothing but its length tells
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_a_stray_quotation_mark_loses_no_row_in_silence(tmp_path, text, line, skip):
    file = TableFile(write(tmp_path / "t.csv", text))
    with pytest.raises(InvalidInputError, match=f"line {line}: a quoted cell begins"):
        file.read(file.columns, Kinds(frozenset(file.columns)), skip_malformed=skip)


def test_text_after_a_quoted_cell_is_a_malformed_row(tmp_path):
    file = TableFile(write(tmp_path / "t.csv", rows_of(9, {4: '"a" b', 6: '5" pipe'})))
    with pytest.raises(MalformedRowsError, match="line 4: quotation marks"):
        read(file)
    piece = read(file, skip_malformed=True)
    assert piece.lines.tolist() == [2, 3, 5, 6, 7, 8, 9, 10]
    assert piece.table.column("note")[3] == '5" pipe'


def test_notes_of_several_lines_are_read(tmp_path):
    note = '"pain, mild\nsince Monday, worse today\n\n- 3 tablets, 2 a day\n"'
    piece = read(TableFile(write(tmp_path / "t.csv", rows_of(5, {3: note, 5: note}))))
    assert piece.table.column("id").tolist() == [2, 3, 4, 5, 6]
    assert piece.table.column("note")[1].startswith("pain, mild\nsince")


def test_a_delimiter_inside_quotation_marks_is_none(tmp_path):
    file = TableFile(write(tmp_path / "t.csv", '"a; b; c",d\n1,2\n'))
    assert file.columns == ["a; b; c", "d"]


def test_underscores_are_no_part_of_a_number(tmp_path):
    file = TableFile(write(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 20 + "1_0,3\n"))
    with pytest.raises(MalformedRowsError, match="line 22: '1_0' in column 'a'"):
        read(file)
    assert TableFile(write(tmp_path / "u.csv", "a\n1_0\n2_0\n")).kinds() == Kinds({"a"}, set())


def test_how_much_has_been_read(tmp_path):
    text = rows_of(9000, {})
    plain, packed = write(tmp_path / "t.csv", text), tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        file = TableFile(path)
        shares = [file.share_read for _ in file.pieces(["x"], Kinds(frozenset()), 3000)]
        assert shares == sorted(shares)
        assert 0 < shares[0] <= shares[-1] <= 1


def test_an_output_is_not_a_file_that_is_read(tmp_path):
    table = write(tmp_path / "t.csv", "a\n1\n")
    (tmp_path / "link.csv").symlink_to(table)
    os.link(table, tmp_path / "hard.csv")
    for name in ("t.csv", "link.csv", "hard.csv", "../" + tmp_path.name + "/t.csv"):
        with pytest.raises(InvalidInputError, match="must not be a file that is read"):
            refuse_same_file(tmp_path / name, [tmp_path / "model", table])
    refuse_same_file(tmp_path / "new.csv", [table])
    with pytest.raises(InvalidInputError, match="must not be a file that is read"):
        refuse_same_file(tmp_path / "new.csv", [tmp_path / "." / "new.csv"])


def test_an_output_is_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(InvalidInputError, match="output: must be a plain file"),
        whole_or_absent(tmp_path / "pipe"),
    ):
        pass


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

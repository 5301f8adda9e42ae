"""Tables in files: what is read, what is refused and by which line, and output that is whole."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from adacos.exceptions import InvalidInputError, MalformedRowsError
from adacos.tables.pieces import Kinds
from adacos.tables.reading import TableFile
from adacos.tables.writing import (
    refuse_same_file,
    whole_folder_or_absent,
    whole_or_absent,
    write_whole,
)
from adacos.validation import choices, listed


def write(path, text: str, encoding: str = "utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def read(file: TableFile, **options):
    return file.read(file.columns, file.kinds(), **options)


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        (["00501", "10001", "90210"], True),
        (["007", "0042", "12"], True),
        (["7", "0", "12"], False),
        (["07", *map(str, range(1, 60))], False),
        (["0.5", "00.5", "01"], False),
        (["00501", "?", ""], True),
        (["-01", "-02"], False),
    ],
)
def test_digits_with_leading_zeros_are_codes(tmp_path, cells, codes):
    """One such cell among numbers of several lengths is a way of writing a number."""
    file = TableFile(write(tmp_path / "zip.csv", "zip,x\n" + "".join(f"{c},1\n" for c in cells)))
    kinds = file.kinds()
    assert (kinds.codes == kinds.text == {"zip"}) is codes
    first = read(file).table.column("zip")[0]
    assert first == (cells[0] if codes else float(cells[0]))


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


def test_a_row_of_empty_cells_is_nobody(tmp_path):
    """As spreadsheets leave them below the table; it was answered like a row."""
    file = TableFile(write(tmp_path / "t.csv", "a,b\n1,x\n,\n NA,?\n , \n2,y\n\n"))
    piece = read(file, skip_malformed=True)
    assert piece.lines.tolist() == [2, 4, 6]
    assert [str(bad) for bad in piece.malformed] == [
        "line 3: every cell is empty",
        "line 5: every cell is empty",
    ]
    with pytest.raises(MalformedRowsError, match="line 3: every cell is empty"):
        read(file)
    alone = TableFile(write(tmp_path / "one.csv", 'a\n1\n""\n2\n'))
    assert read(alone).lines.tolist() == [2, 3, 4]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_utf_16_is_named(tmp_path, encoding):
    path = write(tmp_path / "t.csv", "a,b\n1,x\n", encoding="utf-16")
    with pytest.raises(InvalidInputError, match=r"UTF-16 text\. Read it with --encoding utf-16"):
        TableFile(path, encoding=encoding)
    assert read(TableFile(path, encoding="utf-16")).table.column("b").tolist() == ["x"]


def test_the_names_that_are_wrong_in_a_header_are_named(tmp_path):
    names = [f"a_rather_long_name_{k}" for k in range(12)]
    wrong = {"more than one a_rather_long_name_11": [*names, names[-1]]}
    wrong["no name for column 13"] = [*names, ""]
    for message, header in wrong.items():
        path = write(tmp_path / "t.csv", ",".join(header) + "\n")
        with pytest.raises(InvalidInputError, match=message):
            TableFile(path)


def test_none_is_a_category_and_no_number(tmp_path):
    text = "pain,dose\n" + "none,1\nNone,2\nNA,n/a\nnull,NaN\n?,3\n,NA\nmild,4\n" * 3
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


def test_parquet_and_csv_agree_on_what_is_unknown(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    words = ["red", " NA", "n/a", "", None, "?", "Null", " blue "]
    table = pyarrow.table({"a": words, "b": pyarrow.array(words).dictionary_encode()})
    parquet.write_table(table, tmp_path / "t.parquet")
    # A number beside them, as a row of empty cells alone is no row.
    lines = "".join(f"{word or ''},{word or ''},1\n" for word in words)
    for path in (tmp_path / "t.parquet", write(tmp_path / "t.csv", "a,b,c\n" + lines)):
        table = read(TableFile(path)).table
        for name in ("a", "b"):
            assert table.column(name).tolist() == ["red", "", "", "", "", "", "", "blue"]


def test_integers_beyond_floats_in_parquet_are_numbers(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    large = [2**53 + 1, -(2**62), None, 7]
    unsigned = pyarrow.array([2**64 - 1, 1, 2, 3], pyarrow.uint64())
    parquet.write_table(pyarrow.table({"a": large, "b": unsigned}), tmp_path / "t.parquet")
    lines = "".join(f"{a or ''},{b}\n" for a, b in zip(large, unsigned, strict=True))
    for path in (tmp_path / "t.parquet", write(tmp_path / "t.csv", "a,b\n" + lines)):
        table = read(TableFile(path)).table
        np.testing.assert_array_equal(table.column("a"), [2.0**53, -(2.0**62), np.nan, 7])
        np.testing.assert_array_equal(table.column("b"), [2.0**64, 1, 2, 3])
    file = TableFile(tmp_path / "t.parquet")
    (piece,) = file.pieces(["a"], Kinds(frozenset({"a"})))
    assert piece.table.column("a")[0] == str(2**53 + 1)  # kept as it is written


def test_columns_of_other_kinds_are_refused_by_name(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import datetime

    import pyarrow

    day = datetime.datetime(2026, 1, 31)
    odd = {
        "list": [[1, 2]],
        "struct": [{"a": 1}],
        "binary": [b"x"],
        "timestamp": [day],
        "date32": [day.date()],
        "duration": [datetime.timedelta(1)],
    }
    parquet.write_table(pyarrow.table({"a": [1.0], "none": [None], **odd}), tmp_path / "t.parquet")
    file = TableFile(tmp_path / "t.parquet")
    assert file.kinds() == Kinds(frozenset())
    read_in_part = file.read(["a", "none"], file.kinds()).table
    assert np.isnan(read_in_part.column("none")).all()
    for name in odd:
        reported = rf"column '{name}' of t.parquet: must be numeric, .*received {name}"
        with pytest.raises(InvalidInputError, match=reported):
            file.read(["a", name], file.kinds())
    (piece,) = file.pieces(["timestamp"], Kinds(frozenset({"timestamp"})))
    assert piece.table.column("timestamp").tolist() == [str(day)]  # kept as text


def test_very_many_columns_are_selected_in_one_pass(tmp_path):
    class Counted(list):
        passes = 0

        def __iter__(self):
            Counted.passes += 1
            return super().__iter__()

    names = [f"c{k}" for k in range(500)]
    line = ",".join("1" * 500)
    file = TableFile(write(tmp_path / "t.csv", f"{','.join(names)}\n{line}\n"))
    only = Counted(names)
    assert next(file.pieces(only, Kinds(frozenset()))).table.shape == (1, 500)
    assert Counted.passes < 5


def test_lists_and_near_misses():
    assert listed(["a", "b, c", 1]) == 'a, "b, c", 1'
    names = ["Systolic BP", "Troponin, ng/L"]
    assert choices(["systolic bp"], names, "They are").startswith("Did you mean Systolic BP? They")
    assert choices(["zzz"], names, "They are") == 'They are Systolic BP, "Troponin, ng/L".'


def test_older_spreadsheets_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"Save it as \.xlsx or the sheet as CSV"):
        TableFile(write(tmp_path / "t.xls", "PK"))


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
        (rows_of(500, {}).replace("250,word,5\n251,", '"250,word,5\n251",'), 250),  # from the id
        ('id,town\np1,rome\n"p2,bonn\np3",oslo\np4,paris\n', 3),  # without numbers
        ('"id,town\np1",rome\np2,bonn\n', 1),  # of the header
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_a_stray_quotation_mark_loses_no_row_in_silence(tmp_path, text, line, skip):
    path = write(tmp_path / "t.csv", text)
    columns = text.splitlines()[0].strip('"').split(",")
    with pytest.raises(InvalidInputError, match=f"line {line}: a quoted cell begins"):
        TableFile(path).read(columns, Kinds(frozenset(columns)), skip_malformed=skip)


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


def test_notes_with_as_many_commas_as_rows_have_are_read(tmp_path):
    """Their lines have words where rows have numbers."""
    note = '"pain, mild\nsince Monday, worse today"'
    piece = read(TableFile(write(tmp_path / "t.csv", rows_of(20, {3: note, 9: note}))))
    assert piece.table.column("id").tolist() == list(range(2, 22))


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


def test_an_output_is_no_pipe_and_no_folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="output: must be a plain file"):
        write_whole(tmp_path / "pipe", b"")
    with pytest.raises(InvalidInputError, match="output: must be a file; received the folder"):
        write_whole(tmp_path, b"")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_output_keeps_the_permissions_of_the_file_that_was_there(tmp_path, mode):
    path = write(tmp_path / "out.csv", "old")
    path.chmod(mode)
    with whole_or_absent(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_as_output_leads_to_the_new_file(tmp_path):
    (tmp_path / "real").mkdir()
    target = write(tmp_path / "real" / "out.csv", "old")
    for name, to in (("link.csv", target), ("dangling.csv", tmp_path / "real" / "more.csv")):
        (tmp_path / name).symlink_to(to)
        write_whole(tmp_path / name, b"new")
        assert (tmp_path / name).is_symlink()
        assert to.read_bytes() == b"new"


@pytest.mark.parametrize("kind", [whole_or_absent, whole_folder_or_absent])
def test_what_a_killed_process_left_is_removed(tmp_path, kind):
    """And nothing else: not what another process is writing, nor files of similar names."""
    path = tmp_path / "out[1]"
    code = (
        "import os, sys\nfrom adacos.tables import writing\n"
        f"with writing.{kind.__name__}(sys.argv[1]) as path:\n"
        "    print(path, flush=True)\n    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    similar = [tmp_path / ".out1.abcdefgh.part", tmp_path / ".out[1].bak"]
    for other in similar:
        other.touch()
    with kind(path) as first:
        assert not left.exists()
        other = ExitStack()
        other.enter_context(kind(path))
        assert first.exists()
        other.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert sorted(tmp_path.iterdir()) == sorted([path, *similar])


def test_other_encodings_are_reported_and_read(tmp_path):
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


def test_a_column_that_was_asked_for_is_not_meant_by_another(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("credit1,incme\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"Did you mean incme\? It has"):
        TableFile(path).require(["income"])
    with pytest.raises(InvalidInputError) as reported:
        TableFile(path).require(["credit1", "credit2"])
    assert "Did you mean" not in str(reported.value)

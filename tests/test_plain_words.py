"""The lint of words finds what it bans, and passes over code; a table of speed says when it was."""

from __future__ import annotations

from datetime import date

import pytest

from benchmarks import speed
from tools import check_words


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a file of this name with this content, in place of the repository."""
    monkeypatch.setattr(check_words, "ROOT", tmp_path)

    def write(name, content):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    return write


def test_banned_words_are_found_with_their_line_and_what_to_say(written):
    page = written("page.md", "Fine.\n\nThe dearest of them.\n\n`dearest` is code.\n")
    assert check_words.places(page) == [
        "page.md:3: 'dearest'; say expensive, most expensive",
    ]
    module = written("module.py", 'rival = 1  # a rival\nTEXT = f"Rows {rival} left out."\n')
    assert [place.partition(":")[2] for place in check_words.places(module)] == [
        "2: 'left out'; say cross-validated, out-of-fold"
    ]


def test_docstrings_messages_and_the_comments_of_examples_are_read(written):
    banned = '"""Where a name stands."""\n# A comment stands here.\nTEXT = f"It lacks one."\n'
    module = check_words.places(written("module.py", banned))
    assert [place.partition(":")[2] for place in module] == [
        "1: 'stands'; say is kept, remains, is, means",
        "3: 'lacks'; say is missing, has no",
    ]
    (check_words.ROOT / "examples").mkdir()
    gallery = "x = 1\n# %%\n# What comes of it is\n# hard to tell.\ny = 2\n"
    found = check_words.places(written("examples/plot.py", gallery))
    assert "examples/plot.py:4: 'hard to tell'; say unclear" in found


def test_names_in_code_have_no_banned_words(written):
    """In modules and in the code of pages, word by word; strings and comments are no names."""
    code = (
        'n_left_out = 1  # n_left_out\nclass RowHoles: pass\nrival = "purse"\nwhole = toldo = 2\n'
    )
    assert check_words.name_places(written("module.py", code)) == [
        "module.py:1: 'n_left_out'; say cross-validated, out-of-fold",
        "module.py:2: 'RowHoles'; say missing",
    ]
    page = "A purse.\n\n```python\nx = 1\nasked_recall = 0.9\n```\n\n```bash\npurse\n```\n"
    assert check_words.name_places(written("page.md", page)) == [
        "page.md:5: 'asked_recall'; say resolved_target_recall"
    ]


def test_a_long_sentence_and_a_long_mean_are_found(written):
    short, long = "One two three four. ", " ".join(["Word"] * 26) + "."
    assert check_words.long_places(written("short.md", short * 5)) == []
    (found,) = check_words.long_places(written("one.md", short * 5 + long))
    assert found.startswith("one.md:1: 26 words, at most 25")
    (found,) = check_words.long_places(written("mean.md", " ".join(["Word"] * 20) + "."))
    assert found == "mean.md: 20.0 words in the mean sentence, at most 18"


def test_a_table_of_speed_has_its_date_and_commit(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n{speed.BEGIN}\nold\n{speed.END}\n\nAfter.\n", encoding="utf-8")
    speed.write(page, ["| new |"])
    before, table, after = (
        page.read_text(encoding="utf-8").replace(speed.END, speed.BEGIN).split(speed.BEGIN)
    )
    assert (before, after) == ("Before.\n\n", "\n\nAfter.\n")
    assert table.startswith("\n| new |\n\nMeasured on ")
    assert f"{date.today():%Y-%m-%d} at commit " in table

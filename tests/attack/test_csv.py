"""Odd CSV files, made at random: as many rows are read as are there, or an error names the line.

Lines of these tables are rows, so that the truth is a count of lines, except where a cell was
written with line breaks; such a table is left as it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from adacos.exceptions import InvalidInputError, MalformedRowsError
from adacos.tables.reading import TableFile

Rng = np.random.Generator
WORDS = ("none", "mild", "high", "x", "007", "3", "a b", "NA", "", "5 mg", "é", "'", "true", '5"')
INCHES = WORDS[-1]  # read as it stands where no quotation mark opens the cell
QUOTED = ('say "no"', "a{0}b", '"', "{0}", 'x{0}"y"{0}', "")
NOTES = ("pain\nsince Monday", "one{0} two\n\n- three", "a\r\nb", "\n", "12\n13{0}14\n")


class Odd(NamedTuple):
    """A file, how many rows are there, and whether the text is as it was written."""

    text: str
    rows: int
    whole: bool


def cell(rng: Rng, kind: str, delimiter: str) -> str:
    if kind == "number":
        return str(rng.choice(["0", "1", "-2.5", "33", "1e3", "NA", str(rng.integers(1000))]))
    texts = {"word": WORDS, "quoted": QUOTED, "note": NOTES}[kind]
    return str(rng.choice(texts)).format(delimiter)


def written(rng: Rng, text: str, delimiter: str, always: bool) -> str:
    if text == INCHES:
        return text
    needs = any(sign in text for sign in (delimiter, '"', "\n", "\r"))
    if needs or always or rng.random() < 0.05:
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def with_strays(rng: Rng, text: str) -> str:
    """Quotation marks where none belong: one, or two of which each stands at the end of a cell."""
    ends = [match.start() for match in re.finditer(r"(?<=[,;\t|\n\r])|(?=[,;\t|\n\r])", text)]
    places = rng.choice(ends, size=min(rng.integers(1, 4), len(ends)), replace=False)
    if rng.random() < 0.3:
        places = rng.integers(0, len(text), len(places))
    for place in sorted(places.tolist(), reverse=True):
        text = text[:place] + '"' + text[place:]
    return text


def without_one(rng: Rng, text: str, sign: str) -> str:
    places = [place for place, own in enumerate(text) if own == sign]
    if not places:
        return text
    place = rng.choice(places)
    return text[:place] + text[place + 1 :]


def odd_table(rng: Rng) -> Odd:
    delimiter, end = str(rng.choice(list(",;\t|"))), str(rng.choice(["\n", "\r\n", "\r"]))
    numbers = rng.random() < 0.6
    kinds = rng.choice(["number", "word", "quoted"] if numbers else ["word", "quoted"], 5)
    kinds = kinds[: rng.integers(2, 6)].tolist()
    if rng.random() < 0.25:
        kinds[rng.integers(len(kinds))] = "note"
    always = bool(rng.random() < 0.2)
    lines = [delimiter.join(f"c{k}" for k in range(len(kinds)))]
    for _ in range(rng.integers(1, 9)):
        cells = [cell(rng, kind, delimiter) for kind in kinds]
        lines.append(delimiter.join(written(rng, text, delimiter, always) for text in cells))
    rows = len(lines) - 1
    change = rng.choice(["none", "strays", "quotes", "delimiters", "more delimiters"])
    # A quotation mark on a blank line would make a row of it.
    for _ in range(0 if change == "strays" else rng.integers(0, 3)):
        lines.insert(rng.integers(1, len(lines) + 1), "")
    text = end.join(lines) + (end if rng.random() < 0.7 else "")
    if "note" in kinds or change == "none":
        return Odd(text, rows, True)
    header, _, body = text.partition(end)
    if change == "strays":
        if rng.random() < 0.2:
            header, _, body = with_strays(rng, text).partition(end)
        else:
            body = with_strays(rng, body)
    elif change == "quotes":
        body = without_one(rng, body, '"')
    elif change == "delimiters":
        body = without_one(rng, body, delimiter)
    else:
        place = rng.integers(len(body) + 1)
        body = body[:place] + delimiter + body[place:]
    if change != "strays":
        rows = sum(bool(line) for line in re.split("\r\n|\r|\n", body))
    return Odd(header + end + body, rows, False)


def rows_accounted_for(path: Path) -> int:
    """Rows read, and rows of which an error tells the line."""
    file = TableFile(path)
    piece = file.read(file.columns, file.kinds(), skip_malformed=True)
    assert all(bad.line > 1 for bad in piece.malformed)
    return len(piece.table) + len(piece.malformed)


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.study)])
def test_no_row_vanishes_in_silence(count: int, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(27), tmp_path / "odd.csv"
    read = refused = 0
    for number in range(count):
        odd = odd_table(rng)
        path.write_text(odd.text, encoding="utf-8", newline="")
        try:
            assert rows_accounted_for(path) == odd.rows, (number, odd.text)
            read += 1
        except (InvalidInputError, MalformedRowsError) as error:
            reported = str(error)
            assert re.search(r"line \d+|needs at least one row", reported), (number, reported)
            refused += 1
            whole = odd.whole and "over whole rows" not in reported
            assert not whole or "at least one row" in reported, (number, odd.text, reported)
    print(f"{count} odd CSV files: of {read} every row is accounted for, {refused} are refused")
    assert read > 0.4 * count
    assert refused > 0.1 * count

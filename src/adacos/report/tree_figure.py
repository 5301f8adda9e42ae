"""The tree of a policy that branches, drawn: questions, shares of rows, what they pay, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from adacos.document.style import Picture, styled
from adacos.policies.tree import Place, Tree, percent
from adacos.report.figures import NARROW, class_color, picture

_PALE, _GREY = "#DADADA", "#767676"
# Inches: a line of text, what a level is set in, a bar, and space between places.
_LINE, _INDENT, _BAR, _SPACE = 0.17, 0.24, 0.14, 0.13
_SIZE = 8.5
# Characters of this size that fit into an inch.
_CHARACTERS = 14.0
WIDE = 8.4
_LEAST_WIDE, _BAR_COLUMN = 6.0, 2.6


class Line(NamedTuple):
    """A place in the order in which it is drawn: its depth, and where its parent was drawn."""

    place: Place
    depth: int
    parent: int | None


@styled
def policy_tree(tree: Tree, answers: Sequence[str], money: Callable[[float], str]) -> Picture:
    """The questions one below the other, with what becomes of the rows of each leaf."""

    def draw(narrow: bool) -> Any:
        from matplotlib.figure import Figure

        def sheet(width: float, height: float) -> Any:
            return Figure(figsize=(width, height)).add_axes((0, 0, 1, 1))

        return draw_tree(sheet, tree, answers, money, NARROW if narrow else WIDE).figure

    caption = (
        "The policy in one picture. Every row is asked the question at the top; its value leads to "
        "one of the branches, and so on. Each bar is the share of all held-out rows that end in "
        "that branch, by their answers; the percentage after a covariate is who acquires it."
    )
    return picture(draw, "policy", caption)


def draw_tree(
    sheet: Callable[[float, float], Any],
    tree: Tree,
    answers: Sequence[str],
    money: Callable[[float], str],
    width: float,
) -> Any:
    """Draw the tree into axes that `sheet` makes for a width and a height in inches; these axes.

    The height follows from the tree. In narrow axes a bar is under its text instead of next to it.
    """
    lines = list(_lines(tree, 0, 0, None, [0]))
    narrow = width < _LEAST_WIDE
    space = width - 0.1 if narrow else width - _BAR_COLUMN - 0.3
    texts = [_texts(tree, line, space, money) for line in lines]
    tops, height = [], 0.08 + 0.17 * len(answers) if narrow else 0.3
    for line, text in zip(lines, texts, strict=True):
        tops.append(height)
        under = _BAR + 0.04 if narrow and not line.place.question else 0.0
        height += _LINE * len(text) + under + _SPACE
    axis = sheet(width, height)
    # One unit is one inch, from the top left corner.
    axis.set(xlim=(0, width), ylim=(height, 0))
    axis.axis("off")
    _legend(axis, answers, narrow)
    for number, (line, text) in enumerate(zip(lines, texts, strict=True)):
        left, top = 0.05 + _INDENT * line.depth, tops[number]
        if line.parent is not None:
            stem, middle = left - 0.6 * _INDENT, top + _LINE / 2
            above = tops[line.parent] + _LINE * len(texts[line.parent]) + 0.02
            axis.plot([stem, stem, left - 0.05], [above, middle, middle], color=_GREY, lw=0.9)
        for row, (words, weight) in enumerate(text):
            at = top + _LINE * (row + 0.5)
            axis.text(left, at, words, va="center", fontsize=_SIZE, fontweight=weight)
        if not line.place.question:
            below = top + _LINE * len(text) + 0.03
            start, length = (left, width - left - 0.1) if narrow else (space + 0.2, _BAR_COLUMN)
            _bar(axis, line.place, start, below if narrow else top + 0.03, length)
    return axis


def _lines(
    tree: Tree, number: int, depth: int, parent: int | None, count: list[int]
) -> Iterator[Line]:
    """The places from the root down, each followed by those below it."""
    own = count[0]
    count[0] += 1
    yield Line(tree.places[number], depth, parent)
    for below in tree.places[number].below:
        yield from _lines(tree, below, depth + 1, own, count)


def _texts(
    tree: Tree, line: Line, space: float, money: Callable[[float], str]
) -> list[tuple[str, str]]:
    """The text at a place, broken to the room that there is, and how heavy it is set."""
    place = line.place
    fits = int((space - _INDENT * line.depth) * _CHARACTERS)
    first = f"{place.condition} ({percent(place.share)})" if place.condition else "everyone"
    described = f"asked {place.question}" if place.question else tree.describe(place, money)
    # Bold is wider.
    parts = ((first, "bold", int(0.9 * fits)), (described, "normal", fits))
    return [(words, weight) for text, weight, most in parts for words in wrap(text, most)]


def _bar(axis: Any, place: Place, left: float, top: float, length: float) -> None:
    """Share of all rows, by answer, on a pale ground that means everyone."""
    middle = top + _BAR / 2
    share = length * place.share
    axis.barh(middle, length, _BAR, left=left, color=_PALE)
    for number, part in enumerate(place.answers or (1 - place.positive, place.positive)):
        axis.barh(middle, share * part, _BAR, left=left, color=class_color(number))
        left += share * part


def _legend(axis: Any, answers: Sequence[str], narrow: bool) -> None:
    left = 0.05
    for number, answer in enumerate(answers):
        top = 0.13 + (0.17 * number if narrow else 0.0)
        axis.barh(top, 0.16, 0.11, left=left, color=class_color(number))
        axis.text(left + 0.22, top, f"answered {answer}", va="center", fontsize=_SIZE)
        if not narrow:
            left += 0.22 + (10 + len(answer)) / _CHARACTERS + 0.3

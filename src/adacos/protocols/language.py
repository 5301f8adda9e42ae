"""What a written protocol consists of, and how it is written: statements, conditions, tests.

A protocol is a block of statements. Each is an answer, a request (`ask`), or a choice between
branches by conditions. A branch that ends without an answer continues after the choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

# Line and column in the text, both from 1.
Place: TypeAlias = tuple[int, int]
NOWHERE: Place = (0, 0)

KEYWORDS = ("if", "elif", "else", "unavailable", "ask")
_WORDS = (*KEYWORDS, "and", "or", "not", "in", "is", "available")
# A name or word that needs no quotation marks.
BARE = re.compile(r"[^\W\d][\w.-]*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
INDENT = "    "


@dataclass(frozen=True)
class ValueTest:
    """A question about one covariate, which is acquired for it.

    Attributes
    ----------
    covariate : its name.
    operator : "<", "<=", ">", ">=", "in" some values, or "unavailable".
    values : one number, or the values of "in".
    """

    covariate: str
    operator: str
    values: tuple[float | str, ...] = ()
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Negation:
    """The contrary of a condition."""

    inside: Condition


@dataclass(frozen=True)
class Junction:
    """Conditions of which all ("and") or at least one ("or") must hold."""

    operator: str
    parts: tuple[Condition, ...]


Condition: TypeAlias = ValueTest | Negation | Junction


@dataclass(frozen=True)
class Answer:
    """Stop, and give this answer."""

    label: str
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Ask:
    """Acquire these covariates, whatever they turn out to be."""

    covariates: tuple[str, ...]
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Choice:
    """Take the first branch whose condition holds.

    Attributes
    ----------
    branches : conditions, each with its block.
    otherwise : the block where none holds; empty to continue after the choice.
    unavailable : the block where a condition hangs on a value that is unavailable; None to pass on
        as if it did not hold.
    """

    branches: tuple[tuple[Condition, Block], ...]
    otherwise: Block = ()
    unavailable: Block | None = None
    place: Place = field(default=NOWHERE, compare=False)


Statement: TypeAlias = Answer | Ask | Choice
Block: TypeAlias = tuple[Statement, ...]


def renamed(block: Block, answers: Mapping[str, str]) -> Block:
    """A block with some answers in the place of others."""
    found: list[Statement] = []
    for statement in block:
        if isinstance(statement, Answer):
            found.append(replace(statement, label=answers.get(statement.label, statement.label)))
        elif isinstance(statement, Choice):
            gone = statement.unavailable
            found.append(
                replace(
                    statement,
                    branches=tuple((c, renamed(b, answers)) for c, b in statement.branches),
                    otherwise=renamed(statement.otherwise, answers),
                    unavailable=None if gone is None else renamed(gone, answers),
                )
            )
        else:
            found.append(statement)
    return tuple(found)


def written(block: Block, indent: str = "") -> str:
    """A block as text, a line for each statement."""
    return "\n".join(_lines(block, indent))


def _lines(block: Block, indent: str) -> Iterator[str]:
    for statement in block:
        if isinstance(statement, Answer):
            yield indent + _label(statement.label)
        elif isinstance(statement, Ask):
            yield f"{indent}ask {', '.join(map(quoted, statement.covariates))}"
        else:
            for number, (condition, inside) in enumerate(statement.branches):
                word = "elif" if number else "if"
                yield from _clause(f"{word} {condition_written(condition)}", inside, indent)
            if statement.unavailable is not None:
                yield from _clause("unavailable", statement.unavailable, indent)
            if statement.otherwise:
                yield from _clause("else", statement.otherwise, indent)


def _clause(head: str, inside: Block, indent: str) -> Iterator[str]:
    if len(inside) == 1 and isinstance(inside[0], Answer):
        yield f"{indent}{head}: {_label(inside[0].label)}"
        return
    yield f"{indent}{head}:"
    yield from _lines(inside, indent + INDENT)


def condition_written(condition: Condition, inner: bool = False) -> str:
    """A condition as text, in brackets inside another of several parts."""
    if isinstance(condition, Junction):
        parts = (condition_written(part, inner=True) for part in condition.parts)
        text = f" {condition.operator} ".join(parts)
        return f"({text})" if inner else text
    if isinstance(condition, Negation):
        inside = condition.inside
        if isinstance(inside, ValueTest) and inside.operator in ("in", "unavailable"):
            return _test(inside, positive=False)
        return f"not ({condition_written(inside)})"
    return _test(condition, positive=True)


def _test(test: ValueTest, positive: bool) -> str:
    name = quoted(test.covariate)
    if test.operator == "unavailable":
        return f"{name} is {'unavailable' if positive else 'available'}"
    values = [number(v) if isinstance(v, float) else quoted(v) for v in test.values]
    if test.operator != "in":
        return f"{name} {test.operator} {values[0]}"
    if len(values) == 1:
        return f"{name} {'=' if positive else '!='} {values[0]}"
    return f"{name} {'in' if positive else 'not in'} ({', '.join(values)})"


def _label(label: str) -> str:
    """An answer as text; a number needs no quotation marks."""
    return label if _NUMBER.fullmatch(label) else quoted(label)


def number(value: float) -> str:
    """A number with all its digits, and no more."""
    text = repr(float(value))
    return text.removesuffix(".0")


def quoted(text: str) -> str:
    """A name or a word, with quotation marks where it needs them."""
    if BARE.fullmatch(text) and text not in _WORDS:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

"""What a protocol asks of rows: tests with a way out each for yes, no and unavailable.

Conditions are evaluated from left to right, and a covariate is acquired when its test is reached:
`a and b` acquires b only where a may hold, `a or b` only where a may fail. A test of a value that
is unavailable is unknown, and so is a condition that hangs on it: `a and b` fails where one of both
fails, whatever the other. Where a condition is unknown a row takes the `unavailable` block, or the
next branch if there is none. A test on which nothing hangs any more is passed over.

Statements are compiled from the last to the first, each with the places that follow it. Equal
continuations are one place, so that a protocol has about as many places as tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.protocols.language import (
    Answer,
    Ask,
    Block,
    Choice,
    Condition,
    Junction,
    Negation,
    Place,
    ValueTest,
    condition_written,
)
from adacos.protocols.language import number as number_written
from adacos.protocols.parsing import refuse
from adacos.protocols.protocol import DecisionProtocol
from adacos.tables.dates import number_of
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, NUMERIC
from adacos.typing import Bools, Floats, Ints
from adacos.validation import choices

# Truth of a cell or an answer in words.
_TRUTH = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
MOST_PLACES = 100_000
# Numbers of answers while places are made: below those of tests, and that of no place.
_NOWHERE, _FIRST_ANSWER = -1, -2
_COMPARED: dict[str, Callable[[Floats, Floats], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "in": np.isin,
}
_NONE, _NO_LEVELS = np.empty(0), np.empty(0, dtype=np.bool_)


@dataclass(frozen=True)
class ProtocolTest:
    """A place at which a row needs a covariate, and where it goes then.

    Attributes
    ----------
    covariate : the covariate, by position.
    operator : as in `ValueTest`; "" where it is only acquired.
    values : numbers to compare with.
    levels : for a category, which of its encoded columns are among the values.
    yes, no, unknown : numbers of the places that follow.
    words : the test as it is written, and its line.
    """

    covariate: int
    operator: str
    values: Floats
    levels: Bools
    yes: int
    no: int
    unknown: int
    words: str
    line: int

    def holds(self, own: Floats) -> Bools:
        """Whether it holds for encoded columns of the covariate, which are known."""
        if len(self.levels):
            return np.asarray((own[:, self.levels] >= 1).any(axis=1))
        if self.operator not in _COMPARED:
            return np.zeros(len(own), dtype=np.bool_)
        return np.asarray(_COMPARED[self.operator](own[:, 0], self.values))


@dataclass(frozen=True)
class ProtocolGraph:
    """Places of a protocol: its tests, each before those that follow, then its answers.

    Attributes
    ----------
    tests : the tests.
    labels : class number of each answer.
    lines : line of each answer.
    start : number of the first place.
    """

    tests: tuple[ProtocolTest, ...]
    labels: Ints
    lines: tuple[int, ...]
    start: int

    def __len__(self) -> int:
        return len(self.tests) + len(self.labels)

    def locate(
        self, encoded: Floats, source: Ints, available: Bools, acquired: Bools
    ) -> tuple[Ints, Bools]:
        """Where rows are by what they acquired, and a mask (rows, places) of the way.

        A row is at an answer, or at a test whose covariate it can acquire.
        """
        place = np.full(len(encoded), self.start)
        way = np.zeros((len(encoded), len(self)), dtype=np.bool_)
        for number, test in enumerate(self.tests):
            here = np.flatnonzero(place == number)
            if len(here) == 0:
                continue
            way[here, number] = True
            have = acquired[here, test.covariate]
            gone = here[~have & ~available[here, test.covariate]]
            place[gone] = test.unknown
            known = here[have]
            columns = np.flatnonzero(source == test.covariate)
            holds = test.holds(encoded[np.ix_(known, columns)])
            place[known] = np.where(holds, test.yes, test.no)
        way[np.arange(len(place)), place] = True
        return place, way

    def label_of(self, place: Ints) -> Ints:
        """Class number of the answer at places; -1 at a test."""
        answers = np.concatenate([np.full(len(self.tests), -1), self.labels])
        return answers[place]


def bind(protocol: DecisionProtocol, encoder: TableEncoder, classes: NDArray[Any]) -> ProtocolGraph:
    """The places of a protocol for the columns and classes of a table; mistakes are named."""
    return _Binding(encoder, classes).graph(protocol.statements)


def widened_encoder(protocol: DecisionProtocol, encoder: TableEncoder) -> TableEncoder:
    """An encoder that holds no value at the wrong side of a number of the protocol.

    Encoded numbers are kept within the range of training. Where the protocol compares with a number
    at its end or beyond, the range is made wider: a value of new rows beyond it stays beyond.
    """
    low, high, kinds = encoder.low.copy(), encoder.high.copy(), list(encoder.kinds)
    binding = _Binding(encoder, np.empty(0))
    for test in tests_of(protocol.statements):
        k = binding.covariate(test.covariate, test.place)
        if encoder.categories[k] or test.operator in ("", "unavailable"):
            continue
        for value in binding.numbers(test, k).tolist():
            if kinds[k] == BINARY and low[k] <= value <= high[k]:
                continue
            if value <= low[k]:
                low[k], kinds[k] = np.nextafter(value, -np.inf), NUMERIC
            if value >= high[k]:
                high[k], kinds[k] = np.nextafter(value, np.inf), NUMERIC
    return replace(encoder, low=low, high=high, kinds=tuple(kinds))


class _Binding:
    """A protocol on its way to places, for the columns and classes of a table."""

    def __init__(self, encoder: TableEncoder, classes: NDArray[Any]) -> None:
        self.encoder, self.classes = encoder, classes.tolist()
        self._tests: list[ProtocolTest] = []
        self._answers: list[tuple[int, int]] = []
        # Conditions, blocks and answers are kept alive by the statements.
        self._found: dict[tuple[Any, ...], int] = {}

    def graph(self, statements: Block) -> ProtocolGraph:
        """The places of all statements, renumbered from the first to the last."""
        start, n = self._block(statements, _NOWHERE), len(self._tests)

        def place(number: int) -> int:
            return n - 1 - number if number >= 0 else n + _FIRST_ANSWER - number

        tests = tuple(
            replace(test, yes=place(test.yes), no=place(test.no), unknown=place(test.unknown))
            for test in reversed(self._tests)
        )
        labels = np.array([label for label, _ in self._answers], dtype=np.intp)
        return ProtocolGraph(tests, labels, tuple(line for _, line in self._answers), place(start))

    def covariate(self, name: str, place: Place) -> int:
        """Position of a covariate."""
        names = self.encoder.names
        if name not in names:
            rule = "must name a covariate of the table"
            refuse(place, rule, name, choices([name], names, "They are"))
        return names.index(name)

    def numbers(self, test: ValueTest, k: int) -> Floats:
        """The values of a test of a covariate that is a number."""
        name, found = test.covariate, []
        for value in test.values:
            if isinstance(value, float):
                found.append(value)
            elif name in self.encoder.date_forms:
                found.append(number_of(value, name, self.encoder.date_forms[name]))
            elif value.lower() in _TRUTH:
                found.append(_TRUTH[value.lower()])
            else:
                low, high = self.encoder.low[k], self.encoder.high[k]
                remedy = f"It is a number, in training {low:g} to {high:g}."
                refuse(test.place, f"{name} must be compared with a number", value, remedy)
        return np.array(found, dtype=np.float64)

    def _levels(self, test: ValueTest, k: int) -> Bools:
        """Which categories of a covariate are among the values of a test."""
        name, levels = test.covariate, self.encoder.categories[k]
        if test.operator != "in":
            remedy = f"Write {name} = {levels[0]} or {name} in ({', '.join(levels[:2])})."
            refuse(test.place, f"{name} holds words, which have no order", test.operator, remedy)
        words = [f"{v:g}" if isinstance(v, float) else v for v in test.values]
        for word in words:
            if word in self.encoder.grouped_of(k):
                rule = f"{name}: is so rare in the table that it cannot be distinguished"
                refuse(test.place, rule, word, "Leave it out.")
            if word not in levels:
                rule = f"{name}: must be a category of the table"
                refuse(test.place, rule, word, choices([word], levels, "They are"))
        return np.isin(levels, words)

    def _label(self, answer: Answer) -> int:
        """Number of the class that an answer gives."""
        names = [str(label) for label in self.classes]
        if answer.label in names:
            return names.index(answer.label)
        if len(names) == 2 and answer.label.lower() in ("negative", "positive"):
            return int(answer.label.lower() == "positive")
        numbers = [label for label in self.classes if not isinstance(label, str)]
        for number, label in enumerate(numbers):
            if answer.label in (f"{label:g}", number_written(label)):
                return number
        words = [*names, "negative", "positive"] if len(names) == 2 else names
        remedy = choices([answer.label], words, "They are")
        refuse(answer.place, "an answer must be a class of the table", answer.label, remedy)

    def _block(self, block: Block, after: int) -> int:
        """First place of a block that is followed by a place."""
        key = (id(block), "block", after)
        if key not in self._found:
            place = after
            for statement in reversed(block):
                if isinstance(statement, Answer):
                    place = self._answer(statement)
                elif isinstance(statement, Ask):
                    place = self._asked(statement, place)
                else:
                    place = self._choice(statement, place)
            self._found[key] = place
        return self._found[key]

    def _answer(self, answer: Answer) -> int:
        key = (id(answer), "answer")
        if key not in self._found:
            self._answers.append((self._label(answer), answer.place[0]))
            self._found[key] = _FIRST_ANSWER - len(self._answers) + 1
        return self._found[key]

    def _asked(self, statement: Ask, after: int) -> int:
        for name in reversed(statement.covariates):
            k = self.covariate(name, statement.place)
            words, line = f"ask {name}", statement.place[0]
            after = self._new(
                ProtocolTest(k, "", _NONE, _NO_LEVELS, after, after, after, words, line)
            )
        return after

    def _choice(self, statement: Choice, after: int) -> int:
        place = self._block(statement.otherwise, after)
        gone = None
        if statement.unavailable is not None:
            gone = self._block(statement.unavailable, after)
        for condition, inside in reversed(statement.branches):
            yes = self._block(inside, after)
            place = self._condition(condition, yes, place, place if gone is None else gone)
        return place

    def _condition(self, condition: Condition, yes: int, no: int, unknown: int) -> int:
        """First place of a condition with these three ways out."""
        if isinstance(condition, Negation):
            return self._condition(condition.inside, no, yes, unknown)
        key = (id(condition), yes, no, unknown)
        if key not in self._found:
            self._found[key] = (
                self._test(condition, yes, no, unknown)
                if isinstance(condition, ValueTest)
                else self._junction(condition, yes, no, unknown)
            )
        return self._found[key]

    def _junction(self, junction: Junction, yes: int, no: int, unknown: int) -> int:
        """From the last part to the first, where all so far are certain and where one is not."""
        every = junction.operator == "and"
        # The way out of a part that does not settle the whole.
        sure, unsure = (yes if every else no), unknown

        def before(part: Condition, after: int) -> int:
            """First place of a part that is followed by the others, certain so far or not."""
            settled = (after, no) if every else (yes, after)
            return self._condition(part, *settled, unsure)

        for part in junction.parts[:0:-1]:
            sure, unsure = before(part, sure), before(part, unsure)
        return before(junction.parts[0], sure)

    def _test(self, test: ValueTest, yes: int, no: int, unknown: int) -> int:
        k = self.covariate(test.covariate, test.place)
        words, line = condition_written(test), test.place[0]
        if test.operator == "unavailable":
            return self._new(ProtocolTest(k, "gone", _NONE, _NO_LEVELS, no, no, yes, words, line))
        if self.encoder.categories[k]:
            levels = self._levels(test, k)
            return self._new(ProtocolTest(k, "in", _NONE, levels, yes, no, unknown, words, line))
        values = self.numbers(test, k)
        return self._new(
            ProtocolTest(k, test.operator, values, _NO_LEVELS, yes, no, unknown, words, line)
        )

    def _new(self, test: ProtocolTest) -> int:
        if test.operator and test.yes == test.no == test.unknown:
            # Nothing hangs on it any more.
            return test.yes
        if len(self._tests) >= MOST_PLACES:
            refuse((test.line, 1), f"has more than {MOST_PLACES:,} places", "", "Make it smaller.")
        self._tests.append(test)
        return len(self._tests) - 1


def tests_of(block: Block) -> Iterator[ValueTest]:
    """All tests that are written in a block."""
    for statement in block:
        if isinstance(statement, Choice):
            for condition, inside in statement.branches:
                yield from _in_condition(condition)
                yield from tests_of(inside)
            yield from tests_of((*(statement.unavailable or ()), *statement.otherwise))


def _in_condition(condition: Condition) -> Iterator[ValueTest]:
    if isinstance(condition, ValueTest):
        yield condition
    elif isinstance(condition, Negation):
        yield from _in_condition(condition.inside)
    else:
        for part in condition.parts:
            yield from _in_condition(part)

"""What a protocol asks of rows, against the truth of its conditions in three values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from adacos import DecisionProtocol, InvalidInputError
from adacos.protocols import bind
from adacos.protocols.graph import widened_encoder
from adacos.protocols.language import Ask, Choice, Junction, Negation, ValueTest
from adacos.protocols.parsing import parse
from adacos.tables.columns import ColumnTable
from adacos.tables.encoder import TableEncoder

COLUMNS = {
    "a": np.array([0.0, 1.0, 2.0, 3.0, np.nan]),
    "b": np.array([0.0, 1.0, 1.0, 0.0, np.nan]),
    "c": np.array(["red", "blue", "red", "green", ""]),
}
ENCODER = TableEncoder.fit(ColumnTable(COLUMNS), tuple(COLUMNS))
CLASSES = np.array([0, 1])
CONDITIONS = [
    "a > 1 and b = 1",
    "a > 1 or b = 1",
    "not (a > 1 or b = 1) and c in (red, green)",
    "(a > 1 or c = red) and (b = 1 or a <= 2)",
    "a is unavailable and c != blue",
    "not (b is available) or 1 <= a < 3",
]


def truth(condition, row):  # type: ignore[no-untyped-def]
    """True, False or None where it hangs on a value that is not there (Kleene)."""
    if isinstance(condition, Negation):
        inside = truth(condition.inside, row)
        return None if inside is None else not inside
    if isinstance(condition, Junction):
        parts = [truth(part, row) for part in condition.parts]
        settled = condition.operator == "or"
        if settled in parts:
            return settled
        return None if None in parts else not settled
    assert isinstance(condition, ValueTest)
    value = row[condition.covariate]
    if condition.operator == "unavailable":
        return value is None
    if value is None:
        return None
    first = condition.values[0]
    compared = {
        "<": lambda: value < first,
        "<=": lambda: value <= first,
        ">": lambda: value > first,
        ">=": lambda: value >= first,
        "in": lambda: value in condition.values,
    }
    return compared[condition.operator]()


def answer_of(block, row):  # type: ignore[no-untyped-def]
    """The answer that statements give, one after the other."""
    for statement in block:
        if isinstance(statement, Ask):
            continue
        if not isinstance(statement, Choice):
            return statement.label
        taken = statement.otherwise
        unknown = False
        for condition, inside in statement.branches:
            held = truth(condition, row)
            if held is None and statement.unavailable is not None:
                taken, unknown = statement.unavailable, True
                break
            if held:
                taken = inside
                break
        found = answer_of(taken, row)
        if found is not None:
            return found
        assert not unknown or found is None
    return None


def every_row():  # type: ignore[no-untyped-def]
    values = ([0.0, 1.0, 2.0, 3.0, None], [0.0, 1.0, None], ["red", "blue", "green", None])
    return [dict(zip("abc", own, strict=True)) for own in itertools.product(*values)]


def encoded_of(rows):  # type: ignore[no-untyped-def]
    table = {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows])
        for name in "ab"
    }
    table["c"] = np.array([row["c"] or "" for row in rows])
    return ENCODER.transform(ColumnTable(table))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("gone", ["", "unavailable: 1\n", "unavailable:\n    if c = red: 1\n"])
@pytest.mark.parametrize("more", ["", "elif a < 3 and c = blue: 1\n"])
def test_answers_are_those_of_the_conditions(condition: str, gone: str, more: str) -> None:
    text = f"if {condition}:\n    if b = 0: 0\n    ask c\n    1\n{more}{gone}0\n"
    protocol, rows = DecisionProtocol(text), every_row()
    graph = bind(protocol, ENCODER, CLASSES)
    there = np.array([[row[name] is not None for name in "abc"] for row in rows])
    place, _ = graph.locate(encoded_of(rows), ENCODER.source, there, there)
    wanted = [int(answer_of(parse(text), row)) for row in rows]
    assert graph.label_of(place).tolist() == wanted


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_covariate_is_acquired_when_its_test_is_reached(condition: str) -> None:
    """Step by step no value is looked at before, and every value acquired was needed for a test."""
    graph = bind(DecisionProtocol(f"if {condition}: 1\nunavailable: 1\n0"), ENCODER, CLASSES)
    rows = every_row()
    encoded, have = encoded_of(rows), np.zeros((len(rows), 3), dtype=bool)
    there = np.array([[row[name] is not None for name in "abc"] for row in rows])
    whole, _ = graph.locate(encoded, ENCODER.source, there, there)
    hidden = np.where(have[:, ENCODER.source], encoded, 99.0)
    while True:
        place, _ = graph.locate(hidden, ENCODER.source, there, have)
        asking = np.flatnonzero(place < len(graph.tests))
        if len(asking) == 0:
            break
        for row in asking.tolist():
            k = graph.tests[place[row]].covariate
            assert there[row, k]
            assert not have[row, k]
            have[row, k] = True
        hidden = np.where(have[:, ENCODER.source], encoded, 99.0)
    np.testing.assert_array_equal(place, whole)


def test_and_and_or_stop_at_the_first_part_that_settles() -> None:
    def asked(text: str, row: dict[str, object]) -> list[int]:
        graph = bind(DecisionProtocol(text), ENCODER, CLASSES)
        encoded, have, order = encoded_of([row]), np.zeros((1, 3), dtype=bool), []
        there = np.array([[row[name] is not None for name in "abc"]])
        while (place := graph.locate(encoded, ENCODER.source, there, have)[0][0]) < len(
            graph.tests
        ):
            order.append(graph.tests[place].covariate)
            have[0, order[-1]] = True
        return order

    row: dict[str, object] = {"a": 0.0, "b": 1.0, "c": "red"}
    assert asked("if a > 1 and b = 1: 1\n0", row) == [0]
    assert asked("if a <= 1 or b = 1: 1\n0", row) == [0]
    assert asked("if b = 1 and a > 1: 1\n0", row) == [1, 0]
    # b may still settle that the condition fails, or holds.
    gone = {**row, "a": None}
    assert asked("if a > 1 and b = 0: 1\nunavailable: 1\n0", gone) == [1]
    # Where nothing hangs on it, it is not asked.
    assert asked("if a > 1 and b = 0: 1\nelse: 0", gone) == []


def test_values_beyond_the_range_stay_on_their_side() -> None:
    """Encoded numbers are kept within the training range, which is made wider for the protocol."""
    protocol = DecisionProtocol("if a > 7: 1\nif a <= 3 and a >= 0: 0\n1")
    encoder = widened_encoder(protocol, ENCODER)
    graph = bind(protocol, encoder, CLASSES)
    values = np.array([-5.0, 0.0, 2.0, 3.0, 4.0, 7.0, 7.5, 1e6])
    encoded = np.tile(encoded_of(every_row()[:1]), (len(values), 1))
    encoded[:, :1] = encoder.encode(0, values)
    there = np.ones((len(values), 3), dtype=bool)
    place, _ = graph.locate(encoded, encoder.source, there, there)
    assert graph.label_of(place).tolist() == [1, 0, 0, 0, 1, 1, 1, 1]
    encoder.check()


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("if aa > 1: 1\n0", r"line 1, column 4: must name a covariate.*Did you mean a\?"),
        ("if c = redd: 1\n0", r"c: must be a category.*Did you mean red"),
        ("if c > 3: 1\n0", "c holds words, which have no order"),
        ("if a = high: 1\n0", "a must be compared with a number"),
        ("if a > 1: ill\n0", r"line 1, column 11: an answer must be a class"),
        ("ask z\n0", r"line 1, column 1: must name a covariate"),
    ],
)
def test_what_does_not_fit_the_table_is_named(text: str, reported: str) -> None:
    with pytest.raises(InvalidInputError, match=reported):
        bind(DecisionProtocol(text), ENCODER, CLASSES)


def test_many_nested_conditions_do_not_explode() -> None:
    condition = "a > 1"
    for n in range(40):
        condition = f"({condition} {'or' if n % 2 else 'and'} b = 1 and c = red)"
    graph = bind(DecisionProtocol(f"if {condition}: 1\nunavailable: 0\n0"), ENCODER, CLASSES)
    assert len(graph) < 3_000

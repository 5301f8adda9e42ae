"""The language of protocols: text to statements and back, and where mistakes are."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import DecisionProtocol, InvalidInputError
from adacos.protocols.language import Answer, Ask, Choice, Junction, Negation, ValueTest, written
from adacos.protocols.parsing import parse

EXAMPLE = """\
# today's protocol
ask age
if TSH > 4.5 and age > 50 or not (sex = female):
    refer
elif 2 < T4 <= 9.5 and "free T3" in (a, b, "c d"):
    if T3 != 3: treat   # "a comment"
    unavailable: refer
elif T4 is unavailable: treat
unavailable: refer
not ill
"""


def test_an_example_is_read_as_it_is_meant() -> None:
    ask, choice, last = parse(EXAMPLE)
    assert ask == Ask(("age",))
    assert last == Answer("not ill")
    assert isinstance(choice, Choice)
    (first, refer), (second, inner), (third, _) = choice.branches
    both = Junction("and", (ValueTest("TSH", ">", (4.5,)), ValueTest("age", ">", (50.0,))))
    assert first == Junction("or", (both, Negation(ValueTest("sex", "in", ("female",)))))
    assert refer == (Answer("refer"),)
    between = Junction("and", (ValueTest("T4", ">", (2.0,)), ValueTest("T4", "<=", (9.5,))))
    assert second == Junction("and", (between, ValueTest("free T3", "in", ("a", "b", "c d"))))
    assert inner == (
        Choice(
            ((Negation(ValueTest("T3", "in", (3.0,))), (Answer("treat"),)),), (), (Answer("refer"),)
        ),
    )
    assert third == ValueTest("T4", "unavailable")
    assert choice.unavailable == (Answer("refer"),)


def random_block(rng: np.random.Generator, depth: int, last: bool) -> tuple[object, ...]:
    """Statements of every kind, of which the last answers."""
    block: list[object] = []
    for _ in range(rng.integers(0, 3)):
        if rng.random() < 0.3:
            block.append(Ask(tuple(rng.choice(NAMES, rng.integers(1, 3), replace=False).tolist())))
        elif depth < 3:
            inside = [
                (random_condition(rng, 0), random_block(rng, depth + 1, True))
                for _ in range(rng.integers(1, 3))
            ]
            gone = random_block(rng, depth + 1, True) if rng.random() < 0.5 else None
            block.append(Choice(tuple(inside), (), gone))
    return (*block, Answer(str(rng.choice(["refer", "0", "not ill", "or", 'a "b" \\c', "007"]))))


NAMES = ["age", "free T3", "or", "x-ray", "Δ", 'a"b', "4th"]


def random_condition(rng: np.random.Generator, depth: int) -> object:
    kind = rng.integers(5) if depth < 3 else 4
    if kind == 0:
        return Negation(random_condition(rng, depth + 1))
    if kind <= 2:
        parts = tuple(random_condition(rng, depth + 1) for _ in range(rng.integers(2, 4)))
        return Junction("and" if kind == 1 else "or", parts)
    name = str(rng.choice(NAMES))
    number = float(rng.choice([0.1, 1e-300, -2.5, 3.0, np.nextafter(1.0, 2), 1e22]))
    operator = str(rng.choice(["<", "<=", ">", ">=", "in", "unavailable"]))
    if operator == "unavailable":
        return ValueTest(name, operator)
    if operator == "in":
        words = [number, "a", "007", "is", "not ill"][: rng.integers(1, 6)]
        return ValueTest(name, operator, tuple(words))
    return ValueTest(name, operator, (number,))


def test_text_to_protocol_to_text() -> None:
    """What is written is read as the same statements, to the last digit."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        block = random_block(rng, 0, True)
        text = written(block)  # type: ignore[arg-type]
        assert written(parse(text)) == text
        # A condition may lose brackets that say nothing, and no more than that.
        assert parse(written(parse(text))) == parse(text)
    assert parse(DecisionProtocol(EXAMPLE).formatted().text) == parse(EXAMPLE)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "needs at least one answer"),
        ("if TSH > 4,5: refer\nx", r"line 1, column 11: .*comma.*point"),
        ("if TSH > 3 & x > 1: a\nb", r"line 1, column 12: .*Did you mean and"),
        ("if TSH => 3: a\nb", r"line 1, column 8: .*Did you mean >="),
        ("if TSH > 3\n    a\nb", r"line 1, column 11: must have ':'"),
        ("if TSH > 3: a", r"line 1, column 13: every path .* must end with an answer"),
        ("a\nb", r"line 2, column 1: is never reached"),
        ("if TSH > 3: a\nelse if x > 1: b\nc", r"line 2, column 1: .*Did you mean elif"),
        ("if TSH: a\nb", r"line 1, column 7: must compare TSH with a value"),
        ("if TSH > high: a\nb", r"line 1, column 10: must have a number after >"),
        ("if x > 3:\n\ta\nb", r"line 2, column 1: must be indented by blanks"),
        ("if x > 3 and: a\nb", r"line 1, column 13: must name a covariate"),
        ("if x > 3: a\nels: b", r"line 2, column 1: .*Did you mean else"),
        ('if "x > 3: a\nb', r"line 1, column 4: .*Close the quotation mark"),
        ("if x in 3: a\nb", r"line 1, column 9: must have '\('"),
        ("else: b", r"line 1, column 1: else must follow an if"),
        ("if x > 3: if y > 2: a\nb", r"line 1, column 11: must stand on a line of its own"),
        ("if x > 1: a\nelse: b\nelif x > 2: c", r"line 3, column 1: elif must stand before"),
        ("if (x > 1: a\nb", r"line 1, column 10: must have '\)'"),
        ("if " + "(" * 200 + "x > 1" + ")" * 200 + ": a\nb", "is nested more than"),
        ("if x is missing: a\nb", r"line 1, column 9: must say unavailable or available"),
        ("import os", "x"),
    ],
)
def test_mistakes_have_a_place_and_a_remedy(text: str, reported: str) -> None:
    if text == "import os":
        # Words are an answer: nothing is ever executed.
        assert DecisionProtocol(text).answers == ("import os",)
        return
    with pytest.raises(InvalidInputError, match=reported):
        DecisionProtocol(text)


def test_deep_and_long_texts_are_refused_and_not_a_crash() -> None:
    deep = "".join(f"{' ' * n}if x > {n}:\n" for n in range(500)) + " " * 500 + "a\nb"
    with pytest.raises(InvalidInputError, match="nested more than"):
        DecisionProtocol(deep)
    with pytest.raises(InvalidInputError, match="must be shorter"):
        DecisionProtocol("a" * 2_000_000)


def test_rules_and_toml_are_the_same_protocol(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rules = [
        {"ask": ["age"]},
        {"if": "TSH > 4.5", "then": [{"if": "age > 50", "then": "refer"}], "unavailable": "refer"},
        "discharge",
    ]
    text = "ask age\nif TSH > 4.5:\n    if age > 50: refer\nunavailable: refer\ndischarge"
    assert str(DecisionProtocol.from_rules(rules)) == text
    path = tmp_path / "protocol.toml"
    path.write_text(
        'otherwise = "discharge"\n[[rules]]\nask = ["age"]\n[[rules]]\nif = "TSH > 4.5"\n'
        'unavailable = "refer"\n[[rules.then]]\nif = "age > 50"\nthen = "refer"\n'
    )
    assert DecisionProtocol.read(path).text == text
    DecisionProtocol(text).save(tmp_path / "p.txt")
    assert DecisionProtocol.read(tmp_path / "p.txt").text == text + "\n"


@pytest.mark.parametrize(
    ("rules", "reported"),
    [
        ([{"if": "a >", "then": "x"}, "y"], r"rules\[0\].if, column 4: must have a value"),
        ([{"if": "a > 1", "than": "x"}, "y"], r"rules\[0\].*Did you mean then"),
        ([{"if": "a > 1", "then": "x"}], "must end with an answer"),
        ([], "must hold an answer"),
        ([None], r"rules\[0\]: must be an answer or a rule"),
        ([{"ask": 3}, "y"], r"rules\[0\].ask"),
    ],
)
def test_wrong_rules_are_named(rules, reported) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInputError, match=reported):
        DecisionProtocol.from_rules(rules)


def test_wrong_files_are_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInputError, match="readable text file"):
        DecisionProtocol.read(tmp_path / "absent.txt")
    path = tmp_path / "p.toml"
    path.write_text("[[rule]]\nif = 'a > 1'\nthen = 'x'\n")
    with pytest.raises(InvalidInputError, match="Did you mean rules"):
        DecisionProtocol.read(path)
    path.write_text("[[rules\n")
    with pytest.raises(InvalidInputError, match="valid TOML"):
        DecisionProtocol.read(path)

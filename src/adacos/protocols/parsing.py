"""The parser of written protocols: lines, words and conditions, with the place of every mistake.

    block      = statement, one or more, equally far to the right
    statement  = answer | "ask" name {"," name} | choice
    choice     = "if" condition ":" block {"elif" condition ":" block}
                 ["unavailable" ":" block] ["else" ":" block]
    condition  = part {"or" part},  part = term {"and" term},  term = ["not"] test
    test       = name (< <= > >= = !=) value | value < name <= value | name "in" (value, …)
                 | name "is" ("unavailable" | "available") | "(" condition ")"

A block is on the line of its colon if it is a single answer or request, else on lines of its
own. `#` begins a comment. Nothing is evaluated: the result is plain values.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from adacos.exceptions import InvalidInputError
from adacos.protocols.language import (
    KEYWORDS,
    Answer,
    Ask,
    Block,
    Choice,
    Condition,
    Junction,
    Negation,
    Place,
    Statement,
    ValueTest,
)
from adacos.validation import did_you_mean

PARAMETER = "protocol"
# More than any protocol has: what is longer or deeper is no protocol, and is refused early.
MOST_CHARACTERS, MOST_DEPTH = 1_000_000, 100

_TOKEN = re.compile(
    r"""(?P<blank>\s+)|(?P<comment>\#.*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<name>[^\W\d][\w.-]*)
    |(?P<sign><=|>=|==|!=|=>|=<|<>|&&|\|\||[<>=≤≥≠(),:])""",
    re.VERBOSE,
)
_SIGNS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!=", "<>": "!="}
_COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_WRITTEN = {"&": "Did you mean and?", "|": "Did you mean or?", "!": "Did you mean not?"}
_MEANT = {"=>": ">=", "=<": "<=", "&&": "and", "||": "or"}


class Token(NamedTuple):
    """A word of the text: its kind, what it says, and where it is."""

    kind: str
    text: str
    place: Place


class TextLine(NamedTuple):
    """A line that says something: how far to the right it begins, and its words."""

    indent: int
    tokens: list[Token]
    text: str


def refuse(place: Place, rule: str, found: str = "", remedy: str = "") -> NoReturn:
    """Refuse a text at a place."""
    line, column = place
    where = f"line {line}, column {column}: " if line else ""
    raise InvalidInputError(PARAMETER, where + rule, found, remedy)


def parse(text: str) -> Block:
    """The statements of a protocol; each row gets an answer."""
    if len(text) > MOST_CHARACTERS:
        refuse((0, 0), f"must be shorter than {MOST_CHARACTERS:,} characters", f"{len(text):,}")
    lines = [line for n, raw in enumerate(text.splitlines(), 1) if (line := _line(n, raw)).tokens]
    if not lines:
        refuse((0, 0), "needs at least one answer", "an empty text", "For example: if TSH > 4.5: 1")
    parser = _Parser(lines)
    block = parser.block(lines[0].indent, 0)
    if parser.at < len(lines):
        refuse(parser.line.tokens[0].place, "begins further to the left than the first line")
    _check_answers(block, lines[-1].tokens[-1].place)
    return block


def parse_condition(text: str, where: str) -> Condition:
    """A condition by itself, such as in a TOML file; `where` names it in errors."""
    try:
        line = _line(1, text)
        reader = _Words(line.tokens, line.text)
        condition = reader.condition(0)
        if reader.here is not None:
            reader.refuse("is not expected here")
    except InvalidInputError as error:
        rule = error.rule.replace("line 1, ", f"{where}, ", 1)
        raise InvalidInputError(PARAMETER, rule, error.value, error.remedy) from None
    return condition


def always_answers(block: Block) -> bool:
    """Whether every path through a block ends with an answer."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, Choice):
        inside = [below for _, below in last.branches] + [last.otherwise]
        inside += [] if last.unavailable is None else [last.unavailable]
        return all(map(always_answers, inside))
    return isinstance(last, Answer)


def _check_answers(block: Block, end: Place) -> None:
    """Refuse what is never reached, and ways that end without an answer."""
    _refuse_unreached(block)
    if not always_answers(block):
        refuse(
            end,
            "every path through the protocol must end with an answer",
            "",
            "Add an else, or a last line with the answer of the rows that come so far.",
        )


def _refuse_unreached(block: Block) -> None:
    for position, statement in enumerate(block):
        if position and always_answers(block[:position]):
            refuse(
                statement.place,
                "is never reached: every row has its answer before",
                "",
                "Remove it, or put it above.",
            )
        if isinstance(statement, Choice):
            for _, below in statement.branches:
                _refuse_unreached(below)
            for other in (statement.otherwise, statement.unavailable or ()):
                _refuse_unreached(other)


def _line(number: int, raw: str) -> TextLine:
    """The words of a line, without blanks and comments."""
    stripped = raw.lstrip()
    lead = raw[: len(raw) - len(stripped)]
    if stripped and "\t" in lead:
        refuse((number, 1), "must be indented by blanks", "a tab", "Replace tabs by blanks.")
    tokens, at = [], 0
    while at < len(raw):
        match = _TOKEN.match(raw, at)
        place = (number, at + 1)
        if match is None:
            found = raw[at : at + 10].split()[0]
            hint = "Close the quotation mark." if found[0] in "\"'" else "Put names in quotes."
            hint = _WRITTEN.get(found, hint)
            refuse(place, "holds a character that is no part of a protocol", found, hint)
        kind, text = str(match.lastgroup), match.group()
        if text in _MEANT:
            refuse(place, "holds a sign that is not known", text, f"Did you mean {_MEANT[text]}?")
        if kind == "text":
            text = re.sub(r"\\(.)", r"\1", text[1:-1])
        if kind not in ("blank", "comment"):
            tokens.append(Token(kind, _SIGNS.get(text, text), place))
        at = match.end()
    end = tokens[-1].place[1] if tokens else 0
    comment = raw.find("#", end)
    return TextLine(len(lead), tokens, raw[:comment] if comment >= 0 else raw)


class _Words:
    """The words of one line, read from left to right."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens, self.text, self.at = tokens, text, 0

    @property
    def here(self) -> Token | None:
        """The next word; None at the end of the line."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def place(self) -> Place:
        """The place of the next word, or of the end."""
        if self.here is not None:
            return self.here.place
        line, _ = self.tokens[-1].place if self.tokens else (1, 1)
        return line, len(self.text.rstrip()) + 1

    def refuse(self, rule: str, remedy: str = "") -> NoReturn:
        """Refuse the next word."""
        refuse(self.place, rule, self.here.text if self.here else "the end of the line", remedy)

    def take(self, *texts: str) -> bool:
        """Go past the next words if they are these."""
        ahead = self.tokens[self.at : self.at + len(texts)]
        if [token.text for token in ahead if token.kind != "text"] != list(texts):
            return False
        self.at += len(texts)
        return True

    def expect(self, text: str, remedy: str = "") -> None:
        """Go past a word that must be there."""
        if not self.take(text):
            self.refuse(f"must have {text!r} here", remedy)

    def condition(self, depth: int) -> Condition:
        """A condition: parts between `or`."""
        if depth > MOST_DEPTH:
            self.refuse(f"is nested more than {MOST_DEPTH} times")
        parts = [self._part(depth)]
        while self.take("or"):
            parts.append(self._part(depth))
        return parts[0] if len(parts) == 1 else Junction("or", tuple(parts))

    def _part(self, depth: int) -> Condition:
        terms = [self._term(depth)]
        while self.take("and"):
            terms.append(self._term(depth))
        return terms[0] if len(terms) == 1 else Junction("and", tuple(terms))

    def _term(self, depth: int) -> Condition:
        if depth > MOST_DEPTH:
            self.refuse(f"is nested more than {MOST_DEPTH} times")
        if self.take("not"):
            return Negation(self._term(depth + 1))
        if self.take("("):
            inside = self.condition(depth + 1)
            self.expect(")", "Close the bracket.")
            return inside
        return self._test()

    def _test(self) -> Condition:
        """A test of one covariate, or of a range."""
        place = self.place
        if self.here is not None and self.here.kind == "number":
            return self._mirrored(place)
        name = self.name("a covariate")
        if self.take("is"):
            return self._availability(name, place)
        if self.take("not", "in"):
            return Negation(ValueTest(name, "in", self._values(), place))
        if self.take("in"):
            return ValueTest(name, "in", self._values(), place)
        if self.here is None or self.here.text not in _COMPARISONS:
            example = f"For example {name} > 4.5, {name} = yes or {name} in (1, 2)."
            self.refuse(f"must compare {name} with a value", example)
        operator = self.tokens[self.at].text
        self.at += 1
        test = self._compared(name, operator, place)
        if self.here is not None and self.here.text == "," and isinstance(test, ValueTest):
            self.refuse("must not have a comma here", "Decimals have a point, such as 4.5.")
        return test

    def _mirrored(self, place: Place) -> Condition:
        """`4 < name`, or `4 < name <= 9`."""
        at = self.at
        self.at += 1
        first = self._comparison("a number")
        name = self.name("a covariate")
        after, self.at = self.at, at
        low = self._compared(name, _MIRRORED[first], place)
        self.at = after
        if self.here is None or self.here.text not in _COMPARISONS:
            return low
        operator = self._comparison("a covariate")
        return Junction("and", (low, self._compared(name, operator, place)))

    def _comparison(self, after: str) -> str:
        if self.here is None or self.here.text not in _COMPARISONS:
            self.refuse(f"must have a sign such as < or >= after {after}")
        self.at += 1
        return self.tokens[self.at - 1].text

    def _compared(self, name: str, operator: str, place: Place) -> Condition:
        """The test of a covariate against the next value."""
        value = self.value()
        if operator in ("=", "!="):
            test = ValueTest(name, "in", (value,), place)
            return test if operator == "=" else Negation(test)
        if isinstance(value, str):
            self.at -= 1
            self.refuse(f"must have a number after {operator}", "Words are compared by = or in.")
        return ValueTest(name, operator, (value,), place)

    def _availability(self, name: str, place: Place) -> Condition:
        if self.take("not", "available") or self.take("unavailable"):
            return ValueTest(name, "unavailable", (), place)
        if self.take("available"):
            return Negation(ValueTest(name, "unavailable", (), place))
        self.refuse("must say unavailable or available after is", "Values are compared by =.")

    def _values(self) -> tuple[float | str, ...]:
        self.expect("(", "Values of in stand in brackets: (a, b).")
        values = [self.value()]
        while self.take(","):
            values.append(self.value())
        self.expect(")", "Close the bracket.")
        return tuple(values)

    def value(self) -> float | str:
        """A number or a word."""
        token = self.here
        if token is None or token.kind == "sign":
            self.refuse("must have a value here")
        self.at += 1
        return float(token.text) if token.kind == "number" else token.text

    def name(self, what: str) -> str:
        """The name of something."""
        token = self.here
        if token is None or token.kind not in ("name", "text"):
            self.refuse(f"must name {what} here", "Put a name in quotes if it has other signs.")
        self.at += 1
        return token.text


class _Parser:
    """The lines of a protocol, read from top to bottom."""

    def __init__(self, lines: list[TextLine]) -> None:
        self.lines, self.at = lines, 0

    @property
    def line(self) -> TextLine:
        """The line that is next."""
        return self.lines[self.at]

    def block(self, indent: int, depth: int) -> Block:
        """The statements that begin this far to the right."""
        if depth > MOST_DEPTH:
            refuse(self.line.tokens[0].place, f"is nested more than {MOST_DEPTH} times")
        statements: list[Statement] = []
        while self.at < len(self.lines) and self.line.indent >= indent:
            if self.line.indent > indent:
                refuse(
                    self.line.tokens[0].place,
                    "begins further to the right than the line above",
                    "",
                    "Indent only what follows a colon.",
                )
            statements.append(self._statement(indent, depth))
        return tuple(statements)

    def _statement(self, indent: int, depth: int) -> Statement:
        words = _Words(self.line.tokens, self.line.text)
        head = self.line.tokens[0]
        word = head.text if head.kind == "name" else ""
        if word == "if":
            return self._choice(indent, depth)
        if word in ("elif", "else", "unavailable") and len(self.line.tokens) > 1:
            remedy = "Put it as far to the right as its if."
            refuse(head.place, f"{word} must follow an if", "", remedy)
        self.at += 1
        return _simple(words)

    def _choice(self, indent: int, depth: int) -> Choice:
        """An `if` with its clauses."""
        place = self.line.tokens[0].place
        branches: list[tuple[Condition, Block]] = []
        others: dict[str, Block] = {}
        while self.at < len(self.lines) and self.line.indent == indent:
            tokens = self.line.tokens
            head = tokens[0].text if tokens[0].kind == "name" else ""
            words = _Words(tokens, self.line.text)
            if words.take("else", "if"):
                refuse(tokens[0].place, "must be one word", "else if", "Did you mean elif?")
            first = not branches
            if head not in KEYWORDS[:4] or (head == "if") != first:
                break
            if head in ("else", "unavailable") and len(tokens) == 1:
                refuse(words.tokens[0].place, f"{head} must have ':' after it")
            words.at = 1
            if head in ("if", "elif"):
                if others:
                    refuse(tokens[0].place, "elif must stand before else and unavailable")
                condition = words.condition(0)
                words.expect(":", "End the condition with a colon.")
                branches.append((condition, self._suite(words, indent, depth)))
            else:
                words.expect(":", f"Write {head}: and then the answer.")
                if head in others:
                    refuse(tokens[0].place, f"{head} must stand once for each if")
                others[head] = self._suite(words, indent, depth)
        return Choice(tuple(branches), others.get("else", ()), others.get("unavailable"), place)

    def _suite(self, words: _Words, indent: int, depth: int) -> Block:
        """What follows a colon, or on the lines below."""
        self.at += 1
        if words.here is not None:
            if words.here.text == "if" and words.here.kind == "name":
                words.refuse("must stand on a line of its own", "Indent it below the colon.")
            return (_simple(words),)
        if self.at >= len(self.lines) or self.line.indent <= indent:
            words.refuse("must have an answer here or on indented lines below")
        return self.block(self.line.indent, depth + 1)


def _simple(words: _Words) -> Answer | Ask:
    """An answer or a request, to the end of the line."""
    place, first = words.place, words.here
    assert first is not None
    if first.kind == "name" and first.text == "ask" and words.take("ask"):
        names = [words.name("a covariate")]
        while words.take(","):
            names.append(words.name("a covariate"))
        if words.here is not None:
            words.refuse("must have a comma between covariates")
        return Ask(tuple(names), place)
    rest = words.tokens[words.at :]
    if len(rest) == 1 and first.kind != "sign":
        return Answer(first.text, place)
    if any(token.kind != "name" for token in rest):
        known = [token.text for token in rest if token.kind == "name"][:1]
        meant = did_you_mean(known, KEYWORDS)
        remedy = f"{meant}A line begins with if, elif, else, unavailable, ask, or is an answer."
        refuse(place, "is neither a statement nor an answer", words.text.strip()[:60], remedy)
    return Answer(" ".join(token.text for token in rest), place)

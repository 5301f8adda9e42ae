"""`DecisionProtocol`: a protocol as people write it, from text, files, rules or a fitted tree."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from adacos.exceptions import InvalidInputError
from adacos.protocols.language import (
    Answer,
    Ask,
    Block,
    Choice,
    Condition,
    Junction,
    ValueTest,
    renamed,
    written,
)
from adacos.protocols.parsing import (
    MOST_DEPTH,
    PARAMETER,
    always_answers,
    parse,
    parse_condition,
    refuse,
)
from adacos.tables.writing import write_whole
from adacos.typing import Floats
from adacos.validation import did_you_mean, near_file, refuse_pipe

_EXAMPLE = 'For example {"if": "TSH > 4.5 and age > 50", "then": "refer", "else": "discharge"}.'
_CLAUSES = ("if", "then", "unavailable", "else")


@dataclass(frozen=True)
class DecisionProtocol:
    """A decision tree written by people: what to acquire, and which answer to give.

    Parameters
    ----------
    text : str
        The protocol, see the page about protocols. A test acquires its covariate when it is
        reached.

    See Also
    --------
    ProtocolClassifier : The policy that follows it.

    Examples
    --------
    >>> from adacos import DecisionProtocol
    >>> protocol = DecisionProtocol(\"\"\"
    ... if TSH > 4.5 and age > 50: refer
    ... unavailable: refer
    ... discharge
    ... \"\"\")
    >>> protocol.covariates, protocol.answers
    (('TSH', 'age'), ('refer', 'discharge'))
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidInputError(
                PARAMETER, "must be a text", type(self.text).__name__, "For example 'if x > 3: 1'."
            )
        # A mistake is told where the protocol is made.
        _ = self.statements

    @cached_property
    def statements(self) -> Block:
        """What it consists of."""
        return parse(self.text)

    def check(self) -> None:
        """Refuse a text that is no protocol, as a foreign file may hold it."""
        _ = self.statements

    @property
    def covariates(self) -> tuple[str, ...]:
        """Covariates that it may ask, in the order in which they are written."""
        return tuple(dict.fromkeys(_covariates(self.statements)))

    @property
    def answers(self) -> tuple[str, ...]:
        """Answers that it may give, in the order in which they are written."""
        return tuple(dict.fromkeys(_answers(self.statements)))

    def __str__(self) -> str:
        return self.text

    def with_classes(self, names: Mapping[str, str]) -> DecisionProtocol:
        """Give the protocol with answers by class, where some are names of classes.

        Parameters
        ----------
        names : mapping of str to str
            Name of each class, by the class as text.

        Returns
        -------
        DecisionProtocol
            The protocol; itself where no answer is such a name.
        """
        classes = {name: label for label, name in names.items()}
        if not set(classes) & set(self.answers) - set(names):
            return self
        return DecisionProtocol(written(renamed(self.statements, classes)))

    def formatted(self) -> DecisionProtocol:
        """Give the same protocol in plain form, without comments.

        Returns
        -------
        DecisionProtocol
            The protocol.
        """
        return DecisionProtocol(written(self.statements))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text into a file, to be edited and read again.

        Parameters
        ----------
        path : path-like
            The file.
        """
        write_whole(path, f"{self.text.rstrip()}\n".encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> DecisionProtocol:
        """Read a protocol from a file: TOML if it ends in .toml, else text.

        Parameters
        ----------
        path : path-like
            The file. A TOML file has a list of tables `rules` and an answer `otherwise`.

        Returns
        -------
        DecisionProtocol
            The protocol.

        Raises
        ------
        InvalidInputError
            If the file cannot be read, or holds no protocol.
        """
        refuse_pipe(PARAMETER, path)
        if not Path(path).exists():
            remedy = near_file(Path(path)) or "Check the path."
            raise InvalidInputError(PARAMETER, "must be a readable text file", str(path), remedy)
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            rule, remedy = "must be a readable text file", "Check the path and the encoding."
            raise InvalidInputError(PARAMETER, rule, f"{path}: {error}", remedy) from error
        if Path(path).suffix.lower() != ".toml":
            return cls(text)
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            rule = "must be valid TOML"
            raise InvalidInputError(PARAMETER, rule, f"{path}: {error}", _EXAMPLE) from error
        unknown = sorted(set(content) - {"rules", "otherwise"})
        if unknown or "rules" not in content:
            raise InvalidInputError(
                PARAMETER,
                "a TOML file must hold [[rules]] and may hold otherwise",
                ", ".join(unknown) or "no rules",
                did_you_mean(unknown, ("rules", "otherwise")).strip() or _EXAMPLE,
            )
        end = [content["otherwise"]] if "otherwise" in content else []
        rules = content["rules"]
        return cls.from_rules([*rules, *end] if isinstance(rules, list) else rules)

    @classmethod
    def from_rules(cls, rules: Sequence[Any]) -> DecisionProtocol:
        """Make a protocol of rules as plain values.

        Parameters
        ----------
        rules : sequence of dict or str
            A dict has "if" with a condition, "then", and may have "else" and "unavailable", each an
            answer or further rules; or it has "ask" with a list of covariates. A str is an answer.

        Returns
        -------
        DecisionProtocol
            The protocol.

        Examples
        --------
        >>> from adacos import DecisionProtocol
        >>> rules = [{"if": "TSH > 4.5", "then": "refer", "unavailable": "refer"}, "discharge"]
        >>> print(DecisionProtocol.from_rules(rules))
        if TSH > 4.5: refer
        unavailable: refer
        discharge
        """
        return cls(written(_block(rules, "rules", 0)))

    @classmethod
    def from_tree(
        cls, tree: DecisionTreeClassifier, names: Sequence[str] | None = None
    ) -> DecisionProtocol:
        """Make a protocol of a fitted decision tree of scikit-learn, with the same answers.

        Parameters
        ----------
        tree : DecisionTreeClassifier
            The fitted tree, of one output.
        names : sequence of str, default=None
            Names of its columns; those of the data frame that it was fitted on, else x0, x1, ….

        Returns
        -------
        DecisionProtocol
            The protocol. A value that is unavailable goes the way that scikit-learn sends it.

        Notes
        -----
        scikit-learn rounds values to single precision before it compares them. Cuts are therefore
        written with all digits that decide: where single precision passes from one side to the
        other.
        """
        if not isinstance(tree, DecisionTreeClassifier) or not hasattr(tree, "tree_"):
            raise InvalidInputError(
                "tree",
                "must be a fitted DecisionTreeClassifier of scikit-learn",
                type(tree).__name__,
                "Fit it first; of a forest each tree is a protocol of its own.",
            )
        if tree.n_outputs_ != 1:
            raise InvalidInputError("tree", "must have one output", str(tree.n_outputs_), "")
        if names is None:
            names = getattr(
                tree, "feature_names_in_", [f"x{k}" for k in range(tree.n_features_in_)]
            )
        if len(names) != tree.n_features_in_:
            raise InvalidInputError(
                "names", f"must be {tree.n_features_in_}, one for each column", len(names), ""
            )
        return cls(written(_of_tree(tree, [str(name) for name in names])))


def as_protocol(given: Any) -> DecisionProtocol:
    """A protocol from itself, or from its text."""
    if isinstance(given, DecisionProtocol):
        return given
    if not isinstance(given, str):
        raise InvalidInputError(
            PARAMETER,
            "must be a text or a DecisionProtocol",
            type(given).__name__,
            "Rules and trees become one by DecisionProtocol.from_rules and from_tree.",
        )
    if "\n" not in given and given.lower().endswith((".txt", ".toml", ".protocol")):
        raise InvalidInputError(
            PARAMETER,
            "must be the text itself, not the name of a file",
            given,
            f"Pass DecisionProtocol.read({given!r}).",
        )
    return DecisionProtocol(given)


def _covariates(block: Block) -> list[str]:
    found: list[str] = []
    for statement in block:
        if isinstance(statement, Ask):
            found += statement.covariates
        elif isinstance(statement, Choice):
            for condition, inside in statement.branches:
                found += [*_tested(condition), *_covariates(inside)]
            found += _covariates((*(statement.unavailable or ()), *statement.otherwise))
    return found


def _tested(condition: Condition) -> list[str]:
    if isinstance(condition, ValueTest):
        return [condition.covariate]
    if isinstance(condition, Junction):
        return [name for part in condition.parts for name in _tested(part)]
    return _tested(condition.inside)


def _answers(block: Block) -> list[str]:
    found: list[str] = []
    for statement in block:
        if isinstance(statement, Answer):
            found.append(statement.label)
        elif isinstance(statement, Choice):
            for _, inside in statement.branches:
                found += _answers(inside)
            found += _answers((*(statement.unavailable or ()), *statement.otherwise))
    return found


def _block(given: Any, where: str, depth: int) -> Block:
    """The statements that plain values stand for; `where` names them in errors."""
    if depth > MOST_DEPTH:
        refuse((0, 0), f"{where}: is nested more than {MOST_DEPTH} times")
    items = given if isinstance(given, list | tuple) else [given]
    if not items:
        refuse((0, 0), f"{where}: must hold an answer or a rule", "an empty list", _EXAMPLE)
    statements: list[Any] = []
    for number, item in enumerate(items):
        place = f"{where}[{number}]" if items is given else where
        if isinstance(item, dict):
            statements.append(_rule(item, place, depth))
        elif isinstance(item, str | int | float):
            statements.append(Answer(str(item)))
        else:
            rule = f"{place}: must be an answer or a rule"
            refuse((0, 0), rule, type(item).__name__, _EXAMPLE)
    block = tuple(statements)
    if depth == 0 and not always_answers(block):
        refuse((0, 0), f"{where}: must end with an answer", "", "Add one for all other rows.")
    return block


def _rule(item: dict[str, Any], where: str, depth: int) -> Choice | Ask:
    if set(item) == {"ask"}:
        names = [item["ask"]] if isinstance(item["ask"], str) else item["ask"]
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            refuse((0, 0), f"{where}.ask: must be a list of covariates", str(names))
        return Ask(tuple(names))
    unknown = [str(key) for key in item if key not in _CLAUSES]
    missing = [key for key in ("if", "then") if key not in item]
    if unknown or missing or not isinstance(item["if"], str):
        meant = did_you_mean(unknown, _CLAUSES)
        found = ", ".join(unknown) or f"no {' and no '.join(missing)}"
        rule = f"{where}: must have if and then, and may have else and unavailable"
        refuse((0, 0), rule, found, f"{meant}{_EXAMPLE}")
    condition = parse_condition(item["if"], f"{where}.if")
    below = {
        key: _block(item[key], f"{where}.{key}", depth + 1) for key in _CLAUSES[1:] if key in item
    }
    branches = ((condition, below["then"]),)
    return Choice(branches, below.get("else", ()), below.get("unavailable"))


def _of_tree(tree: DecisionTreeClassifier, names: list[str]) -> Block:
    """The nodes of a tree of scikit-learn, from the leaves up."""
    nodes = tree.tree_
    cuts = exact_cuts(nodes.threshold)
    labels = [str(label) for label in tree.classes_.tolist()]
    blocks: dict[int, Block] = {}
    # Children have higher numbers than their parents.
    for node in reversed(range(nodes.node_count)):
        left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
        if left < 0:
            blocks[node] = (Answer(labels[int(np.argmax(nodes.value[node, 0]))]),)
            continue
        name, first = names[int(nodes.feature[node])], blocks[left]
        gone = ValueTest(name, "unavailable")
        low: Condition = ValueTest(name, "<=", (float(cuts[node]),))
        if nodes.missing_go_to_left[node]:
            low = Junction("or", (low, gone))
        elif math.isinf(cuts[node]):
            # All that is known goes left.
            low, first, right = gone, blocks[right], left
        second = blocks[right]
        branches = ((low, first),)
        if len(second) == 1 and isinstance(second[0], Choice):
            blocks[node] = (Choice((*branches, *second[0].branches), second[0].otherwise),)
        else:
            blocks[node] = (Choice(branches, second),)
    return blocks[0]


def exact_cuts(cuts: Floats) -> Floats:
    """The largest numbers that are at most each cut once rounded to single precision."""
    cuts = np.asarray(cuts, dtype=np.float64)
    low = cuts.astype(np.float32)
    low = np.where(low > cuts, np.nextafter(low, np.float32(-np.inf)), low)
    high = np.nextafter(low, np.float32(np.inf))
    middle = low.astype(np.float64) / 2 + high.astype(np.float64) / 2
    # A number between both is rounded to the even one.
    below = middle.astype(np.float32) <= low
    result: Floats = np.where(below, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(cuts), result, cuts)

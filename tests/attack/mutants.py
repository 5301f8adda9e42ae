"""Model files whose contents were changed here and there, with right checksums.

A mutant differs from a good file in one place: an array, or a value of the description. It must be
refused, or decide and answer exactly as the good file.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    PlanningClassifier,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.card import model_card
from adacos.exceptions import ModelFileError
from tests.model_files import answer, rewritten
from tests.policies.tables import mixed

Rng = np.random.Generator
PRICES = {"age": 1.0, "smokes": 1.0, "town": 2.0, "planet": 0.5, "zero": 0.0, "dose": 4.0}
COSTS = Costs(PRICES, false_positive=30, false_negative=70)
THREE = Costs(PRICES, misclassification=50 * (1 - np.eye(3)))
QUICK: dict[str, Any] = {"cv": 2, "strengths": "common", "n_splines": 5}
MODELS: dict[str, Callable[[], Any]] = {
    "AdaCOS": lambda: AdaCOSClassifier(COSTS, **QUICK),
    "Branching": lambda: BranchingClassifier(COSTS, **QUICK),
    "Planning": lambda: PlanningClassifier(COSTS, cv=2),
    "a target recall": lambda: TargetRecallClassifier(
        AdaCOSClassifier(COSTS, **QUICK), target_recall=0.8
    ),
    "COS": lambda: COSClassifier(COSTS, **QUICK),
    "a mean budget": lambda: AdaCOSClassifier(COSTS, mean_budget=2.0, **QUICK),
    "three classes": lambda: AdaCOSClassifier(THREE, **QUICK),
    "Auto": lambda: AutoPolicyClassifier(COSTS, **QUICK),
}
REFUSED, SAME, OTHERWISE = "refused", "as before", "otherwise"


def rows_of(name: str, n: int, seed: int) -> tuple[Any, Any]:
    """Rows and classes for one of the models."""
    X, y = mixed(n, seed)
    if name == "three classes":
        y = np.where(np.random.default_rng(seed).random(n) < 0.35, "odd", np.asarray(y).astype(str))
    return X, y


class Change(NamedTuple):
    """Where and how a mutant differs, and its members."""

    reported: str
    members: dict[str, bytes]


def of_array(rng: Rng, array: Any) -> tuple[str, Any]:
    """An array, changed in one way."""
    flat = np.array(array).reshape(-1)
    i, j = rng.integers(flat.size, size=2)
    kinds = ["negative", "nan", "inf", "zero", "one", "large", "more", "swap", "reverse"]
    kind = str(rng.choice([*kinds, "transpose", "dtype"]))
    if kind == "transpose":
        return kind, np.ascontiguousarray(array.T)
    if kind == "dtype":
        return kind, array.astype(np.float32 if array.dtype.kind == "f" else np.float64)
    if kind == "reverse":
        return kind, flat[::-1].reshape(array.shape)
    if kind == "swap":
        flat[[i, j]] = flat[[j, i]]
    else:
        value = flat[i]
        one = {"nan": np.nan, "inf": np.inf, "zero": 0, "one": 1, "large": 1e9}
        flat[i] = one[kind] if kind in one else -value if kind == "negative" else value * 1.5 + 0.1
    return kind, flat.reshape(array.shape)


def of_list(rng: Rng, items: list[Any]) -> list[Any]:
    """A list with items swapped, in reverse, one less or one twice."""
    items = list(items)
    i, j = rng.integers(len(items), size=2)
    kind = rng.integers(4)
    if kind == 0:
        items[i], items[j] = items[j], items[i]
    elif kind == 1:
        items.reverse()
    elif kind == 2:
        del items[i]
    else:
        items.append(items[i])
    return items


def of_value(rng: Rng, value: Any) -> Any:
    """A value of a description, changed in one way."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        changed = [-value, 0, value + 1, value * 2, 1e9, None, "x", {"float": "nan"}, value * 0.5]
    elif isinstance(value, str):
        changed = ["", value + "x", value[::-1], None, 5]
    elif value is None:
        changed = [0, 1.0, "x", True, {"list": []}]
    elif isinstance(value, list):
        return of_list(rng, value)
    else:
        one, other = (list(value)[i] for i in rng.integers(len(value), size=2))
        swapped = {**value, one: value[other], other: value[one]}
        changed = [swapped, {**value, one: None}]
    return changed[rng.integers(len(changed))]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a description that can be changed."""
    # No other class is tried here, and no other array: both are among the hostile files.
    if path and path[-1] not in ("array", "object") and node not in ({}, []):
        yield path
    below = node.items() if isinstance(node, dict) else []
    for key, item in enumerate(node) if isinstance(node, list) else below:
        yield from places(item, (*path, key))


def other_than(value: Any) -> Any:
    """Another value in the place of a single one, of its type where it has one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, float) and value:
        return value * 0.5
    return 1.0 if value is None else value + 1


class Mutants:
    """Mutants of a good file, and what becomes of them.

    Parameters
    ----------
    folder : where files are written.
    name : which model, of `MODELS`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.good, self.path = folder / "good.adacos", folder / "mutant.adacos"
        save(MODELS[name]().fit(*rows_of(name, 60, 0)), self.good)
        with zipfile.ZipFile(self.good) as archive:
            self.members = {member: archive.read(member) for member in archive.namelist()}
        self.arrays = [member for member in self.members if member.startswith("arrays/")]
        self.tree = json.loads(self.members["model.json"])
        self.places = list(places(self.tree))
        self.rows, _ = mixed(80, 1)
        self.expected = self.answers(load(self.good))

    def answers(self, model: Any) -> dict[str, Any]:
        """All that a model decides about rows, together and one by one, and says of itself."""
        said = answer(model, self.rows) | {"both": model.predict_proba(self.rows)}
        said["card"] = np.array(json.dumps(model_card(model), sort_keys=True))
        for row in range(2):
            values = self.rows.iloc[row].dropna().to_dict()
            consultation, steps = model.consultation(), []
            while hasattr(step := consultation.next(), "covariates"):
                steps.append(repr((step.covariates, step.explanation.stop_now)))
                for name in step.covariates:
                    if name in values:
                        consultation.observe({name: values[name]})
                    else:
                        consultation.unavailable(name)
            steps.append(repr((step.label, step.cost, step.expected_cost)))
            said[f"consultation {row}"] = np.array(steps)
        return said

    def change(self, rng: Rng) -> Change | None:
        """One mutant; None if it is equal to the good file."""
        if rng.random() < 0.5:
            member = str(rng.choice(self.arrays))
            array = np.load(io.BytesIO(self.members[member]))
            if array.size == 0:
                return None
            try:
                kind, changed = of_array(rng, array)
            except (TypeError, ValueError, OverflowError):  # no integer or text is NaN
                return None
            buffer = io.BytesIO()
            np.save(buffer, changed)
            if buffer.getvalue() == self.members[member]:
                return None
            return Change(f"{member} [{kind}]", {**self.members, member: buffer.getvalue()})
        path = self.places[rng.integers(len(self.places))]
        return self._changed(path, lambda value: of_value(rng, value))

    def of_every_leaf(self) -> Iterator[Change]:
        """A mutant for every number, text and empty place of the description."""
        for path in self.places:
            node = self.tree
            for key in path:
                node = node[key]
            if node is None or isinstance(node, (bool, int, float, str)):
                change = self._changed(path, other_than)
                assert change is not None
                yield change

    def _changed(self, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Change | None:
        """The mutant with one value of the description changed; None if it is equal."""
        tree = copy.deepcopy(self.tree)
        node = tree
        for key in path[:-1]:
            node = node[key]
        value = node[path[-1]]
        node[path[-1]] = change(value)
        text = json.dumps(tree).encode()
        if text == json.dumps(self.tree).encode():
            return None
        reported = ".".join(
            str(key) for key in path if key not in ("state", "tuple", "list", "dict")
        )
        reported += f": {str(value)[:30]} -> {str(node[path[-1]])[:30]}"
        return Change(reported, {**self.members, "model.json": text})

    def fate(self, change: Change) -> str:
        """Whether the mutant is refused, decides as before, or otherwise."""

        def replaced(members: dict[str, bytes]) -> None:
            members.update(change.members)

        try:
            model = load(rewritten(self.good, self.path, replaced, honest=True))
        except ModelFileError:
            return REFUSED
        said = self.answers(model)
        same = said.keys() == self.expected.keys() and all(
            np.array_equal(said[key], value, equal_nan=value.dtype.kind == "f")
            for key, value in self.expected.items()
        )
        return SAME if same else OTHERWISE

    def drawn(self, count: int, seed: int) -> Iterator[Change]:
        """So many mutants at random."""
        rng = np.random.default_rng(seed)
        while count:
            with np.errstate(all="ignore"):
                change = self.change(rng)
            if change is not None:
                count -= 1
                yield change

    def fates(self, changes: Iterable[Change]) -> tuple[Counter[str], list[str]]:
        """What becomes of mutants, and which of them decide otherwise or fail."""
        counts, wrong = Counter[str](), []
        for change in changes:
            try:
                found = self.fate(change)
            except Exception as error:  # a file may lead any part of the library into any error
                found = f"{type(error).__name__}: {error}"[:100]
            if found not in (REFUSED, SAME):
                wrong.append(f"{change.reported}: {found}")
                found = OTHERWISE
            counts[found] += 1
        return counts, wrong

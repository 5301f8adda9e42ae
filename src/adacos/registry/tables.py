"""The kinds of rows, the tables, and how something is added to them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from adacos.exceptions import InvalidInputError, MissingExtraError

# Colour, marker and line; the colours are named in `adacos.document.style`.
Look = tuple[str, str, str]


@dataclass(frozen=True)
class Method:
    """A way to run something in a benchmark.

    Attributes
    ----------
    name : unique name, as it appears in tables and legends.
    make : function from costs to an unfitted object with `fit(X, y)` and `acquire(X)`.
    family : methods of one family are run together; those with `from_model` share one fit.
    effort : run time relative to the others, to start the longest first.
    rival : whether it is a method of the literature rather than of this library.
    recall : whether it can take a target recall; None, if it stops by its rule or has the parameter
        `target_recall`.
    requires : package it cannot do without and the extra that brings it.
    look : colour, marker and line in figures; None for any that is free.
    """

    name: str
    make: Callable[[Any], Any]
    family: str
    effort: float = 1.0
    rival: bool = False
    recall: bool | None = None
    requires: tuple[str, str] | None = None
    look: Look | None = None

    def check_installed(self) -> None:
        """Raise MissingExtraError if what the method needs is absent."""
        _check_installed(self.requires)


@dataclass(frozen=True)
class Variant:
    """A policy with some of its parameters set, as a method of the benchmark; see `Method`."""

    title: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    effort: float = 1.0
    recall: bool = False
    look: Look | None = None


@dataclass(frozen=True)
class Policy:
    """A policy that can be chosen by name.

    Attributes
    ----------
    name : as `adacos fit --policy` takes it.
    home : "module:Class", or the class.
    rival : whether it is a method of the literature rather than of this library.
    requires : package it cannot be fitted without and the extra that brings it.
    parameters : with which it is made; those of its first variant.
    method : name of that variant in the benchmark.
    """

    name: str
    home: str | type
    rival: bool = False
    requires: tuple[str, str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""

    @property
    def class_name(self) -> str:
        """Name of the class, which is in model files."""
        return _class_name(self.home)

    def load(self) -> Any:
        """The class itself."""
        return resolve(self.home)

    def make(self, costs: Any) -> Any:
        """The unfitted policy; MissingExtraError if what it needs is absent."""
        _check_installed(self.requires)
        return make_estimator(self.home, self.parameters, costs)


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes
    ----------
    name : unique name.
    loader : "module:function" or the function, which returns a `Dataset` with its covariate costs
        and panels; it is given the path if the user must bring a file.
    title : in headings and legends.
    obtain : how to get the file where the user must bring it, None where nothing is needed.
    bundled : whether it ships with the library.
    paper : arguments of the loader in the paper's experiments, which charge every covariate in
        full; None for a data set that is not among them, and whose panels count.
    files : arguments of the loader for the files that `adacos datasets export` writes.
    """

    name: str
    loader: str | Callable[..., Any]
    title: str = ""
    obtain: str | None = None
    bundled: bool = False
    paper: Mapping[str, Any] | None = None
    files: Mapping[str, Any] = field(default_factory=dict)

    def load(self, path: Any = None, *, paper: bool = False, files: bool = False) -> Any:
        """The `Dataset`, that of our own loaders as an array; see `paper` and `files`."""
        arguments = {"as_frame": False} if isinstance(self.loader, str) else {}
        as_in_paper = paper and self.paper is not None
        for wanted, own in ((as_in_paper, self.paper or {}), (files, self.files)):
            arguments |= own if wanted else {}
        read = resolve(self.loader)
        data = read(**arguments) if self.obtain is None else read(path, **arguments)
        return data._replace(panels={}) if as_in_paper else data

    @property
    def about(self) -> str:
        """The first line of the loader's documentation, or the title."""
        lines = (resolve(self.loader).__doc__ or "").strip().splitlines()
        return lines[0] if lines else self.title or self.name


POLICIES: dict[str, Policy] = {}
METHODS: dict[str, Method] = {}
DATASETS: dict[str, Source] = {}

# Estimators beside the policies that can be saved, by class name.
ESTIMATORS = {
    "GaussianImputer": "adacos.tables.imputer:GaussianImputer",
    "LogisticGAM": "adacos.models.gam:LogisticGAM",
    "TargetRecallClassifier": "adacos.policies.target_recall:TargetRecallClassifier",
}


def register_policy(
    name: str,
    home: str | type,
    *,
    title: str = "",
    variants: Sequence[Variant] = (),
    rival: bool = False,
    requires: tuple[str, str] | None = None,
    effort: float = 1.0,
    recall: bool = False,
    look: Look | None = None,
) -> None:
    """Add a policy, a subclass of `BasePolicy`, under a new name.

    It can then be fitted, saved, loaded, served and reported on. In the benchmark it is named
    `title`, or as each of its `variants`; `name` also names the first of them there.

    Parameters
    ----------
    name : str
        Unique name, as `adacos fit --policy` takes it.
    home : str or type
        "module:Class", or the class.
    title : str, default=""
        Name in tables and legends; that of the policy if it is empty.
    variants : sequence of Variant, default=()
        The policy with some of its parameters set, in place of the title.
    rival : bool, default=False
        Whether it is a method of the literature rather than of this library.
    requires : tuple of (str, str) or None, default=None
        Package it cannot be fitted without and the extra that brings it.
    effort : float, default=1.0
        Run time relative to the others, to start the longest first.
    recall : bool, default=False
        Whether it can take a target recall.
    look : tuple of (str, str, str) or None, default=None
        Colour, marker and line in figures; None for any that is free.

    Raises
    ------
    InvalidInputError
        If a name or the name of the class is taken.
    """
    _check_new(name, POLICIES)
    rows = variants or (Variant(title or name, effort=effort, recall=recall, look=look),)
    policy = Policy(name, home, rival, requires, rows[0].parameters, rows[0].title)
    if policy.class_name in saved_classes():
        raise InvalidInputError(
            "home", "must have a new class name", policy.class_name, "Rename the class."
        )
    for row in rows:
        _check_new(row.title, METHODS)
    POLICIES[name] = policy
    for row in rows:
        METHODS[row.title] = Method(
            row.title,
            partial(make_estimator, home, dict(row.parameters)),
            row.family or row.title,
            row.effort,
            rival,
            row.recall,
            requires,
            row.look,
        )


def register_method(
    name: str,
    make: Callable[[Any], Any],
    *,
    family: str | None = None,
    effort: float = 1.0,
    rival: bool = False,
    recall: bool | None = None,
    requires: tuple[str, str] | None = None,
    look: Look | None = None,
) -> None:
    """Add anything with `fit` and `acquire` to the benchmark.

    Parameters
    ----------
    name : str
        Unique name, as it appears in tables and legends.
    make : callable
        From `Costs` to an unfitted object with `fit(X, y)` and `acquire(X)`, whose result has
        `label`, `probability`, `cost` and `acquired`.
    family : str or None, default=None
        Methods of one family are run together; those with `from_model` share one fit.
    effort : float, default=1.0
        Run time relative to the others, to start the longest first.
    rival : bool, default=False
        Whether it is a method of the literature rather than of this library.
    recall : bool or None, default=None
        Whether it can take a target recall; None, if it stops by its rule or has the parameter
        `target_recall`.
    requires : tuple of (str, str) or None, default=None
        Package it cannot do without and the extra that brings it.
    look : tuple of (str, str, str) or None, default=None
        Colour, marker and line in figures; None for any that is free.

    Raises
    ------
    InvalidInputError
        If the name is taken or malformed, or `make` cannot be called.

    Examples
    --------
    >>> from adacos import FullModelClassifier
    >>> from adacos.bench import register_method
    >>> from adacos.registry import forgetting
    >>> with forgetting():  # leave the tables as they were
    ...     register_method("few splines", lambda costs: FullModelClassifier(costs, n_splines=5))
    """
    _check_new(name, METHODS)
    _check_function("make", make, "from Costs to an object with fit and acquire")
    METHODS[name] = Method(name, make, family or name, effort, rival, recall, requires, look)


def register_dataset(
    name: str,
    loader: str | Callable[..., Any],
    *,
    title: str = "",
    obtain: str | None = None,
    bundled: bool = False,
    paper: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
) -> None:
    """Add a data set under a new name.

    Parameters
    ----------
    name : str
        Unique name.
    loader : str or callable
        "module:function" or the function, which returns a `Dataset`; it is given the path if the
        user must bring a file.
    title : str, default=""
        In headings and legends; the name if it is empty.
    obtain : str or None, default=None
        How to get the file where the user must bring it, None where nothing is needed.
    bundled : bool, default=False
        Whether it ships with the library.
    paper : mapping of str to value, or None, default=None
        Arguments of the loader in the paper's experiments, which charge every covariate in full;
        None for a data set that is not among them, and whose panels count.
    files : mapping of str to value, or None, default=None
        Arguments of the loader for the files that `adacos datasets export` writes.

    Raises
    ------
    InvalidInputError
        If the name is taken or malformed, or the loader cannot be called.

    Examples
    --------
    >>> from adacos.bench import register_dataset
    >>> from adacos.datasets import load_pima
    >>> from adacos.registry import forgetting
    >>> with forgetting():  # leave the tables as they were
    ...     register_dataset("pima again", load_pima, title="Pima once more")
    """
    _check_new(name, DATASETS)
    if not isinstance(loader, str):
        _check_function("loader", loader, "that returns a Dataset")
    DATASETS[name] = Source(name, loader, title or name, obtain, bundled, paper, files or {})


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget on leaving what was registered inside."""
    tables: list[dict[str, Any]] = [POLICIES, METHODS, DATASETS]
    kept = [dict(table) for table in tables]
    try:
        yield
    finally:
        for table, before in zip(tables, kept, strict=True):
            table.clear()
            table.update(before)


def saved_classes() -> dict[str, str | type]:
    """Home of every estimator that a model file may hold, by class name."""
    return {**ESTIMATORS, **{policy.class_name: policy.home for policy in POLICIES.values()}}


def resolve(home: Any) -> Any:
    """What "module:name" names; anything else is itself."""
    if not isinstance(home, str):
        return home
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(module), name)


def make_estimator(home: str | type, parameters: Mapping[str, Any], costs: Any) -> Any:
    """The unfitted estimator of that class with these parameters and costs."""
    return resolve(home)(costs=costs, **parameters)


def _check_installed(requires: tuple[str, str] | None) -> None:
    if requires is not None and find_spec(requires[0]) is None:
        raise MissingExtraError(*requires)


def _class_name(home: str | type) -> str:
    return home.partition(":")[2] if isinstance(home, str) else home.__name__


def _check_new(name: str, taken: Mapping[str, Any]) -> None:
    if not isinstance(name, str) or not name.strip() or any(c in name for c in ",/\\\n"):
        raise InvalidInputError(
            "name",
            "must be a non-empty name without commas, slashes or line breaks",
            name,
            "Choose another name.",
        )
    if name in taken:
        raise InvalidInputError(
            "name", "must not be registered yet", name, f"Taken are: {', '.join(taken)}."
        )


def _check_function(parameter: str, function: Any, purpose: str) -> None:
    if not callable(function):
        raise InvalidInputError(
            parameter, f"must be a function {purpose}", function, "Pass the function itself."
        )

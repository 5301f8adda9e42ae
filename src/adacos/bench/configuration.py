"""What a benchmark runs, checked before anything is computed or written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adacos.bench.settings import CrossValidation, Setting
from adacos.bench.tasks import describe
from adacos.costs import Costs
from adacos.exceptions import AdacosError, InvalidInputError, MissingExtraError
from adacos.registry import DATASETS, METHODS, POLICIES, Method, Source
from adacos.validation import did_you_mean, integer, real

N_FOLDS = 5


@dataclass(frozen=True)
class BenchConfig:
    """Data sets × methods × settings × splits, and where the results go.

    Parameters
    ----------
    datasets : tuple of str
        Registered names, written as in the tables or in lower case with hyphens.
    methods : tuple of str
        Registered names, likewise ("adacos-group-lasso"). The name of a policy means its
        first variant ("adacos" for the same).
    settings : tuple of Setting
        What errors cost, see `asymmetric`, `symmetric` and `recall`.
    out : path-like
        Folder of the results; created by the run, not here.
    data : mapping of str to path-like, default={}
        Path of each data set that the user must bring.
    folds : tuple of int, default=(0, 1, 2, 3, 4)
        Folds that are tested, of the five.
    paper_folds : bool, default=True
        Whether the paper's cross-validation is run.
    splits : int, default=0
        Number of random cross-validations in addition to it.
    seed : int, default=0
        Seed of the random cross-validations.
    jobs : int, default=1
        Number of processes.

    Raises
    ------
    InvalidInputError
        If a name is unknown, a number out of range, a file absent or the folder cannot be written.
    MissingExtraError
        If a method needs a package that is not installed.

    Examples
    --------
    >>> from adacos.bench import BenchConfig, asymmetric
    >>> config = BenchConfig(
    ...     datasets=("pima",), methods=("full-model",), settings=(asymmetric(100),), out="results"
    ... )
    >>> config.methods
    ('Full Model',)
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    settings: tuple[Setting, ...]
    out: Path
    data: Mapping[str, Path] = field(default_factory=dict)
    folds: tuple[int, ...] = tuple(range(N_FOLDS))
    paper_folds: bool = True
    splits: int = 0
    seed: int = 0
    jobs: int = 1

    def __post_init__(self) -> None:
        datasets = resolved("datasets", self.datasets, DATASETS)
        methods = resolved("methods", self.methods, METHODS, _by_policy())
        object.__setattr__(self, "datasets", datasets)
        object.__setattr__(self, "methods", methods)
        object.__setattr__(self, "out", Path(self.out))
        object.__setattr__(self, "data", {name: Path(p) for name, p in self.data.items()})
        _check_data(self.data, datasets)
        for method in self.chosen_methods:
            check_method(method)
        _check_settings(self.settings)
        integer("splits", self.splits, at_least=0)
        integer("seed", self.seed, at_least=0)
        integer("jobs", self.jobs, at_least=1)
        _check_folds(self.folds)
        if not self.paper_folds and not self.splits:
            raise InvalidInputError(
                "splits", "must be at least 1 without the paper's folds", 0, "Pass splits=10, say."
            )
        check_folder(self.out)

    @property
    def chosen_methods(self) -> tuple[Method, ...]:
        """The methods named in the configuration."""
        return tuple(METHODS[name] for name in self.methods)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The data sets named in the configuration."""
        return tuple(DATASETS[name] for name in self.datasets)

    @property
    def cross_validations(self) -> tuple[CrossValidation, ...]:
        """The paper's cross-validation, then the random ones."""
        first = (CrossValidation("paper", None),) if self.paper_folds else ()
        # Seeds of neighbouring runs do not overlap.
        return first + tuple(
            CrossValidation(f"random-{k + 1}", self.seed * 1000 + k) for k in range(self.splits)
        )


def slug(name: str) -> str:
    """A name in lower case with hyphens between its words, for files and command lines."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def available_methods(names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Those of the methods that can be run here, and for the others why they cannot."""
    usable: list[str] = []
    absent: dict[str, str] = {}
    for name in resolved("methods", tuple(names), METHODS, _by_policy()):
        try:
            check_method(METHODS[name])
            usable.append(name)
        except (AdacosError, ImportError) as error:
            absent[name] = str(error)
    return usable, absent


def _by_policy() -> dict[str, str]:
    """Name of the method that each policy is by default, by the name of the policy."""
    return {name: policy.method for name, policy in POLICIES.items()}


def resolved(
    parameter: str, names: Any, known: Mapping[str, Any], also: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Registered names, each given in full, as a slug, or as what `also` calls it."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        names = (names,)
    by_slug = {**(also or {}), **{slug(name): name for name in known}}
    kept: list[str] = []
    for name in names:
        full = name if name in known else by_slug.get(name, by_slug.get(slug(str(name))))
        if full is None:
            meant = did_you_mean([str(name)], [*known, *by_slug])
            raise InvalidInputError(
                parameter, "must be registered", name, f"{meant}Known are: {', '.join(known)}."
            )
        if full in kept:
            raise InvalidInputError(
                parameter, "must not be named twice", name, "Remove the duplicate."
            )
        kept.append(full)
    if not kept:
        raise InvalidInputError(
            parameter, "must name at least one", "", f"Known are: {', '.join(known)}."
        )
    return tuple(kept)


def _check_data(data: Mapping[str, Path], datasets: tuple[str, ...]) -> None:
    for name, path in data.items():
        if name not in datasets or DATASETS[name].obtain is None:
            brought = [n for n, s in DATASETS.items() if s.obtain is not None]
            raise InvalidInputError(
                "data",
                "must belong to a chosen data set that is read from a file",
                name,
                f"Such data sets are: {', '.join(brought)}; name it in datasets too.",
            )
        if not path.exists():
            raise InvalidInputError(
                f"data[{name!r}]", "must exist", str(path), str(DATASETS[name].obtain)
            )
    for name in datasets:
        obtain = DATASETS[name].obtain
        if obtain is not None and name not in data:
            raise InvalidInputError("datasets", f"{name} needs its file", "no path", obtain)


def check_method(method: Method) -> None:
    """Refuse a method that cannot be run here: what it needs is missing, or it makes no policy."""
    method.check_installed()
    try:
        policy = method.make(Costs())
    except MissingExtraError:
        raise
    except Exception as error:
        raise InvalidInputError(
            "methods",
            f"{method.name} must build an object from costs",
            describe(error),
            "Correct the registered function or leave the method out.",
        ) from error
    if not (hasattr(policy, "fit") and hasattr(policy, "acquire")):
        raise InvalidInputError(
            "methods",
            f"{method.name} must build an object with fit and acquire",
            type(policy).__name__,
            "Correct the registered function.",
        )


def _check_settings(settings: tuple[Setting, ...]) -> None:
    keys = [setting.key for setting in settings]
    if not keys or len(set(keys)) < len(keys):
        raise InvalidInputError(
            "settings", "must be at least one, each different", keys, "Remove the duplicates."
        )
    for setting in settings:
        real("false_positive", setting.false_positive, above=0)
        if setting.target_recall is not None:
            real("target_recall", setting.target_recall, above=0, below=1)
        setting.costs([1.0])  # Costs checks the matrix.


def _check_folds(folds: tuple[int, ...]) -> None:
    inside = all(isinstance(k, int) and 0 <= k < N_FOLDS for k in folds)
    if not folds or not inside or len(set(folds)) < len(folds):
        raise InvalidInputError(
            "folds",
            f"must be different numbers from 0 to {N_FOLDS - 1}",
            folds,
            "For example folds=(0, 1).",
        )


def check_folder(out: Path) -> None:
    """Refuse a folder that could not be written, without creating it."""
    nearest = out.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidInputError(
            "out", "must be a folder that can be written", str(out), "Choose another folder."
        )

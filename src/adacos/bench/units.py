"""The unit of work and of resuming: one fold of one data set for the methods that share a fit.

A unit's result is one file, written whole or not at all and named by a digest of everything it
depends on, so that a run finds what an earlier run finished and never mistakes it for another.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from adacos.bench.checks import CHECKS, check_result, costs_of
from adacos.bench.folds import fold_of_rows
from adacos.bench.methods import build, can_share, signature, supports
from adacos.bench.settings import CrossValidation, Setting
from adacos.bench.sources import library_digest
from adacos.datasets import Dataset
from adacos.exceptions import TableWarning
from adacos.metrics import operation_costs, total_costs
from adacos.policies.fitting import inner_fits
from adacos.registry import Method
from adacos.tables.columns import ColumnTable
from adacos.tables.writing import whole_or_absent
from adacos.typing import Floats

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Unit:
    """One fold of one data set for methods that share their fit."""

    dataset: str
    split: CrossValidation
    fold: int
    methods: tuple[Method, ...]
    settings: tuple[Setting, ...]
    effort: float
    seed: int
    digest: str

    @property
    def title(self) -> str:
        """For messages."""
        names = ", ".join(method.name for method in self.methods)
        title = f"{self.dataset}, {self.split.name} fold {self.fold}, {names}"
        if len(self.settings) == 1:
            title += f", {self.settings[0].name} {self.settings[0].false_positive:g}"
        return title

    @property
    def file_name(self) -> str:
        """Name of the result's file."""
        return f"{self.dataset}-{self.split.name}-{self.fold}-{self.digest[:20]}.npz"


@dataclass(frozen=True)
class Outcome:
    """What one method did with the test rows of one fold in one setting.

    Attributes
    ----------
    rows : position of each test row in the data set.
    y, label : true class and answer, as 0, 1, …
    probability : P(class 1) at the stop; with three or more classes that of each, (rows, classes).
    cost : covariate cost paid.
    acquired : number of covariates acquired.
    groups : number of each row's group in the data set, where rows belong together.
    """

    dataset: str
    split: str
    fold: int
    method: str
    setting: Setting
    rows: Ints
    y: Ints
    label: Ints
    probability: Floats
    cost: Floats
    acquired: Ints
    groups: Ints | None = None

    @property
    def total(self) -> Floats:
        """Total cost of each row; NaN in a setting without a false-negative cost."""
        if self.setting.misclassification is None:
            return np.full(len(self.y), np.nan)
        return total_costs(self, self.y, self.setting.costs([]))

    @property
    def operation(self) -> Floats:
        """Operation cost of each row: covariate cost, and the cost of a false positive."""
        return operation_costs(self, self.y, self.setting.costs([]))


@dataclass(frozen=True)
class Seconds:
    """Time one method of a unit took, over all settings."""

    fit: float
    acquire: float

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.fit + other.fit, self.acquire + other.acquire)


def make_unit(
    dataset: str,
    table: Dataset,
    split: CrossValidation,
    fold: int,
    methods: tuple[Method, ...],
    settings: tuple[Setting, ...],
) -> Unit:
    """The unit with its seed, and the digest of all that its result depends on."""
    rows, covariates = np.shape(table.X)
    place = [dataset, split.name, split.seed, fold]
    seed = int.from_bytes(hashlib.sha256(json.dumps(place).encode()).digest()[:4], "big") >> 1
    content = [
        *place,
        table_digest(table),
        library_digest(),
        [signature(method) for method in methods],
        [setting.as_json() for setting in settings],
        CHECKS,
    ]
    effort = rows * covariates**2 * max(method.effort for method in methods)
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return Unit(dataset, split, fold, methods, settings, effort, seed, digest)


def run_unit(unit: Unit, table: Dataset, folder: Path) -> None:
    """Fit and acquire for every method and setting of a unit, and write the result."""
    random.seed(unit.seed)
    np.random.seed(unit.seed)  # noqa: NPY002  (for registered methods that draw from it)
    fold, tested = fold_of_rows(table, unit.split)
    rows = np.flatnonzero((fold == unit.fold) & tested)
    train = np.flatnonzero(fold != unit.fold)
    classes = np.unique(table.y)
    prices, panels = costs_of(table)
    answers: dict[str, list[Any]] = {"label": [], "probability": [], "cost": [], "acquired": []}
    keys: list[tuple[str, int]] = []
    seconds: dict[str, list[float]] = {}
    leader: Any = None
    X_train, X_test = rows_of(table.X, train), rows_of(table.X, rows)
    for method in unit.methods:
        spent = seconds.setdefault(method.name, [0.0, 0.0])
        for number, setting in enumerate(unit.settings):
            if not supports(method, setting):
                continue
            costs = setting.costs(prices, panels)
            policy = build(method, costs, setting, unit.seed)
            start = time.perf_counter()
            if leader is not None and can_share(policy):
                policy.from_model(leader)
            else:
                _fit(policy, X_train, table.y[train], _of_rows(table.groups, train))
                leader = policy
            fitted = time.perf_counter()
            result = policy.acquire(X_test)
            spent[0] += fitted - start
            spent[1] += time.perf_counter() - fitted
            check_result(method.name, result, costs.bind(table.names, len(classes)), classes, rows)
            answers["label"].append(np.searchsorted(classes, result.label).astype(np.int8))
            answers["probability"].append(np.asarray(result.probability, dtype=np.float64))
            answers["cost"].append(np.asarray(result.cost, dtype=np.float64))
            answers["acquired"].append(np.asarray(result.acquired).sum(axis=1).astype(np.int16))
            keys.append((method.name, number))
    arrays: dict[str, Any] = {
        name: np.stack(parts) if parts else np.empty((0, len(rows)))
        for name, parts in answers.items()
    }
    arrays |= {
        "rows": rows,
        "y": np.searchsorted(classes, table.y[rows]),
        **({} if table.groups is None else {"groups": table.groups[rows]}),
        "about": np.array(json.dumps({"keys": keys, "seconds": seconds})),
    }
    _write(folder / unit.file_name, arrays)


def read_unit(unit: Unit, folder: Path) -> tuple[list[Outcome], dict[str, Seconds]]:
    """The outcomes of a finished unit and the time its methods took."""
    with np.load(folder / unit.file_name, allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    about = json.loads(str(stored["about"]))
    outcomes = [
        Outcome(
            unit.dataset,
            unit.split.name,
            unit.fold,
            method,
            unit.settings[number],
            stored["rows"].astype(np.int64),
            stored["y"].astype(np.int64),
            stored["label"][i].astype(np.int64),
            stored["probability"][i],
            stored["cost"][i],
            stored["acquired"][i].astype(np.int64),
            stored.get("groups"),
        )
        for i, (method, number) in enumerate(about["keys"])
    ]
    return outcomes, {name: Seconds(*spent) for name, spent in about["seconds"].items()}


def is_finished(unit: Unit, folder: Path) -> bool:
    """Whether the result of a unit is there and whole."""
    try:
        read_unit(unit, folder)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        return False
    return True


def _fit(policy: BasePolicy, X: Any, y: Any, groups: Ints | None) -> None:
    """Fit with the groups of rows, where there are any and the method takes them.

    Copies were reported once for the whole table, before its rows were dealt to folds.
    """
    with inner_fits(), warnings.catch_warnings():
        if groups is None:
            policy.fit(X, y)
            return
        warnings.simplefilter("ignore", TableWarning)
        takes = has_fit_parameter(policy, "groups")
        policy.fit(X, y, **({"groups": groups} if takes else {}))


def _of_rows(groups: Ints | None, rows: Ints) -> Ints | None:
    return None if groups is None else groups[rows]


def _write(path: Path, arrays: dict[str, Any]) -> None:
    with whole_or_absent(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def rows_of(X: Any, rows: Ints) -> Any:
    """Some rows of a table, of the kind that was given."""
    if isinstance(X, np.ndarray | ColumnTable):
        return X[rows]
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()


def table_digest(table: Dataset) -> str:
    """Digest of the rows, classes, groups, covariate costs and panels of a data set."""
    if isinstance(table.X, np.ndarray) and table.X.dtype.kind in "fiub":
        content = np.ascontiguousarray(table.X).tobytes()
    elif isinstance(table.X, ColumnTable):
        content = repr([(name, table.X.column(name).tolist()) for name in table.X.columns]).encode()
    else:
        import narwhals as nw

        content = repr(nw.from_native(table.X, eager_only=True).rows()).encode()
    digest = hashlib.sha256(content)
    costs = sorted(table.prices.items()), sorted(table.panels.items())
    digest.update(repr((list(map(str, table.y)), *costs)).encode())
    if table.groups is not None:
        digest.update(table.groups.tobytes())
    return digest.hexdigest()

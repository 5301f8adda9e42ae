"""Run the units of a configuration, in parallel and resumable, and read their results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from adacos.bench.configuration import BenchConfig
from adacos.bench.folds import with_groups
from adacos.bench.methods import shares_fit, supports
from adacos.bench.settings import CrossValidation, Setting
from adacos.bench.tasks import Failure, Task, run_tasks
from adacos.bench.units import (
    Outcome,
    Seconds,
    Unit,
    is_finished,
    make_unit,
    read_unit,
    run_unit,
)
from adacos.datasets import Dataset
from adacos.exceptions import TableWarning
from adacos.registry import Method

UNITS = "units"
_PAPER_FOLDS = (
    "The paper's folds deal rows of a group to several folds, so that models see what they are "
    "tested on: run with paper_folds=False and splits=2."
)
_REMEDY = (
    "Random splits keep rows of a group together. Name the patients or sites of rows in "
    "Dataset(groups=...), different ones where all rows are different cases."
)


@dataclass(frozen=True)
class RunResult:
    """All outcomes of a configuration, in a fixed order.

    Parameters
    ----------
    outcomes : tuple of Outcome
        One per data set, split, fold, method and setting.
    seconds : dict
        Time of each method of each unit, by (data set, split, fold, method).
    failures : tuple of Failure
        Units that raised; their outcomes are missing.
    n_reused : int
        Number of units found finished.

    See Also
    --------
    FoldTable : The measures of the outcomes.

    Examples
    --------
    >>> from adacos.bench import FoldTable, RunResult
    >>> FoldTable(RunResult((), {}, (), 0).outcomes).cells()
    []
    """

    outcomes: tuple[Outcome, ...]
    seconds: dict[tuple[str, str, int, str], Seconds]
    failures: tuple[Failure, ...]
    n_reused: int


def run(config: BenchConfig, *, progress: bool | None = None) -> RunResult:
    """Run what is not finished yet and read everything.

    Parameters
    ----------
    config : BenchConfig
        What to run.
    progress : bool or None, default=None
        Whether to show a progress bar on the terminal; None, if there is one.

    Returns
    -------
    RunResult
        Outcomes, times and failures.

    Examples
    --------
    >>> import tempfile
    >>> from adacos.bench import BenchConfig, asymmetric, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = BenchConfig(("pima",), ("full-model",), (asymmetric(100),), folder, folds=(0,))
    ...     result = run(config, progress=False)
    >>> len(result.outcomes), result.failures
    (1, ())
    """
    tables = {}
    for source in config.sources:
        table, copied = with_groups(source.load(config.data.get(source.name), paper=True))
        tables[source.name] = table
        if table.groups is not None and config.paper_folds:
            copied = f"{copied} {_PAPER_FOLDS}".strip()
        if copied:
            warnings.warn(f"{source.name}: {copied} {_REMEDY}", TableWarning, stacklevel=2)
    units = plan(
        tables, config.chosen_methods, config.settings, config.cross_validations, config.folds
    )
    return finish(units, tables, config.methods, config.settings, config.out, config.jobs, progress)


def finish(
    units: Sequence[Unit],
    tables: Mapping[str, Dataset],
    methods: Sequence[str],
    settings: Sequence[Setting],
    out: Path,
    jobs: int,
    progress: bool | None,
) -> RunResult:
    """Run the units that are not finished yet, and read all of them."""
    folder = out / UNITS
    folder.mkdir(parents=True, exist_ok=True)
    todo = [unit for unit in units if not is_finished(unit, folder)]
    tasks = [
        Task(unit.title, unit.effort, partial(run_unit, unit, tables[unit.dataset], folder))
        for unit in todo
    ]
    failures = run_tasks(tasks, jobs=jobs, progress=progress)
    failed = {failure.unit for failure in failures}
    outcomes: list[Outcome] = []
    seconds: dict[tuple[str, str, int, str], Seconds] = {}
    for unit in units:
        if unit.title in failed:
            continue
        finished, spent = read_unit(unit, folder)
        outcomes += finished
        for method, time in spent.items():
            place = unit.dataset, unit.split.name, unit.fold, method
            seconds[place] = time + seconds.get(place, Seconds(0.0, 0.0))
    datasets = list(tables)
    outcomes.sort(
        key=lambda o: (
            datasets.index(o.dataset),
            _split_number(o.split),
            methods.index(o.method),
            settings.index(o.setting),
            o.fold,
        )
    )
    return RunResult(
        tuple(outcomes),
        seconds,
        failures,
        len(units) - len(todo),
    )


def plan(
    tables: Mapping[str, Dataset],
    methods: Sequence[Method],
    settings: Sequence[Setting],
    splits: Sequence[CrossValidation],
    folds: Sequence[int],
) -> list[Unit]:
    """The units of data sets × methods × settings × splits × folds.

    Methods of one family go together with all their settings if they share a fit; otherwise each
    setting is a unit of its own, so that less is lost when a run is stopped.
    """
    families = [
        tuple(members)
        for _, members in groupby(sorted(methods, key=lambda m: m.family), key=lambda m: m.family)
    ]
    units = []
    for dataset, table in tables.items():
        for members in families:
            own = tuple(
                setting
                for setting in settings
                if setting.applies_to(dataset) and any(supports(m, setting) for m in members)
            )
            together = any(shares_fit(method) for method in members)
            for part in [own] if together else [(setting,) for setting in own]:
                units += [
                    make_unit(dataset, table, split, fold, members, part)
                    for split in splits
                    for fold in folds
                    if part
                ]
    return units


def _split_number(name: str) -> int:
    return 0 if name == "paper" else int(name.split("-")[1])

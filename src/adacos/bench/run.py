"""Run the units of a configuration, in parallel and resumable, and read their results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from adacos.bench.configuration import BenchConfig
from adacos.bench.settings import Setting
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

UNITS = "units"


@dataclass(frozen=True)
class Failure:
    """A unit that raised."""

    unit: str
    error: str


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
    tables = {
        source.name: source.load(config.data[source.name]) if source.obtain else source.load()
        for source in config.sources
    }
    units = plan(config, tables)
    folder = config.out / UNITS
    folder.mkdir(parents=True, exist_ok=True)
    todo = [unit for unit in units if not is_finished(unit, folder)]
    todo.sort(key=lambda unit: -unit.effort)
    failures = _run_all(config, todo, tables, folder, progress)
    outcomes: list[Outcome] = []
    seconds: dict[tuple[str, str, int, str], Seconds] = {}
    for unit in units:
        if unit.title in failures:
            continue
        found, spent = read_unit(unit, folder)
        outcomes += found
        for method, time in spent.items():
            place = unit.dataset, unit.split.name, unit.fold, method
            seconds[place] = time + seconds.get(place, Seconds(0.0, 0.0))
    order = {name: i for i, name in enumerate(config.methods)}
    outcomes.sort(
        key=lambda o: (
            config.datasets.index(o.dataset),
            _split_number(o.split),
            order[o.method],
            config.settings.index(o.setting),
            o.fold,
        )
    )
    return RunResult(
        tuple(outcomes),
        seconds,
        tuple(Failure(title, error) for title, error in sorted(failures.items())),
        len(units) - len(todo),
    )


def plan(config: BenchConfig, tables: dict[str, Dataset]) -> list[Unit]:
    """The units of a configuration.

    Methods of one family go together with all their settings if they share a fit; otherwise each
    setting is a unit of its own, so that less is lost when a run is stopped.
    """
    families = [
        tuple(methods)
        for _, methods in groupby(
            sorted(config.chosen_methods, key=lambda m: m.family), key=lambda m: m.family
        )
    ]
    units = []
    for dataset, table in tables.items():
        for methods in families:
            settings: tuple[Setting, ...] = tuple(
                setting
                for setting in config.settings
                if setting.applies_to(dataset) and any(m.supports(setting) for m in methods)
            )
            together = any(method.shares_fit() for method in methods)
            for part in [settings] if together else [(setting,) for setting in settings]:
                units += [
                    make_unit(dataset, table, split, fold, methods, part)
                    for split in config.cross_validations
                    for fold in config.folds
                    if part
                ]
    return units


def _run_all(
    config: BenchConfig,
    todo: list[Unit],
    tables: dict[str, Dataset],
    folder: Path,
    progress: bool | None,
) -> dict[str, str]:
    """Run units, the longest first; the errors of those that raised, by title."""
    failures: dict[str, str] = {}
    tasks = (delayed(_attempt)(unit, tables[unit.dataset], folder) for unit in todo)
    show = sys.stderr.isatty() if progress is None else progress
    jobs = min(config.jobs, max(len(todo), 1))
    with _bar(sum(unit.effort for unit in todo), len(todo), show) as advance:
        backend = {"inner_max_num_threads": 1} if jobs > 1 else {}
        with parallel_config("loky" if jobs > 1 else "sequential", n_jobs=jobs, **backend):
            # Arrays are sent whole: a memory map would reach the methods read-only.
            results = Parallel(return_as="generator_unordered", max_nbytes=None)(tasks)
            for unit_number, (title, effort, error) in enumerate(results, start=1):
                if error is not None:
                    failures[title] = error
                advance(unit_number, effort)
    return failures


def _attempt(unit: Unit, table: Dataset, folder: Path) -> tuple[str, float, str | None]:
    """Run one unit; an error is a result like others, so that it does not stop the rest."""
    try:
        run_unit(unit, table, folder)
    except Exception as error:
        return unit.title, unit.effort, f"{type(error).__name__}: {error}"
    return unit.title, unit.effort, None


@contextmanager
def _bar(total: float, n_units: int, show: bool) -> Iterator[Callable[[int, float], None]]:
    """A progress bar with time left, advanced by (units done, effort of the last)."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[units]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not show) as bar:
        task = bar.add_task("benchmark", total=total, units=f"0/{n_units}")

        def advance(done: int, effort: float) -> None:
            bar.update(task, advance=effort, units=f"{done}/{n_units}")

        yield advance


def _split_number(name: str) -> int:
    return 0 if name == "paper" else int(name.split("-")[1])

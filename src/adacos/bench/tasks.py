"""Tasks that each write one result: run in parallel, the longest first, with a progress bar.

A task that raises does not stop the others; what went wrong is reported with file and line.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from adacos.bench.sources import is_installed, is_ours


@dataclass(frozen=True)
class Task:
    """A piece of work: its title, its run time relative to the others, and what to call."""

    title: str
    effort: float
    work: Callable[[], None]


@dataclass(frozen=True)
class Failure:
    """A task that raised."""

    unit: str
    error: str


def run_tasks(
    tasks: Sequence[Task], *, jobs: int, progress: bool | None = None
) -> tuple[Failure, ...]:
    """Run tasks in `jobs` processes; those that raised, in order of their titles.

    With one, they run where the caller's `joblib.parallel_config` says, a Dask cluster for example.
    `progress` says whether to show a bar on the terminal; None, if there is one.
    """
    failures = []
    longest_first = sorted(tasks, key=lambda task: -task.effort)
    jobs = min(jobs, max(len(tasks), 1))
    show = sys.stderr.isatty() if progress is None else progress
    with _bar(sum(task.effort for task in tasks), len(tasks), show) as advance:
        local = {"backend": "loky", "n_jobs": jobs, "inner_max_num_threads": 1}
        with parallel_config(**local) if jobs > 1 else nullcontext():
            # Arrays are sent whole: a memory map would reach the methods read-only.
            results = Parallel(return_as="generator_unordered", max_nbytes=None)(
                delayed(_attempt)(task) for task in longest_first
            )
            for done, (title, effort, error) in enumerate(results, start=1):
                if error is not None:
                    failures.append(Failure(title, error))
                advance(done, effort)
    return tuple(sorted(failures, key=lambda failure: failure.unit))


def describe(error: BaseException) -> str:
    """An error in one line with its place, in the user's own code where any took part."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not is_ours(f.filename) and not is_installed(f.filename)]
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return text
    return text + "".join(
        f" ({Path(f.filename).name}, line {f.lineno})" for f in (own or frames)[-1:]
    )


def gathered(failures: Iterable[Failure]) -> list[str]:
    """Each error once, with the unit it was met in first and the number of others."""
    units: dict[str, list[str]] = {}
    for failure in failures:
        units.setdefault(failure.error, []).append(failure.unit)
    return [
        f"{error} in {titles[0]}" + (f" and {len(titles) - 1} more" if len(titles) > 1 else "")
        for error, titles in units.items()
    ]


def _attempt(task: Task) -> tuple[str, float, str | None]:
    try:
        task.work()
    except Exception as error:
        return task.title, task.effort, describe(error)
    return task.title, task.effort, None


@contextmanager
def _bar(total: float, n_tasks: int, show: bool) -> Iterator[Callable[[int, float], None]]:
    """A progress bar with time left, advanced by (tasks done, effort of the last)."""
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
        task = bar.add_task("benchmark", total=total, units=f"0/{n_tasks}")

        def advance(done: int, effort: float) -> None:
            bar.update(task, advance=effort, units=f"{done}/{n_tasks}")

        yield advance

"""`adacos bench lomax`: Lomax's cost-sensitive sets, random 80/20 splits, every method paired.

The unit of work is that of `adacos bench paper`: one split of one set for the methods that share a
fit, so a stopped run resumes. A split is one fold of a shuffled five-fold cross-validation within
the classes: a fifth of the rows is tested.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adacos.bench.comparisons import RANDOM, OutcomeIndex
from adacos.bench.configuration import available_methods, check_method
from adacos.bench.lomax_sets import LomaxSet, find_sets, read_set
from adacos.bench.names import ADACOS, COS
from adacos.bench.pairing import (
    Pairs,
    geometric_ratio_by_folds,
    geometric_ratio_by_rows,
    paired_tests,
)
from adacos.bench.run import RunResult, finish, plan
from adacos.bench.settings import CrossValidation
from adacos.bench.tables import (
    Cell,
    FoldTable,
    setting_records,
    timing_records,
    write_csv,
    write_rows,
)
from adacos.bench.tasks import Failure, gathered
from adacos.costs import Costs
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html, to_markdown
from adacos.exceptions import InvalidInputError
from adacos.kernels.intervals import ConfidenceInterval
from adacos.registry import METHODS
from adacos.tables.writing import write_whole
from adacos.typing import Floats
from adacos.validation import choices, integer

TITLE = "Lomax's cost-sensitive sets: total cost compared with optimal trees"
STREED = "STreeD"
# Of the five folds of a shuffle: one, so that splits are drawn anew each time.
_TESTED_FOLD = 0


@dataclass(frozen=True)
class LomaxOptions:
    """What is run.

    Parameters
    ----------
    data : folder of the sets.
    methods : registered names; None for AdaCOS, COS, STreeD and what the library adds to these.
    datasets : names of sets; None for all.
    splits, seed : number of random 80/20 splits, and their seed.
    against : method that the others are divided by.
    jobs : number of processes.
    out : folder of the report; a stopped run resumes there.
    """

    data: Path
    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    splits: int = 40
    seed: int = 0
    against: str = STREED
    jobs: int = 1
    out: Path = Path("lomax")


class Ratio(NamedTuple):
    """Mean total cost of a method over that of the one it is compared with, in one or all cells.

    `by_splits` is None for a single split.
    """

    dataset: str
    level: str
    method: str
    mean: float
    other_mean: float
    ratio: float
    by_splits: ConfidenceInterval | None
    by_rows: ConfidenceInterval

    @property
    def verdict(self) -> str:
        """Whether both intervals lie on one side of 1."""
        intervals = [self.by_rows, *([self.by_splits] if self.by_splits else [])]
        if all(interval.low > 1 for interval in intervals):
            return "above"
        return "below" if all(interval.high < 1 for interval in intervals) else "noise"


@dataclass(frozen=True)
class LomaxReport:
    """Where the report is, and what it found."""

    index: Path
    methods: tuple[str, ...]
    against: str
    cells: tuple[Ratio, ...]
    overall: tuple[Ratio, ...]
    not_run: tuple[str, ...]
    failures: tuple[Failure, ...]
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The essentials as plain JSON."""
        return {
            "report": str(self.index),
            "against": self.against,
            "ratio": {r.method: _plain(r) for r in self.overall},
            "cells": [{"set": r.dataset, "level": r.level, **_plain(r)} for r in self.cells],
            "not_run": list(self.not_run),
            "failures": [{"unit": f.unit, "error": f.error} for f in self.failures],
        }


def default_methods() -> list[str]:
    """AdaCOS, COS, the other policies of this library, STreeD and AACO."""
    families = ("group lasso", "forward", "Full Model")
    further = [m.name for m in METHODS.values() if not m.rival and m.family not in families]
    shown = [name for name in (*further, STREED, "AACO") if name in METHODS]
    return [ADACOS, COS, *shown]


def run_lomax(options: LomaxOptions, *, progress: bool | None = None) -> LomaxReport:
    """Run what is not finished, and write the report; for `progress` see `run_tasks`."""
    integer("splits", options.splits, at_least=1)
    integer("seed", options.seed, at_least=0)
    integer("jobs", options.jobs, at_least=1)
    start = time.perf_counter()
    sets = _chosen_sets(options)
    not_run: list[str] = []
    named = None if options.methods in (None, ("all",)) else options.methods
    every = METHODS if options.methods == ("all",) else default_methods()
    methods, absent = available_methods(named or every)
    if named is not None and absent:
        check_method(METHODS[next(iter(absent))])
    not_run += [f"{name}: {why}" for name, why in absent.items()]
    sets, small = _with_methods(sets, methods)
    not_run += small
    against = _full_name(options.against)
    if against not in methods:
        not_run.append(f"{against}, which is not run: ratios are to {methods[0]} instead")
        against = methods[0]
    tables = {name: dataset.table for name, dataset in sets.items()}
    settings = [setting for dataset in sets.values() for setting in dataset.settings]
    # Seeds of neighbouring runs do not overlap.
    splits = [
        CrossValidation(f"random-{k + 1}", options.seed * 1000 + k) for k in range(options.splits)
    ]
    units = [
        unit
        for name, dataset in sets.items()
        for unit in plan(
            {name: dataset.table},
            [METHODS[method] for method in methods if _takes(method, dataset.n_classes)],
            dataset.settings,
            splits,
            [_TESTED_FOLD],
        )
    ]
    result = finish(units, tables, methods, settings, options.out, options.jobs, progress)
    cells, overall = compare(result, methods, against)
    report = LomaxReport(
        options.out / "index.html",
        tuple(methods),
        against,
        tuple(cells),
        tuple(overall),
        tuple(not_run),
        result.failures,
        time.perf_counter() - start,
    )
    _write(options, report, result, sets)
    return report


def _full_name(method: str) -> str:
    """The registered name of a method, which may be given in lower case with hyphens."""
    usable, absent = available_methods([method])
    return [*usable, *absent][0]


def compare(
    result: RunResult, methods: Sequence[str], against: str
) -> tuple[list[Ratio], list[Ratio]]:
    """Ratios of the other methods to one method, in each cell and over all cells."""
    index = OutcomeIndex(result.outcomes)
    cells: list[Ratio] = []
    overall: list[Ratio] = []
    for method in methods:
        parts = [
            _Part.of(index, cell, against)
            for cell in index.cells(RANDOM)
            if cell.method == method != against and _comparable(index, cell, against)
        ]
        cells += [_ratio([part], part.cell.dataset, part.cell.setting, method) for part in parts]
        if parts:
            overall.append(_ratio(parts, "all", "all", method))
    return cells, overall


class _Part(NamedTuple):
    """One cell: mean total cost of both methods in each split, and every single test."""

    cell: Cell
    first: Floats
    second: Floats
    tests: Pairs

    @classmethod
    def of(cls, index: OutcomeIndex, cell: Cell, against: str) -> _Part:
        a = index.outcomes(RANDOM, cell)
        b = index.outcomes(RANDOM, _other(cell, against))
        return cls(
            cell,
            np.array([outcome.total.mean() for outcome in a]),
            np.array([outcome.total.mean() for outcome in b]),
            paired_tests(a, b),
        )


def _comparable(index: OutcomeIndex, cell: Cell, against: str) -> bool:
    """Whether both methods have finished the same number of splits."""
    other = _other(cell, against)
    if not index.has(RANDOM, other):
        return False
    return len(index.outcomes(RANDOM, cell)) == len(index.outcomes(RANDOM, other))


def _other(cell: Cell, method: str) -> Cell:
    return cell._replace(method=method)


def _ratio(parts: Sequence[_Part], dataset: str, level: str, method: str) -> Ratio:
    """Geometric mean over cells of the ratio of mean costs, with intervals.

    A split in which a cost is not positive has no logarithm, and then splits give no interval.
    """
    means = np.array([(part.first.mean(), part.second.mean()) for part in parts])
    by_splits = None
    n_splits = {len(part.first) for part in parts}
    positive = all(min(part.first.min(), part.second.min()) > 0 for part in parts)
    if positive and len(n_splits) == 1 and n_splits != {1}:
        logs = np.mean([np.log(part.first / part.second) for part in parts], axis=0)
        by_splits = geometric_ratio_by_folds(logs)
    tests: dict[tuple[str, ...], Pairs] = {
        (part.cell.dataset, part.cell.setting): part.tests for part in parts
    }
    return Ratio(
        dataset,
        level,
        method,
        float(means[:, 0].mean()),
        float(means[:, 1].mean()),
        float(np.exp(np.log(means[:, 0] / means[:, 1]).mean())),
        by_splits,
        geometric_ratio_by_rows(tests),
    )


def _takes(method: str, n_classes: int) -> bool:
    """Whether a method takes this number of classes."""
    return n_classes == 2 or getattr(METHODS[method].make(Costs()), "takes_many_classes", False)


def _with_methods(
    sets: dict[str, LomaxSet], methods: Sequence[str]
) -> tuple[dict[str, LomaxSet], list[str]]:
    """The sets that some method takes, and what is not included: sets, and methods of a set."""
    taken, not_run = {}, []
    for name, one in sets.items():
        absent = [method for method in methods if not _takes(method, one.n_classes)]
        if len(absent) < len(methods):
            taken[name] = one
        if absent:
            not_run.append(
                f"{name}: it has {one.n_classes} classes, and {', '.join(absent)} "
                f"{'takes' if len(absent) == 1 else 'take'} two"
            )
    if not taken:
        raise InvalidInputError(
            "datasets",
            "must hold a set with two classes, or a method must take more",
            "; ".join(not_run),
            "Name another.",
        )
    return taken, not_run


def _chosen_sets(options: LomaxOptions) -> dict[str, LomaxSet]:
    """The sets that are asked for."""
    folder = Path(options.data)
    there = find_sets(folder)
    wanted = there if options.datasets is None else list(options.datasets)
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise InvalidInputError(
            "datasets", "must be sets of the folder", unknown, choices(unknown, there, "There are")
        )
    return {name: read_set(folder, name) for name in wanted}


def _write(
    options: LomaxOptions, report: LomaxReport, result: RunResult, sets: dict[str, LomaxSet]
) -> None:
    folder = options.out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    folds = FoldTable(result.outcomes)
    write_csv(folder / "folds.csv", list(folds.records()))
    write_csv(folder / "ratios.csv", [_record(r) for r in (*report.cells, *report.overall)])
    write_csv(folder / "timings.csv", timing_records(result))
    write_csv(folder / "settings.csv", setting_records(METHODS[name] for name in report.methods))
    write_rows(folder, result.outcomes)
    blocks = list(_blocks(options, report, folds, sets))
    write_whole(options.out / "summary.md", to_markdown(TITLE, blocks).encode())
    write_whole(report.index, to_html(TITLE, blocks).encode())


def _blocks(
    options: LomaxOptions, report: LomaxReport, folds: FoldTable, sets: dict[str, LomaxSet]
) -> Iterator[Block]:
    yield Text(
        f"{options.splits} random splits, a fifth of the rows tested in each; covariate costs with "
        "the discounts of each group's members, and errors at three levels. Intervals are 95%, "
        "paired: over splits, enlarged for the training rows that they share, and over tested "
        "rows. A difference counts where both exclude 1."
    )
    if report.overall:
        yield Heading(f"Total cost as a ratio to {report.against}")
        counts = Counter(r.method for r in report.cells)
        rows = tuple((r.method, str(counts[r.method]), *_cells(r)) for r in report.overall)
        header = ("Method", "Ratio", "over splits", "over rows", "verdict")
        caption = "Geometric mean over the cells (sets and levels) that a method was run on"
        yield Grid((header[0], "cells", *header[1:]), rows, caption)
        yield Heading("Each set and level")
        rows = tuple((f"{r.dataset}, {r.level}", r.method, *_cells(r)) for r in report.cells)
        yield Grid(("Cell", *header), rows, f"Ratio to {report.against}", _marks(report.cells))
    yield Heading("Mean total cost")
    yield _means(report, folds, sets)
    not_run = [*report.not_run, *gathered(report.failures)]
    if not_run:
        yield Heading("Not included")
        yield Items(tuple(not_run))


def _means(report: LomaxReport, folds: FoldTable, sets: dict[str, LomaxSet]) -> Grid:
    rows: list[tuple[str, ...]] = []
    marks: list[tuple[int, int, str]] = []
    for name, one in sets.items():
        for setting in one.settings:
            cells = [Cell(name, method, *setting.key) for method in report.methods]
            means = [_mean(folds, cell) for cell in cells]
            if not np.all(np.isnan(means)):
                marks.append((len(rows), int(np.nanargmin(means)) + 1, "good"))
            texts = ("" if np.isnan(value) else f"{value:.2f}" for value in means)
            rows.append((f"{name}, {setting.name}", *texts))
    return Grid(("Cell", *report.methods), tuple(rows), "Mean over splits", tuple(marks))


def _mean(folds: FoldTable, cell: Cell) -> float:
    splits = [split for split in folds.splits() if folds.has(cell, split)]
    if not splits:
        return np.nan
    return float(np.mean([folds.mean(cell, "total_cost", split) for split in splits]))


def _cells(ratio: Ratio) -> tuple[str, ...]:
    return (
        f"{ratio.ratio:.3f}",
        _interval(ratio.by_splits),
        _interval(ratio.by_rows),
        ratio.verdict,
    )


def _interval(interval: ConfidenceInterval | None) -> str:
    return "" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def _marks(ratios: Sequence[Ratio]) -> tuple[tuple[int, int, str], ...]:
    looks = {"above": "bad", "below": "good", "noise": "soft"}
    return tuple((row, 5, looks[ratio.verdict]) for row, ratio in enumerate(ratios))


def _plain(ratio: Ratio) -> dict[str, Any]:
    record = _record(ratio)
    return {key: record[key] for key in record if key not in ("set", "level")}


def _record(ratio: Ratio) -> dict[str, Any]:
    splits = ratio.by_splits
    return {
        "set": ratio.dataset,
        "level": ratio.level,
        "method": ratio.method,
        "mean": ratio.mean,
        "mean_against": ratio.other_mean,
        "ratio": ratio.ratio,
        "splits_low": splits.low if splits else None,
        "splits_high": splits.high if splits else None,
        "rows_low": ratio.by_rows.low,
        "rows_high": ratio.by_rows.high,
        "verdict": ratio.verdict,
    }

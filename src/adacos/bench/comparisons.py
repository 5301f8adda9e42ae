"""One method against the others, cell by cell and over all cells, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adacos.bench.pairing import (
    Pairs,
    fold_interval,
    geometric_ratio_by_folds,
    geometric_ratio_by_rows,
    paired_tests,
    row_differences,
    row_groups,
)
from adacos.bench.tables import Cell, cell_of
from adacos.bench.units import Outcome
from adacos.kernels.intervals import ConfidenceInterval, row_interval
from adacos.typing import Floats

PAPER, RANDOM = "paper", "random"


@dataclass(frozen=True)
class CellComparison:
    """Difference first - second of the mean cost of one cell."""

    splits: str
    first: Cell
    second: Cell
    measure: str
    means: tuple[float, float]
    folds: ConfidenceInterval
    rows: ConfidenceInterval
    n_folds: int
    n_rows: int

    @property
    def is_noise(self) -> bool:
        """Whether either interval contains no difference at all."""
        return not (self.folds.excludes(0.0) and self.rows.excludes(0.0))


@dataclass(frozen=True)
class OverallComparison:
    """Ratio first / second of geometric means over the cells of one setting.

    `by_split` is the interval over repeated cross-validations, None for the paper's single one.
    """

    splits: str
    first: str
    second: str
    setting: str
    measure: str
    n_cells: int
    folds: ConfidenceInterval
    rows: ConfidenceInterval
    by_split: ConfidenceInterval | None


class OutcomeIndex:
    """Outcomes by cell, for the paper's folds and for the random splits."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._found: dict[tuple[str, Cell], list[Outcome]] = {}
        for outcome in outcomes:
            kind = PAPER if outcome.split == PAPER else RANDOM
            self._found.setdefault((kind, cell_of(outcome)), []).append(outcome)

    def kinds(self) -> list[str]:
        """Which of the paper's folds and the random splits were run."""
        return list(dict.fromkeys(kind for kind, _ in self._found))

    def cells(self, kind: str) -> list[Cell]:
        """Cells of the paper's folds or of the random splits."""
        return [cell for of, cell in self._found if of == kind]

    def outcomes(self, kind: str, cell: Cell) -> list[Outcome]:
        """Outcomes of a cell by split and fold."""
        return sorted(self._found[kind, cell], key=lambda o: (o.split, o.fold))

    def has(self, kind: str, cell: Cell) -> bool:
        """Whether a cell was run."""
        return (kind, cell) in self._found


def measure_of(setting: str) -> str:
    """The cost that a setting is judged by."""
    return "operation" if setting.startswith("recall") else "total"


def compare_cells(index: OutcomeIndex, first: str, second: str) -> list[CellComparison]:
    """Every cell in which both methods were run, with at least two folds."""
    cells = []
    for kind in index.kinds():
        for cell in index.cells(kind):
            other = cell._replace(method=second)
            if cell.method != first or not index.has(kind, other):
                continue
            a, b = index.outcomes(kind, cell), index.outcomes(kind, other)
            if len(a) < 2 or len(a) != len(b):
                continue
            measure = measure_of(cell.setting)
            by_fold = _fold_means(a, measure) - _fold_means(b, measure)
            by_row = row_differences(a, b, measure)
            cells.append(
                CellComparison(
                    kind,
                    cell,
                    other,
                    measure,
                    (float(_fold_means(a, measure).mean()), float(_fold_means(b, measure).mean())),
                    fold_interval(by_fold),
                    row_interval(by_row, row_groups(a)),
                    len(a),
                    len(by_row),
                )
            )
    return cells


def compare_overall(
    index: OutcomeIndex,
    first: str,
    second: str,
    setting: str,
    *,
    at_least: float = 10.0,
    datasets: Sequence[str] | None = None,
) -> list[OverallComparison]:
    """Ratio of geometric means over data sets and false-positive costs from `at_least` on.

    Cells in which a cost is not positive have no logarithm and do not count.
    """
    cells = []
    for kind in index.kinds():
        logs: list[Floats] = []
        split_logs: list[Floats] = []
        rows: dict[tuple[str, ...], Pairs] = {}
        for cell in index.cells(kind):
            other = cell._replace(method=second)
            wanted = (
                cell.method == first
                and cell.setting == setting
                and cell.false_positive >= at_least
                and (datasets is None or cell.dataset in datasets)
                and index.has(kind, other)
            )
            if not wanted:
                continue
            a, b = index.outcomes(kind, cell), index.outcomes(kind, other)
            measure = measure_of(setting)
            fold_a, fold_b = _fold_means(a, measure), _fold_means(b, measure)
            if len(a) != len(b) or len(a) < 2 or min(fold_a.min(), fold_b.min()) <= 0:
                continue
            logs.append(np.log(fold_a / fold_b))
            split_logs.append(np.log(_split_means(a, fold_a) / _split_means(b, fold_b)))
            rows[cell.dataset, f"{cell.false_positive:g}"] = paired_tests(a, b, measure)
        if logs and len({len(log) for log in logs}) == 1:
            over_splits = np.mean(split_logs, axis=0)
            cells.append(
                OverallComparison(
                    kind,
                    first,
                    second,
                    setting,
                    measure_of(setting),
                    len(logs),
                    geometric_ratio_by_folds(np.mean(logs, axis=0)),
                    geometric_ratio_by_rows(rows),
                    geometric_ratio_by_folds(over_splits, overlap=0.0)
                    if len(over_splits) > 1
                    else None,
                )
            )
    return cells


def comparison_records(comparisons: Iterable[CellComparison]) -> list[dict[str, Any]]:
    """Cell comparisons as records of a table."""
    return [
        {
            "splits": c.splits,
            "dataset": c.first.dataset,
            "setting": c.first.setting,
            "false_positive_cost": c.first.false_positive,
            "first": c.first.method,
            "second": c.second.method,
            "measure": f"{c.measure}_cost",
            "mean_first": c.means[0],
            "mean_second": c.means[1],
            "difference": c.folds.estimate,
            "folds_low": c.folds.low,
            "folds_high": c.folds.high,
            "rows_low": c.rows.low,
            "rows_high": c.rows.high,
            "n_folds": c.n_folds,
            "n_rows": c.n_rows,
            "noise": c.is_noise,
        }
        for c in comparisons
    ]


def overall_records(comparisons: Iterable[OverallComparison]) -> list[dict[str, Any]]:
    """Overall comparisons as records of a table."""
    return [
        {
            "splits": c.splits,
            "setting": c.setting,
            "first": c.first,
            "second": c.second,
            "measure": f"{c.measure}_cost",
            "n_cells": c.n_cells,
            "ratio": c.folds.estimate,
            "folds_low": c.folds.low,
            "folds_high": c.folds.high,
            "rows_ratio": c.rows.estimate,
            "rows_low": c.rows.low,
            "rows_high": c.rows.high,
            "splits_low": c.by_split.low if c.by_split else None,
            "splits_high": c.by_split.high if c.by_split else None,
        }
        for c in comparisons
    ]


def _split_means(outcomes: Sequence[Outcome], fold_means: Floats) -> Floats:
    """Mean over the folds of each cross-validation."""
    names = np.array([outcome.split for outcome in outcomes])
    return np.array([fold_means[names == name].mean() for name in dict.fromkeys(names)])


def _fold_means(outcomes: Sequence[Outcome], measure: str) -> Floats:
    return np.array([getattr(outcome, measure).mean() for outcome in outcomes])

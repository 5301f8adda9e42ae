"""Tidy tables of a run: per row, per fold, and means with standard deviations.

A table is a list of records; files are CSV, and Parquet for the rows where pyarrow is installed.
Standard deviations are over folds with divisor n, as in the paper.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from adacos.bench.methods import parameters
from adacos.bench.run import RunResult
from adacos.bench.units import Outcome
from adacos.families import family_of
from adacos.metrics import false_discovery_rate, recall, weighted_accuracy
from adacos.registry import Method
from adacos.tables.writing import write_whole
from adacos.typing import Floats

MEASURES = (
    "total_cost",
    "covariate_cost",
    "misclassification_cost",
    "operation_cost",
    "n_acquired",
    "weighted_accuracy",
    "accuracy",
    "auc",
    "log_loss",
    "recall",
    "fdr",
)


class Cell(NamedTuple):
    """One method on one data set in one setting."""

    dataset: str
    method: str
    setting: str
    false_positive: float


class FoldTable:
    """Measures of every fold, by cell and split.

    Parameters
    ----------
    outcomes : iterable of Outcome
        The outcomes of a `RunResult`.

    Examples
    --------
    >>> from adacos.bench import FoldTable
    >>> FoldTable([]).splits()
    []
    """

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._values: dict[tuple[Cell, str], dict[int, dict[str, float]]] = {}
        for outcome in outcomes:
            cell = cell_of(outcome)
            folds = self._values.setdefault((cell, outcome.split), {})
            folds[outcome.fold] = measures(outcome)

    def cells(self, split: str = "paper", setting: str | None = None) -> list[Cell]:
        """Cells with results, in the order of the run.

        Parameters
        ----------
        split : str, default="paper"
            Name of the cross-validation.
        setting : str or None, default=None
            Name of one setting, or None for all.

        Returns
        -------
        list of Cell
            Data set, method, setting and false-positive cost of each.
        """
        return [
            cell
            for cell, of in self._values
            if of == split and (setting is None or cell.setting == setting)
        ]

    def splits(self) -> list[str]:
        """Names of the cross-validations.

        Returns
        -------
        list of str
            The names, in the order of the run.
        """
        return list(dict.fromkeys(split for _, split in self._values))

    def folds(self, cell: Cell, measure: str, split: str = "paper") -> Floats:
        """Values of a measure in every fold.

        Parameters
        ----------
        cell : Cell
            Which method on which data set in which setting.
        measure : str
            Such as "total_cost", "recall" or "auc".
        split : str, default="paper"
            Name of the cross-validation.

        Returns
        -------
        ndarray of shape (n_folds,)
            The values.
        """
        by_fold = self._values[cell, split]
        return np.array([by_fold[k][measure] for k in sorted(by_fold)])

    def mean(self, cell: Cell, measure: str, split: str = "paper") -> float:
        """Mean of a measure over folds.

        Parameters
        ----------
        cell : Cell
            Which method on which data set in which setting.
        measure : str
            Such as "total_cost", "recall" or "auc".
        split : str, default="paper"
            Name of the cross-validation.

        Returns
        -------
        float
            The mean.
        """
        return float(self.folds(cell, measure, split).mean())

    def std(self, cell: Cell, measure: str, split: str = "paper") -> float:
        """Standard deviation of a measure over folds, divisor n.

        Parameters
        ----------
        cell : Cell
            Which method on which data set in which setting.
        measure : str
            Such as "total_cost", "recall" or "auc".
        split : str, default="paper"
            Name of the cross-validation.

        Returns
        -------
        float
            The standard deviation.
        """
        return float(self.folds(cell, measure, split).std())

    def has(self, cell: Cell, split: str = "paper") -> bool:
        """Whether a cell was run.

        Parameters
        ----------
        cell : Cell
            Which method on which data set in which setting.
        split : str, default="paper"
            Name of the cross-validation.

        Returns
        -------
        bool
            Whether it has results.
        """
        return (cell, split) in self._values

    def records(self) -> Iterator[dict[str, Any]]:
        """Iterate over cells, splits and folds.

        Yields
        ------
        dict
            One record: names, fold and every measure.
        """
        for (cell, split), by_fold in self._values.items():
            for fold in sorted(by_fold):
                yield {**_names(cell), "split": split, "fold": fold, **by_fold[fold]}


def cell_of(outcome: Outcome) -> Cell:
    """The cell an outcome belongs to."""
    return Cell(outcome.dataset, outcome.method, *outcome.setting.key)


def measures(outcome: Outcome) -> dict[str, float]:
    """The measures of one fold; NaN where one is not defined."""
    y, label, p = outcome.y, outcome.label, outcome.probability
    total = float(outcome.total.mean())
    # A method without probabilities gives NaN.
    two = outcome.setting.n_classes == 2
    ranked = two and len(set(y)) == 2 and bool(np.all(np.isfinite(p)))
    return {
        "n_rows": len(y),
        "total_cost": total,
        "covariate_cost": float(outcome.cost.mean()),
        "misclassification_cost": total - float(outcome.cost.mean()),
        "operation_cost": float(outcome.operation.mean()) if two else np.nan,
        "n_acquired": float(outcome.acquired.mean()),
        "weighted_accuracy": weighted_accuracy(outcome, y) if two else np.nan,
        "accuracy": float((label == y).mean()),
        "auc": float(roc_auc_score(y, p)) if ranked else np.nan,
        "log_loss": float(log_loss(y, p)) if ranked else _class_log_loss(y, p),
        "recall": recall(outcome, y) if two else np.nan,
        "fdr": false_discovery_rate(outcome, y) if two else np.nan,
    }


def _class_log_loss(y: NDArray[np.int64], p: Floats) -> float:
    """Log-loss with three or more classes; NaN where the probabilities are not those of each."""
    if p.ndim == 1 or not np.all(np.isfinite(p)):
        return np.nan
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], np.finfo(np.float64).tiny)).mean())


def summary_records(
    folds: FoldTable, references: Mapping[str, Mapping[tuple[Cell, str], tuple[float, float]]]
) -> list[dict[str, Any]]:
    """Mean and standard deviation of every cell and measure, with reference values.

    `references` maps a source's name to its (mean, standard deviation) by cell and measure.
    """
    records = []
    for split in folds.splits():
        for cell in folds.cells(split):
            for measure in MEASURES:
                mean = folds.mean(cell, measure, split)
                if np.isnan(mean):
                    continue
                record = {
                    **_names(cell),
                    "split": split,
                    "measure": measure,
                    "mean": mean,
                    "std": folds.std(cell, measure, split),
                }
                for source, values in references.items():
                    known = values.get((cell, measure)) if split == "paper" else None
                    record[f"{source}_mean"], record[f"{source}_std"] = known or (None, None)
                records.append(record)
    return records


def timing_records(result: RunResult) -> list[dict[str, Any]]:
    """Seconds each method took in each fold, over all settings of the run."""
    return [
        {
            "dataset": dataset,
            "method": method,
            "split": split,
            "fold": fold,
            "fit_seconds": round(spent.fit, 4),
            "acquire_seconds": round(spent.acquire, 4),
        }
        for (dataset, split, fold, method), spent in sorted(result.seconds.items())
    ]


def setting_records(methods: Iterable[Method]) -> list[dict[str, Any]]:
    """One record per parameter of each method."""
    return [
        {"method": method.name, "parameter": name, "value": str(value)}
        for method in methods
        for name, value in parameters(method).items()
    ]


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write records as CSV, atomically; floats to 12 digits, None as an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if records:
        writer.writerow(records[0])
        writer.writerows([[_cell(value) for value in record.values()] for record in records])
    write_whole(path, text.getvalue().encode())


def write_rows(folder: Path, outcomes: Iterable[Outcome]) -> Path:
    """Write one record per tested row: rows.parquet, or rows.csv.gz without pyarrow."""
    columns = _row_columns(outcomes)
    if find_spec("pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = pa.BufferOutputStream()
        text = {
            name: pa.array(v).dictionary_encode()
            for name, v in columns.items()
            if v.dtype.kind == "U"
        }
        pq.write_table(pa.table({name: text.get(name, v) for name, v in columns.items()}), buffer)
        path = folder / "rows.parquet"
        write_whole(path, buffer.getvalue().to_pybytes())
        return path
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    path = folder / "rows.csv.gz"
    write_whole(path, gzip.compress(lines.getvalue().encode(), mtime=0))
    return path


def _row_columns(outcomes: Iterable[Outcome]) -> dict[str, NDArray[Any]]:
    parts: dict[str, list[NDArray[Any]]] = {}
    for outcome in outcomes:
        n = len(outcome.rows)
        nothing = np.full(n, np.nan)
        record = {
            "dataset": np.full(n, outcome.dataset),
            "method": np.full(n, outcome.method),
            "setting": np.full(n, outcome.setting.name),
            "false_positive_cost": np.full(n, outcome.setting.false_positive),
            "split": np.full(n, outcome.split),
            "fold": np.full(n, outcome.fold, dtype=np.int8),
            "row": outcome.rows.astype(np.int32),
            "y": outcome.y.astype(np.int8),
            "label": outcome.label.astype(np.int8),
            "probability": _one_probability(outcome),
            "n_acquired": outcome.acquired.astype(np.int16),
            "covariate_cost": outcome.cost,
            "total_cost": outcome.total,
            "operation_cost": outcome.operation if outcome.setting.n_classes == 2 else nothing,
        }
        for name, values in record.items():
            parts.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in parts.items()}


def _one_probability(outcome: Outcome) -> Floats:
    """P(class 1); with three or more classes that of the label."""
    return family_of(outcome.probability).of_label(outcome.probability, outcome.label)


def _names(cell: Cell) -> dict[str, Any]:
    return {
        "dataset": cell.dataset,
        "method": cell.method,
        "setting": cell.setting,
        "false_positive_cost": cell.false_positive,
    }


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.12g}"
    return "" if value is None else value

"""Numbers to compare ours with: the paper's Table 1, and the authors' code if the user has it."""

from __future__ import annotations

import csv
from pathlib import Path

from adacos.bench.names import ADACOS, ADACOS_FORWARD, COS, COS_FORWARD, FULL_MODEL
from adacos.bench.tables import Cell
from adacos.exceptions import InvalidInputError

Reference = dict[tuple[Cell, str], tuple[float, float]]

_TABLE_1: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    # method: (mean, standard deviation) at error cost 400, then 800.
    ADACOS_FORWARD: ((68.83, 12.43), (157.35, 24.34)),
    COS_FORWARD: ((70.81, 16.75), (161.18, 29.58)),
    ADACOS: ((78.1, 5.96), (180.64, 14.12)),
    COS: ((82.55, 12.84), (171.71, 16.1)),
    FULL_MODEL: ((99.52, 8.67), (191.2, 16.38)),
    "Shim2018": ((113.82, 17.87), (246.71, 26.71)),
    "AdaptGbrt": ((87.41, 12.1), (175.8, 17.76)),
    "GreedyMiser": ((91.36, 14.43), (200.96, 31.93)),
}
# Taken by the paper from Dulac-Arnold et al. (2012) and Ji and Carin (2007), without deviations.
_TABLE_1_MEANS = {"DWSM": (74.0, 181.0), "POMDP": (75.0, 180.0)}

_COLUMNS = ("dataset", "method", "setting", "false_positive_cost", "metric", "mean", "std")


def paper_table_1() -> Reference:
    """The paper's Table 1: total cost on Pima with symmetric costs."""
    table: Reference = {}
    for method, values in _TABLE_1.items():
        for error, value in zip((400.0, 800.0), values, strict=True):
            table[Cell("pima", method, "symmetric", error), "total_cost"] = value
    for method, means in _TABLE_1_MEANS.items():
        for error, mean in zip((400.0, 800.0), means, strict=True):
            table[Cell("pima", method, "symmetric", error), "total_cost"] = (mean, float("nan"))
    return table


def check_reference(path: Path | None) -> None:
    """Refuse a path that is given but does not exist."""
    if path is not None and not Path(path).exists():
        raise InvalidInputError(
            "reference",
            "must be a CSV file or the folder that holds authors_code.csv",
            str(path),
            "Correct the path, or leave it out: the report does without.",
        )


def read_authors_code(path: Path) -> Reference:
    """Means and standard deviations that the authors' code gives on the paper's folds.

    `path` is a CSV file with the columns dataset, method, setting, false_positive_cost, metric,
    mean, std, or the folder that holds it as authors_code.csv.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "authors_code.csv"
    check_reference(path)
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise InvalidInputError(
                "reference",
                f"must have the columns {', '.join(_COLUMNS)}",
                reader.fieldnames,
                "Pass the table of the authors' code.",
            )
        return {
            (
                Cell(r["dataset"], r["method"], r["setting"], float(r["false_positive_cost"])),
                r["metric"],
            ): (float(r["mean"]), float(r["std"]))
            for r in reader
        }

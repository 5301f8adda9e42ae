"""A table in Parquet files, which is read a piece at a time."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import Costs, ParquetTable

pd = pytest.importorskip("pandas")


COSTS = Costs(
    {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0, "e": 1.0}, false_positive=30, false_negative=60
)


def frame(n, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "b": rng.poisson(4, n),
            "c": rng.choice(["no", "some", "yes"], n),
            "d": rng.integers(0, 2, n).astype(bool),
            "e": np.full(n, "same"),
        }
    )
    log_odds = np.sin(2 * table["a"]) + 0.4 * (table["b"] - 4) + (table["c"] == "yes")
    table["ill"] = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return table


def with_classes(table, n_classes=3, seed=0):
    """The same rows with another class each, and costs of errors for them."""
    rng = np.random.default_rng(seed + 50)
    scores = np.outer(table["a"], np.arange(n_classes)) + rng.gumbel(size=(len(table), n_classes))
    costs = Costs(COSTS.covariates, misclassification=30 * (1 - np.eye(n_classes)))
    return table.assign(ill=scores.argmax(axis=1)), costs


def with_missing(table, share=0.2, seed=0):
    """The same rows with values missing, but for the class."""
    rng = np.random.default_rng(seed + 70)
    table = table.astype({"d": float, "b": float})
    names = ["a", "b", "c", "d"]
    return table.assign(**{n: table[n].mask(rng.random(len(table)) < share) for n in names})


def written(tmp_path, table, parts=2):
    for number, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
        table.iloc[rows].to_parquet(tmp_path / f"part{number}.parquet", index=False)
    return ParquetTable(tmp_path)

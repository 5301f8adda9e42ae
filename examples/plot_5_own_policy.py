"""
A method of one's own in the harness
====================================

The benchmark runs any object with ``fit(X, y)`` and ``acquire(X)`` on the paper's folds, next to the
methods that are there. This one asks everybody for what is cheap and stops.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from adacos.bench import (
    BenchConfig,
    FoldTable,
    asymmetric,
    register_method,
    run,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# %%
# The method
# ----------
# The harness hands over the table as an array, and the costs by position. ``acquire`` returns an object
# with ``label``, ``probability``, ``cost`` and ``acquired``, one entry for each row.


@dataclass
class Answer:
    """What the harness reads of each row."""

    label: Any
    probability: Any
    cost: Any
    acquired: Any


class CheapOnly:
    """A logistic regression on the covariates that cost at most `limit`."""

    def __init__(self, costs: Any, limit: float = 1.0) -> None:
        self.costs, self.limit = costs, limit

    def fit(self, X: Any, y: Any) -> "CheapOnly":
        """Learn from the cheap columns."""
        self.cheap_ = np.array(self.costs.covariates) <= self.limit
        self.model_ = make_pipeline(StandardScaler(), LogisticRegression())
        self.model_.fit(np.asarray(X)[:, self.cheap_], y)
        return self

    def acquire(self, X: Any) -> Answer:
        """Acquire the cheap covariates of every row and give the Bayes decision."""
        p = self.model_.predict_proba(np.asarray(X)[:, self.cheap_])[:, 1]
        (c00, c01), (c10, c11) = self.costs.matrix
        label = ((1 - p) * c01 + p * c11 <= (1 - p) * c00 + p * c10).astype(
            int
        )
        acquired = np.tile(self.cheap_, (len(p), 1))
        paid = acquired @ np.array(self.costs.covariates)
        return Answer(label, p, paid, acquired)


register_method("cheap only", lambda costs: CheapOnly(costs))

# %%
# The run
# -------
# Two of the paper's five folds, three costs of a false positive; a false negative costs ten times as
# much. Results are written to a folder from which a stopped run continues.

with TemporaryDirectory() as folder:
    config = BenchConfig(
        datasets=("pima",),
        methods=("AdaCOS (group lasso)", "Full Model", "cheap only"),
        settings=tuple(asymmetric(cost) for cost in (10, 100, 1000)),
        out=Path(folder),
        folds=(0, 1),
    )
    folds = FoldTable(run(config, progress=False).outcomes)

# %%
# The result
# ----------

for cell in folds.cells():
    mean = folds.mean(cell, "total_cost")
    print(
        f"{cell.method:22} false positive {cell.false_positive:6g}: total cost {mean:8.2f}"
    )

# %%
# Relative to the full model:

figure, axes = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
total = {
    (c.method, c.false_positive): folds.mean(c, "total_cost")
    for c in folds.cells()
}
errors = (10, 100, 1000)
for method, color, marker in (
    ("AdaCOS (group lasso)", "#0072B2", "o"),
    ("cheap only", "#D55E00", "s"),
):
    ratio = [
        total[method, cost] / total["Full Model", cost] for cost in errors
    ]
    axes.plot(errors, ratio, marker=marker, color=color, label=method)
axes.axhline(1, color="0.6", label="Full Model")
axes.set_xscale("log")
axes.set_xlabel(
    "cost of a false positive (a false negative costs ten times as much)"
)
axes.set_ylabel("total cost / full model's")
axes.set_ylim(bottom=0)
axes.legend(frameon=False)
plt.show()

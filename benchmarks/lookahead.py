"""Total cost of AdaCOS under each of its lookaheads, on fresh splits.

    python -m benchmarks.lookahead --splits 10 --seed 16
    python -m benchmarks.lookahead --splits 1 --physionet PATH

Five folds a split, the paper's costs (false positive 10 to 1000, a miss ten times as much), one fit
for all lookaheads; each is compared with those before it. The ratio of the
total costs is the geometric mean over the five settings; its 95% interval is over rows (each row's
cost is averaged over the splits, the ratio linearised), so that it speaks of other rows of the same
kind and not of other splits of these.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from adacos import (
    AdaCOSClassifier,
    Costs,
    load_heart,
    load_physionet2012,
    load_pima,
    load_wisconsin,
)
from adacos.datasets import Dataset
from adacos.metrics import total_costs

FALSE_POSITIVE = (10, 50, 100, 500, 1000)
LOOKAHEADS = ("paper", "coherent", "dynamic", "realised")
LOADERS = {"wisconsin": load_wisconsin, "pima": load_pima, "heart": load_heart}


def folds(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    fold = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        fold[rows] = np.arange(len(rows)) % 5
    return fold


def row_costs(data: Dataset, splits: int, seed: int, sequence: str) -> dict[str, np.ndarray]:
    """Mean total cost of each row (settings, rows) under each lookahead."""
    X, y = data.X, np.asarray(data.y)
    total = {lookahead: np.zeros((len(FALSE_POSITIVE), len(y))) for lookahead in LOOKAHEADS}
    for split in range(splits):
        fold = folds(y, np.random.default_rng([seed, split]))
        for number in range(5):
            train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            fitted = None
            for i, cost in enumerate(FALSE_POSITIVE):
                costs = Costs(
                    data.prices, false_positive=cost, false_negative=10 * cost, panels=data.panels
                )
                for lookahead in LOOKAHEADS:
                    policy = AdaCOSClassifier(costs, lookahead=lookahead, sequence=sequence)
                    if fitted is None:
                        fitted = policy.fit(X.iloc[train], y[train])
                    else:
                        policy.from_model(fitted)
                    result = policy.acquire(X.iloc[test])
                    total[lookahead][i, test] += total_costs(result, y[test], costs) / splits
    return total


def ratio(before: np.ndarray, after: np.ndarray) -> tuple[float, float, float, np.ndarray]:
    """Geometric mean of the ratio over the settings, its interval, and the ratios."""
    ratios = after.mean(axis=1) / before.mean(axis=1)
    influence = np.mean(
        after / after.mean(axis=1, keepdims=True) - before / before.mean(axis=1, keepdims=True),
        axis=0,
    )
    error = influence.std(ddof=1) / np.sqrt(len(influence))
    center = float(np.log(ratios).mean())
    return (
        float(np.exp(center)),
        float(np.exp(center - 1.96 * error)),
        float(np.exp(center + 1.96 * error)),
        ratios,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--sequence", default="group_lasso", choices=("group_lasso", "forward"))
    parser.add_argument("--physionet", type=Path, help="its table, in place of the bundled sets")
    given = parser.parse_args()
    loaders = LOADERS
    if given.physionet is not None:
        loaders = {"physionet": lambda: load_physionet2012(given.physionet)}
    for name, load in loaders.items():
        start = time.perf_counter()
        total = row_costs(load(), given.splits, given.seed, given.sequence)
        for before, after in combinations(LOOKAHEADS, 2):
            geometric, low, high, ratios = ratio(total[before], total[after])
            listed = "  ".join(f"{r:.3f}" for r in ratios)
            costs = "  ".join(f"{c:.2f}" for c in total[after].mean(axis=1))
            print(
                f"{name:10s} {after} / {before} {geometric:.3f} [{low:.3f}, {high:.3f}]   "
                f"by false positive {FALSE_POSITIVE}: {listed}   {after} costs {costs}   "
                f"{time.perf_counter() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()

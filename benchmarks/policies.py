"""Total cost of our own policies beside AdaCOS, on fresh splits.

    python -m benchmarks.policies --splits 10 --seed 31 --policies dynamic branching auto
    python -m benchmarks.policies --splits 1 --physionet PATH --costs 100 1000 --policies auto

Five folds a split, the paper's costs (false positive 10 to 1000, or `--costs`, a miss ten times as
much). The ratio to AdaCOS is the geometric mean over the settings; its 95% interval is over rows,
as in `benchmarks.lookahead`. What is done is kept in a folder (`--into`), so that a stopped run
continues.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    Costs,
    PlanningClassifier,
    load_physionet2012,
)
from adacos.datasets import Dataset
from adacos.metrics import total_costs
from benchmarks.lookahead import FALSE_POSITIVE, LOADERS, folds, ratio

POLICIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "adacos": (AdaCOSClassifier, {}),
    "dynamic": (AdaCOSClassifier, {"lookahead": "dynamic"}),
    "forward": (AdaCOSClassifier, {"sequence": "forward"}),
    "auto-order": (AdaCOSClassifier, {"sequence": "auto"}),
    "branching": (BranchingClassifier, {}),
    "planning": (PlanningClassifier, {}),
    "auto": (AutoPolicyClassifier, {}),
}


def split_costs(
    data: Dataset, false_positive: list[int], policy: str, seed: list[int], path: Path
) -> np.ndarray:
    """Total cost of each row (settings, rows) in one split; from its file where it is done."""
    if path.is_file():
        return np.asarray(np.load(path))
    X, y = data.X, np.asarray(data.y)
    fold = folds(y, np.random.default_rng(seed))
    kind, parameters = POLICIES[policy]
    total, seconds = np.empty((len(false_positive), len(y))), []
    for number in range(5):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        fitted = None
        for i, cost in enumerate(false_positive):
            costs = Costs(
                data.prices, false_positive=cost, false_negative=10 * cost, panels=data.panels
            )
            made = kind(costs, **parameters)
            if fitted is None or kind is not AdaCOSClassifier:
                start = time.process_time()
                fitted = made.fit(X.iloc[train], y[train])
                seconds.append(time.process_time() - start)
            else:
                made.from_model(fitted)
            total[i, test] = total_costs(made.acquire(X.iloc[test]), y[test], costs)
    np.save(path, total)
    print(f"{path.stem}: {np.mean(seconds):.2f} s of processor time a fit", flush=True)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--sets", nargs="+", default=list(LOADERS), choices=list(LOADERS))
    parser.add_argument("--physionet", type=Path, help="its table, in place of the bundled sets")
    parser.add_argument("--costs", nargs="+", type=int, default=list(FALSE_POSITIVE))
    parser.add_argument("--policies", nargs="+", default=["dynamic", "branching", "auto"])
    parser.add_argument("--into", type=Path, default=Path("policies-benchmark"))
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    loaders = {name: LOADERS[name] for name in given.sets}
    if given.physionet is not None:
        loaders = {"physionet": lambda: load_physionet2012(given.physionet)}
    every = "-".join(map(str, given.costs))
    for name, load in loaders.items():
        data = load()
        total: dict[str, list[np.ndarray]] = {policy: [] for policy in ("adacos", *given.policies)}
        for split in range(given.splits):
            for policy, done in total.items():
                path = given.into / f"{name}-{every}-{policy}-{given.seed}-{split}.npy"
                done.append(split_costs(data, given.costs, policy, [given.seed, split], path))
        before = np.mean(total["adacos"], axis=0)
        for policy in given.policies:
            geometric, low, high, ratios = ratio(before, np.mean(total[policy], axis=0))
            print(
                f"{name:10s} {policy:10s} / adacos {geometric:.3f} [{low:.3f}, {high:.3f}]   "
                f"by false positive {tuple(given.costs)}: "
                + "  ".join(f"{r:.3f}" for r in ratios)
                + f"   {given.splits} splits",
                flush=True,
            )


if __name__ == "__main__":
    main()

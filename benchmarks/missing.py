"""Total cost of AdaCOS on tables with missing values, next to another version of the library.

    git worktree add ../before df2e2c9
    python -m benchmarks.missing --before ../before --splits 10 --seed 16

Fresh five-fold splits of the bundled data, false positive 100 and miss 1000; 30% of the values are
removed at random in the training rows, in the rows to be decided, in both, and in none. Both
versions see the same splits and the same missing values, each in a process of its own. The version
at df2e2c9 put a missing value at its conditional mean as if it were known. It had the paper's
lookahead only: this version is therefore run with that one, for what missing values alone make, and
with its own. A difference is the mean over rows of each row's own (averaged over the splits); its
95% interval is over rows, a normal one. PhysioNet 2012 (`--physionet PATH --folds 2`) has missing
ones of its own in all rows, and none are added.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adacos import (
    AdaCOSClassifier,
    Costs,
    load_heart,
    load_physionet2012,
    load_pima,
    load_wisconsin,
)
from adacos.metrics import total_costs

LOADERS = {"pima": load_pima, "heart": load_heart, "wisconsin": load_wisconsin}
# Whether values are removed in training and in the rows to be decided.
WHERE = {
    "none": (False, False),
    "training": (True, False),
    "test": (False, True),
    "both": (True, True),
}
NATURAL = {"none": (False, False)}
PHYSIONET = "physionet"
RATE = 0.3


def where_of(name: str) -> dict[str, tuple[bool, bool]]:
    """Where values are removed in a data set."""
    return NATURAL if name == PHYSIONET else WHERE


def load(name: str, given: argparse.Namespace) -> Any:
    """The data set."""
    return load_physionet2012(given.physionet) if name == PHYSIONET else LOADERS[name]()


def splits(
    data: Any, given: argparse.Namespace
) -> Iterator[tuple[Any, np.ndarray, np.ndarray, float]]:
    """The table without some values, rows to train on and to decide, one over their number."""
    y = np.asarray(data.y)
    for split in range(given.splits):
        rng = np.random.default_rng([given.seed, split])
        holed = data.X.mask(rng.random(data.X.shape) < RATE)
        fold = np.empty(len(y), dtype=int)
        for label in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == label))
            fold[rows] = np.arange(len(rows)) % 5
        for k in range(given.folds):
            yield holed, np.flatnonzero(fold != k), np.flatnonzero(fold == k), 1 / given.splits


def row_costs(name: str, given: argparse.Namespace) -> dict[str, np.ndarray]:
    """Mean total cost of each row by lookahead and by what is missing; NaN if never decided."""
    data = load(name, given)
    y, where = np.asarray(data.y), where_of(name)
    costs = Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
    total: dict[str, np.ndarray] = {}
    decided = np.zeros(len(y), dtype=bool)
    for holed, train, test, share in splits(data, given):
        decided[test] = True
        for missing_in_training in sorted({in_training for in_training, _ in where.values()}):
            table = holed if missing_in_training else data.X
            fitted = AdaCOSClassifier(costs).fit(table.iloc[train], y[train])
            for lookahead in given.lookaheads:
                policy = fitted
                if lookahead != "own":
                    policy = AdaCOSClassifier(costs, lookahead=lookahead).from_model(fitted)
                for title, (in_training, in_test) in where.items():
                    if in_training != missing_in_training:
                        continue
                    result = policy.acquire((holed if in_test else data.X).iloc[test])
                    sums = total.setdefault(f"{lookahead} {title}", np.zeros(len(y)))
                    sums[test] += share * total_costs(result, y[test], costs)
    return {key: np.where(decided, sums, np.nan) for key, sums in total.items()}


def run(source: Path | None, given: argparse.Namespace, lookaheads: list[str]) -> dict[str, Any]:
    """`row_costs` of one version of the library, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "costs.npz"
        command = [sys.executable, str(Path(__file__).resolve()), "--into", str(out)]
        command += ["--splits", str(given.splits), "--seed", str(given.seed)]
        command += ["--datasets", *given.datasets, "--lookaheads", *lookaheads]
        command += ["--folds", str(given.folds)]
        command += [] if given.physionet is None else ["--physionet", str(given.physionet)]
        paths = {} if source is None else {"PYTHONPATH": str(source.resolve() / "src")}
        subprocess.run(command, check=True, env={**os.environ, **paths})
        with np.load(out) as found:
            return dict(found)


def print_lines(before: dict[str, Any], after: dict[str, Any], datasets: list[str]) -> None:
    """One line for each data set, lookahead and place of the missing values."""
    for name in datasets:
        for lookahead in ("paper", "own"):
            for where in where_of(name):
                first = before[f"{name} own {where}"]
                second = after[f"{name} {lookahead} {where}"]
                tested = np.isfinite(first)
                first, second = first[tested], second[tested]
                d = second - first
                half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))
                print(
                    f"{name:10s} removed in {where:9s} {lookahead:6s} lookahead: "
                    f"{first.mean():7.2f} -> {second.mean():7.2f}  difference {d.mean():+6.2f} "
                    f"[{d.mean() - half:+.2f}, {d.mean() + half:+.2f}]"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--datasets", nargs="+", choices=[*LOADERS, PHYSIONET])
    parser.add_argument("--physionet", type=Path, help="the PhysioNet 2012 table")
    parser.add_argument("--folds", type=int, default=5, help="how many of the five folds to decide")
    parser.add_argument("--lookaheads", nargs="+", default=["paper", "own"])
    parser.add_argument("--into", type=Path, help="only write this version's costs of rows")
    given = parser.parse_args()
    given.datasets = given.datasets or ([*LOADERS] if given.physionet is None else [PHYSIONET])
    if given.into is not None:
        found = {
            f"{name} {key}": value
            for name in given.datasets
            for key, value in row_costs(name, given).items()
        }
        np.savez(given.into, **found)
        return
    if given.before is None:
        parser.error("--before: give a checkout of the version to compare with")
    after = run(None, given, ["paper", "own"])
    print_lines(run(given.before, given, ["own"]), after, given.datasets)


if __name__ == "__main__":
    main()

"""AdaCOS on many rows: time, peak memory and quality of fits, each in a process of its own.

    python -m benchmarks.large                               # 10^4, 10^5 and 10^6 rows x 30
    python -m benchmarks.large --rows 100000 --next-to-dense  # the same rows with and without codes
    python -m benchmarks.large --rows 1000000 --from-parquet # rows that are never all in memory
    python -m benchmarks.large --rows 1000000 --classes 4    # the first class against three others
    python -m benchmarks.large --rows 1000000 --missing 0.2  # a fifth of the values, at random

Memory is the largest resident size during `fit` less what was resident just before it, with the
table and all imports there already; a table in Parquet files is not there. Quality is that of the
model with all covariates (log-loss) and of the policy (mean total cost) on 200,000 fresh rows of
the same world.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from adacos import AdaCOSClassifier, Costs, ParquetTable
from adacos.kernels.class_risk import log_loss
from adacos.metrics import total_costs
from adacos.models import large_fits

FRESH_ROWS = 200_000
HEADER = (
    "| rows × covariates | rows held as | processor s | wall s | MiB beyond the table | "
    "held-out log-loss | mean total cost |\n|---|---|---|---|---|---|---|"
)


class Problem(NamedTuple):
    """Correlated covariates of which the first few tell something, in curves; one in five whole."""

    covariates: int
    classes: int
    missing: float

    def rows(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and their classes."""
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, self.covariates))
        X += 0.5 * X[:, [0]]
        X[:, 4::5] = np.round(2 * X[:, 4::5])
        # Each later class sees the covariates in another order.
        seen = [np.roll(X[:, :5], k, axis=1) for k in range(self.classes - 1)]
        log_odds = [
            np.sin(Z[:, :4] * 1.5).sum(axis=1) + 0.5 * Z[:, 0] + 0.1 * Z[:, 4] - 0.5 for Z in seen
        ]
        y = classes_at(np.column_stack(log_odds), rng.random(n))
        if self.missing:
            X[rng.random(X.shape) < self.missing] = np.nan
        return X, y

    def costs(self) -> Costs:
        """A price of one each; two classes have errors of two costs."""
        names = {f"x{k}": 1.0 for k in range(self.covariates)}
        if self.classes == 2:
            return Costs(names, false_positive=100, false_negative=1000)
        return Costs(names, misclassification=300 * (1 - np.eye(self.classes)))


def draw_rows(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Complete rows of two classes."""
    return Problem(p, 2, 0.0).rows(n, seed)


def classes_at(log_odds: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The class of each row, drawn by its log-odds against the first and a uniform number."""
    odds = np.exp(np.column_stack([np.zeros(len(log_odds)), log_odds]))
    later = 1 - (odds.cumsum(axis=1) / odds.sum(axis=1, keepdims=True))
    return (share[:, None] < later[:, :-1]).sum(axis=1)


def resident(what: str) -> float:
    """VmRSS or VmHWM of this process in MiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {what} in /proc/self/status")


def write_parquet(drawn: Problem, n: int, folder: str) -> None:
    """The rows in files of 250,000."""
    import pyarrow
    import pyarrow.parquet

    for number, first in enumerate(range(0, n, 250_000)):
        X, y = drawn.rows(min(250_000, n - first), seed=n + number)
        columns = {f"x{k}": X[:, k] for k in range(drawn.covariates)} | {"y": y}
        pyarrow.parquet.write_table(pyarrow.table(columns), f"{folder}/{number:05}.parquet")


def measure(drawn: Problem, n: int, way: str, n_jobs: int | None, folder: str | None) -> str:
    """One line of the table."""
    if way == "columns":
        large_fits.LARGE_ROWS = n + 1
    rows: tuple[Any, Any] = drawn.rows(n, seed=n) if folder is None else (ParquetTable(folder), "y")
    costs = drawn.costs()
    policy = AdaCOSClassifier(costs, n_jobs=n_jobs)
    before, processor, wall = resident("VmRSS"), time.process_time(), time.perf_counter()
    policy.fit(*rows)
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    memory = resident("VmHWM") - before
    if drawn.classes == 2:
        costs = Costs(costs.covariates, misclassification=[[0, 100], [1000, 0]])
    fresh, truth = drawn.rows(FRESH_ROWS, seed=1)
    loss = log_loss(policy.model_.log_odds_by_set(fresh)[:, -1], truth).mean()
    total = total_costs(policy.acquire(fresh), truth, costs).mean()
    held = "codes" if n >= large_fits.LARGE_ROWS else "columns"
    held += "" if folder is None else ", from Parquet"
    held += "" if drawn.classes == 2 else f", {drawn.classes} classes"
    held += "" if not drawn.missing else f", {drawn.missing:.0%} missing"
    return (
        f"| {n:,} × {drawn.covariates} | {held} | {processor:.0f} | {wall:.0f} | {memory:,.0f} | "
        f"{loss:.5f} | {total:.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--covariates", type=int, default=30)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--missing", type=float, default=0.0, help="share of missing values")
    parser.add_argument("--n-jobs", type=int, default=None)
    parser.add_argument("--next-to-dense", action="store_true", help="also as few rows are")
    parser.add_argument("--from-parquet", action="store_true", help="read in pieces from files")
    parser.add_argument("--one", choices=["codes", "columns"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    drawn = Problem(given.covariates, given.classes, given.missing)
    if given.one is not None:
        print(measure(drawn, given.rows[0], given.one, given.n_jobs, given.folder))
        return
    print(HEADER, flush=True)
    for n in given.rows:
        folder = TemporaryDirectory()
        if given.from_parquet:
            write_parquet(drawn, n, folder.name)
        for way in ["codes", "columns"] if given.next_to_dense else ["codes"]:
            sizes = ["--rows", str(n), "--covariates", str(given.covariates)]
            sizes += ["--classes", str(given.classes), "--missing", str(given.missing)]
            if given.from_parquet:
                sizes += ["--folder", folder.name]
            jobs = [] if given.n_jobs is None else ["--n-jobs", str(given.n_jobs)]
            command = [sys.executable, "-m", "benchmarks.large", *sizes, *jobs, "--one", way]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(done.stdout.strip(), flush=True)
        folder.cleanup()


if __name__ == "__main__":
    main()

"""AdaCOS on many rows: time, peak memory and quality of fits, each in a process of its own.

    python -m benchmarks.large                               # 10^4, 10^5 and 10^6 rows x 30
    python -m benchmarks.large --rows 100000 --beside-dense  # the same rows with and without codes
    python -m benchmarks.large --rows 1000000 --from-parquet # rows that are never all in memory

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
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from adacos import AdaCOSClassifier, Costs, ParquetTable
from adacos.models import large_fits

FRESH_ROWS = 200_000
HEADER = (
    "| rows × covariates | rows held as | processor s | wall s | MiB beyond the table | "
    "held-out log-loss | mean total cost |\n|---|---|---|---|---|---|---|"
)


def world(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated covariates of which the first few tell something, in curves; one in five whole."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X += 0.5 * X[:, [0]]
    X[:, 4::5] = np.round(2 * X[:, 4::5])
    log_odds = np.sin(X[:, :4] * 1.5).sum(axis=1) + 0.5 * X[:, 0] + 0.1 * X[:, 4] - 0.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


def resident(what: str) -> float:
    """VmRSS or VmHWM of this process in MiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {what} in /proc/self/status")


def write_parquet(n: int, p: int, folder: str) -> None:
    """The rows in files of 250,000."""
    import pyarrow
    import pyarrow.parquet

    for number, first in enumerate(range(0, n, 250_000)):
        X, y = world(min(250_000, n - first), p, seed=n + number)
        columns = {f"x{k}": X[:, k] for k in range(p)} | {"y": y}
        pyarrow.parquet.write_table(pyarrow.table(columns), f"{folder}/{number:05}.parquet")


def measure(n: int, p: int, way: str, n_jobs: int | None, folder: str | None) -> str:
    """One line of the table."""
    if way == "columns":
        large_fits.LARGE_ROWS = n + 1
    rows: tuple[Any, Any] = world(n, p, seed=n) if folder is None else (ParquetTable(folder), "y")
    names = {f"x{k}": 1.0 for k in range(p)}
    costs = Costs(names, false_positive=100, false_negative=1000)
    policy = AdaCOSClassifier(costs, n_jobs=n_jobs)
    before, processor, wall = resident("VmRSS"), time.process_time(), time.perf_counter()
    policy.fit(*rows)
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    memory = resident("VmHWM") - before
    fresh, truth = world(FRESH_ROWS, p, seed=1)
    log_odds = policy.model_.log_odds_by_set(fresh)[:, -1]
    loss = np.mean(np.logaddexp(0, log_odds) - truth * log_odds)
    result = policy.acquire(fresh)
    wrong = np.where(truth == 1, 1000, 100) * (result.label != truth)
    held = "codes" if n >= large_fits.LARGE_ROWS else "columns"
    held += "" if folder is None else ", from Parquet"
    return (
        f"| {n:,} × {p} | {held} | {processor:.0f} | {wall:.0f} | {memory:,.0f} | {loss:.5f} | "
        f"{np.mean(result.cost + wrong):.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--covariates", type=int, default=30)
    parser.add_argument("--n-jobs", type=int, default=None)
    parser.add_argument("--beside-dense", action="store_true", help="also as few rows are")
    parser.add_argument("--from-parquet", action="store_true", help="read in pieces from files")
    parser.add_argument("--one", choices=["codes", "columns"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        sizes = given.rows[0], given.covariates
        print(measure(*sizes, given.one, given.n_jobs, given.folder))
        return
    print(HEADER, flush=True)
    for n in given.rows:
        folder = TemporaryDirectory()
        if given.from_parquet:
            write_parquet(n, given.covariates, folder.name)
        for way in ["codes", "columns"] if given.beside_dense else ["codes"]:
            sizes = ["--rows", str(n), "--covariates", str(given.covariates)]
            if given.from_parquet:
                sizes += ["--folder", folder.name]
            jobs = [] if given.n_jobs is None else ["--n-jobs", str(given.n_jobs)]
            command = [sys.executable, "-m", "benchmarks.large", *sizes, *jobs, "--one", way]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(done.stdout.strip(), flush=True)
        folder.cleanup()


if __name__ == "__main__":
    main()

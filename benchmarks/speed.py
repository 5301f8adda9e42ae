"""Speed and memory of the core, side by side with peers in one run, one thread.

    python -m benchmarks.speed [--shared PATH]

PATH is a folder with data/physionet2012.csv.gz; without it a synthetic table of that size is used
and said so.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table

from adacos import AdaCOSClassifier, Costs, LogisticGAM, load_physionet2012, load_pima, paper_folds


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Best processor time of several runs."""
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return float(best)


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))


def large_table(shared: Path | None) -> tuple[np.ndarray, np.ndarray, str]:
    path = shared / "data" / "physionet2012.csv.gz" if shared else None
    if path is not None and path.exists():
        X, y, *_ = load_physionet2012(path, as_frame=False)
        fold = paper_folds(X, y)
        return X[fold != 0], y[fold != 0], "PhysioNet, training part of fold 0"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((11258, 30)) @ (np.eye(30) + 0.2 * rng.standard_normal((30, 30)))
    log_odds = np.sin(X[:, :5]).sum(axis=1) - 2.0
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return X, y, "synthetic table of PhysioNet's size"


def compare_gam(name: str, X: np.ndarray, y: np.ndarray, lam: float, table: Table) -> None:
    """Our GAM and pygam with 20 splines, second-difference penalty and the same strength."""
    from pygam import LogisticGAM as PyGAM

    ours = LogisticGAM(n_splines=20, smoothness=lam, ridge=1e-3, cv=None)
    own = seconds(lambda: ours.fit(X, y), 3)
    holder = {}

    def fit_peer() -> None:
        holder["gam"] = PyGAM(n_splines=20, lam=lam).fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = seconds(fit_peer, 1)
        theirs = holder["gam"].predict_proba(X)
    table.add_row(
        name,
        f"{own:.3f} s",
        f"{peer:.3f} s",
        f"{peer / own:.0f} x",
        f"{log_loss(y, ours.predict_proba(X)[:, 1]):.5f} / {log_loss(y, theirs):.5f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=os.environ.get("ADACOS_SHARED", "../shared"))
    arguments = parser.parse_args()
    console = Console()
    pima = load_pima(as_frame=False)
    fold = paper_folds(pima.X, pima.y)
    small, small_y = pima.X[fold != 0], pima.y[fold != 0]
    large, large_y, what = large_table(Path(arguments.shared))
    filled = np.where(np.isnan(large), np.nanmean(large, axis=0), large)

    table = Table(title="LogisticGAM at equal strength", title_justify="left")
    for column in ("table", "adacos", "pygam", "ratio", "training log-loss"):
        table.add_column(column, justify="left" if column == "table" else "right")
    compare_gam("Pima", small, small_y, 6.0, table)
    compare_gam(what, filled, large_y, 6.0, table)
    console.print(table)

    table = Table(title="AdaCOSClassifier", title_justify="left")
    for column in ("table", "fit", "acquire", "peak memory so far"):
        table.add_column(column, justify="left" if column == "table" else "right")
    cases = [("Pima", small, small_y, [pima.prices[n] for n in pima.names], 3, 200)]
    cases += [(what, large, large_y, [1.0] * large.shape[1], 1, 5)]
    for name, X, y, prices, repeats, copies in cases:
        policy = AdaCOSClassifier(Costs(prices, false_positive=100, false_negative=1000))
        fit = seconds(lambda policy=policy, X=X, y=y: policy.fit(X, y), repeats)
        complete = X[~np.isnan(X).any(axis=1)]
        rows = np.tile(complete, (max(copies * len(X) // len(complete) // 5, 1), 1))
        acquire = seconds(lambda policy=policy, rows=rows: policy.acquire(rows), 3)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row(name, f"{fit:.2f} s", f"{len(rows) / acquire:,.0f} rows/s", f"{peak:.0f} MiB")
    console.print(table)

    probe = "import time; t = time.perf_counter(); import adacos; print(time.perf_counter() - t)"
    took = float(subprocess.run([sys.executable, "-c", probe], capture_output=True).stdout)
    console.print(f"import adacos: {took * 1000:.1f} ms")
    probe = probe.replace("import adacos", "from adacos import AdaCOSClassifier")
    took = float(subprocess.run([sys.executable, "-c", probe], capture_output=True).stdout)
    console.print(f"from adacos import AdaCOSClassifier: {took:.2f} s")


if __name__ == "__main__":
    main()

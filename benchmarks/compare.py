"""Is this checkout slower than another one? Processor time and peak memory, side by side.

    python -m benchmarks.compare ../before                 # the quick workloads
    python -m benchmarks.compare ../before fit_physionet --repeats 3

Each workload of `benchmarks.workloads` runs in a process of its own, in turn on the other checkout
and on this one, so that what else the machine does strikes both alike. The ratio is the geometric
mean over the pairs of runs, with its 95% interval. The exit status is 1 when the whole interval of
some workload lies above the limit: slower, and beyond noise. Where a workload holds rows out, the
change of their log-loss stands beside it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t as student

from benchmarks.workloads import LONG, WORKLOADS

HERE = Path(__file__).resolve().parents[1]


def ratio(before: list[float], after: list[float]) -> tuple[float, float, float]:
    """Geometric mean of after / before over pairs of runs, and its 95% interval."""
    logs = np.log(np.asarray(after)) - np.log(np.asarray(before))
    error = logs.std(ddof=1) / np.sqrt(len(logs)) * student.ppf(0.975, len(logs) - 1)
    low, middle, high = np.exp(logs.mean() + np.array([-error, 0.0, error]))
    return float(middle), float(low), float(high)


def measure(checkout: Path, workload: str) -> tuple[float, float, float]:
    """Seconds, MiB and held-out log-loss of one run with the package of a checkout."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.workloads", workload],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{workload} failed with {checkout}:\n{done.stderr}")
    seconds, peak, loss = map(float, done.stdout.split())
    return seconds, peak, loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="another checkout")
    parser.add_argument("workloads", nargs="*", help="names; the quick ones if none is given")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.2)
    given = parser.parse_args()
    if not (given.before / "src" / "adacos").is_dir():
        parser.error(f"{given.before} is no checkout: it has no src/adacos")
    unknown = set(given.workloads) - {*WORKLOADS, *LONG}
    if unknown or given.repeats < 2:
        parser.error(f"no such workload: {sorted(unknown)}" if unknown else "--repeats is >= 2")
    console, slower = Console(), []
    shown = Table(title=f"{given.repeats} pairs of runs, processor time", title_justify="left")
    for column in (
        "workload",
        "before",
        "after",
        "ratio",
        "95% interval",
        "peak memory",
        "log-loss",
    ):
        shown.add_column(column, justify="left" if column == "workload" else "right")
    for workload in given.workloads or WORKLOADS:
        pairs = [
            (measure(given.before, workload), measure(HERE, workload)) for _ in range(given.repeats)
        ]
        before, after = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
        middle, low, high = ratio(before[:, 0].tolist(), after[:, 0].tolist())
        shown.add_row(
            workload,
            f"{np.median(before[:, 0]):.3f} s",
            f"{np.median(after[:, 0]):.3f} s",
            f"{middle:.2f}",
            f"{low:.2f} to {high:.2f}",
            f"{before[:, 1].max():.0f} -> {after[:, 1].max():.0f} MiB",
            "" if np.isnan(after[0, 2]) else f"{100 * (after[0, 2] / before[0, 2] - 1):+.2f}%",
        )
        if low > given.limit:
            slower.append(workload)
    console.print(shown)
    if slower:
        raise SystemExit(f"slower than {given.limit} times, beyond noise: {', '.join(slower)}")


if __name__ == "__main__":
    main()

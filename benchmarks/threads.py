"""Fitting with the default number of BLAS threads beside one thread, on a machine kept busy.

    python -m benchmarks.threads [--busy 2]

Two other processes keep the cores busy. Each setting runs in a fresh process, in turn, several
times; the ratio of the best wall times is to stay below 1.3.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
FIT = """
import time, numpy as np
from adacos import AdaCOSClassifier, Costs
rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, {covariates}))
y = rng.random(len(X)) < 1 / (1 + np.exp(-X[:, :4].sum(axis=1)))
costs = Costs([1.0] * X.shape[1], false_positive=50, false_negative=100)
AdaCOSClassifier(costs).fit(X[:100], y[:100])
begin = time.perf_counter()
AdaCOSClassifier(costs).fit(X, y)
print(time.perf_counter() - begin)
"""


def seconds(rows: int, covariates: int, one_thread: bool) -> float:
    """Wall time of one fit in a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in THREADS}
    if one_thread:
        environment |= dict.fromkeys(THREADS, "1")
    code = FIT.format(rows=rows, covariates=covariates)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--busy", type=int, default=2, help="processes that keep the cores busy")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    table = Table("rows x covariates", "one thread", "default threads", "ratio")
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)
    ]
    try:
        for rows, covariates in ((768, 8), (3500, 12)):
            times = np.array(
                [
                    [seconds(rows, covariates, one) for one in (True, False)]
                    for _ in range(options.repeats)
                ]
            )
            one, default = times.min(axis=0)
            table.add_row(
                f"{rows} x {covariates}",
                f"{one:.2f} s",
                f"{default:.2f} s",
                f"{default / one:.2f}",
            )
    finally:
        for process in busy:
            process.kill()
    Console().print(table)


if __name__ == "__main__":
    main()

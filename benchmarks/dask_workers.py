"""AdaCOS on rows that two Dask workers hold, one of which is killed midway.

    python -m benchmarks.dask_workers --rows 1000000 --covariates 10 --memory 600MiB

Every partition is made by its worker, so that no process ever holds all rows as numbers. The policy
is fitted twice, once in peace and once with a worker killed after a few passes, and the largest
differences between the two are printed, with the time of each. Then all rows are scored, each
partition is let go of as soon as its answers are counted, and those of the first are compared with
what the policy answers in this process. Memory is the largest resident size.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster, as_completed

from adacos import AdaCOSClassifier, Costs, score_partitions
from adacos.models import large_fits
from benchmarks.large import draw_rows, resident

PARTITION_ROWS = 100_000


def partition(number: int, rows: int, p: int) -> pd.DataFrame:
    """One partition, always the same."""
    X, y = draw_rows(rows, p, seed=1000 + number)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(p)]).assign(y=y)


def collection(n: int, p: int) -> dd.DataFrame:
    """All rows, none of them made yet."""
    numbers = range(-(-n // PARTITION_ROWS))
    sizes = [min(PARTITION_ROWS, n - PARTITION_ROWS * number) for number in numbers]
    return dd.from_map(partition, list(numbers), sizes, p=p, meta=partition(0, 1, p))


def kill_one(client: Client, after: float) -> threading.Timer:
    """Kill one of the workers that this program started, some seconds from now."""
    pid = sorted(client.run(os.getpid).values())[0]
    timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def fitted(rows: dd.DataFrame, p: int) -> tuple[AdaCOSClassifier, float]:
    costs = Costs({f"x{k}": 1.0 for k in range(p)}, false_positive=100, false_negative=1000)
    begin = time.perf_counter()
    policy = AdaCOSClassifier(costs).fit(rows, "y")
    return policy, time.perf_counter() - begin


def scored(client: Client, rows: dd.DataFrame, policy: AdaCOSClassifier) -> Counter[int]:
    """How often each label was given."""
    labels = score_partitions(policy, rows)["label"].to_delayed()
    counts: Counter[int] = Counter()
    for _, own in as_completed(client.compute(labels), with_results=True):
        counts.update(own.value_counts().to_dict())
    return counts


def answered_alike(rows: dd.DataFrame, policy: AdaCOSClassifier) -> bool:
    """Whether the first partition is answered by a worker as it is here."""
    first = rows.partitions[:1]
    here = policy.acquire(first.drop(columns="y").compute())
    there = score_partitions(policy, first).compute()
    return all(
        np.array_equal(there[name], getattr(here, name))
        for name in ("label", "probability", "cost", "expected_cost", "stage")
    )


def forget_most_held() -> None:
    """Begin to measure anew the most that this process holds."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def most_held(client: Client) -> str:
    """The most that each worker has held."""
    return ", ".join(f"{one:,.0f} MiB" for one in client.run(resident, "VmHWM").values())


def compare_killed(
    client: Client, rows: dd.DataFrame, p: int, peace: AdaCOSClassifier, taken: float
) -> None:
    """Fit with a worker killed midway, and hold it against the fit in peace."""
    killer = kill_one(client, taken / 2)
    killed, slower = fitted(rows, p)
    killer.cancel()
    print(f"fit with a worker killed after {taken / 2:.0f} s: {slower:.0f} s wall")
    coefs = np.abs(killed.model_.coefs - peace.model_.coefs).max()
    difference = killed.model_.out_of_fold_log_odds - peace.model_.out_of_fold_log_odds
    print(
        f"largest difference: coefficients {coefs:.1e}, leave-out log-odds "
        f"{np.abs(difference).max():.1e}; same sets: {killed.sets_ == peace.sets_}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--covariates", type=int, default=30)
    parser.add_argument("--memory", default="1GiB", help="limit of each worker")
    parser.add_argument("--in-peace", action="store_true", help="kill no worker, fit once")
    given = parser.parse_args()
    n, p = given.rows, given.covariates
    large_fits.LARGE_ROWS = min(large_fits.LARGE_ROWS, n)
    dask.config.set({"distributed.worker.memory.terminate": 0.99})
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=given.memory, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        rows = collection(n, p)
        print(
            f"{n:,} rows × {p}: {8 * n * p / 2**20:,.0f} MiB as numbers; workers of {given.memory}"
        )
        peace, taken = fitted(rows, p)
        print(f"fit in peace: {taken:.0f} s wall")
        print("most that each worker held meanwhile:", most_held(client))
        if not given.in_peace:
            compare_killed(client, rows, p, peace, taken)
        client.run(forget_most_held)
        begin = time.perf_counter()
        counts = scored(client, rows, peace)
        print(f"{counts.total():,} rows scored in {time.perf_counter() - begin:.0f} s wall")
        print("most that each worker held meanwhile:", most_held(client))
        print(f"a partition answered as in this process: {answered_alike(rows, peace)}")
    print(f"most that this process held: {resident('VmHWM'):,.0f} MiB")


if __name__ == "__main__":
    main()

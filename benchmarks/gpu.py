"""A GPU beside the processor: scoring, and a fit on very many rows; what the device does at most.

    python -m benchmarks.gpu [--shared PATH] [--rows 1000000] [--compare] [--device cuda]

PATH is a folder with data/physionet2012.csv.gz; without it the model scored is that of synthetic
rows, said so. Times are wall time, the best of three after one to warm up (a fit: the second of
two), with the device synchronised. Decisions are compared with those of numpy on 100,000 rows.
With --compare the rows are also fitted in numpy, twice, the second time in blocks of another size:
sums that are rounded otherwise move a fit too, and that is how far two fits of one table may lie
apart. The ceilings are measured first: a copy within the device (bytes read and written), a
product of two matrices in double precision, and the launch of a kernel with next to nothing to do.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from adacos import AdaCOSClassifier, Costs, load_physionet2012, paper_folds
from adacos.models import large_fits
from benchmarks.large import draw_rows

COMPARED = 100_000
OTHER_BLOCKS = 100_000
PROFILED = 4_000_000


def seconds(work: Callable[[], Any], device: str, repeats: int = 3) -> float:
    """Wall time of the quickest of a few runs after one to warm up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def ceilings(device: str) -> None:
    """What the device does at most: bytes, operations and launches a second."""
    big = torch.rand(1 << 28 if device == "cuda" else 1 << 22, device=device, dtype=torch.float64)
    copy = seconds(big.clone, device)
    square = torch.rand((8192 if device == "cuda" else 512,) * 2, device=device).double()
    product = seconds(lambda: square @ square, device)
    small = torch.zeros(1, device=device)

    def launch() -> None:
        for _ in range(1000):
            small.add_(1.0)

    print(f"copy {2 * big.nbytes / copy / 1e12:.2f} TB/s")
    print(f"double-precision product {2 * len(square) ** 3 / product / 1e12:.1f} TFLOP/s")
    print(f"launch {seconds(launch, device) * 1e3:.1f} µs", flush=True)


def physionet(shared: Path) -> tuple[str, np.ndarray, AdaCOSClassifier]:
    """Complete rows and a fitted policy."""
    path = shared / "data" / "physionet2012.csv.gz"
    if path.exists():
        X, y, *_ = load_physionet2012(path, as_frame=False)
        train = paper_folds(X, y) != 0
        title, X, y = "PhysioNet", X[train], y[train]
    else:
        X, y = draw_rows(11_258, 30, seed=0)
        title = "synthetic, PhysioNet's size"
    costs = Costs([1.0] * X.shape[1], false_positive=100, false_negative=1000)
    policy = AdaCOSClassifier(costs)
    start = time.perf_counter()
    policy.fit(X, y)
    print(f"fit of {title} in numpy, {X.shape[0]:,} x 30: {time.perf_counter() - start:.1f} s")
    return title, X[~np.isnan(X).any(axis=1)], policy


def repeated(X: np.ndarray, n: int) -> np.ndarray:
    return np.tile(X, (-(-n // len(X)), 1))[:n]


def score(policy: AdaCOSClassifier, X: np.ndarray, n: int, device: str) -> None:
    """Rows a second, and whether decisions are those of numpy."""
    rows = torch.from_numpy(repeated(X, n)).to(device)
    took = seconds(lambda: policy.acquire(rows), device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    result = policy.acquire(rows)
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else float("nan")
    some = repeated(X, min(n, COMPARED))
    start = time.perf_counter()
    other = policy.acquire(some)
    rate = len(some) / (time.perf_counter() - start)
    own = result.rows(slice(0, len(some)))
    same = all(
        np.array_equal(getattr(own, name).cpu().numpy(), getattr(other, name))
        for name in ("label", "order", "stage")
    )
    gap = np.abs(own.probability.cpu().numpy() - other.probability).max()
    mean = float(result.acquired.sum()) / n
    print(
        f"| acquire, {n:,} rows | {took:.4f} s | {n / took / 1e6:.2f} million rows/s | numpy, one "
        f"thread: {rate / 1e6:.3f} | {mean:.1f} covariates a row | {peak:.1f} GiB | same "
        f"decisions: {same} | probabilities to {gap:.0e} |",
        flush=True,
    )


def apart(one: AdaCOSClassifier, other: AdaCOSClassifier) -> str:
    """How far two fits are apart, and what that does to fresh rows."""
    fresh, _ = draw_rows(COMPARED, 30, seed=1)
    answers, others = one.acquire(fresh), other.acquire(fresh)
    differ = (answers.order != others.order).any(axis=1) | (answers.label != others.label)
    gaps = {
        "coefficients": one.model_.coefs - other.model_.coefs,
        "leave-out log-odds": one.model_.out_of_fold_log_odds - other.model_.out_of_fold_log_odds,
        "probabilities": answers.probability - others.probability,
    }
    described = ", ".join(f"{name} {np.abs(gap).max():.0e}" for name, gap in gaps.items())
    return f"{described}, decisions of {differ.sum()} in {len(fresh):,} fresh rows"


def fit(n: int, device: str, compare: bool, profile: bool) -> None:
    """Wall time of a fit, and how far it is from that of numpy."""
    X, y = draw_rows(n, 30, seed=n)
    costs = Costs([1.0] * 30, false_positive=100, false_negative=1000)
    rows = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    policy = AdaCOSClassifier(costs)
    took = seconds(lambda: policy.fit(*rows), device, repeats=1)
    print(f"| fit, {n:,} x 30 | {took:.1f} s |", flush=True)
    if compare:
        start = time.perf_counter()
        other = AdaCOSClassifier(costs).fit(X, y)
        print(f"| the same in numpy | {time.perf_counter() - start:.1f} s |", flush=True)
        print(f"| apart from it | {apart(policy, other)} |", flush=True)
        large_fits.BLOCK_ROWS = OTHER_BLOCKS
        moved = AdaCOSClassifier(costs).fit(X, y)
        print(f"| numpy in blocks of {OTHER_BLOCKS:,} | {apart(moved, other)} |", flush=True)
    if profile:
        with cProfile.Profile() as profiler:
            policy.fit(*rows)
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=os.environ.get("ADACOS_SHARED", "../shared"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--scored", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-fit", action="store_true")
    parser.add_argument("--compare", action="store_true", help="also fit in numpy")
    parser.add_argument("--profile", action="store_true", help="where the time goes, as well")
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if given.device == "cuda" else "the processor"
    print(f"{name}, torch {torch.__version__}, numpy {np.__version__}", flush=True)
    ceilings(given.device)
    _, X, policy = physionet(Path(given.shared))
    for n in given.scored:
        score(policy, X, n, given.device)
    if given.profile:
        rows = torch.from_numpy(repeated(X, PROFILED)).to(given.device)
        with torch.profiler.profile() as profiler:
            policy.acquire(rows)
        kind = "cuda" if given.device == "cuda" else "cpu"
        print(profiler.key_averages().table(sort_by=f"{kind}_time_total", row_limit=20))
    if not given.no_fit:
        fit(given.rows, given.device, given.compare, given.profile)


if __name__ == "__main__":
    main()

"""What a GPU could do for a fit of PhysioNet's size: its work on rows, counted and timed in numpy.

    python -m benchmarks.roofline [--shared PATH] [--terabytes 4.17] [--teraflops 64] [--launch 9.9]

The last three are what a device does at most, as `python -m benchmarks.gpu` measures them: bytes
and operations a second, and microseconds to launch a kernel. The fit is run twice, as it is and
with arrays that count: every operation on arrays of 2,000 rows or more with its time, bytes and
floating-point operations. If all of these ran on the device at its ceilings, one launch each, the
fit would still take the time of what is left, the small solves and the interpreter.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from adacos import AdaCOSClassifier, Costs, load_physionet2012, paper_folds
from adacos.models import additive, large_fits, long_sequences
from benchmarks.large import draw_rows

MANY_ROWS = 2000
COUNTED_FUNCTIONS = (np.einsum, np.where, np.concatenate, np.hstack, np.column_stack)
tally: Counter[str] = Counter()
seconds = {"rows": 0.0}


def bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def count(arrays: list[Any], took: float, flops: int = 0) -> None:
    """One operation on these arrays, if some of them is long."""
    arrays = [array for array in arrays if isinstance(array, np.ndarray)]
    if any(max(array.shape, default=0) >= MANY_ROWS for array in arrays):
        tally["operations"] += 1
        tally["bytes"] += sum(array.nbytes for array in arrays)
        tally["flops"] += flops
        seconds["rows"] += took


class Counted(np.ndarray):
    """An array whose operations are counted, as are those of their results."""

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **given: Any
    ) -> Any:
        values = [bare(value) for value in inputs]
        if out is not None:
            given["out"] = tuple(bare(value) for value in out)
        start = time.perf_counter()
        result = getattr(ufunc, method)(*values, **given)
        took, flops = time.perf_counter() - start, 0
        if ufunc is np.matmul:
            flops = 2 * values[0].size * (values[1].shape[-1] if values[1].ndim > 1 else 1)
        count([*values, result], took, flops)
        if out is not None:
            return out[0]
        return result.view(Counted) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function: Any, types: Any, args: Any, given: Any) -> Any:
        start = time.perf_counter()
        result = super().__array_function__(function, types, args, given)
        if function in COUNTED_FUNCTIONS:
            count([self, result], time.perf_counter() - start)
        return result

    def __getitem__(self, key: Any) -> Any:
        start = time.perf_counter()
        result = super().__getitem__(key)
        if isinstance(result, np.ndarray) and not np.shares_memory(result, self):
            count([result, result], time.perf_counter() - start)
        return result

    def take(self, *args: Any, **given: Any) -> Any:
        start = time.perf_counter()
        result = super().take(*args, **given)
        count([result, result], time.perf_counter() - start)
        return result


class CountingNumpy:
    """numpy whose ones count: designs begin as ones."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def ones(*args: Any, **given: Any) -> Any:
        return np.ones(*args, **given).view(Counted)


def counting() -> None:
    """Let the rows of every fit from here on count."""
    prepare = large_fits.prepare

    def counted(*args: Any, **given: Any) -> Any:
        fits = prepare(*args, **given)
        names = "complete", "columns", "y", "weight"
        return replace(fits, **{name: getattr(fits, name).view(Counted) for name in names})

    large_fits.prepare = counted
    additive.np = long_sequences.np = CountingNumpy()  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=os.environ.get("ADACOS_SHARED", "../shared"))
    parser.add_argument("--terabytes", type=float, default=4.17)
    parser.add_argument("--teraflops", type=float, default=64.0)
    parser.add_argument("--launch", type=float, default=9.9)
    given = parser.parse_args()
    path = Path(given.shared) / "data" / "physionet2012.csv.gz"
    if path.exists():
        X, y, *_ = load_physionet2012(path, as_frame=False)
        train = paper_folds(X, y) != 0
        X, y = X[train], y[train]
    else:
        print("no PhysioNet here: synthetic rows of its size")
        X, y = draw_rows(11_258, 30, seed=0)
    costs = Costs([1.0] * X.shape[1], false_positive=100, false_negative=1000)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        AdaCOSClassifier(costs).fit(X, y)
        times.append(time.perf_counter() - start)
    counting()
    AdaCOSClassifier(costs).fit(X, y)
    fit, rows = min(times), seconds["rows"]
    device = {
        "bytes": tally["bytes"] / (given.terabytes * 1e12),
        "flops": tally["flops"] / (given.teraflops * 1e12),
        "launches": tally["operations"] * given.launch * 1e-6,
    }
    print(f"fit of {len(y):,} x {X.shape[1]} in numpy, one thread: {fit:.2f} s")
    print(
        f"{tally['operations']:,} operations on rows: {rows:.2f} s, "
        f"{tally['bytes'] / 1e9:.1f} GB, {tally['flops'] / 1e9:.1f} GFLOP"
    )
    print("on the device: " + ", ".join(f"{name} {took:.4f} s" for name, took in device.items()))
    print(f"with that in place of numpy: {fit - rows + max(device.values()):.2f} s")


if __name__ == "__main__":
    main()

"""Time and peak memory of the group-lasso entry order at the sizes of Pima and PhysioNet.

One thread: OMP_NUM_THREADS=1 python benchmarks/group_lasso.py [--shared FOLDER]

FOLDER holds data/pima.csv and data/physionet2012.csv.gz; without it only synthetic tables are run.
The time is the best of three; the peak memory is what is allocated besides the table.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.preprocessing import SplineTransformer

from adacos.kernels.group_lasso import entry_order

Array = NDArray[np.float64]
SIZE = 10
PIMA_COSTS = np.array([1, 17.61, 1, 1, 22.78, 1, 1, 1])


def spline_columns(covariates: Array) -> Array:
    X = SplineTransformer(n_knots=SIZE - 2, degree=3).fit_transform(covariates)
    X -= X.mean(axis=0)
    std = X.std(axis=0)
    return np.where(std > 1e-12, X / np.where(std > 1e-12, std, 1.0), 0.0)


def synthetic(n: int, p: int) -> tuple[Array, Array]:
    """Correlated Gaussian covariates; additive effects that fall with the index."""
    rng = np.random.default_rng(0)
    covariates = 0.5 * rng.normal(size=(n, 1)) + rng.normal(size=(n, p))
    eta = (np.sin(covariates) / (1 + np.arange(p))).sum(axis=1)
    return covariates, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


def real(path: Path) -> tuple[Array, Array]:
    table = pd.read_csv(path)
    table = table[table["test_fold"] != 0]
    covariates = table.drop(columns=["y", "test_fold"])
    return covariates.fillna(covariates.mean()).to_numpy(float), table["y"].to_numpy(float)


def cases(shared: Path | None) -> Iterator[tuple[str, Array, Array, Array]]:
    yield "synthetic, Pima size", *synthetic(614, 8), np.ones(8)
    yield "synthetic, PhysioNet size", *synthetic(11_700, 30), np.ones(30)
    if shared is not None:
        yield "Pima, fold 0", *real(shared / "data" / "pima.csv"), PIMA_COSTS
        yield "PhysioNet, fold 0", *real(shared / "data" / "physionet2012.csv.gz"), np.ones(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shared", type=Path, help="folder with data/pima.csv and others")
    print(f"{'case':<28}{'rows':>8}{'columns':>9}{'seconds':>10}{'peak MB':>10}  order")
    for name, covariates, y, weights in cases(parser.parse_args().shared):
        X, groups = spline_columns(covariates), np.repeat(np.arange(len(weights)), SIZE)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            result = entry_order(X, y, groups, weights)
            seconds.append(time.perf_counter() - start)
        tracemalloc.start()
        entry_order(X, y, groups, weights)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(
            f"{name:<28}{len(X):>8}{X.shape[1]:>9}{min(seconds):>10.3f}{peak:>10.1f}  "
            + " ".join(map(str, result.order))
        )


if __name__ == "__main__":
    main()

"""Fixed workloads, each run in a process of its own: processor time and peak memory.

    python -m benchmarks.workloads acquire_pima     # one line: seconds, MiB, held-out log-loss
    python -m benchmarks.workloads --list

`benchmarks.compare` runs them on two checkouts. Every workload is made of what the package exports,
so that an older checkout can run it too. The log-loss is that of the rows held out, averaged over
the sets of the sequence, and nan where a workload holds none out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from adacos import (
    AdaCOSClassifier,
    Costs,
    LogisticGAM,
    load,
    load_physionet2012,
    load_pima,
    paper_folds,
    save,
)
from benchmarks.packages import peak

Work = Callable[[], Any]
SHARED = Path(os.environ.get("ADACOS_SHARED", "../shared"))


def table(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated covariates of which the first few tell something, in curves."""
    rng = np.random.default_rng([n, p])
    X = rng.standard_normal((n, p))
    X += 0.5 * X[:, [0]]
    log_odds = np.sin(X[:, :4] * 1.5).sum(axis=1) + 0.5 * X[:, 0] - 0.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


def fit_synthetic(n: int, p: int) -> Work:
    X, y = table(n, p)
    costs = Costs([1.0] * p, false_positive=100, false_negative=1000)
    return lambda: AdaCOSClassifier(costs).fit(X, y)


def fit_classes(n: int, p: int, n_classes: int) -> Work:
    """Graded findings, 0 to 3, some of which each class raises, as in the table of dermatology."""
    rng = np.random.default_rng([n, p, n_classes])
    y = rng.integers(0, n_classes, n)
    raised = 2.5 * (rng.random((n_classes, p)) < 0.25)
    X = np.clip(np.round(raised[y] + 0.8 * rng.standard_normal((n, p))), 0, 3)
    costs = Costs([1.0] * p, misclassification=100 * (1 - np.eye(n_classes)))
    return lambda: AdaCOSClassifier(costs).fit(X, y)


def load_classes(n: int, p: int, n_classes: int) -> Work:
    rng = np.random.default_rng([n, p, n_classes])
    X = rng.standard_normal((n, p))
    scores = 2 * X @ rng.standard_normal((p, n_classes)) + rng.gumbel(size=(n, n_classes))
    costs = Costs([1.0] * p, misclassification=20 * (1 - np.eye(n_classes)))
    policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(X, scores.argmax(axis=1))
    folder = TemporaryDirectory()
    path = Path(folder.name) / "model.adacos"
    save(policy, path)

    def read() -> None:
        load(path)
        folder.cleanup()

    return read


def pima() -> tuple[np.ndarray, np.ndarray, AdaCOSClassifier]:
    data = load_pima(as_frame=False)
    train = paper_folds(data.X, data.y) != 0
    costs = Costs(list(data.prices.values()), false_positive=100, false_negative=1000)
    return data.X[train], data.y[train], AdaCOSClassifier(costs)


def fit_pima() -> Work:
    X, y, policy = pima()
    return lambda: policy.fit(X, y)


def acquire_pima() -> Work:
    X, y, policy = pima()
    policy.fit(X, y)
    rows = np.tile(X, (100, 1))[:60_000]
    return lambda: policy.acquire(rows)


def acquire_pima_with_missing() -> Work:
    X, y, policy = pima()
    policy.fit(X, y)
    rows = np.tile(X, (40, 1))[:20_000]
    rows[np.random.default_rng(0).random(rows.shape) < 0.2] = np.nan
    return lambda: policy.acquire(rows)


def consultation_pima() -> Work:
    X, y, policy = pima()
    policy.fit(X, y)
    names = policy.encoder_.names

    def play() -> None:
        for row in X[:50]:
            consultation = policy.consultation()
            step = consultation.next()
            while getattr(step, "covariates", ()):
                consultation.observe({n: float(row[names.index(n)]) for n in step.covariates})
                step = consultation.next()

    return play


def gam_pima() -> Work:
    X, y, _ = pima()
    return lambda: LogisticGAM().fit(X, y)


def physionet(fold: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, AdaCOSClassifier]:
    """All rows, their classes, which of them are for training, and a policy."""
    X, y, *_ = load_physionet2012(SHARED / "data" / "physionet2012.csv.gz", as_frame=False)
    costs = Costs([1.0] * X.shape[1], false_positive=100, false_negative=1000)
    return X, y, paper_folds(X, y) != fold, AdaCOSClassifier(costs)


def fit_physionet(fold: int) -> Work:
    X, y, train, policy = physionet(fold)

    def fit() -> Callable[[], float]:
        policy.fit(X[train], y[train])
        return held_out

    def held_out() -> float:
        u = policy.model_.log_odds_by_set(policy.encoder_.transform(X[~train]))
        return float(np.mean(np.logaddexp(0.0, u) - y[~train, None] * u))

    return fit


def acquire_physionet() -> Work:
    X, y, train, policy = physionet()
    X, y = X[train], y[train]
    policy.set_params(strengths="common", cv=2).fit(X, y)
    complete = X[~np.isnan(X).any(axis=1)]
    rows = np.tile(complete, (-(-60_000 // len(complete)), 1))[:60_000]
    return lambda: policy.acquire(rows)


# Quick ones first; those of the second table are asked for by name.
WORKLOADS: dict[str, Callable[[], Work]] = {
    "gam_pima": gam_pima,
    "fit_pima": fit_pima,
    "acquire_pima": acquire_pima,
    "acquire_pima_with_missing": acquire_pima_with_missing,
    "consultation_pima": consultation_pima,
    "fit_200x20": lambda: fit_synthetic(200, 20),
}
LONG: dict[str, Callable[[], Work]] = {
    "fit_200x40": lambda: fit_synthetic(200, 40),
    "fit_200x80": lambda: fit_synthetic(200, 80),
    "fit_200x160": lambda: fit_synthetic(200, 160),
    "fit_1000x100": lambda: fit_synthetic(1000, 100),
    "fit_1000x200": lambda: fit_synthetic(1000, 200),
    "fit_5000x500": lambda: fit_synthetic(5000, 500),
    "fit_10000x20": lambda: fit_synthetic(10_000, 20),
    "fit_physionet": lambda: fit_physionet(0),
    "fit_physionet_1": lambda: fit_physionet(1),
    "fit_physionet_2": lambda: fit_physionet(2),
    "acquire_physionet": acquire_physionet,
    "fit_358x34_6_classes": lambda: fit_classes(358, 34, 6),
    "load_600x6_15_classes": lambda: load_classes(600, 6, 15),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=[*WORKLOADS, *LONG])
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if given.list or given.name is None:
        print("\n".join([*WORKLOADS, *LONG]))
        return
    work = {**WORKLOADS, **LONG}[given.name]()
    begin = time.process_time()
    judge = work()
    taken = time.process_time() - begin
    memory = peak()
    loss = judge() if callable(judge) else float("nan")
    print(f"{taken:.4f} {memory:.1f} {loss:.6f}")


if __name__ == "__main__":
    main()

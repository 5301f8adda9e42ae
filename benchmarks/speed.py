"""Speed and memory beside other packages, in one run: the table of `docs/benchmarks.md`.

    python -m benchmarks.speed [--shared PATH] [--install] [--write docs/benchmarks.md]

PATH is a folder with data/physionet2012.csv.gz; without it a synthetic table of that size is used
and said so. Every fit runs in a process of its own, packages in turn, on one thread; times are
processor time. A peer is looked for in build/peers/NAME, which --install makes and fills, then in
this environment; one that is in neither is left out and said so. R's mgcv is used where Rscript is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adacos import LogisticGAM, load_physionet2012, load_pima, paper_folds
from adacos.kernels.group_lasso import entry_order
from adacos.tables.imputer import GaussianImputer
from benchmarks.large import draw_rows

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "build" / "peers"
BEGIN, END = "<!-- speed: python -m benchmarks.speed -->", "<!-- end of speed -->"
LAM, RIDGE, PATH_LENGTH = 6.0, 1e-3, 100
# Packages of each workload, ours first, and what says how good a result is.
WORKLOADS = {
    "equal_strengths": (("adacos", "glum", "pygam"), "penalised objective"),
    "chosen_strengths": (("adacos", "mgcv", "interpret", "lightgbm"), "held-out log-loss"),
    "group_lasso": (("adacos", "adelie", "skglm"), "mean objective"),
}
TITLES = {
    "equal_strengths": "`LogisticGAM` at equal strengths",
    "chosen_strengths": "`LogisticGAM`, strengths chosen",
    "group_lasso": f"group-lasso path, {PATH_LENGTH} λ",
}
# Workloads of `benchmarks.workloads` that have no peer; rows that those of `acquire` score.
OWN = {
    "fit_pima": "AdaCOS fit, Pima",
    "acquire_pima": "`acquire`, Pima",
    "fit_physionet": "AdaCOS fit, PhysioNet",
    "acquire_physionet": "`acquire`, PhysioNet",
}
SCORED = 60_000
MANY = 1_000_000
# Seconds from which on a fit is not repeated.
LONG = 5.0
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Table(NamedTuple):
    """Complete rows to fit and rows held out."""

    title: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    prices: np.ndarray


def pima() -> Table:
    X, y, prices, *_ = load_pima(as_frame=False)
    train = paper_folds(X, y) != 0
    return Table("Pima", X[train], y[train], X[~train], y[~train], np.array([*prices.values()]))


def physionet(shared: Path) -> Table:
    path = shared / "data" / "physionet2012.csv.gz"
    if path.exists():
        X, y, *_ = load_physionet2012(path, as_frame=False)
        train = paper_folds(X, y) != 0
        imputer = GaussianImputer().fit(X[train])
        rows = imputer.transform(X[train]), y[train], X[~train], y[~train]
        return Table("PhysioNet", *rows, np.ones(X.shape[1]))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 30)) @ (np.eye(30) + 0.2 * rng.standard_normal((30, 30)))
    y = (rng.random(len(X)) < 1 / (1 + np.exp(2 - np.sin(X[:, :5]).sum(axis=1)))).astype(int)
    rows = X[:11_258], y[:11_258], X[11_258:], y[11_258:]
    return Table("synthetic, PhysioNet's size", *rows, np.ones(30))


def many_rows() -> Table:
    X, y = draw_rows(1_100_000, 10, seed=0)
    return Table("1,000,000 × 10", X[:MANY], y[:MANY], X[MANY:], y[MANY:], np.ones(10))


def arrays(table: Table, workload: str) -> dict[str, Any]:
    """What `benchmarks.packages` reads."""
    X, y = np.asarray(table.X, dtype=float), np.asarray(table.y, dtype=float)
    given: dict[str, Any] = {"X": X, "y": y, "X_test": table.X_test, "y_test": table.y_test}
    if workload == "chosen_strengths":
        return given
    gam = LogisticGAM(n_splines=20, smoothness=LAM, ridge=RIDGE, cv=None).fit(X[:500], y[:500])
    gam.fit(X, y)
    basis, encoded = gam.basis_, gam.encoder_.transform(X)
    if workload == "equal_strengths":
        penalty = np.where(basis.linear, RIDGE, LAM)[basis.term]
        columns = basis.transform(encoded)
        return given | {"columns": columns, "penalty": penalty, "lam": LAM, "ridge": RIDGE}
    columns, group = basis.standardised(encoded, np.ones(len(y)))
    present, groups, sizes = np.unique(group, return_inverse=True, return_counts=True)
    weights = table.prices[present] * np.sqrt(sizes)
    entered = entry_order(columns, y, groups, weights).lam
    lams = np.geomspace(entered.max(), max(entered.min(), 0.01 * entered.max()), PATH_LENGTH)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    path = {"columns": columns, "groups": groups, "starts": starts, "weights": weights}
    return given | path | {"lams": lams}


def interpreter(package: str) -> str | None:
    """Python of the environment that has a package, None where none has."""
    own = PEERS / package / "bin" / "python"
    if own.exists():
        return str(own)
    if package == "mgcv":
        probe = ["Rscript", "-e", "library(mgcv)"]
    else:
        probe = [sys.executable, "-c", f"import {package}"]
    try:
        found = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        found = False
    return sys.executable if found else None


def install() -> None:
    """An environment for each peer that comes as a Python package."""
    wanted = {name for packages, _ in WORKLOADS.values() for name in packages}
    for name in sorted(wanted - {"adacos", "mgcv"}):
        if not (PEERS / name).exists():
            subprocess.run([sys.executable, "-m", "venv", PEERS / name], check=True)
            pip = [PEERS / name / "bin" / "python", "-m", "pip", "install", "--quiet"]
            if subprocess.run([*pip, name, "scikit-learn"], check=False).returncode:
                print(f"{name} cannot be installed here; it is left out", file=sys.stderr)


def one(python: str, package: str, workload: str, rows: Path) -> dict[str, float] | None:
    """Seconds, MiB and quality of one package, None where it fails."""
    done = subprocess.run(
        [python, ROOT / "benchmarks" / "packages.py", package, workload, rows],
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{package}, {workload}: {done.stderr.strip()[-400:]}", file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def next_to_peers(
    table: Table, workload: str, repeats: int, only: tuple[str, ...] | None = None
) -> list[str]:
    """Rows of the table for one workload; packages take turns, the least time of each counts."""
    packages, quality = WORKLOADS[workload]
    packages = packages if only is None else only
    pythons = {name: found for name in packages if (found := interpreter(name))}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        np.savez(rows, **arrays(table, workload))
        for turn in range(repeats):
            for name, python in pythons.items():
                # A failure would fail again, and noise is no matter in what takes long.
                if turn == 0 or (runs[name] and runs[name][0]["seconds"] < LONG):
                    found = one(python, name, workload, rows)
                    runs[name] += [found] if found else []
    lines = []
    own = min(run["seconds"] for run in runs["adacos"])
    for name in packages:
        if not runs.get(name):
            lines.append(f"| {TITLES[workload]}, {table.title} | {name} | not here | | | |")
            continue
        seconds = min(run["seconds"] for run in runs[name])
        good = runs[name][0]["good"]
        what = "" if np.isnan(good) else f"{quality} {good:.5f}"
        lines.append(
            f"| {TITLES[workload]}, {table.title} | {name} | {seconds:.3g} s | "
            f"{seconds / own:.2g} | {max(run['peak'] for run in runs[name]):.0f} MiB | {what} |"
        )
    return lines


def alone(workload: str, shared: Path, repeats: int) -> str:
    """Row of the table for a workload without peers."""
    done = [
        subprocess.run(
            [sys.executable, "-m", "benchmarks.workloads", workload],
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD, "ADACOS_SHARED": str(shared)},
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(repeats)
    ]
    if any(run.returncode for run in done):
        return f"| {OWN[workload]} | adacos | no data here | | | |"
    seconds, peak, loss = np.array([[*map(float, run.stdout.split())] for run in done]).T
    least = seconds.min()
    rate = f"{SCORED / least:,.0f} rows/s" if workload.startswith("acquire") else ""
    what = rate if np.isnan(loss[0]) else f"held-out log-loss {loss[0]:.5f}"
    return f"| {OWN[workload]} | adacos | {least:.3g} s | | {peak.max():.0f} MiB | {what} |"


def measured() -> str:
    """When and on which commit a table is measured."""
    command = ["git", "describe", "--always", "--dirty"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    commit = said.stdout.strip() or "unknown"
    return f"Measured on {date.today():%Y-%m-%d} at commit {commit}."


def write(page: Path, lines: list[str]) -> None:
    """Replace the text between the marks by the table, with its date and commit."""
    lines = [*lines, "", measured()]
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=os.environ.get("ADACOS_SHARED", "../shared"))
    parser.add_argument("--install", action="store_true", help="make the peers' environments")
    parser.add_argument("--write", type=Path, help="page to write the table into")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.install:
        install()
    shared = Path(given.shared).resolve()
    lines = ["| workload | package | time | ratio | peak memory | result |"]
    lines += ["|---|---|---:|---:|---:|---|"]

    def keep(rows: list[str]) -> None:
        lines.extend(rows)
        print("\n".join(rows), flush=True)
        if given.write:
            write(given.write, lines)

    for table in (pima(), physionet(shared)):
        for workload in WORKLOADS:
            keep(next_to_peers(table, workload, given.repeats))
    # Cross-validation of the boosted peers would take hours.
    keep(next_to_peers(many_rows(), "chosen_strengths", given.repeats, ("adacos", "mgcv")))
    for workload in OWN:
        keep([alone(workload, shared, given.repeats)])


if __name__ == "__main__":
    main()

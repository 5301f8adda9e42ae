"""Total cost of AdaCOS where covariates have heavy tails, beside equal knots over the range.

    python -m benchmarks.tails simulated --seeds 10 -j 16 --out build/tails
    python -m benchmarks.tails tables --tables FOLDER --seeds 10 -j 16 --out build/tails
    python -m benchmarks.tails tables --tables FOLDER --maps 0.25 0.5 1 --out build/other

Equal knots are this library without `adacos.models.maps`. Simulated tables have 2,000 rows to train
on and 30,000 to decide, five covariates with correlated ranks, and an effect that is linear in the
normal scores or in the values themselves, by their interquartile range; a third policy sees the
normal scores in place of the values. Tables are the bundled ones and those of two classes in a
folder (`NAME.csv`, class in `y`, costs in `NAME.json` or 1 each), at most `MOST_ROWS` rows a seed;
each seed is a fresh five-fold split. Errors cost the stated multiples of the price of everything.
One part, a seed of a distribution or a fold of a table, is a job; its costs are kept in `--out`,
where a stopped run resumes. A ratio of total costs is a geometric mean over the errors, with a 95%
interval over rows, each averaged over the seeds. `--maps` are LIGHT, HEAVY and MOST of
`adacos.models.maps` in place of the library's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats
from scipy.special import expit, ndtr, ndtri

from adacos import AdaCOSClassifier, Costs, load_heart, load_pima, load_wisconsin
from adacos.metrics import total_costs
from adacos.models import basis, maps
from adacos.models.maps import MonotoneMaps
from benchmarks.lookahead import folds, ratio

LOADERS = {"pima": load_pima, "heart": load_heart, "wisconsin": load_wisconsin}
# Cost of a false positive in prices of everything, and of a miss in false positives.
ERRORS = ((4, 1), (16, 1), (4, 10))
MOST_ROWS = 8_000
TRAINED, DECIDED, COVARIATES = 2_000, 30_000, 5
# From shares to values; the last two spoil a single training row.
DISTRIBUTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "log-normal 2": stats.lognorm(2).ppf,
    "Pareto 1.5": stats.pareto(1.5).ppf,
    "t2": stats.t(2).ppf,
    "log-normal 1": stats.lognorm(1).ppf,
    "exponential": stats.expon.ppf,
    "normal": stats.norm.ppf,
    "uniform": stats.uniform.ppf,
    "one row at 1e4": stats.norm.ppf,
    "one row at 1e9": stats.uniform.ppf,
}
SPOILED = {"one row at 1e4": 1e4, "one row at 1e9": 1e9}
EFFECTS = ("ranks", "values")
EQUAL, MAPPED, SCORES = "equal knots", "mapped", "normal scores"


class Table(NamedTuple):
    """A table and its costs."""

    X: pd.DataFrame
    y: np.ndarray
    prices: dict[str, float]
    panels: dict | None


class Part(NamedTuple):
    """What one job decides: a fold of a table, or the one seed of a distribution and effect."""

    name: str
    seed: int
    fold: int

    def path(self, folder: Path) -> Path:
        """Where its costs are kept."""
        return folder / f"{self.name.replace(' ', '_')}.{self.seed}.{self.fold}.npz"


@contextmanager
def equal_knots() -> Iterator[None]:
    """This library without maps."""
    fit_maps = basis.fit_maps
    basis.fit_maps = lambda *_: MonotoneMaps.none()
    try:
        yield
    finally:
        basis.fit_maps = fit_maps


def decided(
    train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame, truth: np.ndarray, table: Table
) -> np.ndarray:
    """Total cost (errors, rows to be decided); one fit for all."""
    everything = sum(table.prices.values())
    everything += sum(shared for shared, _ in (table.panels or {}).values())
    found, fitted = [], None
    for false_positive, times in ERRORS:
        amount = float(false_positive * everything)
        costs = Costs(
            table.prices,
            false_positive=amount,
            false_negative=times * amount,
            panels=table.panels,
        )
        policy = AdaCOSClassifier(costs)
        fitted = policy.fit(train, y) if fitted is None else policy.from_model(fitted)
        found.append(total_costs(policy.acquire(test), truth, costs))
    return np.array(found)


def load(name: str, folder: Path | None) -> Table:
    """A bundled table, or one of the folder."""
    if name in LOADERS:
        data = LOADERS[name]()
        return Table(data.X, np.asarray(data.y), dict(data.prices), data.panels)
    assert folder is not None
    path = next(path for path in folder.glob(f"{name}.csv*"))
    X = pd.read_csv(path)
    y = X.pop("y").to_numpy()
    described = folder / f"{name}.json"
    costs = json.loads(described.read_text()) if described.exists() else {}
    return Table(X, y, costs.get("prices", dict.fromkeys(X, 1.0)), costs.get("panels") or None)


def work(part: Part, folder: Path | None, out: Path, constants: list[float] | None) -> None:
    """Costs of one part, with these constants of the maps or the library's."""
    if constants is not None:
        maps.LIGHT, maps.HEAVY, maps.MOST = constants
    if part.name.rsplit(" ", 1)[-1] in EFFECTS:
        simulated_part(part, out)
    else:
        table_part(part, folder, out)


def table_part(part: Part, folder: Path | None, out: Path) -> None:
    """Costs of one fold of a table by both."""
    table = load(part.name, folder)
    rng = np.random.default_rng([part.seed, 29])
    kept = np.sort(rng.permutation(len(table.y))[:MOST_ROWS])
    X, y = table.X.iloc[kept].reset_index(drop=True), table.y[kept]
    test = folds(y, rng) == part.fold
    rows = X[~test], y[~test], X[test], y[test], table
    with equal_knots():
        before = decided(*rows)
    np.savez(part.path(out), rows=kept[test], **{EQUAL: before, MAPPED: decided(*rows)})


def simulated_part(part: Part, out: Path) -> None:
    """Costs of one simulated table by all three."""
    name, effect = part.name.rsplit(" ", 1)
    rng = np.random.default_rng([part.seed, 16])
    correlation = 0.7 * np.eye(COVARIATES) + 0.3
    scores = rng.multivariate_normal(
        np.zeros(COVARIATES), correlation, TRAINED + DECIDED, method="cholesky"
    )
    x = DISTRIBUTIONS[name](ndtr(scores))
    acting = scores
    if effect == "values":
        low, middle, high = DISTRIBUTIONS[name](np.array([0.25, 0.5, 0.75]))
        acting = 1.35 * (x - middle) / (high - low)
    likely = expit(acting @ [1.2, 1.0, -0.8, 0.6, 0.0] - 1)
    y = (rng.random(len(x)) < likely).astype(int)
    x[0] = SPOILED.get(name, x[0])
    train, test = x[:TRAINED], x[TRAINED:]
    order = np.sort(train, axis=0)
    level = (np.arange(TRAINED) + 0.5) / TRAINED
    ranks = [
        np.column_stack(
            [ndtri(np.interp(rows[:, k], order[:, k], level)) for k in range(len(x[0]))]
        )
        for rows in (train, test)
    ]
    names = [f"x{k}" for k in range(COVARIATES)]
    table = Table(pd.DataFrame(), y, dict.fromkeys(names, 1.0), None)
    known, truth = y[:TRAINED], y[TRAINED:]
    rows = [pd.DataFrame(values, columns=names) for values in (train, test, *ranks)]
    with equal_knots():
        before = decided(rows[0], known, rows[1], truth, table)
        scored = decided(rows[2], known, rows[3], truth, table)
    after = decided(rows[0], known, rows[1], truth, table)
    numbers = np.arange(DECIDED) + DECIDED * part.seed
    np.savez(part.path(out), rows=numbers, **{EQUAL: before, MAPPED: after, SCORES: scored})


def print_lines(name: str, parts: list[Part], out: Path) -> float | None:
    """One line: each policy beside equal knots. The mapped one's ratio."""
    total: dict[str, dict[int, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    there = [part for part in parts if part.path(out).exists()]
    for part in there:
        with np.load(part.path(out)) as found:
            for policy in set(found) - {"rows"}:
                for row, costs in zip(found["rows"].tolist(), found[policy].T, strict=True):
                    total[policy][row].append(costs)
    if not there:
        return None
    means = {
        policy: np.array([np.mean(costs, axis=0) for costs in rows.values()]).T
        for policy, rows in total.items()
    }
    line, mapped = f"{name:22s} {len(there):3d} parts", 1.0
    for policy in (MAPPED, SCORES):
        if policy in means:
            middle, low, high, each = ratio(means[EQUAL], means[policy])
            mapped = middle if policy == MAPPED else mapped
            listed = " ".join(f"{one:.3f}" for one in each)
            line += f"   {policy} {middle:.3f} [{low:.3f}, {high:.3f}] ({listed})"
    print(line, flush=True)
    return mapped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("simulated", "tables"))
    parser.add_argument("--seeds", type=int, default=2, help="fresh splits or simulated tables")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--tables", type=Path, help="a folder of tables")
    parser.add_argument("--maps", nargs=3, type=float, metavar=("LIGHT", "HEAVY", "MOST"))
    parser.add_argument("--only", nargs="+", help="some of the tables, or distributions")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/tails"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    start, seeds = time.perf_counter(), range(given.first_seed, given.first_seed + given.seeds)
    if given.what == "simulated":
        names = [f"{d} {effect}" for d in given.only or DISTRIBUTIONS for effect in EFFECTS]
        n_folds = 1
    else:
        found = [] if given.tables is None else given.tables.glob("*.csv*")
        names = given.only or [*LOADERS, *sorted({path.name.split(".")[0] for path in found})]
        names = [name for name in names if len(np.unique(load(name, given.tables).y)) == 2]
        n_folds = 5
    parts = {
        name: [Part(name, seed, fold) for seed in seeds for fold in range(n_folds)]
        for name in names
    }
    todo = [part for own in parts.values() for part in own if not part.path(given.out).exists()]
    # Seeds go round, so that a run that is stopped has something of every table.
    todo.sort(key=lambda part: (part.seed, part.fold))
    Parallel(n_jobs=given.jobs)(
        delayed(work)(part, given.tables, given.out, given.maps) for part in todo
    )
    ratios = [print_lines(name, own, given.out) for name, own in parts.items()]
    middle = np.exp(np.mean([np.log(one) for one in ratios if one is not None]))
    print(f"geometric mean {middle:.3f}   {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

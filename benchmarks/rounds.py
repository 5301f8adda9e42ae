"""What it saves to know that results are waited for: Heart with Turney's panels and delay.

AdaCOS with a cost of rounds beside AdaCOS that ignores it, asks one covariate after the other, and
is charged for every wait. Both decide with the same fitted models; ten times five folds, paired by
row. `python -m benchmarks.rounds` prints the mean total costs and the paired difference.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.model_selection import StratifiedKFold

from adacos import AdaCOSClassifier, Costs, load_heart
from adacos.metrics import total_costs

# Taken to be there at once; the results of the other tests are delayed.
IMMEDIATE = ("age", "sex", "cp", "trestbps")


def compare(error: float, delay: float, splits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Total cost of each row with the delay counted and ignored, (splits, rows), and rounds."""
    data = load_heart()
    X, y = data.X, np.asarray(data.y)
    options = {"false_positive": error, "false_negative": error, "panels": data.panels}
    waiting = Costs(data.prices, **options, round_cost=delay, immediate=IMMEDIATE)
    at_once = Costs(data.prices, **options)
    delayed = np.array([name not in IMMEDIATE for name in X.columns])
    counted, ignored, rounds = (np.empty((splits, len(y))) for _ in range(3))
    for split in range(splits):
        folds = StratifiedKFold(5, shuffle=True, random_state=split)
        for train, test in folds.split(X, y):
            policy = AdaCOSClassifier(waiting).fit(X.iloc[train], y[train])
            result = policy.acquire(X.iloc[test])
            counted[split, test] = total_costs(result, y[test], waiting)
            ignoring = AdaCOSClassifier(at_once).from_model(policy)
            other = ignoring.acquire(X.iloc[test])
            rounds[split, test] = other.acquired[:, delayed].sum(axis=1)
            ignored[split, test] = total_costs(other, y[test], at_once)
            ignored[split, test] += delay * rounds[split, test]
    return counted, ignored, rounds


def main() -> None:
    """Print the comparison for some costs of errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--delay", type=float, default=50.0)
    parser.add_argument("--errors", type=float, nargs="+", default=[400.0, 1000.0, 2000.0, 4000.0])
    options = parser.parse_args()
    for error in options.errors:
        counted, ignored, rounds = compare(error, options.delay, options.splits)
        # Splits share their rows: the rows are the sample.
        saved = (ignored - counted).mean(axis=0)
        print(
            f"error {error:g}, delay {options.delay:g}: counted {counted.mean():.2f}, ignored "
            f"{ignored.mean():.2f}, which waits {rounds.mean():.2f} times; saved "
            f"{saved.mean():.2f} ± {saved.std(ddof=1) / np.sqrt(len(saved)):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""How long the analysis of uncertain costs takes, next to one fit.

    python -m benchmarks.sensitivity

AdaCOS is fitted on four fifths of Pima and of Heart, and `sensitivity` runs on the last fifth with
all its defaults: every cost by half of it either way, ranges to a millionth, 50 draws, a map.
Processor time, median of three; the aim is that all of it takes less than ten fits.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from adacos import AdaCOSClassifier, Costs, covariate_worth, load_heart, load_pima, sensitivity

TABLES: dict[str, tuple[Callable[[], Any], float, float]] = {
    "pima": (load_pima, 100, 1000),
    "heart": (load_heart, 100, 100),
}


def seconds(call: Callable[[], Any]) -> float:
    """Median processor time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def main() -> None:
    """Print one line for each table."""
    warnings.simplefilter("ignore")
    print(f"{'table':<8}{'fit':>8}{'sensitivity':>13}{'fits':>7}{'worth':>8}{'fits':>7}")
    for name, (load, false_positive, false_negative) in TABLES.items():
        X, y, prices, *_ = load()
        costs = Costs(prices, false_positive=false_positive, false_negative=false_negative)
        held = np.random.default_rng(0).permutation(len(y)) % 5 == 0
        rows = X[held], y[held]
        policy = AdaCOSClassifier(costs).fit(X[~held], y[~held])
        fit = seconds(lambda: AdaCOSClassifier(costs).fit(X[~held], y[~held]))  # noqa: B023
        table = seconds(lambda: sensitivity(policy, *rows))  # noqa: B023
        worth = seconds(lambda: covariate_worth(policy, *rows))  # noqa: B023
        first = f"{name:<8}{fit:>7.2f}s{table:>12.2f}s{table / fit:>7.1f}"
        print(f"{first}{worth:>7.2f}s{worth / fit:>7.1f}")


if __name__ == "__main__":
    main()

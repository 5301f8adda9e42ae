"""Time of one consultation step with its explanation: median and 99th percentile.

    python benchmarks/consultation.py                      # Pima
    python benchmarks/consultation.py model.adacos rows.csv

Rows are played from the first question to the decision; the processor time of every `next` counts.
The second number is for consultations that begin with a third of the values known.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import adacos
from adacos.consultation.steps import Acquire


def times(policy, rows, names, share: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    known = rng.random(len(names)) < share
    taken = []
    for row in rows:
        values = {n: float(v) for n, v in zip(names, row, strict=True) if v == v}
        start = {n: values[n] for n, k in zip(names, known, strict=True) if k and n in values}
        consultation = policy.consultation(start)
        absent = [n for n in names if n not in values]
        if absent:
            consultation.unavailable(*absent)
        while True:
            begin = time.thread_time()
            step = consultation.next()
            str(step.explanation)
            taken.append(time.thread_time() - begin)
            if not isinstance(step, Acquire):
                break
            consultation.observe({n: values[n] for n in step.covariates})
    return np.array(taken)


def main() -> None:
    if len(sys.argv) > 2:
        policy = adacos.load(sys.argv[1])
        data = adacos.load_physionet2012(Path(sys.argv[2]), as_frame=False)
    else:
        data = adacos.load_pima(as_frame=False)
        costs = adacos.Costs(list(data.prices.values()), false_positive=400, false_negative=400)
        policy = adacos.AdaCOSClassifier(costs).fit(data.X, data.y)
    names = policy.encoder_.names
    for share in (0.0, 1 / 3):
        taken = 1e3 * times(policy, data.X[:150], names, share)
        print(
            f"known {share:.0%}: {len(taken)} steps, median {np.median(taken):.2f} ms, "
            f"99th percentile {np.quantile(taken, 0.99):.2f} ms"
        )


if __name__ == "__main__":
    main()

"""Total cost of Shim2018 on Pima with the paper's folds, and how long a fit takes.

    python -m benchmarks.shim2018 [--reward auto|money|log_likelihood] [--device auto|cpu|cuda]
                                  [--folds 0 1 2 3 4] [--error 400 800]

A right answer costs -50, a wrong one --error; covariates are paid in full, without panels, as in
the paper's Table 1. Seconds are of the processor; on a GPU, of the clock.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from adacos import Costs, load_pima, paper_folds
from adacos.metrics import total_cost
from adacos.rivals import Shim2018Classifier

PAPER = {400: "113.82 ± 17.87", 800: "246.71 ± 26.71"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reward", default="money")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folds", type=int, nargs="+", default=range(5))
    parser.add_argument("--error", type=int, nargs="+", default=[400, 800])
    options = parser.parse_args()
    torch.set_num_threads(1)
    on_gpu = options.device != "cpu" and torch.cuda.is_available()
    clock = time.perf_counter if on_gpu else time.process_time
    X, y, prices, *_ = load_pima(as_frame=False)
    folds = paper_folds("pima")
    table = Table("error", "fold", "total cost", "covariate cost", "reward", "λ", "seconds")
    for error in options.error:
        costs = Costs(list(prices.values()), misclassification=[[-50, error], [error, -50]])
        figures = []
        for fold in options.folds:
            train, test = folds != fold, folds == fold
            begin = clock()
            model = Shim2018Classifier(costs, reward=options.reward, device=options.device)
            model.fit(X[train], y[train])
            seconds = clock() - begin
            result = model.acquire(X[test])
            paid = float(result.cost.mean())
            figures.append((total_cost(result, y[test], costs), paid, seconds))
            chosen = (model.reward_, f"{model.lambda_:g}")
            table.add_row(
                str(error),
                str(fold),
                *map("{:.2f}".format, figures[-1][:2]),
                *chosen,
                f"{seconds:.0f}",
            )
        total, paid, seconds = np.mean(figures, axis=0)
        spread = np.std([figure[0] for figure in figures])
        table.add_row(
            str(error),
            "mean",
            f"{total:.2f} ± {spread:.2f}",
            f"{paid:.2f}",
            f"paper {PAPER.get(error, '-')}",
            "",
            f"{seconds:.0f}",
            end_section=True,
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

"""`adacos bench regret --continuous`: regret where covariates are numbers.

Problems are drawn by `make_continuous_problem`: mixtures in which covariates are independent given
the component, and problems that are no such mixtures. The optimum is that of Theorem 1 with every
covariate cut into cells of equal probability. Both it and the methods are charged for the same
fresh rows, by P(y | x) in place of the class:

    mean over rows of (cost of what is acquired + Σ_y P(y | x) C[y, label]).

Twenty cells are fine enough that 24 lower the optimum by less than half a per cent (ten cost up to
five per cent more); a method that uses the numbers as they are can be below it by about as much.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.bench.regret import (
    FALSE_NEGATIVE,
    FALSE_POSITIVE,
    MethodRun,
    RegretOptions,
    RegretReport,
    Study,
    checked,
    fitted,
    grid,
    not_run,
    run_study,
    store,
    verdict,
)
from adacos.costs import CostTable
from adacos.datasets import ContinuousProblem, make_continuous_problem
from adacos.datasets._continuous import ALIENS, MIXTURES
from adacos.document.blocks import Block, Heading, Text
from adacos.kernels.class_risk import best_label
from adacos.kernels.planning import CLASSIFY
from adacos.models.plans import tabulate
from adacos.tables.writing import write_whole
from adacos.typing import Floats

TITLE = "Regret with numeric covariates"
MEAN_PRICES = (0.5, 2.0)
CELLS, FRESH_ROWS = 20, 40_000
# Share of the optimum by which fresh rows and cells may leave a method below it.
TOLERANCE = 0.02


@dataclass(frozen=True)
class ContinuousSettings:
    """What `make_continuous_problem` is asked for."""

    kind: str
    mean_price: float = 1.0

    def problem(self, seed: int) -> ContinuousProblem:
        """The problem with this seed."""
        return make_continuous_problem(self.kind, mean_price=self.mean_price, seed=seed)


def run_continuous(options: RegretOptions, *, progress: bool | None = None) -> RegretReport:
    """Run what is not finished, and write the report; a quick one has the lower price only."""
    prices = MEAN_PRICES[:1] if options.quick else MEAN_PRICES
    settings = tuple(
        ContinuousSettings(kind, price) for kind in (*MIXTURES, *ALIENS) for price in prices
    )
    study = Study(TITLE, settings, run_case, _blocks, TOLERANCE)
    return run_study(study, options, progress=progress)


def run_case(case: MethodRun) -> None:
    """Fit the method on a sample, and store what it and the optimum cost on fresh rows."""
    problem, costs = case.problem, case.costs
    table = costs.bind(tuple(problem.prices), 2)
    X, _ = problem.sample(FRESH_ROWS, seed=[case.seed, 1])
    path = case.file("optimum")
    if not path.is_file():
        optimum = optimal_cost(problem, table, X, CELLS)
        write_whole(path, json.dumps(optimum).encode())
    start = time.perf_counter()
    policy = fitted(case, *problem.sample(case.n_rows, seed=case.seed))
    result = checked(policy, X, table, case.method.name)
    seconds = time.perf_counter() - start
    cost = charged(problem, X, result.cost, result.label, table.matrix)
    store(case, cost, json.loads(path.read_text()), seconds)


def charged(
    problem: ContinuousProblem, X: Floats, paid: Floats, label: NDArray[Any], matrix: Floats
) -> float:
    """Mean over rows of what was paid and what the label costs by P(y | x)."""
    positive = problem.positive(problem.latent(X))
    number = label.astype(np.intp)
    wrong = (1 - positive) * matrix[0, number] + positive * matrix[1, number]
    return float((paid + wrong).mean())


def optimal_cost(problem: ContinuousProblem, costs: CostTable, X: Floats, n_cells: int) -> float:
    """What the best plan for the covariates in cells costs on rows."""
    plan = tabulate(problem.cells(n_cells), costs)
    z = problem.latent(X)
    cuts = problem.edges(n_cells)
    codes = np.column_stack([np.searchsorted(own, z[:, j]) for j, own in enumerate(cuts)])
    acquired = np.zeros(X.shape, dtype=np.bool_)
    while True:
        state = plan.states(codes, acquired)
        going = np.flatnonzero(plan.action[state] != CLASSIFY)
        if not len(going):
            break
        acquired[going, plan.action[state[going]]] = True
    label = best_label(plan.log_odds[state], costs.matrix)
    return charged(problem, X, costs.of(acquired), label, costs.matrix)


def _blocks(
    options: RegretOptions, report: RegretReport, methods: Sequence[str], absent: dict[str, str]
) -> Iterator[Block]:
    yield Text(
        "Expected total cost above that of the optimal policy, in per cent of the latter, by the "
        f"known P(y | x) of {FRESH_ROWS:,} fresh rows. Methods learn from {options.rows} rows; the "
        f"optimum knows the distribution, with every covariate in {CELLS} cells. A false positive "
        f"costs {FALSE_POSITIVE:g}, a false negative {FALSE_NEGATIVE:g}; there are five covariates."
        f" Mean and standard error over {options.problems} random problems."
    )
    yield verdict(report)
    prices = sorted({trial.setting.mean_price for trial in report.trials})
    for title, kinds in (
        ("Mixtures: independent given the component", MIXTURES),
        ("No mixtures: a sum of curves, trees, pairs, switches", ALIENS),
    ):
        for price in prices:
            yield Heading(f"{title}; mean price {price:g}")
            yield grid(kinds, [ContinuousSettings(kind, price) for kind in kinds], report, methods)
    yield from not_run(report, absent)

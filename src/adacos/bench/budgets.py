"""`adacos bench budgets`: methods compared where covariates may cost no more than a budget.

Each method is fitted on the paper's folds of a data set without a budget and with each of several,
which are shares of what all covariates cost: as a mean over rows, or as a ceiling for each row.
What is paid and what the errors cost are those of the test rows, so that the table is the
trade-off between the two, method by method.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from adacos.bench.checks import check_result
from adacos.bench.configuration import N_FOLDS, available_methods, check_method, resolved
from adacos.bench.methods import build, signature
from adacos.bench.settings import symmetric
from adacos.bench.sources import library_digest
from adacos.bench.tables import write_csv
from adacos.bench.tasks import Failure, Task, gathered, run_tasks
from adacos.costs import ROUNDING, Costs, total_of
from adacos.datasets import Dataset, paper_folds
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html, to_markdown
from adacos.document.style import (
    Picture,
    check_matplotlib,
    dataset_title,
    key,
    legend_below,
    look,
    new_figure,
    save,
    styled,
)
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.policies.fitting import inner_fits
from adacos.registry import DATASETS, METHODS, Method
from adacos.tables.writing import write_whole
from adacos.typing import Floats
from adacos.validation import choice, integer, real

TITLE = "Budgets: what is paid and what errors cost"
METHODS_COMPARED = ("AdaCOS (group lasso)", "Branching", "COS (group lasso)")
# Parameter by what the budget is for.
KINDS = {"mean": "mean_budget", "ceiling": "budget"}
SHARES = (0.4, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class BudgetOptions:
    """What the comparison runs.

    Parameters
    ----------
    dataset : registered name of a bundled data set; its panels count.
    methods : registered names of methods that keep budgets; None for this library's.
    kind : "mean" for a mean over rows, "ceiling" for each row.
    shares : budgets, as shares of what all covariates cost.
    error : what each error costs; None for twenty times what all covariates cost.
    folds : how many folds of the paper are tested, beginning with the first.
    jobs : number of processes.
    out : folder of the report; a stopped run resumes there.
    """

    dataset: str = "heart"
    methods: Sequence[str] | None = None
    kind: str = "mean"
    shares: Sequence[float] = SHARES
    error: float | None = None
    folds: int = N_FOLDS
    jobs: int = 1
    out: Path = Path("budgets")


@dataclass(frozen=True)
class BudgetCase:
    """One method on one fold with one budget, None for any amount, and its result's folder."""

    data: Dataset
    costs: Costs
    method: Method
    parameter: str
    fold: int
    budget: float | None
    folder: Path

    @property
    def title(self) -> str:
        """For messages."""
        named = "no budget" if self.budget is None else f"{self.parameter} {self.budget:g}"
        return f"{self.method.name}, {named}, fold {self.fold}"

    @cached_property
    def path(self) -> Path:
        """File of the result, named by everything it depends on."""
        table = np.asarray(self.data.X).tobytes() + np.asarray(self.data.y).tobytes()
        depends = (self.costs, self.parameter, self.fold, self.budget, signature(self.method))
        content = table + repr((depends, library_digest())).encode()
        return self.folder / f"{hashlib.sha256(content).hexdigest()[:24]}.json"


@dataclass(frozen=True)
class Spending:
    """What the test rows of a method pay with one budget, and what errors cost them."""

    method: str
    budget: float | None
    paid: Floats
    wrong: Floats

    @property
    def means(self) -> list[tuple[float, float]]:
        """Mean and standard error of what is paid, of what errors cost, and of both."""
        parts = (self.paid, self.wrong, self.paid + self.wrong)
        root = np.sqrt(max(len(self.paid) - 1, 1))
        return [(float(part.mean()), float(part.std() / root)) for part in parts]

    def kept(self, kind: str) -> bool | None:
        """Whether the budget is: by every row, or on average up to two standard errors."""
        if self.budget is None:
            return None
        if kind == "ceiling":
            return bool(self.paid.max() <= self.budget * (1 + ROUNDING))
        mean, error = self.means[0]
        return mean <= self.budget * (1 + ROUNDING) + 2 * error


@dataclass(frozen=True)
class BudgetReport:
    """All of it, and the page that shows it."""

    index: Path
    kind: str
    spendings: tuple[Spending, ...]
    failures: tuple[Failure, ...]
    seconds: float

    def records(self) -> list[dict[str, Any]]:
        """One line for each method and budget."""
        names = ("covariate_cost", "misclassification_cost", "total_cost")
        return [
            {
                "method": s.method,
                "budget": "" if s.budget is None else s.budget,
                **{n: mean for n, (mean, _) in zip(names, s.means, strict=True)},
                **{f"{n}_error": error for n, (_, error) in zip(names, s.means, strict=True)},
                "largest_covariate_cost": float(s.paid.max()),
                "kept": "" if s.budget is None else s.kept(self.kind),
            }
            for s in self.spendings
        ]


def run_budgets(options: BudgetOptions, *, progress: bool | None = None) -> BudgetReport:
    """Run what is not finished, and write the report; for `progress` see `run_tasks`."""
    started = time.perf_counter()
    cases, methods = _cases(options)
    (options.out / "cases").mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(case.title, case.method.effort, partial(run_case, case))
        for case in cases
        if not case.path.is_file()
    ]
    failures = run_tasks(tasks, jobs=options.jobs, progress=progress)
    spendings = []
    for method in methods:
        done = [case for case in cases if case.method.name == method and case.path.is_file()]
        for budget in dict.fromkeys(case.budget for case in done):
            results = [json.loads(c.path.read_text()) for c in done if c.budget == budget]
            paid, wrong = (np.concatenate([f[part] for f in results]) for part in ("paid", "wrong"))
            spendings.append(Spending(method, budget, paid, wrong))
    seconds = time.perf_counter() - started
    index = options.out / "index.html"
    report = BudgetReport(index, options.kind, tuple(spendings), failures, seconds)
    write_csv(options.out / "budgets.csv", report.records())
    blocks = list(_blocks(options, cases[0].costs, report, methods))
    write_whole(options.out / "summary.md", to_markdown(TITLE, blocks).encode())
    write_whole(report.index, to_html(TITLE, blocks).encode())
    return report


def _cases(options: BudgetOptions) -> tuple[list[BudgetCase], list[str]]:
    """What is to be run, and the names of the methods."""
    choice("kind", options.kind, tuple(KINDS))
    if integer("folds", options.folds, at_least=1) > N_FOLDS:
        raise InvalidInputError("folds", f"must be at most {N_FOLDS}", options.folds, "Ask fewer.")
    (name,) = resolved("dataset", (options.dataset,), DATASETS)
    if not DATASETS[name].bundled:
        raise InvalidInputError("dataset", "must be bundled", name, "For example heart.")
    methods, absent = available_methods(options.methods or METHODS_COMPARED)
    if absent:
        check_method(METHODS[next(iter(absent))])
    parameter = KINDS[options.kind]
    for method in methods:
        if parameter not in METHODS[method].make(Costs()).get_params(deep=False):
            raise InvalidInputError(
                "methods", f"must have the parameter {parameter}", method, "Leave it out."
            )
    for share in options.shares:
        real("shares", share, above=0)
    data = DATASETS[name].load()
    prices = [data.prices[covariate] for covariate in data.names]
    panels = {
        title: (shared, [data.names.index(covariate) for covariate in members])
        for title, (shared, members) in data.panels.items()
    }
    everything = Costs(prices, panels=panels).of(range(len(prices)))
    error = 20 * everything if options.error is None else real("error", options.error, above=0)
    costs = Costs(prices, false_positive=error, false_negative=error, panels=panels)
    budgets: list[float | None] = [
        None,
        *(share * everything for share in sorted(options.shares, reverse=True)),
    ]
    return [
        BudgetCase(data, costs, METHODS[method], parameter, fold, budget, options.out / "cases")
        for method in methods
        for budget in budgets
        for fold in range(options.folds)
    ], methods


def run_case(case: BudgetCase) -> None:
    """Fit the method without a fold, and store what the rows of the fold pay and cost."""
    fold = paper_folds(case.data.X, case.data.y)
    inside = fold == case.fold
    X, y = np.asarray(case.data.X), np.asarray(case.data.y)
    policy = build(case.method, case.costs, symmetric(1.0), 0)
    with inner_fits():
        policy.set_params(**{case.parameter: case.budget}).fit(X[~inside], y[~inside])
    result = policy.acquire(X[inside])
    costs = case.costs.bind(case.data.names)
    check_result(case.method.name, result, costs, np.unique(y), np.flatnonzero(inside))
    wrong = total_of(np.zeros(len(result)), y[inside], result.label, case.costs.matrix)
    stored = {"paid": result.cost.tolist(), "wrong": wrong.tolist()}
    write_whole(case.path, json.dumps(stored).encode())


def _blocks(
    options: BudgetOptions, costs: Costs, report: BudgetReport, methods: Sequence[str]
) -> Iterator[Block]:
    bound = "on average over rows" if options.kind == "mean" else "for each row at most"
    yield Text(
        f"{dataset_title(options.dataset)}, {options.folds} folds of the paper: what the held-out "
        f"rows pay for covariates and what their errors cost, where a budget is given {bound}. "
        f"Each error costs {costs.matrix[0, 1]:.2f}. Means per row ± standard error."
    )
    try:
        check_matplotlib()
        (options.out / "figures").mkdir(exist_ok=True)
        yield _figure(report, methods, options.out / "figures")
    except MissingExtraError as error:
        yield Text(f"There is no figure: {error}")
    for method in methods:
        spendings = [s for s in report.spendings if s.method == method]
        yield Heading(method)
        yield Grid(
            ("budget", "covariates", "errors", "total", "most that a row pays", "kept"),
            tuple(
                (
                    "none" if s.budget is None else f"{s.budget:.2f}",
                    *(f"{mean:.2f} ± {error:.2f}" for mean, error in s.means),
                    f"{s.paid.max():.2f}",
                    {True: "yes", False: "no", None: ""}[s.kept(report.kind)],
                )
                for s in spendings
            ),
        )
    if report.failures:
        yield Heading("Not included")
        yield Items(tuple(gathered(report.failures)))


@styled
def _figure(report: BudgetReport, methods: Sequence[str], folder: Path) -> Picture:
    """Cost of errors against what is paid, a line for each method."""
    figure, axes = new_figure(1, 1, 6.4, 4.4)
    axis = axes[0, 0]
    for i, method in enumerate(methods):
        means = [s.means for s in report.spendings if s.method == method]
        paid, wrong = ([m[part][0] for m in means] for part in (0, 1))
        errors = [m[1][1] for m in means]
        axis.errorbar(paid, wrong, yerr=errors, capsize=2, **look(method, i))
    axis.set(xlabel="Mean covariate cost", ylabel="Mean cost of errors", ylim=(0, None))
    legend_below(figure, [key(m, **look(m, i)) for i, m in enumerate(methods)])
    caption = "Without a budget at the right, then ever smaller ones; bars are standard errors."
    return save(figure, folder, "budgets", caption)

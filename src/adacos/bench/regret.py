"""`adacos bench regret`: how far each method stays from the optimum of Theorem 1.

On a discrete problem with a known joint distribution every row that can occur is listed, so that
the expected total cost of a policy is a sum over rows, not an estimate:

    Σ_x Σ_y P(y, x) (cost of what it acquires on x + C[y, its label on x]).

Methods learn from a sample; the optimum knows the distribution. No policy can be below it, so a
negative regret is an error in a method or in the optimum.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adacos.bench.checks import CHECKS, check_result
from adacos.bench.configuration import available_methods, check_method
from adacos.bench.methods import build, signature
from adacos.bench.settings import asymmetric
from adacos.bench.sources import library_digest
from adacos.bench.tables import write_csv
from adacos.bench.tasks import Failure, Task, gathered, run_tasks
from adacos.costs import Costs, CostTable
from adacos.datasets import DiscreteProblem, make_discrete_problem, make_value_dependent_problem
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html, to_markdown
from adacos.document.style import (
    Picture,
    check_matplotlib,
    key,
    legend_below,
    look,
    new_figure,
    save,
    styled,
)
from adacos.exceptions import MissingExtraError
from adacos.metrics import total_costs
from adacos.registry import METHODS, Method
from adacos.rivals import OptimalPolicyClassifier
from adacos.tables.writing import write_whole
from adacos.typing import Floats
from adacos.validation import integer

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

TITLE = "Regret: how far each method stays from the optimum"
FALSE_POSITIVE, FALSE_NEGATIVE = 50.0, 75.0
# Weak covariates, so that one of them seldom settles a row.
_STRENGTH = 0.6
# Problems in which a fixed order must lose differ in how many covariates say nothing.
_MOST_IRRELEVANT = 8
# A regret below minus this share of the optimum is an error, not rounding.
ROUNDING = 1e-9
# What a quick study runs.
QUICK = ("AdaCOS (group lasso)", "Branching", "Planning")


@dataclass(frozen=True)
class DiscreteSettings:
    """What `make_discrete_problem` is asked for; `fixed_order_loses` asks for the other maker."""

    n_covariates: int = 8
    mean_price: float = 1.0
    dependence: float = 1.0
    fixed_order_loses: bool = False

    def problem(self, seed: int) -> DiscreteProblem:
        """The problem with this seed."""
        if self.fixed_order_loses:
            irrelevant = seed % _MOST_IRRELEVANT
            return make_value_dependent_problem(n_irrelevant=irrelevant, prices=(2.0, 8.0))
        return make_discrete_problem(
            self.n_covariates,
            mean_price=self.mean_price,
            dependence=self.dependence,
            strength=_STRENGTH,
            seed=seed,
        )


CENTRE = DiscreteSettings()
# What is varied, one at a time from the centre: attribute, title, values.
AXES: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("n_covariates", "Number of covariates", (4, 8, 12)),
    ("mean_price", "Mean price of a covariate", (0.1, 0.3, 1.0, 3.0)),
    ("dependence", "Dependence within a class", (0.0, 0.5, 1.0, 2.0)),
)
# The figure's logarithmic axis begins here, in per cent.
_LEAST_SHOWN = 0.05
FIXED_ORDER = DiscreteSettings(n_covariates=3, fixed_order_loses=True)


@dataclass(frozen=True)
class RegretOptions:
    """What the study runs.

    Parameters
    ----------
    methods : registered names; None for all that can be run here.
    problems : random problems of each kind.
    seed : that of the first of them; the others follow.
    rows : training rows.
    jobs : number of processes.
    out : folder of the report; a stopped study resumes there.
    quick : one problem of each kind and 300 rows, of our own policies unless others are named.
    """

    methods: Sequence[str] | None = None
    problems: int = 4
    seed: int = 0
    rows: int = 1000
    jobs: int = 1
    out: Path = Path("regret")
    quick: bool = False


@dataclass(frozen=True)
class Trial:
    """One method on one problem: its expected total cost, that of the optimum, and the time."""

    setting: Any
    seed: int
    method: str
    cost: float
    optimum: float
    seconds: float
    error: str = ""

    @property
    def regret(self) -> float:
        """Share by which the method's expected total cost exceeds the optimum."""
        return self.cost / self.optimum - 1

    @property
    def title(self) -> str:
        """For messages."""
        return f"{self.method}, {self.setting}, problem {self.seed}"


@dataclass(frozen=True)
class MethodRun:
    """One method on one problem, and the folder that holds its result."""

    setting: Any
    seed: int
    method: Method
    n_rows: int
    folder: Path

    @property
    def title(self) -> str:
        """For messages."""
        return f"{self.method.name}, {self.setting}, problem {self.seed}"

    @cached_property
    def problem(self) -> Any:
        """The known distribution."""
        return self.setting.problem(self.seed)

    @property
    def costs(self) -> Costs:
        """Covariate costs of the problem and the costs of errors."""
        prices = list(self.problem.prices.values())
        return Costs(prices, false_positive=FALSE_POSITIVE, false_negative=FALSE_NEGATIVE)

    @cached_property
    def path(self) -> Path:
        """File of the result, named by everything it depends on."""
        return self.file(signature(self.method), self.n_rows)

    def file(self, *depends: Any) -> Path:
        """File of what depends on the problem, the library and this besides."""
        content = repr((self.setting, self.costs, self.seed, library_digest(), CHECKS, *depends))
        return self.folder / f"{hashlib.sha256(content.encode()).hexdigest()[:24]}.json"

    @property
    def finished(self) -> bool:
        """Whether the result is there."""
        return self.path.is_file()

    def read(self, error: str) -> Trial:
        """The finished trial, or the one that ended in an error."""
        trial = {"cost": np.nan, "optimum": np.nan, "seconds": 0.0}
        if not error:
            trial = json.loads(self.path.read_text())
        return Trial(self.setting, self.seed, self.method.name, **trial, error=error)


@dataclass(frozen=True)
class RegretReport:
    """All trials, the page that shows them, and the regret below which something is wrong."""

    index: Path
    trials: tuple[Trial, ...]
    tolerance: float = ROUNDING

    @property
    def failures(self) -> list[Failure]:
        """Trials in which the method raised an error."""
        return [Failure(t.title, t.error) for t in self.trials if t.error]

    @property
    def below_optimum(self) -> list[Trial]:
        """Trials whose cost is impossibly low."""
        return [t for t in self.trials if not t.error and t.regret < -self.tolerance]

    def regrets(self, setting: Any = None) -> dict[str, Floats]:
        """Regrets of each method in per cent, of one kind or of all; rounding does not count."""
        regrets: dict[str, list[float]] = {}
        for t in self.trials:
            values = regrets.setdefault(t.method, [])
            if not t.error and setting in (None, t.setting):
                values.append(100 * t.regret if abs(t.regret) > ROUNDING else 0.0)
        return {name: np.array(values) for name, values in regrets.items() if values}

    def summary(self) -> dict[str, Any]:
        """The essentials as plain JSON."""
        return {
            "report": str(self.index),
            "mean_regret_percent": {
                name: round(float(values.mean()), 3) for name, values in self.regrets().items()
            },
            "below_optimum": [t.title for t in self.below_optimum],
            "failures": [{"trial": f.unit, "error": f.error} for f in self.failures],
        }


def checked(policy: BasePolicy, X: Floats, costs: CostTable, method: str = "") -> Any:
    """What a fitted policy does with rows, refused where its costs are not those of its mask."""
    result = policy.acquire(X)
    name = method or type(policy).__name__
    check_result(name, result, costs, np.array([0, 1]), np.arange(len(X)))
    return result


def expected_cost(
    policy: BasePolicy, problem: DiscreteProblem, costs: Costs, method: str = ""
) -> float:
    """Exact expected total cost of a fitted policy on a known distribution."""
    weight = problem.joint.reshape(2, -1)
    possible = weight.sum(axis=0) > 0
    values = np.indices(problem.levels).reshape(len(problem.levels), -1)
    rows, weight = values[:, possible].T.astype(np.float64), weight[:, possible]
    result = checked(policy, rows, costs.bind(tuple(problem.prices), 2), method)
    return sum(float(weight[y] @ total_costs(result, np.full(len(rows), y), costs)) for y in (0, 1))


@dataclass(frozen=True)
class Study:
    """What sets a study apart: its problems, how one method is run on one, and what is written.

    Attributes
    ----------
    title : heading of the report.
    settings : what problems are drawn from.
    run : runs one case and stores its cost and that of the optimum.
    blocks : the report.
    tolerance : share of the optimum by which a cost may be below it.
    """

    title: str
    settings: tuple[Any, ...]
    run: Callable[[MethodRun], None]
    blocks: Callable[[RegretOptions, RegretReport, Sequence[str], dict[str, str]], Iterator[Block]]
    tolerance: float = ROUNDING


def run_regret(options: RegretOptions, *, progress: bool | None = None) -> RegretReport:
    """Run what is not finished, and write the report; for `progress` see `run_tasks`."""
    settings = [CENTRE, FIXED_ORDER]
    settings += [_setting(name, value) for name, _, values in AXES for value in values]
    study = Study(TITLE, tuple(dict.fromkeys(settings)), run_case, _blocks)
    return run_study(study, options, progress=progress)


def run_study(study: Study, options: RegretOptions, *, progress: bool | None) -> RegretReport:
    """Run every method on every problem where that is not finished, and write the report."""
    integer("problems", options.problems, at_least=1)
    integer("seed", options.seed, at_least=0)
    integer("rows", options.rows, at_least=100)
    if options.quick:
        options = replace(options, methods=options.methods or QUICK, problems=1, rows=300)
    methods, absent = available_methods(options.methods or METHODS)
    if options.methods is not None and absent:
        check_method(METHODS[next(iter(absent))])
    folder = options.out / "trials"
    folder.mkdir(parents=True, exist_ok=True)
    cases = [
        MethodRun(setting, seed, METHODS[method], options.rows, folder)
        for setting in study.settings
        for seed in range(options.seed, options.seed + options.problems)
        for method in methods
    ]
    run = study.run
    tasks = [Task(c.title, c.method.effort, partial(run, c)) for c in cases if not c.finished]
    errors = {
        failure.unit: failure.error
        for failure in run_tasks(tasks, jobs=options.jobs, progress=progress)
    }
    trials = [case.read(errors.get(case.title, "")) for case in cases]
    trials.sort(key=lambda trial: methods.index(trial.method))
    report = RegretReport(options.out / "index.html", tuple(trials), study.tolerance)
    _write_table(options.out / "regret.csv", report)
    blocks = list(study.blocks(options, report, methods, absent))
    write_whole(options.out / "summary.md", to_markdown(study.title, blocks).encode())
    write_whole(report.index, to_html(study.title, blocks).encode())
    return report


def _setting(name: str, value: float) -> DiscreteSettings:
    """The centre with one attribute changed."""
    changed: dict[str, Any] = {name: value}
    return replace(CENTRE, **changed)


def run_case(case: MethodRun) -> None:
    """Fit the method on a sample, and store what its policy and the optimum cost."""
    problem, costs = case.problem, case.costs
    X, y = problem.sample(case.n_rows, seed=case.seed)
    optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y).expected_cost_
    start = time.perf_counter()
    cost = expected_cost(fitted(case, X, y), problem, costs, case.method.name)
    store(case, cost, optimum, time.perf_counter() - start)


def fitted(case: MethodRun, X: Floats, y: NDArray[np.int64]) -> Any:
    """The method of a case, fitted to rows of its problem."""
    errors = asymmetric(FALSE_POSITIVE, ratio=FALSE_NEGATIVE / FALSE_POSITIVE)
    return build(case.method, case.costs, errors, case.seed).fit(X, y)


def store(case: MethodRun, cost: float, optimum: float, seconds: float) -> None:
    """Write what a case came to."""
    stored = {"cost": cost, "optimum": optimum, "seconds": round(seconds, 3)}
    write_whole(case.path, json.dumps(stored).encode())


def _write_table(path: Path, report: RegretReport) -> None:
    write_csv(
        path,
        [
            {
                "method": t.method,
                **asdict(t.setting),
                "problem": t.seed,
                "cost": t.cost,
                "optimum": t.optimum,
                "regret": t.regret,
                "seconds": t.seconds,
                "error": t.error,
            }
            for t in report.trials
        ],
    )


def _blocks(
    options: RegretOptions, report: RegretReport, methods: Sequence[str], absent: dict[str, str]
) -> Iterator[Block]:
    yield Text(
        "Expected total cost above that of the optimal policy, in per cent of the latter, exact "
        "for the distribution each problem is drawn from. Methods learn from "
        f"{options.rows} rows; the optimum knows the distribution. A false positive costs "
        f"{FALSE_POSITIVE:g}, a false negative {FALSE_NEGATIVE:g}; covariates are binary. Mean and "
        f"standard error over {options.problems} random problems."
    )
    yield verdict(report)
    try:
        check_matplotlib()
        (options.out / "figures").mkdir(exist_ok=True)
        if report.regrets():
            yield _figure(report, methods, options.out / "figures")
    except MissingExtraError as error:
        yield Text(f"There is no figure: {error}")
    for name, title, values in AXES:
        yield Heading(title)
        settings = [_setting(name, value) for value in values]
        yield grid([f"{value:g}" for value in values], settings, report, methods)
    yield Heading("Where a fixed order must lose")
    yield Text(
        "The first covariate says which of two others holds the class: a method with one order for "
        "all rows pays for a covariate that says nothing on every other row."
    )
    yield grid(["Regret"], [FIXED_ORDER], report, methods)
    yield from not_run(report, absent)


def verdict(report: RegretReport) -> Text:
    """Whether a trial is below the optimum."""
    wrong = report.below_optimum
    return Text(
        f"{len(wrong)} of {len(report.trials)} trials are below the optimum: an error."
        if wrong
        else f"No trial of {len(report.trials)} is below the optimum."
    )


def not_run(report: RegretReport, absent: dict[str, str]) -> Iterator[Block]:
    """What was not run, and why."""
    lines = [f"{name}: {why}" for name, why in absent.items()]
    lines += gathered(report.failures)
    if lines:
        yield Heading("Not included")
        yield Items(tuple(lines))


def grid(
    header: Sequence[str], settings: Sequence[Any], report: RegretReport, methods: Sequence[str]
) -> Grid:
    """Mean regret of each method for each kind of problem, and its standard error."""
    means = np.full((len(methods), len(settings)), np.inf)
    rows = [[method] for method in methods]
    for j, setting in enumerate(settings):
        regrets = report.regrets(setting)
        for i, method in enumerate(methods):
            if method not in regrets:
                rows[i].append("")
                continue
            means[i, j], n = regrets[method].mean(), len(regrets[method])
            error = f" ± {regrets[method].std(ddof=1) / np.sqrt(n):.1f}" if n > 1 else ""
            rows[i].append(f"{means[i, j]:.1f}{error}")
    best = tuple((int(i), j + 1, "good") for j, i in enumerate(means.argmin(axis=0)))
    return Grid(("Method", *header), tuple(map(tuple, rows)), "Per cent above the optimum", best)


@styled
def _figure(report: RegretReport, methods: Sequence[str], folder: Path) -> Picture:
    """Regret along each axis."""
    figure, axes = new_figure(1, len(AXES), 11.0, 5.2)
    for axis, (name, title, values) in zip(axes[0], AXES, strict=True):
        regrets = [report.regrets(_setting(name, value)) for value in values]
        for i, method in enumerate(methods):
            means = [
                by_method[method].mean() if method in by_method else np.nan for by_method in regrets
            ]
            axis.plot(range(len(values)), np.maximum(means, _LEAST_SHOWN), **look(method, i))
        axis.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axis.set(xlabel=title, yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
    axes[0, 0].set_ylabel("Total cost above the optimum (%)")
    legend_below(figure, [key(m, **look(m, i)) for i, m in enumerate(methods)])
    return save(
        figure,
        folder,
        "regret",
        "Mean over random problems of the expected total cost above the optimum. What is not on "
        f"the axis stays at {CENTRE.n_covariates} covariates, mean price {CENTRE.mean_price:g}, "
        f"dependence {CENTRE.dependence:g}.",
    )

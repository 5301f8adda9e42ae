"""`adacos bench afa`: accuracy under budgets, by the protocol of active feature acquisition.

The protocol follows AFABench (Aronsson et al. 2025), written from its description. Each method is
fitted to five instances of every problem, and to two costs of an error:

- so large that only the budget ends an acquisition. Rows then get hard budgets of 1, 2, 3, …
  covariates of mean cost. Accuracy and macro F1 are taken at each budget, next to those of
  the same classifier with the same number of covariates in random order;
- one that weighs an error against covariates. Total cost, covariates and errors together, is taken
  on the same rows. Covariates that count more than once give the curve of soft budgets.

Hard budgets are tried from four starts: nothing known, a random share of the values known at no
cost, a random share unavailable, and some covariates never acquirable; from the last three, every
third budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from adacos.bench.afa_cases import (
    CUBES,
    AccuracyCase,
    CubeSettings,
    TableSettings,
    read_curves,
    run_case,
)
from adacos.bench.afa_report import AFAReport, blocks_of, write_curves
from adacos.bench.configuration import available_methods, check_method
from adacos.bench.tasks import Task, run_tasks
from adacos.document.blocks import to_html, to_markdown
from adacos.registry import METHODS
from adacos.tables.writing import write_whole
from adacos.validation import integer

TITLE = "Accuracy under budgets"
METHODS_COMPARED = ("AdaCOS (group lasso)", "AdaCOS (forward)", "Branching", "DIME", "GDFS")
QUICK = ("AdaCOS (group lasso)", "COS (group lasso)")


@dataclass(frozen=True)
class AFAOptions:
    """What the study runs.

    Parameters
    ----------
    methods : registered names; None for `METHODS_COMPARED`.
    settings : what problems are drawn from; None for CUBE with each kind of costs, and with
        contexts.
    instances : samples of each.
    seed : that of the first of them; the others follow.
    rows : training rows.
    jobs : number of processes.
    out : folder of the report; a stopped study resumes there.
    quick : one instance of CUBE with 400 rows, of our own policies unless others are named.
    """

    methods: Sequence[str] | None = None
    settings: Sequence[CubeSettings | TableSettings] | None = None
    instances: int = 5
    seed: int = 0
    rows: int = 2000
    jobs: int = 1
    out: Path = Path("afa")
    quick: bool = False


def run_afa(options: AFAOptions, *, progress: bool | None = None) -> AFAReport:
    """Run what is not finished, and write the report; for `progress` see `run_tasks`."""
    integer("instances", options.instances, at_least=1)
    integer("seed", options.seed, at_least=0)
    integer("rows", options.rows, at_least=100)
    if options.quick:
        options = replace(
            options,
            methods=options.methods or QUICK,
            settings=options.settings or CUBES[:1],
            instances=1,
            rows=400,
        )
    methods, absent = available_methods(options.methods or METHODS_COMPARED)
    if options.methods is not None and absent:
        check_method(METHODS[next(iter(absent))])
    folder = options.out / "trials"
    folder.mkdir(parents=True, exist_ok=True)
    cases = [
        AccuracyCase(setting, seed, METHODS[method], options.rows, folder)
        for setting in options.settings or CUBES
        for seed in range(options.seed, options.seed + options.instances)
        for method in methods
    ]
    tasks = [
        Task(c.title, c.method.effort, partial(run_case, c)) for c in cases if not c.path.is_file()
    ]
    found = run_tasks(tasks, jobs=options.jobs, progress=progress)
    errors = {failure.unit: failure.error for failure in found}
    curves = tuple(read_curves(case, errors.get(case.title, "")) for case in cases)
    report = AFAReport(options.out / "index.html", curves)
    write_curves(options.out / "afa.csv", report)
    blocks = list(blocks_of(report, methods, absent, options.rows, options.out))
    write_whole(options.out / "summary.md", to_markdown(TITLE, blocks).encode())
    write_whole(report.index, to_html(TITLE, blocks).encode())
    return report

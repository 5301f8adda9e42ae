"""`adacos bench table`: methods side by side on a table of one's own, by its own costs.

Each method is fitted without each of five folds of repeated random splits, and runs on the fold's
rows. Differences are paired: same fold, same row. Rows that belong together, as named or because
they look like copies of each other, are in one fold, and standard errors are those of their groups.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adacos.bench.comparisons import (
    RANDOM,
    CellComparison,
    OutcomeIndex,
    compare_cells,
    comparison_records,
)
from adacos.bench.configuration import N_FOLDS, available_methods, check_folder, slug
from adacos.bench.folds import fold_of_rows, with_groups
from adacos.bench.names import ADACOS, COS, FULL_MODEL
from adacos.bench.pairing import row_groups, row_means
from adacos.bench.run import finish, plan
from adacos.bench.settings import CrossValidation, Matrix, Setting
from adacos.bench.tables import FoldTable, write_csv, write_rows
from adacos.bench.tasks import Failure, gathered
from adacos.costs import Costs
from adacos.datasets import Dataset
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html, to_markdown
from adacos.document.style import Picture, check_matplotlib, new_figure, save, styled
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.kernels.groups import standard_error
from adacos.registry import METHODS
from adacos.tables.writing import write_whole
from adacos.typing import Floats, Ints
from adacos.validation import integer

COMPARED = (ADACOS, "Branching", COS, FULL_MODEL, "Boosting (best fixed set)")
_SETTING = "own costs"
_COPIES = (
    "Equal rows stay in one fold and count once in standard errors. Leave copies out; name the "
    "patients or sites that rows belong to with --groups COLUMN; if all rows are different cases, "
    "that column may be one with another value in each row."
)
_VISITS = (
    "Are they visits of one patient? Then name the column of the patients with --groups COLUMN: "
    "their rows are then in one fold, and count once in standard errors."
)
_FIGURE_WIDTH = 6.4


@dataclass(frozen=True)
class TableOptions:
    """What is compared, on which table.

    Parameters
    ----------
    name : what the table is called.
    table : covariates, classes, covariate costs and panels; groups of rows, if it names them.
    misclassification : C[true class, label].
    methods : registered names; None for `COMPARED`, ("all",) for every one that can be run here.
    splits, seed : number of random five-fold splits, and their seed.
    jobs : number of processes.
    out : folder of the report; a stopped run resumes there.
    """

    name: str
    table: Dataset
    misclassification: Matrix
    methods: Sequence[str] | None = None
    splits: int = 2
    seed: int = 0
    jobs: int = 1
    out: Path = Path("table")


@dataclass(frozen=True)
class MethodCosts:
    """What a method costs each row, means over the splits, and the group of each row."""

    method: str
    covariates: Floats
    total: Floats
    groups: Ints | None = None

    @property
    def means(self) -> list[tuple[float, float]]:
        """Mean and standard error of covariate costs, cost of errors and total cost."""
        parts = (self.covariates, self.total - self.covariates, self.total)
        # Equal costs have no error but for rounding.
        return [(float(p.mean()), round(standard_error(p, self.groups), 12)) for p in parts]


@dataclass(frozen=True)
class TableReport:
    """Where the report is, and what it found; `compared` is the first method less each other.

    `warnings` say what looks wrong about the rows.
    """

    index: Path
    costs: tuple[MethodCosts, ...]
    compared: tuple[CellComparison, ...]
    failures: tuple[Failure, ...]
    not_run: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float

    def records(self) -> list[dict[str, Any]]:
        """One line for each method."""
        names = ("covariate_cost", "misclassification_cost", "total_cost")
        return [
            {
                "method": one.method,
                **{n: mean for n, (mean, _) in zip(names, one.means, strict=True)},
                **{f"{n}_error": error for n, (_, error) in zip(names, one.means, strict=True)},
            }
            for one in self.costs
        ]


def run_table(
    options: TableOptions, *, progress: bool | None = None, doubts: Sequence[str] = ()
) -> TableReport:
    """Run what is not finished, and write the report.

    Parameters
    ----------
    options : what to run; a table of which rows look like copies has them as groups, see `grouped`.
    progress : see `run_tasks`.
    doubts : what looks wrong about the rows, for the report.
    """
    started = time.perf_counter()
    integer("splits", options.splits, at_least=1)
    integer("seed", options.seed, at_least=0)
    integer("jobs", options.jobs, at_least=1)
    check_folder(options.out)
    methods, not_run = _methods(options)
    matrix = options.misclassification
    setting = Setting(_SETTING, float(matrix[0][1]), matrix)
    splits = [
        CrossValidation(f"random-{k + 1}", options.seed * 1000 + k, every_row=True)
        for k in range(options.splits)
    ]
    fold_of_rows(options.table, splits[0])
    tables = {slug(options.name) or "table": options.table}
    chosen = [METHODS[name] for name in methods]
    units = plan(tables, chosen, [setting], splits, range(N_FOLDS))
    result = finish(units, tables, methods, [setting], options.out, options.jobs, progress)
    index = OutcomeIndex(result.outcomes)
    done = [name for name in methods if any(cell.method == name for cell in index.cells(RANDOM))]
    costs = []
    for name in done:
        outcomes = [o for o in result.outcomes if o.method == name]
        paid, total = (row_means(outcomes, values) for values in ("cost", "total"))
        covariates, both = (np.array([of[row] for row in sorted(of)]) for of in (paid, total))
        costs.append(MethodCosts(name, covariates, both, row_groups(outcomes)))
    report = TableReport(
        options.out / "index.html",
        tuple(costs),
        tuple(c for other in done[1:] for c in compare_cells(index, done[0], other)),
        result.failures,
        not_run,
        tuple(doubts),
        time.perf_counter() - started,
    )
    folder = options.out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "methods.csv", report.records())
    write_csv(folder / "comparisons.csv", comparison_records(report.compared))
    write_csv(folder / "folds.csv", list(FoldTable(result.outcomes).records()))
    if result.outcomes:
        write_rows(folder, result.outcomes)
    title, blocks = f"{options.name}: methods side by side", _blocks(options, report)
    write_whole(options.out / "summary.md", to_markdown(title, blocks).encode())
    write_whole(report.index, to_html(title, blocks).encode())
    return report


def grouped(options: TableOptions) -> tuple[TableOptions, list[str]]:
    """The options with the groups of rows, named or found, and what looks wrong about the rows."""
    table, copied = with_groups(options.table)
    remedy = _VISITS if table.groups is None else _COPIES
    return replace(options, table=table), [f"{copied} {remedy}"] if copied else []


def _methods(options: TableOptions) -> tuple[list[str], tuple[str, ...]]:
    """Methods that can be run on the table, and why others cannot."""
    wanted = COMPARED if options.methods is None else options.methods
    everything = list(wanted) == ["all"]
    found, absent = available_methods(METHODS if everything else wanted)
    if absent and not everything and options.methods is not None:
        METHODS[next(iter(absent))].check_installed()
    n_classes = len(options.misclassification)
    for name in list(found):
        policy = METHODS[name].make(Costs())
        if n_classes > 2 and not getattr(policy, "takes_many_classes", True):
            found.remove(name)
            absent[name] = f"it takes two classes, and the table has {n_classes}"
    if not found:
        described = "; ".join(f"{name}: {why}" for name, why in absent.items())
        remedy = "For example adacos-group-lasso."
        raise InvalidInputError("methods", "must be able to run on the table", described, remedy)
    return found, tuple(f"{name}: {why}" for name, why in absent.items())


def _blocks(options: TableOptions, report: TableReport) -> list[Block]:
    n, splits = len(options.table.y), options.splits
    often = "split" if splits == 1 else "splits"
    groups, over = options.table.groups, "rows"
    rows_of = f"{n:,} rows"
    if groups is not None:
        rows_of, over = f"{n:,} rows in {len(np.unique(groups)):,} groups", "groups"
    blocks: list[Block] = [
        Text(
            f"{rows_of}, {len(options.table.names)} covariates, {splits} random five-fold {often} "
            f"(seed {options.seed}). Costs are in the unit of the price list, means per row ± "
            f"standard error over {over}; each row was answered by models that did not see it"
            f"{', nor others of its group' * (groups is not None)}."
        ),
        *map(Text, report.warnings),
    ]
    if report.costs:
        blocks += _figure_or_why(report, options.out / "figures")
        header = ("method", "total cost", "covariates", "errors")
        rows = []
        for one in report.costs:
            paid, wrong, total = (f"{mean:.4g} ± {error:.2g}" for mean, error in one.means)
            rows.append((one.method, total, paid, wrong))
        blocks += [Heading("What each method costs"), Grid(header, tuple(rows))]
    if report.compared:
        blocks += [Heading("Paired comparison"), Text(_PAIRED), _compared(report)]
    lines = [*report.not_run, *gathered(report.failures)]
    if lines:
        blocks += [Heading("Not included"), Items(tuple(lines))]
    return blocks


_PAIRED = (
    "Folds share training rows, so their t interval is widened by Nadeau and Bengio's correction. "
    "The row interval holds for new rows given models trained as these were. A difference is named "
    "only if both intervals exclude zero."
)


def _compared(report: TableReport) -> Grid:
    rows, marks = [], []
    for place, c in enumerate(report.compared):
        verdict = in_words(c)
        mark = {"lower": "good", "higher": "bad"}.get(verdict, "soft")
        marks.append((place, 4, mark))
        intervals = (
            f"{c.folds.estimate:.4g} [{c.folds.low:.4g}, {c.folds.high:.4g}]",
            f"[{c.rows.low:.4g}, {c.rows.high:.4g}]",
        )
        names = f"{c.first.method} less {c.second.method}"
        share = f"{100 * (c.means[0] / c.means[1] - 1):+.1f}%" if c.means[1] > 0 else "–"
        rows.append((names, *intervals, share, verdict))
    header = ("methods", "difference, 95% over folds", "over rows", "in per cent", "")
    return Grid(header, tuple(rows), marks=tuple(marks))


def in_words(comparison: CellComparison) -> str:
    """Whether the first method costs less."""
    if comparison.is_noise:
        return "undecided"
    return "lower" if comparison.folds.estimate < 0 else "higher"


def _figure_or_why(report: TableReport, folder: Path) -> list[Block]:
    try:
        check_matplotlib()
    except MissingExtraError as error:
        return [Text(f"There is no figure: {error}")]
    folder.mkdir(parents=True, exist_ok=True)
    return [_figure(report, folder)]


@styled
def _figure(report: TableReport, folder: Path) -> Picture:
    """Covariate costs and the cost of errors, a bar for each method."""
    names = [one.method for one in report.costs]
    figure, axes = new_figure(1, 1, _FIGURE_WIDTH, 1.2 + 0.4 * len(names))
    axis, place = axes[0, 0], np.arange(len(names))
    means = np.array([[mean for mean, _ in one.means] for one in report.costs])
    errors = [one.means[2][1] for one in report.costs]
    paid = axis.barh(place, means[:, 0], label="covariates")
    wrong = axis.barh(place, means[:, 1], left=means[:, 0], label="errors", alpha=0.5)
    axis.errorbar(means[:, 2], place, xerr=errors, fmt="none", ecolor="black", capsize=2)
    axis.set_yticks(place, names)
    axis.invert_yaxis()
    axis.set_xlabel("Mean total cost per row")
    axis.legend(handles=[paid, wrong], loc="lower right")
    caption = "Covariate costs and cost of errors; bars are standard errors of the total cost."
    return save(figure, folder, "methods", caption)
